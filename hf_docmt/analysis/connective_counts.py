"""Counts of connectives in the translations of several systems and in the reference (Fei et al. 2022, Table 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hf_docmt.evaluation.metrics.connectives import Connectives, connectives_of
from hf_docmt.evaluation.metrics.translated_documents import TranslatedDocuments, check_sides
from hf_docmt.evaluation.references import read_references
from hf_docmt.evaluation.translation_files import read_translated
from hf_docmt.files import data_name
from hf_docmt.reports.report import Report

REFERENCE = "reference"  # name of its column


@dataclass(frozen=True)
class ConnectiveCounts:
    """Number of occurrences of each connective, {connective: number}, in the reference and in each system."""

    reference: dict[str, int]
    systems: dict[str, dict[str, int]]

    @property
    def differences(self) -> dict[str, int]:
        """Absolute differences from the reference's counts, summed over the connectives, by system."""
        expected = self.reference
        return {name: sum(abs(own[word] - expected[word]) for word in own) for name, own in self.systems.items()}

    def rows(self) -> list[list[str]]:
        """A table with a header: a row for each connective, the totals, the differences; a column for each system."""
        columns = [self.reference, *self.systems.values()]
        return [
            ["connective", REFERENCE, *self.systems],
            *([word, *(str(column[word]) for column in columns)] for word in self.reference),
            ["(total)", *(str(sum(column.values())) for column in columns)],
            ["(differences)", "-", *map(str, self.differences.values())],
        ]


def connective_files(
    reference: str | Path,
    systems: Sequence[str | Path],
    format: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    *,
    words: Sequence[str] | None = None,
) -> tuple[ConnectiveCounts, dict[str, Report]]:
    """The counts, and a report for each system, of files of `docmt translate` and reference documents with their ids.

    `words`: words or phrases to count; None = those of `connectives_of` the target language. ValueError: a
    language that has none, an empty list, no system, two of one name, one called `REFERENCE`, other documents than
    the reference's.
    """
    words = connectives_of(target_lang) if words is None and target_lang else words
    counts, reports = ConnectiveCounts({}, {}), {}
    known = read_references([reference], format, source_lang, target_lang)
    references, ids = known.sides[0], known.ids
    for name, path in by_name(systems).items():
        hypotheses = read_translated(path, known)
        try:
            check_sides(hypotheses, references, doc_ids=ids)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        documents = TranslatedDocuments(hypotheses, references, doc_ids=ids, dataset=data_name(reference))
        (result,) = Connectives(words).score(documents)
        table = result.details["table"]
        counts.systems[name] = {word: found["hypothesis"] for word, found in table.items()}
        counts.reference.update({word: found["reference"] for word, found in table.items()})
        data = {"reference": Path(reference).name, "documents": len(ids)}
        reports[name] = Report(model={"name": name}, data=data, results=[result])
    return counts, reports


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
