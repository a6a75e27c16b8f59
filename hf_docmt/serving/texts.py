"""Texts and files as sentences, and with translations in their place again."""

from __future__ import annotations

import os
import signal
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import accumulate, chain, pairwise
from math import inf
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias
from zipfile import BadZipFile, ZipFile

from starlette.exceptions import HTTPException

from hf_docmt.data.readers import get_reader, iterate_documents
from hf_docmt.data.readers.lines import is_wrapped, join_blocks, split_blocks
from hf_docmt.data.registration import load_plugins
from hf_docmt.files import IS_WINDOWS, DataError
from hf_docmt.formats import document_formats
from hf_docmt.formats.document_file import MARKUP, DocumentFile, FormatOptions, given_runs
from hf_docmt.formats.file_translation import marked_results
from hf_docmt.modeling.opaque_runs import CarriedSentence, Span
from hf_docmt.modeling.text_splitting import join_text, split_text
from hf_docmt.options import ServerLimits

if TYPE_CHECKING:  # the process that reads needs no model
    from hf_docmt.systems import System

PLAIN = ".txt"
READERS = {".jsonl": "jsonl", ".srt": "subtitles", ".vtt": "subtitles"}  # ending -> reader that writes it again
AnyText: TypeAlias = "PlainText | MarkedText"
Carried = Mapping[int, CarriedSentence]  # sentences with opaque runs, by number


class PlainText:
    """Text whose lines, paragraphs and indents stay."""

    runs: Mapping[int, list[Span]] = MappingProxyType({})  # opaque ones that its format knows, by sentence
    size = 0  # that says whether it is written in the background

    def __init__(self, text: str):
        self.sentences, self.gaps = split_text(text)

    def results(
        self, translations: Sequence[str], carried: Carried, system: System, missing: Collection[int] = ()
    ) -> Sequence[str]:
        return translations

    def written(self, results: Sequence[str]) -> tuple[bytes, Sequence[str]]:
        return join_text(list(results), self.gaps).encode("utf-8"), ()


class WrappedText(PlainText):
    """Text whose lines go on in the next one; its paragraphs are wrapped again."""

    def __init__(self, text: str):
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        self.sentences, self.blocks = split_blocks(text.split("\n"), lambda block: split_text(block)[0])

    def written(self, results: Sequence[str]) -> tuple[bytes, Sequence[str]]:
        text = join_blocks(results, self.blocks).removesuffix("\n")
        return text.replace("\n", self.line_end).encode("utf-8"), ()


class RowsText(PlainText):
    """A file of documents that a reader reads and writes, such as subtitles."""

    def __init__(self, data: bytes, name: str, format: str, lang: str):
        self.format, self.line_end = format, "\r\n" if b"\r\n" in data else "\n"
        with TemporaryDirectory() as folder:
            path = Path(folder, PurePath(name).name)
            path.write_bytes(data)
            try:
                self.rows = list(iterate_documents(format, path=str(path), source_lang=lang))
            except DataError as error:
                raise DataError(str(error).replace(f"{folder}/", "")) from error
        self.texts = [[pair[lang] for pair in row["translation"]] for row in self.rows]
        self.sentences = list(chain.from_iterable(self.texts))

    def written(self, results: Sequence[str]) -> tuple[bytes, Sequence[str]]:
        reader, text = get_reader(self.format), ""
        for row, source, (own, _) in zip(self.rows, self.texts, divide(map(len, self.texts), results, {})):
            text += reader.render(row, {"doc_id": row["doc_id"], "source": source, "translation": own})
        return text.replace("\n", self.line_end).encode("utf-8"), ()


class MarkedText:
    """A file of a format, or a piece of HTML, whose markup stays; `mark` is for its reader alone."""

    def __init__(self, data: bytes, name: str, format: str, options: FormatOptions, mark: bytes = b""):
        self.file, self.format, self.options, self.mark = (mark + data, name), format, options, mark
        self.size = size_of(data)
        self.rows = [row for _, row in self._document().rows(["source"])]
        self.texts = [[pair["source"] for pair in row["translation"]] for row in self.rows]
        self.sentences = list(chain.from_iterable(self.texts))
        starts = accumulate(map(len, self.texts), initial=0)
        self.runs = {start + n: spans for start, row in zip(starts, self.rows) for n, spans in given_runs(row).items()}

    def _document(self) -> DocumentFile:
        return DocumentFile(*self.file, document_formats()[self.format](), self.options)

    def results(
        self, translations: Sequence[str], carried: Carried, system: System, missing: Collection[int] = ()
    ) -> dict[str, dict]:
        """Result rows; the places of markup come from the system, but of `missing` sentences, which keep theirs."""
        rows, start = [], 0
        for row, texts in zip(self.rows, self.texts):
            tagged = [n for n in row[MARKUP]["tagged"] if start + n not in missing]
            rows.append(row | {MARKUP: row[MARKUP] | {"tagged": tagged}})
            start += len(texts)
        return marked_results(rows, divide(map(len, self.texts), translations, carried), system)

    def written(self, results: Mapping[str, dict]) -> tuple[bytes, Sequence[str]]:
        """The bytes of the file, and what is wrong with them."""
        data, written = self._document().translated(results)
        return data.removeprefix(self.mark), written.problems


def size_of(data: bytes) -> float:
    """Bytes of a file; infinite for an archive, whose size is unknown before unpacking."""
    return inf if data.startswith(b"PK") else len(data)


def in_background(function: Callable, *arguments: Any) -> Any:
    """The result of a call in a process of its own, which gives way to the search; it knows the formats of plugins."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server finishes what it has begun
    if not IS_WINDOWS:
        os.setpriority(os.PRIO_PROCESS, 0, 10)
    load_plugins()
    return function(*arguments)


def divide(
    sizes: Iterable[int], translations: Sequence[str], carried: Carried
) -> Iterator[tuple[list[str], dict[int, CarriedSentence]]]:
    """Translations and carried sentences of parts with these numbers of sentences."""
    for start, end in pairwise(accumulate(sizes, initial=0)):
        yield list(translations[start:end]), {n - start: each for n, each in carried.items() if start <= n < end}


def read_texts(texts: Sequence[str], form: str, source_lang: str = "", target_lang: str = "") -> Sequence[AnyText]:
    """Plain texts, or pages of HTML or parts of them, which are UTF-8 whatever they declare."""
    options = FormatOptions(source_lang, target_lang)
    return [
        PlainText(text) if form == "text" else MarkedText(text.encode("utf-8"), "q", form, options, mark=BOM_UTF8)
        for text in texts
    ]


def written_texts(parts: Sequence[AnyText], versions: Sequence[Sequence]) -> list[list[tuple[bytes, Sequence[str]]]]:
    """Texts and problems of each version of the parts, from their results."""
    return [[part.written(results) for part, results in zip(parts, version)] for version in versions]


def check_size(texts: Sequence[str], limits: ServerLimits, unit: str = "characters") -> None:
    """HTTPException: 400 for more text than a request may have; `unit` sentences: there is one in each text."""
    size, most = (sum(map(len, texts)), limits.characters) if unit == "characters" else (len(texts), limits.sentences)
    if size > most:
        raise HTTPException(400, f"Invalid request: request ({size} {unit}) exceeds text limit ({most})")


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
    """A file of the format of its name.

    DataError: an unknown format, a broken file, one that is too large. HTTPException: 400 for too much text.
    """
    check_unpacked(data, limits)
    ending = PurePath(name).suffix.lower()
    formats = [format.name for format in document_formats().values() if ending in format.endings]
    part: AnyText
    if ending == PLAIN:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(f"{name}: this is not text in UTF-8 ({error.reason} at byte {error.start})") from error
        part = WrappedText(text) if is_wrapped(text.splitlines()) else PlainText(text)
    elif ending in READERS:
        part = RowsText(data, name, READERS[ending], source_lang)
    elif formats:
        part = MarkedText(data, name, formats[0], FormatOptions(source_lang, target_lang))
    else:
        raise DataError(f"{name}: file format not supported, expected one of {', '.join(file_endings())}")
    for unit in ("characters", "sentences"):
        check_size(part.sentences, limits, unit)
    return part


def file_endings() -> list[str]:
    """The endings of files that can be translated."""
    return sorted({PLAIN, *READERS, *(ending for format in document_formats().values() for ending in format.endings)})
