"""Parts of error messages that every room needs."""

from collections.abc import Iterable
from difflib import get_close_matches


def closest_hint(name: object, allowed: Iterable[object], form: str = "; did you mean {!r}?") -> str:
    """The end of a message about an unknown name: `form` with the closest allowed name, empty if none is close.

    Upper and lower case count as equal.
    """
    spelled = {str(option).lower(): str(option) for option in allowed}
    close = get_close_matches(str(name).lower(), spelled, n=1)
    return form.format(spelled[close[0]]) if close else ""


def first_line(error: Exception) -> str:
    """The first line of an error's message, without the stop at its end."""
    return str(error).strip().partition("\n")[0].rstrip(".")


def counted(number: int, noun: str) -> str:
    """A number and its noun, which gets an `s` unless the number is 1: `1 document`, `0 documents`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
