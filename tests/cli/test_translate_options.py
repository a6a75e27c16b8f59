"""Options of `docmt translate` for device, dtype, batches and models on the Hub; models that are not there."""

import json
import shutil
import socket
import time

import pytest
import torch
from support.errors import refused
from support.reader_checks import jsonl

from hf_docmt.engine.shortlist import LexicalShortlist
from hf_docmt.loading import model_folders
from hf_docmt.loading.model_folders import load_model
from hf_docmt.systems import load_system
from hf_docmt.systems.devices import DTYPES, checked_dtype
from hf_docmt.systems.kernel_system import KernelSystem

ROWS = [{"text": "The lamp is old. It is new.\n\nI see it."}, {"text": "She is here."}]


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text(jsonl(ROWS))
    return path


def test_batches_of_tokens_change_nothing(run, model, texts):
    command = ("translate", model, texts, "--strategy", "sliding", "--device", "cpu")
    outputs = [run(*command, *more)[1] for more in ((), ("--batch-tokens", 1), ("--batch-tokens", 999))]
    assert outputs[0] and len(set(outputs)) == 1


def test_shortlist(run, model, texts, tmp_path):
    """A list of all words changes nothing and stands in the rows; an empty one leaves the words of the source."""
    size, command = load_model(model)[0].config.vocab_size, ("translate", model, texts, "--max-new-tokens", 4)
    plain = [json.loads(line) for line in run(*command)[1].splitlines()]
    for first, path in ((size, tmp_path / "all.bin"), (0, tmp_path / "none.bin")):
        empty = torch.empty(0, dtype=torch.long)
        LexicalShortlist(torch.zeros(size + 1, dtype=torch.long), empty, first).write(path)
        code, out, err = run(*command, "--shortlist", path)
        assert code == 0, err
        rows = [json.loads(line) for line in out.splitlines()]
        assert {row["search"].pop("shortlist") for row in rows} == {str(path)}
        for row in (*rows, *plain):  # normalised over the list, which lacks the padding token
            row.pop("score", None)
        assert (rows == plain) == (first == size)
    code, _, err = run(*command, "--shortlist", texts)
    assert code == 1 and "texts.jsonl: not a binary shortlist of Marian" in err and err.count("\n") == 1
    code, _, err = run(*command, "--shortlist", tmp_path / "all.bin", "--engine", "ctranslate2")
    assert code == 1 and "--shortlist is not for --engine ctranslate2; remove it" in err


def test_nbest(run, model, texts, tmp_path):
    """Rows have the candidates of every sentence; what has no rows or fewer beams is refused."""
    code, out, err = run("translate", model, texts, "--beams", 3, "--nbest", 2, "--max-new-tokens", 4)
    assert code == 0, err
    for row in map(json.loads, out.splitlines()):
        assert all(found[0] in row["text"] for found in row["candidates"]) and "nbest" not in row["search"]
        assert max(map(len, row["candidates"])) == 2
    lines = tmp_path / "lines.txt"
    lines.write_text("a\nb\n")
    for source, more, message in (
        (texts, ("--nbest", 2), "nbest=2: a search with num_beams=1 finds fewer"),
        (texts, ("--beams", 3, "--nbest", 2, "--engine", "ctranslate2"), "--nbest is not for --engine ctranslate2"),
        (
            lines,
            ("--beams", 3, "--nbest", 2),
            "--nbest needs JSON lines as input, got lines; remove it",
        ),
    ):
        code, _, err = run("translate", model, source, *more)
        assert code == 1 and message in err and err.count("\n") == 1


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_dtype(run, model, texts, dtype, monkeypatch):
    found = []
    monkeypatch.setattr(KernelSystem, "of_job", lambda settings: None)
    translate = "hf_docmt.translation.group_translation.translation_rows"
    row = {"doc_id": "a", "repairs": [], "search": {}}
    rows = [row | {"source": ["."] * n, "translation": ["."] * n} for n in (3, 1)]
    monkeypatch.setattr(translate, lambda system, *_: (found.append(system.model.dtype), (rows, [{}, {}]))[1])
    code, _, err = run("translate", model, texts, "--dtype", dtype)
    assert code == 0 and set(found) == {DTYPES[dtype]}, err


def test_int8(run, model, texts, tmp_path):
    """As the model quantized by hand, saved or not; other devices than the CPU are refused."""
    command = ("--strategy", "sliding", "--device", "cpu")
    code, expected, err = run("translate", model, texts, *command, "--dtype", "int8")
    assert code == 0 and expected, err
    loaded, tokenizer = load_model(model)
    loaded.quantize("int8").save_pretrained(tmp_path / "int8")
    tokenizer.save_pretrained(tmp_path / "int8")
    for more in ((), ("--dtype", "int8")):
        assert run("translate", tmp_path / "int8", texts, *command, *more)[1] == expected
    assert "of linear layers docmt-int8" in run("info", tmp_path / "int8")[1]
    assert load_system(model, dtype="int8").model.is_quantized and load_system(tmp_path / "int8").model.is_quantized
    refused("int8 is for the CPU, got device 'cuda'", checked_dtype, "int8", "cuda")


@pytest.mark.parametrize(
    "options, words",
    [
        (("--dtype", "fp61"), ["unknown dtype 'fp61' (did you mean 'fp16'?)"]),
        (("--device", "cuda:77"), ["device 'cuda:77' cannot be used here"]),
        (("--device", "toaster"), ["device 'toaster' cannot be used here"]),
        (("--revision", "v1"), ["is a folder, and only models on the Hub have revisions, got 'v1'"]),
    ],
)
def test_bad_options(run, model, texts, options, words):
    code, _, err = run("translate", model, texts, *options)
    assert code == 1 and all(word in err for word in words), err


def test_model_that_names_no_languages(run, model, documents, tmp_path):
    folder = shutil.copytree(model, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text()) | {"source_lang": None, "target_lang": None}
    (folder / "config.json").write_text(json.dumps(config))
    code, _, err = run("translate", folder, documents)
    assert code == 1 and "no text in 'source', got ['de', 'en']; the model names no languages, give one of" in err
    assert run("translate", folder, documents, "--source-lang", "en")[0] == 0


def test_processes_of_a_launcher_are_refused(run, model, texts, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    code, _, err = run("translate", model, texts)
    assert code == 1 and "starts its processes itself: give --processes, and no torchrun" in err


COMMANDS = [
    ("translate", "{}"),
    ("info", "{}"),
    ("export", "{}", "out"),
    ("contrast", "{}", "x.jsonl"),
    ("analyze", "why", "{}", "x.jsonl", "--sentence", "1"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("name", ["./runs/x", "/no/such/folder", "~/x", "a/b/c", "tests/x"])
def test_folders_that_are_missing_are_not_asked_of_the_hub(run, command, name, monkeypatch):
    def asked(*_, **__):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", asked)
    start = time.process_time()
    code, _, err = run(*(part.format(name) for part in command))
    assert code != 0 and "no such folder" in err and name in err, err
    assert time.process_time() - start < 5  # under a second on an idle machine


def test_revision_of_a_model_on_the_hub(monkeypatch):
    """It goes to configuration, weights and tokenizer."""
    seen = []

    class FoundError(Exception):
        pass

    def load(*_, **options):
        seen.append(options.get("revision"))
        raise FoundError

    monkeypatch.setattr("transformers.PreTrainedConfig.get_config_dict", load)
    refused("FoundError", model_folders.load_model, "owner/name", "v1")
    config = type("Config", (), {"model_type": "docmt-concat"})()
    monkeypatch.setattr(model_folders, "load_config", lambda *arguments: seen.append(arguments[1]) or config)
    monkeypatch.setattr(model_folders, "load_weights", lambda *arguments, **_: seen.append(arguments[2]))
    monkeypatch.setattr("hf_docmt.loading.remote_code.AutoTokenizer.from_pretrained", load)
    refused("FoundError", model_folders.load_model, "owner/name", "v2")
    assert seen == ["v1", "v2", "v2", "v2"]
