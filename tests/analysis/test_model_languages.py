"""Analyses of models whose family has language codes, in languages that the command names."""

import json

import pytest
from support.tiny_models import build, random_text, word_tokenizer

from hf_docmt.analysis.model_runs import chosen_languages, set_languages

FAMILY = {"source_format": "[source_lang] X </s>", "target_format": "<start> [target_lang] X </s>"}
CODES = {"language_ids": {"xx": 26, "yy": 27}, "source_lang": None, "target_lang": None}
OWN = {"source_lang": "xx", "target_lang": "yy"}
LANGUAGES = ("--source-lang", "xx", "--target-lang", "yy")
SENTENCES = random_text([3, 2, 4], seed=1)
COMMANDS = {  # command -> architecture, fields, what it is told beside the model
    "attention-share": ("concat", {"past_context": 1}, ["{documents}"]),
    "groups": ("caching", {"past_context": 1, "shortening": "grouping"}, SENTENCES),
    "gates": ("routing", {"past_context": 1}, SENTENCES),
    "information-gain": ("memory", {}, ["{documents}"]),
    "attribution": ("memory", {}, ["{documents}", "--reach", "2", "--step", "1"]),
    "memory-maps": ("memory", {}, ["{documents}", "--document", "a"]),
}


def saved(folder, architecture, **fields):
    build(architecture, **fields).save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def documents(tmp_path):
    """One document."""
    pairs = zip(SENTENCES, random_text([2, 3, 1], seed=2))
    row = {"doc_id": "a", "translation": [{"xx": one, "yy": other} for one, other in pairs]}
    (tmp_path / "talks.jsonl").write_text(json.dumps(row) + "\n")
    return tmp_path / "talks.jsonl"


@pytest.mark.parametrize("command", COMMANDS)
def test_languages_of_the_command(run, capsys, tmp_path, documents, command):
    architecture, fields, rest = COMMANDS[command]
    rest = [text.format(documents=documents) for text in rest]
    model = saved(tmp_path / "model", architecture, **fields, **FAMILY, **CODES)
    own = saved(tmp_path / "own" / "model", architecture, **fields, **FAMILY, **CODES | OWN)
    capsys.readouterr()  # progress of saving

    def analysis(*arguments):
        code, out, err = run("analyze", command, *arguments, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    assert analysis(model, *rest, *LANGUAGES) == analysis(own, *rest)
    for languages, message in (
        ((), "source_lang is missing"),
        ((*LANGUAGES[:2], "--target-lang", "de"), "target_lang='de' is none of the 2 language codes"),
    ):
        code, out, err = run("analyze", command, model, *rest, *languages)
        assert (code, out) == (1, "") and message in err


def test_models_without_codes():
    model = build("concat", past_context=1)
    model.config.source_lang, model.config.target_lang = "en", None
    with pytest.raises(ValueError, match="source_lang='fr': this model has no codes"):
        set_languages(model, "fr", "de")
    with chosen_languages(model, None, "de"):
        assert (model.config.source_lang, model.config.target_lang) == ("en", "de")
    assert (model.config.source_lang, model.config.target_lang) == ("en", None)
