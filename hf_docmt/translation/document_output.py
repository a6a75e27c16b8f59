"""Translated documents with markup: a file or folder that is written when all of it is translated."""

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from hf_docmt.data.documents import UNNAMED
from hf_docmt.data.readers import Reader
from hf_docmt.files import STDOUT, check_new_folder, check_writable_file, display_path, move_durably
from hf_docmt.formats.document_reader import SOURCES, folder_files
from hf_docmt.journal import Journal
from hf_docmt.translation.job_input import JobInput, content_digest
from hf_docmt.translation.progress import JobSummary


def check_document_output(path: str, documents: JobInput, resume: bool = False) -> None:
    """Raise `ValueError` where the translated documents cannot be written there.

    With `resume` a folder may be there, from a job that was killed in its last steps, and one with its sources always.
    """
    if path == STDOUT:
        raise ValueError(
            f"{display_path(documents.path)}: {documents.format} is written to a file; add -o FILE, or -o FOLDER"
        )
    if documents.format == "folder":
        folder = Path(path)
        if is_update(path, documents):
            check_update(folder, documents)
        elif not (resume and folder.is_dir() and folder.with_name(f"{folder.name}.journal").exists()):
            check_new_folder(path)
        folder = folder.resolve()
        if documents.path.resolve() in (folder, *folder.parents):
            raise ValueError(f"the output {path} is inside the input folder; choose another place")
        return
    check_writable_file(path, documents.paths)
    endings = documents.reader.endings
    if Path(path).suffix.lower() not in endings and not is_exchange(path, documents.format):
        names = ", ".join(endings)
        raise ValueError(
            f"{path}: {documents.path} is written in its own format or as XLIFF, so that the output ends in {names} or "
            ".xlf"
        )


def known_previous(path: str, resume: bool = False) -> tuple[str, str] | None:
    """The sources of the folder at this path, and the folder; None: unknown, or a resumed job began without them."""
    if resume:
        before = next(Journal(Path(f"{path.rstrip('/')}.journal")).rows(), None)
        if before is None or not (before["identity"]["input"] or {}).get("previous"):
            return None
    sources = sorted(Path(path, SOURCES).glob("*/"))
    return (str(sources[0]), path) if sources else None


def is_update(path: str | Path, documents: JobInput) -> bool:
    """Whether the folder at this path is the previous translation of the documents."""
    target = documents.files.get("previous_target")
    return target is not None and documents.format == "folder" and Path(target).resolve() == Path(path).resolve()


def check_update(folder: Path, documents: JobInput) -> None:
    """Raise `ValueError` for a folder in another language, and for files in it that were not translated from these."""
    sources = Path(documents.files["previous"] or "")
    is_other = sources.parent.name == SOURCES and sources.name not in (documents.target_lang, UNNAMED)
    if documents.target_lang and is_other:
        raise ValueError(f"{folder} is in {sources.name!r}, got {documents.target_lang!r}; choose another folder")
    for name in folder_files(documents.path):
        if (folder / name).exists() and not (sources / name).exists():
            raise ValueError(f"{folder / name} exists, and its source is unknown; move it, or choose another folder")


def check_report(report: str | None, files: Sequence[str], reader: Reader) -> None:
    """Raise `ValueError` where the report on the translation of these files, the output first, cannot be written."""
    if report is None:
        return
    if reader.output_format != "document" or reader.name == "folder":
        raise ValueError(f"--report is for one file with markup (Markdown, HTML, ...), got {reader.name}; remove it")
    if Path(report).suffix.lower() not in (".html", ".htm") or Path(report).resolve() == Path(files[0]).resolve():
        raise ValueError(f"--report writes a page next to the output, got {report}; give another name ending in .html")
    check_writable_file(report, files)


def is_exchange(path: str | Path, format: str) -> bool:
    """Whether the translation of a document of this format is written to a file of this name as XLIFF, for review."""
    return Path(path).suffix.lower() in (".xlf", ".xliff") and format not in ("xliff", "folder")


def has_scores(path: str, reader: Reader) -> bool:
    """Whether the translations of this reader are written there with their scores."""
    if reader.output_format == "document":
        return reader.name in ("po", "xliff", "folder") or is_exchange(path, reader.name)
    return reader.output_format not in ("lines", "text", "subtitles")


def write_documents(
    documents: JobInput, texts: Iterable[str], path: Path, whole: Path, report: Callable | None
) -> JobSummary:
    """Write the files of the input with translations from result rows, lines of JSON; returns the messages about them.

    They are written to `whole`, checked, and moved to `path`, a folder with its sources; in an updated one other files
    stay. One of a job that was killed at its end stays if it is the same (else `OSError`). `report` writes the report.
    """
    results = {row["doc_id"]: row for text in texts for row in map(json.loads, filter(None, text.split("\n")))}
    from hf_docmt.formats.document_file import WrittenFile
    from hf_docmt.formats.xliff_exchange import exchange_file

    written, is_folder = WrittenFile(), documents.format == "folder"
    _remove(whole)  # of a job that was killed here
    try:
        for document in documents.document_files():
            translation = document.translation(results)
            if is_exchange(path, documents.format):
                data, own = exchange_file(document, translation), document.counts(translation)
            else:
                data, own = document.written(translation)
            file = whole / document.name if is_folder else whole
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(0o666 if is_folder else 0o600)  # a file gets the mode of the one that it replaces
            file.write_bytes(data)
            if is_folder and not document.options.bilingual:
                source = whole / SOURCES / (documents.target_lang or UNNAMED) / document.name
                source.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(documents.path / document.name, source)
            written.add(own)
        if report:
            languages = documents.source_lang.replace(UNNAMED, ""), documents.target_lang or ""
            report(documents.path.name, results.values(), languages, written.problems)
        if is_update(path, documents):
            files = [file.relative_to(whole) for file in whole.rglob("*") if file.is_file()]
            for name in sorted(files, key=lambda name: name.parts[0] == SOURCES):  # after the translations
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                move_durably(whole / name, path / name)
        elif not is_folder or not path.exists() or not any(path.iterdir()):
            move_durably(whole, path)
        elif content_digest(str(path)) != content_digest(str(whole)):
            raise OSError("a folder with other files is there; move it")
    finally:
        _remove(whole)
    return JobSummary(written=[written.text()], problems=len(written.problems))


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
