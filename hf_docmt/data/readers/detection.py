"""Which format files have, by the arguments given, the file's name and its first bytes."""

import re
import sys
from pathlib import Path

from ..documents import DataError
from .files import STDIN, open_bytes, read_lines, shown

HEAD = 4096
JSON_ROW = re.compile(rb'\s*\{\s*"(doc_id|id|translation|source|target|source_lang|target_lang)"\s*:')
JSON_OBJECT = re.compile(rb'\s*\{\s*("|$)')


def detect_format(files: dict) -> str:
    """The name of the format; DataError where nothing tells it.

    With an index: dialogue. Two files, or `source`: dtag if the first line is `<d>`, voita if it has `_eos`, blank if
    there are blank lines. One `path`: tsv and jsonl by the ending, .json is jsonl or chat by its first key, anything
    else is jsonl if it begins like a JSON object and plain lines if not, but DataError if the first line looks like
    dtag or voita. Raw text must be named (`format="text"`).
    """
    if "index" in files:
        return "dialogue"
    if "source" in files:
        return _parallel_format(files["source"])
    path = files.get("path")
    if path is None:
        raise DataError(f"no input file, got {sorted(files)}; give path=, or source= and target=")
    return _single_format(path) if isinstance(path, str | Path) else "lines"


def _single_format(path: str | Path) -> str:
    ending = Path(str(path).removesuffix(".gz")).suffix
    if ending in (".tsv", ".jsonl", ".ndjson"):
        return "tsv" if ending == ".tsv" else "jsonl"
    head = _head(path).removeprefix(b"\xef\xbb\xbf")
    if ending == ".json":
        return "jsonl" if JSON_ROW.match(head) else "chat"
    first_line = head.split(b"\n")[0].split()
    for mark, format in ((b"<d>", "dtag"), (b"_eos", "voita")):
        if mark in first_line:
            raise DataError(
                f"{shown(path)}: the first line has {mark.decode()!r}; name the format {format!r}, with the file as "
                "source, or 'lines' if every line is a sentence"
            )
    return "jsonl" if JSON_OBJECT.match(head) else "lines"


def _head(path: str | Path) -> bytes:
    if str(path) == STDIN:
        return sys.stdin.buffer.peek(HEAD)[:HEAD]
    with open_bytes(path) as file:
        return file.read(HEAD)


def _parallel_format(path: str | Path) -> str:
    if str(path) == STDIN:
        raise DataError("the format of standard input as source cannot be told; name it (dtag, blank or voita)")
    for number, line in read_lines(path):
        if number == 1 and line.strip() == "<d>":
            return "dtag"
        if number == 1 and "_eos" in line.split():
            return "voita"
        if not line.strip():
            return "blank"
    raise DataError(
        f"{shown(path)}: the format cannot be told (no <d>, no _eos, no blank line between documents); name it, "
        "format='blank' if each file is one document"
    )
