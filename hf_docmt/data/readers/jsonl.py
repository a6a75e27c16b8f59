"""JSON lines, one document a line."""

import re
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.readers.parallel_files import numbered_id
from hf_docmt.data.readers.reader import Evidence, Reader, Sample
from hf_docmt.data.readers.row_layouts import DOCHPLT_KEYS, KEYS, RowReader
from hf_docmt.files import DataError, location_of, parse_json, read_lines

FIRST_KEY = re.compile(rb'\s*\{\s*"(' + "|".join((*KEYS, "text", *DOCHPLT_KEYS)).encode() + rb')"\s*:')
FIRST_BRACE = re.compile(rb'\s*\{\s*("|$)')


class JsonlReader(Reader):
    """One JSON object a line: `{"doc_id" or "id", "translation": [{"en": ..., "de": ...}, ...]}`.

    In place of `translation` there may be the lists `source` and `target`, the columns of DocHPLT, or running `text`
    (see `RowReader`). A document without `doc_id` and `id` is called by the file's name and its line, `corpus-00012`.
    Other keys are kept as columns, sentences as they are. A blank line is an error, as it may be a lost document.
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
        rows = RowReader(languages)
        for number, line in read_lines(path):
            location = location_of(path, number)
            if not line.strip():
                raise DataError(f"{location}: blank line; every line holds one document, remove it")
            row = parse_json(line, path, number)
            if not isinstance(row, dict):
                raise DataError(
                    f"{location}: a JSON object is needed, got {type(row).__name__}; write one document a line"
                )
            yield location, rows.contract_row(location, row, numbered_id(path, number))
