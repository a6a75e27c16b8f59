"""Replaced contexts, accuracy under each, CXMI and P-CXMI: by hand, by a slow loop, and with bad input."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from support.errors import refused
from support.tiny_models import build, documents_of, word_tokenizer

from hf_docmt.evaluation.context_ablation import CONDITIONS, with_context
from hf_docmt.evaluation.contrast import context_results
from hf_docmt.evaluation.cxmi import (
    cxmi_report,
    cxmi_result,
    document_items,
    pointwise_cxmi,
    token_gains,
    word_gains,
    words_with_gains,
)
from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.reports.resampling import bootstrap_interval
from hf_docmt.reports.statistics import score_function
from hf_docmt.systems import ContextReach, DocMTSystem


def item(number, document, context=3, after=0, **changes):
    """An item whose every sentence says where it comes from."""
    given = {
        "item_id": f"i{number}",
        "source": tuple(f"{document} before {number}.{i}" for i in range(context)) + (f"{document} now {number}",),
        "target_context": tuple(f"T {document} before {number}.{i}" for i in range(context)),
        "candidates": (f"right {number}", f"wrong {number}"),
        "correct": 0,
        "phenomenon": "it" if number % 2 else "they",
        "distance": 1,
        "source_after": tuple(f"{document} after {number}.{i}" for i in range(after)),
        "target_after": tuple(f"T {document} after {number}.{i}" for i in range(after)),
        "group": document,
    }
    return SuiteItem(**{**given, **changes})


ITEMS = [item(n, "abc"[n % 3], context=(3, 3, 3, 1)[n // 6], after=n // 12) for n in range(24)]
ITEMS += [item(24, "a", context=0)]


def context(one):
    return list(zip(one.source[:-1], one.target_context)) + list(zip(one.source_after, one.target_after))


def rest(one):
    return replace(one, source=one.source[-1:], target_context=(), source_after=(), target_after=(), index=None)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_only_the_context_changes(condition):
    found = with_context(ITEMS, condition)
    assert [rest(one) for one in found] == [rest(one) for one in ITEMS]
    for one, old in zip(found, ITEMS):
        assert all(target == f"T {source}" for source, target in context(one))  # pairs stay pairs
        if condition == "true":
            assert one == old
        else:
            assert (one.index or 0) == len(old.source) - 1  # the index in the document stays
        if condition == "empty":
            assert not context(one) and one.source == old.source[-1:]
        else:
            assert (len(one.source), len(one.source_after)) == (len(old.source), len(old.source_after))


@pytest.mark.parametrize("condition", ["random", "wrong-document"])
def test_context_of_other_documents(condition):
    seen = set()
    for seed in range(5):
        found = with_context(ITEMS, condition, seed)
        assert all(source[0] != one.group for one in found for source, _ in context(one))
        assert found == with_context(ITEMS, condition, seed)
        seen.add(tuple(one.source for one in found))
    assert len(seen) == 5


def test_random_context_is_drawn_sentence_by_sentence():
    found = with_context(ITEMS * 20, "random")
    sources = [source for one in found for source, _ in context(one)]
    assert set(sources) == {source for one in ITEMS for source, _ in context(one)}  # all are drawn
    mixed = [one for one in found if len({source.split(".")[0] for source in one.source[:-1]}) > 1]
    assert len(mixed) > len(found) / 2


def test_wrong_document_is_a_derangement():
    for seed in range(5):
        found = with_context(ITEMS, "wrong-document", seed)
        for size in {(len(one.source), len(one.source_after)) for one in ITEMS}:
            same = [n for n, one in enumerate(ITEMS) if (len(one.source), len(one.source_after)) == size]
            assert sorted(context(found[n]) for n in same) == sorted(context(ITEMS[n]) for n in same)  # each once
    assert with_context(ITEMS, "wrong-document")[-1].source == ITEMS[-1].source  # nothing to replace


def test_items_without_group_are_grouped_by_their_context():
    same = [replace(item(1, "a"), group=None), replace(item(1, "a"), group=None, item_id="again")]
    others = [replace(item(n, "b"), group=None) for n in (2, 3)]
    for seed in range(5):
        for condition in ("random", "wrong-document"):
            found = with_context(same + others, condition, seed)
            assert all(source[0] == "b" for one in found[:2] for source, _ in context(one))


def test_contexts_that_cannot_be_replaced():
    refused("unknown context 'wrong': expected one of true, empty, random, wrong-docu", with_context, ITEMS, "wrong")
    one_document = [item(n, "a") for n in range(4)]
    refused("item i0: no other document has context to draw from", with_context, one_document, "random")
    with pytest.raises(ValueError, match="item i9: no item of another document has 9 sentences before and 0 after"):
        with_context([*ITEMS, item(9, "b", context=9)], "wrong-document")


def test_wrong_document_of_a_rare_size():
    """The nearest sentences of a longer context, never of the own document."""
    short = item(9, "a", context=1)
    others = [item(n, name, context=3) for n, name in enumerate("aaabbbccc")]
    seen = set()
    for seed in range(40):
        *_, found = with_context([*others, short], "wrong-document", seed)
        assert found.source[-1] == short.source[-1] and len(found.source) == 2
        (giver,) = [other for other in others if other.source[2] == found.source[0]]
        assert giver.target_context[2] == found.target_context[0]
        seen.add(giver.group)
    assert seen == {"b", "c"}


class FakeSystem:
    """Tokens are words; the right candidate is better where the context is of the sentence's own document."""

    name, context = "fake", ContextReach(3, 0, "none")

    def token_log_probabilities(self, items):
        return [[self.scores(one, candidate) for candidate in one.candidates] for one in items]

    def scores(self, one, candidate):
        own = bool(one.source[:-1]) and one.source[0][0] == one.source[-1][0]
        right = 0.5 if candidate.startswith("right") else 0.0
        return [-2.0 + right if own else -1.0, -1.0, -0.25 * len(one.source)]

    def token_texts(self, items):
        return [[[*candidate.split(), "</s>"] for candidate in one.candidates] for one in items]


def test_accuracy_under_each_context():
    results = context_results(FakeSystem(), ITEMS, dataset="fake", samples=200)
    found = {str(result.signature).split("context:")[-1].split("|")[0]: result for result in results}
    assert list(found) == ["true", "empty", "random, seed 0", "wrong-document, seed 0"]
    assert found["true"].value == 96.0 and found["true"].n == 25  # one item has no context
    assert [result.value for result in results[1:]] == [0.0, 0.0, 0.0]
    assert "difference" not in found["true"].details
    for result in results[1:]:
        assert result.task == "contrastive" and len(result.details["interval"]) == 2
        difference = result.details["difference"]
        assert difference["value"] == -96.0 and difference["interval"][0] <= -96.0 <= difference["interval"][1]
        assert result.details["statistics"]["ids"] == ["a", "b", "c"]
    (alone,) = context_results(FakeSystem(), ITEMS, dataset="fake", conditions=("empty",), normalization="mean")
    assert (
        str(alone.signature).startswith("logprob:mean|tokens:current|target-context:none|past:3|")
        and "difference" not in alone.details
    )
    refused("unknown normalization 'max'", context_results, FakeSystem(), ITEMS, dataset="fake", normalization="max")


def test_pointwise_by_hand():
    found = pointwise_cxmi(FakeSystem(), [item(1, "a", context=3), item(2, "b", context=0)])
    assert found[0]["tokens"] == ["right", "1", "</s>"]
    assert found[0]["with_context"] == [-1.5, -1.0, -1.0] and found[0]["without_context"] == [-1.0, -1.0, -0.25]
    assert token_gains(found[0]) == [-0.5, 0.0, -0.75] and token_gains(found[1]) == [0.0, 0.0, 0.0]
    assert (found[0]["item"], found[0]["document"]) == ("i1", "a")
    wrong = replace(item(1, "a"), candidates=("wrong", "right one"), correct=1)
    assert pointwise_cxmi(FakeSystem(), [wrong])[0]["tokens"] == ["right", "one", "</s>"]


def record_of(*gains):
    return {"with_context": gains, "without_context": [0.0] * len(gains)}


def test_cxmi_by_hand():
    items = [item(1, "a"), item(2, "a"), item(3, "b"), item(4, None)]
    found = [record_of(1.0, 2.0), record_of(-1.0), record_of(0.5, 0.5, 0.5, 0.5), record_of(0.0, 1.0)]
    result = cxmi_result(FakeSystem(), items, found, dataset="d", samples=100)
    assert (result.task, result.metric, result.n) == ("context use", "CXMI", 4)
    assert result.value == pytest.approx((3.0 - 1.0 + 2.0 + 1.0) / 4)  # sums of log-probabilities per sentence
    assert result.details["statistics"]["ids"] == ["a", "b", "i4"]
    assert result.details["statistics"]["rows"] == [[2.0, 2], [2.0, 1], [1.0, 1]]
    interval = bootstrap_interval(result.statistics.rows, score_function("CXMI", 2, scale=1.0), samples=100)
    assert result.details["interval"] == pytest.approx(interval)
    assert str(result.signature).startswith(
        "unit:nats|sentence:sum|tokens:current|target-context:none|without:empty|past:3|future:0|version:"
    )
    mean = cxmi_result(FakeSystem(), items, found, dataset="d", normalization="mean")
    assert mean.value == pytest.approx((1.5 - 1.0 + 0.5 + 0.5) / 4)  # as the released code
    assert "sentence:mean" in str(mean.signature)
    refused("0 sentences", cxmi_result, FakeSystem(), [], [], dataset="d")


def test_scores_that_are_not_finite():
    class Broken(FakeSystem):
        def scores(self, one, candidate):
            return [math.nan, 0.0, 0.0] if len(one.source) > 1 else [0.0, 0.0, 0.0]

    refused("item i1: log-probabilities .*nan.* expected equally many", pointwise_cxmi, Broken(), [item(1, "a")])


def test_words_that_profit():
    """Tokens of a word are summed, where spaces stand in tokens of their own or not; the end mark is alone."""
    tokens = ("Sie", " ", "schl", "äft", ",", " nicht", ".", "</s>")
    gains = (1.0, 0.25, 2.0, 0.5, 0.125, -1.0, 4.0, 8.0)
    found = [{"words": words_with_gains(tokens, gains)}] * 2
    expected = {"Sie": 1.25, "schläft": 2.5, ",": 0.125, "nicht": -1.0, ".": 4.0, "</s>": 8.0}
    assert {word: (gain, n) for word, gain, n in word_gains(found, least=2)} == {w: (g, 2) for w, g in expected.items()}
    assert dict(found[0]["words"]) == expected
    assert [word for word, *_ in word_gains(found, least=2)][:3] == ["</s>", ".", "schläft"]
    assert word_gains(found, least=3) == []
    assert words_with_gains((" ", "</s>"), (1.0, 2.0)) == [("</s>", 2.0)]


# Documents and a real model


DOCUMENTS = documents_of(
    (["w6 w7", "w8", " ", "w9 w10 w11"], ["w7 w6", "w9", "w6", "w11 w10"]), (["w12", "w13 w14"], ["w13", ""])
)


def test_document_items():
    items = document_items(DOCUMENTS, source_lang="en", target_lang="de", past_context=2, future_context=1)
    assert [one.item_id for one in items] == ["d0:1", "d0:2", "d0:4", "d1:1"]  # blank on a side: no item
    first, _, last, other = items
    assert first.source == ("w6 w7",) and first.target_context == () and first.index == 0
    assert (first.source_after, first.target_after) == (("w8",), ("w9",))
    assert last.source == ("w8", " ", "w9 w10 w11") and last.target_context == ("w9", "w6") and last.index == 3
    assert last.candidates == ("w11 w10",) and last.correct == 0 and last.source_after == ()
    assert {one.group for one in items} == {"d0", "d1"} and other.group == "d1"


def test_cxmi_of_a_model():
    """P-CXMI is the log-probability in the window of past sentences less that of the sentence alone."""
    tokenizer = word_tokenizer()
    system = DocMTSystem(build("concat", past_context=2, use_bod=True), tokenizer)
    items = document_items(DOCUMENTS, source_lang="en", target_lang="de", past_context=2)
    found = pointwise_cxmi(system, items)
    for gain, one in zip(found, items, strict=True):
        alone = replace(one, source=one.source[-1:], target_context=())
        full, short = (row for ((row,),) in (system.token_log_probabilities([item]) for item in (one, alone)))
        np.testing.assert_allclose(token_gains(gain), np.subtract(full, short), atol=1e-4)
        assert "".join(gain["tokens"]) == f"{one.candidates[0]} </s>"
    assert any(abs(gain) > 1e-3 for gain in token_gains(found[1]))


def test_report_as_the_released_code(tmp_path):
    """The mean over sentences of the mean with context less that without, for the true and for random contexts."""
    documents = documents_of(*((["w6 w7", "w8", "w9 w10"], ["w7 w6", "w9 w9", "w6"]) for _ in range(4)))
    languages = {"source_lang": "en", "target_lang": "de"}
    system, path = ReportedSystem(), tmp_path / "details.jsonl"
    options = {"normalization": "mean", "conditions": ("true", "random"), "details": path}
    report = cxmi_report(system, documents, dataset="d", **languages, **options)
    items = document_items(documents, past_context=3, **languages)
    for result, condition in zip(report.results, ("true", "random"), strict=True):
        sentences = []
        for given, alone in zip(with_context(items, condition), with_context(items, "empty"), strict=True):
            scores = [system.scores(one, one.candidates[0]) for one in (given, alone)]
            sentences.append(np.mean(scores[0]) - np.mean(scores[1]))
        assert result.value == pytest.approx(np.mean(sentences), abs=1e-12) and result.value != 0
        assert result.signature["sentence"] == "mean" and result.details["gains"]
    assert [result.signature.get("context") for result in report.results] == [None, "random, seed 0"]
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [record["context"] for record in records] == ["true"] * 12 + ["random, seed 0"] * 12
    for record in records:
        assert [word for word, _ in record["words"]] == [*record["reference"].split(), "</s>"]
        gains = np.subtract(record["with_context"], record["without_context"])
        assert sum(gain for _, gain in record["words"]) == pytest.approx(gains.sum())
    again = cxmi_report(system, documents, dataset="d", **languages, **options)
    assert [one.to_dict() for one in again.results] == [one.to_dict() for one in report.results]
    with pytest.raises(ValueError, match="unknown normalization 'window-mean': expected one of sum, mean"):
        cxmi_report(system, documents, dataset="d", normalization="window-mean", **languages)


class ReportedSystem(FakeSystem):
    """Tokens are words with a blank before each; context helps the more, the more different words it has."""

    languages = (None, None)

    def scores(self, one, candidate):
        helpful = 0.1 * len(set(" ".join(one.source[:-1]).split()))
        return [helpful - 1 - 0.01 * n for n in range(len(candidate.split()))] + [-0.25]

    def token_texts(self, items):
        return [[[f" {word}" for word in c.split()] + ["</s>"] for c in one.candidates] for one in items]

    def describe(self):
        return {"name": self.name}

    def fingerprint(self):
        return "fake"
