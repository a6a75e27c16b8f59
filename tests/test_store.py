"""What is done: records that survive a kill at any byte, folders that are sealed."""

import json
import os
from pathlib import Path

import pytest

from hf_docmt.store import (
    SEAL,
    DamagedError,
    Records,
    check_files,
    differences,
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


def flip(path, place):
    """One bit."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "a.txt").write_text("who"), "a.txt has 3 bytes, 5 were written"),
        (lambda folder: (folder / "a.txt").unlink(), "a.txt is missing"),
        (lambda folder: flip(folder / "a.txt", 2), r"a.txt is not as it was written \(its CRC-32 differs\)"),
        (lambda folder: (folder / SEAL).write_text("{"), f"{SEAL} cannot be read"),
        (lambda folder: (folder / SEAL).write_text("[]"), f"{SEAL} cannot be read"),
        (lambda folder: flip(folder / SEAL, 30), f"{SEAL} "),
    ],
)
def test_damage_of_a_sealed_folder_is_told(tmp_path, damage, message):
    (tmp_path / "a.txt").write_text("whole")
    seal(tmp_path, {})
    check_files(tmp_path, read_seal(tmp_path)["files"])
    damage(tmp_path)
    with pytest.raises(DamagedError, match=message):
        check_files(tmp_path, read_seal(tmp_path)["files"])
