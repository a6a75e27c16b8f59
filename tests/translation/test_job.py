"""Jobs: results in order, bad documents that do not end a job, and faults that concern every document and do."""

import io
import json
import os
import signal
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from support.scripted_model import Scripted
from support.tiny_models import WORDS, build, source_rows, word_tokenizer

from hf_docmt.journal import Journal
from hf_docmt.translation.corpus import json_line, translate_corpus
from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
from hf_docmt.translation.interruption import Interrupted, Interruption, interruption
from hf_docmt.translation.job import TranslationJob
from hf_docmt.translation.job_input import JobInput, document_groups
from hf_docmt.translation.job_output import open_output
from hf_docmt.translation.progress import JobSummary, Progress


class Fragile(Scripted):
    """Cannot translate documents with the word w29."""

    def translate_documents(self, documents, *arguments, **settings):
        if any("w29" in sentence for document in documents for sentence in document):
            raise ValueError("scores are not finite")
        return super().translate_documents(documents, *arguments, **settings)


@pytest.fixture
def translator(monkeypatch):
    """Of the scripted model, or of any other one."""

    def make(model=None, **settings):
        model = model or Fragile(past_context=1, source_lang="en")
        model.to = lambda **_: model
        monkeypatch.setattr("hf_docmt.systems.system.kind_of", lambda *_: "docmt")
        monkeypatch.setattr("hf_docmt.loading.model_folders.load_model", lambda *_: (model, word_tokenizer()))
        return GroupTranslator(TranslationSettings("folder", **settings))

    return make


def run(rows, translator, path, signals=None, **bounds):
    """The summary of a job over these rows, and the rows that it wrote."""
    documents = SimpleNamespace(
        format="jsonl", is_pipe=False, identity=lambda: {}, size=lambda: None, rows=lambda: iter(rows)
    )
    job = TranslationJob(
        translator.settings,
        documents,
        make_engine=lambda _: lambda _: ((group, translator(group)) for group in document_groups(rows, **bounds)),
        open_output=lambda identity: open_output(str(path), identity, lambda _, row: json_line(row)),
    )
    return job.run(signals or Interruption()), [json.loads(line) for line in path.read_text().splitlines()]


def test_groups_equal_the_whole_corpus(translator, tmp_path):
    from hf_docmt.data.documents import make_documents

    rows = source_rows(*[[WORDS[n % 20], "", f"{WORDS[(n + 3) % 20]} {WORDS[n % 7]}"][: 1 + n % 3] for n in range(30)])
    model = build(past_context=1)
    model.generation_config.max_new_tokens = 8
    expected = translate_corpus(model, word_tokenizer(), make_documents(rows, "en"), batch_size=3, num_beams=2)
    of_groups = translator(model, batch_size=3, search={"num_beams": 2})
    summary, written = run(rows, of_groups, tmp_path / "out.jsonl", max_sentences=7)
    assert written == expected and summary.sentences == sum(len(row["translation"]) for row in rows)


def test_a_bad_document_is_recorded_and_the_others_go_on(translator, tmp_path):
    rows = source_rows(["w6", "w7"], ["w8"], ["w9", "w29"], ["w10"], ["w11"])
    summary, written = run(rows, translator(), tmp_path / "out.jsonl", max_sentences=4)
    assert [row["translation"] for row in written] == [["w18", "w19"], ["w20"], ["", ""], ["w22"], ["w23"]]
    assert [row.get("error") for row in written] == [None, None, "scores are not finite", None, None]
    assert list(written[2]) == ["doc_id", "source", "translation", "repairs", "search", "error"]
    assert written[2]["search"] == written[0]["search"] == {"strategy": "sliding", "beams": 1}
    assert summary.failed == 1 and summary.failures == [("d2", "scores are not finite")]
    shown = "d2: scores are not finite\n5 documents, 7 sentences, repairs: none, 1 document failed"
    assert summary.text() == shown


class Mute(Scripted):
    """Writes nothing for the word w6."""

    def translate_documents(self, documents, *arguments, **settings):
        translations, repairs = super().translate_documents(documents, *arguments, **settings)
        return [["" if text == "w18" else text for text in document] for document in translations], repairs


def test_carried_runs_are_counted(translator, tmp_path):
    """A scripted model writes no marks, so that sentences are translated around their runs; or as they are."""
    rows, path = source_rows(["w6 <b> w7 {x}", "w8"], ["w9"]), tmp_path / "out.jsonl"
    summary, written = run(rows, translator(), path)
    assert summary.text().endswith("repairs: none, 2 runs carried (1 sentence translated around them)")
    assert [row.get("carried_runs") for row in written] == [2, None] and "<b>" in written[0]["translation"][0]
    summary, written = run(rows, translator(carry=False), path)
    assert summary.text().endswith("repairs: none") and "<b>" not in written[0]["translation"][0]


def test_empty_translations_are_counted(translator, tmp_path):
    """Those of sentences that are not empty, of documents that did not fail; named where there are any."""
    rows = source_rows(["w6", "", " "], ["w8", "w6"])
    summary, written = run(rows, translator(Mute(past_context=1, source_lang="en")), tmp_path / "out.jsonl")
    assert [row["translation"] for row in written] == [["", "", ""], ["w20", ""]] and summary.empty == 2
    shown = "2 documents, 5 sentences (2 with an empty translation, in 2 documents), repairs: none"
    assert summary.text() == shown and summary.visible == 3 and not summary.is_mostly_empty
    summary, _ = run(rows, translator(), tmp_path / "out.jsonl")
    assert summary.text() == "2 documents, 5 sentences, repairs: none"
    failed = source_rows(["w6", "w29"], ["w8"])
    summary, _ = run(failed, translator(), tmp_path / "out.jsonl")
    assert summary.failed == 1 and summary.empty == 0


@pytest.mark.parametrize(
    "empty, others, fails",
    [(1, 0, True), (121, 0, True), (1, 1, False), (50, 50, False), (51, 49, True), (51, 48, False)],
)
def test_a_job_of_empty_translations_has_failed(translator, tmp_path, empty, others, fails):
    """All of them, or more than half of a hundred; blanks in the source do not count."""
    rows = source_rows(["w6"] * empty + ["w8"] * others, ["", " ", "—"])
    summary, written = run(rows, translator(Mute(past_context=1, source_lang="en")), tmp_path / "out.jsonl")
    assert summary.is_mostly_empty is fails and sum(not text for text in written[0]["translation"]) == empty
    message = f"{empty} of {empty + others} sentence{'s' * (empty + others > 1)} with text got an empty translation"
    assert (message in summary.text()) is fails


@pytest.mark.parametrize(
    "lines, message", [(2, "source changed"), (4, "source changed"), (3, "3 documents of 3 sentences, but 1 of 1")]
)
def test_an_input_that_changes_is_an_error(translator, tmp_path, lines, message):
    """What was translated stays in the journal; in the last case a document was lost on the way."""
    path, output = tmp_path / "in.txt", tmp_path / "out.txt"
    path.write_text("w6\n\nw7\n\nw8\n")

    def engine(groups):
        (group,) = groups
        if lines == 3:
            group = replace(group, rows=group.rows[:1])
        yield group, translate(group)
        path.write_text("".join(["w6\n", "\nw7\n", "\nw8\n", "\nw9\n"][:lines]))

    translate = translator()
    job = TranslationJob(
        TranslationSettings("folder"),
        JobInput(str(path), "blank", "en"),
        make_engine=lambda _: engine,
        open_output=lambda identity: open_output(str(output), identity, lambda _, row: json_line(row)),
    )
    with pytest.raises(ValueError, match=message):
        job.run(Interruption())
    assert not output.exists() and output.with_name("out.txt.journal").exists()


def test_translations_of_an_input_in_between_are_not_gone_on_with(translator, tmp_path):
    """What was translated is compared with the input that was brought back."""
    path, output, translate = tmp_path / "in.txt", tmp_path / "out.txt", translator()
    before, between = "w6\n\nw7\n\nw8\n", "w6\n\nw9\n\nw8\n"

    def engine(groups):
        path.write_text(between)
        for group in groups:
            yield group, translate(group)

    def job(make_engine, resume):
        return TranslationJob(
            TranslationSettings("folder"),
            JobInput(str(path), "blank", "en"),
            make_engine=lambda _: make_engine,
            open_output=lambda identity: open_output(str(output), identity, lambda _, row: json_line(row), resume),
        )

    path.write_text(before)
    with pytest.raises(ValueError, match="source changed"):
        job(engine, False).run(Interruption())
    path.write_text(before)
    with pytest.raises(ValueError, match="translations of other documents than the input has now.*delete .*journal"):
        job(lambda groups: ((group, translate(group)) for group in groups), True).run(Interruption())


class Greedy(Scripted):
    """Needs more memory than there is for the word w29, and for batches of more than one row with w28."""

    def translate_documents(self, documents, *arguments, batch_size, **settings):
        words = " ".join(sentence for document in documents for sentence in document)
        if "w29" in words or "w28" in words and batch_size > 1:
            self.allocate()
        return super().translate_documents(documents, *arguments, batch_size=batch_size, **settings)

    @staticmethod
    def allocate():
        torch.empty(1 << 60)


def too_little(message, kind=RuntimeError):
    def allocate():
        raise kind(message)

    return allocate


@pytest.mark.parametrize(
    "allocate",
    [
        Greedy.allocate,
        too_little("not enough memory: you tried to allocate 8 bytes."),
        too_little("CUDA failed with error out of memory"),
        too_little("CUDA out of memory. Tried to allocate", torch.OutOfMemoryError),
        too_little("", MemoryError),
    ],
)
def test_a_lack_of_memory_costs_a_document_or_a_batch(translator, tmp_path, monkeypatch, allocate):
    """On a CPU, too, where torch raises a plain RuntimeError; other errors of torch end the job."""
    monkeypatch.setattr(Greedy, "allocate", staticmethod(allocate))
    rows = source_rows(["w6", "w7"], ["w8", "w28"], ["w9", "w29"], ["w10"])
    translate = translator(Greedy(past_context=1, source_lang="en"), batch_size=4)
    summary, written = run(rows, translate, tmp_path / "out.jsonl")
    assert [any(row["translation"]) for row in written] == [True, True, False, True]
    assert ["error" in row for row in written] == [False, False, True, False] and summary.failed == 1
    assert "\n" not in written[2]["error"] and "memory" in written[2]["error"]
    monkeypatch.setattr(Greedy, "allocate", staticmethod(too_little("mat1 and mat2 shapes cannot be multiplied")))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        translate(next(iter(document_groups(rows))))


def test_scores_that_are_not_finite_name_the_document(translator, tmp_path, monkeypatch):
    """By its id, wherever in the group it stood."""

    class NotFiniteError(ValueError):
        document = 0

        def __str__(self):
            return f"document {self.document}, sentence 1: scores are not finite"

    def fails(self, *arguments, **settings):
        raise NotFiniteError

    translate = translator()
    monkeypatch.setattr("hf_docmt.translation.group_translation.translation_rows", fails)
    (row,) = translate(next(iter(document_groups(source_rows(["w6", "w7"])))))
    assert row["error"] == "document d0, sentence 1: scores are not finite" and row["translation"] == ["", ""]


def test_faults_of_every_document_end_the_job(translator, tmp_path):
    """The first ten, or all of fewer; not nine and then a good one."""
    bad, path = ["w29"], tmp_path / "out.jsonl"
    for documents, count in (([bad], "the first document"), ([bad] * 3, "first 3 documents"), ([bad] * 99, "first 10")):
        with pytest.raises(ValueError, match=count + ".*'d0': scores are not finite"):
            run(source_rows(*documents), translator(), path, max_sentences=2)
        assert list(tmp_path.iterdir()) == []
    summary, written = run(source_rows(*[bad] * 9, ["w6"], *[bad] * 20), translator(), path, max_sentences=2)
    assert summary.failed == 29 and len(written) == 30 and written[9]["translation"] == ["w18"]
    assert summary.text().splitlines()[-2] == "... and 9 more"


def test_settings_are_checked_before_the_first_group(translator):
    for settings, message in (
        ({"strategy": "stream"}, "strategy 'stream' carries a state"),
        ({"batch_size": 0}, "must be at least 1, got 0"),
        ({"search": {"num_beams": 0}}, "num_beams must be a whole number >= 1"),
        ({"search": {"decoding_past_context": 9}}, "past_context must be at most 1"),
        ({"search": {"alignment": "linear"}}, "is for window models"),
    ):
        with pytest.raises(ValueError, match=message):
            translator(**settings)


# Ctrl-C and SIGTERM: one exception, whatever stands in between


def interrupt(number=signal.SIGINT):
    os.kill(os.getpid(), number)
    time.sleep(1)


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGINT)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with pytest.raises(Interrupted) as stopped, interruption():
            interrupt(number)
        assert stopped.value.exit_code == code and signal.getsignal(signal.SIGINT) is before


def test_a_library_that_makes_another_error_of_it():
    """As some do while they are imported."""
    with pytest.raises(Interrupted, match="stopped by Ctrl-C"), interruption():
        try:
            interrupt()
        except BaseException as error:
            raise ImportError("no module") from error
    with pytest.raises(ImportError), interruption():
        raise ImportError("no module")


def test_a_signal_while_a_group_is_written(translator, tmp_path, monkeypatch):
    """Between the record of the group and its being counted."""
    append = Journal.append

    def append_and_stop(journal, *rows):
        append(journal, *rows)
        if journal.count == 2:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)

    monkeypatch.setattr(Journal, "append", append_and_stop)
    with pytest.raises(Interrupted, match="; 1 document .* is kept in .*--resume"), interruption() as signals:
        run(source_rows(["w6"], ["w8"]), translator(), tmp_path / "out.jsonl", signals, max_sentences=1)
    _, row = Journal(tmp_path / "out.jsonl.journal").rows()
    assert json.loads(row["text"])["translation"] == ["w18"]


# Progress: lines in a log, a bar on a terminal


def test_lines_come_now_and_then(capsys):
    seconds = [0.0]
    lines = Progress(JobSummary(40, 1000), JobSummary(documents=4, sentences=100), clock=lambda: seconds[0])
    for now, documents in ((9.9, 5), (10, 6), (60, 7), (70, 8)):
        seconds[0] = now
        lines.update(JobSummary(documents=documents, sentences=documents * 25))
    assert capsys.readouterr().err.splitlines() == [
        "6 documents of 40:  15% 150/1000 [00:10<02:50,  5.00 sentences/s]",  # 50 in 10 s, 850 to go
        "8 documents of 40:  20% 200/1000 [01:10<09:20,  1.43 sentences/s]",
    ]
    lines.total = None
    assert (
        lines.line(JobSummary(documents=8, sentences=200), 70)
        == "8 documents: 200 sentences [01:10,  1.43 sentences/s]"
    )


def test_a_bar_on_a_terminal(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    bar = Progress(JobSummary(4, 10), JobSummary(documents=1, sentences=2))
    bar.update(JobSummary(documents=4, sentences=10))
    bar.close()
    assert "20%" in terminal.getvalue() and "10/10" in terminal.getvalue() and "4 documents" in terminal.getvalue()
