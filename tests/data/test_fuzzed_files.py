"""Damaged files of every format: read, or refused by name with a `DataError`, and never slowly."""

import os
import random
import time
import traceback
import warnings

import pytest
from support.fuzzed_files import VALID, damaged, packed

from hf_docmt.data.readers import detect_format, iterate_documents, readers
from hf_docmt.files import DataError

FILES = int(os.environ.get("DOCMT_FUZZED_FILES", "460"))
ONE_SIDE = ("lines", "text", "subtitles", "jsonl text")


def test_valid_files_are_read(tmp_path):
    """All readers of files are there, and the files that are damaged are valid."""
    assert {format for format, _ in VALID.values()} | {"datasets"} == set(readers())
    for case, (format, contents) in VALID.items():
        files = _written(tmp_path, {name: (end, text) for name, (end, text) in contents.items()})
        assert list(_rows(case, format, files)), case


@pytest.mark.parametrize("case", VALID)
def test_damaged_files(case, tmp_path):
    format, contents = VALID[case]
    slowest, others = (0.0, 0), []
    for seed in range(FILES // len(VALID)):
        draw = random.Random(f"{case} {seed}")
        victim = draw.choice(list(contents))
        new = {name: (end, text) for name, (end, text) in contents.items()}
        end, text = new[victim]
        data = damaged(text, draw)
        new[victim] = (end + ".gz", packed(data, draw)) if draw.random() < 0.125 else (end, data)
        files = _written(tmp_path, new)
        start = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = list(_rows(case, "auto" if draw.random() < 0.1 else format, files))
            assert all(row["translation"] for row in rows)
        except DataError as error:
            if not any(str(path) in str(error) for path in files.values()):
                others.append((seed, f"no file is named: {error}"))
        except Exception:
            others.append((seed, traceback.format_exc(limit=-3)))
        slowest = max(slowest, (time.process_time() - start, seed))
    assert not others, f"{len(others)} others, the first with seed {others[0][0]}: {others[0][1]}"
    assert slowest[0] < 5, slowest  # under a second on an idle machine


def _written(folder, contents):
    files = {}
    for name, (end, content) in contents.items():
        path = folder / f"file-{name}{end}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        files[name] = path
    return files


def _rows(case, format, files):
    one_side = format == "auto" or case.partition(" ")[0] in ONE_SIDE or case in ONE_SIDE
    files = {name: path for name, path in files.items() if not (one_side and name == "target")}
    if format == "auto":
        format = detect_format(files)
    return iterate_documents(format, source_lang="en", target_lang=None if one_side else "de", **files)
