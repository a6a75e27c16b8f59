"""The base class of readers, the readers by their formats, which format files have, and what readers share."""

import inspect
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import ClassVar

from hf_docmt.data.documents import json_line, make_row
from hf_docmt.data.readers.running_text import TEXT_LINES, document_text
from hf_docmt.data.registration import register, registered
from hf_docmt.files import BOM, STDIN, DataError, display_path, file_stem, open_bytes, read_lines
from hf_docmt.messages import closest_hint

# arguments of readers that are not files, even if a file or folder has the same name
NO_FILES = "split config system tgt_lang translator keep all columns bilingual fuzzy_below max_line max_speed".split()

HEAD_BYTES = 4096

OTHER_FORMATS = {  # that have markup: name -> endings, what their first bytes match
    "Markdown": (".md .markdown .mdx .qmd .rmd", rb"---\r?\n[\w-]+:(.*\n)+?---\r?\n"),  # front matter
    "HTML": (
        ".html .htm .xhtml .xht .html5 .shtml .mhtml .php .vue .svelte",
        rb"\s*<(!doctype html|(html|head|body)(\s+[\w-]+=|\s*>))",
    ),
    "XML": (
        ".xml .xlf .xliff .tmx .resx .dita .svg .fodt .fods .fodp .stringsdict .plist .fb2 .rss",
        rb"\s*<(\?xml|!doctype)",
    ),
    "gettext PO": (".po .pot", rb"(#.*\n|\s)*msgid \""),
    "a compiled catalog": (".mo .gmo .qm", rb"\xde\x12\x04\x95|\x95\x04\x12\xde"),
    "a table": (".csv", None),
    "YAML, TOML or properties": (".yaml .yml .toml .ini .properties .strings .ftl .desktop", None),
    "JSON": (".json .jsonc .json5 .hjson .xcstrings .ipynb", None),
    "ASS subtitles": (".ass .ssa", rb"\[Script Info\]"),
    "subtitles": (
        ".sub .sbv .lrc .smi .ttml .dfxp",
        rb"\{\d+\}\{\d+\}|\[\d+:\d\d\.\d+\]|<sami|\d+:\d\d:\d\d\.\d+,\d",
    ),
    "TeX, reStructuredText, AsciiDoc, Org or a wiki": (
        ".tex .rst .adoc .asciidoc .org .textile .wiki .mediawiki .typ .rnw .texi .pod",
        rb"\\documentclass",
    ),
    "RTF": (".rtf", rb"\{\\rtf"),
    "PDF": (".pdf", rb"%PDF-"),
    "a zip archive or office document": (
        ".docx .xlsx .pptx .odt .ods .odp .epub .zip .doc .xls .ppt .pages",
        rb"PK\x03\x04|\xd0\xcf\x11",
    ),
}

_READERS: dict[str, type["Reader"]] = {}


class Evidence(IntEnum):
    """How sure a reader is that input files are of its format; the surest reader is chosen."""

    NONE = 0
    GUESS = 1  # first characters that are common in the format
    FIRST_BYTES = 2  # a tag or mark of the format
    NAME = 3  # the file's ending
    NAME_AND_BYTES = 4
    ARGUMENTS = 5  # a file that only this format takes


class Sample:
    """Input files as a reader sees them to recognize its format.

    `arguments` are the names of the files given, `argument` that of the first one (`source` or `path`, None without
    these), `path` the first one itself, None where there are several.
    """

    def __init__(self, files: dict):
        self.arguments = set(files)
        self.argument = next((name for name in ("source", "path") if name in files), None)
        path = files.get(self.argument)
        self.path: str | Path | None = path if isinstance(path, str | Path) else None

    @property
    def is_stdin(self) -> bool:
        return str(self.path) == STDIN

    @property
    def ending(self) -> str:
        """The ending of the file's name without `.gz`, such as `.tsv`."""
        return "" if self.path is None else Path(str(self.path).removesuffix(".gz")).suffix

    @cached_property
    def head(self) -> bytes:
        """The first bytes, unpacked, without a byte order mark; they stay readable on standard input."""
        if self.path is None or Path(self.path).is_dir():
            return b""
        if self.is_stdin:
            head = sys.stdin.buffer.peek(HEAD_BYTES)  # type: ignore[union-attr]  # a BufferedReader
            return head[:HEAD_BYTES].removeprefix(BOM)
        with open_bytes(self.path) as file:
            return file.read(HEAD_BYTES).removeprefix(BOM)

    @cached_property
    def first_line(self) -> str:
        """The first line without its end; for standard input only from `head`."""
        line = self.head.split(b"\n")[0]
        if len(line) == len(self.head) > 0 and self.path is not None and not self.is_stdin:
            with open_bytes(self.path) as file:
                line = file.readline().removeprefix(BOM)
        return line.decode("utf-8", errors="replace").rstrip("\r\n")


class FileKind:
    """Evidence for a format: an argument that only it takes, the ending of a file, its first bytes.

    `recognize` may look at more.
    """

    name: ClassVar[str] = ""
    own_argument: ClassVar[str | None] = None
    endings: ClassVar[tuple[str, ...]] = ()
    first_bytes: ClassVar[re.Pattern[bytes] | None] = None

    def recognize(self, sample: Sample) -> Evidence:
        """How sure it is that files are of this format, from arguments, name and first bytes; NONE: never detected."""
        if self.own_argument in sample.arguments:
            return Evidence.ARGUMENTS
        if sample.argument != "path":
            return Evidence.NONE
        if sample.ending.lower() in self.endings:
            return Evidence.NAME
        return Evidence.FIRST_BYTES if self.first_bytes and self.first_bytes.match(sample.head) else Evidence.NONE


class Reader(FileKind, ABC):
    """A file format of parallel documents. A subclass with a `name` registers itself by being defined.

        class Capitals(Reader):
            "Sentences, one per line; a line in capitals begins a document."

            name = "capitals"

            def read(self, languages, path):
                ...
                yield f"{path}, line {number}", make_row(location, doc_id, source, target, languages)

    `name` is the format. `several_files`: it takes a list of files, too. `output_format` is how translations of such
    input are written: jsonl, lines, text, subtitles, wmt_jsonl by `render`, or the whole document. `keeps_columns`:
    with those that are not read. `document_ids` is false where ids are made from file names and numbers, so that
    documents of two files are matched by their order. `first_line_mark` is the word of messages for what gives away a
    format of one file per side, where such a file is given as `path`.
    """

    several_files: ClassVar[bool] = False
    output_format: ClassVar[str] = "jsonl"
    document_ids: ClassVar[bool] = True
    keeps_columns: ClassVar[bool] = False
    first_line_mark: ClassVar[str] = "a mark of the format"

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:  # else a base of readers
            register(_READERS, cls.name, cls, "reader")

    @abstractmethod
    def read(self, languages: list[str], **files) -> Iterator[tuple[str, dict]]:
        """Yield (location for messages, row of the document contract) of every document, in order.

        `languages` is [source, target], or [source] where only the source side is wanted. The further parameters are
        the files the format takes, in most formats `path`, or `source` and `target`; those without a default are
        needed. DataError says file, line and remedy.
        """

    def render(self, document: dict, result: dict) -> str:
        """The text to write for a document, from its row and its row of `translate_corpus`: a line of JSON.

        A row of running text has `text` again instead of its sentences. A document that failed has empty sentences:
        blank lines in plain output, and the key `error` in rows of JSON.
        """
        own = ("doc_id", "translation", "error", TEXT_LINES)
        columns = {key: value for key, value in document.items() if key not in own and not key.startswith("docmt_")}
        if TEXT_LINES not in document:
            return json_line(result | (columns if self.keeps_columns else {}) | result)
        rest = {key: value for key, value in result.items() if key not in ("source", "translation")}
        return json_line(columns | {"text": document_text(document, result)} | rest)

    def check_repairs(self, repairs: str | None) -> None:
        """ValueError where the output needs a translation of each sentence and `repairs` does not see to that."""
        if repairs == "none" and self.output_format not in ("jsonl", "lines", "text"):
            raise ValueError(
                f"repairs='none' may give more or fewer sentences, and translations of {self.name} are put in the "
                "places of the sentences; omit it"
            )

    @property
    def plain(self) -> bool:
        """Whether it is lines without document ids."""
        return self.output_format in ("lines", "text")

    def recognize_lines(self, sample: Sample) -> bool:
        """Whether files that no format recognizes are of this one; it may read all lines."""
        return False

    @classmethod
    def arguments(cls) -> dict[str, bool]:
        """The arguments of `read` other than languages: whether each is required."""
        parameters = list(inspect.signature(cls.read).parameters.values())[2:]
        return {parameter.name: parameter.default is parameter.empty for parameter in parameters}

    @classmethod
    def has_one_file_a_side(cls) -> bool:
        return list(cls.arguments()) == ["source", "target"]


def readers() -> dict[str, type[Reader]]:
    """All readers by format, in the order of the alphabet: those of this folder, then those of plugins."""
    items = registered(_READERS, "hf_docmt.data.readers").items()
    return dict(sorted(items, key=lambda item: (_is_plugin(item[1]), item[0])))


def plugin_readers() -> list[type[Reader]]:
    """Readers from plugins."""
    return [reader for reader in _READERS.values() if _is_plugin(reader)]


def plugin_files() -> list[Path]:
    """The files in which readers of plugins are defined."""
    modules = {sys.modules.get(reader.__module__) for reader in plugin_readers()}
    files = {getattr(module, "__file__", None) for module in modules}
    return sorted(Path(file) for file in files if file and Path(file).is_file())


def _is_plugin(reader: type[Reader]) -> bool:
    return not reader.__module__.startswith(f"{__package__}.")


def get_reader(format: str, others: Iterable[str] = ()) -> Reader:
    """The reader of a format; DataError with the closest name for an unknown one. `others` are further formats."""
    formats = readers()
    if format not in formats:
        names = [*formats, *others]
        hint = closest_hint(format, names, " (did you mean {!r}?)")
        raise DataError(f"unknown format {format!r}{hint}; the formats are {', '.join(names)} and auto")
    return formats[format]()


def input_files(text: str, argument: str = "path") -> dict[str, str]:
    """The arguments of `read_documents` in a text: `FILE`, or `NAME=VALUE,NAME=VALUE` with the names of arguments.

    >>> input_files("source=a.en,target=a.de")
    {'source': 'a.en', 'target': 'a.de'}
    """
    if "=" not in text or Path(text).exists():
        return {argument: text}
    pairs = [part.partition("=") for part in text.split(",")]
    files = {name: value for name, _, value in pairs}
    if not all(name and equals and value for name, equals, value in pairs) or len(files) < len(pairs):
        raise ValueError(f"{text!r}: expected FILE, or NAME=FILE,NAME=FILE such as source=a.en,target=a.de")
    return files


def input_argument(format: str) -> str:
    """The argument of `read_documents` that the file of the side to read is given as: `source` or `path`."""
    return "source" if format != "auto" and get_reader(format).has_one_file_a_side() else "path"


def detect_format(files: dict) -> str:
    """The name of the format; DataError where nothing tells it. `files` are the arguments of `read_documents`.

    Every reader says what it recognizes (`Reader.recognize`), and the surest one is chosen; a file that no reader is
    sure of goes to the first one that takes its lines. Raw text must be named (`format="text"`), and so must one side
    of a pair that is given as `path`.
    """
    sample = Sample(files)
    formats = [reader() for reader in readers().values()]
    evidence = {reader: reader.recognize(sample) for reader in formats}
    best = max(evidence, key=evidence.get)  # of equals the first
    if evidence[best] is Evidence.ARGUMENTS:
        return best.name
    if sample.argument is None:
        raise DataError(f"no input file, got {sorted(files)}; give path=, or source= and target=")
    if sample.argument == "source" and sample.is_stdin:
        *names, last = [reader.name for reader in formats if reader.has_one_file_a_side()]
        raise DataError(f"the format of standard input as source is not detected; name it: {', '.join(names)}, {last}")
    if evidence[best] <= Evidence.GUESS and (other := other_format(sample)):
        raise DataError(
            f"{display_path(sample.path)}: this is {other}, whose lines are not sentences; save its "
            "text as plain text, or name the format 'lines' if every line is a sentence"
        )
    if evidence[best] is Evidence.NONE:
        best = next((reader for reader in formats if reader.recognize_lines(sample)), None)
        if best is None:
            raise DataError(
                f"{display_path(sample.path)}: the format cannot be detected (no <d>, no _eos, no blank line between "
                "documents); name it, format='blank' if each file is one document"
            )
    elif sample.argument == "path" and best.has_one_file_a_side():
        raise DataError(
            f"{display_path(sample.path)}: the first line has {best.first_line_mark}; name the format {best.name!r}, "
            "with the file as source, or 'lines' if every line is a sentence"
        )
    return best.name


def other_format(sample: Sample) -> str | None:
    """Evidence in name or first bytes that a file has a format with markup, so that its lines are not sentences."""
    for name, (endings, first_bytes) in OTHER_FORMATS.items():
        by_name = sample.ending.lower() in endings.split()
        if by_name or (first_bytes and re.match(first_bytes, sample.head, re.IGNORECASE)):
            return f"{name} by its {'name' if by_name else 'first bytes'}"
    return None


def check_target(languages: list[str], source: str | Path, target: str | Path | None) -> bool:
    """Whether there is a target side; DataError where language and file do not agree on it."""
    if target is None and len(languages) == 2:
        raise DataError(
            f"{display_path(source)}: target language {languages[1]!r} needs a target file; give "
            "target=, or omit the target language to read the source side only"
        )
    if target is not None and len(languages) == 1:
        raise DataError(f"{display_path(target)}: the target file's language is missing; give target_lang, or omit it")
    return target is not None


def numbered_id(path: str | Path, number: int) -> str:
    """The id of the document with this number (from 1) in a format without ids."""
    return f"{file_stem(path)}-{number:05d}"


def parallel_lines(paths: Sequence[str | Path]) -> Iterator[tuple[int, list[str]]]:
    """Number and texts of the lines of files that have equally many; DataError where one of them ends first."""
    for number, lines in enumerate(zip_longest(*map(read_lines, paths)), 1):
        if None in lines:
            ended, goes_on = (paths[[line is None for line in lines].index(is_end)] for is_end in (True, False))
            raise DataError(
                f"{display_path(ended)} ends after line {number - 1}, but {display_path(goes_on)} goes on; the files "
                "must be parallel, line by line"
            )
        yield number, [text for _, text in lines]


def rows_of_lines(lines: Iterable[tuple[str, str, list[str]]], languages: list[str]) -> Iterator[tuple[str, dict]]:
    """Rows of lines (location, document id, sentence of each side), with the lines of one document together."""
    begun: dict[str, None] = {}
    for doc_id, document in groupby(lines, key=itemgetter(1)):
        (location, _, first), *others = document
        if doc_id in begun:
            raise DataError(
                f"{location}: document {doc_id!r} begins again after {next(reversed(begun))!r}; put its lines "
                "together, or give the second part its own id"
            )
        begun[doc_id] = None
        pairs = [first, *(sentences for _, _, sentences in others)]
        source, target = zip(*pairs) if len(languages) == 2 else ([text for (text,) in pairs], None)
        yield location, make_row(location, doc_id, source, target, languages)
