"""What the data table of a paper has: documents, sentences, words, their lengths, annotated phenomena by distance."""

import re
from collections import Counter
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset

from hf_docmt.data.documents import check_documents
from hf_docmt.data.language_codes import UNSPACED, primary_language
from hf_docmt.files import DataError

QUANTILES = (5, 25, 50, 75, 95, 100)  # per cent
ANNOTATION = "phenomena"  # a column with a label for each sentence: a name, or name-DISTANCE
WORDS = "Words are what stands between white space, with their punctuation."


@dataclass(frozen=True)
class Lengths:
    """Mean, standard deviation (of all, not of a sample), and `QUANTILES`, each a length that occurs."""

    mean: float
    deviation: float
    quantiles: dict[str, int]

    @classmethod
    def of(cls, values: np.ndarray) -> "Lengths":
        lengths = np.percentile(values, QUANTILES, method="inverted_cdf")
        quantiles = {f"{per_cent} %": int(value) for per_cent, value in zip(QUANTILES, lengths)}
        return cls(float(np.mean(values)), float(np.std(values)), quantiles)


@dataclass(frozen=True)
class SideStatistics:
    """One language. Lengths are in words, see `WORDS`: of sentences, the empty ones being 0, and of documents."""

    words: int
    empty_sentences: int
    sentence_length: Lengths
    document_length: Lengths


@dataclass(frozen=True)
class DocumentStatistics:
    """Documents of one or two languages; `document_length` in sentences.

    `phenomena` is there where documents have that column: {name: {distance to the sentence needed: count}}.
    """

    documents: int
    sentences: int
    document_length: Lengths
    sides: dict[str, SideStatistics]
    phenomena: dict[str, dict[int, int]]

    def to_dict(self, context: int | None = None) -> dict:
        """All numbers, with `out_of_reach` of so many sentences of context where it is given."""
        reach = {} if context is None else {"context": context, "out_of_reach": self.out_of_reach(context)}
        return asdict(self) | reach

    def out_of_reach(self, context: int) -> dict[str, int]:
        """How often what a phenomenon needs is more than `context` sentences away."""
        return {
            name: sum(count for distance, count in counts.items() if distance > context)
            for name, counts in self.phenomena.items()
        }

    def rows(self, context: int | None = None) -> dict[str, str]:
        """Cells of a table by their names."""
        rows = {"documents": f"{self.documents}", "sentences": f"{self.sentences}"}
        lengths = {"sentences a document": self.document_length}
        for lang, side in self.sides.items():
            rows |= {f"words, {lang}": f"{side.words}", f"empty sentences, {lang}": f"{side.empty_sentences}"}
            lengths[f"words a sentence, {lang}"] = side.sentence_length
            lengths[f"words a document, {lang}"] = side.document_length
        for name, length in lengths.items():
            rows[name] = f"{length.mean:.1f} ± {length.deviation:.1f}"
            rows[f"{name}, quantiles"] = " ".join(map(str, length.quantiles.values()))
        for name, counts in self.phenomena.items():
            rows[name] = f"{sum(counts.values())}"
            rows[f"{name}, by distance"] = " ".join(f"{distance}:{count}" for distance, count in counts.items())
            if context is not None:
                rows[f"{name}, further than {context}"] = f"{self.out_of_reach(context)[name]}"
        return rows


def reading_notes(languages: list[str]) -> list[str]:
    """What a reader of the table has to know."""
    quantiles = " ".join(map(str, QUANTILES))
    notes = [WORDS, f"±: standard deviation. Quantiles: {quantiles} %, the last is the largest."]
    return notes + [
        f"{lang} writes no blanks between words: unless the text is segmented, what is counted are no words."
        for lang in languages
        if primary_language(lang) in UNSPACED
    ]


def document_statistics(documents: Dataset) -> DocumentStatistics:
    """Count documents of the document contract.

    Raises DataError for documents that break it and for an annotation with another number of labels than sentences.
    """
    languages = [lang for lang in check_documents(documents) if lang]
    translation = documents.select_columns(["translation"]).with_format("arrow")[:].column("translation")
    counts = pc.list_value_length(translation).to_numpy().astype(np.int64)  # sentences of each document, at least 1
    return DocumentStatistics(
        documents=len(documents),
        sentences=int(counts.sum()),
        document_length=Lengths.of(counts),
        sides={lang: _side(translation, lang, counts) for lang in languages},
        phenomena=_phenomena(documents, counts) if ANNOTATION in documents.column_names else {},
    )


def _side(translation: pa.ChunkedArray, lang: str, counts: np.ndarray) -> SideStatistics:
    texts = (text for chunk in translation.chunks for text in chunk.flatten().field(lang).to_pylist())
    words = np.fromiter((len(text.split()) for text in texts), dtype=np.int64, count=int(counts.sum()))
    documents = np.add.reduceat(words, np.cumsum(counts) - counts)
    return SideStatistics(int(words.sum()), int((words == 0).sum()), Lengths.of(words), Lengths.of(documents))


def _phenomena(documents: Dataset, counts: np.ndarray) -> dict[str, dict[int, int]]:
    """Labels `name-DISTANCE`, counted by name and distance; those without a distance are left out."""
    counted: dict[str, Counter] = {}
    for doc_id, labels, count in zip(documents["doc_id"], documents[ANNOTATION], counts):
        if labels is None:
            continue
        if len(labels) != count:
            raise DataError(
                f"document {doc_id!r} has {len(labels)} labels of {ANNOTATION!r} but {count} sentences; it needs one "
                "for each"
            )
        for label in labels:
            if match := re.fullmatch(r"(.+)-(\d+)", label or ""):
                counted.setdefault(match[1], Counter())[int(match[2])] += 1
    return {name: dict(sorted(counted[name].items())) for name in sorted(counted)}
