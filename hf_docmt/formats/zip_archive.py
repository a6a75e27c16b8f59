"""Zip archives: members read within limits, and the archive written again with some of them changed."""

import copy
import io
import struct
import zipfile
import zlib

from hf_docmt.files import DataError

MAX_BYTES = 1 << 30  # of a member, unpacked
MAX_RATIO = 200
SMALL = 1 << 20  # a smaller member is not a bomb, whatever its ratio


class ZipArchive:
    """An archive in memory. DataError: not an archive, or encrypted, or too large."""

    def __init__(self, data: bytes):
        self.data = data
        try:
            self.archive = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, struct.error, ValueError, NotImplementedError) as error:
            raise DataError(f"not a zip archive, or a broken one ({error}); save the document again") from error
        self.members = self.archive.infolist()
        self._first = {member.filename: member for member in reversed(self.members)}  # those of each name

    @property
    def names(self) -> list[str]:
        return [member.filename for member in self.members]

    def read(self, name: str) -> bytes:
        """The unpacked bytes of a member."""
        if (member := self._first.get(name)) is None:
            raise DataError(f"{name} is not in it; save the document again")
        size, packed = member.file_size, max(member.compress_size, 1)
        if size > MAX_BYTES or (size > SMALL and size / packed > MAX_RATIO):
            raise DataError(f"{name}: {size} bytes unpacked from {packed}, which looks like a zip bomb; split it")
        return self._unpacked(member)

    def _unpacked(self, member: zipfile.ZipInfo) -> bytes:
        if member.flag_bits & 1:
            raise DataError(f"{member.filename}: encrypted; save the document without a password")
        try:
            return self.archive.read(member)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise DataError(f"{member.filename}: cannot be unpacked ({error}); save the document again") from error

    def changed(self, contents: dict[str, bytes]) -> bytes:
        """The archive with these members changed; all others, their order and their times are unchanged."""
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as archive:
            archive.comment = self.archive.comment
            for member in sorted(self.members, key=lambda member: member.header_offset):
                data = contents.get(member.filename)
                archive.writestr(copy.copy(member), self._unpacked(member) if data is None else data)
        return written.getvalue()
