"""Plain mappings into dataclasses, strictly: every key known, every value of the declared type."""

import dataclasses
import difflib
import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", dict: "a mapping"}


class RecipeError(ValueError):
    """A recipe that cannot be used; the message names the place, what was found, what is allowed and the remedy."""


def build(kind: type, mapping: Any, where: str) -> Any:
    """Make the dataclass `kind` from a mapping; `where` is the place in the file, for messages ("" = the top)."""
    if not isinstance(mapping, Mapping):
        raise RecipeError(f"{where or 'recipe'}: expected a mapping of keys to values, got {_shown(mapping)}")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    check_keys(mapping, fields, where)
    hints = get_type_hints(kind)
    values = {key: convert(value, hints[key], _join(where, key)) for key, value in mapping.items()}
    for name, field in fields.items():
        if name not in values and field.default is field.default_factory is dataclasses.MISSING:
            raise RecipeError(f"{_join(where, name)}: missing, and there is no default; add it")
    return kind(**values)


def check_keys(mapping: Mapping, allowed: Iterable[str], where: str) -> None:
    """Raise `RecipeError` with the closest allowed name for a key that is not allowed."""
    allowed = list(allowed)
    for key in mapping:
        if key not in allowed:
            raise RecipeError(f"{_join(where, key)}: unknown key{hint(key, allowed)}")


def hint(name: Any, allowed: Iterable[str]) -> str:
    """The end of a message: the closest allowed name where there is one, and all of them."""
    allowed = [str(option) for option in allowed]
    close = difflib.get_close_matches(str(name), allowed, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ";"
    return f"{guess} allowed: {', '.join(allowed)}"


def convert(value: Any, kind: Any, where: str) -> Any:
    """The value as `kind`: a dataclass, bool, int, float, str, dict, Literal, fixed tuple or a union of them.

    Only widening is done: a whole number becomes a number where one is asked for, and so does text like `1e-4`, which
    YAML does not take for a number.
    """
    if get_origin(kind) in (Union, types.UnionType):
        return _convert_union(value, get_args(kind), where)
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise RecipeError(f"{where}: got {_shown(value)}{hint(value, get_args(kind))}")
        return value
    if get_origin(kind) is tuple:
        return _convert_tuple(value, get_args(kind), where)
    if dataclasses.is_dataclass(kind):
        return build(kind, value, where)
    if kind is float:
        return _convert_number(value, where)
    kind = get_origin(kind) or kind  # dict[str, Any] -> dict
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _wrong_type(value, NAMES.get(kind, kind.__name__), where)
    return value


def _convert_union(value: Any, kinds: tuple, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    kinds = [kind for kind in kinds if kind is not type(None)]
    for kind in kinds[:-1]:
        try:
            return convert(value, kind, where)
        except RecipeError:
            continue
    return convert(value, kinds[-1], where)


def _convert_tuple(value: Any, kinds: tuple, where: str) -> tuple:
    if not isinstance(value, list | tuple) or len(value) != len(kinds):
        raise _wrong_type(value, f"a list of {len(kinds)}", where)
    return tuple(convert(item, kind, f"{where}[{place}]") for place, (item, kind) in enumerate(zip(value, kinds)))


def _convert_number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _wrong_type(value, NAMES[float], where)
    try:
        return float(value)
    except ValueError:
        raise _wrong_type(value, NAMES[float], where) from None


def _wrong_type(value: Any, expected: str, where: str) -> RecipeError:
    return RecipeError(f"{where}: expected {expected}, got {_shown(value)}")


def _shown(value: Any) -> str:
    return "nothing (null)" if value is None else f"{value!r} ({type(value).__name__})"


def _join(where: str, key: Any) -> str:
    return f"{where}.{key}" if where else str(key)
