"""Pasted and uploaded input as documents, and the translation in the same format."""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from tempfile import TemporaryDirectory

from hf_docmt.data.documents import make_row
from hf_docmt.data.language_codes import primary_language
from hf_docmt.data.readers import get_reader, iterate_documents
from hf_docmt.data.readers.lines import TEXT_LAYOUT, is_wrapped, split_blocks
from hf_docmt.data.readers.running_text import TEXT_LINES, document_text, sentence_splitter, split_lines
from hf_docmt.files import DataError
from hf_docmt.formats import document_formats
from hf_docmt.formats.document_file import DocumentFile, FormatOptions
from hf_docmt.formats.odt import OdtFormat
from hf_docmt.formats.pptx import PptxFormat
from hf_docmt.formats.zip_archive import ZipArchive

FILE_FORMATS = {".jsonl": "jsonl", ".srt": "subtitles", ".vtt": "subtitles"}  # those of the package's readers
MARKUP_FORMATS = {  # but tables, whose columns would have to be named, and text, which is read by paragraphs
    ending: format
    for format in document_formats().values()
    if "columns" not in format.takes and format.name != "txt"
    for ending in format.endings
}
ENDINGS = (".txt", *FILE_FORMATS, *MARKUP_FORMATS)
ARCHIVES = {".docx": ".xml", ".docm": ".xml"}  # ending -> that of members that may be parsed
ARCHIVES |= dict.fromkeys((".epub", *OdtFormat.endings, *PptxFormat.endings), "")
MOST_BYTES = 10 * 2**20  # of a file
MOST_TEXT = 2 * 2**20  # bytes of what is parsed; of an archive, unpacked, four times that
MOST_MARKUP = 200_000  # characters that begin markup
MARKUP_STARTS = b"<[{*_`>|&"
MOST_LINE = 100_000  # bytes
MOST_SENTENCES = 2000
PASTED = "text.txt"


@dataclass(frozen=True)
class Upload:
    """A file by its name and content; pasted text is the file `text.txt`."""

    name: str
    data: bytes

    @property
    def ending(self) -> str:
        return PurePath(self.name).suffix.lower()

    def as_json(self) -> dict[str, str]:
        return {"name": self.name, "data": base64.b64encode(self.data).decode("ascii")}

    @classmethod
    def from_json(cls, value: object) -> "Upload":
        """ValueError for what `as_json` does not give."""
        if not isinstance(value, dict) or not all(isinstance(value.get(key), str) for key in ("name", "data")):
            raise ValueError(f"expected an upload with name and data, got {type(value).__name__}")
        try:
            return cls(PurePath(value["name"]).name, base64.b64decode(value["data"], validate=True))
        except binascii.Error as error:
            raise ValueError(f"the data of an upload is not base64: {error}") from error


def pasted(text: str) -> Upload:
    return Upload(PASTED, text.encode("utf-8", errors="replace"))


def read_upload(upload: Upload, lang: str) -> list[dict]:
    """The documents of an upload, rows of the document contract. DataError: what cannot be read, and how to mend it."""
    check_limits(upload)
    if upload.ending in MARKUP_FORMATS:
        rows = [row for _, row in _document_file(upload, lang).rows([lang])]
    else:
        rows = _file_rows(upload, lang) if upload.ending in FILE_FORMATS else [_text_row(upload, lang)]
    count = sum(len(row["translation"]) for row in rows)
    if count > MOST_SENTENCES:
        raise DataError(
            f"{upload.name} has {count} sentences, expected {MOST_SENTENCES} at most; split it, or use docmt translate"
        )
    if not any(text.strip() for row in rows for text in source_of(row, lang)):
        raise DataError(f"{upload.name} has no text; give it some")
    return rows


def check_limits(upload: Upload) -> None:
    """DataError for a file that would cost too much to parse, by what is counted before."""
    if upload.ending not in ENDINGS:
        raise DataError(f"{upload.name} ends in {upload.ending or 'nothing'!r}, expected one of {', '.join(ENDINGS)}")
    _check_count(upload, "bytes", len(upload.data), MOST_BYTES)
    texts, most = [upload.data], MOST_TEXT
    if upload.ending in ARCHIVES:
        try:
            archive = ZipArchive(upload.data)
            members = [member for member in archive.members if member.filename.endswith(ARCHIVES[upload.ending])]
            sizes, most = [member.file_size for member in members], 4 * MOST_TEXT
            _check_count(upload, "bytes of text when it is unpacked", sum(sizes), most)
            texts = [archive.read(member.filename) for member in members]
        except DataError as error:
            raise DataError(f"{upload.name}: {str(error).removeprefix(f'{upload.name} ')}") from error
    _check_count(upload, "bytes of text", sum(map(len, texts)), most)
    if upload.ending in ARCHIVES:
        _check_count(upload, "elements", sum(text.count(b"<") for text in texts), MOST_MARKUP)
    elif upload.ending in MARKUP_FORMATS:
        marks = len(upload.data) - len(upload.data.translate(None, MARKUP_STARTS))
        _check_count(upload, "characters of markup", marks, MOST_MARKUP)
        _check_count(upload, "bytes on a line", max(map(len, upload.data.splitlines()), default=0), MOST_LINE)


def _check_count(upload: Upload, what: str, count: int, most: int) -> None:
    if count > most:
        raise DataError(f"{upload.name} has {count} {what}, expected {most} at most; split it, or use docmt translate")


def source_of(row: dict, lang: str) -> list[str]:
    return [pair[lang] for pair in row["translation"]]


def write_upload(
    upload: Upload,
    rows: list[dict],
    results: list[dict],
    langs: tuple[str, str],
    repairs: list[list[dict]] | None = None,
) -> tuple[Upload, list[str]]:
    """The translated upload, with its markup and times; and the problems in it.

    `results` are those of the documents: `doc_id`, `source`, `translation`, and the data to place markup, see
    `with_markup`. `repairs` are those of each document, for the rows of JSON lines, which are those of `docmt
    translate`.
    """
    source_lang, target_lang = langs
    if repairs is not None:
        results = [result | {"repairs": own} for result, own in zip(results, repairs, strict=True)]
    problems: list[str] = []
    if upload.ending in MARKUP_FORMATS:
        document = _document_file(upload, source_lang, target_lang)
        data, written = document.translated({result["doc_id"]: result for result in results})
        problems = written.problems
    else:
        data = _render(upload)(rows, results).encode("utf-8")
    return Upload(f"{PurePath(upload.name).stem}.{target_lang}{upload.ending}", data), problems


def _document_file(upload: Upload, source_lang: str, target_lang: str | None = None) -> DocumentFile:
    options = FormatOptions(primary_language(source_lang), target_lang)
    try:
        return DocumentFile(upload.data, upload.name, MARKUP_FORMATS[upload.ending](), options)
    except RecursionError as error:
        raise DataError(f"{upload.name} is nested too deep; simplify it") from error


def _render(upload: Upload) -> Callable[[list[dict], list[dict]], str]:
    newline = "\r\n" if b"\r\n" in upload.data else "\n"

    def render(row, result):
        if upload.ending in FILE_FORMATS:
            return get_reader(FILE_FORMATS[upload.ending]).render(row, result)
        is_wrapped = TEXT_LAYOUT in row
        return get_reader("text").render(row, result).removesuffix("\n") if is_wrapped else document_text(row, result)

    return lambda rows, results: "".join(render(*pair).replace("\n", newline) for pair in zip(rows, results))


def _text_row(upload: Upload, lang: str) -> dict:
    try:
        text = upload.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{upload.name} is not UTF-8, byte {error.start}; save it as UTF-8") from error
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines, split = text.split("\n"), sentence_splitter(primary_language(lang))
    if is_wrapped(lines):
        name, (sentences, layout) = TEXT_LAYOUT, split_blocks(lines, split)
    else:
        name, (sentences, layout) = TEXT_LINES, split_lines(text, split)
    return make_row(upload.name, PurePath(upload.name).stem, sentences, None, [lang], **{name: layout})


def _file_rows(upload: Upload, lang: str) -> list[dict]:
    with TemporaryDirectory() as folder:
        path = f"{folder}/{PurePath(upload.name).name}"
        with open(path, "wb") as file:
            file.write(upload.data)
        try:
            return list(iterate_documents(FILE_FORMATS[upload.ending], path=path, source_lang=lang))
        except DataError as error:
            raise DataError(str(error).replace(f"{folder}/", "")) from error
