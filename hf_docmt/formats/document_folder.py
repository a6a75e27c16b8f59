"""A folder of files with markup, each in its own format."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hf_docmt.files import DataError, display_path
from hf_docmt.formats.document_file import DocumentFile
from hf_docmt.formats.document_format import FORMATS, DocumentFormat, DocumentReader, options_of


class DocumentFolder(DocumentReader):
    """The files with markup of a folder and of those in it; files of other formats are left out."""

    def files(
        self, languages: Sequence[str], path: str | Path, tgt_lang: str | None = None, **texts: str | None
    ) -> Iterator[DocumentFile]:
        formats = dict(folder_files(path))
        if not formats:
            raise DataError(f"{display_path(path)}: no file of a format of documents: {', '.join(_endings())}")
        options = options_of(formats.values(), languages, tgt_lang, **texts)
        for name, format in formats.items():
            yield self.file(Path(path) / name, name, format, options)


def folder_files(path: str | Path) -> Iterator[tuple[str, type[DocumentFormat]]]:
    """The files of a folder that have the ending of a format, in the order of their names, by their relative path."""
    formats = _endings()
    for file in sorted(Path(path).rglob("*")):
        if file.suffix.lower() in formats and file.is_file():
            yield file.relative_to(path).as_posix(), formats[file.suffix.lower()]


def _endings() -> dict[str, type[DocumentFormat]]:
    return {ending: format for format in FORMATS.values() if format.in_folders for ending in format.endings}
