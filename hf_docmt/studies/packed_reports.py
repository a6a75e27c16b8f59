"""All reports of a study in one small file: packed JSON lines, one report a line, with all statistics."""

import json
from pathlib import Path

from hf_docmt.files import read_lines, write_lines
from hf_docmt.reports.report import Report

NAME = "reports.jsonl.gz"


def read_reports(results: Path) -> dict[tuple[str, str], Report]:
    """{(evaluation, run): report} of a folder of results, those that 0.2.0 wrote to files of their own, too."""
    reports, packed = {}, results / NAME
    for file in sorted(results.glob("*/*.json")):  # <evaluation>/<run>.json
        report = Report.read(file)
        whole = Report.read(f"{file}.gz") if Path(f"{file}.gz").exists() else report
        reports[file.parent.name, file.stem] = whole if scores(whole) == scores(report) else report
    for _, line in read_lines(packed) if packed.exists() else ():
        report = Report.from_dict(json.loads(line))
        reports[report.data["study"]["evaluation"], report.name] = report
    return reports


def write_reports(reports: dict[tuple[str, str], Report], results: Path) -> None:
    """Write all reports to the packed file of a folder of results, which is made."""
    results.mkdir(parents=True, exist_ok=True)
    ordered = (reports[key].to_dict() for key in sorted(reports))
    write_lines((json.dumps(report, ensure_ascii=False, allow_nan=False) for report in ordered), results / NAME)


def unpack_reports(results: Path, folder: Path) -> list[Path]:
    """Write each report to `folder/<evaluation>/<run>.json`, for `docmt compare`; returns the files."""
    files = {folder / evaluation / f"{run}.json": report for (evaluation, run), report in read_reports(results).items()}
    for file, report in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        report.write(file)
    return list(files)


def scores(report: Report) -> list[tuple]:
    """The results of a report without parts and details, which 0.2.0 kept in part."""
    return [(result.dataset, result.metric, str(result.signature), result.value) for result in report.results]
