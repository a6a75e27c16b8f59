"""What is a property of the system that was scored, and what of the measurement: the first never separates figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from hf_docmt.reports.result import Result

SETTINGS = ("strategy", "beams")  # attributes of a result
SYSTEM_KEYS = (  # keys of signatures
    *("past", "future", "target-context"),  # the context that a system reads
    *("shortening", "categorizer", "groups"),  # what its mechanism is
)
SEARCH_KEYS = ("repairs", "alignment")  # of a model's config in a report: what was asked for when it translated
SAME_AS = {"past_context": "past", "future_context": "future"}  # of a model's config, where no signature says it
VERSION = "version"  # of the program that measured: what it changes in a measurement has a key of its own


def system_settings(result: Result, may_differ: Sequence[str] = ()) -> dict[str, str]:
    """Strategy and beams where they are known, then the entries of the signature that say what the system is.

    `may_differ`: further keys of the signature that are taken for the system's.
    """
    known = {name: str(getattr(result, name)) for name in SETTINGS if getattr(result, name) is not None}
    keys = (*SYSTEM_KEYS, *may_differ)
    return known | {key: value for key, value in result.signature.values().items() if key in keys}


def measurement(result: Result, may_differ: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """The entries of the signature that say how the score was measured: what has to be the same in a row."""
    others = (*SYSTEM_KEYS, VERSION, *may_differ)
    return tuple((key, value or "") for key, value in result.signature.entries if key not in others)


def model_settings(model: Mapping[str, Any]) -> dict[str, str]:
    """Architecture and configuration in the `model` of a report."""
    config = {SAME_AS.get(key, key): str(value) for key, value in (model.get("config") or {}).items()}
    return ({"architecture": model["architecture"]} if model.get("architecture") else {}) | config
