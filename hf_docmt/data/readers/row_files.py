"""One document a row: JSON lines, Parquet, and data sets of the `datasets` library."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from hf_docmt.data.readers.reader import Evidence, Reader, Sample, numbered_id
from hf_docmt.data.readers.row_layouts import DOCHPLT_KEYS, KEYS, RowReader
from hf_docmt.files import STDIN, DataError, check_file, check_hub_name, file_stem, location_of, parse_json, read_lines
from hf_docmt.messages import first_line

FIRST_KEY = re.compile(rb'\s*\{\s*"(' + "|".join((*KEYS, "text", *DOCHPLT_KEYS)).encode() + rb')"\s*:')
FIRST_BRACE = re.compile(rb'\s*\{\s*("|$)')
PARQUET_ROWS_AT_ONCE = 64
DATASETS_FILES = ("state.json", "dataset_dict.json")


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
        for location, number, row in json_rows(path):
            yield location, rows.contract_row(location, row, numbered_id(path, number))


class ParquetReader(Reader):
    """The columns are the keys of a row of JSON lines (see `jsonl`), such as `doc_id` and `translation`.

    Rows are read a few at a time, and one row group is in memory. Standard input cannot be read, as the file's index
    is at its end. A document without an id is called by the file's name and the number of its row, from 1.
    """

    name = "parquet"
    endings = (".parquet",)
    first_bytes = re.compile(b"PAR1")

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        if str(path) == STDIN:
            raise DataError("Parquet cannot be read from standard input; give the file")
        if check_file(path).stat().st_size == 0:
            raise DataError(f"{path}: the file is empty; it needs at least one row")
        return _contract_rows(path, _parquet_rows(path), languages, file_stem(path), "broken Parquet")


class DatasetsReader(Reader):
    """Rows with the keys of JSON lines (see `jsonl`), from a folder or, read as a stream, from the Hub.

    A folder of several splits needs `split`, and so does a name on the Hub, which may also need `config`, the name of
    one of its configurations. Rows of a folder stay on disk (memory-mapped).
    """

    name = "datasets"

    def recognize(self, sample: Sample) -> Evidence:
        if sample.argument != "path" or sample.path is None or sample.is_stdin:
            return Evidence.NONE
        is_folder = any((Path(sample.path) / name).is_file() for name in DATASETS_FILES)
        return Evidence.NAME_AND_BYTES if is_folder else Evidence.NONE

    def read(
        self, languages: list[str], path: str | Path, split: str | None = None, config: str | None = None
    ) -> Iterator[tuple[str, dict]]:
        rows = _folder_rows(path, split, config) if Path(path).exists() else _hub_rows(str(path), split, config)
        return _contract_rows(path, rows, languages, Path(path).name, "rows that cannot be read")


def json_rows(path: str | Path) -> Iterator[tuple[str, int, dict]]:
    """Location, line number and object of every line; DataError for blank lines and other values."""
    for number, line in read_lines(path):
        location = location_of(path, number)
        if not line.strip():
            raise DataError(f"{location}: blank line; every line holds one document, remove it")
        row = parse_json(line, path, number)
        if not isinstance(row, dict):
            raise DataError(f"{location}: a JSON object is needed, got {type(row).__name__}; write one document a line")
        yield location, number, row


def _contract_rows(
    path: str | Path, rows: Iterable[dict], languages: list[str], name: str, problem: str
) -> Iterator[tuple[str, dict]]:
    """Rows of the contract. `name` begins ids, `problem` errors. Columns without a value are left out, as in JSON."""
    import pyarrow as pa

    reader, number = RowReader(languages), 0
    try:
        for number, row in enumerate(rows, 1):
            location = f"{path}, row {number}"
            row = {column: value for column, value in row.items() if value is not None}
            yield location, reader.contract_row(location, row, f"{name}-{number:05d}")
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise DataError(
            f"{path}, after row {number}: {problem} ({first_line(error)}); write or fetch it again"
        ) from error


def _parquet_rows(path: str | Path) -> Iterator[dict]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=PARQUET_ROWS_AT_ONCE):
            yield from batch.to_pylist()


def _hub_rows(path: str, split: str | None, config: str | None) -> Iterable[dict]:
    check_hub_name(path, "data set")
    if split is None:
        raise DataError(f"{path}: a data set on the Hub needs the name of a split; give split=, such as 'train'")
    from datasets import load_dataset

    try:
        return load_dataset(path, config, split=split, streaming=True)
    except (OSError, ValueError, RuntimeError) as error:  # no network, no such name, configuration or split
        raise DataError(
            f"{path} is no folder here, and the Hub does not give it as a data set ({first_line(error)}); check the "
            "name, or load it where there is a network and save it by save_to_disk"
        ) from error


def _folder_rows(path: str | Path, split: str | None, config: str | None) -> Iterable[dict]:
    if config is not None:
        raise DataError(
            f"{path} is a folder, and only data sets on the Hub have a config, got {config!r}; leave it out"
        )
    import pyarrow as pa
    from datasets import Dataset, load_from_disk

    try:
        loaded = load_from_disk(str(path))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise DataError(
            f"{path}: no data set that can be read ({first_line(error)}); give a folder that save_to_disk wrote"
        ) from error
    if isinstance(loaded, Dataset):
        if split is not None:
            raise DataError(f"{path} has no splits, got split {split!r}; leave it out")
        return loaded
    if split not in loaded:
        raise DataError(f"{path} has the splits {', '.join(loaded)}, got {split!r}; choose one of them with split=")
    return loaded[split]
