"""What `generation_config.json` of a model folder may change in jobs, and where it is named."""

import json
import logging

import pytest
from support.pretrained_models import saved
from support.tiny_models import build, word_tokenizer
from transformers import GenerationConfig

from hf_docmt.systems.generation_settings import make_repeatable, reported_settings

DOCUMENT = [{"en": text, "de": text} for text in ("w6 w7", "w8 w9 w10", "", "w11")]


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps({"doc_id": f"d{n}", "translation": DOCUMENT}) + "\n" for n in range(3)))
    return path


def folder_with(folder, **settings):
    """A model folder with these settings; each is written as another program does, whatever ours makes of it."""
    model = build(past_context=1)
    model.generation_config.max_new_tokens = 8
    saved(folder, model, word_tokenizer())
    path = folder / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    return folder


def test_jobs_repeat(run, tmp_path, documents, caplog):
    """Sampling and limits of time are switched off with one warning; penalties and the like are kept and written."""
    kept = {"suppress_tokens": [8, 9], "repetition_penalty": 1.3}
    outputs = []
    for number, asked in enumerate(({}, {"do_sample": True, "temperature": 5.0, "max_time": 1e-9})):
        folder = folder_with(tmp_path / f"model{number}", **kept, **asked)
        code, out, err = run("translate", folder, documents, "--beams", 1, "--strategy", "sentence")
        assert code == 0, err
        outputs.append([json.loads(line) for line in out.splitlines()])
        warnings = [
            record.getMessage() for record in caplog.records if record.name == "hf_docmt.systems.generation_settings"
        ]
        assert len(warnings) == number
    assert "generation_config.json has do_sample=True, max_time=1e-09" in warnings[0]
    assert any(text for row in outputs[0] for text in row["translation"])
    for before, row in zip(*outputs, strict=True):
        assert row["translation"] == before["translation"]
        assert row["search"] == {"strategy": "sentence", "beams": 1} | kept


def test_settings_of_search_reach_reports(run, tmp_path, documents):
    folder, out = folder_with(tmp_path / "model", no_repeat_ngram_size=2, min_length=3), tmp_path / "out.jsonl"
    assert run("translate", folder, documents, "-o", out, "--beams", 1)[0] == 0
    code, text, err = run("evaluate", out, documents, "--source-lang", "en", "--target-lang", "de", "--json")
    assert code == 0, err
    settings = json.loads(text)["model"]["config"]
    assert (settings["no_repeat_ngram_size"], settings["min_length"]) == (2, 3)


@pytest.mark.parametrize("value", [None, False])
def test_neutral_settings_say_nothing(value, caplog):
    config = GenerationConfig(do_sample=value, num_beams=3)
    with caplog.at_level(logging.WARNING):
        make_repeatable(config, "m")
        make_repeatable(None, "m")
    assert caplog.records == [] and (config.do_sample, config.num_beams) == (value, 3)


def test_reported_settings_are_those_of_the_call():
    model = build(past_context=1)
    model.generation_config.update(length_penalty=0.7, max_new_tokens=5)
    assert reported_settings(model, {}) == {"length_penalty": 0.7}
    assert reported_settings(model, {"length_penalty": 1.0, "past_context": 1}) == {}
    config = GenerationConfig(bad_words_ids=[[7]], early_stopping=True, watermarking_config={"bias": 3.0})
    settings = reported_settings(model, {"generation_config": config})
    assert settings.pop("watermarking_config")["bias"] == 3.0
    assert settings == {"length_penalty": 0.7, "bad_words_ids": [[7]], "early_stopping": True}
