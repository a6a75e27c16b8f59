"""The file that survives the end of its job: killed at every step, damaged, locked, of another job."""

import gzip
import os
import random
import shutil
import signal
import tempfile
from itertools import count
from pathlib import Path

import pytest
from support.errors import refused

from hf_docmt import store
from hf_docmt.files import check_writable_folder
from hf_docmt.store import Records, write_durably
from hf_docmt.translation import job_output
from hf_docmt.translation.job_input import Group
from hf_docmt.translation.job_output import MARK, VERSION, FileOutput, check_output

IDENTITY = {"model": {"config.json": "a" * 64}, "options": {"beams": 4}, "input": {"content": "b" * 64}}
TEXTS = ["eins\nzwei\n", "", "drei ü\n"]
ROW = {"doc_id": "d", "source": ["a", "b", "c"], "translation": ["x", "y", "z"], "repairs": [], "search": {}}
WHOLE = "".join(TEXTS).encode()


def open_file(path, identity=None, resume=False):
    return FileOutput(path, identity or IDENTITY, lambda document, row: document["text"], resume)


def add(file, text):
    """A group of two documents of three sentences each."""
    file.write(Group(0, [{"text": text}, {"text": ""}]), [ROW, ROW])


def write(path, resume=False, groups=3, identity=IDENTITY):
    """Write the file as a job does, or its first groups; the summary."""
    with open_file(path, identity, resume) as file:
        for text in TEXTS[file.groups : groups]:
            add(file, text)
        if groups < len(TEXTS):
            raise KeyboardInterrupt
        file.finish()
    return file


def unfinished(path, groups=2, identity=IDENTITY):
    with pytest.raises(KeyboardInterrupt):
        write(path, groups=groups, identity=identity)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def kill_at(step):
    """Make this process kill itself at its n-th step: before, within or after a write, or a change of a name."""
    steps = count()

    def die():
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def torn(file, data):
        die()
        file.write(data[: len(data) // 2])
        die()
        write_durably(file, data[len(data) // 2 :])
        die()

    def watched(function):
        def call(*arguments, **options):
            die()
            function(*arguments, **options)
            die()

        return call

    store.write_durably = job_output.write_durably = torn
    os.replace, os.unlink, os.chmod = map(watched, (os.replace, os.unlink, os.chmod))


def run(path, step):
    """Write or resume the file in a process that is killed at this step; whether it came to its end before."""
    if pid := os.fork():
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert code in (0, -signal.SIGKILL)
        return code == 0
    try:
        kill_at(step)
        write(path, resume=(path.parent / f"{path.name}.journal").exists())
        os._exit(0)
    finally:
        os._exit(1)


def test_killed_at_every_step(tmp_path):
    """And again at some step of the resumed job, often before its first group: the end is that of one left alone."""
    write(tmp_path / "expected.gz")
    expected, draw, ends = (tmp_path / "expected.gz").read_bytes(), random.Random(0), 0
    for step in count():
        folder = tmp_path / str(step)
        folder.mkdir()
        path = folder / "out.gz"
        path.write_bytes(b"old")
        ends += run(path, step)
        while path.read_bytes() == b"old" or len(names(folder)) > 1:
            assert path.read_bytes() in (b"old", expected)  # the old file or the new one, at every moment
            run(path, draw.randrange(draw.choice([8, 40])))
        assert path.read_bytes() == expected and names(folder) == [path.name]
        if ends:
            break
    assert step > 20
    assert gzip.decompress(expected) == WHOLE


def test_it_appears_at_the_end_with_the_mode_of_the_file_before(tmp_path):
    path, link = tmp_path / "real.txt", tmp_path / "link.txt"
    path.write_text("old")
    path.chmod(0o604)
    link.symlink_to(path)
    unfinished(link)
    assert path.read_text() == "old" and names(tmp_path) == ["link.txt", *(f"real.txt{e}" for e in ("", *ENDINGS))]
    assert [(tmp_path / f"real.txt{end}").stat().st_mode & 0o777 for end in ENDINGS] == [0o600, 0o600]
    file = write(link, resume=True)
    assert path.read_bytes() == WHOLE and path.stat().st_mode & 0o777 == 0o604
    assert link.is_symlink() and names(tmp_path) == ["link.txt", "real.txt"]
    assert (file.summary.documents, file.summary.sentences, file.groups) == (6, 18, 3)
    before = os.umask(0o027)
    write(tmp_path / "new.txt")
    os.umask(before)
    assert (tmp_path / "new.txt").stat().st_mode & 0o777 == 0o640


ENDINGS = (".journal", ".partial")


def test_an_unfinished_job_is_not_lost(tmp_path):
    path = tmp_path / "out.txt"
    unfinished(path)
    ways = rf"--resume to go on with it, or delete {path}.partial and {path}.journal to start anew"
    refused(ways, write, path)
    changed = {"model": {"config.json": "c" * 64}, "options": {"beams": 5, "new": 1}, "input": {"content": "d" * 64}}
    differences = (
        r"\(model config.json changed; options beams was 4, is 5; options new was None, is 1; input content changed\)"
    )
    refused(f"something else is asked for now {differences}: .*or delete", write, path, resume=True, identity=changed)
    assert names(tmp_path) == ["out.txt.journal", "out.txt.partial"]
    assert write(path, resume=True).groups == 3 and path.read_bytes() == WHOLE


def test_a_job_from_a_pipe_starts_again_without_help(tmp_path, capsys):
    """Or goes on where the pipe gives the same documents again; what was done is not lost either way."""
    path, identity = tmp_path / "out.txt", IDENTITY | {"input": None}

    def go_on(texts, resume=True):
        groups = [Group(number, [{"text": text}, {"text": ""}]) for number, text in enumerate(texts)]
        with open_file(path, identity, resume) as file:
            for group in file.missing(groups):
                file.write(group, [ROW, ROW])
            file.finish()

    unfinished(path, identity=identity)
    with open_file(path, identity, resume=True) as file:
        assert file.way_on().endswith("go on with the same command, the same documents from the pipe, and --resume")
    for texts in (["other", *TEXTS[1:]], TEXTS[:1], []):
        refused("translations of other documents than the input has now", go_on, texts)
    go_on(TEXTS)
    assert path.read_bytes() == WHOLE and names(tmp_path) == ["out.txt"]
    unfinished(path, identity=identity)
    capsys.readouterr()
    go_on(["other"], resume=False)
    kept = tmp_path / "out.txt.unfinished"
    assert path.read_bytes() == b"other" and names(tmp_path) == ["out.txt", *(f"{kept.name}{end}" for end in ENDINGS)]
    assert f"-o {kept} --resume goes on" in capsys.readouterr().err
    assert write(kept, resume=True, identity=identity).groups == 3 and kept.read_bytes() == WHOLE
    unfinished(path)  # of a file, it is not set aside
    refused("an unfinished job lies in", write, path, identity=identity)


@pytest.mark.parametrize("ending", [".journal", ".partial"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("elsewhere", path)])
def test_what_is_no_file_beside_the_output(tmp_path, ending, make):
    """It is neither waited for nor written through."""
    make(tmp_path / f"out.txt{ending}")
    refused(f"out.txt{ending} is in the way, which is no file; move it", write, tmp_path / "out.txt")
    refused(f"ends in {ending} as the files of unfinished jobs do", check_output, str(tmp_path / f"out{ending}"))
    assert names(tmp_path) == [f"out.txt{ending}"]


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


def test_a_torn_header_is_a_job_that_never_began(tmp_path):
    for size in (0, 5, 40):
        (tmp_path / "out.txt.journal").write_bytes(b'{"docmt_translation_job": 2, "identity": {"model": '[:size])
        write(tmp_path / "out.txt")
        assert names(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("resume", [True, False])
def test_the_output_of_a_finished_job_is_looked_at(tmp_path, monkeypatch, resume):
    """The journal goes only when the output stands whole under its name."""
    path, journal = tmp_path / "out.txt", tmp_path / "out.txt.journal"
    with monkeypatch.context() as patch:
        patch.setattr(store.Records, "delete", lambda _: None)
        write(path)
    kept = journal.read_bytes()
    for change, problem in (
        (path.unlink, "is gone"),
        (lambda: path.write_bytes(WHOLE[:-1]), "is not as the job wrote it"),
        (lambda: path.write_bytes(b"X" + WHOLE[1:]), "is not as the job wrote it"),
    ):
        change()
        refused(f"{path} {problem}, though {journal} says that the job was finished", write, path, resume)
        assert journal.read_bytes() == kept
    path.write_bytes(WHOLE)
    assert write(path, resume).path.read_bytes() == WHOLE and names(tmp_path) == ["out.txt"]


def test_an_output_that_vanishes_on_its_way_is_an_error(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    monkeypatch.setattr("hf_docmt.translation.job_output.os.replace", lambda source, _: os.unlink(source))
    refused(f"{path} is gone, though .*journal says", write, path)


def test_groups_whose_text_is_damaged_are_written_again(tmp_path, capsys):
    path, partial = tmp_path / "out.txt", tmp_path / "out.txt.partial"
    for damage in (
        lambda: partial.write_bytes(b"X" + partial.read_bytes()[1:]),
        lambda: os.truncate(partial, 3),
        lambda: partial.write_bytes(b""),
        partial.unlink,
    ):
        unfinished(path)
        damage()
        write(path, resume=True)
        assert "2 groups of documents are translated again" in capsys.readouterr().err
        assert path.read_bytes() == WHOLE
        path.unlink()


def test_a_journal_of_another_version_is_refused(tmp_path):
    """As of 0.2.0; nothing of it is touched."""
    journal, partial = tmp_path / "out.txt.journal", tmp_path / "out.txt.partial"
    journal.write_text('{"docmt_translation_job": 1, "identity": {"input": null}}\n{"group": 0, "bytes": 3}\n')
    partial.write_text("abc")
    ways = f"finish it with that one, or delete {partial} and {journal} to start anew"
    for resume in (True, False):
        with pytest.raises(ValueError, match=f"out.txt.journal is of a job of another version of docmt; {ways}"):
            write(tmp_path / "out.txt", resume)
    assert partial.read_text() == "abc" and journal.read_text().count("\n") == 2


def test_damage_of_the_journal_is_told(tmp_path, capsys):
    """Of the record of a group: it is written again; of the first one: the job cannot go on. Never a wrong result."""
    path, journal = tmp_path / "out.txt", tmp_path / "out.txt.journal"
    unfinished(path)
    whole, partial = journal.read_bytes(), (tmp_path / "out.txt.partial").read_bytes()
    header = whole.index(b"\n") + 1
    for place in range(0, len(whole) - 1, 3):
        content = bytearray(whole)
        content[place] ^= 4
        journal.write_bytes(content)
        (tmp_path / "out.txt.partial").write_bytes(partial)
        if place < header:
            refused(r"out.txt.journal(, line 1: no record| is in the way| is of a job)", write, path, resume=True)
            continue
        assert write(path, resume=True).groups == 3 and path.read_bytes() == WHOLE
        assert "the groups from there on are translated again" in capsys.readouterr().err
        path.unlink()


def test_records_that_cannot_stand_where_they_do(tmp_path, capsys):
    """With the right checksums, as of a file that was put together by hand, or is on the disk twice."""
    path, journal, partial = tmp_path / "out.txt", tmp_path / "out.txt.journal", tmp_path / "out.txt.partial"
    unfinished(path)
    text, (head, *groups) = partial.read_bytes(), Records(journal).items
    wrong = [head, groups[0] | {"bytes": "1"}, groups[0] | {"bytes": -1}, groups[0] | {"group": 7}, {}]
    wrong += [groups[0] | {"summary": summary} for summary in (None, [], {"other": 1}, {"sentences": "x"})]
    for records in [[head, record, *groups] for record in wrong] + [[head, *reversed(groups)]]:
        journal.unlink()
        Records(journal).append(*records)
        partial.write_bytes(text)
        assert write(path, resume=True).groups == 3 and path.read_bytes() == WHOLE
        assert "line 2: no record that can stand here: the groups from there on" in capsys.readouterr().err
        path.unlink()
        unfinished(path)
    for first in (groups[0], {"identity": None}, {"identity": {}}):
        journal.unlink()
        Records(journal).append({MARK: VERSION, **first})
        refused("line 1: no record that can stand here: the job cannot go on", write, path, resume=True)
    size = groups[0] | {"bytes": 10**15}
    journal.unlink()
    Records(journal).append(head, size)
    assert write(path, resume=True).groups == 3 and path.read_bytes() == WHOLE


def test_names_that_other_files_have(tmp_path):
    for ending, content in ((".partial", "mine"), (".journal", "mine\n"), (".journal", "mine")):
        other = tmp_path / f"out.txt{ending}"
        other.write_text(content)
        refused(f"{other} is in the way", write, tmp_path / "out.txt")
        assert other.read_text() == content and names(tmp_path) == [other.name]
        other.unlink()


def test_one_job_at_a_time(tmp_path):
    """Another process has the lock, until it is killed."""
    path, (reading, writing) = tmp_path / "out.txt", os.pipe()
    process = os.fork()
    if not process:
        with open_file(path):
            os.write(writing, b"open")
            signal.pause()
    os.read(reading, 4)
    refused("another job uses .*out.txt.journal now; wait for its end", write, path)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    write(path)
    assert names(tmp_path) == ["out.txt"]


def test_a_failed_write_keeps_what_was_written(tmp_path, monkeypatch, capsys):
    """Of the text, of its line in the journal, and of the step to its place."""
    path = tmp_path / "out.txt"

    def full(*_):
        raise OSError(28, "No space left on device")

    for patched in ("translation.job_output.write_durably", "store.write_durably", "translation.job_output.os.replace"):
        with monkeypatch.context() as patch, pytest.raises(OSError, match=f"cannot write {path}: No space left"):
            with open_file(path) as file:
                add(file, TEXTS[0])
                add(file, TEXTS[1])
                patch.setattr(f"hf_docmt.{patched}", full)
                add(file, TEXTS[2])
                file.finish()
        documents = 6 if "replace" in patched else 4
        assert file.way_on().startswith(f"{documents} documents (") and file.way_on().endswith("command and --resume")
        assert write(path, resume=True).path.read_bytes() == WHOLE and capsys.readouterr().err == ""
        path.unlink()
    monkeypatch.setattr("hf_docmt.store.write_durably", full)
    with pytest.raises(OSError, match=f"cannot write {path}: No space left"):
        write(path)
    assert names(tmp_path) == []


def test_a_folder_that_becomes_read_only():
    """Nothing is lost; as another user where the tests run as root, whom no mode stops."""
    folder = Path(tempfile.mkdtemp())
    if os.getuid() == 0:
        os.chown(folder, 65534, 65534)
    try:
        pid = os.fork()
        if not pid:
            code = 1
            try:
                if os.getuid() == 0:
                    os.setuid(65534)
                with open_file(folder / "out.txt") as file:
                    for text in TEXTS:
                        add(file, text)
                    folder.chmod(0o555)
                    file.finish()
            except OSError as error:
                code = 0 if str(error).endswith("out.txt: Permission denied") else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert names(folder) == ["out.txt.journal", "out.txt.partial"]
        folder.chmod(0o755)
        assert write(folder / "out.txt", resume=True).groups == 3 and names(folder) == ["out.txt"]
    finally:
        shutil.rmtree(folder)
