"""All reports of a study in one small file: packed JSON lines, one report a line, with all statistics."""

import json
import lzma
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.files import DataError, read_lines, replaced_file
from hf_docmt.reports.report import Report

NAME = "reports.jsonl.xz"  # a third of what gzip makes of it: reports are alike, and longer than its window
EARLIER_NAME = "reports.jsonl.gz"


def read_reports(results: Path) -> dict[tuple[str, str], Report]:
    """{(evaluation, run): report} of a folder of results, those that 0.2.0 wrote to files of their own, too."""
    reports = {}
    for file in sorted(results.glob("*/*.json")):  # <evaluation>/<run>.json
        report = Report.read(file)
        whole = Report.read(f"{file}.gz") if Path(f"{file}.gz").exists() else report
        reports[file.parent.name, file.stem] = whole if scores(whole) == scores(report) else report
    for line in packed_lines(results):
        report = Report.from_dict(json.loads(line))
        reports[report.data["study"]["evaluation"], report.name] = report
    return reports


def packed_lines(results: Path) -> Iterator[str]:
    """The lines of the packed file, if there is one; DataError for a damaged one."""
    if (results / EARLIER_NAME).exists():
        yield from (line for _, line in read_lines(results / EARLIER_NAME))
    if (results / NAME).exists():
        try:
            with lzma.open(results / NAME, "rt", encoding="utf-8") as lines:
                yield from lines
        except (lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
            raise DataError(f"{results / NAME}: broken or truncated file ({error}); fetch it again") from error


def write_reports(reports: dict[tuple[str, str], Report], results: Path) -> None:
    """Write all reports to the packed file of a folder of results, which is made."""
    results.mkdir(parents=True, exist_ok=True)
    with replaced_file(results / NAME) as raw, lzma.open(raw, "wt", encoding="utf-8", newline="\n") as file:
        for key in sorted(reports):
            file.write(json.dumps(reports[key].to_dict(), ensure_ascii=False, allow_nan=False) + "\n")
    (results / EARLIER_NAME).unlink(missing_ok=True)


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
