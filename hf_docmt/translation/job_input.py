"""The documents of a translation job, read lazily from a file or standard input, and their groups.

A group is the unit of work: of what is decoded together, of what a process gets, and of what a killed job loses.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING

from hf_docmt.data.documents import checked_rows, make_row, source_sentences
from hf_docmt.data.readers import check_arguments, input_files
from hf_docmt.data.readers.lines import TEXT_SHARE, share_of_several
from hf_docmt.data.readers.reader import NO_FILES, Sample
from hf_docmt.files import STDIN, DataError, check_file, display_path, file_stem, location_of, read_lines
from hf_docmt.formats import find_reader
from hf_docmt.journal import file_digest, value_digest
from hf_docmt.messages import counted
from hf_docmt.translation.progress import JobSummary

if TYPE_CHECKING:
    from hf_docmt.formats.document_file import DocumentFile
    from hf_docmt.modeling.text_splitting import Sentence

MAX_SENTENCES = 1024  # of a group
MAX_CHARACTERS = 1 << 20  # of all sides that were read
BATCHES = 4  # of documents, which a group of long ones has at least
FIRST_LINES = 1000  # of plain lines, by which they are sentences or text
SHOWN = 10  # skipped files that are named
PATIENCE = 0.2  # seconds that a document waits for a further one


class JobInput:
    """Documents of one format, whose side in `source_lang` is read.

    `text` is a file, a folder, `-` for standard input, or arguments of the reader (`path=owner/name,split=test`).
    `without_context`: each plain line is a document, translated when it comes. `target_lang` chooses among documents of
    a set. `options` are arguments of the reader. `reads_html`: HTML is read without its tags.
    """

    def __init__(
        self,
        text: str,
        format: str,
        source_lang: str,
        without_context: bool = False,
        target_lang: str | None = None,
        options: dict[str, str | None] | None = None,
        reads_html: bool = True,
    ):
        self.source_lang, self.target_lang = source_lang, target_lang
        reader = None if format == "auto" else find_reader({}, format)
        argument = "source" if reader and reader.has_one_file_a_side() else "path"
        self.files: dict[str, str | None] = dict(input_files(text, argument))
        self.path = Path(self.files.get("source") or self.files.get("path") or STDIN)
        self.reader = reader or find_reader(self.files)
        self.format = self.reader.name
        if "tgt_lang" in self.reader.arguments():
            self.files.setdefault("tgt_lang", target_lang)
        self.files |= {name: value for name, value in (options or {}).items() if value is not None}
        arguments = self._given()
        check_arguments(self.reader, arguments)
        self.paths = [value for name, value in arguments.items() if name not in NO_FILES]  # what may be files
        missing = [path for path in self.paths if path != STDIN and not Path(path).exists()]
        if missing and self.format != "datasets":  # which may be on the Hub
            check_file(missing[0])
        self.reads_html = reads_html and self.reader.output_format not in ("document", "subtitles")
        self.by_line = without_context and self.reader.output_format == "lines"
        self.is_pipe = STDIN in (str(self.path), *self.files.values())  # can be read once, as it comes
        self.is_detected = format == "auto"

    def identity(self) -> dict[str, str | None] | None:
        """The arguments of the reader, with digests instead of files and folders; None for a pipe.

        Others, such as the name of a data set on the Hub, are unchanged.
        """
        if self.is_pipe:
            return None
        return {name: value if name in NO_FILES else content_digest(value) for name, value in self.files.items()}

    def rows(self) -> Iterator[dict]:
        """The rows of the document contract, one at a time; `DataError` when its turn comes for one that is broken."""
        located = self._lines() if self.by_line else self.reader.read([self.source_lang], **self._given())
        if self.reads_html:
            from hf_docmt.translation.html_rows import html_rows

            located = html_rows(located, (self.source_lang, self.target_lang))
        return checked_rows(located, [self.source_lang], allow_empty=not self.by_line)

    def renderer(self) -> Callable[[dict, dict], str]:
        """`render` of the reader, with the line ends that text or subtitles have; to be called before they are read."""
        render = self.reader.render
        is_text = self.reader.plain or self.reader.output_format == "subtitles"
        if is_text and re.match(rb"[^\n]*\r\n", Sample(self.files).head):
            return lambda document, result: render(document, result).replace("\n", "\r\n")
        return render

    def document_files(self) -> "Iterator[DocumentFile]":
        """The files of an input with markup."""
        return self.reader.files([self.source_lang], **self._given())  # type: ignore[attr-defined]  # of DocumentReader

    def _given(self) -> dict[str, str]:
        return {name: value for name, value in self.files.items() if value is not None}

    def _warn_of_text(self) -> None:
        """Warn where lines that are read as sentences hold several of them."""
        lines = [line for _, line in islice(read_lines(self.files["path"]), FIRST_LINES)]
        if share_of_several(lines) >= TEXT_SHARE:
            print(
                f"{display_path(self.path)}: lines hold several sentences, and each line is translated as one; if this "
                "is running text, give --format text, which cuts it into sentences (--format lines: no warning)",
                file=sys.stderr,
            )

    def _name_skipped_files(self) -> None:
        from hf_docmt.formats.document_reader import skipped_files

        if skipped := skipped_files(self.path):
            more = f" and {len(skipped) - SHOWN} more" if len(skipped) > SHOWN else ""
            names = ", ".join(skipped[:SHOWN]) + more
            print(f"{self.path}: skipped {counted(len(skipped), 'file')} of other formats: {names}", file=sys.stderr)

    def _lines(self) -> Iterator[tuple[str, dict]]:
        path = self.files["path"]
        for number, line in read_lines(path):
            location = location_of(path, number)
            yield location, make_row(location, f"{file_stem(path)}:{number}", [line], None, [self.source_lang])

    def size(self) -> JobSummary | None:
        """How many documents and sentences a file has, which is read and checked from its first to its last document.

        None for a pipe, and for a data set on the Hub, which would be fetched twice. DataError: no sentence at all.
        """
        if self.is_pipe or not self.path.exists():
            return None
        if self.is_detected and self.reader.output_format == "lines":
            self._warn_of_text()
        if self.format == "folder":
            self._name_skipped_files()
        size = JobSummary()
        for row in self.rows():
            size.documents += 1
            size.sentences += len(row["translation"])
        if not size.sentences and self.reader.output_format != "document":
            raise DataError(f"{display_path(self.path)}: no document has a sentence; give at least one")
        return size


def content_digest(value: str | None) -> str | None:
    """The digest of a file, or of the names and files of a folder; any other value is itself."""
    path = Path(value) if value is not None else None
    if path is None or not path.exists():
        return value
    if path.is_file():
        return file_digest(path)
    files = (file for file in path.rglob("*") if file.is_file())
    return value_digest({str(file.relative_to(path)): file_digest(file) for file in files})


@dataclass(frozen=True)
class Group:
    """Consecutive documents of the input: rows of the document contract. Groups are numbered from 0."""

    number: int
    rows: list[dict]

    def sources(self, lang: str) -> "list[list[Sentence]]":
        """The sentences of each document in this language, with the translations that the column `TARGETS` knows."""
        return [source_sentences(row, lang) for row in self.rows]

    @property
    def sentences(self) -> int:
        return sum(len(row["translation"]) for row in self.rows)

    @property
    def characters(self) -> int:
        return sum(len(text) for row in self.rows for pair in row["translation"] for text in pair.values())


def document_groups(
    rows: Iterable[dict | None],
    max_sentences: int = MAX_SENTENCES,
    max_characters: int = MAX_CHARACTERS,
    batch_size: int = 0,
) -> Iterator[Group | None]:
    """Consecutive documents in groups with a maximum of sentences and characters, as full as the next one allows.

    A larger document is a group. With `batch_size` a group exceeds `max_sentences` until it has BATCHES batches of
    documents, for strategies with one sentence of each in a batch. Groups depend on rows and bounds alone. A row None
    (see `arriving_rows`) ends the group, or is passed on if no group is open.

    >>> row = {"doc_id": "talk-1", "translation": [{"en": "Hello."}]}
    >>> [len(group.rows) for group in document_groups([row] * 5, max_sentences=2)]
    [2, 2, 1]
    """
    group, sentences, characters = Group(0, []), 0, 0
    for row in rows:
        document = Group(0, [row] if row is not None else [])
        sentences, characters = sentences + document.sentences, characters + document.characters
        is_full = sentences > max_sentences and len(group.rows) >= BATCHES * batch_size or characters > max_characters
        if group.rows and (row is None or is_full):
            yield group
            group, sentences, characters = Group(group.number + 1, []), document.sentences, document.characters
        elif row is None:
            yield None
        group.rows.extend(document.rows)
    if group.rows:
        yield group


def arriving_rows(rows: Iterable[dict], ahead: int = MAX_SENTENCES) -> Iterator[dict | None]:
    """The rows of a pipe as they come, and None wherever no further one arrives within a moment.

    They are read ahead in a thread, up to `ahead` rows. Errors of reading are raised after the rows before.
    """
    queue: Queue = Queue(maxsize=ahead)
    end = object()

    def read(standard_input) -> None:  # which the thread holds, or Python could not end while it waits for a line
        try:
            for row in rows:
                queue.put(row)
            queue.put(end)
        except Exception as error:  # raised in the thread that takes the rows
            queue.put(error)

    Thread(target=read, args=(sys.stdin,), daemon=True).start()
    while True:
        try:
            row = queue.get(timeout=PATIENCE)
        except Empty:
            yield None
            continue
        if row is end:
            return
        if isinstance(row, Exception):
            yield None  # which ends the group before
            raise row
        yield row
