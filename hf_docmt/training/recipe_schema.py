"""From plain mappings to dataclasses, strictly: every key is known, every value has the declared type."""

import dataclasses
import math
import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from huggingface_hub.dataclasses import type_validator

from hf_docmt.messages import closest_hint

TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
TYPE_NAMES |= {dict: "a mapping", list: "a list"}


class RecipeError(ValueError):
    """A recipe that cannot be used.

    `key` is the dotted key that is wrong (`training.clip`), or the file or override; `problem` says what was found,
    what is allowed and the remedy. The message is both, joined by a colon.
    """

    def __init__(self, key: str, problem: str):
        super().__init__(key, problem)
        self.key, self.problem = key, problem

    def __str__(self) -> str:
        return f"{self.key}: {self.problem}"


def build(kind: type, mapping: Any, key: str = "") -> Any:
    """Make the dataclass `kind` from the mapping at this dotted key ("" = the whole recipe)."""
    check_mapping(mapping, key)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    check_keys(mapping, fields, key)
    types_of_fields = get_type_hints(kind)
    values = {name: convert(value, types_of_fields[name], join(key, name)) for name, value in mapping.items()}
    for name, field in fields.items():
        if name not in values and field.default is field.default_factory is dataclasses.MISSING:
            raise RecipeError(join(key, name), "missing, and there is no default; add it")
    return kind(**values)


def check_mapping(mapping: Any, key: str = "") -> None:
    """Raise `RecipeError` for a value that is not a mapping."""
    if not isinstance(mapping, Mapping):
        raise RecipeError(key or "recipe", f"expected a mapping of keys to values, got {_described(mapping)}")


def check_keys(mapping: Mapping, allowed: Iterable[str], key: str) -> None:
    """Raise `RecipeError` with the closest allowed name for a key of the mapping that is not allowed."""
    allowed = list(allowed)
    for name in mapping:
        if name not in allowed:
            raise RecipeError(join(key, name), f"unknown key{hint(name, allowed)}")


def hint(name: Any, allowed: Iterable[str]) -> str:
    """The end of a message: the closest allowed name, or all of them without a close one."""
    allowed = [str(option) for option in allowed]
    return closest_hint(name, allowed) or f"; allowed: {', '.join(allowed)}"


def convert(value: Any, kind: Any, key: str) -> Any:
    """The value as `kind`: a dataclass, or a type of huggingface_hub's strict dataclasses.

    Only two conversions are made: a whole number becomes a float if that is the type, and so does text like `1e-4`,
    which YAML does not take for a number. Numbers are finite.
    """
    is_union = get_origin(kind) in (Union, types.UnionType)
    kinds = [one for one in (get_args(kind) if is_union else (kind,)) if one is not type(None)]
    if value is None and len(kinds) < len(get_args(kind)):
        return None
    first, inner = kinds[0], get_args(kinds[0])
    if dataclasses.is_dataclass(first):
        return build(first, value, key)
    if get_origin(first) is tuple:
        if not isinstance(value, list | tuple) or len(value) != len(inner):
            raise _wrong_type(value, f"a list of {len(inner)}", key)
        return tuple(convert(item, one, f"{key}[{index}]") for index, (item, one) in enumerate(zip(value, inner)))
    if float in kinds and isinstance(value, int | float | str) and not isinstance(value, bool):
        return _finite(value, key)
    if kinds == [first] and get_origin(first) is Literal and value not in inner:
        raise RecipeError(key, f"got {_described(value)}{hint(value, inner)}")
    plain = [get_origin(one) if get_origin(one) in TYPE_NAMES else one for one in kinds]  # list[str] -> list
    try:
        type_validator(key, value, Union[*plain])
    except TypeError:
        raise _wrong_type(value, " or ".join(map(_expected, plain)), key) from None
    return value


def _finite(value: float | str, key: str) -> float:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise _wrong_type(value, TYPE_NAMES[float], key) from None
    if not math.isfinite(number):
        raise _wrong_type(value, "a finite number", key)
    return number


def join(key: str, name: Any) -> str:
    """The dotted key of `name` inside the mapping at `key`."""
    return f"{key}.{name}" if key else str(name)


def _expected(kind: Any) -> str:
    return " or ".join(map(str, get_args(kind))) or TYPE_NAMES.get(kind, getattr(kind, "__name__", str(kind)))


def _wrong_type(value: Any, expected: str, key: str) -> RecipeError:
    return RecipeError(key, f"expected {expected}, got {_described(value)}")


def _described(value: Any) -> str:
    return "nothing (null)" if value is None else f"{value!r} ({type(value).__name__})"
