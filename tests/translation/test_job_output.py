"""The output that appears at the end: its journal cut at every byte, damaged, locked, of another job."""

import gzip
import os
import random
from types import SimpleNamespace

import pytest
from support.errors import refused
from support.killed_processes import killed_at

from hf_docmt.files import check_writable_folder
from hf_docmt.journal import Journal
from hf_docmt.translation import job_output
from hf_docmt.translation.document_output import check_document_output
from hf_docmt.translation.job_input import Group
from hf_docmt.translation.job_output import JournaledOutput, check_output

IDENTITY = {"model": {"config.json": "a" * 64}, "options": {"beams": 4}, "input": {"content": "b" * 64}}
TEXTS = ["eins\nzwei\n", "", "drei ü\n"]
ROW = {"doc_id": "d", "source": ["a", "b", "c"], "translation": ["x", "y", "z"], "repairs": [], "search": {}}
WHOLE = "".join(TEXTS).encode()
GROUPS = [Group(number, [{"text": text}, {"text": ""}]) for number, text in enumerate(TEXTS)]


def open_output(path, identity=None, resume=False):
    return JournaledOutput(path, identity or IDENTITY, lambda document, row: document["text"], resume)


def write(path, resume=False, groups=GROUPS, identity=IDENTITY, until=None):
    """Write the file as a job does, or its first groups; the output."""
    with open_output(path, identity, resume) as output:
        for group in output.missing(groups):
            if group.number == until:
                raise KeyboardInterrupt
            output.write(group, [ROW, ROW])
        output.finish()
    return output


def unfinished(path, groups=2, identity=IDENTITY):
    with pytest.raises(KeyboardInterrupt):
        write(path, until=groups, identity=identity)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_cut_at_every_byte(tmp_path, monkeypatch):
    """What a kill leaves of the journal: the end is that of a job that was left alone, and no whole group is lost."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    path, journal = tmp_path / "out.txt", tmp_path / "out.txt.journal"
    unfinished(path)
    whole = journal.read_bytes()
    for size in range(len(whole) + 1):
        journal.write_bytes(whole[:size])
        with open_output(path, resume=True) as output:
            assert output.groups == max(whole[:size].count(b"\n") - 1, 0)
            for group in output.missing(GROUPS):
                output.write(group, [ROW, ROW])
            output.finish()
        assert path.read_bytes() == WHOLE and output.summary.documents == 6 and names(tmp_path) == ["out.txt"]
        path.unlink()


def test_damage_of_the_journal_is_reported(tmp_path, capsys, monkeypatch):
    """Of a group: it is written again; of the first row: the job cannot go on. Never a wrong result."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    path, journal = tmp_path / "out.txt", tmp_path / "out.txt.journal"
    unfinished(path)
    whole = journal.read_bytes()
    header = whole.index(b"\n") + 1
    for place in range(0, len(whole) - 1, 3):
        content = bytearray(whole)
        content[place] ^= 4
        journal.write_bytes(content)
        if place < header:
            refused(
                r"out.txt.journal(, line 1: no row| is in the way| exists and is not a file)", write, path, resume=True
            )
            continue
        assert write(path, resume=True).groups == 3 and path.read_bytes() == WHOLE
        assert "the groups from there on are translated again" in capsys.readouterr().err
        path.unlink()


def run(path, step):
    """Write or resume the file in a process that is killed at its n-th call that changes a file; whether it was."""
    resume = (path.parent / f"{path.name}.journal").exists()
    return killed_at(step, lambda: write(path, resume) and None, path.parent.parent / "log")


def test_killed_at_every_step(tmp_path):
    """By kill -9, and again at some step of the resumed job: at every moment there is the old file or the new one."""
    write(tmp_path / "expected.gz")
    expected, draw, step, is_killed = (tmp_path / "expected.gz").read_bytes(), random.Random(0), 0, True
    assert gzip.decompress(expected) == WHOLE
    while is_killed:
        step += 1
        folder = tmp_path / str(step)
        folder.mkdir()
        path = folder / "out.gz"
        path.write_bytes(b"old")
        is_killed = run(path, step)
        while path.read_bytes() == b"old" or len(names(folder)) > 1:
            assert path.read_bytes() in (b"old", expected)
            run(path, draw.randrange(draw.choice([8, 40])))
        assert path.read_bytes() == expected and names(folder) == [path.name]
    assert step > 15


def test_it_appears_at_the_end_with_the_mode_of_the_file_before(tmp_path):
    path, link = tmp_path / "real.txt", tmp_path / "link.txt"
    path.write_text("old")
    path.chmod(0o604)
    link.symlink_to(path)
    unfinished(link)
    assert path.read_text() == "old" and names(tmp_path) == ["link.txt", "real.txt", "real.txt.journal"]
    assert (tmp_path / "real.txt.journal").stat().st_mode & 0o777 == 0o600
    output = write(link, resume=True)
    assert path.read_bytes() == WHOLE and path.stat().st_mode & 0o777 == 0o604
    assert link.is_symlink() and names(tmp_path) == ["link.txt", "real.txt"]
    assert (output.summary.documents, output.summary.sentences, output.groups) == (6, 18, 3)
    before = os.umask(0o027)
    write(tmp_path / "new.txt")
    os.umask(before)
    assert (tmp_path / "new.txt").stat().st_mode & 0o777 == 0o640


def test_an_unfinished_job_is_not_lost(tmp_path):
    path = tmp_path / "out.txt"
    unfinished(path)
    refused(rf"--resume to continue it, or delete {path}.journal to start again", write, path)
    changed = {"model": {"config.json": "c" * 64}, "options": {"beams": 5, "new": 1}, "input": {"content": "d" * 64}}
    differences = (
        r"\(model config.json changed; options beams was 4, is 5; options new was None, is 1; input content changed\)"
    )
    refused(f"the request differs {differences}: .*or delete", write, path, resume=True, identity=changed)
    assert names(tmp_path) == ["out.txt.journal"]
    assert write(path, resume=True).groups == 3 and path.read_bytes() == WHOLE


def test_a_job_from_a_pipe(tmp_path):
    """It goes on where the pipe gives the same documents again; what was done is not lost otherwise."""
    path, identity = tmp_path / "out.txt", IDENTITY | {"input": None}
    unfinished(path, identity=identity)
    with open_output(path, identity, resume=True) as output:
        assert output.way_on().endswith("go on with the same command, the same documents from the pipe, and --resume")
    other = [Group(0, [{"text": "other"}])]
    for groups in (other, GROUPS[:1], []):
        refused("translations of other documents than the input has now", write, path, True, groups, identity)
    write(path, True, identity=identity)
    assert path.read_bytes() == WHOLE and names(tmp_path) == ["out.txt"]
    unfinished(path, identity=identity)
    refused("holds an unfinished job", write, path, groups=other, identity=identity)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("elsewhere", path)])
def test_journal_path_that_is_not_a_file(tmp_path, make):
    """It is neither waited for nor written through."""
    make(tmp_path / "out.txt.journal")
    refused("out.txt.journal exists and is not a file; move it", write, tmp_path / "out.txt")
    refused("ends in .journal as the files of unfinished jobs do", check_output, str(tmp_path / "out.journal"))
    assert names(tmp_path) == ["out.txt.journal"]


def test_links_that_lead_to_themselves(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for path in ("a", "a/out.txt"):
        refused("a symbolic link that leads to itself; remove it", check_output, str(tmp_path / path))
    refused("a symbolic link that leads to itself", check_writable_folder, tmp_path / "a" / "folder")


def test_nothing_is_left_of_a_job_without_a_group(tmp_path):
    unfinished(tmp_path / "out.txt", groups=0)
    assert names(tmp_path) == []
    assert write(tmp_path / "out.txt", resume=True).path.read_bytes() == WHOLE  # nothing to resume: a new job


def test_journals_of_other_versions_and_of_others_are_not_touched(tmp_path):
    """Those of 0.2.0 begin with version 1."""
    journal = tmp_path / "out.txt.journal"
    for content in ('{"docmt_translation_job": 1, "identity": {"input": null}}\n{"group": 0}\n', "mine\n", "mine"):
        journal.write_text(content)
        for resume in (True, False):
            refused(
                f"{journal} is in the way, .* of another version of docmt; .*finish it",
                write,
                tmp_path / "out.txt",
                resume,
            )
        assert journal.read_text() == content and names(tmp_path) == [journal.name]


def test_one_job_at_a_time(tmp_path):
    path = tmp_path / "out.txt"
    with open_output(path) as output:
        refused("another job uses .*out.txt.journal now; wait for its end", write, path)
        output.finish()
    assert path.read_bytes() == b"" and names(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("step", ["replace", "write"])
def test_a_full_disk_keeps_finished_rows(tmp_path, monkeypatch, step):
    path = tmp_path / "out.txt"

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match=f"cannot write {path}: No space left"):
        with open_output(path) as output:
            for group in GROUPS:
                if group.number == 2:
                    patch.setattr(os, "replace", full) if step == "replace" else patch.setattr(Journal, "append", full)
                output.write(group, [ROW, ROW])
            output.finish()
    assert output.way_on().startswith(f"{6 if step == 'replace' else 4} documents (")
    assert names(tmp_path) == ["out.txt.journal"]
    assert write(path, resume=True).path.read_bytes() == WHOLE and names(tmp_path) == ["out.txt"]
    path.unlink()
    monkeypatch.setattr(Journal, "append", full)
    with pytest.raises(OSError, match=f"cannot write {path}: No space left"):
        write(path)
    assert names(tmp_path) == []


def test_an_output_that_vanishes_on_its_way_is_an_error(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    monkeypatch.setattr("hf_docmt.files.os.replace", lambda source, _: os.unlink(source))
    with pytest.raises(OSError, match=f"{path} is gone, though it was written; all is kept in .*journal"):
        write(path)
    assert names(tmp_path) == ["out.txt.journal"]


def test_a_stream_is_written_at_once(tmp_path, capsys):
    for path in ("-", "/dev/null"):
        with job_output.open_output(path, IDENTITY, lambda document, row: document["text"]) as output:
            output.write(GROUPS[0], [ROW, ROW])
            assert capsys.readouterr().out == (TEXTS[0] if path == "-" else "") and not output.is_kept
            assert output.way_on() == "2 documents written, and nothing else is kept"


def test_a_folder_in_the_place_of_the_output_is_kept(tmp_path):
    """Only a job that is resumed and was killed in its last steps has written it: its journal is beside it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("keep me")
    documents = SimpleNamespace(format="folder", path=tmp_path / "in", files={})
    for resume in (False, True):
        with pytest.raises(ValueError, match="out"):
            check_document_output(str(tmp_path / "out"), documents, resume)
    (tmp_path / "out.journal").write_text("")
    with pytest.raises(ValueError, match="out"):
        check_document_output(str(tmp_path / "out"), documents, resume=False)
    check_document_output(str(tmp_path / "out"), documents, resume=True)
