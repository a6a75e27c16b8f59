"""Tables and figures of a study, from the reports of its runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hf_docmt.analysis.pictures import draw_breakdown
from hf_docmt.reports.comparison import compare_reports
from hf_docmt.reports.measurement import SYSTEM_KEYS
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.significance import (
    Outcome,
    PairedTest,
    compare_runs,
    mean_and_deviation,
    significance_notes,
)
from hf_docmt.reports.tables import write_table
from hf_docmt.studies.study import ColumnSection, FigureSection, TableSection

TEST = PairedTest("randomisation")
SEED = r"-seed\d+$"  # what differs in the names of runs of one system
Reports = Mapping[str, Mapping[str, Sequence[Report]]]  # {evaluation: {system: reports of its runs}}


@dataclass(frozen=True)
class Cell:
    """A figure of one system: the mean over its runs, their deviation, whether it differs from the baseline's."""

    value: float | str | None = None
    deviation: float | None = None
    runs: int = 0
    significant: bool = False

    def text(self, digits: int, runs: int) -> str:
        if not isinstance(self.value, float | int):
            return self.value or "-"
        marker = "*" if self.significant else ""
        deviation = f" ±{self.deviation:.{digits}f}" if self.deviation is not None else ""
        fewer = f" ({self.runs} of {runs} runs)" if 0 < self.runs < runs else ""
        return f"{self.value:,.{digits}f}{marker}{deviation}{fewer}"


class RunTable:
    """A table of a study: a row for each system, a column for each score, over its runs.

    It has the systems with a report of one of the evaluations that its columns name, of any where they are all facts,
    and the number of their runs where that is not the same for all. A run is known by its seed. A single run is tested
    against that of the same seed. ValueError: several results of a report fit a column.
    """

    def __init__(self, section: TableSection, reports: Reports, systems: Sequence[str]):
        self.section, self.reports = section, reports
        named = {column.evaluation for column in section.columns.values()} & reports.keys() or reports.keys()
        self.systems = [system for system in systems if any(reports[name].get(system) for name in named)]
        self.signatures: dict[str, list[str]] = {}  # signature -> the columns measured so
        self.tests: list[Outcome] = []  # of each column with a score, against the baseline
        self.untested: list[tuple[str, str]] = []  # figures, and why they have no test
        self.notes: list[str] = []
        self.columns = {
            name: self._facts(column.fact) if column.fact else self._scores(name, column)
            for name, column in section.columns.items()
        }

    def to_text(self, style: str) -> str:
        """The table in text, markdown or latex."""
        runs = {system: max(column[system].runs for column in self.columns.values()) for system in self.systems}
        counts = sorted(set(runs.values()))
        shown = {"runs": [str(runs[system]) for system in self.systems]} if len(counts) > 1 else {}
        for name, column in self.columns.items():
            digits = self.section.columns[name].digits
            shown[name] = [column[system].text(digits, runs[system]) for system in self.systems]
        notes = [self.section.title] if self.section.title else []
        if counts and counts[-1] > 1:
            means = f"Means of {counts[-1]} runs" if len(counts) == 1 else "Means over the runs of a system"
            notes.append(f"{means}; ±: standard deviation over runs, with runs - 1.")
        if self.tests or self.untested:
            notes += significance_notes(self.section.baseline, self.tests, self.untested, TEST)
        notes += [*self.notes, *(f"{', '.join(names)}: {signature}" for signature, names in self.signatures.items())]
        return write_table([["system", *shown], *zip(self.systems, *shown.values())], style, notes)

    def _scores(self, name: str, column: ColumnSection) -> dict[str, Cell]:
        """The cells of a column, by system."""
        baseline, runs = self.section.baseline, self.reports[column.evaluation]
        scores: dict[str, dict[int, Result]] = {}  # of each system, by seed
        for system in dict.fromkeys([*self.systems, *filter(None, [baseline])]):
            try:
                results = {seed_of(report): score(column, report) for report in runs.get(system, ())}
            except ValueError as error:
                raise ValueError(f"column {name!r}: {error}") from error
            scores[system] = {seed: result for seed, result in results.items() if result is not None}
        if self.systems and not any(scores[system] for system in self.systems):
            self.notes.append(f"{name}: no report has it; check metric, dataset, part, context and strategy.")
        results = [result for system in scores.values() for result in system.values()]
        for signature in dict.fromkeys(str(result.signature.without(*SYSTEM_KEYS)) for result in results):
            self.signatures.setdefault(signature, []).append(name)
        significant: list[str] = []
        if baseline is not None and scores[baseline]:
            tests, untested = tests_of(scores, baseline)
            self.tests += tests.values()
            self.untested += [(f"{name} of {system}", reason) for system, reason in untested.items()]
            significant = [system for system, test in tests.items() if test.significant]
        cells = {}
        for system in self.systems:
            values = [result.value for result in scores[system].values()]
            cells[system] = Cell(*mean_and_deviation(values), len(values), system in significant) if values else Cell()
        return cells

    def _facts(self, fact: str) -> dict[str, Cell]:
        cells = {}
        for system in self.systems:
            runs = {seed_of(report): report for systems in self.reports.values() for report in systems.get(system, ())}
            values = [value for value in (fact_of(report, fact) for report in runs.values()) if value is not None]
            if not values or isinstance(values[0], str):
                cells[system] = Cell(values[0] if values else None, runs=len(runs))
            else:
                cells[system] = Cell(sum(values) / len(values), runs=len(values))
        return cells


def draw_figure(
    section: FigureSection, runs: Mapping[str, Sequence[Report]], path: Path, order: Sequence[str] = ()
) -> Path:
    """Draw scores along a breakdown, a line for each system over its runs. ValueError: nothing is broken down so.

    `order`: the systems of all figures, which keep colour, marker and place in all of its figures.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    reports = [
        replace(report, results=[result for result in report.results if condition_of(result) == section.context])
        for system in runs.values()
        for report in system
    ]
    several = max(map(len, runs.values())) > 1
    names = [report.name if several else system for system in runs for report in runs[system]]
    comparison = compare_reports(reports, names=names, breakdown="all", runs=SEED if several else None)
    scores = {"axis": section.axis, "datasets": section.datasets, "metric": section.metric}
    return draw_breakdown(comparison, path, order=order, **scores)


def tests_of(scores: Mapping[str, Mapping[int, Result]], baseline: str) -> tuple[dict[str, Outcome], dict[str, str]]:
    """Tests of each system with scores, by seed, against the baseline, and why others have none."""
    tests, untested = {}, {}
    for system in (system for system, results in scores.items() if results and system != baseline):
        base, results = scores[baseline], scores[system]
        if len(results) == 1:
            base = {seed: result for seed, result in base.items() if seed in results}
        pair = {baseline: [*base.values()], system: [*results.values()]}
        try:
            tests[system] = compare_runs({name: some for name, some in pair.items() if some}, baseline, system, TEST)
        except ValueError as error:
            untested[system] = str(error)
    return tests, untested


def score(column: ColumnSection, report: Report) -> Result | None:
    """The result that a column shows of a report, with statistics only where they are those of the value shown."""
    result = result_of(column, report, column.context)
    part = part_of(result, column.part)
    if result is None or part is None:
        return None
    if column.minus_context is None:
        return replace(result, value=part.value, breakdown={}, details={} if column.part else result.details)
    other = part_of(result_of(column, report, column.minus_context), column.part)
    return other and replace(result, value=part.value - other.value, breakdown={}, details={})


def result_of(column: ColumnSection, report: Report, context: str) -> Result | None:
    """ValueError where several results fit."""
    names, results = ("metric", "dataset", "strategy"), [one for one in report.results if condition_of(one) == context]
    results = [one for one in results if all(getattr(column, name) in (None, getattr(one, name)) for name in names)]
    if len(results) > 1:
        names = ", ".join(f"{fit.dataset} {fit.metric} ({condition_of(fit)}, {fit.strategy})" for fit in results)
        raise ValueError(
            f"{report.name}, {column.evaluation}: {len(results)} results fit the column: {names}; say which by metric, "
            "dataset, context or strategy"
        )
    return results[0] if results else None


def part_of(result: Result | None, label: str) -> PartScore | None:
    """A part of a result, the whole for an empty label."""
    if result is None or label:
        return result and result.breakdown.get(label)
    return PartScore(result.value, result.n)


def condition_of(result: Result) -> str:
    """The condition of context that a result was measured under, `true` where its signature has none."""
    return (result.signature.values().get("context") or "true").partition(",")[0]


def seed_of(report: Report) -> int | None:
    """The seed of the run that a report is about."""
    return (report.data.get("study") or {}).get("seed")


def fact_of(report: Report, fact: str) -> float | str | None:
    """What a report says of its run; of a training that went on, only the time of its last part is known."""
    training = report.training or {}
    seconds = None if training.get("resumed_from_step") else training.get("seconds")
    if fact == "training tokens/s":  # of target and source, padding not counted
        tokens = training.get("steps", 0) * training.get("tokens_per_update", 0)
        return tokens / seconds if tokens and seconds else None
    return {
        "parameters": report.model.get("parameters"),
        "architecture": report.model.get("architecture"),
        "context": (report.data.get("study") or {}).get("context_reach"),
        "updates": training.get("steps"),
        "training seconds": seconds,
        "validation loss": training.get("best_validation_loss"),
    }[fact]
