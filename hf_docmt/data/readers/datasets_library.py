"""Data sets of the `datasets` library, one document a row: folders of `save_to_disk`, and names on the Hub."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import datasets
import pyarrow as pa

from hf_docmt.data.readers.reader import Evidence, Reader, Sample
from hf_docmt.data.readers.row_layouts import RowReader
from hf_docmt.files import DataError, check_hub_name
from hf_docmt.messages import first_line

FOLDER_FILES = ("state.json", "dataset_dict.json")


class DatasetsReader(Reader):
    """Rows with the keys of JSON lines (see `jsonl`), from a folder or, read as a stream, from the Hub.

    A folder of several splits needs `split`, and so does a name on the Hub, which may also need `config`, the name of
    one of its configurations. Rows of a folder stay on disk (memory-mapped).
    """

    name = "datasets"

    def recognize(self, sample: Sample) -> Evidence:
        if sample.argument != "path" or sample.path is None or sample.is_stdin:
            return Evidence.NONE
        found = any((Path(sample.path) / name).is_file() for name in FOLDER_FILES)
        return Evidence.NAME_AND_BYTES if found else Evidence.NONE

    def read(
        self, languages: list[str], path: str | Path, split: str | None = None, config: str | None = None
    ) -> Iterator[tuple[str, dict]]:
        reader, stem, number = RowReader(languages), Path(path).name, 0
        found = _hub_rows(str(path), split, config) if not Path(path).exists() else _folder_rows(path, split, config)
        try:
            for number, row in enumerate(found, 1):
                location = f"{path}, row {number}"
                row = {name: value for name, value in row.items() if value is not None}
                yield location, reader.contract_row(location, row, f"{stem}-{number:05d}")
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise DataError(f"{path}, after row {number}: rows that cannot be read ({first_line(error)})") from error


def _hub_rows(path: str, split: str | None, config: str | None) -> Iterable[dict]:
    check_hub_name(path, "data set")
    if split is None:
        raise DataError(f"{path}: a data set on the Hub needs the name of a split; give split=, such as 'train'")
    try:
        return datasets.load_dataset(path, config, split=split, streaming=True)
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
    try:
        found = datasets.load_from_disk(str(path))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise DataError(
            f"{path}: no data set that can be read ({first_line(error)}); give a folder that save_to_disk wrote"
        ) from error
    if isinstance(found, datasets.Dataset):
        if split is not None:
            raise DataError(f"{path} has no splits, got split {split!r}; leave it out")
        return found
    if split not in found:
        raise DataError(f"{path} has the splits {', '.join(found)}, got {split!r}; choose one of them with split=")
    return found[split]
