"""Documents with markup, in and out: a class and a file for each format, which registers itself as readers do.

A new format is one new file here with one subclass of `DocumentFormat`.
"""

import pkgutil
from importlib import import_module


def import_formats() -> None:
    """Register all formats of this folder as readers."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
