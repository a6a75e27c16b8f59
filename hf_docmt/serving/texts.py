"""Texts and files as sentences, and again as they were with translations in place."""

import zlib
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import accumulate
from pathlib import PurePath
from types import MappingProxyType
from typing import TypeAlias
from zipfile import BadZipFile, ZipFile

from hf_docmt.data.readers.lines import is_wrapped, join_blocks, split_blocks
from hf_docmt.files import DataError
from hf_docmt.formats import document_formats
from hf_docmt.formats.document_file import DocumentFile, FormatOptions, given_runs
from hf_docmt.formats.document_format import DocumentFormat
from hf_docmt.formats.file_translation import translated_file
from hf_docmt.modeling.opaque_runs import CarriedSentence, Span
from hf_docmt.modeling.text_splitting import join_text, split_text
from hf_docmt.options import ServerLimits
from hf_docmt.systems import System

PLAIN = ".txt"
AnyText: TypeAlias = "PlainText | MarkedText"
Carried = Mapping[int, CarriedSentence]  # sentences with opaque runs, by number


class PlainText:
    """Text whose lines, paragraphs and indents stay."""

    runs: Mapping[int, list[Span]] = MappingProxyType({})  # opaque ones that its format knows, by sentence
    problems: Sequence[str] = ()  # of what was written

    def __init__(self, text: str):
        self.sentences, self.gaps = split_text(text)

    def translated(self, translations: Sequence[str], carried: Carried, system: System) -> bytes:
        return join_text(list(translations), self.gaps).encode("utf-8")


class WrappedText(PlainText):
    """Text whose lines go on in the next one; its paragraphs are wrapped again."""

    def __init__(self, text: str):
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        self.sentences, self.blocks = split_blocks(text.split("\n"), lambda block: split_text(block)[0])

    def translated(self, translations: Sequence[str], carried: Carried, system: System) -> bytes:
        text = join_blocks(translations, self.blocks).removesuffix("\n")
        return text.replace("\n", self.line_end).encode("utf-8")


class MarkedText:
    """A file of a format, or a piece of HTML, whose markup stays; `mark` is for its reader alone."""

    def __init__(self, data: bytes, name: str, format: DocumentFormat, options: FormatOptions, mark: bytes = b""):
        self.mark, self.document = mark, DocumentFile(mark + data, name, format, options)
        rows = [row for _, row in self.document.rows(["source"])]
        self.sizes = [len(row["translation"]) for row in rows]
        self.sentences = [pair["source"] for row in rows for pair in row["translation"]]
        starts = accumulate(self.sizes, initial=0)
        self.runs = {start + n: spans for start, row in zip(starts, rows) for n, spans in given_runs(row).items()}

    problems: Sequence[str] = ()

    def translated(self, translations: Sequence[str], carried: Carried, system: System) -> bytes:
        """The bytes of the file; the places of markup come from the system. `problems` are then those of the file."""
        ends = list(accumulate(self.sizes))
        lines = [list(translations[end - size : end]) for size, end in zip(self.sizes, ends)]
        own = [
            {n - end + size: each for n, each in carried.items() if end - size <= n < end}
            for size, end in zip(self.sizes, ends)
        ]
        data, written = translated_file(self.document, lines, own, system)
        self.problems = written.problems
        return data.removeprefix(self.mark)


def html_text(text: str, source_lang: str, target_lang: str) -> MarkedText:
    """A page or a part of one, which is UTF-8 whatever it declares."""
    options = FormatOptions(source_lang, target_lang)
    return MarkedText(text.encode("utf-8"), "q", document_formats()["html"](), options, mark=BOM_UTF8)


def check_unpacked(data: bytes, limits: ServerLimits) -> None:
    """DataError for a file whose parser would need much memory: bytes of its members, unpacked, and elements."""
    size, elements, most = len(data), data.count(b"<"), limits.unpacked_megabytes * 2**20
    with suppress(BadZipFile, zlib.error, EOFError, ValueError, RuntimeError):  # no archive, or a broken one
        with ZipFile(BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            elements = sum(archive.read(member).count(b"<") for member in archive.infolist() if size <= most)
    if size > most or elements > limits.elements:
        got = f"{size} bytes and {elements} tags" if size <= most else f"{size} bytes"
        raise DataError(f"the file has {got} unpacked, expected at most {most} and {limits.elements}; split it")


def file_text(data: bytes, name: str, source_lang: str, target_lang: str, limits: ServerLimits) -> AnyText:
    """A file, of the format that its name says. DataError: no such format, a broken file, one that is too large."""
    check_unpacked(data, limits)
    ending = PurePath(name).suffix.lower()
    if ending == PLAIN:
        try:
            text = data.decode("utf-8-sig")
            return WrappedText(text) if is_wrapped(text.splitlines()) else PlainText(text)
        except UnicodeDecodeError as error:
            raise DataError(f"{name}: this is no text in UTF-8 ({error.reason} at byte {error.start})") from error
    for format in document_formats().values():
        if ending in format.endings:
            return MarkedText(data, name, format(), FormatOptions(source_lang, target_lang))
    raise DataError(f"{name}: file format not supported, expected one of {', '.join(file_endings())}")


def file_endings() -> list[str]:
    """Those of the files that are translated."""
    return sorted({PLAIN, *(ending for format in document_formats().values() for ending in format.endings)})
