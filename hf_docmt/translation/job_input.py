"""The documents of a translation job: one file, or standard input, read lazily."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from hf_docmt.data.documents import checked_rows, make_row
from hf_docmt.data.readers import check_arguments, detect_format, get_reader, input_files, iterate_documents
from hf_docmt.data.readers.lines import LinesReader
from hf_docmt.data.readers.reader import NO_FILES
from hf_docmt.files import STDIN, file_stem, location_of, read_lines
from hf_docmt.translation.groups import Group, arriving_groups, document_groups


class Size(NamedTuple):
    """How many documents and sentences there are."""

    documents: int
    sentences: int


class JobInput:
    """Documents of one format, whose side in `source_lang` is read.

    `text` is a file, a folder, `-` for standard input, or arguments of the reader (`path=owner/name,split=test`).
    `without_context`: sentences are translated without each other. Then each of plain lines, which else are one
    document from the first to the last, is a document of its own, translated when it comes, however many there are.
    `target_lang` chooses among the documents of a set for several target languages, where `text` does not.
    """

    def __init__(
        self,
        text: str,
        format: str,
        source_lang: str,
        without_context: bool = False,
        target_lang: str | None = None,
    ):
        self.source_lang = source_lang
        self.files: dict[str, str | None] = dict(input_files(text, format))
        path = next((self.files[name] for name in ("source", "path") if name in self.files), None)
        self.format = detect_format(self.files) if format == "auto" else format
        self.reader = get_reader(self.format)
        if "tgt_lang" in self.reader.arguments():
            self.files.setdefault("tgt_lang", target_lang)
        check_arguments(self.reader, {name: value for name, value in self.files.items() if value is not None})
        self.by_line = without_context and self.reader.name == LinesReader.name
        self.path = (
            None if path is None or STDIN in self.files.values() else Path(path)
        )  # None: can be read once, as it comes

    @property
    def paths(self) -> list[str]:
        """The arguments that may be files."""
        return [value for name, value in self.files.items() if value is not None and name not in NO_FILES]

    def rows(self) -> Iterator[dict]:
        """The rows of the document contract, one at a time; `DataError` when its turn comes for one that is broken."""
        if self.by_line:
            return checked_rows(self._lines(), [self.source_lang])
        return iterate_documents(self.format, source_lang=self.source_lang, **self.files)

    def _lines(self) -> Iterator[tuple[str, dict]]:
        path = self.files["path"]
        for number, line in read_lines(path):
            location = location_of(path, number)
            yield location, make_row(location, f"{file_stem(path)}:{number}", [line], None, [self.source_lang])

    def size(self) -> Size | None:
        """The size of a file, which is read and checked from its first to its last document.

        None for a pipe, and for a data set on the Hub, which would be fetched twice.
        """
        if self.path is None or not self.path.exists():
            return None
        documents = sentences = 0
        for row in self.rows():
            documents += 1
            sentences += len(row["translation"])
        return Size(documents, sentences)

    def groups(self, batch_size: int, as_they_come: bool = False) -> Iterable[Group | None]:
        """The documents in groups; `as_they_come`: those of a pipe without waiting for groups to be full."""
        make_groups = arriving_groups if as_they_come and self.path is None else document_groups
        return make_groups(self.rows(), batch_size=batch_size)
