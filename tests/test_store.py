"""What is done: records that survive a kill at any byte, folders that are sealed, entries of a cache made once."""

import json
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from hf_docmt.store import (
    SEAL,
    Cache,
    DamagedError,
    Records,
    check_files,
    differences,
    is_whole,
    lock_file,
    read_seal,
    seal,
    sync,
    value_digest,
    write_durably,
)

ITEMS = [{"item": 1, "text": "ü\u2028"}, {"item": 2, "crc32": "x"}, {"item": 3, "inner": {"crc32": "00000000"}}]


def test_digests_and_differences():
    assert value_digest({"a": 1, "b": [2]}) == value_digest({"b": [2], "a": 1}) != value_digest({"a": 1, "b": 2})
    one, other = {"a": 1, "b": {"c": 2, "d": 3}, "e": {}}, {"a": 1, "b": {"c": 2, "d": 4, "f": 5}, "e": 6}
    assert list(differences(one, other)) == [(("b", "d"), 3, 4), (("b", "f"), None, 5), (("e",), {}, 6)]
    assert list(differences(one, one)) == []


# Records


def test_records_are_json_lines_with_checksums(tmp_path):
    path = tmp_path / "a.jsonl"
    records = Records(path)
    assert not path.exists()
    records.append(*ITEMS[:2])
    records.append(ITEMS[2])
    assert records.items == ITEMS == Records(path).items
    assert [json.loads(line)["item"] for line in path.read_bytes().splitlines()] == [1, 2, 3]
    records.keep(1)
    assert Records(path).items == ITEMS[:1]
    records.delete()
    assert list(tmp_path.iterdir()) == []


def test_a_kill_at_any_byte_costs_the_record_alone(tmp_path):
    path = tmp_path / "a.jsonl"
    Records(path).append(*ITEMS)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        records = Records(path)
        count = whole[:size].count(b"\n")
        assert records.items == ITEMS[:count] and records.damage is None
        records.append(*ITEMS[count:])
        assert path.read_bytes() == whole


def test_damage_of_any_bit_is_told(tmp_path):
    path = tmp_path / "a.jsonl"
    Records(path).append(*ITEMS)
    whole = path.read_bytes()
    for place in range(len(whole) - 1):
        path.write_bytes(whole)
        flip(path, place)
        records = Records(path)
        line = whole[:place].count(b"\n")
        assert records.items == ITEMS[:line]
        assert f"a.jsonl, line {line + 1}: no record, or not as it was written" in records.damage
    path.write_bytes(whole[:20] + b"\0" * 99 + b"\n")
    assert Records(path).items == [] and "line 1" in Records(path).damage


# Locks


def test_a_lock_is_of_one_process_at_a_time(tmp_path):
    first = lock_file(tmp_path / "lock")
    assert lock_file(tmp_path / "lock") is None  # opened a second time
    first.close()
    with lock_file(tmp_path / "lock") as file:
        write_durably(file, b"written")
    assert (tmp_path / "lock").read_bytes() == b"written" and (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    sync(tmp_path)


# Sealed folders


def test_order_of_writing(tmp_path, monkeypatch):
    """Every file and folder is written through before the seal, and the seal before it has its name."""
    events = []
    fsync, replace = os.fsync, os.replace

    def log_sync(descriptor):
        events.append(os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), tmp_path.resolve()))
        fsync(descriptor)

    def log_replace(old, new):
        events.append(f"{Path(old).name} -> {Path(new).name}")
        replace(old, new)

    folder = tmp_path / "run" / "checkpoint-3"
    (folder / "part").mkdir(parents=True)
    (folder / "a").write_text("1")
    (folder / "part" / "b").write_text("2")
    monkeypatch.setattr(os, "fsync", log_sync)
    monkeypatch.setattr(os, "replace", log_replace)
    seal(folder, {"processes": 2})
    here = "run/checkpoint-3"
    assert events[-3:] == [f"{here}/.complete.new", ".complete.new -> .complete", here]
    assert set(events[:-3]) == {f"{here}/a", f"{here}/part/b", f"{here}/part", here, "run", "."}
    files = {"a": {"bytes": 1, "crc32": "83dcefb7"}, "part/b": {"bytes": 1, "crc32": "1ad5be0d"}}
    assert read_seal(folder) == {"processes": 2, "files": files}
    check_files(folder, files)
    (folder / SEAL).unlink()
    with pytest.raises(DamagedError, match="complete is missing: checkpoint-3 was interrupted while being saved"):
        read_seal(folder)


# The cache


def filled(text):
    return lambda folder: (folder / "a.txt").write_text(text)


def never(folder):
    raise AssertionError("it was there")


def test_an_entry_is_made_once_for_its_key(tmp_path):
    cache = Cache(tmp_path / "new" / "cache")
    entry = cache.entry("text", {"a": 1, "b": 2}, filled("one"))
    assert cache.entry("text", {"b": 2, "a": 1}, never) == entry and (entry / "a.txt").read_text() == "one"
    others = [cache.entry(kind, key, filled("x")) for kind, key in (("text", {"a": 1}), ("word", {"a": 1, "b": 2}))]
    assert len({entry, *others}) == 3
    assert sorted(path.name for path in cache.folder.iterdir()) == sorted(path.name for path in (entry, *others))


def test_a_failure_leaves_nothing(tmp_path):
    def fail(folder):
        filled("half")(folder)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Cache(tmp_path).entry("text", {}, fail)
    assert list(tmp_path.iterdir()) == []


def flip(path, place):
    """One bit."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda entry: (entry / "a.txt").write_text("who"), "a.txt has 3 bytes, 5 were written; it is made again"),
        (lambda entry: (entry / "a.txt").unlink(), "a.txt is missing; it is made again"),
        (lambda entry: flip(entry / "a.txt", 2), "a.txt is not as it was written (its CRC-32 differs); it is made"),
        (lambda entry: (entry / SEAL).write_text("{"), f"{SEAL} cannot be read"),
        (lambda entry: (entry / SEAL).write_text("[]"), f"{SEAL} cannot be read"),
        (lambda entry: flip(entry / SEAL, 30), f"{SEAL} "),
        (lambda entry: (entry / SEAL).unlink(), ""),
    ],
)
def test_a_damaged_entry_is_made_again(tmp_path, capsys, damage, message):
    entry = Cache(tmp_path).entry("text", {}, filled("whole"))
    assert is_whole(entry)
    damage(entry)
    assert Cache(tmp_path).entry("text", {}, filled("whole")) == entry and is_whole(entry)
    assert message in capsys.readouterr().err and list(tmp_path.iterdir()) == [entry]


def test_others_wait_for_the_one_that_makes_it(tmp_path):
    made, entries = [], []

    def make(folder):
        made.append(1)
        time.sleep(0.3)
        filled("slow")(folder)

    waiting = [
        threading.Thread(target=lambda: entries.append(Cache(tmp_path).entry("text", {}, make))) for _ in range(3)
    ]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join()
    assert len(made) == 1 and len(set(entries)) == 1 and (entries[0] / "a.txt").read_text() == "slow"


def test_a_killed_process_leaves_no_lock_and_no_half_entry(tmp_path):
    ready = multiprocessing.get_context("fork").Event()

    def hang(folder):
        filled("half")(folder)
        ready.set()
        time.sleep(60)

    process = multiprocessing.get_context("fork").Process(target=Cache(tmp_path).entry, args=("text", {}, hang))
    process.start()
    assert ready.wait(30)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert any(path.name.startswith(".text-") for path in tmp_path.iterdir())
    entry = Cache(tmp_path).entry("text", {}, filled("whole"))
    assert (entry / "a.txt").read_text() == "whole" and list(tmp_path.iterdir()) == [entry]


def test_entries_by_content(tmp_path):
    def make(text):
        return lambda folder: filled(text)(folder) and text

    cache = Cache(tmp_path)
    one = cache.entry_by_content("text", make("one"))
    before = (one / "a.txt").stat().st_ino
    assert cache.entry_by_content("text", make("one")) == one and (one / "a.txt").stat().st_ino == before
    assert cache.entry_by_content("text", make("two")) != one and len(list(tmp_path.iterdir())) == 2


def test_without_locks(tmp_path, monkeypatch):
    def refuse(path):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("hf_docmt.store.lock_file", refuse)
    with pytest.raises(OSError, match="cannot be locked .*No locks available.*; choose a cache on another disk"):
        Cache(tmp_path).entry("text", {}, filled("x"))


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="cannot be a folder: .*file is a file; choose another name"):
        Cache(tmp_path / "file" / "cache")
