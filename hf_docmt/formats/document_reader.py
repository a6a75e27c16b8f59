"""Readers of files with markup, one by one or those of a folder."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hf_docmt.data.readers.reader import Reader
from hf_docmt.files import DataError
from hf_docmt.formats.document_file import DocumentFile
from hf_docmt.formats.document_format import FORMATS, DocumentFormat, FormatOptions
from hf_docmt.formats.previous_translation import PreviousTranslation

SOURCES = ".docmt"  # in an output folder, by target language: the files that it was translated from
KEPT_BYTES = 16 << 20  # of files that stay parsed; that is looked at before one is added


class DocumentReader(Reader):
    """Reads files with markup: one of a format, or those of a folder, each in its own; others there are skipped.

    The first ones stay parsed until they change, since a job asks for each three times.
    """

    output_format = "document"

    def __init__(self, format: type[DocumentFormat] | None = None):
        self.kind, self.kept = format, dict[tuple, DocumentFile]()
        self.name, self.endings = (format.name, format.endings) if format else ("folder", ())  # type: ignore[misc]

    def read(
        self,
        languages: list[str],
        path: str | Path,
        tgt_lang: str | None = None,
        keep: str | None = None,
        all: str | None = None,
        columns: str | None = None,
        bilingual: str | None = None,
        fuzzy_below: str | None = None,
        previous: str | None = None,
        previous_target: str | None = None,
    ) -> Iterator[tuple[str, dict]]:
        texts = {"keep": keep, "all": all, "columns": columns, "bilingual": bilingual, "fuzzy_below": fuzzy_below}
        texts |= {"previous": previous, "previous_target": previous_target}
        for file in self.files(languages, path, tgt_lang, **texts):
            yield from file.rows(languages)

    def files(
        self, languages: Sequence[str], path: str | Path, tgt_lang: str | None = None, **texts: str | None
    ) -> Iterator[DocumentFile]:
        """The files, read one at a time; the arguments are those of `read`."""
        formats = {Path(path).name: self.kind} if self.kind else folder_files(path)
        for name in ("all", "columns", "bilingual", "fuzzy_below"):
            takers = [format for format in FORMATS.values() if name in format.options_taken()]
            if texts.get(name) and not any(format in takers for format in formats.values()):
                names = ", ".join(sorted({format.name for format in formats.values()}))
                raise DataError(f"{name} is for {', '.join(format.name for format in takers)}, got {names}; omit it")
        previous = [texts.pop(name, None) for name in ("previous", "previous_target")]
        options = FormatOptions.of(languages[0], tgt_lang, **texts)
        for name, format in formats.items():
            file = path if self.kind else Path(path) / name
            earlier = [str(old if self.kind else Path(old) / name) for old in previous if old]
            key = (str(file), options, *_time_and_size(file), *earlier)
            if key in self.kept:
                yield self.kept[key]
                continue
            document = DocumentFile.read(file, name, format(), options)
            if not self.kind and is_same(file, *earlier):
                document.unchanged = Path(earlier[1]).read_bytes()
            elif earlier and (self.kind or all(map(os.path.exists, earlier))):
                languages_of = options, replace(options, source_lang=tgt_lang or options.source_lang)
                versions = zip(earlier, languages_of, strict=True)
                old, translated = (DocumentFile.read(each, name, format(), own) for each, own in versions)
                PreviousTranslation(old, translated).keep_in(document)
            if sum(each.size for each in self.kept.values()) < KEPT_BYTES:
                self.kept[key] = document
            yield document


def folder_files(path: str | Path) -> dict[str, type[DocumentFormat]]:
    """The files of a folder that have the ending of a format, by relative path, in order. DataError without any."""
    endings = {ending: format for format in FORMATS.values() if format.in_folders for ending in format.endings}
    suffixes = {name: Path(name).suffix.lower() for name in _names(path)}
    if not endings.keys() & suffixes.values():
        raise DataError(f"{path}: no file in this folder has one of the extensions {', '.join(sorted(endings))}")
    return {name: endings[suffix] for name, suffix in suffixes.items() if suffix in endings}


def skipped_files(path: str | Path) -> list[str]:
    """The other files of a folder, but hidden ones."""
    read = folder_files(path)
    return [name for name in _names(path) if name not in read and "/." not in f"/{name}"]


def is_same(path: str | Path, previous: str = "", target: str = "") -> bool:
    """Whether a file is as its previous version, of which there is a translation."""
    return all(map(os.path.isfile, (previous, target))) and Path(path).read_bytes() == Path(previous).read_bytes()


def _names(folder: str | Path) -> list[str]:
    names = [file.relative_to(folder).as_posix() for file in sorted(Path(folder).rglob("*")) if file.is_file()]
    return [name for name in names if not name.startswith(f"{SOURCES}/")]


def _time_and_size(path: str | Path) -> tuple[int, ...]:
    """Facts that change with a file; empty without one."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size
