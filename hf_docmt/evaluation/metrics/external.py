"""Scores that another program gave: read for means, breakdowns and tests as ours have them, and the input it takes."""

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hf_docmt.data.documents import id_text
from hf_docmt.evaluation.metrics.metric import Measurement, Metric, TranslatedDocuments, metric_classes
from hf_docmt.files import DataError, display_path, location_of, parse_json, read_lines, write_lines
from hf_docmt.messages import check_known, counted
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import register_score_function, score_function

ERRORS = ("metricx", "mqm")  # how names of scores begin that count errors
SCORE_KEYS = ("score", "prediction")  # the second is MetricX's
INPUTS: dict[str, Callable[[str, str, str], dict[str, str]]] = {  # of programs, from source, hypothesis and reference
    "metricx": lambda *sides: dict(zip(("source", "hypothesis", "reference"), sides)),
    "comet": lambda *sides: dict(zip(("src", "mt", "ref"), sides)),
}


class ExternalScore(Metric):
    """The mean of scores from a file, such as those of MetricX, XCOMET, GEMBA, or of people (ESA, MQM).

    One number per line, for each sentence or for each document, in the order of the references; or JSON lines with
    `doc_id`, `score` or `prediction`, and `sentence` (from 1) unless the score is of the whole document, or of several
    `sentences` from there on, as `write_scorer_input` groups them. Sentences that are blank on both sides need none. A
    document with several scores counts several times. Higher is better, except for MetricX and MQM without negative
    scores; a name NAME:lower or NAME:higher sets it. ValueError: a name that one of our own metrics has; DataError:
    scores that are missing, of other documents, or not finite numbers.
    """

    several_references = True

    def __init__(self, name: str, path: str | Path):
        name, colon, better = name.partition(":")
        if not name or name in metric_classes():
            raise ValueError(f"external scores are called {name!r}, expected a name of their own, such as MetricX")
        if colon and better not in ("lower", "higher"):
            raise ValueError(f"external scores {name!r}: {better!r} is better, expected NAME:lower or NAME:higher")
        self.name, self.path, self.better = name, path, better  # type: ignore[misc]  # every file has its own
        register_score_function(name, score_function("a mean", 2, scale=1.0))

    def measure(self, documents: TranslatedDocuments) -> Measurement:
        statistics, self.segment = self._read(documents)  # type: ignore[misc]
        number = sum(int(row[1]) for document in statistics for row in document)
        is_negative = any(row[0] < 0 for rows in statistics for row in rows)
        counts_errors = self.name.lower().startswith(ERRORS) and not is_negative
        better = self.better or ("lower" if counts_errors else "higher")
        entries = {"scores": "external", "better": better, "segments": self.segment}
        return Measurement(statistics, Signature.of(entries), n=number)

    def _read(self, documents: TranslatedDocuments) -> tuple[list[list[list[float]]], str]:
        """[sum of scores, their number] of each sentence or document, and which of the two."""
        lines = list(read_lines(self.path))
        if lines[0][1].lstrip().startswith("{"):
            return self._by_id(lines, documents)
        lengths, empty = [len(document) for document in documents.hypotheses], len(documents.without_sentences)
        scores = [[finite_number(text, self.path, number), 1.0] for number, text in lines]
        of_sentences = len(scores) == sum(lengths)
        if of_sentences and len(scores) in (len(lengths), len(lengths) + empty) and set(lengths) != {1}:
            raise DataError(
                f"{display_path(self.path)}: {counted(len(scores), 'score')}, as many as sentences and as documents; "
                "give JSON lines with doc_id"
            )
        if of_sentences:
            remaining = iter(scores)
            return [[next(remaining) for _ in range(length)] for length in lengths], "sentence"
        if len(scores) != len(lengths):
            raise DataError(
                f"{display_path(self.path)}: {counted(len(scores), 'score')} for {counted(sum(lengths), 'sentence')} "
                f"in {counted(len(lengths), 'document')}; give one for each sentence, or for each document"
            )
        return [[score] for score in scores], "document"

    def _by_id(self, lines: Sequence[tuple[int, str]], documents: TranslatedDocuments):
        sizes = {doc_id: len(document) for doc_id, document in zip(documents.ids, documents.hypotheses)}
        known = sizes | dict.fromkeys(documents.without_sentences, 0)
        of_documents: dict[str, list[float]] = {}
        of_sentences: dict[tuple[str, int], float] = {}
        for number, line in lines:
            doc_id, sentence, score = self._scored(number, line, known, of_sentences)
            if sentence is None:
                of_documents.setdefault(doc_id, []).append(score)
            else:
                of_sentences[doc_id, sentence] = score
        if of_sentences and of_documents:
            raise DataError(f"{display_path(self.path)}: scores of sentences and of documents; give one kind")
        missing: list[tuple[str, int]]
        if of_sentences:
            keys = [[(doc_id, number) for number in range(1, size + 1)] for doc_id, size in sizes.items()]
            rows = [[[of_sentences.get(key, 0.0), float(key in of_sentences)] for key in document] for document in keys]
            missing = [key for key in _visible(documents) if key not in of_sentences]
        else:
            scored = [of_documents.get(doc_id, []) for doc_id in sizes]
            rows = [[[math.fsum(scores), float(len(scores))]] for scores in scored]
            missing = [(doc_id, 0) for doc_id in dict(_visible(documents)) if doc_id not in of_documents]
        if missing:
            what = f"document {missing[0][0]!r}" + (f", sentence {missing[0][1]}" if missing[0][1] else "")
            raise DataError(f"{display_path(self.path)}: {counted(len(missing), 'score')} missing, the first of {what}")
        return rows, "sentence" if of_sentences else "document"

    def _scored(
        self, number: int, line: str, sizes: Mapping[str, int], before: Collection[tuple[str, int]]
    ) -> tuple[str, int | None, float]:
        """Document, sentence (None: the score is of the document, or of several sentences) and score of a line."""
        location, row = location_of(self.path, number), parse_json(line, self.path, number)
        row = row if isinstance(row, dict) else {}
        doc_id, sentence = id_text(row.get("doc_id")), row.get("sentence")
        if doc_id not in sizes:
            raise DataError(f"{location}: `doc_id` is {doc_id!r}, which is not a document of the reference")
        key = next((key for key in SCORE_KEYS if key in row), SCORE_KEYS[0])
        score = finite_number(row.get(key), self.path, number)
        if sentence is None or "sentences" in row:
            return doc_id, None, score
        is_number = isinstance(sentence, int) and not isinstance(sentence, bool) and 1 <= sentence <= sizes[doc_id]
        if not is_number or (doc_id, sentence) in before:
            raise DataError(
                f"{location}: `sentence` is {sentence!r}, expected each of 1 to {sizes[doc_id]} once for {doc_id!r}"
            )
        return doc_id, sentence, score


def finite_number(value: Any, path: str | Path, line: int) -> float:
    """A score; DataError for what is not a finite number."""
    try:
        number = float(value) if "_" not in str(value) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise DataError(f"{location_of(path, line)}: {value!r:.60} is not a finite number; score it again")
    return number


def write_scorer_input(
    path: str | Path, documents: TranslatedDocuments, format: str, window: int = 1, stride: int | None = None
) -> None:
    """JSON lines as a program of `INPUTS` takes them, with the ids by which its output is read again.

    With a `window` of several sentences each line has that number, joined by blanks, every `stride` of them (default:
    the window), and the last ones of a document: SLIDE (Raunak et al. 2023). Sentences that are blank on all sides are
    skipped. ValueError: an unknown format, a window below 1; DataError: a document without sources.
    """
    check_known(format, INPUTS, "format of scorers", "expected one of")
    stride = window if stride is None else stride
    if window < 1 or stride < 1:
        raise ValueError(f"windows of {window} sentences, every {stride}; expected 1 or more")
    sources = documents.sources or [None] * len(documents.hypotheses)
    rows = []
    for doc_id, *sides in zip(documents.ids, sources, documents.hypotheses, documents.references):
        if not isinstance(sides[0], list):
            raise DataError(
                f"document {doc_id!r} has no source next to its translation; give the JSON lines of docmt translate"
            )
        kept = [(n, *texts) for n, texts in enumerate(zip(*sides), 1) if any(text.strip() for text in texts[1:])]
        for start in _starts(len(kept), window, stride):
            some = kept[start : start + window]
            ids = {"doc_id": doc_id, "sentence": some[0][0]} | ({"sentences": len(some)} if window > 1 else {})
            texts = [" ".join(texts) for texts in list(zip(*some))[1:]]
            rows.append(json.dumps(ids | INPUTS[format](*texts), ensure_ascii=False))
    write_lines(rows, path)


def _starts(length: int, window: int, stride: int) -> Iterator[int]:
    """Where windows begin: the last one reaches the end."""
    last = max(0, length - window)
    yield from (start for start in range(0, length, stride) if start < last)
    if length:
        yield last


def _visible(documents: TranslatedDocuments) -> Iterator[tuple[str, int]]:
    for doc_id, *sides in zip(documents.ids, documents.hypotheses, documents.references):
        yield from ((doc_id, n) for n, texts in enumerate(zip(*sides), 1) if any(text.strip() for text in texts))
