"""Files with markup translated in Python, by any system."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hf_docmt.data.documents import source_sentences
from hf_docmt.files import DataError, check_writable_file, replaced_file
from hf_docmt.formats import document_formats, find_reader
from hf_docmt.formats.document_file import DocumentTranslation, WrittenFile, given_runs, with_markup
from hf_docmt.formats.document_reader import DocumentReader
from hf_docmt.formats.xliff_exchange import exchange_languages, reviewed_pieces
from hf_docmt.modeling.opaque_runs import CarriedSentence

if TYPE_CHECKING:
    from hf_docmt.systems import System


def translate_file(
    system: "System",
    path: str | Path,
    output: str | Path,
    *,
    format: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    keep: str | None = None,
    all: bool = False,
    columns: str | None = None,
    previous: tuple[str | Path, str | Path] | None = None,
    bilingual: bool = False,
) -> WrittenFile:
    """Translate a document with markup (Markdown, HTML, DOCX, PO, XLIFF, ...) to a file of the same format.

    The languages default to those of the system: they select the sentence splitter, and are written as the language of
    the document. `keep` is a regular expression of text to copy; `all`: translated strings of a bilingual file are
    translated again; `previous` are an old version and its translation, which stays where the source is the same;
    `bilingual`: each text stays, and its translation is written below it.
    Returns counts, and the problems found when the file was read again. ValueError: an unknown format, a broken file.

    >>> _ = Path("page.html").write_text("<p>The <b>lamp</b> is old.</p>")
    >>> translate_file(load_system("runs/concat"), "page.html", "page.de.html").problems
    []
    """
    output = check_writable_file(output, [path])
    reader = document_reader(path, format)
    own = [given or known for given, known in zip((source_lang, target_lang), system.document_languages)]
    texts = {"keep": keep, "all": "yes" if all else None, "columns": columns}
    texts |= {"bilingual": "yes" if bilingual else None}
    texts |= dict(zip(("previous", "previous_target"), map(str, previous or ())))
    (document,) = reader.files([own[0] or "en"], path, own[1], **texts)
    rows = [row for _, row in document.rows(["source"])]
    documents = [source_sentences(row, "source") for row in rows]
    (translations, *_), carried = system.translate_carried(documents, list(map(given_runs, rows)))
    data, written = document.translated(marked_results(rows, zip(translations, carried), system))
    with replaced_file(output) as file:
        file.write(data)
    return written


def merge_file(
    xliff: str | Path, path: str | Path, output: str | Path, *, format: str = "auto", **options: str | None
) -> WrittenFile:
    """Write a document with the translations of an XLIFF file that `docmt translate` made of it; returns counts.

    The languages are those of the file. `options` are those with which the document was read: all, columns. DataError:
    the file is of another document, or the tags in a translation are not those of its source.

    >>> merge_file("page.xlf", "page.md", "page.de.md").segments
    12
    """
    output = check_writable_file(output, [xliff, path])
    reader = document_reader(path, format)
    source_lang, target_lang = exchange_languages(xliff)
    (document,) = reader.files([source_lang], path, target_lang, **options)
    pieces = reviewed_pieces(xliff, document)
    data, written = document.written(DocumentTranslation(pieces, [None] * len(pieces)))
    with replaced_file(output) as file:
        file.write(data)
    return written


def document_reader(path: str | Path, format: str = "auto") -> DocumentReader:
    """The reader of a file with markup; text files are read as in folders. DataError: another file."""
    is_text = format == "auto" and Path(path).suffix.lower() == ".txt"
    reader = find_reader({"path": str(path)}, "txt" if is_text else format)
    if not isinstance(reader, DocumentReader) or reader.kind is None:
        names = ", ".join(document_formats())
        raise DataError(f"{path}: no document with markup by its name and first bytes; give format=, one of {names}")
    return reader


def marked_results(
    rows: Iterable[dict],
    translated: Iterable[tuple[list[str], Mapping[int, CarriedSentence]]],
    aligner: "System | None",
) -> dict[str, dict]:
    """Result rows by document id, from rows of a file, their translations and carried sentences.

    The places of markup come from the system `aligner`.
    """
    results = {}
    for row, (lines, own) in zip(rows, translated, strict=True):
        result = {"source": [pair["source"] for pair in row["translation"]], "translation": lines}
        results[row["doc_id"]] = with_markup(aligner, row, result, own)
    return results
