"""Entries of a cache: made once, whole or not at all, by one process at a time."""

import json
import multiprocessing
import os
import signal
import threading
import time

import pytest

from hf_docmt.data.cache import Cache, is_whole


def write(text):
    return lambda folder: (folder / "a.txt").write_text(text)


def never(folder):
    raise AssertionError("it was there")


def test_an_entry_is_made_once_for_its_key(tmp_path):
    cache = Cache(tmp_path / "new" / "cache")
    entry = cache.entry("text", {"a": 1, "b": 2}, write("one"))
    assert cache.entry("text", {"b": 2, "a": 1}, never) == entry and (entry / "a.txt").read_text() == "one"
    others = [cache.entry(kind, key, write("x")) for kind, key in (("text", {"a": 1}), ("word", {"a": 1, "b": 2}))]
    assert len({entry, *others}) == 3
    assert sorted(path.name for path in cache.folder.iterdir()) == sorted(path.name for path in (entry, *others))


def test_a_failure_leaves_nothing(tmp_path):
    def fail(folder):
        write("half")(folder)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Cache(tmp_path).entry("text", {}, fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["shorter", "missing", "no list", "no mapping", "other sizes"])
def test_a_damaged_entry_is_made_again(tmp_path, damage):
    entry = Cache(tmp_path).entry("text", {}, write("whole"))
    assert is_whole(entry)
    if damage in ("shorter", "missing"):
        (entry / "a.txt").write_text("who") if damage == "shorter" else (entry / "a.txt").unlink()
    else:
        text = {"no list": "{", "no mapping": "[]", "other sizes": json.dumps({"sizes": {"a.txt": "5"}})}[damage]
        (entry / "entry.json").write_text(text)
    assert not is_whole(entry)
    assert Cache(tmp_path).entry("text", {}, write("whole")) == entry and is_whole(entry)


def test_others_wait_for_the_one_that_makes_it(tmp_path):
    made, found = [], []

    def make(folder):
        made.append(1)
        time.sleep(0.3)
        write("slow")(folder)

    waiting = [threading.Thread(target=lambda: found.append(Cache(tmp_path).entry("text", {}, make))) for _ in range(3)]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join()
    assert len(made) == 1 and len(set(found)) == 1 and (found[0] / "a.txt").read_text() == "slow"


def test_a_killed_process_leaves_no_lock_and_no_half_entry(tmp_path):
    ready = multiprocessing.get_context("fork").Event()

    def hang(folder):
        write("half")(folder)
        ready.set()
        time.sleep(60)

    process = multiprocessing.get_context("fork").Process(target=Cache(tmp_path).entry, args=("text", {}, hang))
    process.start()
    assert ready.wait(30)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert any(path.name.startswith(".text-") for path in tmp_path.iterdir())
    entry = Cache(tmp_path).entry("text", {}, write("whole"))
    assert (entry / "a.txt").read_text() == "whole" and list(tmp_path.iterdir()) == [entry]


def test_entries_by_content(tmp_path):
    def make(text):
        return lambda folder: write(text)(folder) and text

    cache = Cache(tmp_path)
    one = cache.entry_by_content("text", make("one"))
    before = (one / "a.txt").stat().st_ino
    assert cache.entry_by_content("text", make("one")) == one and (one / "a.txt").stat().st_ino == before
    assert cache.entry_by_content("text", make("two")) != one and len(list(tmp_path.iterdir())) == 2


def test_without_locks(tmp_path, monkeypatch):
    def refuse(path):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("hf_docmt.data.cache.lock_file", refuse)
    with pytest.raises(OSError, match="cannot be locked .*No locks available.*; choose a cache on another disk"):
        Cache(tmp_path).entry("text", {}, write("x"))


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="cannot be a folder: .*file is a file; choose another name"):
        Cache(tmp_path / "file" / "cache")
