"""Repeated terms of source documents: names and rare words found by rule, or terms from a list."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from hf_docmt.evaluation.metrics.phrases import checked_phrases, folded, phrase_pattern, words
from hf_docmt.evaluation.metrics.translated_documents import Documents

SHORTEST = 4  # letters of a word that is a term by rule


@dataclass(frozen=True)
class Terms:
    """The terms of every sentence of every document, and those that are names."""

    sentences: list[list[set[str]]]
    names: set[str]

    def repeated(self, document: int) -> dict[str, list[int]]:
        """The sentences, from 0, of each term that stands in two or more of a document."""
        indices: dict[str, list[int]] = {}
        for number, terms in enumerate(self.sentences[document]):
            for term in sorted(terms):
                indices.setdefault(term, []).append(number)
        return {term: found for term, found in indices.items() if len(found) > 1}


def find_terms(sources: Documents, max_share: float, prefix: int | None) -> Terms:
    """Words of four letters and more that stand in at most `max_share` of all sentences, so that the commonest go.

    Words are compared by their first `prefix` characters, case folded; a term is called by these. A name is written
    with a capital wherever it is not the first word of a sentence, at least once; where all nouns are, so are nouns.
    """
    if not 0 < max_share <= 1:
        raise ValueError(f"max_share is {max_share}, expected a share of the sentences, more than 0 and at most 1")
    written = [[words(sentence) for sentence in document] for document in sources]
    stems = [[[stem(folded(word), prefix) for word in sentence] for sentence in document] for document in written]
    counts = Counter(term for document in stems for sentence in document for term in set(sentence))
    limit = max_share * sum(map(len, sources))
    rare, capital, small = set(), set(), set()
    for words_of, stems_of in zip(chain(*written), chain(*stems)):
        for index, (word, term) in enumerate(zip(words_of, stems_of)):
            if len(word) >= SHORTEST and not word.isdigit() and counts[term] <= limit:
                rare.add(term)
            if index:
                (capital if word[0].isupper() else small).add(term)
    return Terms([[rare & set(sentence) for sentence in document] for document in stems], capital - small)


def listed_terms(sources: Documents, listed: Sequence[str]) -> Terms:
    """The terms of a list, words or phrases, case folded, as whole words; of two that begin together the longer one.

    A name is a term that the list writes with a capital.
    """
    terms = checked_phrases(listed, "terms")
    pattern = phrase_pattern(terms)
    found = [[set(pattern.findall(folded(sentence))) for sentence in document] for document in sources]
    return Terms(found, {term for term, written in zip(terms, listed) if written[:1].isupper()})


def stem(word: str, prefix: int | None) -> str:
    """The part of a word that is compared: the first characters, None: all."""
    return word[:prefix]
