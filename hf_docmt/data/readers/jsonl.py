"""JSON lines, one document a line."""

import re
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.evidence import Evidence, Sample
from hf_docmt.data.readers.reader import Reader
from hf_docmt.files import DataError, location_of, parse_json, read_lines

SIDES = ("source", "target")
KEYS = ("doc_id", "id", "translation", "source", "target", "source_lang", "target_lang")
FIRST_KEY = re.compile(rb'\s*\{\s*"(' + "|".join(KEYS).encode() + rb')"\s*:')
FIRST_BRACE = re.compile(rb'\s*\{\s*("|$)')


class JsonlReader(Reader):
    """One JSON object a line: `{"doc_id" or "id", "translation": [{"en": ..., "de": ...}, ...]}`.

    In place of `translation` there may be the lists `source` and `target`. `source_lang` and `target_lang` in a row say
    which side is which; without them `source` is in the first language asked for. Other keys are kept as columns.
    Sentences are kept as they are. A blank line is an error, as it may be a lost document.
    """

    name = "jsonl"

    def recognize(self, sample: Sample) -> Evidence:
        if sample.argument != "path":
            return Evidence.NONE
        if sample.ending in (".jsonl", ".ndjson"):
            return Evidence.NAME
        if sample.ending == ".json":
            return Evidence.NAME_AND_BYTES if FIRST_KEY.match(sample.head) else Evidence.NONE
        return Evidence.GUESS if FIRST_BRACE.match(sample.head) else Evidence.NONE

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        for number, line in read_lines(path):
            location = location_of(path, number)
            if not line.strip():
                raise DataError(f"{location}: blank line; every line holds one document, remove it")
            row = parse_json(line, path, number)
            if not isinstance(row, dict):
                raise DataError(
                    f"{location}: a JSON object is needed, got {type(row).__name__}; write one document a line"
                )
            yield location, _row(location, row, languages)


def _row(location: str, row: dict, languages: list[str]) -> dict:
    doc_id = row.get("doc_id", row.get("id"))
    columns = {key: value for key, value in row.items() if key not in KEYS}
    if "translation" in row:
        return {"doc_id": doc_id, "translation": row["translation"], **columns}
    if "source" not in row:
        raise DataError(f"{location}: neither 'translation' nor 'source' is there, got {sorted(row)}; add one of them")
    sides = {lang: _side(location, row, name) for name, lang in _side_languages(row, languages).items() if name in row}
    for lang in languages:
        if lang not in sides:
            raise DataError(
                f"{location}: document {doc_id!r} has no sentences in {lang!r}, it has {sorted(sides)}; correct the "
                "language, or leave out the target language to read the source side only"
            )
    return make_row(  # type: ignore[call-arg]  # mypy does not count starred arguments
        location, doc_id, *(sides[lang] for lang in languages), *[None] * (2 - len(languages)), languages, **columns
    )


def _side_languages(row: dict, languages: list[str]) -> dict[str, str]:
    """Which language stands in `source` and which in `target`."""
    if "source_lang" not in row and "target_lang" not in row:
        return dict(zip(SIDES, languages))
    named = {name: row.get(f"{name}_lang") for name in SIDES}
    for name, lang in zip(SIDES, languages):
        if not named[name] and lang not in named.values():
            named[name] = lang
    return {name: lang for name, lang in named.items() if lang}


def _side(location: str, row: dict, name: str) -> list[str]:
    side = row[name]
    if not isinstance(side, list) or not all(isinstance(sentence, str) for sentence in side):
        raise DataError(f"{location}: {name!r} must be a list of sentences (strings); an empty sentence is ''")
    return side
