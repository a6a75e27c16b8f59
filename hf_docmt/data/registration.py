"""Classes that register themselves when they are defined: readers, suites, metrics and systems, a file each."""

from importlib import import_module
from pkgutil import iter_modules

_IMPORTED: set[str] = set()  # packages


def register(registry: dict[str, type], name: str, new: type, kind: str) -> None:
    """Register a class by its name. ValueError: another one has it; the same class, imported anew, may replace it."""
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
