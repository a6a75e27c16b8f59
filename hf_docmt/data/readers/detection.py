"""Which format files have, by the arguments given, the file's name and its first bytes."""

import re
import sys
from pathlib import Path

from hf_docmt.data.readers.commentary import PAIR
from hf_docmt.files import BOM, STDIN, DataError, open_bytes, read_lines, shown

HEAD = 4096
JSON_ROW = re.compile(rb'\s*\{\s*"(doc_id|id|translation|source|target|source_lang|target_lang)"\s*:')
JSON_OBJECT = re.compile(rb'\s*\{\s*("|$)')
PROLOGUE = rb"\s*(<\?xml[^>]*>\s*)?(<!DOCTYPE[^>]*>\s*)?(<!--.*?-->\s*)?"
WMT = re.compile(PROLOGUE + rb"<dataset\b", re.IGNORECASE | re.DOTALL)
SETS = re.compile(PROLOGUE + rb"<(mteval|srcset|refset|tstset)\b", re.IGNORECASE | re.DOTALL)
TALKS = re.compile(rb"\s*(<doc docid[^>\n]*>|<url>[^\n]*</url>)\s*(\n|$)", re.IGNORECASE)


def detect_format(files: dict) -> str:
    """The name of the format; DataError where nothing tells it.

    With an index: dialogue; with ids: moses. Two files, or `source`: sgm or iwslt by the first tag (iwslt if there are
    several), dtag if the first line is `<d>`, voita if it has `_eos`, blank if there are blank lines. One `path`: jsonl
    and tsv by the ending (commentary if a .tsv of two columns has both languages in its name), wmt by its first tag,
    .json is jsonl or chat by its first key, anything else is jsonl if it begins like a JSON object and plain lines if
    not, but DataError if it begins like one side of a pair. Raw text must be named (`format="text"`).
    """
    if "index" in files:
        return "dialogue"
    if "ids" in files:
        return "moses"
    if "source" in files:
        source = files["source"]
        return _parallel_format(source) if isinstance(source, str | Path) else "iwslt"
    path = files.get("path")
    if path is None:
        raise DataError(f"no input file, got {sorted(files)}; give path=, or source= and target=")
    return _single_format(path) if isinstance(path, str | Path) else "lines"


def _single_format(path: str | Path) -> str:
    ending = Path(str(path).removesuffix(".gz")).suffix
    if ending in (".tsv", ".jsonl", ".ndjson"):
        return _table_format(path) if ending == ".tsv" else "jsonl"
    head = _head(path)
    if ending == ".json":
        return "jsonl" if JSON_ROW.match(head) else "chat"
    if WMT.match(head):
        return "wmt"
    first_line = head.split(b"\n")[0].split()
    sided, mark = _tag_format(path, head), "a tag of a set of documents"
    for word, format in ((b"<d>", "dtag"), (b"_eos", "voita")):
        if word in first_line:
            sided, mark = format, repr(word.decode())
    if sided:
        raise DataError(
            f"{shown(path)}: the first line has {mark}; name the format {sided!r}, with the file as source, or 'lines' "
            "if every line is a sentence"
        )
    return "jsonl" if JSON_OBJECT.match(head) else "lines"


def _head(path: str | Path) -> bytes:
    if str(path) == STDIN:
        return sys.stdin.buffer.peek(HEAD)[:HEAD].removeprefix(BOM)
    with open_bytes(path) as file:
        return file.read(HEAD).removeprefix(BOM)


def _table_format(path: str | Path) -> str:
    columns = _head(path).split(b"\n")[0].count(b"\t") + 1
    return "commentary" if columns == 2 and PAIR.search(Path(path).name) else "tsv"


def _tag_format(path: str | Path, head: bytes) -> str | None:
    """`sgm` or `iwslt` by the first tag and, for the sets of both, by the ending."""
    is_xml = str(path).removesuffix(".gz").endswith(".xml")
    if SETS.match(head):
        return "iwslt" if is_xml else "sgm"
    return "iwslt" if TALKS.match(head) else None


def _parallel_format(path: str | Path) -> str:
    if str(path) == STDIN:
        raise DataError(
            "the format of standard input as source cannot be told; name it (dtag, blank, sgm, iwslt or voita)"
        )
    tagged = _tag_format(path, _head(path))
    if tagged:
        return tagged
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
