"""report.json: the one format in which every number is kept, with what it takes to get it again."""

import json
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from string import ascii_lowercase

from hf_docmt import __version__
from hf_docmt.files import write_lines
from hf_docmt.reports.schema import FORMAT, check_result, validate_report

_KEY = ("task", "dataset", "split", "metric", "signature", "strategy", "beams")


def make_result(
    *,
    task: str,
    dataset: str,
    split: str,
    metric: str,
    value: float,
    signature: str,
    n: int,
    strategy: str | None = None,
    beams: int | None = None,
    breakdown: dict | None = None,
    details: dict | None = None,
) -> dict:
    """One checked entry of `results`; `breakdown` is {label: {"value", "n", …}}, `details` anything JSON can hold."""
    result = {
        "task": task,
        "dataset": dataset,
        "split": split,
        "metric": metric,
        "value": value,
        "signature": signature,
        "n": n,
        "strategy": strategy,
        "beams": beams,
        "breakdown": breakdown or {},
        "details": details or {},
    }
    check_result(result, "result")
    return result


def build_report(*, model: dict, data: dict, results: Sequence[dict], training: dict | None = None) -> dict:
    """A checked report of this version of the package.

    `model` has a `name` and may have `architecture`, `parameters` (their number) and `config` (a summary of it).
    """
    report = {"format": FORMAT, "package": "hf-docmt", "version": __version__, "commit": package_commit()}
    report |= {"model": model, "data": data}
    if training is not None:
        report["training"] = training
    report["results"] = list(results)
    validate_report(report)
    return report


def merge_reports(*reports: dict) -> dict:
    """Reports of one model as one; of two results that measure the same, the later one stays.

    The newest version and commit stand at the top, a result made by others keeps its own in `details`.
    ValueError: no report, or different models.
    """
    if not reports:
        raise ValueError("no reports to merge")
    last, merged = reports[-1], {}
    for report in reports:
        validate_report(report)
        names = [report["model"]["name"], last["model"]["name"]]
        if names[0] != names[1]:
            raise ValueError(
                f"reports of different models, {names[0]!r} and {names[1]!r}; merge those of one model only"
            )
        origin = {key: report[key] for key in ("version", "commit")}
        for result in report["results"]:
            if origin != {key: last[key] for key in origin}:
                result = result | {"details": origin | result["details"]}
            key = tuple(result[name] for name in _KEY)
            merged.pop(key, None)
            merged[key] = result
    joined = dict(last)
    for name in ("model", "data", "training"):
        parts = [report[name] for report in reports if name in report]
        if parts:
            joined[name] = {key: value for part in parts for key, value in part.items()}
    joined["results"] = list(merged.values())
    return joined


def read_report(path: str | Path) -> dict:
    """The checked report in a file; ValueError names the file, and where it is broken."""
    try:
        report = json.loads(Path(path).read_bytes().decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 at byte offset {error.start}; write the report again") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: not JSON, line {error.lineno}: {error.msg}; write the report again") from error
    try:
        validate_report(report)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return report


def write_report(report: dict, path: str | Path) -> None:
    """Write a checked report; a file that was there stays whole until the new one is."""
    validate_report(report)
    write_lines([json.dumps(report, ensure_ascii=False, allow_nan=False, indent=2)], path)


def format_table(report: dict) -> str:
    """Report as plain text for a terminal: one line per result and part, signatures, other counts than published."""
    header = ["dataset", "split", "strategy", "beams", "metric", "value", "n"]
    different = dict.fromkeys(result["signature"] for result in report["results"])
    letters = {signature: letter_of(number) for number, signature in enumerate(different)}
    rows = []
    for result in report["results"]:
        cells = ["-" if result[name] is None else str(result[name]) for name in header[:5]]
        cells[-1] += f" ({letters[result['signature']]})"
        rows.append(cells + _numbers(result))
        rows += [["", "", "", "", f"  {label}", *_numbers(part)] for label, part in result["breakdown"].items()]
    signatures = [f"({letter}) {signature}" for signature, letter in letters.items()]
    notes = dict.fromkeys(result["details"]["counts"] for result in report["results"] if "counts" in result["details"])
    model, commit = report["model"], report["commit"]
    facts = [model.get("architecture"), f"{model['parameters']:,} parameters" if model.get("parameters") else None]
    title = model["name"] + "".join(f", {fact}" for fact in facts if fact)
    origin = f"{report['package']} {report['version']}" + (f" ({commit[:12]}{commit[40:]})" if commit else "")
    return "\n".join([title, origin, "", align_columns([header, *rows]), "", *signatures, *notes])


def align_columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, the first one a header, as lines with columns of equal width; numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    right = [all(_is_number(cell) for cell in column[1:] if cell.strip("- ")) for column in zip(*rows)]
    lines = [
        "  ".join(cell.rjust(width) if flush else cell.ljust(width) for cell, width, flush in zip(row, widths, right))
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def letter_of(number: int) -> str:
    """What a signature is called in a table: a, b, …, z, aa, ab, …"""
    first, last = divmod(number, 26)
    return (letter_of(first - 1) if first else "") + ascii_lowercase[last]


@cache
def package_commit() -> str | None:
    """Commit of the git checkout that this package lies in, `-dirty` when files differ from it; null outside of one."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    describe = ["git", "--no-optional-locks", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        found = subprocess.run(describe, cwd=root, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None


def _numbers(part: dict) -> list[str]:
    return [f"{part['value']:.2f}", str(part["n"])]


def _is_number(cell: str) -> bool:
    return cell.strip().replace(".", "", 1).lstrip("-").isdigit()
