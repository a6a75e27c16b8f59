"""Counts of connectives in the translations of several systems and in the reference (Fei et al. 2022, Table 4)."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from hf_docmt.evaluation.metrics.connectives import Connectives, connectives_of
from hf_docmt.evaluation.metrics.translated_documents import TranslatedDocuments, check_sides
from hf_docmt.evaluation.references import read_references
from hf_docmt.evaluation.translation_files import read_translated
from hf_docmt.files import data_name
from hf_docmt.reports.report import Report

REFERENCE = "reference"  # name of its column


def connective_files(
    reference: str | Path,
    systems: Sequence[str | Path],
    format: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    *,
    words: Sequence[str] | None = None,
) -> tuple[pd.DataFrame, dict[str, Report]]:
    """The counts, and a report for each system, of files of `docmt translate` and reference documents with their ids.

    Counts have a row for each connective, a column for the reference, and one for each system.

    `words`: words or phrases to count; None = those of `connectives_of` the target language. ValueError: a
    language that has none, an empty list, no system, two of one name, one called `REFERENCE`, other documents than
    the reference's.
    """
    words = connectives_of(target_lang) if words is None and target_lang else words
    documents, counts, reports = read_references([reference], format, source_lang, target_lang), pd.DataFrame(), {}
    references, ids = documents.sides[0], documents.ids
    for name, path in by_name(systems).items():
        hypotheses = read_translated(path, documents)
        try:
            check_sides(hypotheses, references, doc_ids=ids)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        translated = TranslatedDocuments(hypotheses, references, doc_ids=ids, dataset=data_name(reference))
        (result,) = Connectives(words).score(translated)
        table = pd.DataFrame.from_dict(result.details["table"], orient="index")
        counts = counts.assign(**{REFERENCE: table["reference"], name: table["hypothesis"]})
        data = {"reference": Path(reference).name, "documents": len(ids)}
        reports[name] = Report(model={"name": name}, data=data, results=[result])
    return counts, reports


def count_rows(counts: pd.DataFrame) -> list[list[str]]:
    """A table with a header: a row for each connective, totals, and absolute differences from the reference's counts.

    The differences of a system are summed over the connectives.
    """
    differences = counts.sub(counts[REFERENCE], axis=0).abs().sum().drop(REFERENCE)
    return [
        ["connective", *counts.columns],
        *([word, *map(str, row)] for word, *row in counts.itertuples()),
        ["(total)", *map(str, counts.sum())],
        ["(differences)", "-", *map(str, differences)],
    ]


def by_name(systems: Sequence[str | Path]) -> dict[str, str | Path]:
    """The files by their names without ending. ValueError: none, two of one name, one called REFERENCE."""
    names = [data_name(path) for path in systems]
    if not names:
        raise ValueError("no systems; give files of translations")
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two systems are called {repeated[0]!r}; give their files different names")
    if REFERENCE in names:
        raise ValueError(f"a system is called {REFERENCE!r}, as is its reference; give its file another name")
    return dict(zip(names, systems))
