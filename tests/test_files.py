"""Atomic writing of files and folders, and the check that a path can be written."""

import gzip
import os
import threading

import pytest
from support.errors import refused

from hf_docmt.files import (
    DataError,
    atomic_folder,
    check_file,
    check_new_folder,
    check_writable_file,
    check_writable_folder,
    read_lines,
    write_lines,
    write_text,
)


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path):
    return oct(path.stat().st_mode & 0o777)


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "a.txt"
    write_lines(["one", "", "zwölf\u2028\r"], path)
    assert path.read_bytes() == "one\n\nzwölf\u2028\r\n".encode()

    def breaks():
        yield "two"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_lines(breaks(), path)
    assert path.read_bytes().startswith(b"one") and list(tmp_path.iterdir()) == [path]
    write_text("no line end", path)
    assert path.read_bytes() == b"no line end"


def test_packed_files_are_the_same_every_time(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_lines(["one", "two"], tmp_path / name)
        assert list(read_lines(tmp_path / name)) == [(1, "one"), (2, "two")]
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"one\ntwo\n"
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_links_and_pipes_are_not_replaced(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_lines(["a"], tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "a\n"
    os.mkfifo(tmp_path / "pipe")
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_text()))
    got = []
    reader.start()
    write_lines(["b"], tmp_path / "pipe")
    reader.join()
    assert got == ["b\n"] and (tmp_path / "pipe").is_fifo()
    with pytest.raises(DataError, match="pipe: a pipe or device can be read only once; give a file, or standard input"):
        check_file(tmp_path / "pipe")


def test_modes_are_those_of_before_or_follow_the_umask(tmp_path, umask):
    write_text("a", tmp_path / "a.txt")
    with atomic_folder(tmp_path / "folder"):
        pass
    assert mode(tmp_path / "a.txt") == "0o640" and mode(tmp_path / "folder") == "0o750"
    (tmp_path / "a.txt").chmod(0o604)
    write_text("b", tmp_path / "a.txt")
    assert mode(tmp_path / "a.txt") == "0o604"


def test_a_folder_appears_when_it_is_complete(tmp_path):
    with atomic_folder(tmp_path / "new" / "folder") as unfinished:
        (unfinished / "a.txt").write_text("a")
        assert not (tmp_path / "new" / "folder").exists()
    assert (tmp_path / "new" / "folder" / "a.txt").read_text() == "a"
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    with atomic_folder(tmp_path / "link") as unfinished:
        (unfinished / "a.txt").write_text("a")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "empty" / "a.txt").exists()
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "cut") as unfinished:
        (unfinished / "a.txt").write_text("a")
        raise KeyboardInterrupt
    assert {path.name for path in tmp_path.iterdir()} == {"new", "empty", "link"}


def test_unwritable_outputs_are_found_beforehand(tmp_path):
    (tmp_path / "file").write_text("mine")
    assert check_writable_file("-").name == "-"
    assert check_writable_file(tmp_path / "file") == tmp_path / "file"
    assert check_writable_file(str(tmp_path / "new")) == tmp_path / "new"
    refused("it is a folder; give the name of a file in it", check_writable_file, tmp_path)
    with pytest.raises(ValueError, match="nowhere is not a writable folder; create it first"):
        check_writable_file(tmp_path / "nowhere" / "a.txt")
    assert check_writable_folder(tmp_path) == tmp_path == check_writable_folder(str(tmp_path))
    assert check_writable_folder(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        refused("cannot be a folder: .*file is a file; choose another name", check_writable_folder, path)
    assert check_new_folder(tmp_path / "a") == tmp_path / "a"
    for path in (tmp_path, tmp_path / "file"):
        refused("exists and is not an empty folder; choose another name or remove it", check_new_folder, path)
