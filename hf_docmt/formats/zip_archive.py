"""Zip archives: members read within limits, and the archive written again with some of them changed."""

import io
import struct
import zipfile
import zlib

from hf_docmt.files import DataError

MAX_BYTES = 1 << 30  # of a member, unpacked
MAX_RATIO = 200
SMALL = 1 << 20  # a smaller member is not a bomb, whatever its ratio
LOCAL, CENTRAL, END = 30, 46, 22  # bytes of the fixed parts of headers (PKWARE APPNOTE 4.3.7, 4.3.12, 4.3.16)


class ZipArchive:
    """An archive in memory. DataError: not an archive, or encrypted, too large, or zip64."""

    def __init__(self, data: bytes):
        self.data = data
        try:
            self.archive = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, struct.error, ValueError, NotImplementedError) as error:
            raise DataError(f"not a zip archive, or a broken one ({error}); save the document again") from error
        self.members = self.archive.infolist()
        self.directory, self.end = self.archive.start_dir, len(data) - END - len(self.archive.comment)
        self._first = {member.filename: member for member in reversed(self.members)}  # those of each name
        if data[self.end - 20 : self.end].startswith(b"PK\x06\x07"):
            raise DataError("a zip64 archive, which is not written again; save the document as a usual one")

    @property
    def names(self) -> list[str]:
        return [member.filename for member in self.members]

    def read(self, name: str) -> bytes:
        """The unpacked bytes of a member."""
        if (member := self._first.get(name)) is None:
            raise DataError(f"{name} is not in it; save the document again")
        if member.flag_bits & 1:
            raise DataError(f"{name}: encrypted; save the document without a password")
        size, packed = member.file_size, max(member.compress_size, 1)
        if size > MAX_BYTES or (size > SMALL and size / packed > MAX_RATIO):
            raise DataError(f"{name}: {size} bytes unpacked from {packed}, which looks like a zip bomb; split it")
        try:
            return self.archive.read(member)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise DataError(f"{name}: cannot be unpacked ({error}); save the document again") from error

    def changed(self, contents: dict[str, bytes]) -> bytes:
        """The archive with these members changed; all others, and the bytes between them, are unchanged."""
        members = sorted(self.members, key=lambda member: member.header_offset)
        ends = [*(member.header_offset for member in members[1:]), self.directory]
        out = bytearray(self.data[: members[0].header_offset]) if members else bytearray()
        patches: dict[int, tuple[int, tuple | None]] = {}
        for member, end in zip(members, ends):
            patches[member.header_offset] = (len(out), None)
            if member.filename not in contents:
                out += self.data[member.header_offset : end]
                continue
            content, deflated = contents[member.filename], member.compress_type == zipfile.ZIP_DEFLATED
            packer = zlib.compressobj(wbits=-15)
            packed = packer.compress(content) + packer.flush() if deflated else content
            sizes = (zlib.crc32(content), len(packed), len(content))
            patches[member.header_offset] = (len(out), sizes)
            lengths = struct.unpack_from("<HH", self.data, member.header_offset + 26)
            header = bytearray(self.data[member.header_offset : member.header_offset + LOCAL + sum(lengths)])
            struct.pack_into("<H", header, 6, member.flag_bits & ~8)  # sizes are here, not after the data
            struct.pack_into("<H", header, 8, member.compress_type if deflated else 0)
            struct.pack_into("<III", header, 14, *sizes)
            out += header + packed
        start = len(out)
        directory = bytearray(self.data[self.directory : self.end])
        position = 0
        for member in self.members:  # in the order of the directory
            offset, new_sizes = patches[member.header_offset]
            if new_sizes:
                struct.pack_into("<H", directory, position + 8, member.flag_bits & ~8)
                if member.compress_type != zipfile.ZIP_DEFLATED:
                    struct.pack_into("<H", directory, position + 10, 0)
                struct.pack_into("<III", directory, position + 16, *new_sizes)
            struct.pack_into("<I", directory, position + 42, offset)
            position += CENTRAL + sum(struct.unpack_from("<HHH", directory, position + 28))
        tail = bytearray(self.data[self.end :])
        struct.pack_into("<I", tail, 16, start)
        return bytes(out + directory + tail)
