"""The example that makes a sentence-level MarianMT document-level, at a size that takes seconds."""

import importlib.util
import json
from pathlib import Path

import pytest
from transformers import AutoConfig

from hf_docmt.data.synthetic.corpus import CHANCE
from hf_docmt.loading import model_folders

pytest.importorskip("peft")
pytest.importorskip("sentencepiece")

SCRIPT = Path(__file__).resolve().parents[1] / "examples" / "sentence_to_document.py"
WAYS = ("caching", "caching, full", "caching, lora")


def test_sentence_to_document(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("sentence_to_document", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    folder = tmp_path / "run"
    script.main(str(folder), ["caching"], documents=12, items=1, steps=[2, 1], seed=1)
    accuracy = json.loads((folder / "accuracy.json").read_text())
    assert list(accuracy) == list(WAYS) and all(found.keys() == CHANCE.keys() for found in accuracy.values())
    assert accuracy["caching"] == {suite: pytest.approx(100 * share) for suite, share in CHANCE.items()}
    assert "caching, lora" in capsys.readouterr().out
    assert AutoConfig.from_pretrained(folder / "marian").model_type == "marian"
    assert (folder / "caching" / "lora" / "adapter_model.safetensors").is_file()
    assert not (folder / "caching" / "lora" / "base").exists(), "what was converted is the model that is adapted"
    for way in script.RATES:
        model, tokenizer = model_folders.load_model(folder / "caching" / way)
        assert len(model.translate_documents([["Hello.", "Hello."]], tokenizer, max_new_tokens=2)[0]) == 2
