"""What a user pastes or uploads, as documents, and the translation in the format that it came in."""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from tempfile import TemporaryDirectory

from word_files import read_lines, replace_lines

from hf_docmt.data.documents import make_row
from hf_docmt.data.language_codes import primary_language
from hf_docmt.data.readers import get_reader, iterate_documents
from hf_docmt.data.readers.row_layouts import TEXT_LINES
from hf_docmt.data.readers.running_text import join_sentences, sentence_splitter, split_lines
from hf_docmt.files import DataError
from hf_docmt.translation.corpus import document_text, renderer

FILE_FORMATS = {".jsonl": "jsonl", ".srt": "subtitles", ".vtt": "subtitles"}  # those of the package's readers
ENDINGS = (".txt", ".docx", *FILE_FORMATS)
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
            raise ValueError(f"the data of an upload is no base64: {error}") from error


def pasted(text: str) -> Upload:
    return Upload(PASTED, text.encode("utf-8", errors="replace"))


def read_upload(upload: Upload, lang: str) -> list[dict]:
    """The documents of an upload, rows of the document contract. DataError: what cannot be read, and how to mend it."""
    if upload.ending not in ENDINGS:
        raise DataError(f"{upload.name} ends in {upload.ending or 'nothing'!r}, expected one of {', '.join(ENDINGS)}")
    rows = _file_rows(upload, lang) if upload.ending in FILE_FORMATS else [_text_row(upload, lang)]
    count = sum(len(row["translation"]) for row in rows)
    if count > MOST_SENTENCES:
        raise DataError(
            f"{upload.name} has {count} sentences, expected {MOST_SENTENCES} at most; split it, or use docmt translate"
        )
    if not any(text.strip() for row in rows for text in source_of(row, lang)):
        raise DataError(f"{upload.name} has no text; give it some")
    return rows


def source_of(row: dict, lang: str) -> list[str]:
    return [pair[lang] for pair in row["translation"]]


def write_upload(upload: Upload, rows: list[dict], translations: list[list[str]], langs: tuple[str, str]) -> Upload:
    """The upload translated: what is not text (lines, times, styles, other columns) stays as it was."""
    source_lang, target_lang = langs
    results = [
        {"doc_id": row["doc_id"], "source": source_of(row, source_lang), "translation": own}
        for row, own in zip(rows, translations, strict=True)
    ]
    if upload.ending == ".docx":
        data = replace_lines(upload.data, upload.name, _lines(rows[0], translations[0]))
    else:
        data = _render(upload)(rows, results).encode("utf-8")
    return Upload(f"{PurePath(upload.name).stem}.{target_lang}{upload.ending}", data)


def _render(upload: Upload) -> Callable[[list[dict], list[dict]], str]:
    if upload.ending in FILE_FORMATS:
        render = renderer(get_reader(FILE_FORMATS[upload.ending]))
    else:
        newline = "\r\n" if b"\r\n" in upload.data else "\n"

        def render(row, result):
            return document_text(row, result).replace("\n", newline)

    return lambda rows, results: "".join(render(*pair) for pair in zip(rows, results))


def _text_row(upload: Upload, lang: str) -> dict:
    if upload.ending == ".docx":
        text = "\n".join(" ".join(line.split()) for line in read_lines(upload.data, upload.name))
    else:
        try:
            text = upload.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(f"{upload.name} is not UTF-8, byte {error.start}; save it as UTF-8") from error
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    sentences, lines = split_lines(text, sentence_splitter(primary_language(lang)))
    return make_row(upload.name, PurePath(upload.name).stem, sentences, None, [lang], **{TEXT_LINES: lines})


def _file_rows(upload: Upload, lang: str) -> list[dict]:
    with TemporaryDirectory() as folder:
        path = f"{folder}/{PurePath(upload.name).name}"
        with open(path, "wb") as file:
            file.write(upload.data)
        try:
            return list(iterate_documents(FILE_FORMATS[upload.ending], path=path, source_lang=lang))
        except DataError as error:
            raise DataError(str(error).replace(f"{folder}/", "")) from error


def _lines(row: dict, translation: list[str]) -> list[str]:
    """The translation of a text line by line."""
    rest = iter(translation)
    return [join_sentences(next(rest) for _ in range(count)) for count in row[TEXT_LINES]]
