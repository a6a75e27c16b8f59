"""From the files of a suite to its items, whatever the format."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from hf_docmt.evaluation.suites.items import SuiteItem
from hf_docmt.evaluation.suites.json_fields import entries_of
from hf_docmt.evaluation.suites.suite import SUITES, Suite, read_json
from hf_docmt.files import DataError
from hf_docmt.messages import closest_hint


def read_suite(
    path: str | Path,
    format: str = "auto",
    *,
    documents: str | Path | None = None,
    records: str | Path | None = None,
    context: int = 3,
    future_context: int = 0,
    context_file: int | None = None,
) -> list[SuiteItem]:
    """Items of a suite in file order, each with at most `context` sentences before the current one.

    `format` is the name of a registered suite, such as `contrapro`, `voita`, `lopes` or `bawden`, whose classes
    say which files they read; `auto` recognises it by file name and JSON keys, classes from plugins first.
    `documents` are the texts that ContraPro's JSON points into, `records` the JSON that belongs to text files (by
    default the one of their name beside them or a folder above), `context_file` is N of Lopes' `NAME.cN.context.src`.
    Only ContraPro's documents have sentences after the current one (`future_context`).
    ValueError: an unknown format, an option that the file has no use for. DataError (a ValueError) names file and item.

    >>> items = read_suite("runs/corpus/pronoun.json", context=2)
    >>> len(items[0].source), items[0].candidates[items[0].correct] in items[0].candidates
    (3, True)
    """
    options = {"documents": documents, "records": records, "context_file": context_file}
    options |= {"context": context, "future_context": future_context}
    if format != "auto":
        return suite_class(format)(path, **options).read()
    found, content = recognise(path)
    return found(path, content=content, **options).read()


def suite_class(format: str) -> type[Suite]:
    """The class of a format. ValueError: none is registered by this name."""
    known = suite_classes()
    if format not in known:
        hint = closest_hint(format, known)
        raise ValueError(f"unknown suite format {format!r}: expected auto, {', '.join(known)}{hint}")
    return known[format]


def suite_classes() -> dict[str, type[Suite]]:
    """All registered classes by format: those of this folder, and those from outside that were imported."""
    _import_built_in()
    return SUITES


def suite_rules(items: Sequence[SuiteItem]) -> type[Suite]:
    """The class of these items' format, which holds its rules; `Suite` itself, the defaults, for no known format."""
    return suite_classes().get(items[0].format, Suite)


def recognise(path: str | Path) -> tuple[type[Suite], object]:
    """The class of a file by its name, else by its JSON; and the JSON value, None where it was not read.

    DataError: JSON of no registered format. The class that was registered last is asked first.
    """
    classes = list(suite_classes().values())[::-1]
    for found in classes:
        if found.matches_name(Path(path)):
            return found, None
    content = read_json(path)
    for found in classes:
        if found.matches_json(content):
            return found, content
    keys = sorted(entries_of(content, path)[0])
    known = " nor ".join(f"{found.title} ({found.json_key!r})" for found in classes[::-1] if found.json_key)
    raise DataError(f"{path}: neither {known} items, got keys {keys}; give the format, or a file of one of these")


@cache
def _import_built_in() -> None:
    """Import the modules of this folder; their classes come first, by name."""
    package = "hf_docmt.evaluation.suites"
    for module in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")
    built_in = sorted(name for name, found in SUITES.items() if found.__module__.startswith(package))
    outside = [name for name in SUITES if name not in built_in]
    ordered = {name: SUITES[name] for name in (*built_in, *outside)}
    SUITES.clear()
    SUITES.update(ordered)
