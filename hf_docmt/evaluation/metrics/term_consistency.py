"""Term and name consistency: does a term that a document repeats keep its translation?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, combinations
from typing import ClassVar

from hf_docmt.data.language_codes import UNSPACED, primary_language
from hf_docmt.data.phrases import folded, words
from hf_docmt.evaluation.metrics.metric import Documents, Measurement, Metric, TranslatedDocuments, UndefinedError
from hf_docmt.messages import __version__
from hf_docmt.reports.result import PartScore
from hf_docmt.reports.signature import Signature

SHORTEST = 4  # letters of a word that is a term by rule
PREFIX = 6  # characters by which words are compared, so that endings do not matter
SHOWN = 20  # changed terms in the details
Use = tuple[str, list[set[str]]]  # a repeated term of a document, and its translations in each of its sentences
Translations = list[list[dict[str, set[str]]]]  # [document][sentence]: {term: its translations there}


class TermConsistency(Metric):
    """Share of repeated source terms that keep their translation, in percent.

    A term counts once for each document in which two or more sentences have it; it keeps its translation if one
    translation is in all of them. Terms are found by rule (`find_terms`), so `n` depends on the source alone.

    Alignment: one word, that with the highest Dice coefficient 2·n(term, word) / (n(term) + n(word)), n counting
    sentences of the whole set of scored documents, the alphabetically first of equals; a sentence without words has
    none. Words are compared by their first PREFIX characters. The coefficients are made from the very translations that
    are scored, so a small set gives low figures; `details["reference"]` has that of the references by the same method,
    to compare with. Both languages must part words by blanks.

    `details` further has `agreement`, the share of sentences with the most frequent translation of their term in the
    document, and the first `changed` terms. Statistics: [kept, terms] of each document. UndefinedError: nothing
    repeated.
    """

    name = "term consistency"
    choice = "terms"
    task = "discourse"
    needs_sources = True
    segment = "document"
    kept: ClassVar[str] = "in-all-sentences"  # in the signature

    def __init__(self, max_share: float = 0.02):
        self.max_share = max_share

    @classmethod
    def check_languages(cls, source_lang, target_lang):
        if primary_language(target_lang) in UNSPACED:
            raise ValueError(f"terms need a language that parts words by blanks, got {target_lang!r}; omit them")

    def measure(self, documents: TranslatedDocuments) -> Measurement:
        sources, references = self.required_sources(documents), documents.references
        terms, names = find_terms(sources, self.max_share)
        uses = self._uses(terms, documents.hypotheses)
        flat = list(chain(*uses))
        if not flat:
            raise UndefinedError(f"no document repeats a term; give a larger max_share than {self.max_share:g}")
        kinds: dict[str, list[Use]] = {"name": [], "word": []}
        for use in flat:
            kinds["name" if use[0] in names else "word"].append(use)
        changed = [
            {"document": name, "term": use[0], "translations": list(map(sorted, use[1]))}
            for name, document in zip(documents.ids, uses)
            for use in document
            if not is_kept(use)
        ]
        signature = {
            "terms": f"length>={SHORTEST},sentences<={100 * self.max_share:g}%",
            "repeated": "2-sentences-of-a-document",
            "kept": self.kept,
            "align": "dice-over-scored-documents",
            "prefix": PREFIX,
            "version": __version__,
        }
        return Measurement(
            [[self._counted(document)] for document in uses],
            Signature.of(signature),
            n=self._counted(flat)[1],
            breakdown={f"kind={kind}": self._share(some) for kind, some in kinds.items() if some},
            details={
                "agreement": 100 * sum(most_frequent(own) for _, own in flat) / sum(len(own) for _, own in flat),
                "reference": references and self._share(list(chain(*self._uses(terms, references)))).value,
                "changed": changed[:SHOWN],
            },
        )

    @staticmethod
    def _counted(uses: Sequence[Use]) -> list[int]:
        """[kept, terms] of these terms."""
        return [sum(map(is_kept, uses)), len(uses)]

    def _share(self, uses: Sequence[Use]) -> PartScore:
        kept, number = self._counted(uses)
        return PartScore(100 * (kept / number), number)

    @staticmethod
    def _uses(terms: Sequence[Sequence[set[str]]], side: Documents) -> list[list[Use]]:
        """The repeated terms of every document with their translations on this side."""
        return [repeated_terms(*pair) for pair in zip(terms, _associate(terms, side))]


class LexicalConsistencyRatio(TermConsistency):
    """Share of pairs of sentences of a document that translate a repeated term alike, in percent; Lyu et al. (2021).

    LTCR counts, for each term with k sentences, the k(k - 1)/2 pairs of its translations, and those that are the same.
    Terms and alignment are those of `TermConsistency`, where the authors align words by a tool of its own: compare with
    figures by this metric. Statistics: [same pairs, pairs] of each document.
    """

    name = "LTCR"
    choice = "ltcr"
    kept = "in-pairs-of-sentences"

    @staticmethod
    def _counted(uses):
        pairs = [pair for _, translations in uses for pair in combinations(translations, 2)]
        return [sum(bool(first & second) for first, second in pairs), len(pairs)]


def most_frequent(translations: Sequence[set[str]]) -> int:
    """The number of sentences with the most frequent translation."""
    return max(Counter(chain(*translations)).values(), default=0)


def is_kept(use: Use) -> bool:
    """Whether one translation is in all sentences."""
    return most_frequent(use[1]) == len(use[1])


def repeated_terms(sentences: Sequence[set[str]], translations: Sequence[dict[str, set[str]]]) -> list[Use]:
    """The terms that two or more sentences of a document have, with their translations there."""
    counts = Counter(term for terms in sentences for term in sorted(terms))
    own = list(zip(sentences, translations))
    repeated = [term for term, count in counts.items() if count > 1]
    return [(term, [found[term] for terms, found in own if term in terms]) for term in repeated]


def _associate(terms_of: Sequence[Sequence[set[str]]], documents: Documents) -> Translations:
    """The word of the sentence that is associated best with the term."""
    targets = [[{word[:PREFIX] for word in words(folded(text))} for text in document] for document in documents]
    pairs = list(zip(chain(*terms_of), chain(*targets)))
    of_term = Counter(term for terms, _ in pairs for term in terms)
    of_word = Counter(word for _, some in pairs for word in some)
    joint = Counter((term, word) for terms, some in pairs for term in terms for word in some)

    def best(term: str, some: set[str]) -> set[str]:
        dice = {word: 2 * joint[term, word] / (of_term[term] + of_word[word]) for word in some}
        return {min(dice, key=lambda word: (-dice[word], word))} if dice else set()

    return [
        [{term: best(term, some) for term in terms} for terms, some in zip(*sides)] for sides in zip(terms_of, targets)
    ]


def find_terms(sources: Documents, max_share: float) -> tuple[list[list[set[str]]], set[str]]:
    """The terms of every sentence of every document, and those that are names.

    They are words of four letters and more in at most `max_share` of all sentences, which excludes the commonest.

    Words are compared by their first PREFIX characters, case folded; a term is called by these. A name is written
    with a capital wherever it is not the first word of a sentence, at least once; where all nouns are, so are nouns.
    """
    written = [[words(sentence) for sentence in document] for document in sources]
    stems = [[[folded(word)[:PREFIX] for word in sentence] for sentence in document] for document in written]
    counts = Counter(term for document in stems for sentence in document for term in set(sentence))
    limit = max_share * sum(map(len, sources))
    rare, capital, small = set(), set(), set()
    for words_of, stems_of in zip(chain(*written), chain(*stems)):
        for index, (word, term) in enumerate(zip(words_of, stems_of)):
            if len(word) >= SHORTEST and not word.isdigit() and counts[term] <= limit:
                rare.add(term)
            if index:
                (capital if word[0].isupper() else small).add(term)
    return [[rare & set(sentence) for sentence in document] for document in stems], capital - small
