"""What report.json may hold: keys, types, finite numbers."""

import math
from collections.abc import Mapping

from hf_docmt.messages import closest_hint

FORMAT = 1
TASKS = ("translation", "contrastive", "discourse", "context use")

_REPORT = {
    "format": int,
    "package": str,
    "version": str,
    "commit": str | None,
    "model": dict,
    "data": dict,
    "results": list,
}
_REPORT_OPTIONAL = {"training": dict}
_MODEL_OPTIONAL = {"architecture": str | None, "parameters": int | None, "config": dict}
_PART = {"value": int | float, "n": int}
_RESULT = {
    **dict.fromkeys(("task", "dataset", "split", "metric", "signature"), str),
    **_PART,
    "strategy": str | None,
    "beams": int | None,
    "breakdown": dict,
    "details": dict,
}


def validate_report(report: Mapping) -> None:
    """ValueError unless `report` has exactly the keys and types of the format and all numbers are finite.

    The message names the location of what is wrong, such as `results[0].value`.
    """
    check_header(report)
    for number, result in enumerate(report["results"]):
        check_result(result, f"results[{number}]")


def check_header(report: Mapping) -> None:
    """As `validate_report`, without a look into the results."""
    _check_keys(report, _REPORT, _REPORT_OPTIONAL, "report")
    if report["format"] != FORMAT:
        raise ValueError(f"report: format {report['format']}, this version reads format {FORMAT}; update hf-docmt")
    _check_keys(report["model"], {"name": str}, _MODEL_OPTIONAL, "model")
    _check_values({key: value for key, value in report.items() if key != "results"}, "report")


def check_result(result: Mapping, location: str) -> None:
    """ValueError, naming the location, unless `result` is an entry that `results` of a report may have."""
    _check_keys(result, _RESULT, {}, location)
    if result["task"] not in TASKS:
        raise ValueError(f"{location}: task {result['task']!r}, expected one of {', '.join(TASKS)}")
    for label, part in result["breakdown"].items():
        if not isinstance(part, dict) or not {"value", "n"} <= set(part):
            raise ValueError(f"{location}.breakdown[{label!r}]: expected an object with value and n, got {part!r}")
        _check_types(part, _PART, f"{location}.breakdown[{label!r}]")
    _check_values(result, location)


def _check_keys(entries: Mapping, required: dict, optional: dict, location: str) -> None:
    if not isinstance(entries, dict):
        raise ValueError(f"{location}: expected an object, got {type(entries).__name__}")
    allowed = required | optional
    for key in entries:
        if key not in allowed:
            hint = closest_hint(key, allowed) or f"; known are {', '.join(allowed)}"
            raise ValueError(f"{location}: unknown key {key!r}{hint}")
    missing = [key for key in required if key not in entries]
    if missing:
        raise ValueError(f"{location}: missing {', '.join(missing)}")
    _check_types(entries, allowed, location)


def _check_types(entries: dict, types: dict, location: str) -> None:
    for key, expected in types.items():
        if key in entries and (not isinstance(entries[key], expected) or isinstance(entries[key], bool)):
            names = getattr(expected, "__name__", str(expected)).replace(" | ", " or ").replace("None", "null")
            raise ValueError(f"{location}.{key}: expected {names}, got {entries[key]!r}")


def _check_values(value: object, location: str) -> None:
    """ValueError where something below `value` is not plain JSON or not finite."""
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{location}: key {key!r} is not text")
            _check_values(part, f"{location}.{key}")
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            if type(part) not in (int, float) or not math.isfinite(part):  # of statistics there are many
                _check_values(part, f"{location}[{number}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{location}: {value} is not a score; a report holds finite numbers only")
    elif not isinstance(value, str | int | float | type(None)):
        raise ValueError(f"{location}: {type(value).__name__} cannot be written as JSON")
