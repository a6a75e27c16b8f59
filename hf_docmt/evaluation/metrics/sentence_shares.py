"""Measures of a translation that need little knowledge of its language: length, blank, copied, untranslated text."""

from collections.abc import Sequence
from dataclasses import replace

from hf_docmt.data.language_codes import UNSPACED, primary_language
from hf_docmt.data.phrases import folded, words
from hf_docmt.evaluation.metrics.metric import Metric, TranslatedDocuments


class LengthRatio(Metric):
    """Length of the translation in percent of the reference's, in words between blanks, or in characters without them.

    Characters count for languages that do not part words by blanks. Statistics: [translation, reference].
    """

    name = "length ratio"
    choice = "length"

    def segment_statistics(self, documents):
        unspaced = primary_language(documents.target_lang) in UNSPACED

        def length(text: str) -> int:
            return len("".join(text.split())) if unspaced else len(text.split())

        pairs = zip(documents.hypotheses, documents.references)
        return [[[length(own), length(reference)] for own, reference in zip(*pair)] for pair in pairs]


class SentenceShare(Metric):
    """Sentences of some kind in percent of those whose reference has text. Statistics: [of this kind, with text]."""

    @staticmethod
    def is_one(source: str, hypothesis: str, reference: str) -> bool:
        """Whether a sentence with this source and reference was translated so that it is of the kind."""
        raise NotImplementedError

    def segment_statistics(self, documents):
        sources = self.required_sources(documents) if self.needs_sources else documents.references
        sides = zip(sources, documents.hypotheses, documents.references)
        return [[self._row(*texts) for texts in zip(*document)] for document in sides]

    def _row(self, *texts: str) -> Sequence[float]:
        has_text = bool(texts[2].strip())
        return [float(has_text and self.is_one(*texts)), float(has_text)]

    def measure(self, documents: TranslatedDocuments):
        measured = super().measure(documents)
        number = int(sum(row[1] for document in measured.statistics for row in document))
        return replace(measured, n=number)


class BlankShare(SentenceShare):
    """Sentences without text where the reference has some."""

    name = "blank sentences"
    choice = "blank"

    @staticmethod
    def is_one(source, hypothesis, reference):
        return not hypothesis.strip()


class CopiedShare(SentenceShare):
    """Sentences equal to their source except for case and blanks, where the reference differs and has a letter."""

    name = "copied sentences"
    choice = "copied"
    needs_sources = True

    @staticmethod
    def is_one(source, hypothesis, reference):
        source, hypothesis, reference = (folded(" ".join(text.split())) for text in (source, hypothesis, reference))
        return hypothesis == source != reference and any(map(str.isalpha, source))


class UntranslatedShare(SentenceShare):
    """Sentences with more than half of their words in the source but not in the reference."""

    name = "untranslated sentences"
    choice = "untranslated"
    needs_sources = True

    @staticmethod
    def is_one(source, hypothesis, reference):
        own = words(folded(hypothesis))
        left = set(words(folded(source))) - set(words(folded(reference)))
        return 2 * sum(word in left for word in own) > len(own)
