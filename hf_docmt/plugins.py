"""Suites, metrics, readers and other classes from outside the package, imported before a command runs."""

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

VARIABLE = "HF_DOCMT_PLUGINS"


def load_plugins(names: Iterable[str] | None = None) -> list[ModuleType]:
    """Import plugins, whose classes register themselves: `path/to/file.py` or the dotted name of a module.

    `names` defaults to the environment variable HF_DOCMT_PLUGINS, in which they are separated by commas:

        HF_DOCMT_PLUGINS=my_metric.py,my_package.suites docmt evaluate ...

    A module is imported once, however often it is named. Processes that are started later inherit the variable.
    ValueError: a file or module that does not exist. What the plugin itself raises is passed on.
    """
    if names is None:
        names = os.environ.get(VARIABLE, "").split(",")
    return [_load(name.strip()) for name in names if name.strip()]


def _load(name: str) -> ModuleType:
    return _load_file(Path(name)) if name.endswith(".py") else _load_module(name)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"{VARIABLE}: {path} is no file; check the path (relative paths start at {Path.cwd()})")
    path = path.resolve()
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    name = f"docmt_plugin_{path.stem}_{digest}"  # shadows no other module
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # an import inside the plugin fails
        raise ValueError(
            f"{VARIABLE}: no module {name!r}; install it, add its folder to PYTHONPATH, or give the path of a .py file"
        ) from error
