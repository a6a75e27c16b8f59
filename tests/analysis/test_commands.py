"""The commands of analyses: what they print, draw and write, the languages they are told, and what they refuse."""

import json
import re

import pytest
from support.tiny_models import build, random_text, word_tokenizer

from hf_docmt.analysis.model_runs import chosen_languages, set_languages
from hf_docmt.analysis.token_maps import gate_map, group_maps
from hf_docmt.reports.report import Report

FAMILY = {"source_format": "[source_lang] X </s>", "target_format": "<start> [target_lang] X </s>"}
CODES = {"language_ids": {"xx": 26, "yy": 27}, "source_lang": None, "target_lang": None}
OWN = {"source_lang": "xx", "target_lang": "yy"}
LANGUAGES = ("--source-lang", "xx", "--target-lang", "yy")
SENTENCES = random_text([3, 2, 4], seed=1)
COMMANDS = {  # command: architecture, fields, arguments behind the model, words in the table, words in the picture
    "attention-share": ("concat", {"past_context": 1}, ["{data}"], "sentence=1", "same sentence"),
    "groups": ("caching", {"past_context": 1, "shortening": "grouping"}, SENTENCES, "groups used", "model, grouping"),
    "gates": ("routing", {"past_context": 1}, SENTENCES, "mean", "model, sentence 2"),
    "information-gain": ("memory", {}, ["{data}"], "gain (nats)", "output attention"),
    "attribution": ("memory", {}, ["{data}", "--reach", 2, "--step", 1], "sentence pairs", "distance in sentences"),
    "memory-maps": ("memory", {}, ["{data}", "--document", "a"], "slot", "source: update by sentence 1"),
}


@pytest.fixture
def command(request, tmp_path, capsys):
    """`docmt analyze` with a model whose family has codes of languages, which its configuration has or not."""
    name = request.param
    architecture, fields, arguments, *_ = COMMANDS[name]
    pairs = zip(SENTENCES, random_text([2, 3, 1], seed=2))
    row = {"doc_id": "a", "translation": [{"xx": one, "yy": other} for one, other in pairs]}
    (tmp_path / "talks.jsonl").write_text(json.dumps(row) + "\n")

    def arguments_of(folder, languages):
        build(architecture, **fields, **FAMILY, **CODES | languages).save_pretrained(tmp_path / folder / "model")
        word_tokenizer().save_pretrained(tmp_path / folder / "model")
        capsys.readouterr()  # progress of saving
        rest = (str(argument).format(data=tmp_path / "talks.jsonl") for argument in arguments)
        return ("analyze", name, tmp_path / folder / "model", *rest)

    return name, arguments_of


@pytest.mark.parametrize("command", COMMANDS, indirect=True)
def test_table_picture_and_report(run, command, tmp_path):
    pytest.importorskip("matplotlib")
    name, arguments_of = command
    arguments, picture, output = arguments_of("own", OWN), tmp_path / "a.svg", tmp_path / "a.json"
    *_, in_table, in_picture = COMMANDS[name]
    kept = () if name == "memory-maps" else ("-o", output)
    code, out, err = run(*arguments, "--picture", picture, *kept)
    assert (code, err) == (0, "") and in_table in out
    assert in_picture in " ".join(re.findall(r"<!-- (.*?) -->", picture.read_text()))
    code, out, _ = run(*arguments, "--json")
    found = json.loads(out)
    if name == "memory-maps":
        assert len(found["maps"]) == 3 * 4 and len(found["maps"][0]["weights"]) == len(found["maps"][0]["tokens"])
        return
    if name == "information-gain":  # a folder of reports, one for each model
        (found,), output = found, output / "model.json"
    report = Report.from_dict(found)
    assert Report.read(output) == report and {result.task for result in report.results} == {"context use"}
    assert report.data.get("sentences", SENTENCES) == SENTENCES
    code, out, _ = run(*arguments, "--picture", tmp_path / "a.png")
    assert code == 0 and (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("command", COMMANDS, indirect=True)
def test_languages(run, command):
    _, arguments_of = command
    without, own = arguments_of("without", {}), arguments_of("own", OWN)
    code, out, err = run(*without, *LANGUAGES, "--json")
    assert (code, err) == (0, "") and json.loads(out) == json.loads(run(*own, "--json")[1])
    for languages, message in (
        ((), "source_lang is missing"),
        ((*LANGUAGES[:2], "--target-lang", "de"), "target_lang='de' is none of the 2 language codes"),
    ):
        code, out, err = run(*without, *languages)
        assert (code, out) == (1, "") and message in err


@pytest.mark.parametrize("command", COMMANDS)
def test_outputs_are_checked_before_anything_is_read(run, command, tmp_path):
    _, _, arguments, *_ = COMMANDS[command]
    refused = [(("--picture", tmp_path / "a.pdf"), "ends in .png or .svg")]
    refused += [(("--picture", tmp_path / "nowhere" / "a.png"), "make it first")]
    if command not in ("memory-maps", "information-gain"):
        refused += [(("-o", tmp_path / "nowhere" / "a.json"), "nowhere")]
        refused += [(("--picture", tmp_path / "a.png", "-o", tmp_path / "a.png"), "both picture and report")]
    for options, message in refused:
        code, out, err = run("analyze", command, tmp_path / "no model", *map(str, arguments), *options)
        assert (code, out) == (1, "") and err.startswith("docmt: ") and message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["gates"], indirect=True)
def test_table_of_gates(run, command):
    arguments = command[1]("own", OWN)
    header, _, *rows = (line.split() for line in run(*arguments)[1].splitlines())
    found = gate_map(build("routing", past_context=1, **FAMILY, **CODES | OWN), SENTENCES, word_tokenizer())
    assert header == ["layer", "token", "-1", "+1"]
    assert [row[0] for row in rows[:: len(found.tokens)]] == ["mean", "1", "2"]
    assert [row[2:] for row in rows] == [[f"{one:.3f}" for one in row] for _, layer in found.by_layer for row in layer]
    code, out, _ = run(*arguments, "--sentence", 1)
    assert (code, out.split()[:4]) == (0, ["layer", "token", "+1", "nothing"])
    assert "sentence 4 of 3: expected a number from 1 to 3" in run(*arguments, "--sentence", 4)[2]
    assert "sentence 4 is empty" in run(*arguments, " ")[2]


@pytest.mark.parametrize("command", ["groups"], indirect=True)
def test_table_of_groups(run, command):
    arguments = command[1]("own", OWN)
    weights, use, summary = run(*arguments)[1].strip().split("\n\n")
    model = build("caching", past_context=1, shortening="grouping", **FAMILY, **CODES | OWN)
    found = group_maps(model, SENTENCES, word_tokenizer())
    shown = [["." if weight == 0 else f"{weight:.2f}" for weight in row] for row in found.weights]
    assert [row.split()[2:] for row in weights.splitlines()[2:]] == shown
    assert [int(row.split()[2]) for row in use.splitlines()[2:]] == found.groups["tokens"].tolist()
    tokens, groups = found.weights.shape
    assert summary == f"{found.used} of {groups} groups used, {found.ungrouped} of {tokens} tokens in none"


@pytest.mark.parametrize("command", ["information-gain"], indirect=True)
def test_several_models(run, command):
    arguments = command[1]("own", OWN)
    assert "two models are called 'model'" in run(*arguments[:3], *arguments[2:])[2]
    other = arguments[2].rename(arguments[2].parent / "other")
    arguments[2].mkdir()
    for file in other.iterdir():
        (arguments[2] / file.name).write_bytes(file.read_bytes())
    rows = [line.split() for line in run(*arguments[:3], other, *arguments[3:])[1].splitlines()[2:]]
    assert [(row[0], row[2]) for row in rows] == [
        (name, kind) for name in ("model", "other") for kind in ("update", "output")
    ]


def test_languages_of_models_without_codes():
    model = build("concat", past_context=1)
    model.config.source_lang, model.config.target_lang = "en", None
    with pytest.raises(ValueError, match="source_lang='fr': this model has no codes"):
        set_languages(model, "fr", "de")
    with chosen_languages(model, None, "de"):
        assert (model.config.source_lang, model.config.target_lang) == ("en", "de")
    assert (model.config.source_lang, model.config.target_lang) == ("en", None)
