"""Corpus metrics: equal to sacrebleu called directly, hand cases, signatures, bad input."""

import importlib.metadata

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER

from hf_docmt.evaluation.metrics import default_metrics, load_metric
from hf_docmt.evaluation.metrics.segments import segment_statistics
from hf_docmt.evaluation.translation_scores import score_translations
from hf_docmt.reports.result import Part
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import column_sums, score_function

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


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was asked for")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("s-BLEU", sacrebleu.corpus_bleu(FLAT[0], [FLAT[1]])),
        ("d-BLEU", sacrebleu.corpus_bleu(JOINED[0], [JOINED[1]])),
        ("chrF", sacrebleu.corpus_chrf(FLAT[0], [FLAT[1]])),
        ("TER", sacrebleu.corpus_ter(FLAT[0], [FLAT[1]])),
    ],
)
def test_equals_sacrebleu(name, expected):
    found = load_metric(name).compute(predictions=HYPOTHESES, references=REFERENCES)
    assert found["score"] == expected.score
    assert found["n"] == (2 if name == "d-BLEU" else 5)


@pytest.mark.parametrize("name", ["s-BLEU", "d-BLEU", "chrF", "chrF++"])
def test_lowercase(name):
    options = {"dataset": "d", "split": "s", "metrics": [name]}
    (mixed,) = score_translations([["A Small CAT sat ."]], [["a small cat sat ."]], **options)
    (lower,) = score_translations([["A Small CAT sat ."]], [["a small cat sat ."]], lowercase=True, **options)
    assert lower.value == pytest.approx(100) and mixed.value < 99


def test_sentence_and_document_bleu_differ():
    """Four-grams over the border of two sentences count in documents only."""
    documents = [["a b", "c d"]]
    sentences, whole = (
        load_metric(name).compute(predictions=documents, references=documents) for name in ("s-BLEU", "d-BLEU")
    )
    assert whole["score"] == pytest.approx(100)
    assert whole["precisions"][3] == pytest.approx(100)
    assert sentences["score"] == 0  # no segment has a trigram


def test_brevity_penalty_by_hand():
    found = load_metric("s-BLEU").compute(predictions=[["a b c d"]], references=[["a b c d e"]])
    assert found["score"] == pytest.approx(100 * 2.718281828459045 ** (1 - 5 / 4))
    assert found["length_ratio"] == pytest.approx(0.8)


def test_ter_by_hand():
    found = load_metric("TER").compute(predictions=[["a b c x"], ["E"]], references=[["a b c d"], ["e"]])
    assert found["score"] == pytest.approx(100 * 1 / 5)  # one substitution in five words, case ignored


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("s-BLEU", {}, "segments:sentence|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"),
        (
            "s-BLEU",
            {"lowercase": True, "tokenize": "char"},
            "segments:sentence|nrefs:1|case:lc|eff:no|tok:char|smooth:exp",
        ),
        ("d-BLEU", {"target_lang": "zh"}, "segments:document|joiner:space|nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp"),
        ("chrF", {}, "segments:sentence|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no"),
        ("TER", {}, "segments:sentence|nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no"),
    ],
)
def test_signature_says_everything(name, options, expected):
    found = load_metric(name).compute(predictions=HYPOTHESES, references=REFERENCES, **options)
    assert found["signature"] == f"{expected}|version:{VERSION}"


def test_lowercase_and_tokenizer_are_used():
    for options in ({"lowercase": True}, {"tokenize": "char"}):
        found = load_metric("s-BLEU").compute(
            predictions=[["DER hund schläft gut"]], references=[["der Hund schläft gut ."]], **options
        )
        expected = sacrebleu.corpus_bleu(["DER hund schläft gut"], [["der Hund schläft gut ."]], **options)
        assert found["score"] == expected.score > 0


def test_score_translations_makes_report_results():
    results = score_translations(
        HYPOTHESES, REFERENCES, dataset="talks", split="test", strategy="sliding", beams=4, details={"repairs": 2}
    )
    assert [result.metric for result in results] == list(METRICS)
    assert results[1].value == sacrebleu.corpus_bleu(JOINED[0], [JOINED[1]]).score
    assert {result.strategy for result in results} == {"sliding"} and {result.beams for result in results} == {4}
    assert all(result.task == "translation" and result.details["repairs"] == 2 for result in results)
    assert [result.n for result in results] == [5, 2, 5, 5]
    assert "precisions" in results[0].details


LONG = [HYPOTHESES * 4, REFERENCES * 4]  # eight documents, two of them twice, an empty one between them
LONG = [[*side[:3], [], *side[3:]] for side in LONG]


@pytest.mark.parametrize("name", METRICS)
def test_scores_follow_from_column_sums(name):
    """The corpus score of any documents is that of the sums of their rows, to the last bit."""
    (result,) = score_translations(*LONG, dataset="d", split="s", metrics=[name], samples=0)
    statistics = result.details["statistics"]
    assert statistics["unit"] == "document" and statistics["ids"] == [str(n) for n in range(1, 10)]
    rows = np.array(statistics["rows"])
    assert rows.shape == (9, {"chrF": 18, "TER": 2}.get(name, 10)) and not rows[3].any()
    score = score_function(name, rows.shape[1])
    assert score(rows.sum(0, keepdims=True)).tolist() == [result.value]
    for chosen in ([0], [1, 2], [0, 0, 5, 8]):
        (part,) = score_translations(
            *[[side[n] for n in chosen] for side in LONG], dataset="d", split="s", metrics=[name], samples=0
        )
        assert score(rows[chosen].sum(0, keepdims=True)).tolist() == [part.value]


@pytest.mark.parametrize("metric", [BLEU(), CHRF(), TER()], ids=["BLEU", "chrF", "TER"])
def test_segment_statistics_are_those_of_sacrebleu(metric):
    rows = segment_statistics(metric, *FLAT)
    assert metric._compute_score_from_stats(column_sums(rows)).score == metric.corpus_score(FLAT[0], [FLAT[1]]).score


def test_column_sums():
    assert column_sums([[1, 2], [3, 5]]) == [4, 7] and column_sums([], 3) == [0, 0, 0]


def test_statistics_by_hand():
    (result,) = score_translations(
        [["a b c x"], ["E", "f"]],
        [["a b c d"], ["e", "f g"]],
        dataset="d",
        split="s",
        metrics=["TER"],
        doc_ids=["p", "q"],
    )
    assert result.details["statistics"] == {"unit": "document", "ids": ["p", "q"], "rows": [[1, 4], [1, 3]]}


def test_interval_over_documents():
    sides = [[[sentence] for sentence in side] for side in FLAT]
    first, second = (
        score_translations(*sides, dataset="d", split="s", metrics=["chrF"], samples=200, seed=seed)[0]
        for seed in (1, 2)
    )
    low, high = first.details["interval"]
    assert low < first.value < high and [low, high] != second.details["interval"]
    assert first.details["resampling"] == {"unit": "document", "samples": 200, "seed": 1}
    for options in ({"samples": 0}, {"metrics": ["TER"], "samples": 9}):
        sides = LONG if not options["samples"] else [[sum(side, [])] for side in LONG]  # one document has no interval
        assert "interval" not in score_translations(*sides, dataset="d", split="s", **options)[0].details


def test_an_alignment_stands_in_the_signature():
    results = score_translations(
        HYPOTHESES, REFERENCES, dataset="d", split="s", alignment=Signature.parse("aligned:x|tokens:words")
    )
    assert all(str(result.signature).startswith("aligned:x|tokens:words|segments:") for result in results)


def test_breakdown():
    """Parts are corpus scores of their sentences; d-BLEU has no index in a document."""
    results = score_translations(
        HYPOTHESES, REFERENCES, dataset="d", split="s", by=["index", "domain"], doc_ids=["a1", "b1"], domains="[a-z]"
    )
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
    expected = Part(sacrebleu.corpus_bleu(document[0], [document[1]]).score, 1)
    assert results[1].breakdown["domain=b"] == expected


def test_another_number_of_sentences_is_an_error():
    short = [HYPOTHESES[0], HYPOTHESES[1][:1]]
    with pytest.raises(ValueError, match="document 'b': 1 translated sentence for 2 reference sentences"):
        score_translations(short, REFERENCES, dataset="d", split="s", doc_ids=["a", "b"])
    for name in METRICS:
        with pytest.raises(ValueError, match="document 2: 1 translated sentence for 2"):
            load_metric(name).compute(predictions=short, references=REFERENCES)


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (HYPOTHESES[:1], REFERENCES, "1 translated document for 2 references"),
        ([], [], "nothing to score"),
        ([[]], [[]], "nothing to score"),
        (["ab"], [["a", "b"]], "document 1: got a string, expected a list of sentences"),
    ],
)
def test_bad_input(hypotheses, references, message):
    with pytest.raises(ValueError, match=message):
        score_translations(hypotheses, references, dataset="d", split="s")


def test_unknown_names():
    with pytest.raises(ValueError, match="unknown metric 'sbleu'.*did you mean 's-BLEU'"):
        load_metric("sbleu")
    with pytest.raises(ValueError, match="unknown BLEU tokenizer '13b': expected one of .*13a"):
        score_translations(HYPOTHESES, REFERENCES, dataset="d", split="s", tokenize="13b")
