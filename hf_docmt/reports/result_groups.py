"""Which results of several systems were measured in the same way, and so may be compared."""

from collections.abc import Sequence
from itertools import combinations

from hf_docmt.messages import closest_hint
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result

SCORE = ("task", "dataset", "split", "metric")
SETTINGS = ("strategy", "beams")
_DOCUMENTS = "documents"  # what notes call a difference that no setting shows

Group = dict[str, Result]  # by system


def group_results(systems: Sequence[str], reports: Sequence[Report], may_differ: Sequence[str]) -> list[Group]:
    """{system: result} for each score and each way of measuring it.

    Results are in different groups where strategy, beams or signature differ in a key not in `may_differ`, or where
    their statistics are of other documents: data sets of one name. Scores stand in the order of the reports, groups of
    one score one after the other. ValueError: no score is in two reports, a key that no result has, or two results of
    a system for one group.
    """
    _check_common(systems, reports)
    _check_keys(reports, may_differ)
    scores: dict[tuple, dict[tuple, list[Group]]] = {}
    for system, report in zip(systems, reports):
        for result in report.results:
            key = tuple((name, value) for name, value in settings(result) if name not in may_differ)
            groups = scores.setdefault(_score(result), {}).setdefault(key, [])
            group = next((found for found in groups if _same_documents(found, {system: result})), None)
            if group is None:
                groups.append(group := {})
            if system in group:
                raise ValueError(_two_results(system, group[system], result))
            group[system] = result
    return [group for measured in scores.values() for groups in measured.values() for group in groups]


def settings(result: Result) -> list[tuple[str, str]]:
    """How a score was measured: strategy and beams where they are known, then the entries of its signature."""
    known = [(name, str(getattr(result, name))) for name in SETTINGS if getattr(result, name) is not None]
    return known + [(key, value or "") for key, value in result.signature.entries]


def group_signature(systems: Sequence[str], group: Group, may_differ: Sequence[str]) -> str:
    """The signature of a group, with strategy and beams before it where these may differ.

    Where systems differ, all their values in the order of the columns: `past:0/3`; `-` for a system without any.
    """
    by_system = {system: dict(settings(result)) for system, result in group.items()}
    keys = dict.fromkeys(key for values in by_system.values() for key in values)
    parts = []
    for key in (key for key in keys if key in may_differ or key not in SETTINGS):
        values = [by_system.get(system, {}).get(key, "-") for system in systems]
        different = {found.get(key) for found in by_system.values()}
        value = different.pop() if len(different) == 1 else "/".join(values)
        parts.append(f"{key}:{value}" if value else key)
    return "|".join(parts)


def separation_notes(groups: Sequence[Group]) -> list[str]:
    """What keeps systems out of each other's rows: one note for each set of keys that differ."""
    scores: dict[tuple, list[Group]] = {}
    for group in groups:
        scores.setdefault(_score(next(iter(group.values()))), []).append(group)
    separated: dict[tuple, list[str]] = {}
    for parts in scores.values():
        same = all(_same_documents(*pair) for pair in combinations(parts, 2))
        if not same or len({tuple(sorted(group)) for group in parts}) > 1:  # not the same systems in every row
            first = [next(iter(group.values())) for group in parts]
            keys = (*_differing_keys(first), *(() if same else (_DOCUMENTS,)))
            separated.setdefault(keys, []).append(first[0].name)
    remedy = " What may differ within a row can be named (may_differ)."
    return [
        f"Rows apart because of different {', '.join(keys) or 'order of the signature'}: {first_names(names)}."
        + (remedy if keys != (_DOCUMENTS,) else "")
        for keys, names in separated.items()
    ]


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


def _differing_keys(results: Sequence[Result]) -> tuple[str, ...]:
    """Keys that do not have the same value in all results."""
    values = [dict(settings(result)) for result in results]
    keys = dict.fromkeys(key for found in values for key in found)
    return tuple(key for key in keys if len({found.get(key) for found in values}) > 1)


def _check_common(systems: Sequence[str], reports: Sequence[Report]) -> None:
    scores = [{_score(result) for result in report.results} for report in reports]
    alone = len(reports) > 1 and len(set().union(*scores)) == sum(map(len, scores))
    if alone or not any(scores):
        held = [first_names([result.name for result in report.results]) or "nothing" for report in reports]
        found = "; ".join(f"{system} has {names}" for system, names in zip(systems, held))
        raise ValueError(
            f"nothing to compare, no task, dataset, split and metric is in two reports: {found}; evaluate the systems "
            "on the same data"
        )


def _check_keys(reports: Sequence[Report], may_differ: Sequence[str]) -> None:
    keys = dict.fromkeys(SETTINGS)
    keys |= {name: None for report in reports for result in report.results for name, _ in settings(result)}
    for name in may_differ:
        check_known(name, list(keys), "key that may differ", "the reports have")


def _two_results(system: str, first: Result, second: Result) -> str:
    keys = _differing_keys([first, second])
    if not keys:
        return (
            f"{system}: two results for {first.name} ({first.split}) with the same settings; keep the one that counts"
        )
    return (
        f"{system}: two results for {first.name} ({first.split}) that differ only in {', '.join(keys)}, which may "
        f"differ within a row; do not let {keys[0]} differ, or keep one of the two in the report"
    )
