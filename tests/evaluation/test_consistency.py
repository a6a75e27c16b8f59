"""Term consistency: hand-made documents, Dice against a slow reading, choice of terms, bad input."""

import random

import numpy as np
import pytest
from support.errors import refused

from hf_docmt.evaluation.metrics.metric import TranslatedDocuments
from hf_docmt.evaluation.metrics.term_consistency import (
    LexicalConsistencyRatio,
    TermConsistency,
    find_terms,
)
from hf_docmt.reports.result import PartScore
from hf_docmt.reports.statistics import score_function

WHERE = {"dataset": "d", "split": "s"}


def term_consistency(sources, hypotheses, references=None, *, dataset, split, doc_ids=(), **options):
    made = {name: options.pop(name) for name in ("strategy", "beams") if name in options}
    documents = TranslatedDocuments(hypotheses, references, sources, doc_ids, dataset, split, **made)
    (result,) = TermConsistency(**options).score(documents)
    return result


SOURCES = [
    ["The bank is old .", "He sees the bank .", "Anna sleeps .", "I know Anna ."],
    ["A bank here .", "No bank there .", "Only Peter ."],
]
KEPT = [
    ["Die Bank ist alt .", "Er sieht die Bank .", "Anna schläft .", "Ich kenne Anna ."],
    ["Eine Bank hier .", "Keine Bank dort .", "Nur Peter ."],
]
CHANGED = [KEPT[0], ["Eine Bank hier .", "Kein Ufer dort .", "Nur Peter ."]]
TERMS = {"max_share": 0.6}


def value(sources, hypotheses, **options):
    return term_consistency(sources, hypotheses, **WHERE, **options).value


def test_by_hand():
    """bank in both documents, Anna in the first; Peter is not repeated."""
    assert value(SOURCES, KEPT, **TERMS) == 100
    found = term_consistency(SOURCES, CHANGED, KEPT, **WHERE, **TERMS, doc_ids=["a", "b"])
    assert found.value == pytest.approx(200 / 3) and (found.n, found.task) == (3, "discourse")
    assert found.breakdown == {"kind=name": PartScore(100, 1), "kind=word": PartScore(50, 2)}
    details = found.details
    assert details["statistics"] == {"unit": "document", "ids": ["a", "b"], "rows": [[2, 2], [0, 1]]}
    assert details["agreement"] == pytest.approx(100 * 5 / 6) and details["reference"] == 100
    (change,) = details["changed"]
    assert (change["document"], change["term"], change["translations"][0]) == ("b", "bank", ["bank"])
    assert change["translations"][1] == ["dort"]  # dort, kein, ufer: equal Dice
    sums = np.array(details["statistics"]["rows"]).sum(0, keepdims=True)
    assert score_function(found.metric, 2)(sums)[0] == pytest.approx(found.value)


def test_pairs_of_translations_that_are_alike():
    """LTCR of three sentences with one term: of three pairs one, where consistency of the term is 0."""
    sources, hypotheses = [["The bank .", "A bank .", "My bank ."]], [["Die Bank .", "Ein Ufer .", "Meine Bank ."]]
    documents = TranslatedDocuments(hypotheses, hypotheses, sources)
    (result,) = LexicalConsistencyRatio(max_share=1).score(documents)
    assert result.value == pytest.approx(100 / 3) and result.n == 3 and result.details["reference"] == result.value
    assert result.details["statistics"]["rows"] == [[1, 3]] and result.signature["kept"] == "in-pairs-of-sentences"
    assert TermConsistency(max_share=1).score(documents)[0].value == 0


def test_terms_by_rule():
    """Words of four letters in at most half of the sentences: bank, Anna; the rest is not repeated or too short."""
    found = term_consistency(SOURCES, CHANGED, **WHERE, max_share=0.6)
    assert found.value == pytest.approx(200 / 3) and found.n == 3
    assert found.breakdown["kind=name"] == PartScore(100, 1)
    assert found.details["reference"] is None
    assert term_consistency(SOURCES, CHANGED, **WHERE, max_share=0.5).n == 1  # bank stands in 4 of 7


def test_unscored_translations():
    """An empty sentence does not keep a translation."""
    empty = [KEPT[0], ["Eine Bank hier .", "", "Nur Peter ."]]
    found = term_consistency(SOURCES, empty, **WHERE, **TERMS)
    assert found.value == pytest.approx(200 / 3)
    assert found.details["changed"][0]["translations"] == [["bank"], []]
    assert value([["bank", "bank"]], [["", ""]], max_share=1) == 0


def test_prefix():
    """Endings do not matter on either side."""
    sources = [["The wizards came", "A wizard went", "Nobody"], ["Others", "Nothing"]]
    hypotheses = [["Die Zauberern kamen", "Ein Zauberer ging", "Keiner"], ["Andere", "Nichts"]]
    found = term_consistency(sources, hypotheses, **WHERE, max_share=0.5)
    assert (found.value, found.n) == (100, 1)


def test_choice_of_terms():
    sources = [["Anna saw Lake Como in 2001", "the lake and como 2001", "We say: Peter-Paul saw the sea", "Hers"]]
    sentences, names = find_terms(sources, max_share=0.5)
    assert sentences[0] == [{"anna", "lake", "como"}, {"lake", "como"}, {"peter-"}, {"hers"}]
    assert names == {"peter-"}  # lake and como are small once, Anna only stands first
    assert find_terms(sources, max_share=0.25)[0][0] == [{"anna"}, set(), {"peter-"}, {"hers"}]


def slow_consistency(sources, hypotheses, terms):
    """(kept, repeated) with every coefficient counted anew; words are parted by blanks."""
    pairs = [pair for sides in zip(sources, hypotheses) for pair in zip(*sides)]

    def dice(term, word):
        with_term = [term in source.split() for source, _ in pairs]
        with_word = [word in target.split() for _, target in pairs]
        return 2 * sum(a and b for a, b in zip(with_term, with_word)) / (sum(with_term) + sum(with_word))

    kept = repeated = 0
    for document, translation in zip(sources, hypotheses):
        for term in terms:
            indices = [index for index, sentence in enumerate(document) if term in sentence.split()]
            if len(indices) < 2:
                continue
            chosen = set()
            for index in indices:
                best = None
                for word in sorted(set(translation[index].split())):
                    if best is None or dice(term, word) > dice(term, best):
                        best = word
                chosen.add(best)
            repeated += 1
            kept += len(chosen) == 1 and None not in chosen
    return kept, repeated


@pytest.mark.parametrize("seed", range(4))
def test_equals_slow_reading(seed):
    rng = random.Random(seed)
    english, german = ["aaaa", "bbbb", "cccc", "dddd", "the"], ["uuu", "vvv", "www", "xxx", "die", "das"]

    def text(words):
        return " ".join(rng.choices(words, k=rng.randrange(5)))

    sources = [[text(english) for _ in range(4)] for _ in range(12)]
    hypotheses = [[text(german) for _ in range(4)] for _ in range(12)]
    kept, repeated = slow_consistency(sources, hypotheses, english[:4])
    found = term_consistency(sources, hypotheses, **WHERE, max_share=1)
    assert 0 < kept < repeated == found.n and found.value == pytest.approx(100 * kept / repeated)


def test_signature():
    by_rule = str(term_consistency(SOURCES, KEPT, **WHERE, max_share=0.6).signature)
    assert by_rule.startswith(
        "terms:length>=4,sentences<=60%|repeated:2-sentences-of-a-document|kept:in-all-sentences|"
        "align:dice-over-scored-documents|prefix:6|version:"
    )


def test_nothing_is_repeated():
    message = "no document repeats a term; give a larger max_share than 0.02"
    refused(message, term_consistency, SOURCES, KEPT, KEPT, **WHERE)
