"""Corpus metrics: equal to sacrebleu called directly, hand cases, signatures, bad input."""

import importlib.metadata

import numpy as np
import pytest
import sacrebleu
from support.corpus_scores import corpus_results
from support.errors import refused

from hf_docmt.evaluation.evaluate_metric import DocumentMetric
from hf_docmt.evaluation.metrics import default_metrics, metric_class
from hf_docmt.evaluation.metrics.corpus_scores import bleu
from hf_docmt.evaluation.metrics.metric import TranslatedDocuments
from hf_docmt.reports.result import PartScore
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import score_function

METRICS = default_metrics()

HYPOTHESES = [
    ["Der Hund schläft .", "Er träumt von einem Knochen", ""],
    ["Die Katze sitzt auf der Matte.", "Sie ist müde , sagt Anna."],
]
REFERENCES = [
    ["Der Hund schläft.", "Er träumt von seinem Knochen.", "Ja."],
    ["Die Katze liegt auf der Matte.", "Sie ist müde, sagte Anna."],
]
FLAT = [[sentence for document in side for sentence in document] for side in (HYPOTHESES, REFERENCES)]
JOINED = [[" ".join(document) for document in side] for side in (HYPOTHESES, REFERENCES)]
VERSION = importlib.metadata.version("sacrebleu")


def test_equals_sacrebleu():
    results = corpus_results(HYPOTHESES, REFERENCES, details={"repairs": 2}, strategy="sliding", beams=4)
    expected = [
        sacrebleu.corpus_bleu(FLAT[0], [FLAT[1]]),
        sacrebleu.corpus_bleu(JOINED[0], [JOINED[1]]),
        sacrebleu.corpus_chrf(FLAT[0], [FLAT[1]]),
        sacrebleu.corpus_ter(FLAT[0], [FLAT[1]]),
    ]
    assert [result.value for result in results] == [score.score for score in expected]
    assert [result.metric for result in results] == list(METRICS) and [result.n for result in results] == [5, 2, 5, 5]
    assert {(result.task, result.strategy, result.beams) for result in results} == {("translation", "sliding", 4)}
    assert all(result.details["repairs"] == 2 for result in results) and "precisions" in results[0].details
    for result in results:  # the same as a metric of evaluate, document by document
        metric = DocumentMetric(result.metric)
        for prediction, reference in zip(HYPOTHESES, REFERENCES):
            metric.add(prediction=prediction, reference=reference)
        computed = metric.compute()
        assert (computed["score"], computed["n"]) == (result.value, result.n)
        assert computed["signature"] == str(result.signature)
    found = DocumentMetric("connectives").compute(predictions=[["and so"]], references=[["and but"]])
    assert (found["score"], found["n"], found["difference"]) == (100, 2, 2)
    found = DocumentMetric("blank sentences").compute(predictions=[["", "a"]], references=[["b", "c"]])
    assert (found["score"], found["n"]) == (50, 2)
    refused("unknown metric 'dBLEU': expected one of .*'d-BLEU'", DocumentMetric, "dBLEU")


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("s-BLEU", {}, "segments:sentence|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"),
        ("d-BLEU", {"target_lang": "zh"}, "segments:document|joiner:space|nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp"),
        ("TER", {}, "segments:sentence|nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no"),
    ],
)
def test_signature_says_everything(name, options, expected):
    (result,) = corpus_results(HYPOTHESES, REFERENCES, [name], **options)
    assert str(result.signature) == f"{expected}|version:{VERSION}"


LONG = [HYPOTHESES * 4, REFERENCES * 4]  # eight documents, two of them twice, an empty one between them
LONG = [[*side[:3], [], *side[3:]] for side in LONG]


@pytest.mark.parametrize("name", METRICS)
def test_scores_follow_from_column_sums(name):
    """The corpus score of any documents is that of the sums of their rows, to the last bit."""
    settings = {"samples": 0}
    (result,) = corpus_results(*LONG, [name], settings=settings)
    statistics = result.details["statistics"]
    assert statistics["unit"] == "document" and statistics["ids"] == [str(n) for n in range(1, 10)]
    rows = np.array(statistics["rows"])
    assert rows.shape == (9, {"chrF": 18, "TER": 2}.get(name, 10)) and not rows[3].any()
    score = score_function(name, rows.shape[1])
    assert score(rows.sum(0, keepdims=True)).tolist() == [result.value]
    for chosen in ([0], [1, 2], [0, 0, 5, 8]):
        (part,) = corpus_results(*[[side[n] for n in chosen] for side in LONG], [name], settings=settings)
        assert score(rows[chosen].sum(0, keepdims=True)).tolist() == [part.value]


@pytest.mark.parametrize("name", METRICS)
def test_one_metric_of_several_references(name):
    """What is kept of references is theirs alone: the same object, then others, another language, a second one."""
    metric = metric_class(name)()
    other = [["Die Katze .", *document[1:]] for document in REFERENCES]
    for fields in ({}, {}, {"target_lang": "zh"}, {"references": other}, {"other_references": [other]}):
        documents = TranslatedDocuments(HYPOTHESES, **{"references": REFERENCES, **fields})
        assert metric.score(documents) == metric_class(name)().score(documents)


def test_interval_over_documents():
    sides = [[[sentence] for sentence in side] for side in FLAT]
    first, second = (corpus_results(*sides, ["chrF"], settings={"samples": 200, "seed": seed})[0] for seed in (1, 2))
    low, high = first.details["interval"]
    assert low < first.value < high and [low, high] != second.details["interval"]
    assert first.details["resampling"] == {"unit": "document", "samples": 200, "seed": 1}
    one_document = [[sum(side, [])] for side in LONG]
    for sides, settings in ((LONG, {"samples": 0}), (one_document, {"samples": 9})):
        assert "interval" not in corpus_results(*sides, ["TER"], settings=settings)[0].details


def test_signature_names_the_alignment():
    results = corpus_results(HYPOTHESES, REFERENCES, alignment=Signature.parse("aligned:x|tokens:words"))
    assert all(str(result.signature).startswith("aligned:x|tokens:words|segments:") for result in results)


def test_breakdown():
    """Parts are corpus scores of their sentences; d-BLEU has no index in a document."""
    settings = {"by": ["index", "domain"], "domains": "[a-z]"}
    results = corpus_results(HYPOTHESES, REFERENCES, settings=settings, doc_ids=["a1", "b1"])
    for name, result in zip(METRICS, results):
        labels = ["domain=a", "domain=b"]
        labels = labels if name == "d-BLEU" else ["index=1", "index=2", "index=3", *labels]
        assert list(result.breakdown) == labels
    chrf, ter = results[2].breakdown, results[3].breakdown
    first = [[document[0] for document in side] for side in (HYPOTHESES, REFERENCES)]
    assert chrf["index=1"].value == sacrebleu.corpus_chrf(first[0], [first[1]]).score and chrf["index=1"].n == 2
    assert ter["domain=a"].value == sacrebleu.corpus_ter(HYPOTHESES[0], [REFERENCES[0]]).score
    assert len(ter["index=2"].details["interval"]) == 2 and "interval" not in ter["index=3"].details
    document = [[" ".join(side[1])] for side in (HYPOTHESES, REFERENCES)]
    expected = PartScore(sacrebleu.corpus_bleu(document[0], [document[1]]).score, 1)
    assert results[1].breakdown["domain=b"] == expected


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (HYPOTHESES[:1], REFERENCES, "1 translated document for 2 reference documents"),
        ([], [], "nothing to score"),
        ([[]], [[]], "nothing to score"),
        (["ab"], [["a", "b"]], "document '1': got a string, expected a list of sentences"),
        (
            [HYPOTHESES[0], HYPOTHESES[1][:1]],
            REFERENCES,
            "document '2': 1 translated sentence for 2 refer",
        ),
    ],
)
def test_bad_input(hypotheses, references, message):
    refused(message, corpus_results, hypotheses, references)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sources": [["a"]]}, "1 source document for 2 translated documents"),
        ({"sources": [["a"] * 3, "ab"]}, "document 'q': got a string"),
        ({"sources": [["a"] * 2, ["a"] * 2]}, "document 'p': 2 source sentences for 3 translated sentences"),
        ({"doc_ids": ["p", "p"]}, "2 document ids, 1 of them different, for 2 documents"),
    ],
)
def test_bad_sides(changes, message):
    changes = {"sources": REFERENCES, "doc_ids": ["p", "q"], **changes}
    refused(message, metric_class("copied sentences")().score, TranslatedDocuments(HYPOTHESES, REFERENCES, **changes))


def test_unknown_names():
    refused("unknown metric 'sbleu'.*did you mean 's-BLEU'", metric_class, "sbleu")
    refused("unknown BLEU tokenizer 'intI': expected one of .*did you mean 'intl'", bleu, False, "intI", None)


@pytest.mark.parametrize(
    ("options", "module", "message"),
    [
        ({"target_lang": "ja_XX"}, "ja", r"'ja_XX' cannot be used \(Japanese .*\): pip install 'sacrebleu\[ja\]', or"),
        ({"target_lang": "kor_Hang"}, "ko", r"'kor_Hang' cannot be used \(Korean .*\): pip install 'sacrebleu\[ko\]'"),
        ({"tokenize": "ja-mecab"}, "ja", r"'ja-mecab' cannot be used .*pip install 'sacrebleu\[ja\]'"),
    ],
)
def test_a_missing_dictionary_is_an_error(monkeypatch, options, module, message):
    monkeypatch.setattr(f"sacrebleu.tokenizers.tokenizer_{module}_mecab.MeCab", None)
    refused(message, bleu, **{"lowercase": False, "tokenize": None, "target_lang": None, **options})
    assert bleu(False, "char", "ja_XX").tokenizer_signature == "char"
