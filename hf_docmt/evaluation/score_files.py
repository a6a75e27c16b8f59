"""Files of contrastive scores, one a line, in the order in which the published evaluations of the suites read them.

That is the order of the items, and of the candidates within an item: ContraPro's reference and then its errors, every
candidate of Voita's, Lopes' and Bawden's lines as they stand. The evaluations of ContraPro, Lopes and Voita take costs,
such as negative log-probabilities, of which the lowest wins; `better="higher"` is for files of log-probabilities.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.files import DataError, display_path, location_of, read_lines

BETTER = ("lower", "higher")


def write_scores(
    path: str | Path, items: Sequence[SuiteItem], scores: Sequence[Sequence[float]], better: str = "lower"
) -> None:
    """Scores, of which higher ones are better, as a file in which `better` ones are lower or higher.

    Numbers are written in full, so that what ties is the same when they are read. ValueError: scores that do not fit
    the items, NaN.
    """
    sign = _sign(better)
    if len(scores) != len(items):
        raise ValueError(f"{len(scores)} rows of scores for {len(items)} items; one row for each item is needed")
    for item, row in zip(items, scores):
        if len(row) != len(item.candidates):
            raise ValueError(f"{item.where}: {len(row)} scores for {len(item.candidates)} candidates; one for each")
        if any(math.isnan(score) for score in row):
            raise ValueError(f"{item.where}: NaN in its scores {list(row)}; check the model's weights")
    lines = (f"{sign * float(score)!r}\n" for row in scores for score in row)
    Path(path).write_text("".join(lines), encoding="utf-8", newline="\n")


def read_scores(path: str | Path, items: Sequence[SuiteItem], better: str = "lower") -> list[list[float]]:
    """Scores of every candidate of every item, turned so that higher ones are better.

    DataError names file and line: what is no number, NaN, too few or too many lines for the suite.
    """
    sign = _sign(better)
    found = [_number(line, location_of(path, number)) for number, line in read_lines(path)]
    needed = sum(len(item.candidates) for item in items)
    if len(found) > needed:
        raise DataError(
            f"{location_of(path, needed + 1)}: one score more than the {needed} candidates of the {len(items)} items; "
            "the file is of another suite"
        )
    scores, line = [], 0
    for item in items:
        row = found[line : line + len(item.candidates)]
        if len(row) < len(item.candidates):
            raise DataError(
                f"{display_path(path)}: ends after line {len(found)}, expected {needed} lines, one for each candidate; "
                f"scores are missing from {item.where} on, so the file is cut or of another suite"
            )
        scores.append([sign * score for score in row])
        line += len(row)
    return scores


def _number(line: str, where: str) -> float:
    try:
        number = float(line) if "_" not in line else math.nan
    except ValueError:
        raise DataError(f"{where}: {line!r} is not a number; expected one score a line and nothing else") from None
    if math.isnan(number):
        raise DataError(f"{where}: {line.strip()!r} is not a score; check what the other system wrote for it")
    return number


def _sign(better: str) -> int:
    if better not in BETTER:
        raise ValueError(f"better is {better!r}, expected lower or higher, whichever scores are the better ones")
    return 1 if better == "higher" else -1
