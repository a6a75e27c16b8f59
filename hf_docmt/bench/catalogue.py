"""The commands of benchmarks with their help, read from the files of this package without importing them and torch."""

import ast
import sys
from functools import cache
from pathlib import Path
from typing import Any

DEFAULTS = {"command": None, "default_by": False, "help": "", "name": None}  # attributes of a benchmark


def benchmark_helps() -> dict[str, str]:
    """The help of every command, that of its default benchmark first; benchmarks from outside are there if imported."""
    found = [attributes for path in sorted(Path(__file__).parent.glob("*.py")) for attributes in class_attributes(path)]
    registered = sys.modules.get("hf_docmt.bench.benchmark")
    for benchmark in registered.BENCHMARKS.values() if registered else ():
        attributes = {name: getattr(benchmark, name) for name in DEFAULTS}
        if attributes["name"] not in [other["name"] for other in found]:
            found.append(attributes)
    helps: dict[str, list[str]] = {}
    for attributes in sorted(found, key=lambda one: not one["default_by"]):
        helps.setdefault(attributes["command"] or attributes["name"], []).append(attributes["help"])
    return {command: "\n\n".join(helps[command]) for command in sorted(helps)}


@cache
def class_attributes(path: Path) -> list[dict[str, Any]]:
    """The attributes `DEFAULTS` of each class of a file that has a name; they must be written as constants."""
    found = []
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ClassDef):
            assigned = [one for one in statement.body if isinstance(one, ast.Assign)]
            constants = {
                target.id: ast.literal_eval(one.value)
                for one in assigned
                for target in one.targets
                if isinstance(target, ast.Name) and target.id in DEFAULTS
            }
            if "name" in constants:
                found.append(DEFAULTS | constants)
    return found
