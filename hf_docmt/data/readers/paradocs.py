"""Tab-separated sentence pairs with document annotations, as ParaDocs has them (Wicks et al. 2024)."""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.reader import Evidence, Reader, Sample
from hf_docmt.files import DataError, display_path, location_of, read_lines

COLUMNS = (
    "src tgt similarity_one similarity_two collection src_paragraph_id tgt_paragraph_id src_sentence_id "
    "tgt_sentence_id src_start_index src_end_index tgt_start_index tgt_end_index src_language_id tgt_language_id "
    "frequency src_docid tgt_docid"
).split()
INDICES = [name for name in COLUMNS if name.endswith("_index")]
POSITIONS = [name for name in COLUMNS if name.endswith(("paragraph_id", "sentence_id", "_index"))]
NONE = "None"  # of a sentence that was not found in its document
MAX_GAP = 2  # characters between sentences that follow each other
MAX_FREQUENCY, MIN_LANGUAGE, MIN_SENTENCES = 100, 0.5, 2  # the released script's own


class ParadocsReader(Reader):
    """The released files: 18 columns without a header, sentence pairs in the order of their documents.

    A document is a run of pairs of the same two documents that follow each other on both sides (at most 2 characters
    apart). It ends at a pair whose place is not known, that has an empty side, was seen more than 100 times in the
    corpus, or is of another language (probability below 0.5), which are left out, as are documents of one pair: the
    settings of the authors' script (which looks at the gap of the source only, by a slip). In the script's output,
    which has a column of document ids in front of these, documents are the lines of one id, and no line is left out.
    The source is the first sentence of a line, as in the files' names.
    """

    name = "paradocs"

    def recognize(self, sample: Sample) -> Evidence:
        cells = sample.first_line.split("\t") if sample.argument == "path" else []
        is_paradocs = len(cells) in (len(COLUMNS), len(COLUMNS) + 1) and cells[-3].isdecimal()
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
            raise DataError(
                f"{display_path(path)}: no two sentence pairs follow each other in a document; is it of another format?"
            )


def _kept_lines(path: str | Path) -> Iterator[tuple[str, bool, str, dict[str, str]]]:
    """Document id, whether it is of the file, location and cells of each line of a document.

    Where the file has no ids, they are the number of the document and that of its part.
    """
    with_ids = None
    before: dict[str, str] | None = None  # the line before, where its document may go on
    pair, number, part = None, 0, 0
    for location, own_id, cells in _lines(path):
        with_ids = own_id is not None if with_ids is None else with_ids
        if (own_id is not None) != with_ids:
            raise DataError(f"{location}: lines with and without document ids in one file; take one of both")
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


def _lines(path: str | Path) -> Iterator[tuple[str, str | None, dict[str, str]]]:
    """Location, document id, where the line has one, and the cells by name."""
    for number, line in read_lines(path):
        location, cells = location_of(path, number), line.split("\t")
        own_id = cells.pop(0) if len(cells) == len(COLUMNS) + 1 else None
        if len(cells) != len(COLUMNS):
            raise DataError(f"{location}: {len(cells)} columns, expected {len(COLUMNS)}, or one more with document ids")
        yield location, own_id, dict(zip(COLUMNS, cells))


def _is_kept(location: str, cells: dict[str, str]) -> bool:
    if NONE in [cells[name] for name in POSITIONS]:
        return False
    try:
        frequency, *_ = [int(cells[name]) for name in ("frequency", *INDICES)]
        shares = [float(cells[name]) for name in ("src_language_id", "tgt_language_id")]
    except ValueError as error:
        raise DataError(
            f"{location}: {error}; frequency and indices are whole numbers, languages probabilities"
        ) from error
    return frequency <= MAX_FREQUENCY and min(shares) >= MIN_LANGUAGE and all(cells[s].strip() for s in ("src", "tgt"))


def _follows(before: dict[str, str], cells: dict[str, str]) -> bool:
    """Whether a pair comes next to the last one, on both sides."""
    return all(int(cells[f"{s}_start_index"]) - int(before[f"{s}_end_index"]) <= MAX_GAP for s in ("src", "tgt"))
