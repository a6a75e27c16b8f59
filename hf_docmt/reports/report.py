"""report.json: the one format in which every number is kept, with what it takes to get it again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from hf_docmt.files import DataError, read_json, write_lines
from hf_docmt.messages import __version__
from hf_docmt.reports.result import PartScore, Result, check_keys, check_values
from hf_docmt.reports.signature import extra_digits
from hf_docmt.reports.tables import letter_of, write_table

FORMAT = 1
REMEDY = "give a report, which docmt evaluate, contrast and others write with -o"
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
_SAME = ("task", "dataset", "split", "metric", "signature", "strategy", "beams")  # what measures the same


@cache
def package_commit() -> str | None:
    """Commit of the git checkout that contains this package, `-dirty` when files differ from it; null without one."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    describe = ["git", "--no-optional-locks", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        described = subprocess.run(describe, cwd=root, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip() or None if described.returncode == 0 else None


@dataclass(frozen=True, kw_only=True)
class Report:
    """The results of one model, what it is, the data, the facts of its training, and the package that made them.

    `model` has a `name` and may have `architecture`, `parameters` (their number) and `config` (a summary of it).
    `data` and `training` are anything that JSON can hold. ValueError: not of the format, see `check_header`.

        >>> report = Report(model={"name": "concat"}, data={}, results=[])
        >>> report.write("report.json")
        >>> Report.read("report.json") == report
        True
    """

    model: dict[str, Any]
    data: dict[str, Any]
    results: Sequence[Result]
    training: dict[str, Any] | None = None
    package: str = "hf-docmt"
    version: str = __version__
    commit: str | None = field(default_factory=lambda: package_commit())

    def __post_init__(self):
        object.__setattr__(self, "results", tuple(self.results))
        check_header(self.to_dict())  # a result is checked when it is made

    @classmethod
    def from_dict(cls, report: Mapping[str, Any]) -> Report:
        """The report in a JSON object; ValueError names the location of what is wrong."""
        check_header(report)
        results = [Result.from_dict(result, f"results[{number}]") for number, result in enumerate(report["results"])]
        return cls(**{key: value for key, value in report.items() if key != "format"} | {"results": results})

    @classmethod
    def read(cls, path: str | Path) -> Report:
        """The report in a file, `.gz` is unpacked.

        ValueError names the file and the location of what is wrong, OSError a missing file.
        """
        if not Path(path).exists():
            raise FileNotFoundError(f"{path}: the report does not exist; check the path")
        try:
            return cls.from_dict(read_json(path))
        except ValueError as error:
            where = "" if isinstance(error, DataError) else f"{path}: "
            raise ValueError(f"{where}{error}; {REMEDY}") from error

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the report."""
        names = ["package", "version", "commit", "model", "data", *(["training"] if self.training is not None else [])]
        results = [result.to_dict() for result in self.results]
        return {"format": FORMAT, **{name: getattr(self, name) for name in names}, "results": results}

    def write(self, path: str | Path) -> None:
        """Write the report; an existing file stays whole until the new one is complete. ValueError, OSError."""
        report = self.to_dict()
        Report.from_dict(report)  # later changes are checked, too
        write_lines([json.dumps(report, ensure_ascii=False, allow_nan=False, indent=2)], path)

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.model["name"]

    def __str__(self) -> str:
        """The report as plain text for a terminal: the model, the package, and the table of results."""
        parameters = self.model.get("parameters")
        facts = [self.model.get("architecture"), f"{parameters:,} parameters" if parameters else None]
        title = self.name + "".join(f", {fact}" for fact in facts if fact)
        commit = f" ({self.commit[:12]}{self.commit[40:]})" if self.commit else ""
        return "\n".join([title, f"{self.package} {self.version}{commit}", "", _result_table(self.results)])


def check_header(report: Mapping) -> None:
    """ValueError, naming the location, unless `report` has the keys and types of the format; not of its results."""
    check_keys(report, _REPORT, _REPORT_OPTIONAL, "report")
    if report["format"] != FORMAT:
        raise ValueError(f"report: format {report['format']}, this version reads format {FORMAT}; update hf-docmt")
    check_keys(report["model"], {"name": str}, _MODEL_OPTIONAL, "model")
    check_values({key: value for key, value in report.items() if key != "results"}, "report")


def _result_table(results: Sequence[Result]) -> str:
    """Results as text: one line for each and each part of it, signatures, other counts than published."""
    different = dict.fromkeys(result.signature for result in results)
    letters = {signature: letter_of(number) for number, signature in enumerate(different)}
    names = ["dataset", "split", "strategy", "beams", "metric"]
    cells = [[*names, "value", "n"]]
    for result in results:
        *facts, metric = (getattr(result, name) for name in names)
        digits = 2 + extra_digits(str(result.signature))
        parts: dict[str, Result | PartScore] = {f"{metric} ({letters[result.signature]})": result}
        parts |= {f"  {label}": part for label, part in result.breakdown.items()}
        for label, part in parts.items():
            cells.append([*(facts if part is result else [""] * 4), label, f"{part.value:.{digits}f}", str(part.n)])
    notes = dict.fromkeys(result.details["counts"] for result in results if "counts" in result.details)
    signatures = {letter: str(signature) for signature, letter in letters.items()}
    return write_table(cells, notes=list(notes), signatures=signatures)


def merge_reports(*reports: Report) -> Report:
    """Reports of one model as one; of two results that measure the same, the later one stays.

    Version and commit are those of the last report; a result that others made keeps its own in `details`. ValueError:
    no report, or different models.
    """
    if not reports:
        raise ValueError("no reports to merge")
    last, merged = reports[-1], {}
    for report in reports:
        if report.name != last.name:
            raise ValueError(f"reports of different models, {report.name!r} and {last.name!r}; merge those of one")
        for result in report.results:
            if (report.version, report.commit) != (last.version, last.commit):
                origin = {"version": report.version, "commit": report.commit}
                result = replace(result, details={**origin, **result.details})
            key = tuple(getattr(result, name) for name in _SAME)
            merged.pop(key, None)
            merged[key] = result
    trainings = [report.training for report in reports if report.training is not None]
    return replace(
        last,
        model=_joined([report.model for report in reports]),
        data=_joined([report.data for report in reports]),
        training=_joined(trainings) if trainings else None,
        results=tuple(merged.values()),
    )


def _joined(sections: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {key: value for section in sections for key, value in section.items()}
