"""The data table of a paper: documents, sentences, words, their lengths, annotated phenomena by distance."""

import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset

from hf_docmt.data.documents import check_documents
from hf_docmt.data.language_codes import UNSPACED, primary_language
from hf_docmt.files import DataError

QUANTILES = (5, 25, 50, 75, 95, 100)  # per cent
ANNOTATION = "phenomena"  # a column with a label for each sentence: a name, or name-DISTANCE
WORDS = "Words are separated by white space and include their punctuation."


def document_statistics(documents: Dataset, context: int | None = None) -> dict:
    """Counts of documents of the document contract, as JSON holds them.

    Lengths are mean, standard deviation (of all, not of a sample) and `QUANTILES`, each a length that occurs: those of
    documents in sentences; in each language, in words (see `WORDS`), those of sentences, empty ones being 0, and of
    documents. `phenomena` are those of the column: {name: {distance to the sentence needed: count}}, `out_of_reach`
    says how often that is more than `context` sentences away. Raises DataError for documents that break the contract
    and for an annotation with another number of labels than sentences.
    """
    languages = [lang for lang in check_documents(documents) if lang]
    translation = documents.select_columns(["translation"]).with_format("arrow")[:].column("translation")
    counts = pc.list_value_length(translation).to_numpy().astype(np.int64)  # sentences of each document, at least 1
    phenomena = _phenomena(documents, counts) if ANNOTATION in documents.column_names else {}
    reach = {} if context is None else {"context": context, "out_of_reach": out_of_reach(phenomena, context)}
    return {
        "documents": len(documents),
        "sentences": int(counts.sum()),
        "document_length": lengths_of(counts),
        "sides": {lang: _side(translation, lang, counts) for lang in languages},
        "phenomena": phenomena,
        **reach,
    }


def lengths_of(values: np.ndarray) -> dict:
    """Mean, deviation and quantiles."""
    lengths = np.percentile(values, QUANTILES, method="inverted_cdf")
    quantiles = {f"{per_cent} %": int(value) for per_cent, value in zip(QUANTILES, lengths)}
    return {"mean": float(np.mean(values)), "deviation": float(np.std(values)), "quantiles": quantiles}


def out_of_reach(phenomena: dict[str, dict[int, int]], context: int) -> dict[str, int]:
    """How often what a phenomenon needs is more than `context` sentences away."""
    return {
        name: sum(count for distance, count in counts.items() if distance > context)
        for name, counts in phenomena.items()
    }


def table_column(statistics: dict) -> dict[str, str]:
    """Cells of a table by their names."""
    rows = {"documents": f"{statistics['documents']}", "sentences": f"{statistics['sentences']}"}
    lengths = {"sentences a document": statistics["document_length"]}
    for lang, side in statistics["sides"].items():
        rows |= {f"words, {lang}": f"{side['words']}", f"empty sentences, {lang}": f"{side['empty_sentences']}"}
        lengths[f"words per sentence, {lang}"] = side["sentence_length"]
        lengths[f"words per document, {lang}"] = side["document_length"]
    for name, length in lengths.items():
        rows[name] = f"{length['mean']:.1f} ± {length['deviation']:.1f}"
        rows[f"{name}, quantiles"] = " ".join(map(str, length["quantiles"].values()))
    for name, counts in statistics["phenomena"].items():
        rows[name] = f"{sum(counts.values())}"
        rows[f"{name}, by distance"] = " ".join(f"{distance}:{count}" for distance, count in counts.items())
        if "context" in statistics:
            rows[f"{name}, further than {statistics['context']}"] = f"{statistics['out_of_reach'][name]}"
    return rows


def reading_notes(languages: list[str]) -> list[str]:
    """Notes for readers of the table."""
    quantiles = " ".join(map(str, QUANTILES))
    notes = [WORDS, f"±: standard deviation. Quantiles: {quantiles} %, the last is the largest."]
    return notes + [
        f"{lang} has no blanks between words, so the counts of words hold for segmented text only."
        for lang in languages
        if primary_language(lang) in UNSPACED
    ]


def _side(translation: pa.ChunkedArray, lang: str, counts: np.ndarray) -> dict:
    texts = (text for chunk in translation.chunks for text in chunk.flatten().field(lang).to_pylist())
    words = np.fromiter((len(text.split()) for text in texts), dtype=np.int64, count=int(counts.sum()))
    documents = np.add.reduceat(words, np.cumsum(counts) - counts)
    empty = int((words == 0).sum())
    lengths = {"sentence_length": lengths_of(words), "document_length": lengths_of(documents)}
    return {"words": int(words.sum()), "empty_sentences": empty, **lengths}


def _phenomena(documents: Dataset, counts: np.ndarray) -> dict[str, dict[int, int]]:
    """Labels `name-DISTANCE`, counted by name and distance; those without a distance are skipped."""
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
