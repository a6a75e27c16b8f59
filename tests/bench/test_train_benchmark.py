"""The benchmark of training: tiny epochs of both sides, and the tokens that they count."""

import json
from dataclasses import asdict

import pytest
from support.errors import refused

from hf_docmt.bench import train
from hf_docmt.bench.models import TINY, load_documents
from hf_docmt.bench.results import Check, Row
from hf_docmt.bench.train import TrainBenchmark
from hf_docmt.data.documents import write_documents
from hf_docmt.data.synthetic.corpus import make_corpus
from hf_docmt.data.tokenizers import train_tokenizer

SIDE = {"ours": 1.0, "peer": 1.0}


@pytest.fixture(scope="module")
def trained():
    return TrainBenchmark(repeats=1, documents=8, max_tokens=400, sizes=TINY, vocab_size=300).run().to_json()


def test_train_rows(trained):
    assert json.loads(json.dumps(trained)) == trained
    assert [row["case"] for row in trained["rows"]] == list(train.VIEWS)
    for row, check in zip(trained["rows"], trained["checks"], strict=True):
        assert row["ratio"] == pytest.approx(row["peer_seconds"] / row["ours_seconds"])
        assert row["ours"] == pytest.approx(row["target_tokens"] / row["ours_seconds"])
        assert 1 <= row["ours_padding"] < row["peer_padding"]
        assert row["ours_tokens_per_update"] == pytest.approx(row["peer_tokens_per_update"], rel=0.3)
        assert check == asdict(Check.at_least(f"{row['case']}: ratio", row["ratio"], 1.5))


def test_train_counts_real_tokens(trained):
    """All target tokens of the corpus once: words' pieces, and a separator or end after every sentence."""
    rows = make_corpus(train=8, validation=0, test=0)["train"]
    sentences = [pair for row in rows for pair in row["translation"]]
    texts = [text for row in rows for lang in ("en", "de") for text in (pair[lang] for pair in row["translation"])]
    tokenizer = train_tokenizer(texts, vocab_size=300)
    expected = sum(len(tokenizer(pair["de"])["input_ids"]) for pair in sentences)
    assert trained["rows"][0]["target_tokens"] == expected
    assert trained["rows"][1]["target_tokens"] > 2 * expected  # windows repeat their context


def test_train_on_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(train, "VIEWS", {"sentences": 0})
    path = tmp_path / "documents.jsonl"
    write_documents(make_corpus(seed=5, train=4, validation=0, test=0, sentences=(3, 5))["train"], path)
    options = {"documents": path, "source_lang": "de", "target_lang": "en", "max_tokens": 90}
    found = TrainBenchmark(repeats=1, **options, sizes=TINY, vocab_size=300).run().to_json()
    assert [row["case"] for row in found["rows"]] == ["sentences"] and found["setting"]["documents"] == str(path)
    assert capsys.readouterr().out == ""  # standard output is for the result


def test_train_in_bf16(monkeypatch):
    """Our bf16 beside the peer's and beside our own fp32, from the same weights in the same order."""
    monkeypatch.setattr(train, "VIEWS", {"sentences": 0})
    monkeypatch.setattr(train, "bf16_speed", lambda device: 1.1)
    options = {"documents": 2, "max_tokens": 400, "sizes": TINY, "vocab_size": 300}
    result = TrainBenchmark(repeats=1, precision="bf16", **options).run()
    fast = result.to_json()
    assert [row["case"] for row in fast["rows"]] == ["sentences", "sentences, ours in bf16 and fp32"]
    assert [row["ours_seconds"] for row in fast["rows"]] == [fast["rows"][0]["ours_seconds"]] * 2
    own = fast["rows"][1]
    assert own["ours_loss"] != own["peer_loss"] == pytest.approx(own["ours_loss"], rel=0.01)
    assert own["ours_padding"] == own["peer_padding"]
    assert [check["target"] for check in fast["checks"]] == [1.5, 1.4, 0.01] and fast["checks"][2]["ok"]
    assert fast["setting"]["unchecked"] is None and "ours in bf16 and fp32" in result.to_text()


def test_bf16_is_slower(monkeypatch):
    """The losses are compared, speeds are not checked, and the setting says so."""
    row = Row.of_speeds(f"sentences{train.OWN}", "s", 1, SIDE, ours_loss=3.0, peer_loss=2.9)
    monkeypatch.setattr(train, "VIEWS", {"sentences": 0})
    monkeypatch.setattr(train, "bf16_speed", lambda device: 0.9)
    monkeypatch.setattr(train, "view_rows", lambda *_: [Row.of_speeds("sentences", "s", 1, SIDE), row])
    found = TrainBenchmark(documents=2, precision="bf16", sizes=TINY, vocab_size=300).run()
    assert [(check.target, check.ok) for check in found.checks] == [(0.01, False)]
    assert "take longer with it" in found.setting["unchecked"]


def test_bad_devices(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    refused("got 'cuda' with 2; name the GPU in the variable CUDA_VISIBLE_DEVICES", TrainBenchmark, device="cuda")


def test_bad_documents(tmp_path):
    refused("the built-in corpus is en to de, got en to fr; give a file", load_documents, 5, "en", "fr")
    with pytest.raises((ValueError, OSError), match="nowhere.jsonl"):
        load_documents(tmp_path / "nowhere.jsonl", "en", "de")
