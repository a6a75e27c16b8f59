"""Corpus metrics: equal to sacrebleu called directly, hand cases, signatures, bad input."""

import importlib.metadata

import pytest
import sacrebleu

from hf_docmt.evaluation.metrics import METRICS, load_metric, score_translations

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
    assert [result["metric"] for result in results] == list(METRICS)
    assert results[1]["value"] == sacrebleu.corpus_bleu(JOINED[0], [JOINED[1]]).score
    assert {result["strategy"] for result in results} == {"sliding"} and {result["beams"] for result in results} == {4}
    assert all(result["task"] == "translation" and result["details"]["repairs"] == 2 for result in results)
    assert [result["n"] for result in results] == [5, 2, 5, 5]
    assert "precisions" in results[0]["details"]


def test_another_number_of_sentences_is_an_error():
    short = [HYPOTHESES[0], HYPOTHESES[1][:1]]
    with pytest.raises(ValueError, match="document 'b': 1 translated sentences for 2 reference sentences"):
        score_translations(short, REFERENCES, dataset="d", split="s", doc_ids=["a", "b"])
    for name in METRICS:
        with pytest.raises(ValueError, match="document 2: 1 translated sentences for 2"):
            load_metric(name).compute(predictions=short, references=REFERENCES)


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (HYPOTHESES[:1], REFERENCES, "1 translated documents for 2 references"),
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
