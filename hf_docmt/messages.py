"""Shared parts of error messages, and the version of the package."""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator

__version__ = "0.2.0"
PACKAGE = "hf-docmt"  # its name in the metadata of the installed package


def closest_hint(name: object, allowed: Iterable[object], form: str = "; did you mean {!r}?") -> str:
    """The end of a message about an unknown name: `form` with the closest allowed name, empty without a close one.

    Upper and lower case count as equal.
    """
    from difflib import get_close_matches

    spelled = {str(option).lower(): str(option) for option in allowed}
    close = get_close_matches(str(name).lower(), spelled, n=1)
    return form.format(spelled[close[0]]) if close else ""


def check_known(name: str, allowed: Collection[str], what: str, where: str) -> None:
    """ValueError with the known names, and the closest of them, if `name` is unknown."""
    if name not in allowed:
        raise ValueError(f"unknown {what} {name!r}: {where} {', '.join(allowed)}{closest_hint(name, allowed)}")


def first_line(error: Exception) -> str:
    """The first line of an error's message, without the stop at its end."""
    return str(error).strip().partition("\n")[0].rstrip(".")


def counted(number: int, noun: str) -> str:
    """A number and its noun, which gets an `s` unless the number is 1: `1 document`, `0 documents`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def install_command(extra: str) -> str:
    """The command that installs what an extra of the package needs: `pip install 'pysubs2>=1.8.0' 'sentencex>=1.0.32'`.

    It names the packages themselves, as the installed metadata have them, since this package is not on PyPI. From a
    checkout that is not installed, or was installed before it had the extra, it is that of the extra there.
    """
    packages = list(dict.fromkeys(extra_requirements(extra, requirements())))
    if not packages:
        return f"pip install '.[{extra}]' in the checkout of {PACKAGE}"
    return _pip_install(packages)


def requirements() -> list[str]:
    """Requirements in the metadata of the installed package; none if it is not installed."""
    from importlib.metadata import PackageNotFoundError, requires  # takes as long to import as the help to print

    try:
        return requires(PACKAGE) or []
    except PackageNotFoundError:
        return []


def extra_requirements(extra: str, requirements: list[str]) -> Iterator[str]:
    """The packages of an extra, with those of the extras that it names.

    >>> list(extra_requirements("a", ['x>=1; extra == "a"', 'hf-docmt[b]; extra == "a"', 'y; extra == "b"']))
    ['x>=1', 'y']
    """
    for line in requirements:
        name, _, marker = (part.strip() for part in line.partition(";"))
        if not re.search(rf"""extra == ["']{re.escape(extra)}["']""", marker):
            continue
        other = re.fullmatch(rf"{PACKAGE}\[([\w-]+)\]", name)
        yield from extra_requirements(other[1], requirements) if other else [name]


def core_command(names: Iterable[str]) -> str:
    """The command that installs these dependencies of the package, within the bounds that it has for them."""
    bounds = {re.match(r"[\w.-]+", line)[0]: line for line in requirements() if ";" not in line}
    return _pip_install([bounds.get(name, name) for name in names])


def _pip_install(requirements: list[str]) -> str:
    return f"pip install {shlex.join(requirements)}"
