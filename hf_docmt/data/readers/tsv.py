"""Tab-separated sentence pairs: with ids, blank lines between documents (News Commentary), or as ParaDocs has them."""

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.language_codes import other_spellings
from hf_docmt.data.readers.reader import Evidence, Reader, Sample, numbered_id, rows_of_lines
from hf_docmt.files import DataError, display_path, location_of, read_lines
from hf_docmt.messages import closest_hint

COLUMNS = ("doc_id", "source", "target")
LANGUAGES_IN_NAME = re.compile(r"\.([a-z]{2,3})-([a-z]{2,3})\.")


class TsvReader(Reader):
    """The lines of a document are adjacent. No quoting: a tab always ends a cell, cells are not changed.

    A first line that begins with `doc_id` (or `id`), or has all names or `source` and `target`, is a header; it names
    the columns, in any order; others are ignored. Without one the columns are doc_id, source, target; the target
    may be absent if only the source is requested.
    """

    name = "tsv"
    endings = (".tsv",)

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        return rows_of_lines(_lines_with_ids(path, COLUMNS[: 1 + len(languages)]), languages)


class CommentaryReader(Reader):
    """The columns are in the languages that the file's name gives, as `news-commentary-v14.de-en.tsv.gz`.

    Without that the first column is the source. Lines without text, one or more, end a document, so the format cannot
    hold a pair of empty sentences; a sentence that is empty on one side stays. Cells are not changed.
    """

    name = "commentary"

    def recognize(self, sample: Sample) -> Evidence:
        is_tsv = sample.argument == "path" and sample.ending == ".tsv"
        is_named = is_tsv and LANGUAGES_IN_NAME.search(Path(sample.path).name)
        return Evidence.NAME_AND_BYTES if is_named and sample.first_line.count("\t") == 1 else Evidence.NONE

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        return rows_of_lines(_lines_with_blanks(path, _columns_of_languages(path, languages)), languages)


def _lines_with_ids(path: str | Path, needed: tuple[str, ...]) -> Iterator[tuple[str, str, list[str]]]:
    indices, columns, doc_id = None, 0, ""
    for number, line in read_lines(path):
        location, cells = location_of(path, number), line.split("\t")
        if indices is None:
            indices, columns, is_header = _named_columns(location, cells, needed)
            if is_header:
                continue
        if len(cells) != columns:
            raise DataError(f"{location}: {len(cells)} columns, expected {columns} between tabs: {', '.join(needed)}")
        doc_id, *sentences = [cells[index] for index in indices]
        doc_id = doc_id.strip()
        if not doc_id:
            raise DataError(f"{location}: document id is missing; every line needs one")
        yield location, doc_id, sentences
    if not doc_id:
        raise DataError(f"{display_path(path)}: a header and no sentences; add lines of {', '.join(needed)}")


def _named_columns(location: str, cells: list[str], needed: tuple[str, ...]) -> tuple[list[int], int, bool]:
    """The places of the needed columns, the number of columns, and whether this first line is a header."""
    names = [cell.strip().lower() for cell in cells]
    names = ["doc_id" if name == "id" else name for name in names]
    if names[0] != "doc_id" and not set(needed) <= set(names) and not {"source", "target"} <= set(names):
        columns = min(max(len(cells), len(needed)), len(COLUMNS))
        return list(range(len(needed))), columns, False
    for name in needed:
        if name not in names:
            hint = closest_hint(name, names, " (is {!r} meant?)")
            raise DataError(f"{location}: the header {names} has no column {name!r}{hint}; name it so")
    return [names.index(name) for name in needed], len(cells), True


def _lines_with_blanks(path: str | Path, columns: list[int]) -> Iterator[tuple[str, str, list[str]]]:
    documents, goes_on = 0, False
    for number, line in read_lines(path):
        cells = line.split("\t")
        if line.strip():
            if len(cells) != 2:
                raise DataError(
                    f"{location_of(path, number)}: {len(cells)} columns, expected 2; one tab separates the two "
                    "languages, take other tabs out"
                )
            documents += not goes_on
            yield location_of(path, number), numbered_id(path, documents), [cells[column] for column in columns]
        goes_on = bool(line.strip())
    if not documents:
        raise DataError(f"{display_path(path)}: blank lines only; add lines of two sentences separated by a tab")


def _columns_of_languages(path: str | Path, languages: list[str]) -> list[int]:
    named = LANGUAGES_IN_NAME.search(Path(path).name)
    if named is None:
        return list(range(len(languages)))
    others = other_spellings(named.groups(), languages)
    columns = [others.get(lang, lang) for lang in named.groups()]
    for lang in languages:
        if lang not in columns:
            raise DataError(
                f"{display_path(path)}: the columns are {named[1]!r} and {named[2]!r} by the file's name, not {lang!r}"
                "; correct the language or the name"
            )
    return [columns.index(lang) for lang in languages]


PARADOCS = (
    "src tgt similarity_one similarity_two collection src_paragraph_id tgt_paragraph_id src_sentence_id "
    "tgt_sentence_id src_start_index src_end_index tgt_start_index tgt_end_index src_language_id tgt_language_id "
    "frequency src_docid tgt_docid"
).split()
INDICES = [name for name in PARADOCS if name.endswith("_index")]
POSITIONS = [name for name in PARADOCS if name.endswith(("paragraph_id", "sentence_id", "_index"))]
NONE = "None"  # of a sentence that was not found in its document
MAX_GAP = 2  # characters between sentences that follow each other
MAX_FREQUENCY, MIN_LANGUAGE, MIN_SENTENCES = 100, 0.5, 2  # the released script's own


class ParadocsReader(Reader):
    """The released files: 18 columns without a header, sentence pairs in the order of their documents.

    A document is a run of pairs of the same two documents that follow each other on both sides (at most 2 characters
    apart). It ends at a pair whose place is not known, that has an empty side, was seen more than 100 times in the
    corpus, or is of another language (probability below 0.5); such pairs are dropped, as are documents of one pair: the
    settings of the authors' script (which by mistake checks the gap of the source only). In the script's output,
    which has a column of document ids in front of these, documents are the lines of one id, and every line is read.
    The source is the first sentence of a line, as in the files' names.
    """

    name = "paradocs"

    def recognize(self, sample: Sample) -> Evidence:
        cells = sample.first_line.split("\t") if sample.argument == "path" else []
        is_paradocs = len(cells) in (len(PARADOCS), len(PARADOCS) + 1) and cells[-3].isdecimal()
        return Evidence.NAME_AND_BYTES if is_paradocs else Evidence.NONE

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        has_documents = False
        for (doc_id, is_whole), document in groupby(_kept_lines(path), key=itemgetter(0, 1)):
            lines = [(location, cells) for _, _, location, cells in document]
            if not is_whole and len(lines) < MIN_SENTENCES:
                continue
            has_documents = True
            source, target = ([cells[name] for _, cells in lines] for name in ("src", "tgt"))
            location, first = lines[0]
            columns = {name: first[name] for name in ("src_docid", "tgt_docid")}
            yield location, make_row(location, doc_id, source, target, languages, **columns)
        if not has_documents:
            raise DataError(f"{display_path(path)}: no two sentence pairs follow each other; is it of another format?")


def _kept_lines(path: str | Path) -> Iterator[tuple[str, bool, str, dict[str, str]]]:
    """Document id, whether it is of the file, location and cells of each line of a document.

    Where the file has no ids, they are the number of the document and that of its part.
    """
    with_ids = None
    before: dict[str, str] | None = None  # the line before, where its document may go on
    pair, number, part = None, 0, 0
    for location, own_id, cells in _paradocs_lines(path):
        with_ids = own_id is not None if with_ids is None else with_ids
        if (own_id is not None) != with_ids:
            raise DataError(f"{location}: lines with and without document ids in one file; use one kind")
        if own_id is not None:
            yield own_id, True, location, cells
            continue
        is_kept = _is_kept(location, cells)
        new_pair = (cells["src_docid"], cells["tgt_docid"])
        if before and not (is_kept and new_pair == pair and _follows(before, cells)):
            before, part = None, part + 1
        if new_pair != pair:
            pair, number, part = new_pair, number + 1, 0
        if is_kept:
            before = cells
            yield f"{number:06}+{part:03}", False, location, cells


def _paradocs_lines(path: str | Path) -> Iterator[tuple[str, str | None, dict[str, str]]]:
    """Location, document id, where the line has one, and the cells by name."""
    for number, line in read_lines(path):
        location, cells = location_of(path, number), line.split("\t")
        own_id = cells.pop(0) if len(cells) == len(PARADOCS) + 1 else None
        if len(cells) != len(PARADOCS):
            raise DataError(f"{location}: {len(cells)} columns, expected {len(PARADOCS)}, or one more with ids")
        yield location, own_id, dict(zip(PARADOCS, cells))


def _is_kept(location: str, cells: dict[str, str]) -> bool:
    if NONE in [cells[name] for name in POSITIONS]:
        return False
    try:
        frequency, *_ = [int(cells[name]) for name in ("frequency", *INDICES)]
        shares = [float(cells[name]) for name in ("src_language_id", "tgt_language_id")]
    except ValueError as error:
        raise DataError(f"{location}: {error}; frequency and indices are numbers, languages probabilities") from error
    return frequency <= MAX_FREQUENCY and min(shares) >= MIN_LANGUAGE and all(cells[s].strip() for s in ("src", "tgt"))


def _follows(before: dict[str, str], cells: dict[str, str]) -> bool:
    """Whether a pair comes next to the last one, on both sides."""
    return all(int(cells[f"{s}_start_index"]) - int(before[f"{s}_end_index"]) <= MAX_GAP for s in ("src", "tgt"))
