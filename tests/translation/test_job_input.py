"""Documents of a job and their groups; plain lines one by one where no sentence reads another; what identifies it."""

import random
import threading
import time
from dataclasses import replace

import pytest
from support.reader_checks import jsonl
from support.tiny_models import build

from hf_docmt.data.documents import DataError
from hf_docmt.translation.group_translation import TranslationSettings
from hf_docmt.translation.job import job_identity, model_checksums
from hf_docmt.translation.job_input import PATIENCE, JobInput, arriving_rows, document_groups
from hf_docmt.translation.progress import JobSummary

TEXT = "eins\n\n  zwei \ndrei\u2028vier\n"


@pytest.mark.parametrize("without_context", [False, True])
def test_plain_lines(write, without_context):
    documents = JobInput(str(write("talk.txt", TEXT)), "auto", "en", without_context)
    assert documents.size() == JobSummary(4 if without_context else 1, 4) and documents.by_line == without_context
    rows = list(documents.rows())
    assert [pair["en"] for row in rows for pair in row["translation"]] == ["eins", "", "  zwei ", "drei\u2028vier"]
    ids = ["talk:1", "talk:2", "talk:3", "talk:4"] if without_context else ["talk"]
    assert [row["doc_id"] for row in rows] == ids


def test_other_formats_have_their_documents(write):
    path = write("talk.tsv", "a\t\neins\t\nzwei\t\n")
    assert not JobInput(str(path), "tsv", "en", without_context=True).by_line


@pytest.mark.parametrize("without_context", [True, False])
def test_arguments_of_the_reader(write, without_context):
    path = write("a.txt", "eins\n")
    for text, message in ((f"path={path},split=test", "takes no 'split'"), (f"source={path}", "takes no 'source'")):
        with pytest.raises(DataError, match=f"format 'lines' {message}"):
            JobInput(text, "lines", "en", without_context)


def test_broken_files_are_found_before_the_work(write):
    path = write("a.jsonl", '{"doc_id": "a", "source": ["eins"]}\n' * 2)
    with pytest.raises(DataError, match="a.jsonl, line 2: document id 'a' was used before"):
        JobInput(str(path), "auto", "en").size()


def test_a_data_set_of_the_hub_is_not_counted():
    assert JobInput("path=owner/name,split=test", "datasets", "en").size() is None


def test_identity(tmp_path, write):
    """Of model and input it is the content that counts, not the name; checkpoints and logs are no part of a model."""
    folder, path = tmp_path / "model", write("in.txt", "eins\n")
    build().save_pretrained(folder)
    settings = TranslationSettings(str(folder), "en", search={"num_beams": 4})
    before = job_identity(settings, JobInput(str(path), "lines", "en"))
    assert set(before["model"]) == {"config.json", "generation_config.json", "model.safetensors"} | {
        file.name for file in folder.glob("*.py")
    }
    (folder / "training.json").write_text("{}")
    moved = JobInput(str(path.rename(tmp_path / "moved.txt")), "lines", "en")
    assert job_identity(settings, moved) == before != job_identity(replace(settings, carry=False), moved)
    assert job_identity(settings, JobInput(str(write("in.txt", "zwei\n")), "lines", "en")) != before
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x7f")
    changed = job_identity(settings, moved)
    assert [name for name, value in changed["model"].items() if before["model"][name] != value] == [weights.name]
    assert model_checksums("no/such-model") == {}


def test_inputs_by_their_content(tmp_path, monkeypatch):
    """A folder counts by its files; what is no path by its name; a pipe cannot be read again."""
    folder = tmp_path / "data"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "a.arrow").write_text("eins")

    def content(text):
        return JobInput(text, "datasets", "en").identity()

    before = content(f"path={folder},split=test")
    assert len(before["path"]) == 64 and before["split"] == "test"
    folder = folder.rename(tmp_path / "moved")
    assert content(f"path={folder},split=test") == before
    (folder / "below" / "a.arrow").write_text("zwei")
    assert content(f"path={folder},split=test")["path"] != before["path"]
    assert content("path=owner/name")["path"] == "owner/name"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test").mkdir()
    assert content("path=owner/name,split=test")["split"] == "test" and len(content("path=test")["path"]) == 64
    assert JobInput("-", "lines", "en").identity() is None


def test_commit_of_a_revision(monkeypatch):
    """Of a branch it is the commit that counts."""
    files = {None: "snapshots/aaaa/config.json", "new": "snapshots/bbbb/config.json"}
    monkeypatch.setattr("transformers.utils.cached_file", lambda model, name, revision=None: files[revision])
    for revision, commit in ((None, "aaaa"), ("new", "bbbb")):
        settings = TranslationSettings("owner/model", "en", revision=revision)
        assert model_checksums(settings.model, settings.revision) == {"commit": commit}


def test_standard_input_is_read_once(write):
    """Whichever argument of the reader it is."""
    path = write("a.txt", "one\n")
    assert JobInput(f"source={path},ids=-", "moses", "en").size() is None


def rows_of(*sizes, text="abc"):
    return [{"doc_id": str(n), "translation": [{"en": text}] * size} for n, size in enumerate(sizes)]


def sizes_of(groups):
    return [[len(row["translation"]) for row in group.rows] for group in groups]


def groups_of_arriving(rows, *bounds, **options):
    return document_groups(arriving_rows(rows), *bounds, **options)


@pytest.mark.parametrize("group", [document_groups, groups_of_arriving])
def test_bounds(group):
    rows = rows_of(2, 2, 1, 9, 1, 4, 5, 5, 1)
    assert sizes_of(group(rows, 5)) == [[2, 2, 1], [9], [1, 4], [5], [5], [1]]
    assert sizes_of(group(rows, 50, 13)) == [[2, 2], [1], [9], [1], [4], [5], [5], [1]]  # 3 characters a sentence
    assert sizes_of(group(rows)) == [[2, 2, 1, 9, 1, 4, 5, 5, 1]]
    assert sizes_of(group([])) == []


@pytest.mark.parametrize("group", [document_groups, groups_of_arriving])
def test_long_documents_fill_batches(group):
    """More sentences than the bound until there are four batches of documents; never more characters."""
    rows = rows_of(*[9] * 20)
    assert sizes_of(group(rows, 5, batch_size=2)) == [[9] * 8, [9] * 8, [9] * 4]
    assert sizes_of(group(rows, 90, batch_size=2)) == [[9] * 10, [9] * 10]
    assert sizes_of(group(rows, 5, 3 * 9 * 3, batch_size=2)) == [[9] * 3] * 6 + [[9] * 2]  # 3 characters a sentence


def test_every_document_is_in_one_group():
    """Against a slow definition: a group ends where the next document would pass a bound."""
    for seed in range(50):
        draw = random.Random(seed)
        rows, limit = rows_of(*draw.choices(range(1, 12), k=40)), draw.randint(1, 20)
        groups = list(document_groups(rows, limit))
        assert [row for group in groups for row in group.rows] == rows
        assert [group.number for group in groups] == list(range(len(groups)))
        for this, following in zip(groups, groups[1:]):
            assert this.sentences <= limit or len(this.rows) == 1
            assert this.sentences + len(following.rows[0]["translation"]) > limit


def test_a_group_is_lazy():
    """No more documents are read than the group and the one that does not fit."""
    read = []
    groups = document_groups((read.append(row["doc_id"]) or row for row in rows_of(3, 3, 3, 3)), 3)
    next(groups)
    assert read == ["0", "1"]


def test_arriving_documents_do_not_wait():
    go_on = threading.Event()

    def arriving():
        yield from rows_of(1, 1)
        go_on.wait(10)
        yield from rows_of(1)
        raise ValueError("line 4: broken")

    groups, started = document_groups(arriving_rows(arriving())), time.monotonic()
    assert sizes_of([next(groups)]) == [[1, 1]] and time.monotonic() - started < PATIENCE + 2
    go_on.set()
    assert sizes_of([next(groups)]) == [[1]]
    with pytest.raises(ValueError, match="line 4: broken"):
        next(groups)


def test_inputs_without_a_sentence(write):
    """An empty document among others has no translation, all of them are refused. Files with markup stay."""
    rows = [{"doc_id": "a", "source": ["One."]}, {"doc_id": "b", "source": []}, {"doc_id": "c", "source": ["Two."]}]
    size = JobInput(str(write("some.jsonl", jsonl(rows))), "auto", "en").size()
    assert (size.documents, size.sentences) == (3, 2)
    with pytest.raises(DataError, match="none.jsonl: no document has a sentence"):
        JobInput(str(write("none.jsonl", jsonl(rows[1:2]))), "auto", "en").size()
    assert JobInput(str(write("code.md", "```\nlamp()\n```\n")), "auto", "en").size().sentences == 0


def test_lines_of_several_sentences_are_warned_of(write, capsys):
    """Once, where the format was found by itself; sentence pairs now and then are none."""
    path = str(write("a.txt", "One. Two.\nThree.\n"))
    for format, count in (("auto", 1), ("lines", 0)):
        documents = JobInput(path, format, "en")
        assert [len(row["translation"]) for row in documents.rows()] == [2] and documents.size().sentences == 2
        assert capsys.readouterr().err.count("a.txt: lines hold several sentences") == count
    JobInput(str(write("b.txt", "One. Two.\n" + "Three.\n" * 20)), "auto", "en")
    assert capsys.readouterr().err == ""
