"""Scores that join the parts of a suite, or several suites: those of Lupo et al. (2023), appendix F."""

import re
from collections.abc import Sequence

from hf_docmt.evaluation.suites.published import DISTANCES
from hf_docmt.reports.report import make_result

VOITA = {"deixis": 2500, "lex_cohesion": 1500, "ellipsis_infl": 500, "ellipsis_vp": 500}  # items of the test suites


def average_results(results: Sequence[dict]) -> list[dict]:
    """Report results `CP`, `CP_d>0` and `CP_avg`, `Voita` and `Voita_avg` made from contrastive results.

    The weighted scores take the published sizes of the subsets as weights whatever their sizes are here, so that on
    the whole ContraPro `CP` is the accuracy; `_avg` is the plain mean, in `CP_avg` of the four distances above 0.
    CP scores need a suite in ContraPro's format with items of all distances (0, 1, 2, 3, >3). Voita scores need all
    four suites with one signature, `deixis` and `lex_cohesion` both of `dev` or both of `test`. Without that there is
    no score.
    """
    found = []
    for result in results:
        if result["details"].get("format") == "contrapro":
            found += _contrapro(result)
    return found + _voita([result for result in results if result["details"].get("format") == "voita"])


def _contrapro(result: dict) -> list[dict]:
    parts = {distance: result["breakdown"].get(f"distance={distance}") for distance in DISTANCES}
    if not all(parts.values()):
        return []
    far = {distance: part for distance, part in parts.items() if distance != "0"}
    dataset = result["dataset"]
    return [
        _average("CP", dataset, result, parts, DISTANCES),
        _average("CP_d>0", dataset, result, far, DISTANCES),
        _average("CP_avg", dataset, result, far, dict.fromkeys(far, 1)),
    ]


def _voita(results: Sequence[dict]) -> list[dict]:
    groups: dict[tuple, dict[tuple[str, str], dict]] = {}
    for result in results:
        name, part = re.fullmatch(r"(.*?)(?:_(dev|test))?", result["details"]["suite"]).groups()
        groups.setdefault((result["split"], result["signature"]), {})[name, part or ""] = result
    found = []
    for group in groups.values():
        for part in ("dev", "test", ""):
            names = {name: (name, "" if name.startswith("ellipsis") else part) for name in VOITA}
            if not all(key in group for key in names.values()):
                continue
            parts = {name: {"value": group[key]["value"], "n": group[key]["n"]} for name, key in names.items()}
            dataset, first = f"voita_{part}".rstrip("_"), group[names["deixis"]]
            found.append(_average("Voita", dataset, first, parts, VOITA))
            found.append(_average("Voita_avg", dataset, first, parts, dict.fromkeys(VOITA, 1)))
    return found


def _average(metric: str, dataset: str, result: dict, parts: dict[str, dict], weights: dict[str, int]) -> dict:
    """A result with the settings of another one, over weighted parts."""
    total = sum(weights[name] for name in parts)
    return make_result(
        task="contrastive",
        dataset=dataset,
        split=result["split"],
        metric=metric,
        value=sum(weights[name] * part["value"] for name, part in parts.items()) / total,
        signature=result["signature"],
        n=sum(part["n"] for part in parts.values()),
        details={
            "weights": {name: weights[name] for name in parts},
            "parts": {n: p["value"] for n, p in parts.items()},
        },
    )
