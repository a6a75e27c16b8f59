"""The benchmarks of translating documents: strategies, and engines on windows."""

import pytest
from support.tiny_models import build, word_tokenizer

from hf_docmt.bench import document_translation
from hf_docmt.bench.decode import ctranslate2_version
from hf_docmt.bench.document_translation import (
    LONG_CASE,
    DocumentTranslation,
    StockEngine,
    WindowDecoding,
    window_checks,
)
from hf_docmt.bench.models import TINY, load_documents
from hf_docmt.bench.results import Row
from hf_docmt.data.documents import sentences
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.modeling.document_state import read_document


def test_strategies(tmp_path, monkeypatch):
    monkeypatch.setattr(document_translation, "LONG", 12)
    monkeypatch.setattr(document_translation, "JOINED", 4)
    rows = load_documents(3, "en", "de")
    tokenizer = train_tokenizer([text for row in rows for lang in ("en", "de") for text in sentences(row, lang)])
    model = build(vocab_size=len(tokenizer), past_context=2)
    model.generation_config.max_new_tokens = 8
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    found = DocumentTranslation(model=str(tmp_path), number=2, repeats=1).run().to_json()
    cases = [row["case"] for row in found["rows"]]
    assert cases[:4] == [f"{p}: {s} : sentence" for p in ("fp32", "int8") for s in ("sliding", "sequential")]
    assert all(row["ratio"] > 0 for row in found["rows"]) and [check["name"] for check in found["checks"]]
    beside = [row for row in found["rows"] if "CTranslate2" in row["case"]]
    assert len(beside) == 3 * (ctranslate2_version() is not None)
    (time,) = (1 / row["ratio"] for row in found["rows"] if row["case"] == LONG_CASE)
    assert found["checks"][0]["value"] == pytest.approx(time)


def test_targets():
    def row(engine, ratio, equal):
        more = {"engine": engine, "equal": equal}
        return Row.of(engine, "sentences/s", ratio, 1, more=more)

    rows = [row("ours", 1, 1.0), row("ctranslate2 fp32", 2, 0.98), row("ctranslate2 int8", 4.0, 0.5)]
    found = {check.name: check.ok for check in window_checks(rows)}
    assert found == {"ctranslate2 fp32: equal sentences": False, "ctranslate2 int8: ratio": True}
    assert not window_checks([row("ctranslate2 int8", 3.9, 1.0)])[0].ok


def test_the_peer_is_the_stock_class():
    """It walks the same windows, and gives the same translations."""
    model = build(past_context=1)
    peer = StockEngine(model)
    states = [read_document(["w7 w8", "w9", "w10 w11"], word_tokenizer(), 99) for _ in range(2)]
    for engine, state in zip((model, peer), states):
        translator = engine.translator_class(engine, 2, {"max_new_tokens": 6, "do_sample": False})
        translator.translate([state], "sliding", repairs="none")
    assert type(peer.model).__name__ == "MarianMTModel"
    assert [part.target for part in states[0].parts] == [part.target for part in states[1].parts]


def test_rows():
    pytest.importorskip("ctranslate2")
    options = {"repeats": 1, "batch_size": 4, "tokens": 3, "sizes": TINY, "vocab_size": 60, "modes": ("greedy",)}
    found = WindowDecoding(**options).run().to_json()
    assert [row["case"] for row in found["rows"]] == [
        f"greedy: {engine}" for engine in ("ours", "ctranslate2 fp32", "ctranslate2 int8")
    ]
    assert [row["equal"] for row in found["rows"][:2]] == [1.0, 1.0]
    assert len({row["peer_seconds"] for row in found["rows"]}) == 1 and found["setting"]["sentences"] == 4
    assert found["setting"]["ctranslate2"].endswith(", int8_float32")
