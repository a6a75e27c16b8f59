"""Term success rates: does a translation have the terms of a glossary? Counted by the rules of WMT25 and WMT26."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import regex

from hf_docmt.data.glossary import TOKEN, BaseForms, Glossary, Span, visible
from hf_docmt.evaluation.metrics.metric import Measurement, Metric, TranslatedDocuments, UndefinedError
from hf_docmt.messages import __version__
from hf_docmt.reports.signature import Signature, content_digest

SHOWN = 20  # missed terms in the details
Entry = Mapping[str, Any]  # source, targets; of an annotated occurrence also sentence and inflected


class Lemmas:
    """Lemmas of the words of a language by simplemma, or by the function `lemma`."""

    def __init__(self, lang: str | None, lemma: Callable[[str], str] | None = None):
        base = BaseForms(lang)
        self.lang, self.is_spaced = base.lang, base.is_spaced
        self.lemma = lemma or (cache(partial(_lemma, lang=base.lang)) if base.has_dictionary else str.lower)
        self.words = cache(self._words)

    def _words(self, text: str) -> list[tuple[Span, str]]:
        return [(Span(*match.span()), self.lemma(match[0])) for match in TOKEN.finditer(text)]

    def joined(self, text: str, separator: str) -> str:
        return separator.join(lemma for _, lemma in self.words(text))

    def has(self, term: str, text: str) -> bool:
        """Whether a term, or its lemmas, are a part of a text, without regard to the edges of words."""
        is_part = term.lower() in text.lower()
        return is_part or self.is_spaced and self.joined(term, "|||") in self.joined(text, "|||")

    def places(self, form: str, text: str) -> set[Span]:
        """The places of a form, or of its lemmas, in a text, between edges of words."""
        found = {Span(*span) for span in self._spans(visible(form), text)}
        lemmas, ends, length = self.words(text), {}, 0
        for span, lemma in lemmas:
            ends |= {length: span.start, length + len(lemma): span.stop}
            length += len(lemma) + 1
        inner = self._spans(self.joined(visible(form), " "), " ".join(lemma for _, lemma in lemmas))
        return found | {Span(ends[start], ends[stop]) for start, stop in inner if start in ends and stop in ends}

    def _spans(self, form: str, text: str) -> Iterable[tuple[int, int]]:
        edges = r"(?<!\w){}(?!\w)" if self.is_spaced else "{}"
        pattern = edges.format(regex.escape(form, special_only=True, literal_spaces=True))
        return [match.span() for match in regex.finditer(pattern, text, regex.IGNORECASE, overlapped=True) if form]


def _lemma(word: str, lang: str) -> str:
    from simplemma import lemmatize

    return lemmatize(word, lang).lower()


class TermSuccess(Metric):
    """Terms of the source sentence that the translation has, in percent, as WMT25's terminology task (track 1) counts.

    An entry counts once for each sentence whose source has its term, and is found if the translation has one of its
    targets: as letters, or as lemmas, without regard to the edges of words. simplemma replaces the organisers' Stanza,
    whose lemmas depend on the sentence: rates of their systems differ by 0.15 points on average, in both directions.
    `glossary`: a file, unless the documents have their own `terms`. Statistics: [found, wanted].
    """

    name = "term success"
    needs_sources = True
    evaluation_options = {"glossary": "glossary"}
    rule = "wmt25-sentence"

    def __init__(self, glossary: str | Path | None = None, lemma: Callable[[str], str] | None = None):
        self.glossary, self.lemma = glossary, lemma

    def measure(self, documents: TranslatedDocuments) -> Measurement:
        self.source, self.target = (Lemmas(lang, self.lemma) for lang in (documents.source_lang, documents.target_lang))
        self.missed: list[dict[str, Any]] = []
        terms = self._terms(documents)
        rows = zip(documents.ids, self.required_sources(documents), documents.hypotheses, documents.references or ())
        statistics = [self.document_statistics(doc_id, terms[doc_id], *sides) for doc_id, *sides in rows]
        wanted = sum(row[1] for document in statistics for row in document)
        if not wanted:
            raise UndefinedError("no source has a term of the glossary; check its languages and direction")
        entries = sorted({(entry["source"], *entry["targets"]) for own in terms.values() for entry in own})
        signature = {"rule": self.rule, "glossary": content_digest([entries])}
        signature["lemmas"] = "own" if self.lemma else f"simplemma-{version('simplemma')}"
        details = {"missed": self.missed[:SHOWN]}
        return Measurement(
            statistics, Signature.of(signature | {"version": __version__}), n=int(wanted), details=details
        )

    def _terms(self, documents: TranslatedDocuments) -> Mapping[str, Sequence[Entry]]:
        """The entries of each document."""
        if documents.terms is not None:
            return documents.terms
        if self.glossary is None:
            raise ValueError(f"{self.name} needs a glossary; give a file, or documents with their own terms")
        glossary = Glossary.of(self.glossary, documents.source_lang, documents.target_lang)
        entries = [{"source": term.source, "targets": list(term.targets)} for term in glossary.terms if term.targets]
        return dict.fromkeys(documents.ids, entries)

    def document_statistics(self, doc_id: str, entries: Sequence[Entry], *sides: Sequence[str]) -> list[list[float]]:
        """[found, wanted] of each segment of a document; `sides` are sources, translations and references."""
        rows = []
        for number, (source, hypothesis, *_) in enumerate(zip(*sides), 1):
            wanted = [entry for entry in entries if self.source.has(entry["source"], source)]
            missed = [entry for entry in wanted if not any(self.target.has(t, hypothesis) for t in entry["targets"])]
            self._report(doc_id, number, missed)
            rows.append([len(wanted) - len(missed), len(wanted)])
        return rows

    def _report(self, doc_id: str, number: int, missed: Iterable[Entry]) -> None:
        self.missed += [
            {"document": doc_id, "sentence": number, "term": entry["source"], "wanted": list(entry["targets"])}
            for entry in missed
        ]


class DocumentTermSuccess(TermSuccess):
    """As often as in the source, in percent: the rule of WMT25's terminology task for documents (track 2).

    An entry counts if its term is in the source and one of its targets in the reference; its success is the number of
    targets in the translation over the number of terms in the source, at most 1. Parts of words count, in any case.
    """

    name = "d-term success"
    segment = "document"
    rule = "wmt25-document"

    def document_statistics(self, doc_id, entries, *sides):
        source, hypothesis, reference = ("\n".join(side).lower() for side in sides)
        row = [0.0, 0.0]
        for entry in entries:
            term, targets = entry["source"].strip().lower(), [target.lower() for target in entry["targets"]]
            if term and term in source and any(target in reference for target in targets):
                hits = sum(hypothesis.count(target.strip()) for target in targets)
                row = [row[0] + min(1.0, hits / source.count(term)), row[1] + 1]
                if not hits:
                    self._report(doc_id, 1, [entry])
        return [row]


class ExclusiveTermSuccess(TermSuccess):
    """Occurrences of terms with a stretch of the translation of their own, in percent: WMT26's first score.

    Each occurrence of a term in the source is wanted once, in one of its forms or their lemmas, between edges of words;
    the largest number that overlaps nowhere counts. Terms are found in the source by base forms, or are annotated
    (entries with `sentence`, from 0, and maybe the form `inflected`).
    """

    name = "exclusive term success"
    rule = "wmt26-exclusive"

    def document_statistics(self, doc_id, entries, *sides):
        find = self._finder(entries)
        rows = []
        for number, (source, hypothesis, *_) in enumerate(zip(*sides)):
            wanted = [(entry, self._places(entry, hypothesis)) for entry in find(number, source)]
            self._report(doc_id, number + 1, (entry for entry, places in wanted if not places))
            rows.append([most_exclusive([places for _, places in wanted]), len(wanted)])
        return rows

    def _finder(self, entries: Sequence[Entry]) -> Callable[[int, str], list[Entry]]:
        """The function from a sentence to the entries of its occurrences."""
        if any("sentence" in entry for entry in entries):
            return lambda number, source: [entry for entry in entries if entry["sentence"] == number]
        if not entries:
            return lambda number, source: []
        pairs = [(entry["source"], target) for entry in entries for target in entry["targets"]]
        glossary = Glossary(pairs, self.source.lang, self.target.lang)
        return lambda number, source: [match.term._asdict() for match in glossary.in_source(source)]

    def _places(self, entry: Entry, hypothesis: str) -> frozenset[Span]:
        forms = filter(None, (*entry["targets"], entry.get("inflected")))
        return frozenset(span for form in forms for span in self.target.places(form, hypothesis))


def most_exclusive(occurrences: Sequence[frozenset[Span]]) -> int:
    """The largest number of occurrences that can have one of their places each, without overlaps."""
    counts = Counter(filter(None, occurrences))
    places = [(kind, span) for kind, spans in enumerate(counts) for span in sorted(spans)]
    if len(places) < 2:
        return len(places)
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp

    kinds = [[own == kind for own, _ in places] for kind in range(len(counts))]
    covered = [[span.start <= at.start < span.stop for _, span in places] for _, at in places]
    limits = LinearConstraint(np.array(kinds + covered, float), ub=[*counts.values(), *[1] * len(places)])
    found = milp(-np.ones(len(places)), constraints=limits, integrality=np.ones(len(places)), bounds=Bounds(0, 1))
    return round(-found.fun)
