"""`docmt translate`: documents and plain lines, devices, output that appears whole."""

import json
import re

import pytest
import torch
from support.reader_checks import jsonl
from support.tiny_models import build, word_tokenizer

from hf_docmt.cli import loading, translation_settings
from hf_docmt.systems import kernel_system

ROW = {"translation": [""], "repairs": [], "search": {}}
ROWS = [ROW | {"doc_id": "a", "source": ["", ""]}, ROW | {"doc_id": "b", "source": [""]}]


def test_translate_keeps_documents_and_sentences(run, model, documents, tmp_path):
    output = tmp_path / "out.jsonl"
    code, out, err = run("translate", model, documents, "-o", output, "--strategy", "sequential", "--beams", 2)
    assert (code, out) == (0, "") and "2 documents, 3 sentences" in err
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [row["doc_id"] for row in rows] == ["a", "b"]
    assert [len(row["translation"]) for row in rows] == [len(row["source"]) for row in rows] == [2, 1]
    assert rows[0]["translation"][1] == ""


def test_an_empty_document_among_others(run, model, tmp_path):
    """It is translated to none, whatever the strategy, and the others as without it."""
    rows = [{"doc_id": doc_id, "source": source} for doc_id, source in (("a", ["One.", "Two."]), ("c", ["Three."]))]
    outputs = []
    for name, documents in (("some", rows), ("all", [rows[0], {"doc_id": "b", "source": []}, rows[1]])):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(jsonl(documents))
        for strategy in ("sliding", "sequential", "full", "sentence"):
            code, out, err = run("translate", model, path, "--beams", 2, "--strategy", strategy)
            assert code == 0 and f"{len(documents)} documents, 3 sentences" in err, err
            outputs.append([json.loads(line) for line in out.splitlines()])
    for without, made in zip(outputs[:4], outputs[4:]):
        assert made[1]["translation"] == made[1]["source"] == [] and [made[0], made[2]] == without


def test_models_run_on_the_accelerator(run, model, documents, monkeypatch):
    for found, name in ((None, "cpu"), (torch.device("cuda"), "cuda")):
        with monkeypatch.context() as patch:
            patch.setattr(torch.accelerator, "current_accelerator", lambda check_available, found=found: found)
            assert loading.default_device() == name
    devices = []
    monkeypatch.setattr(kernel_system, "ACCELERATORS", [__file__])  # the driver of one
    translate = "hf_docmt.translation.group_translation.translation_rows"
    monkeypatch.setattr(translate, lambda system, *_: (devices.append(system.model.device.type), (ROWS, [{}, {}]))[1])
    for module in (loading, translation_settings):
        monkeypatch.setattr(module, "default_device", lambda: "meta")  # a device without numbers
    code, _, err = run("translate", model, documents)
    assert code == 0, err
    devices.append(loading.system_of_command(str(model)).model.device.type)
    assert set(devices) == {"meta"}


@pytest.mark.parametrize("name, format", [("a.txt", "lines"), ("b.txt", "text"), ("c.srt", "auto"), ("-", "lines")])
def test_line_ends_stay(run, model, tmp_path, name, format):
    """Those of Windows; what is translated is the same."""
    text = "1\n00:00:01,000 --> 00:00:02,000\nIt is new.\n\n" if name == "c.srt" else "The lamp is old.\n\nIt is new.\n"
    outputs = []
    for content in (text, text.replace("\n", "\r\n")):
        path = name if name == "-" else tmp_path / name
        if name != "-":
            path.write_bytes(content.encode())
        code, out, err = run("translate", model, path, "--format", format, stdin=content if name == "-" else None)
        assert code == 0, err
        outputs.append(out)
    assert outputs[1] == outputs[0].replace("\n", "\r\n") and "\r" not in outputs[0]


def test_translations_that_are_all_empty_are_a_failure(run, documents, tmp_path):
    """As those of a file of weights with zeros in its tail; the output is there to be looked at."""
    model, tokenizer, output = build("concat", source_lang="en"), word_tokenizer(), tmp_path / "out.jsonl"
    model.final_logits_bias[0, model.config.eos_token_id] = 1e4
    model.save_pretrained(tmp_path / "model"), tokenizer.save_pretrained(tmp_path / "model")
    code, _, err = run("translate", tmp_path / "model", documents, "-o", output)
    assert code == 1 and re.search(r"(\d) of \1 sentences with text got an empty translation: the model", err)
    assert len(output.read_text().splitlines()) == 2


def test_a_failed_write_keeps_the_old_file(run, model, documents, tmp_path, monkeypatch):
    output = tmp_path / "out.jsonl"
    output.write_text("precious\n")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("hf_docmt.files.os.replace", full)
        code, _, err = run("translate", model, documents, "-o", output)
    assert code == 1 and err.endswith(f"\ndocmt: cannot write {output}: No space left on device\n")
    assert f"2 documents (3 sentences) are kept in {output}.journal: go on with the same command and --resume" in err
    assert output.read_text() == "precious\n"
    code, _, err = run("translate", model, documents, "-o", output, "--resume")
    assert code == 0 and output.read_text().count("\n") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["documents.jsonl", "out.jsonl"]


def test_search_options_reach_the_report(run, tmp_path, documents):
    """Past context, repairs and alignment of `translate` stand in its lines and in the report of `evaluate`."""
    folder = tmp_path / "window"
    tokenizer = word_tokenizer()
    chunks = {"view": "chunk", "chunk_tokens": 30, "window": 3, "length_ratio": 1.0}
    build("window", vocab_size=len(tokenizer), **{"source_lang": "en", "target_lang": "de"}, **chunks).save_pretrained(
        folder
    )
    tokenizer.save_pretrained(folder)
    output = tmp_path / "out.jsonl"
    languages = ("--source-lang", "en", "--target-lang", "de")
    options = ("--strategy", "sequential", "--past-context", 1, "--alignment", "linear", "--beams", 2)
    code, _, err = run("translate", folder, documents, "-o", output, *options)
    assert code == 0 and "lines as written" not in err, err
    code, out, _ = run("evaluate", output, documents, *languages, "--json")
    report = json.loads(out)
    assert code == 0 and report["model"]["config"] == {"past_context": 1, "alignment": "linear"}
    assert (report["results"][0]["strategy"], report["results"][0]["beams"]) == ("sequential", 2)
    code, _, err = run("translate", folder, documents, "-o", output, "--strategy", "full", "--repairs", "none")
    assert code == 0 and "2 documents, 3 sentences, " in err and " lines as written, repairs: " in err
    code, out, _ = run("evaluate", output, documents, *languages, "--json")
    assert code == 0 and json.loads(out)["model"]["config"] == {"repairs": "none"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--alignment", "linear"), "is for window models"),
        (("--past-context", 9, "--strategy", "sequential"), "past_context must be at most"),
        (("--repairs", "some"), "repairs must be one of all, none, got 'some'"),
        (("--engine", "spark"), "--engine: got 'spark', expected local, ctranslate2 or ray"),
        (("--address", "auto"), "--address is the address of a Ray cluster"),
    ],
)
def test_options_that_do_not_fit(run, model, documents, options, message):
    code, out, err = run("translate", model, documents, *options)
    assert (code, out) == (1, "") and message in err, err


def test_engine_ctranslate2(run, model, documents, tmp_path):
    """The same lines as by transformers, and a report that names the engine; other folders are refused."""
    pytest.importorskip("ctranslate2")
    folder, ours, theirs = tmp_path / "float32", tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"
    code, out, err = run("export", model, folder, "--ctranslate2", "float32")
    assert (code, out) == (0, f"{folder}\n"), err
    assert run("translate", model, documents, "-o", ours)[0] == 0
    code, _, err = run("translate", folder, documents, "-o", theirs, "--engine", "ctranslate2")
    assert code == 0, err
    rows = [[json.loads(line) for line in path.read_text().splitlines()] for path in (ours, theirs)]
    assert [row["translation"] for row in rows[0]] == [row["translation"] for row in rows[1]]
    (engine,) = {row["search"].pop("engine") for row in rows[1]}
    scores = [[score or 0 for row in each for score in row.pop("score")] for each in rows]
    assert any(scores[0]) and scores[1] == pytest.approx(scores[0], abs=2e-3)
    assert re.fullmatch(r"ctranslate2 [\d.]+, float32", engine) and rows[0] == rows[1]
    languages = ("--source-lang", "en", "--target-lang", "de")
    code, out, _ = run("evaluate", theirs, documents, *languages, "--json")
    assert code == 0 and json.loads(out)["model"]["config"] == {"engine": engine}
    for wrong, options, message in (
        (model, ("--engine", "ctranslate2"), "holds no weights of CTranslate2; write such a folder with docmt export"),
        (folder, (), "holds weights of CTranslate2 alone; translate with --engine ctranslate2"),
    ):
        code, _, err = run("translate", wrong, documents, "-o", tmp_path / "no.jsonl", *options)
        assert code == 1 and message in err and err.count("\n") == 1


def test_source_language_of_another_model(run, model, tmp_path):
    """Refused where it is not the model's; another spelling of it, and names that are no languages, are not."""
    (tmp_path / "a.txt").write_text("The lamp is old.\n")
    code, out, err = run("translate", model, tmp_path / "a.txt", "--source-lang", "fr")
    assert (code, out) == (1, "") and err.count("\n") == 1
    assert f"--source-lang is 'fr', but {model} translates from 'en'; omit it, or give a model of" in err
    for lang in ("eng_Latn", "source"):
        assert run("translate", model, tmp_path / "a.txt", "--source-lang", lang)[0] == 0
