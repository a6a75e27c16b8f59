"""Which results of several systems were measured in the same way, and so may be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from hf_docmt.messages import closest_hint
from hf_docmt.reports.result import Result
from hf_docmt.reports.system_settings import SETTINGS, SYSTEM_KEYS, VERSION, measurement

SCORE = ("task", "dataset", "split", "metric")
_DOCUMENTS = "documents"  # what notes call a difference that no key shows

Group = dict[str, Result]  # by column


def group_results(columns: Mapping[str, Sequence[Result]], may_differ: Sequence[str] = ()) -> list[Group]:
    """{column: result} for each score and each way of measuring it.

    Results are in different groups where their signatures differ in a key that is no property of the system (see
    `system_settings`) and not in `may_differ`, or where their statistics are of other documents: data sets of one name.
    Scores stand in the order of the columns, groups of one score one after the other. ValueError: no score is in two
    columns, a key that no result has.
    """
    _check_common(columns)
    _check_keys(columns, may_differ)
    scores: dict[tuple, dict[tuple, list[Group]]] = {}
    for column, results in columns.items():
        for result in results:
            groups = scores.setdefault(_score(result), {}).setdefault(measurement(result, may_differ), [])
            group = next((found for found in groups if _same_documents(found, {column: result})), None)
            if group is None:
                groups.append(group := {})
            group[column] = result
    return [group for measured in scores.values() for groups in measured.values() for group in groups]


def measures_the_same(first: Result, second: Result, may_differ: Sequence[str] = ()) -> bool:
    """Whether two results have the same score, measured in the same way on the same documents."""
    same = _score(first) == _score(second) and measurement(first, may_differ) == measurement(second, may_differ)
    return same and _same_documents({"": first}, {"": second})


def group_signature(group: Group, may_differ: Sequence[str] = ()) -> str:
    """The signature that all results of a group have, but for what differs between systems.

    Different versions are joined, in the order of the columns: `version:0.1.0/0.2.0`.
    """
    signatures = [result.signature for result in group.values()]
    parts = []
    for key, value in signatures[0].entries:
        found = list(dict.fromkeys(signature.get(key, "-") for signature in signatures))
        if key == VERSION:
            value = "/".join(found)
        if key == VERSION or len(found) == 1 or key not in (*SYSTEM_KEYS, *may_differ):
            parts.append(key if value is None else f"{key}:{value}")
    return "|".join(parts)


def separation_notes(groups: Sequence[Group], may_differ: Sequence[str] = ()) -> list[str]:
    """What keeps systems out of each other's rows: one note for each set of keys that differ."""
    scores: dict[tuple, list[Group]] = {}
    for group in groups:
        scores.setdefault(_score(next(iter(group.values()))), []).append(group)
    separated: dict[tuple, list[str]] = {}
    for parts in scores.values():
        same = all(_same_documents(*pair) for pair in combinations(parts, 2))
        if not same or len({tuple(sorted(group)) for group in parts}) > 1:  # not the same systems in every row
            first = [next(iter(group.values())) for group in parts]
            keys = (*_differing_keys(first, may_differ), *(() if same else (_DOCUMENTS,)))
            separated.setdefault(keys, []).append(first[0].name)
    remedy = " What may differ within a row can be named (may_differ)."
    return [
        f"Rows apart because of different {', '.join(keys) or 'order of the signature'}: {first_names(names)}."
        + (remedy if keys != (_DOCUMENTS,) else "")
        for keys, names in separated.items()
    ]


def version_notes(groups: Sequence[Group]) -> list[str]:
    """Which scores were measured by different versions."""
    names = [
        next(iter(group.values())).name
        for group in groups
        if len({result.signature.get(VERSION) for result in group.values()}) > 1
    ]
    return [f"Measured by different versions, see the signatures: {first_names(names)}."] if names else []


def first_names(names: Sequence[str], most: int = 4) -> str:
    """Names joined by commas, the later ones only counted."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def check_known(name: str, known: Sequence[str], what: str, where: str) -> None:
    """ValueError with the known names, and the closest of them, where `name` is none of them."""
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}: {where} {', '.join(known)}{closest_hint(name, known)}")


def _score(result: Result) -> tuple:
    return tuple(getattr(result, name) for name in SCORE)


def _same_documents(group: Group, other: Group) -> bool:
    """False where the statistics show that two groups were scored on other documents, whatever their order."""
    (unit, ids), (other_unit, other_ids) = (_documents(group), _documents(other))
    return unit != other_unit or ids == other_ids or not (ids and other_ids)


def _documents(group: Group) -> tuple[str | None, frozenset[str]]:
    """Unit and ids of the first statistics in a group; no ids where it has none."""
    held = (result.statistics for result in group.values())
    return next(((found.unit, frozenset(found.ids)) for found in held if found), (None, frozenset()))


def _differing_keys(results: Sequence[Result], may_differ: Sequence[str]) -> tuple[str, ...]:
    """Keys of the measurement that do not have the same value in all results."""
    values = [dict(measurement(result, may_differ)) for result in results]
    keys = dict.fromkeys(key for found in values for key in found)
    return tuple(key for key in keys if len({found.get(key) for found in values}) > 1)


def _check_common(columns: Mapping[str, Sequence[Result]]) -> None:
    scores = [{_score(result) for result in results} for results in columns.values()]
    alone = len(scores) > 1 and len(set().union(*scores)) == sum(map(len, scores))
    if alone or not any(scores):
        held = {name: first_names([one.name for one in results]) or "nothing" for name, results in columns.items()}
        found = "; ".join(f"{name} has {names}" for name, names in held.items())
        raise ValueError(
            f"nothing to compare, no task, dataset, split and metric is in two reports: {found}; evaluate the systems "
            "on the same data"
        )


def _check_keys(columns: Mapping[str, Sequence[Result]], may_differ: Sequence[str]) -> None:
    keys = dict.fromkeys(SETTINGS)
    keys |= {key: None for results in columns.values() for result in results for key in result.signature}
    for name in may_differ:
        check_known(name, list(keys), "key that may differ", "the reports have")
