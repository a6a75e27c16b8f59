"""Tables of a study: a row for each system, a column for each score, over its runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hf_docmt.reports.measurement import SYSTEM_KEYS
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Part, Result
from hf_docmt.reports.significance import (
    GroupTests,
    PairedTest,
    compare_with_baseline,
    mean_and_deviation,
    significance_notes,
)
from hf_docmt.reports.tables import cells_frame, write_table

ABSENT = "-"
TEST = PairedTest("randomisation")


def tokens_per_second(report: Report) -> float | None:
    """Target and source tokens of training per second, padding not counted."""
    training, seconds = report.training or {}, training_seconds(report)
    if not {"steps", "tokens_per_update"} <= training.keys() or not seconds:
        return None
    return training["steps"] * training["tokens_per_update"] / seconds


def training_seconds(report: Report) -> float | None:
    """Those of a training without interruption: of one that went on, only those of its last part are known."""
    training = report.training or {}
    return None if training.get("resumed_from_step") else training.get("seconds")


FACTS: dict[str, Callable[[Report], float | str | None]] = {
    "parameters": lambda report: report.model.get("parameters"),
    "context": lambda report: report.data.get("study", {}).get("context_reach"),
    "architecture": lambda report: report.model.get("architecture"),
    "training tokens/s": tokens_per_second,
    "updates": lambda report: (report.training or {}).get("steps"),
    "training seconds": training_seconds,
    "validation loss": lambda report: (report.training or {}).get("best_validation_loss"),
}


@dataclass(frozen=True)
class Cell:
    """A figure of one system: the mean over its runs, their deviation, whether it differs from the baseline's."""

    value: float | str | None = None
    deviation: float | None = None
    runs: int = 0
    significant: bool = False

    def text(self, digits: int, runs: int) -> str:
        if self.value is None:
            return ABSENT
        if isinstance(self.value, str):
            return self.value
        marker = "*" if self.significant else ""
        deviation = f" ±{self.deviation:.{digits}f}" if self.deviation is not None else ""
        fewer = f" ({self.runs} of {runs} runs)" if 0 < self.runs < runs else ""
        return f"{self.value:,.{digits}f}{marker}{deviation}{fewer}"


class RunTable:
    """A table of a study, from the reports of every evaluation: {evaluation: {system: reports of its runs}}.

    It has the systems with a report of one of the evaluations that its columns name, of any where they are all facts,
    and the number of their runs where that is not the same for all. A run is known by its seed.
    """

    def __init__(self, section, reports: Mapping[str, Mapping[str, Sequence[Report]]], systems: Sequence[str]):
        self.section = section
        named = {column.evaluation for column in section.columns.values()} & reports.keys() or reports.keys()
        self.systems = [system for system in systems if any(reports[name].get(system) for name in named)]
        self.reports = reports
        self.signatures: dict[str, list[str]] = {}  # signature -> the columns measured so
        self.tests: dict[str, GroupTests] = {}  # of each column with a score, against the baseline
        self.notes: list[str] = []
        self.columns = {name: self._column(name, column) for name, column in section.columns.items()}

    def to_text(self, style: str) -> str:
        """The table in text, markdown or latex."""
        runs = {system: max(column[system].runs for column in self.columns.values()) for system in self.systems}
        digits = {name: column.digits for name, column in self.section.columns.items()}
        differ = len(set(runs.values())) > 1
        rows = [
            [
                system,
                *([str(runs[system])] if differ else []),
                *(column[system].text(digits[name], runs[system]) for name, column in self.columns.items()),
            ]
            for system in self.systems
        ]
        head = ["system", *(["runs"] if differ else []), *self.columns]
        measured = [f"{', '.join(names)}: {signature}" for signature, names in self.signatures.items()]
        remarks = self._remarks(sorted(set(runs.values())))
        return write_table(cells_frame([head, *rows]), style, [*remarks, *measured])

    def _remarks(self, runs: Sequence[int]) -> list[str]:
        remarks = [self.section.title] if self.section.title else []
        if runs and runs[-1] > 1:
            means = f"Means of {runs[-1]} runs" if len(runs) == 1 else "Means over the runs of a system"
            remarks.append(f"{means}; ±: standard deviation over runs, with runs - 1.")
        if self.tests:
            remarks += significance_notes(self.section.baseline, list(self.tests), list(self.tests.values()), TEST)
        return [*remarks, *self.notes]

    def _column(self, name: str, column) -> dict[str, Cell]:
        if column.fact is not None:
            return {system: self._fact(column.fact, system) for system in self.systems}
        reports = self.reports[column.evaluation]
        rows = dict.fromkeys([*self.systems, *filter(None, [self.section.baseline])])
        try:
            found = {
                system: [one for one in map(Finder(column).find, reports.get(system, ())) if one] for system in rows
            }
        except ValueError as error:
            raise ValueError(f"column {name!r}: {error}") from error
        if self.systems and not any(found[system] for system in self.systems):
            self.notes.append(f"{name}: no report has it; check metric, dataset, part, context and strategy.")
        for signature in dict.fromkeys(one.signature for runs in found.values() for one in runs):
            self.signatures.setdefault(signature, []).append(name)
        significant = self._significant(name, found)
        return {system: cell_of(found[system], system in significant) for system in self.systems}

    def _fact(self, fact: str, system: str) -> Cell:
        runs = {seed_of(report): report for found in self.reports.values() for report in found.get(system, ())}
        values = [value for value in map(FACTS[fact], runs.values()) if value is not None]
        if not values:
            return Cell(runs=len(runs))
        if isinstance(values[0], str):
            return Cell(values[0], runs=len(runs))
        return Cell(sum(values) / len(values), runs=len(values))

    def _significant(self, name: str, found: dict[str, list["Found"]]) -> set[str]:
        """Systems whose figure differs from the baseline's; a single run is tested against that of the same seed."""
        baseline = self.section.baseline
        if baseline is None or not found.get(baseline):
            return set()
        tests, obstacles, units = {}, {}, frozenset()
        for system in (system for system, runs in found.items() if runs and system != baseline):
            base, runs = found[baseline], found[system]
            if len(runs) == 1:
                base = [one for one in base if one.seed == runs[0].seed]
            pair = {
                each: [one.as_result() for one in some] for each, some in ((baseline, base), (system, runs)) if some
            }
            outcome = compare_with_baseline(baseline, pair, TEST)
            tests |= outcome.tests
            obstacles |= outcome.obstacles
            units |= outcome.units
        self.tests[name] = GroupTests(tests, obstacles, units)
        return {system for system, test in self.tests[name].tests.items() if test.significant}


@dataclass(frozen=True)
class Found:
    """What a column shows of one run: the value, and the result that it is a part of or the difference from."""

    value: float
    result: Result
    whole: bool  # the value is that of the result, so that its statistics are those of the value
    seed: int | None = None

    @property
    def signature(self) -> str:
        """How the value was measured, without what is the system's own."""
        return str(self.result.signature.without(*SYSTEM_KEYS))

    def as_result(self) -> Result:
        """A result with this value, with statistics only where they belong to it."""
        details = self.result.details if self.whole else {}
        return Result(**{**vars(self.result), "value": self.value, "details": details, "breakdown": {}})


class Finder:
    """Finds what a column shows in a report."""

    def __init__(self, column):
        self.column = column

    def find(self, report: Report) -> Found | None:
        """ValueError where several results fit."""
        column = self.column
        result = self._result(report, column.context)
        if result is None:
            return None
        part = part_of(result, column.part)
        if part is None:
            return None
        if column.minus_context is None:
            return Found(part.value, result, not column.part, seed_of(report))
        other = self._result(report, column.minus_context)
        other_part = other and part_of(other, column.part)
        return Found(part.value - other_part.value, result, False, seed_of(report)) if other_part else None

    def _result(self, report: Report, context: str) -> Result | None:
        column = self.column
        found = [
            result
            for result in report.results
            if column.metric in (None, result.metric)
            and column.dataset in (None, result.dataset)
            and column.strategy in (None, result.strategy)
            and condition_of(result) == context
        ]
        if len(found) > 1:
            names = ", ".join(f"{one.dataset} {one.metric} ({condition_of(one)}, {one.strategy})" for one in found)
            raise ValueError(
                f"{report.name}, {column.evaluation}: {len(found)} results fit the column: {names}; say which by "
                "metric, dataset, context or strategy"
            )
        return found[0] if found else None


def seed_of(report: Report) -> int | None:
    """The seed of the run that a report is about."""
    return (report.data.get("study") or {}).get("seed")


def condition_of(result: Result) -> str:
    """The condition of context that a result was measured under, `true` where its signature has none."""
    return (result.signature.values().get("context") or "true").partition(",")[0]


def part_of(result: Result, label: str) -> Part | None:
    """A part of a result, the whole for an empty label."""
    return result.breakdown.get(label) if label else Part(result.value, result.n)


def cell_of(found: Sequence[Found], significant: bool) -> Cell:
    """The cell of a system's runs."""
    if not found:
        return Cell()
    mean, deviation = mean_and_deviation([one.value for one in found])
    return Cell(mean, deviation, len(found), significant)
