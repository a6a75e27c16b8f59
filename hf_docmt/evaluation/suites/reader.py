"""From the files of a suite to its items, whatever the format."""

from pathlib import Path

from hf_docmt.evaluation.suites import bawden, contrapro, lopes, voita
from hf_docmt.evaluation.suites.contrapro_documents import SuiteDocuments, Surroundings
from hf_docmt.evaluation.suites.items import SuiteItem
from hf_docmt.files import DataError, parse_json, read_lines

FORMATS = ("contrapro", "voita", "lopes", "bawden")
BELONGS = {
    "records": "text files of ContraPro, Voita and Bawden",
    "context_file": "text files of Lopes",
    "documents": "JSON of ContraPro",
}


def read_suite(
    path: str | Path,
    format: str = "auto",
    *,
    documents: str | Path | None = None,
    records: str | Path | None = None,
    context: int = 3,
    future_context: int = 0,
    context_file: int | None = None,
) -> list[SuiteItem]:
    """Items of a suite in file order, each with at most `context` sentences before the current one.

    `contrapro` (Müller et al. 2018): JSON with `segment id` counted from 1; the context, and `future_context` sentences
    after the current one, are taken from `documents`, JSON lines with the source language first in every sentence pair,
    by default `documents.jsonl` beside the suite; those that are given are read without context, too. Or the text made
    from it, `NAME.text.en`, `NAME.context.en`, `.de`.
    `voita` (Voita et al. 2019): JSON with sentences joined by `_eos`, or the text `NAME.src`, `NAME.dst`.
    `lopes` (Lopes et al. 2020): the folder, or `NAME.current.src`; `context_file` is N of `NAME.cN.context.src`.
    `bawden` (Bawden et al. 2018): JSON, or the text `SET.current.en`, `SET.prev.en`, `.fr`.

    `auto` tells them apart by file names and keys. Only ContraPro's documents have sentences after the current one.
    `records` is the JSON that belongs to text files, by default the one of their name beside them or a folder above;
    those of Voita need it. DataError (a ValueError) names file and item.
    """
    if format not in ("auto", *FORMATS):
        raise ValueError(f"unknown suite format {format!r}: expected auto, {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    if context < 0 or future_context < 0:
        raise ValueError(
            f"context is {context}, future_context {future_context}; expected the number of sentences before and after "
            "the current one, 0 or more"
        )
    text_format = "lopes" if format == "lopes" else _text_format(path)
    from_texts = text_format is not None and format in ("auto", text_format)
    _check_belongs("records", records, from_texts and text_format != "lopes", path)
    _check_belongs("context_file", context_file, from_texts and text_format == "lopes", path)
    if from_texts:
        _check_belongs("documents", documents, False, path)
        return list(_text_items(Path(path), text_format, records, context, context_file))
    entries = _entries(path)
    format = _json_format(entries, path) if format == "auto" else format
    _check_entries(entries, format, path)
    _check_belongs("documents", documents, format == "contrapro", path)
    if format == "contrapro":
        return list(_contrapro_items(entries, path, documents, context, future_context))
    return list((voita.voita_items if format == "voita" else bawden.bawden_items)(entries, path, context))


def _check_belongs(name: str, value: object, belongs: bool, path: str | Path) -> None:
    if value is not None and not belongs:
        raise ValueError(f"{name} is {value}, but {path} has no use for it, it is for {BELONGS[name]}; leave it out")


def _text_format(path: str | Path) -> str | None:
    """The format whose text files are so named; None for other names, which are JSON."""
    path = Path(path)
    if path.is_dir() or path.name.endswith((".current.src", ".current.trg", ".context.src", ".context.trg")):
        return "lopes"
    if contrapro.TEXT.fullmatch(path.name):
        return "contrapro"
    if bawden.TEXT.fullmatch(path.name):
        return "bawden"
    return "voita" if path.suffix in (".src", ".dst") else None


def _text_items(path: Path, format: str, records: str | Path | None, context: int, context_file: int | None):
    if format == "lopes":
        return lopes.lopes_items(path, context, context_file)
    told = _records_path(path, format) if records is None else Path(records)
    entries = None
    if told is not None:
        entries = _entries(told)
        _check_entries(entries, format, told)
    if format == "bawden":
        return bawden.bawden_text_items(path, context, entries, told)
    if format == "contrapro":
        items = None if entries is None else list(_contrapro_items(entries, told, None, 0, 0))
        return contrapro.contrapro_text_items(path, context, items)
    if entries is None:
        raise DataError(
            f"{path}: which lines are one item is told by {path.stem}.json, which is not beside it or a folder above; "
            "give it as records"
        )
    return voita.voita_text_items(path, context, entries, told)


def _records_path(path: Path, format: str) -> Path | None:
    """The JSON that belongs to a text file, if it is there."""
    pattern = {"contrapro": contrapro.TEXT, "bawden": bawden.TEXT}.get(format)
    name = pattern.fullmatch(path.name)[1] if pattern else path.stem
    names = (name, name.replace("_", "-"))  # lexical_choice is text, lexical-choice JSON
    places = [folder / f"{one}.json" for folder in (path.parent, path.parent / "..") for one in names]
    return next((place for place in places if place.is_file()), None)


def _contrapro_items(entries: list[dict], path, documents: str | Path | None, context: int, future_context: int):
    if documents is None and not context and not future_context:
        return contrapro.contrapro_items(entries, path, lambda *segment: Surroundings(), (None, None))
    source = Path(path).with_name("documents.jsonl") if documents is None else Path(documents)
    texts = SuiteDocuments(source, path, context, future_context)
    return contrapro.contrapro_items(entries, path, texts.around, texts.languages)


def _entries(path: str | Path) -> list | dict:
    return parse_json("\n".join(line for _, line in read_lines(path)), path)


def _json_format(entries: object, path: str | Path) -> str:
    if isinstance(entries, dict):
        return "bawden"
    first = entries[0] if isinstance(entries, list) and entries else None
    keys = sorted(first) if isinstance(first, dict) else []
    for name, key in (("contrapro", "src segment"), ("voita", "dst")):
        if key in keys:
            return name
    if keys:
        raise DataError(f"{path}: neither ContraPro ('src segment') nor Voita ('dst') items, got keys {keys}")
    return "contrapro"  # whose check says what is wrong


def _check_entries(entries: object, format: str, path: str | Path) -> None:
    kind, what, name = (dict, "object of blocks", "block") if format == "bawden" else (list, "list of items", "item")
    if not isinstance(entries, kind) or not entries:
        raise DataError(f"{path}: a suite is a JSON {what}, at least one, got {type(entries).__name__}")
    for number, entry in entries.items() if isinstance(entries, dict) else enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise DataError(f"{path}, {name} {number}: expected an object, got {type(entry).__name__}")
