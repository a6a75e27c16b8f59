"""The documents that the context of a ContraPro suite is taken from."""

from pathlib import Path
from typing import NamedTuple

from hf_docmt.data.documents import sentences
from hf_docmt.data.readers import read_documents
from hf_docmt.evaluation.suites.items import same_text
from hf_docmt.files import DataError, parse_json, read_lines


class Surroundings(NamedTuple):
    """The sentences before a current one, oldest first, and those after it, nearest first, with their translations."""

    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    source_after: tuple[str, ...] = ()
    target_after: tuple[str, ...] = ()


class SuiteDocuments:
    """Documents in JSON lines, source language first in every pair, of which a suite's segments are part.

    `past` and `future`: the most sentences before and after a segment that are asked for. `first`: the number of a
    document's first segment.
    """

    def __init__(self, path: Path, suite: str | Path, past: int, future: int, first: int = 1):
        if not path.is_file():
            raise DataError(
                f"{suite}: its documents are needed, but {path} is not there; give the documents (JSON lines) that the "
                "suite was made from, or context=0 and no documents"
            )
        self.path, self.past, self.future, self.first = path, past, future, first
        self.languages = _languages(path)
        source_lang, target_lang = self.languages
        rows = read_documents("jsonl", source_lang=source_lang, target_lang=target_lang, path=path)
        self.sides = {row["doc_id"]: tuple(sentences(row, lang) for lang in self.languages) for row in rows}

    def around(self, doc_id: str, segment: int, current: str, where: str) -> Surroundings:
        """Sentences around a segment, which must hold the text `current`."""
        found = self.sides.get(doc_id) or self.sides.get(doc_id.removesuffix(f".{self.languages[1]}"))
        if found is None:
            raise DataError(f"{where}: document {doc_id!r} is not in {self.path}; give the suite's own documents")
        source, target = found
        index, last = segment - self.first, self.first + len(source) - 1
        if not 0 <= index < len(source):
            raise DataError(
                f"{where}: no segment {segment} in document {doc_id!r}, which has {self.first} to {last} in {self.path}"
            )
        if not same_text(source[index], current):
            raise DataError(
                f"{where}: 'src segment' is {current!r}, but segment {segment} of document {doc_id!r} is "
                f"{source[index]!r} in {self.path}; give the suite's own documents, source language first"
            )
        before = slice(max(0, index - self.past), index)
        after = slice(index + 1, index + 1 + self.future)
        return Surroundings(*(tuple(side[part]) for part in (before, after) for side in (source, target)))


def _languages(path: Path) -> tuple[str, str]:
    """Source and target language of the first document: those of its first pair, in the order written."""
    number, line = next(read_lines(path))
    row = parse_json(line, path, number)
    pairs = row.get("translation") if isinstance(row, dict) else None
    if isinstance(pairs, list) and pairs and isinstance(pairs[0], dict) and len(pairs[0]) == 2:
        source_lang, target_lang = pairs[0]
        return source_lang, target_lang
    raise DataError(f"{path}, line {number}: a suite's documents need 'translation', a list of pairs in two languages")
