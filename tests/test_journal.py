"""Journals survive a kill at any byte and tell damage of any bit; digests, differences, locks."""

import json
import os
import signal

import pytest
from support.errors import refused

from hf_docmt.files import sync
from hf_docmt.journal import Journal, differences, try_lock, unlock, value_digest

ROWS = [{"item": 1, "text": "ü\u2028"}, {"item": 2, "crc32": "x"}, {"item": 3, "inner": {"crc32": "00000000"}}]


def rows(path):
    return list(Journal(path).rows())


def test_digests_and_differences():
    assert value_digest({"a": 1, "b": [2]}) == value_digest({"b": [2], "a": 1}) != value_digest({"a": 1, "b": 2})
    one, other = {"a": 1, "b": {"c": 2, "d": 3}, "e": {}}, {"a": 1, "b": {"c": 2, "d": 4, "f": 5}, "e": 6}
    assert list(differences(one, other)) == [(("b", "d"), 3, 4), (("b", "f"), None, 5), (("e",), {}, 6)]
    assert list(differences(one, one)) == []


def test_rows_are_json_lines_with_checksums(tmp_path):
    path = tmp_path / "a.jsonl"
    journal = Journal(path, private=True)
    assert not path.exists()
    journal.append(*ROWS[:2])
    journal.append(ROWS[2])
    assert list(journal.rows()) == ROWS == rows(path) and list(journal.rows(2)) == ROWS[2:]
    assert [json.loads(line)["item"] for line in path.read_bytes().splitlines()] == [1, 2, 3]
    assert path.stat().st_mode & 0o777 == 0o600
    journal.keep(1)
    assert rows(path) == ROWS[:1]
    journal.delete()
    assert list(tmp_path.iterdir()) == []


def test_a_kill_at_any_byte_costs_the_row_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    path = tmp_path / "a.jsonl"
    Journal(path).append(*ROWS)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        journal, count = Journal(path), whole[:size].count(b"\n")
        assert list(journal.rows()) == ROWS[:count] and journal.damage is None
        journal.append(*ROWS[count:])
        assert path.read_bytes() == whole


def test_damage_of_any_bit_is_reported(tmp_path):
    path = tmp_path / "a.jsonl"
    Journal(path).append(*ROWS)
    whole = path.read_bytes()
    for place in range(1, len(whole) - 1):
        content = bytearray(whole)
        content[place] ^= 1
        path.write_bytes(content)
        journal, line = Journal(path), whole[:place].count(b"\n")
        assert list(journal.rows()) == ROWS[:line]
        assert f"a.jsonl, line {line + 1}: no row, or it was changed" in journal.damage
    path.write_bytes(whole[:20] + b"\0" * 99 + b"\n")
    assert rows(path) == [] and "line 1" in Journal(path).damage


def test_rows_that_do_not_belong_where_they_are(tmp_path):
    """With the right checksums, as of a file that is put together by hand."""
    for numbers, whole in (([0, 1, 2], 3), ([0, 2, 1], 1), ([0, 0, 1], 1), ([1, 2], 0), ([0, "1"], 1)):
        path = tmp_path / "a.jsonl"
        Journal(path).append(*({"index": number} for number in numbers))
        journal = Journal(path)
        assert journal.count == whole and bool(journal.damage) is (whole < len(numbers))
        assert whole == 3 or f"line {whole + 1}: no row that belongs here" in journal.damage
        path.unlink()


@pytest.mark.parametrize("content", [b"mine", b"mine\n", b"[1]\n", b'{"other": 1}\n', b"\xff\n", b'{"items'])
def test_other_files_are_not_changed(tmp_path, content):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    refused("a.jsonl is in the way, which is something else, or of another version", Journal, path, b'{"item": ')
    assert path.read_bytes() == content


def test_a_full_disk_costs_the_row_that_does_not_fit(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    journal = Journal(path)
    journal.append(ROWS[0])
    for failing in ("fsync", "write"):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
            if failing == "fsync":
                patch.setattr(os, "fsync", full)
            else:
                patch.setattr(journal, "_file", Half(journal._file))
            journal.append(ROWS[1])
        assert list(journal.rows()) == ROWS[:1] and rows(path)[:1] == ROWS[:1]
    journal.append(*ROWS[1:])
    assert rows(path) == ROWS


def full(*_):
    raise OSError(28, "No space left on device")


class Half:
    """A file that takes half of what is written to it, and then nothing."""

    def __init__(self, file):
        self.file, self.is_full = file, False

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, data):
        if self.is_full:
            full()
        self.is_full = True
        return self.file.write(data[: len(data) // 2])


def test_a_lock_is_of_one_process_at_a_time_and_ends_with_it(tmp_path):
    path, (reading, writing) = tmp_path / "lock", os.pipe()
    process = os.fork()
    if not process:
        lock = try_lock(path)
        os.write(writing, b"locked" if lock else b"")
        signal.pause()
    os.read(reading, 6)
    assert try_lock(path) is None and path.stat().st_mode & 0o777 == 0o600
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    lock = try_lock(path)
    assert lock is not None and try_lock(path) is None
    unlock(lock)
    assert list(tmp_path.iterdir()) == []
    sync(tmp_path)
