"""Archives of which members change: what the zipfile module reads, and that all else keeps its bytes."""

import io
import random
import zipfile

import pytest

from hf_docmt.files import DataError
from hf_docmt.formats.zip_archive import ZipArchive


class Pipe(io.RawIOBase):
    """A file that cannot go back, so that sizes stand behind the data."""

    def __init__(self):
        self.data = b""

    def writable(self):
        return True

    def write(self, data):
        self.data += bytes(data)
        return len(data)


def archive(contents, comment=b"", methods=(0, 8), pipe=False) -> bytes:
    target = Pipe() if pipe else io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for number, (name, content) in enumerate(contents.items()):
            info = zipfile.ZipInfo(name, (1990 + number, 1, 2, 3, 4, 6))
            file.writestr(info, content, methods[number % len(methods)])
        file.comment = comment
    return target.data if pipe else target.getvalue()


@pytest.mark.parametrize("seed", range(60))
def test_members_change_and_others_stay(seed):
    rng = random.Random(seed)
    names = [rng.choice(["a", "ü/", "x y"]) + str(number) for number in range(rng.randint(1, 8))]
    contents = {name: rng.randbytes(rng.randint(0, 300)) for name in names}
    data = archive(contents, rng.choice([b"", b"a comment"]), pipe=seed % 3 == 0)
    assert ZipArchive(data).changed({}) == data
    changes = {name: rng.randbytes(99) for name in contents if rng.random() < 0.5}
    written = ZipArchive(data).changed(changes)
    before, after = (zipfile.ZipFile(io.BytesIO(version)) for version in (data, written))
    assert after.testzip() is None and after.comment == before.comment and after.namelist() == names
    for name in names:
        assert after.read(name) == changes.get(name, contents[name]) == ZipArchive(written).read(name)
        assert after.getinfo(name).date_time == before.getinfo(name).date_time
    for name in contents.keys() - changes.keys():  # with their headers and packed bytes
        info, other = before.getinfo(name), after.getinfo(name)
        size = 30 + len(name.encode()) + info.compress_size
        record = data[info.header_offset : info.header_offset + size]
        assert written[other.header_offset : other.header_offset + size] == record


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a zip archive"),
        (b"PK\x03\x04 and no more", "not a zip archive"),
        (archive({"a": b"x" * 9})[:-10], "not a zip archive"),
    ],
)
def test_files_that_are_not_archives(data, message):
    with pytest.raises(DataError, match=message):
        ZipArchive(data)


def test_damaged_encrypted_and_exploding_members():
    data = bytearray(archive({"a": b"some content " * 9}, methods=(8,)))
    data[40] ^= 0xFF
    with pytest.raises(DataError, match="a: cannot be unpacked"):
        ZipArchive(bytes(data)).read("a")
    bomb = archive({"a": bytes(1 << 23)}, methods=(8,))
    with pytest.raises(DataError, match="a: 8388608 bytes unpacked from .* looks like a zip bomb"):
        ZipArchive(bomb).read("a")
    data = bytearray(archive({"a": b"x"}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(DataError, match="a: encrypted; save the document without a password"):
        ZipArchive(bytes(data)).read("a")


def test_the_directory_is_read_once(monkeypatch):
    """Reading all members takes time by their number, not by its square."""
    opened = []
    monkeypatch.setattr(zipfile, "ZipFile", lambda *args, made=zipfile.ZipFile: opened.append(args) or made(*args))
    found = ZipArchive(archive({str(number): b"x" for number in range(20)}, pipe=True))
    opened.clear()
    assert [found.read(name) for name in found.names] == [b"x"] * 20 and not opened
    with pytest.raises(DataError, match="more is not in it; save the document again"):
        found.read("more")
