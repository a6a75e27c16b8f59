"""Fields of JSON items, checked: messages name file, item and key."""

from pathlib import Path

from hf_docmt.files import DataError


def entries_of(content: object, path: str | Path) -> list[dict]:
    """A JSON value as a list of items, at least one, each an object."""
    _check_kind(content, path, list, "list of items")
    for number, entry in enumerate(content, 1):
        _check_object(entry, f"{path}, item {number}")
    return content


def blocks_of(content: object, path: str | Path) -> dict[str, dict]:
    """A JSON value as an object of blocks, at least one, each an object; where all keys are numbers, in their order."""
    _check_kind(content, path, dict, "object of blocks")
    for key, block in content.items():
        _check_object(block, f"{path}, block {key}")
    numbered = all(key.isdecimal() for key in content)
    return {key: content[key] for key in sorted(content, key=int)} if numbered else content


def field_of(entry: object, key: str, kind: type, where: str, optional: bool = False):
    """The value of a key, of the right type; None where it is absent or null and may be."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if value is None and optional:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        got = "it is missing" if value is None else f"got {value!r}"
        raise DataError(f"{where}: {key!r} must be of type {kind.__name__}, {got}")
    return value


def own_group(entry: dict, where: str, other: str) -> dict[str, str]:
    """The fields of the group of an item: the one that it names, as those of the built-in suites do, else the other."""
    group = field_of(entry, "group", str, where, optional=True)
    return {"group": other} if group is None else {"group": group, "group_unit": "group"}


def _check_kind(content: object, path: str | Path, kind: type, what: str) -> None:
    if not isinstance(content, kind) or not content:
        raise DataError(f"{path}: a suite is a JSON {what}, at least one, got {type(content).__name__}")


def _check_object(entry: object, where: str) -> None:
    if not isinstance(entry, dict):
        raise DataError(f"{where}: expected an object, got {type(entry).__name__}")
