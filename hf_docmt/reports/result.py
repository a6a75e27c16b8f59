"""One score of a report, with what it takes to get it again, and the parts that it breaks down into."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hf_docmt.messages import closest_hint
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import Statistics

TASKS = ("translation", "contrastive", "discourse", "context use")

_PART = {"value": int | float, "n": int}  # in JSON
_RESULT = {
    **dict.fromkeys(("task", "dataset", "split", "metric", "signature"), str),
    **_PART,
    "strategy": str | None,
    "beams": int | None,
    "breakdown": dict,
    "details": dict,
}


@dataclass(frozen=True)
class PartScore:
    """The score of a part of the items, such as those at one distance, over `n` of them.

    `details` holds what else is known: `interval`, the 95 % interval [low, high]; precision and recall of an F1.
    """

    value: float
    n: int
    details: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, part: Mapping[str, Any]) -> PartScore:
        return cls(part["value"], part["n"], {key: part[key] for key in part if key not in ("value", "n")})

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "n": self.n, **self.details}


@dataclass(frozen=True, kw_only=True)
class Result:
    """A score, checked when it is made.

    `task`: one of TASKS. `dataset`, `split`: what was scored, `n` of its items. `value`: in percent, or in the
    unit that the signature names. `strategy`, `beams`: how it was translated, None where that is not known or does not
    apply. `breakdown`: {label: part}, such as `distance=0`. `details`: anything that JSON can hold; by convention
    `interval` (95 %, [low, high]), `statistics` (see `Statistics`), `repairs`, `counts`. ValueError names what is
    wrong: unknown task, wrong type, a number that is not finite.
    """

    task: str
    dataset: str
    split: str
    metric: str
    value: float
    signature: Signature
    n: int
    strategy: str | None = None
    beams: int | None = None
    breakdown: dict[str, PartScore] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        check_result(self.to_dict(), "result")

    @classmethod
    def from_dict(cls, result: Mapping[str, Any], location: str = "result") -> Result:
        """The result in a JSON object; ValueError names the location of what is wrong."""
        check_result(result, location)
        signature = Signature.parse(result["signature"])
        breakdown = {label: PartScore.from_dict(part) for label, part in result["breakdown"].items()}
        return cls(**{**result, "signature": signature, "breakdown": breakdown})

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the result."""
        breakdown = {label: part.to_dict() for label, part in self.breakdown.items()}
        return {**vars(self), "signature": str(self.signature), "breakdown": breakdown}

    @property
    def name(self) -> str:
        """The name of the score in messages."""
        return f"{self.dataset} {self.metric}"

    @property
    def statistics(self) -> Statistics | None:
        """The sufficient statistics in the details, None if missing."""
        statistics = self.details.get("statistics")
        return Statistics.from_dict(statistics) if statistics else None

    def with_details(self, details: Mapping[str, Any]) -> Result:
        """The result with further details, new values for known names included."""
        return replace(self, details={**self.details, **details})


def check_result(result: Mapping, location: str) -> None:
    """ValueError, naming the location, unless `result` is an entry that `results` of a report may have."""
    check_keys(result, _RESULT, {}, location)
    if result["task"] not in TASKS:
        raise ValueError(f"{location}: task {result['task']!r}, expected one of {', '.join(TASKS)}")
    for label, part in result["breakdown"].items():
        if not isinstance(part, dict) or not {"value", "n"} <= set(part):
            raise ValueError(f"{location}.breakdown[{label!r}]: expected an object with value and n, got {part!r}")
        _check_types(part, _PART, f"{location}.breakdown[{label!r}]")
    check_values(result, location)


def check_keys(entries: Mapping, required: dict, optional: dict, location: str) -> None:
    """ValueError unless a JSON object has these keys, with values of these types, and no others."""
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


def check_values(value: object, location: str) -> None:
    """ValueError where something below `value` is not plain JSON or not finite."""
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{location}: key {key!r} is not text")
            check_values(part, f"{location}.{key}")
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            if type(part) not in (int, float) or not math.isfinite(part):  # of statistics there are many
                check_values(part, f"{location}[{number}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{location}: {value} is not a score; reports contain only finite numbers")
    elif not isinstance(value, str | int | float | type(None)):
        raise ValueError(f"{location}: {type(value).__name__} cannot be written as JSON")
