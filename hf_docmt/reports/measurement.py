"""Data, measurement and system of a score, which decide whether results of several systems may be compared.

Properties of the system never separate figures; those of the measurement always do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from hf_docmt.messages import check_known
from hf_docmt.reports.result import Result

SCORE = ("task", "dataset", "split", "metric")  # attributes of a result
SETTINGS = ("strategy", "beams")  # attributes of a result
SYSTEM_KEYS = (  # keys of signatures
    *("past", "future", "target-context"),  # the context that a system reads
    *("shortening", "categorizer", "groups"),  # what its mechanism is
)
SEARCH_KEYS = ("repairs", "alignment")  # of a model's config in a report: what was asked for when it translated
SAME_AS = {"past_context": "past", "future_context": "future"}  # of a model's config, where no signature says it
VERSION = "version"  # of the program that measured: what it changes in a measurement has a key of its own
DATA = "data"  # the digest of references and sources; reports of 0.1.0 have none
DATA_DIFFERENCES = ("documents", "references or sources (data)")  # as notes call them

Group = dict[str, Result]  # by column


def system_settings(result: Result, may_differ: Sequence[str] = ()) -> dict[str, str]:
    """Strategy and beams where they are known, then the entries of the signature that say what the system is.

    `may_differ`: further keys of the signature that are taken for the system's.
    """
    settings = {name: str(getattr(result, name)) for name in SETTINGS if getattr(result, name) is not None}
    keys = (*SYSTEM_KEYS, *may_differ)
    return settings | {key: value for key, value in result.signature.values().items() if key in keys}


def model_settings(model: Mapping[str, Any]) -> dict[str, str]:
    """Architecture and configuration in the `model` of a report."""
    config = {SAME_AS.get(key, key): str(value) for key, value in (model.get("config") or {}).items()}
    return ({"architecture": model["architecture"]} if model.get("architecture") else {}) | config


def measurement(result: Result, may_differ: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """The entries of the signature that say how the score was measured: what has to be the same in a row."""
    others = (*SYSTEM_KEYS, VERSION, DATA, *may_differ)
    return tuple((key, value or "") for key, value in result.signature.entries if key not in others)


def measures_the_same(first: Result, second: Result, may_differ: Sequence[str] = ()) -> bool:
    """Whether two results have the same score, measured in the same way on the same documents."""
    same = _score(first) == _score(second) and measurement(first, may_differ) == measurement(second, may_differ)
    return same and not other_data({"": first}, {"": second})


def group_results(columns: Mapping[str, Sequence[Result]], may_differ: Sequence[str] = ()) -> list[Group]:
    """{column: result} for each score and each way of measuring it.

    Results are in different groups if their signatures differ in a key that is not a property of the system (see
    `system_settings`) and not in `may_differ`, or where their statistics are of other documents, or the digests of
    references and sources differ: data sets of one name. Scores are in the order of the columns, groups of one score
    one after the other. ValueError: no score is in two columns, a key that no result has.
    """
    everything = [(column, result) for column, results in columns.items() for result in results]
    _check_common(columns)
    keys = dict.fromkeys([*SETTINGS, *(key for _, result in everything for key in result.signature)])
    for name in may_differ:
        check_known(name, list(keys), "key that may differ", "the reports have")
    scores: dict[tuple, dict[tuple, list[Group]]] = {}
    for column, result in everything:
        groups = scores.setdefault(_score(result), {}).setdefault(measurement(result, may_differ), [])
        group = next((group for group in groups if not other_data(group, {column: result})), None)
        if group is None:
            groups.append(group := {})
        group[column] = result
    return [group for measured in scores.values() for groups in measured.values() for group in groups]


def group_signature(group: Group, may_differ: Sequence[str] = ()) -> str:
    """The common signature of all results of a group, without differences between systems.

    Different versions are joined, in the order of the columns: `version:0.1.0/0.2.0`.
    """
    signatures = [result.signature for result in group.values()]
    parts = []
    data = next((entry for one in signatures for entry in one.entries if entry[0] == DATA), None)
    for key, value in [*(entry for entry in signatures[0].entries if entry[0] != DATA), *([data] if data else [])]:
        values = list(dict.fromkeys(signature.get(key, "-") for signature in signatures))
        if key == VERSION:
            value = "/".join(values)
        if key in (VERSION, DATA) or len(values) == 1 or key not in (*SYSTEM_KEYS, *may_differ):
            parts.append(key if value is None else f"{key}:{value}")
    return "|".join(parts)


def measurement_notes(groups: Sequence[Group], may_differ: Sequence[str] = ()) -> list[str]:
    """Notes on the differences that keep systems in separate rows, and on scores from different versions."""
    scores: dict[tuple, list[Group]] = {}
    for group in groups:
        scores.setdefault(_score(_first(group)), []).append(group)
    separated: dict[tuple, list[str]] = {}
    for parts in scores.values():
        data = dict.fromkeys(filter(None, (other_data(*pair) for pair in combinations(parts, 2))))
        if data or len({tuple(sorted(group)) for group in parts}) > 1:  # not the same systems in every row
            measured = [dict(measurement(_first(group), may_differ)) for group in parts]
            keys = dict.fromkeys(key for entries in measured for key in entries)
            differing = [key for key in keys if len({entries.get(key) for entries in measured}) > 1]
            separated.setdefault((*differing, *data), []).append(_first(parts[0]).name)
    remedy = " What may differ within a row can be named (may_differ)."
    notes = [
        f"Rows apart because of different {', '.join(keys) or 'order of the signature'}: {first_names(names)}."
        + (remedy if not {*keys} <= {*DATA_DIFFERENCES} else "")
        for keys, names in separated.items()
    ]
    versions = [group for group in groups if len({result.signature.get(VERSION) for result in group.values()}) > 1]
    names = first_names([_first(group).name for group in versions])
    return notes + ([f"Measured by different versions, see the signatures: {names}."] if versions else [])


def first_names(names: Sequence[str], most: int = 4) -> str:
    """Names joined by commas, the later ones only counted."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _first(group: Group) -> Result:
    return next(iter(group.values()))


def _score(result: Result) -> tuple:
    return tuple(getattr(result, name) for name in SCORE)


def other_data(group: Group, other: Group) -> str | None:
    """The kind of DATA_DIFFERENCES, ids or texts, if two groups were scored on different data, otherwise None."""
    (unit, ids), (other_unit, other_ids) = (_documents(group), _documents(other))
    if unit == other_unit and ids != other_ids and ids and other_ids:
        return DATA_DIFFERENCES[0]
    digests = {result.signature.get(DATA) for result in (*group.values(), *other.values())} - {None}
    return DATA_DIFFERENCES[1] if len(digests) > 1 else None


def _documents(group: Group) -> tuple[str | None, frozenset[str]]:
    """Unit and ids of the first statistics in a group; no ids where it has none."""
    held = next((result.statistics for result in group.values() if result.statistics), None)
    return (held.unit, frozenset(held.ids)) if held else (None, frozenset())


def _check_common(columns: Mapping[str, Sequence[Result]]) -> None:
    scores = [{_score(result) for result in results} for results in columns.values()]
    alone = len(scores) > 1 and len(set().union(*scores)) == sum(map(len, scores))
    if alone or not any(scores):
        names = {column: first_names([result.name for result in results]) for column, results in columns.items()}
        held = "; ".join(f"{column} has {scores or 'nothing'}" for column, scores in names.items())
        raise ValueError(
            f"nothing to compare, no task, dataset, split and metric is in two reports: {held}; evaluate the systems "
            "on the same data"
        )
