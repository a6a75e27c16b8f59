"""Classes that register themselves when they are defined: readers, suites, metrics and systems, a file each.

Those from outside the package are plugins, which are imported before a command runs.
"""

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

VARIABLE = "HF_DOCMT_PLUGINS"
_IMPORTED: set[str] = set()  # packages


def register(registry: dict[str, type], name: str, new: type, kind: str) -> None:
    """Register a class by its name. ValueError: another class has it; the same class may replace it."""
    other = registry.setdefault(name, new)
    if (other.__module__, other.__qualname__) != (new.__module__, new.__qualname__):
        raise ValueError(f"two {kind}s have the name {name!r}: {other} and {new}; give one another name")
    registry[name] = new


def registered(registry: dict[str, type], package: str) -> dict[str, type]:
    """The registry with the classes of all modules of a package, which come first, in the order of these modules."""
    if package not in _IMPORTED:
        for module in iter_modules(import_module(package).__path__):
            import_module(f"{package}.{module.name}")
        built_in = [name for name, value in registry.items() if value.__module__.startswith(f"{package}.")]
        built_in.sort(key=lambda name: registry[name].__module__)
        ordered = {name: registry[name] for name in dict.fromkeys([*built_in, *registry])}
        registry.clear()
        registry.update(ordered)
        _IMPORTED.add(package)
    return registry


def load_plugins(names: Iterable[str] | None = None) -> list[ModuleType]:
    """Import plugins, whose classes register themselves: `path/to/file.py` or the dotted name of a module.

    `names` defaults to the environment variable HF_DOCMT_PLUGINS, in which they are separated by commas:

        HF_DOCMT_PLUGINS=my_metric.py,my_package.suites docmt evaluate ...

    A module is imported once, however often it is named. Processes that are started later inherit the variable.
    ValueError: a file or module that does not exist. What the plugin itself raises is passed on.
    """
    if names is None:
        names = os.environ.get(VARIABLE, "").split(",")
    names = [name.strip() for name in names if name.strip()]
    return [_load_file(Path(name)) if name.endswith(".py") else _load_module(name) for name in names]


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"{VARIABLE}: {path} is not a file; check the path (relative paths start at {Path.cwd()})")
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
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # an import inside the plugin fails
        raise ValueError(
            f"{VARIABLE}: no module {name!r}; install it, add its folder to PYTHONPATH, or give the path of a .py file"
        ) from error
