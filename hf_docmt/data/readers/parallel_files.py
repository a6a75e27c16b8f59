"""Two files, one a side, with the same documents in the same order: what the readers of such formats share."""

from abc import abstractmethod
from collections.abc import Iterator
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
        theirs = self.side_documents(target) if target is not None else []
        ours = self.side_documents(source)
        two_sided = check_target(languages, source, target)
        if two_sided and len(ours) != len(theirs):
            raise DataError(_different_files(source, ours, target, theirs))
        for number, (line, sentences) in enumerate(ours, 1):
            location = location_of(source, line)
            other = None
            if two_sided:
                other_line, other = theirs[number - 1]
                location += f" and {location_of(target, other_line)}"
            yield location, make_row(location, numbered_id(source, number), sentences, other, languages)

    @abstractmethod
    def side_documents(self, path: str | Path) -> list[SideDocument]:
        """The documents of one file."""


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


def _different_files(
    source: str | Path, ours: list[SideDocument], target: str | Path, theirs: list[SideDocument]
) -> str:
    counts = [(len(side), sum(len(sentences) for _, sentences in side)) for side in (ours, theirs)]
    message = (
        f"{display_path(source)} has {counts[0][0]} documents ({counts[0][1]} sentences) but {display_path(target)} "
        f"has {counts[1][0]} ({counts[1][1]} sentences); the files must have the same documents"
    )
    for number, ((line, left), (other_line, right)) in enumerate(zip(ours, theirs), 1):
        if len(left) != len(right):
            return message + (
                f"; the first difference is document {number}, with {len(left)} sentences from line {line} on and "
                f"{len(right)} from line {other_line} on"
            )
    return message + f"; the first {min(len(ours), len(theirs))} agree in length"
