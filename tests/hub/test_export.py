"""Export to a folder for the Hub: whole or not at all, the card, and tokenizers that do not fit."""

import json

import pytest
from support.errors import refused
from support.tiny_models import build, word_tokenizer

from hf_docmt.hub.export import collect_reports, export_model
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result
from hf_docmt.reports.signature import Signature


@pytest.fixture(scope="module")
def tokenizer():
    return word_tokenizer()


@pytest.fixture(scope="module")
def model():
    return build("concat", past_context=1, segment_encoding="learned")


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_the_card_says_how_many_parameters_the_model_has(model, tokenizer, tmp_path):
    """Also where no report says it; what a report says stays."""
    folder = export_model(model, tokenizer, tmp_path / "plain")
    assert f"| parameters | {model.num_parameters()} |" in (folder / "README.md").read_text(encoding="utf-8")
    report = Report(model={"name": "concat", "parameters": 7}, data={}, results=[], training={"losses": [], "steps": 3})
    card = (export_model(model, tokenizer, tmp_path / "other", report=report) / "README.md").read_text(encoding="utf-8")
    assert "| parameters | 7 |" in card and "| steps | 3 |" in card and "| losses |" not in card


def test_nothing_is_left_after_a_failure(model, tokenizer, tmp_path, monkeypatch):
    def no_space(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(tokenizer), "save_pretrained", no_space)
    with pytest.raises(OSError, match="No space left"):
        export_model(model, tokenizer, tmp_path / "model")
    assert names(tmp_path) == set()


def test_other_contexts_than_the_true_one_are_dropped(tmp_path):
    about = {"task": "contrastive", "dataset": "pronoun", "split": "all", "metric": "accuracy", "n": 9}
    contexts = ("|context:true", "|context:empty", "|context:random, seed 0", "|context:wrong-document, seed 0", "")
    results = [
        Result(**about, value=n, signature=Signature.parse(f"past:1{context}")) for n, context in enumerate(contexts)
    ]
    Report(model={"name": "m"}, data={}, results=results).write(tmp_path / "report.json")
    report = collect_reports([tmp_path / "report.json"], tmp_path, "someone/model")
    assert [result.value for result in report.results] == [0, 4] and report.name == "someone/model"


def test_tokenizer_of_another_model_is_refused(model, tokenizer, tmp_path):
    larger = word_tokenizer()
    larger.add_tokens(["another"])
    refused("vocab_size: the tokenizer has ids up to", export_model, model, larger, tmp_path / "model")
    larger.eos_token = "<s>"
    refused("eos_token_id: the tokenizer has 2, the model 3", export_model, model, larger, tmp_path / "model")


def test_a_model_with_several_end_tokens(model, tokenizer, tmp_path):
    """The tokenizer has one of them."""
    several = type(model)(type(model.config)(**model.config.to_dict() | {"eos_token_id": [tokenizer.eos_token_id, 9]}))
    export_model(several, tokenizer, tmp_path / "hub")
    assert json.loads((tmp_path / "hub" / "config.json").read_text())["eos_token_id"] == [tokenizer.eos_token_id, 9]
    several.config.eos_token_id = [8, 9]
    with pytest.raises(ValueError, match=r"eos_token_id: the tokenizer has \d, the model \[8, 9\]"):
        export_model(several, tokenizer, tmp_path / "other")
