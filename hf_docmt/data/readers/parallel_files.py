"""Two files, one a side, with the same documents in the same order: what the readers of such formats share."""

from abc import abstractmethod
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.reader import Reader
from hf_docmt.files import DataError, display_path, file_stem, location_of

SideDocument = tuple[int, list[str]]  # line in the file where it begins, sentences


class ParallelFilesReader(Reader):
    """Base of formats without document ids, one file a side; ids are the source file's name and a number."""

    document_ids = False

    def read(
        self, languages: list[str], source: str | Path, target: str | Path | None = None
    ) -> Iterator[tuple[str, dict]]:
        """Rows. DataError where the files have different numbers of documents, or a document of sentences."""
        two_sided = check_target(languages, source, target)
        ours = self.side_documents(source)
        if not two_sided:
            for number, (line, sentences) in enumerate(ours, 1):
                location = location_of(source, line)
                yield location, make_row(location, numbered_id(source, number), sentences, None, languages)
            return
        theirs, before = self.side_documents(target), 0
        for number, (one, other) in enumerate(zip_longest(ours, theirs), 1):
            if one is None or other is None or len(one[1]) != len(other[1]):
                counts = [_count(number, before, first, rest) for first, rest in ((one, ours), (other, theirs))]
                if counts[0][0] != counts[1][0]:
                    raise DataError(_different_files(source, target, counts, number, one, other))
            location = f"{location_of(source, one[0])} and {location_of(target, other[0])}"
            yield location, make_row(location, numbered_id(source, number), one[1], other[1], languages)
            before += len(one[1])

    @abstractmethod
    def side_documents(self, path: str | Path) -> Iterator[SideDocument]:
        """The documents of one file, each when its turn comes."""


def numbered_id(path: str | Path, number: int) -> str:
    """The id of the document with this number (from 1) in a format without ids."""
    return f"{file_stem(path)}-{number:05d}"


def check_target(languages: list[str], source: str | Path, target: str | Path | None) -> bool:
    """Whether there is a target side; DataError where language and file do not agree on it."""
    if target is None and len(languages) == 2:
        raise DataError(
            f"{display_path(source)}: target language {languages[1]!r} is asked for without a target file; give "
            "target=, or leave out the target language to read the source side only"
        )
    if target is not None and len(languages) == 1:
        raise DataError(
            f"{display_path(target)}: the target file's language is missing; give target_lang, or leave the file out"
        )
    return target is not None


def _count(number: int, sentences: int, document: SideDocument | None, rest: Iterator[SideDocument]) -> tuple[int, int]:
    """Documents and sentences of a file, read up to a document of this number, with so many sentences before it."""
    lengths = [len(sentences) for _, sentences in rest]
    if document is not None:
        lengths.append(len(document[1]))
    return number - 1 + len(lengths), sentences + sum(lengths)


def _different_files(
    source: str | Path,
    target: str | Path,
    counts: list[tuple[int, int]],
    number: int,
    one: SideDocument | None,
    other: SideDocument | None,
) -> str:
    message = (
        f"{display_path(source)} has {counts[0][0]} documents ({counts[0][1]} sentences) but {display_path(target)} "
        f"has {counts[1][0]} ({counts[1][1]} sentences); the files must have the same documents"
    )
    if one is None or other is None:
        return message + f"; the first {number - 1} agree in length"
    return message + (
        f"; the first difference is document {number}, with {len(one[1])} sentences from line {one[0]} on and "
        f"{len(other[1])} from line {other[0]} on"
    )
