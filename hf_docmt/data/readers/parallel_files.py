"""A file per side: the same documents in order, or a third file that says which lines are one (OPUS, MSCTD)."""

import re
from abc import abstractmethod
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.reader import (
    Evidence,
    Reader,
    Sample,
    check_target,
    numbered_id,
    parallel_lines,
    rows_of_lines,
)
from hf_docmt.files import DataError, display_path, location_of, parse_json, read_lines

DTAG = "<d>"
EOS = "_eos"
EOS_WORD = re.compile(rf"(?<!\S){EOS}(?!\S)")

SideDocument = tuple[int, list[str]]  # line in the file where it begins, sentences


class ParallelFilesReader(Reader):
    """Base of these formats; ids are the source file's name and a number."""

    document_ids = False

    def read(
        self, languages: list[str], source: str | Path, target: str | Path | None = None
    ) -> Iterator[tuple[str, dict]]:
        """Rows. DataError where the files have different numbers of documents, or a document of sentences."""
        paths = [source, target] if check_target(languages, source, target) else [source]
        sides, before = [self.side_documents(path) for path in paths], 0
        for number, documents in enumerate(zip_longest(*sides), 1):
            if None in documents or len({len(sentences) for _, sentences in documents}) > 1:
                _check_counts(paths, number, before, documents, sides)
            location = " and ".join(location_of(path, line) for path, (line, _) in zip(paths, documents))
            texts = [sentences for _, sentences in documents]
            yield location, make_row(location, numbered_id(source, number), texts[0], texts[-1], languages)
            before += len(texts[0])

    @abstractmethod
    def side_documents(self, path: str | Path) -> Iterator[SideDocument]:
        """The documents of one file, each when its turn comes."""


class BlankReader(ParallelFilesReader):
    """One blank line separates documents, so the format cannot hold empty sentences. Other blanks stay."""

    name = "blank"

    def recognize_lines(self, sample: Sample) -> bool:
        if sample.argument != "source" or sample.path is None:
            return False
        return any(not line.strip() for _, line in read_lines(sample.path))

    def side_documents(self, path: str | Path) -> Iterator[SideDocument]:
        begin, sentences, documents = 1, [], 1
        for number, line in read_lines(path):
            if line.strip():
                sentences.append(line)
            elif not sentences:
                raise DataError(
                    f"{location_of(path, number)}: document {documents} is empty (a blank line at the "
                    "start or after another); put one blank line between documents, and use tsv or jsonl for empty "
                    "sentences"
                )
            else:
                yield begin, sentences
                begin, sentences, documents = number + 1, [], documents + 1
        if sentences:  # one blank line may end the file
            yield begin, sentences


class DtagReader(ParallelFilesReader):
    """A line `<d>` begins each document (Maruf et al. 2019); a blank line is an empty sentence, other blanks stay."""

    name = "dtag"
    first_line_mark = repr(DTAG)

    def recognize(self, sample: Sample) -> Evidence:
        words = sample.first_line.split()
        is_dtag = words == [DTAG] or (sample.argument == "path" and DTAG in words)
        return Evidence.FIRST_BYTES if is_dtag else Evidence.NONE

    def side_documents(self, path: str | Path) -> Iterator[SideDocument]:
        document: SideDocument | None = None
        for number, line in read_lines(path):
            if line.strip() == DTAG:
                if document is not None:
                    yield document
                document = (number, [])
            elif document is None:
                raise DataError(f"{location_of(path, number)}: text before the first {DTAG}; begin documents with it")
            else:
                document[1].append(line)
        if document is not None:
            yield document


class VoitaReader(ParallelFilesReader):
    """One document per line, its sentences joined by ` _eos ` (four in Voita et al. 2019); blanks around them go."""

    name = "voita"
    first_line_mark = repr(EOS)

    def recognize(self, sample: Sample) -> Evidence:
        return Evidence.FIRST_BYTES if EOS in sample.first_line.split() else Evidence.NONE

    def side_documents(self, path: str | Path) -> Iterator[SideDocument]:
        for number, line in read_lines(path):
            if not line.strip():
                raise DataError(f"{location_of(path, number)}: document {number} is empty; join sentences by ' {EOS} '")
            yield number, [sentence.strip() for sentence in EOS_WORD.split(line)]


def _check_counts(paths: list, number: int, sentences: int, documents: tuple, sides: list) -> None:
    """DataError where two files, which agree up to document `number`, have different numbers of documents in all."""
    rest = [[] if document is None else [document, *side] for document, side in zip(documents, sides)]
    if len(rest[0]) == len(rest[-1]):
        return
    counts = [(number - 1 + len(some), sentences + sum(len(texts) for _, texts in some)) for some in rest]
    difference = f"the first {number - 1} agree in length"
    if None not in documents:
        lengths = [f"{len(some)} sentences from line {line} on" for line, some in documents]
        difference = f"the first difference is document {number}, with {' and '.join(lengths)}"
    raise DataError(
        f"{display_path(paths[0])} has {counts[0][0]} documents ({counts[0][1]} sentences) but "
        f"{display_path(paths[1])} has {counts[1][0]} ({counts[1][1]} sentences); the files must have the same "
        f"documents; {difference}"
    )


class MosesReader(Reader):
    """A document is a run of lines with the same two document ids, which make its own (Lison et al. 2018).

    A line of `ids` has two document ids, each begun by its language (`en/1957/23590/3520211.xml.gz`), and the numbers
    of the sentences in them, separated by tabs. Blank lines of the texts are empty sentences; blanks stay.
    """

    name = "moses"
    own_argument = "ids"

    def read(
        self, languages: list[str], source: str | Path, ids: str | Path, target: str | Path | None = None
    ) -> Iterator[tuple[str, dict]]:
        paths = [ids, source, target] if check_target(languages, source, target) else [ids, source]
        return rows_of_lines(_lines_with_ids(paths, languages), languages)


class DialogueReader(Reader):
    """Each line of `index` is a JSON list of the numbers, from 0, of the lines of one dialogue (Liang et al. 2022).

    The lists must take every line once and in order. Blank lines are empty sentences; blanks stay.
    """

    name = "dialogue"
    own_argument = "index"

    def read(
        self, languages: list[str], source: str | Path, index: str | Path, target: str | Path | None = None
    ) -> Iterator[tuple[str, dict]]:
        paths = [source, target] if check_target(languages, source, target) else [source]
        sides = list(zip(*(texts for _, texts in parallel_lines(paths))))
        begin = 0
        for number, line in read_lines(index):
            location, doc_id = location_of(index, number), numbered_id(source, number)
            end = begin + _dialogue_length(location, doc_id, parse_json(line, index, number), begin, len(sides[0]))
            yield location, make_row(location, doc_id, sides[0][begin:end], sides[-1][begin:end], languages)
            begin = end
        if begin != len(sides[0]):
            raise DataError(
                f"{display_path(index)} takes {begin} lines but {display_path(source)} has {len(sides[0])}; add the "
                f"lines from {begin} on"
            )


def _lines_with_ids(paths: list[str | Path], languages: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    for number, (line, *texts) in parallel_lines(paths):
        location, cells = location_of(paths[0], number), [cell.strip() for cell in line.split("\t")]
        if len(cells) != 4:
            raise DataError(f"{location}: {len(cells)} columns, expected 4 between tabs: two document ids, sentences")
        ids = cells[:2]
        if not all(ids):
            raise DataError(f"{location}: document id is missing, got {ids}; every line needs two")
        id_languages = [name.split("/")[0] for name in ids]
        if missing := [lang for lang in languages if lang not in id_languages]:
            raise DataError(
                f"{location}: unknown document ids {ids[0]!r} and {ids[1]!r}: they begin with the languages "
                f"{id_languages}, {missing[0]!r} is not one of them; use the ids of these files, or correct the "
                "language"
            )
        yield location, " ".join(ids), texts


def _dialogue_length(location: str, doc_id: str, numbers: list, begin: int, lines: int) -> int:
    """How many lines the dialogue has; DataError unless they are the next ones."""
    if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
        raise DataError(f"{location}: document {doc_id!r} needs a JSON list of line numbers such as [0, 1, 2]")
    expected = list(range(begin, begin + len(numbers)))
    if numbers != expected:
        got, want = next(pair for pair in zip(numbers, expected) if pair[0] != pair[1])
        raise DataError(f"{location}: document {doc_id!r} has line number {got}, expected {want}; count from 0 on")
    if begin + len(numbers) > lines:
        raise DataError(
            f"{location}: document {doc_id!r} goes to line number {numbers[-1]}, but there are {lines} lines (0 to "
            f"{lines - 1}); use the index of these files"
        )
    return len(numbers)
