"""Which results of several systems were measured in the same way, and so may be compared."""

from collections.abc import Sequence
from itertools import combinations

from hf_docmt.messages import closest_hint

SCORE = ("task", "dataset", "split", "metric")
SETTINGS = ("strategy", "beams")
_DOCUMENTS = "documents"  # what notes call a difference that no setting tells


def group_results(systems: Sequence[str], reports: Sequence[dict], may_differ: Sequence[str]) -> list[dict[str, dict]]:
    """{system: result} for each score, apart where strategy, beams or signature differ in a key not in `may_differ`.

    Apart, too, are results whose statistics are of other documents: data sets of one name. Scores in the order of the
    reports, groups of one score one after the other. ValueError: nothing that two reports have both, a key that no
    result has, or two results of a system for one place.
    """
    _check_common(systems, reports)
    _check_keys(reports, may_differ)
    scores: dict[tuple, dict[tuple, list[dict[str, dict]]]] = {}
    for system, report in zip(systems, reports):
        for result in report["results"]:
            key = tuple((name, value) for name, value in settings(result) if name not in may_differ)
            groups = scores.setdefault(_score(result), {}).setdefault(key, [])
            group = next((found for found in groups if _same_documents(found, {system: result})), None)
            if group is None:
                groups.append(group := {})
            if system in group:
                raise ValueError(_twice(system, group[system], result))
            group[system] = result
    return [group for measured in scores.values() for groups in measured.values() for group in groups]


def settings(result: dict) -> list[tuple[str, str]]:
    """How a score was measured: strategy and beams where they are told, then the keys and values of its signature."""
    told = [(name, str(result[name])) for name in SETTINGS if result[name] is not None]
    parts = [part.partition(":") for part in result["signature"].split("|")]
    return told + [(name, value) for name, _, value in parts]


def footnote(systems: Sequence[str], group: dict[str, dict], may_differ: Sequence[str]) -> str:
    """The signature of a group, with strategy and beams before it where these may differ.

    Where systems differ, all their values in the order of the columns: `past:0/3`; `-` for a system without any.
    """
    told = {system: dict(settings(result)) for system, result in group.items()}
    keys = dict.fromkeys(key for found in told.values() for key in found)
    parts = []
    for key in (key for key in keys if key in may_differ or key not in SETTINGS):
        values = [told.get(system, {}).get(key, "-") for system in systems]
        same = {found.get(key) for found in told.values()}
        value = same.pop() if len(same) == 1 else "/".join(values)
        parts.append(f"{key}:{value}" if value else key)
    return "|".join(parts)


def score_name(result: dict) -> str:
    return f"{result['dataset']} {result['metric']}"


def notes_apart(groups: Sequence[dict[str, dict]]) -> list[str]:
    """What keeps systems out of each other's rows: one note for each set of keys that differ."""
    scores: dict[tuple, list[dict[str, dict]]] = {}
    for group in groups:
        scores.setdefault(_score(next(iter(group.values()))), []).append(group)
    apart: dict[tuple, list[str]] = {}
    for parts in scores.values():
        same = all(_same_documents(*pair) for pair in combinations(parts, 2))
        if not same or len({tuple(sorted(group)) for group in parts}) > 1:  # not the same systems in every row
            first = [next(iter(group.values())) for group in parts]
            apart.setdefault((*_differing(first), *(() if same else (_DOCUMENTS,))), []).append(score_name(first[0]))
    remedy = " What may differ within a row can be named (may_differ)."
    return [
        f"Rows apart because of different {', '.join(keys) or 'order of the signature'}: {listed(names)}."
        + (remedy if keys != (_DOCUMENTS,) else "")
        for keys, names in apart.items()
    ]


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names joined by commas, the later ones only counted."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def check_known(name: str, known: Sequence[str], what: str, where: str) -> None:
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}: {where} {', '.join(known)}{closest_hint(name, known)}")


def _score(result: dict) -> tuple:
    return tuple(result[name] for name in SCORE)


def _same_documents(group: dict[str, dict], other: dict[str, dict]) -> bool:
    """Whether nothing tells that two groups were scored on other documents, in whatever order these stand."""
    (unit, ids), (other_unit, other_ids) = (_documents(group), _documents(other))
    return unit != other_unit or ids == other_ids or not (ids and other_ids)


def _documents(group: dict[str, dict]) -> tuple[str | None, frozenset[str]]:
    """Unit and ids of the first statistics in a group; no ids where it has none."""
    held = [result["details"].get("statistics") for result in group.values()]
    return next(((found.get("unit"), frozenset(found["ids"])) for found in held if found), (None, frozenset()))


def _differing(results: Sequence[dict]) -> tuple[str, ...]:
    """Keys that do not have the same value in all results."""
    told = [dict(settings(result)) for result in results]
    keys = dict.fromkeys(key for found in told for key in found)
    return tuple(key for key in keys if len({found.get(key) for found in told}) > 1)


def _check_common(systems: Sequence[str], reports: Sequence[dict]) -> None:
    scores = [{_score(result) for result in report["results"]} for report in reports]
    alone = len(reports) > 1 and len(set().union(*scores)) == sum(map(len, scores))
    if alone or not any(scores):
        held = [listed([score_name(result) for result in report["results"]]) or "nothing" for report in reports]
        found = "; ".join(f"{system} has {names}" for system, names in zip(systems, held))
        raise ValueError(
            f"nothing to compare, no task, dataset, split and metric is in two reports: {found}; evaluate the systems "
            "on the same data"
        )


def _check_keys(reports: Sequence[dict], may_differ: Sequence[str]) -> None:
    keys = dict.fromkeys(SETTINGS)
    keys |= {name: None for report in reports for result in report["results"] for name, _ in settings(result)}
    for name in may_differ:
        check_known(name, list(keys), "key that may differ", "the reports have")


def _twice(system: str, first: dict, second: dict) -> str:
    keys = _differing([first, second])
    if not keys:
        return (
            f"{system}: two results for {score_name(first)} ({first['split']}) with the same settings; keep the one "
            "that counts"
        )
    return (
        f"{system}: two results for {score_name(first)} ({first['split']}) that differ only in {', '.join(keys)}, "
        f"which may differ within a row; do not let {keys[0]} differ, or keep one of the two in the report"
    )
