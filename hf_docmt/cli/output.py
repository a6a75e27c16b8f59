"""What commands print and write, and the checks of output paths before long work."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hf_docmt.reports.report import Report


def print_report(report: Report, as_json: bool, output: str | None) -> None:
    """Print the report as a table or as JSON; write it to a file where one is given."""
    if output:
        report.write(output)
    print(json.dumps(report.to_dict(), ensure_ascii=False) if as_json else str(report))


def print_table(cells: list[list[str]], facts: dict | list, as_json: bool) -> None:
    """Print rows of cells, the first row being the header, or all facts as JSON."""
    from hf_docmt.reports.tables import cells_frame, write_table

    print(json.dumps(facts, ensure_ascii=False) if as_json else write_table(cells_frame(cells)))


def write_reports(reports: dict[str, Report], folder: str) -> None:
    """Write every report to NAME.json in a folder, which is made if need be."""
    from pathlib import Path

    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, report in reports.items():
        report.write(Path(folder) / f"{name}.json")


def check_different(**outputs: str | None) -> None:
    """Raise `ValueError` where two outputs, by what they are, are one file."""
    from pathlib import Path

    from hf_docmt.files import STDOUT

    known: dict[Path, str] = {}
    for what, path in outputs.items():
        what = what.replace("_", " ")
        if path and path != STDOUT and (other := known.setdefault(Path(path).resolve(), what)) != what:
            raise ValueError(f"{path} is to be both {other} and {what}; give two files")


def check_files(picture: str | None, output: str | None, inputs: Iterable[str] = ()) -> None:
    """Raise `ValueError` before the analysis where picture or report cannot be written, or is one of the `inputs`."""
    from hf_docmt.analysis.pictures.figures import check_picture_path
    from hf_docmt.files import check_writable_file

    check_writable_file(output or "-", inputs)
    if picture:
        check_picture_path(picture)
        check_writable_file(picture, inputs)
        check_different(picture=picture, report=output)


def check_folder(folder: str | None, names: Iterable[str], inputs: Iterable[str]) -> None:
    """Raise `ValueError` before the analysis where reports of these names cannot be written, or one is an input."""
    from pathlib import Path

    from hf_docmt.files import check_writable_file, check_writable_folder

    check_writable_folder(folder or ".")
    for file in (Path(folder) / f"{name}.json" for name in names) if folder else ():
        if file.exists():
            check_writable_file(file, inputs)
