"""Tables (Markdown) and figures (PNG) of a study, as its file chooses them, from the reports of its runs.

    python examples/studies/tables.py examples/studies/mechanisms.yaml

Reports are those that the Snakefile made in `output_dir`, and those of `reports.jsonl.xz` among the results, a report a
line. Several runs of a system are averaged; `*` marks what differs from the baseline, by Welch's test over runs, or by
randomisation over documents where there is one run, with `holm: true` by Holm over all tests of the table. `rows` are
evaluations of one `system`. For all scores of a few reports `docmt compare` is enough.
"""

import argparse
import json
import lzma
from dataclasses import replace
from pathlib import Path

import yaml

import hf_docmt
from hf_docmt.analysis.pictures import draw_breakdown
from hf_docmt.evaluation.metrics import metric_classes
from hf_docmt.reports.comparison import compare_reports
from hf_docmt.reports.measurement import SYSTEM_KEYS
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.significance import (
    PairedTest,
    compare_runs,
    holm_p_values,
    mean_and_deviation,
    significance_notes,
)
from hf_docmt.reports.tables import write_table

TEST = PairedTest("randomisation")
SEED = r"-seed\d+$"  # what differs in the names of runs of one system
FITS = ("metric", "dataset", "strategy")  # keys of a column that choose a result
Reports = dict[str, dict[str, dict[int, Report]]]  # {evaluation: {system: {seed: report}}}


def render(file: Path, results: Path, budget: str | None = None, store: bool = False) -> list[Path]:
    """Write all tables and figures of which there are reports; returns their files. `store` keeps the reports, too."""
    metric_classes()  # they know how scores follow from the statistics in reports, which tests need
    study = yaml.safe_load(file.read_text("utf-8"))
    folder = Path((study["budgets"][budget] if budget else study).get("output_dir", study["output_dir"]))
    reports, files = read_reports(study, folder, results), []
    if store:
        made = (report for systems in reports.values() for runs in systems.values() for report in runs.values())
        lines = [json.dumps(report.to_dict(), ensure_ascii=False) + "\n" for report in made]
        (results / "reports.jsonl.xz").write_bytes(lzma.compress("".join(lines).encode()))
    for name, section in study.get("tables", {}).items():
        if rows := section.get("rows"):  # {row: evaluation}, of one system
            made = {row: reports[one].get(section["system"], {}) for row, one in rows.items()}
            table = Table(section, {"rows": made}, list(rows))
        else:
            table = Table(section, reports, section.get("systems") or list(study["systems"]))
        if table.systems:
            files.append(results / "tables" / f"{name}.md")
            files[-1].parent.mkdir(parents=True, exist_ok=True)
            files[-1].write_text(table.to_markdown() + "\n", encoding="utf-8")
    figures = study.get("figures", {})
    drawn = {system for figure in figures.values() for system in figure.get("systems") or study["systems"]}
    order = [system for system in study["systems"] if system in drawn]
    for name, figure in figures.items():
        runs = {system: reports[figure["evaluation"]].get(system) for system in figure.get("systems") or order}
        if runs := {system: made for system, made in runs.items() if made}:
            files.append(draw(figure, runs, results / "figures" / f"{name}.png", order))
    return files


def read_reports(study: dict, folder: Path, results: Path) -> Reports:
    """The reports of a study by evaluation, system and seed, in the order of the study."""
    reports: Reports = {name: {system: {} for system in study["systems"]} for name in study["evaluations"]}
    if (results / "reports.jsonl.xz").exists():
        with lzma.open(results / "reports.jsonl.xz", "rt", encoding="utf-8") as lines:
            for report in map(Report.from_dict, map(json.loads, lines)):
                made = report.data["study"]
                reports[made["evaluation"]][made["system"]][made["seed"]] = report
    for path in sorted(folder.glob("reports/*/*-seed*.json")):
        system, _, seed = path.stem.rpartition("-seed")
        model = folder / "models" / path.stem
        facts, recipe = hf_docmt.describe(model), folder / "recipes" / f"{path.stem}.yaml"
        report = Report.read(path)
        reports[path.parent.name][system][int(seed)] = replace(
            report,
            model={**report.model, "name": path.stem, "parameters": facts["parameters"]["total"]}
            | {"architecture": facts["architecture"]},
            data={
                **report.data,
                "study": {"evaluation": path.parent.name, "system": system, "seed": int(seed)}
                | {"context_reach": facts["context_reach"], "recipe": yaml.safe_load(recipe.read_text("utf-8"))},
            },
            training=json.loads((model / "training.json").read_text("utf-8")),
        )
    return {
        name: {system: dict(sorted(runs.items())) for system, runs in systems.items() if runs}
        for name, systems in reports.items()
    }


class Table:
    """Systems in rows, scores and facts in columns, over their runs; systems without a report are skipped.

    ValueError: several results of a report fit a column.
    """

    def __init__(self, section: dict, reports: Reports, systems: list[str]):
        self.section, self.reports, self.baseline = section, reports, section.get("baseline")
        named = {column.get("evaluation") for column in section["columns"].values()} & reports.keys() or reports.keys()
        self.systems = [system for system in systems if any(reports[name].get(system) for name in named)]
        self.signatures: dict[str, list[str]] = {}  # signature -> the columns measured so
        self.tests, self.untested, self.notes = {}, [], []  # tests by column and system
        self.columns = {
            name: self.facts(column["fact"]) if "fact" in column else self.scores(name, column)
            for name, column in section["columns"].items()
        }  # of each system: value, deviation, number of runs
        if section.get("holm"):
            p_values = holm_p_values([test.p_value for test in self.tests.values()])
            self.tests = {
                key: replace(test, holm=p_value, significant=p_value < TEST.level)
                for (key, test), p_value in zip(self.tests.items(), p_values)
            }

    def facts(self, fact: str) -> dict[str, tuple]:
        """The cells of a column of facts about runs."""
        cells = {}
        for system in self.systems:
            runs = {seed: one for systems in self.reports.values() for seed, one in systems.get(system, {}).items()}
            values = [value for value in (fact_of(report, fact) for report in runs.values()) if value is not None]
            if not values or isinstance(values[0], str):
                cells[system] = (values[0] if values else None, None, len(runs))
            else:
                cells[system] = (sum(values) / len(values), None, len(values))
        return cells

    def scores(self, name: str, column: dict) -> dict[str, tuple]:
        """The cells of a column of scores."""
        runs = self.reports[column["evaluation"]]
        scores: dict[str, dict[int, Result]] = {}
        for system in dict.fromkeys([*self.systems, *filter(None, [self.baseline])]):
            results = {seed: score(column, report) for seed, report in runs.get(system, {}).items()}
            scores[system] = {seed: result for seed, result in results.items() if result is not None}
        if not any(scores[system] for system in self.systems):
            self.notes.append(f"{name}: no report has it; check metric, dataset, part, context and strategy.")
        results = [result for system in scores.values() for result in system.values()]
        for signature in dict.fromkeys(str(result.signature.without(*SYSTEM_KEYS)) for result in results):
            self.signatures.setdefault(signature, []).append(name)
        if self.baseline and scores[self.baseline]:
            self.test(name, scores)
        cells = {}
        for system in self.systems:
            values = [result.value for result in scores[system].values()]
            found = mean_and_deviation(values) if values else (None, None)
            cells[system] = (*found, len(values))
        return cells

    def test(self, name: str, scores: dict[str, dict[int, Result]]) -> None:
        """Test each system with scores; a single run, of the system or the baseline, against that of the same seed."""
        for system in (system for system, results in scores.items() if results and system != self.baseline):
            base, results = scores[self.baseline], scores[system]
            common = base.keys() & results.keys() if 1 in (len(base), len(results)) else {*base, *results}
            pair = {self.baseline: base, system: results}
            made = {one: [own[seed] for seed in own if seed in common] for one, own in pair.items() if common}
            try:
                self.tests[name, system] = compare_runs(made, self.baseline, system, TEST)
            except ValueError as error:
                self.untested.append((f"{name} of {system}", str(error)))

    def to_markdown(self) -> str:
        """The table, and below it how it was measured and tested."""
        runs = {system: max(cells[system][2] for cells in self.columns.values()) for system in self.systems}
        counts = sorted(set(runs.values()))
        shown = {"runs": [str(runs[system]) for system in self.systems]} if len(counts) > 1 else {}
        for name, cells in self.columns.items():
            digits = self.section["columns"][name].get("digits", 1)
            marked = {one for column, one in self.tests if column == name and self.tests[column, one].significant}
            shown[name] = [cell_text(*cells[one], one in marked, digits, runs[one]) for one in self.systems]
        notes = [self.section["title"]] if self.section.get("title") else []
        if counts and counts[-1] > 1:
            means = f"Means of {counts[-1]} runs" if len(counts) == 1 else "Means over the runs of a system"
            single = " A single run is tested against the run of its seed." if counts[0] == 1 and self.tests else ""
            notes.append(f"{means}; ±: standard deviation over runs, with runs - 1.{single}")
        if self.tests or self.untested:
            notes += significance_notes(self.baseline, [*self.tests.values()], self.untested, TEST)
        notes += [*self.notes, *(f"{', '.join(names)}: {signature}" for signature, names in self.signatures.items())]
        return write_table([["system", *shown], *zip(self.systems, *shown.values())], "markdown", notes)


def cell_text(value, deviation: float | None, count: int, is_significant: bool, digits: int, runs: int) -> str:
    """A cell as the table shows it."""
    if not isinstance(value, float | int):
        return value or "-"
    spread = f" ±{deviation:.{digits}f}" if deviation is not None else ""
    fewer = f" ({count} of {runs} runs)" if 0 < count < runs else ""
    return f"{value:,.{digits}f}{'*' if is_significant else ''}{spread}{fewer}"


def draw(section: dict, runs: dict[str, dict[int, Report]], path: Path, order: list[str]) -> Path:
    """Scores along a breakdown, a line for each system, which keeps its colour, marker and place in all figures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    context = section.get("context", "true")
    reports = [
        replace(report, results=[one for one in report.results if condition_of(one) == context])
        for system in runs.values()
        for report in system.values()
    ]
    several = max(map(len, runs.values())) > 1
    names = [report.name if several else system for system in runs for report in runs[system].values()]
    comparison = compare_reports(reports, names=names, breakdown="all", runs=SEED if several else None)
    chosen = {"axis": section.get("axis", "distance"), "datasets": section.get("datasets", [])}
    return draw_breakdown(comparison, path, order=order, metric=section.get("metric"), **chosen)


def score(column: dict, report: Report) -> Result | None:
    """The result that a column shows of a report, with statistics only where they are those of the value shown."""
    part = column.get("part", "")
    result = result_of(column, report, column.get("context", "true"))
    found = part_of(result, part)
    if found is None or "minus_context" not in column:
        return found and replace(result, value=found.value, breakdown={}, details={} if part else result.details)
    other = part_of(result_of(column, report, column["minus_context"]), part)
    return other and replace(result, value=found.value - other.value, breakdown={}, details={})


def result_of(column: dict, report: Report, context: str) -> Result | None:
    """ValueError where several results fit."""
    results = [one for one in report.results if condition_of(one) == context]
    results = [one for one in results if all(column.get(name) in (None, getattr(one, name)) for name in FITS)]
    if len(results) > 1:
        names = ", ".join(f"{one.dataset} {one.metric} ({one.strategy})" for one in results)
        raise ValueError(f"{report.name}, {column['evaluation']}: several results fit the column, say which: {names}")
    return results[0] if results else None


def part_of(result: Result | None, label: str) -> PartScore | None:
    """A part of a result, the whole for an empty label."""
    if result is None or label:
        return result and result.breakdown.get(label)
    return PartScore(result.value, result.n)


def condition_of(result: Result) -> str:
    """The condition of context that a result was measured under, `true` where its signature has none."""
    return (result.signature.values().get("context") or "true").partition(",")[0]


def fact_of(report: Report, fact: str) -> float | str | None:
    """Facts of a report about its run; a resumed training only has the time of its last part."""
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


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("study", type=Path, help="its file")
    made.add_argument("--results", type=Path, help="folder of tables and figures; default: next to the file")
    made.add_argument("--budget", help="a budget of the file")
    made.add_argument("--store", action="store_true", help="keep the reports in reports.jsonl.xz with the tables")
    options = made.parse_args()
    name = "-".join(filter(None, [str(options.study.with_suffix("")), options.budget]))
    for path in render(options.study, options.results or Path(name), options.budget, options.store):
        print(path)


if __name__ == "__main__":
    main()
