"""Counts of connectives: does a system write as many as the reference? (Fei et al. 2022, Table 4)"""

from collections import Counter
from collections.abc import Mapping, Sequence

from hf_docmt.data.language_codes import primary_language
from hf_docmt.data.phrases import checked_phrases, folded, phrase_pattern
from hf_docmt.evaluation.metrics.metric import Documents, Measurement, Metric, TranslatedDocuments, UndefinedError
from hf_docmt.messages import __version__
from hf_docmt.reports.result import PartScore
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import column_sums

CONJUNCTIONS = ("and", "but", "or", "because", "so", "yet", "then")  # those of the paper


def connectives_of(target_lang: str) -> tuple[str, ...]:
    """The connectives of a language that are counted where no others are given. ValueError: it has no list."""
    if primary_language(target_lang) != "en":
        raise ValueError(
            f"without a list of words connectives are counted in English, got {target_lang!r}; give those of that "
            "language from Python to Connectives, as examples/analysis/connectives.py does"
        )
    return CONJUNCTIONS


def count_connectives(documents: Documents, connectives: Sequence[str] = CONJUNCTIONS) -> dict[str, int]:
    """How often each connective, a word or phrase, occurs in the documents.

    Case is folded, and only whole words count, except in scripts without blanks. Matches are counted from the left, the
    longer of two that begin together: with `so` and `so that` in the list, *so that* does not count as *so*. A phrase
    does not reach over the end of a sentence. ValueError: no connectives, or two that differ only in case.
    """
    names = checked_phrases(connectives, "connectives")
    pattern = phrase_pattern(names)
    counts = Counter(
        hit for document in documents for sentence in document for hit in pattern.findall(folded(sentence))
    )
    return {name: counts[name] for name in names}


def connective_table(
    systems: Mapping[str, Documents], connectives: Sequence[str] = CONJUNCTIONS
) -> dict[str, dict[str, int]]:
    """{connective: {system: count}}, the table of the paper; `systems` may have the reference among them."""
    counts = {name: count_connectives(documents, connectives) for name, documents in systems.items()}
    return {
        name: {system: of_system[name] for system, of_system in counts.items()}
        for name in checked_phrases(connectives, "connectives")
    }


class Connectives(Metric):
    """Number of connectives in percent of the reference's, over all and for each of them (Fei et al. 2022).

    `n` counts those of the reference; one that it does not have is not in the breakdown. `details["table"]` has
    the counts side by side, `details["difference"]` sums up how far each of the
    translation's counts is from the reference's. Statistics: [translation, reference] of each document.
    UndefinedError: no connective in the reference.
    """

    name = "connectives"
    choice = "connectives"
    task = "discourse"
    segment = "document"

    def __init__(self, connectives: Sequence[str] = CONJUNCTIONS):
        self.connectives = connectives

    @classmethod
    def check_languages(cls, source_lang, target_lang):
        if target_lang:
            connectives_of(target_lang)

    def measure(self, documents: TranslatedDocuments) -> Measurement:
        sides = {"reference": documents.references, "hypothesis": documents.hypotheses}
        table = connective_table(sides, self.connectives)
        rows = [
            [sum(count_connectives([document], self.connectives).values()) for document in pair]
            for pair in zip(documents.hypotheses, documents.references)
        ]
        expected = column_sums(rows)[1]
        if not expected:
            raise UndefinedError(
                f"the references have none of the connectives {', '.join(table)}; give those of their language"
            )
        signature = {"count": "+".join(table), "unit": "percent-of-reference", "case": "folded"}
        return Measurement(
            [[row] for row in rows],
            Signature.of({**signature, "match": "whole-word,longest-first", "version": __version__}),
            n=expected,
            breakdown={
                f"connective={name}": PartScore(100 * counts["hypothesis"] / counts["reference"], counts["reference"])
                for name, counts in table.items()
                if counts["reference"]
            },
            details={
                "table": table,
                "difference": sum(abs(counts["hypothesis"] - counts["reference"]) for counts in table.values()),
            },
        )
