"""Parquet files, one document a row."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hf_docmt.data.readers.parallel_files import numbered_id
from hf_docmt.data.readers.reader import Evidence, Reader, Sample
from hf_docmt.data.readers.row_layouts import RowReader
from hf_docmt.files import STDIN, DataError, check_file
from hf_docmt.messages import first_line

MAGIC = b"PAR1"
ROWS_AT_ONCE = 64


class ParquetReader(Reader):
    """The columns are the keys of a row of JSON lines (see `jsonl`), such as `doc_id` and `translation`.

    Rows are read a few at a time, and one row group is in memory. Standard input cannot be read, as the file's index
    is at its end. A document without an id is called by the file's name and the number of its row, from 1.
    """

    name = "parquet"

    def recognize(self, sample: Sample) -> Evidence:
        if sample.argument != "path" or not (sample.ending == ".parquet" or sample.head.startswith(MAGIC)):
            return Evidence.NONE
        return Evidence.NAME if sample.ending == ".parquet" else Evidence.FIRST_BYTES

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        if str(path) == STDIN:
            raise DataError("Parquet cannot be read from standard input; give the file")
        if check_file(path).stat().st_size == 0:
            raise DataError(f"{path}: the file is empty; it needs at least one row")
        rows, number = RowReader(languages), 0
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
                    for row in batch.to_pylist():
                        number += 1
                        location = f"{path}, row {number}"
                        yield location, rows.contract_row(location, _without_nulls(row), numbered_id(path, number))
        except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
            raise DataError(
                f"{path}, after row {number}: broken Parquet ({first_line(error)}); write it or fetch it again"
            ) from error


def _without_nulls(row: dict) -> dict:
    """The row without columns that have no value in it, as a key of JSON lines is left out."""
    return {name: value for name, value in row.items() if value is not None}
