"""`docmt translate` as a job: outputs that are refused, signals, pipes that stay open, documents that fail."""

import json
import os
import resource
import select
import shutil
import signal
import time

import pytest
from support.killed_processes import start, wait, write_input
from support.tiny_models import write_model

from hf_docmt.translation import group_translation


@pytest.fixture
def files(tmp_path):
    return write_input(tmp_path, 40)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("tiny"))


def test_the_input_is_not_overwritten(run, model, documents, tmp_path):
    before = documents.read_bytes()
    (tmp_path / "soft").symlink_to(documents)
    (tmp_path / "hard").hardlink_to(documents)
    for name in (documents, tmp_path / "soft", tmp_path / "hard"):
        code, _, err = run("translate", model, documents, "-o", name)
        assert code == 1 and err == f"docmt: the output {name} is the input {documents}; give the output another name\n"
    assert documents.read_bytes() == before


@pytest.mark.parametrize("side", ["source", "target", "ids"])
def test_no_file_of_the_input_is_overwritten(run, model, tmp_path, side):
    files = {name: tmp_path / f"a.{name}" for name in ("source", "target", "ids")}
    for name, text in (("source", "One.\n"), ("target", "Eins.\n"), ("ids", "x.xml\ty.xml\t1\t1\n")):
        files[name].write_text(text)
    before = files[side].read_text()
    given = ",".join(f"{name}={path}" for name, path in files.items())
    code, _, err = run("translate", model, given, "--format", "moses", "-o", files[side])
    assert code == 1 and f"is the input {files[side]}" in err and files[side].read_text() == before


def test_outputs_that_are_refused_before_the_work(run, model, documents, tmp_path):
    """No weights are looked for before the outputs."""
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copy(model / "config.json", bare)
    for output, options, words in (
        (tmp_path, (), "it is a folder"),
        ("-", ("--resume",), "a job that writes to standard output cannot be resumed"),
        ("/dev/null", ("--resume",), "a job that writes to /dev/null, a pipe or device, cannot be resumed"),
    ):
        code, out, err = run("translate", bare, documents, "-o", output, *options)
        assert (code, out) == (1, "") and words in err, err


def test_options_of_a_resumed_job(run, model, documents, tmp_path):
    output = tmp_path / "out.jsonl"

    def full(*_):
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hf_docmt.files.os.replace", full)
        run("translate", model, documents, "-o", output, "--beams", 2)
    code, _, err = run("translate", model, documents, "-o", output, "--beams", 3, "--resume")
    assert code == 1 and "the request differs (options search num_beams was 2, is 3)" in err
    code, _, err = run("translate", model, documents, "-o", output, "--beams", 2)
    assert code == 1 and f"--resume to continue it, or delete {output}.journal" in err
    code, _, err = run("translate", model, documents, "-o", output, "--beams", 2, "--resume")
    assert code == 0 and err.startswith("2 documents, 3 sentences")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_job_with_a_way_on(tiny, files, tmp_path, number, code):
    output, log = tmp_path / "out.jsonl", tmp_path / "log"
    pid = start("translate", tiny, files["jsonl"], "-o", output, log=log)
    journal = tmp_path / "out.jsonl.journal"
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 1):
        time.sleep(0.01)
    os.kill(pid, number)
    assert wait(pid) == code
    name = {130: "Ctrl-C", 143: "SIGTERM"}[code]
    (message,) = [line for line in log.read_text().splitlines() if line.startswith("docmt: ")]
    assert message.startswith(f"docmt: stopped by {name}; ")
    assert message.endswith(f"are kept in {output}.journal: go on with the same command and --resume")


def test_a_limit_of_file_size(tiny, files, tmp_path):
    """As a disk that fills: what is done stays, and the resumed job ends as one that was left alone."""
    whole, output, log = tmp_path / "whole.jsonl", tmp_path / "out.jsonl", tmp_path / "log"
    assert wait(start("translate", tiny, files["jsonl"], "-o", whole, log=log)) == 0
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (whole.stat().st_size * 2 // 3, limits[1]))
    try:
        pid = start("translate", tiny, files["jsonl"], "-o", output, log=log)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert wait(pid) == 1
    assert f"docmt: cannot write {output}: File too large" in log.read_text() and "--resume" in log.read_text()
    assert wait(start("translate", tiny, files["jsonl"], "-o", output, "--resume", log=log)) == 0
    assert output.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    ("options", "line", "end"),
    [
        ((), '{"source": ["w6 w7"]}\n', "}\n"),
        (("--format", "lines", "--strategy", "sentence"), "w6 w7\n", "\n"),
        pytest.param(("--processes", "2"), '{"source": ["w6 w7"]}\n', "}\n", marks=pytest.mark.slow),
    ],
)
def test_documents_of_a_pipe_are_translated_as_they_come(tiny, tmp_path, options, line, end):
    """While it stays open; each is there before the next one is sent."""
    (our_input, their_output), (their_input, our_output) = os.pipe(), os.pipe()
    pid = start("translate", tiny, "-", *options, log=tmp_path / "log", stdin=their_input, stdout=their_output)
    os.close(their_input), os.close(their_output)
    for _ in range(3):
        os.write(our_output, line.encode())
        assert select.select([our_input], [], [], 120)[0]
        assert os.read(our_input, 1 << 16).decode().endswith(end)
    os.close(our_output)
    assert wait(pid) == 0
    os.close(our_input)


def test_failed_documents(run, model, documents, tmp_path, monkeypatch):
    """They have an error in their row, blank lines in plain text, and the exit code says so."""
    whole = group_translation.translation_rows

    def fragile(system, doc_ids, sources, given):
        if any("It is new." in source for source in sources):
            raise ValueError("scores of the next token are not finite (step 3)")
        return whole(system, doc_ids, sources, given)

    monkeypatch.setattr(group_translation, "translation_rows", fragile)
    code, out, err = run("translate", model, documents)
    assert code == 1 and "b: scores of the next token are not finite (step 3)\n" in err and "1 document failed" in err
    assert [json.loads(line).get("error", "")[:6] for line in out.splitlines()] == ["", "scores"]
    plain = ("translate", model, "-", "--strategy", "sentence")
    code, out, err = run(*plain, stdin="The lamp is old.\nIt is new.\nThe lamp is old.\n")
    lines = out.split("\n")
    assert code == 1 and len(lines) == 4 and lines[1] == "" and lines[0] == lines[2] != "" and "stdin:2: scores" in err
    code, out, err = run("translate", model, "-", "--strategy", "sentence", stdin="It is new.\n")
    assert (code, out) == (1, "") and err.startswith("docmt: the first document cannot be translated; 'stdin:1': ")
