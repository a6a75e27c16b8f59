"""Output of commands, and checks of output paths before long work."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from hf_docmt.files import STDOUT, check_writable_file

if TYPE_CHECKING:
    from hf_docmt.reports.report import Report


def terminal_width() -> int:
    """The maximum number of columns of a table."""
    return get_terminal_size((100, 24)).columns


def print_report(report: Report, as_json: bool, output: str | None) -> None:
    """Print the report as its table, or as JSON; write it to a file if one is named."""
    if output:
        report.write(output)
    if as_json:
        print(json.dumps(report.to_dict(), ensure_ascii=False))
    else:
        print(report)


def check_report(output: str | None, inputs: Iterable[str | None], **outputs: str | None) -> None:
    """Raise `ValueError` before the work if the report cannot be written, is an input, or also another output."""
    check_writable_file(output or "-", inputs)
    check_different(report=output, **outputs)


def check_different(**outputs: str | None) -> None:
    """Raise `ValueError` if two outputs, given by their use, are one file."""
    uses: dict[Path, str] = {}
    for use, path in outputs.items():
        use = use.replace("_", " ")
        if path and path != STDOUT and (other := uses.setdefault(Path(path).resolve(), use)) != use:
            raise ValueError(f"{path} is given both as {other} and as {use}; give two files")
