"""An earlier version of a document with its translation: what is the same in a new version keeps its translation."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial
from itertools import accumulate, takewhile, zip_longest
from typing import NamedTuple

from hf_docmt.files import DataError
from hf_docmt.formats.document_file import DocumentFile
from hf_docmt.formats.document_format import KeptPieces, Segment, Tag
from hf_docmt.modeling.opaque_runs import COMMON

ANCHOR = re.compile(rf"{COMMON.pattern}|\d+", COMMON.flags)  # is the same in a translation
NAME = re.compile(r"\b[^\W\d_]{4,}\b")
RELATION = re.compile(r'\br:\w+="[^"]*"')  # to another member of an archive, by a number that the archive gives
SIMILAR = 0.5  # a changed segment is a new version of an old one, by the share of characters that they have in common


class PreviousTranslation:
    """The segments of an old version and their translations. `DataError`: a bilingual format, which has its own.

    `source` and `target` are files of one format. The target may have more or fewer segments: those without a
    counterpart are skipped.
    """

    def __init__(self, source: DocumentFile, target: DocumentFile):
        if source.format.is_bilingual:
            raise DataError(
                f"{target.location}: a previous version is for documents, and a file of {source.format.name} holds its "
                "translations itself; give the old one as a memory (--memory), or translate into it"
            )
        self.source, self.target, self.pairs = source, target, aligned(shapes(source), shapes(target))
        self.texts = [_raw_segments(file) for file in (source, target)]

    def keep_in(self, document: DocumentFile) -> None:
        """Give a new version the translations of the segments and sentences that are the same in it."""
        old, new = (list(map(_key, file.segments)) for file in (self.source, document))
        texts, matched = _raw_segments(document), dict(same_place(old, new))
        for number, place in matched.items():
            pieces = self._pieces(place, texts[number], document.segments[number]) if place in self.pairs else None
            if pieces is not None:
                document.kept[number] = pieces
        for number, place in self._changed(document, matched):
            document.known[number] = self._sentences(place, document, number)

    def _pieces(self, place: int, raw: str | None, segment: Segment) -> KeptPieces | None:
        """The translation of an old segment: as its file has it, or with the tags of the new segment."""
        old, new = self.texts[0][place], self.texts[1][self.pairs[place]]
        pieces = self.target.segments[self.pairs[place]].pieces
        if raw is not None and raw == old and new is not None:
            if Counter(RELATION.findall(old)) == Counter(RELATION.findall(new)):
                return KeptPieces(pieces, new)
        own = {_name(piece): piece for piece in segment.pieces if isinstance(piece, Tag)}
        tags = [piece for piece in pieces if isinstance(piece, Tag)]
        if Counter(map(_name, tags)) != Counter(_name(piece) for piece in segment.pieces if isinstance(piece, Tag)):
            return None
        return KeptPieces([own[_name(piece)] if isinstance(piece, Tag) else piece for piece in pieces])

    def _changed(self, document: DocumentFile, matched: dict[int, int]) -> Iterator[tuple[int, int]]:
        """New segments that are not kept, and the old ones of which they are versions or, unchanged, the same."""
        free = [place for place in self.pairs if place not in matched.values()]
        for number, segment in enumerate(document.segments):
            if number in matched:
                yield from [(number, matched[number])] if matched.get(number) in self.pairs else ()
                continue
            matcher = SequenceMatcher(autojunk=False, b=segment.text)
            best, place = SIMILAR, None
            for other in free:
                matcher.set_seq1(self.source.segments[other].text)
                if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and matcher.ratio() > best:
                    best, place = matcher.ratio(), other
            if place is not None:
                free.remove(place)
                yield number, place

    def _sentences(self, place: int, document: DocumentFile, number: int) -> dict[int, str]:
        """The translations of the sentences that are the same, of a segment that is kept of all as far as they go."""
        old, new = self.source.sentences[place].sentences, document.sentences[number].sentences
        targets = [sentence.text for sentence in self.target.sentences[self.pairs[place]].sentences]
        if len(targets) != len(old):
            if number not in document.kept:
                return {}
            targets = shared_out(targets, [len(sentence.text) for sentence in old])
        pairs = same_place([sentence.text for sentence in old], [sentence.text for sentence in new])
        return {there: targets[here] for there, here in pairs}


def _raw_segments(file: DocumentFile) -> list[str | None]:
    return [*file.format.raw_segments()] or [None] * len(file.segments)


def _name(tag: Tag) -> Hashable:
    return tag.kind, tag.raw, tag.text


def _key(segment: Segment) -> Hashable:
    return tuple(replace(piece, place=None) if isinstance(piece, Tag) else piece for piece in segment.pieces)


def same_place(old: Sequence[Hashable], new: Sequence[Hashable]) -> Iterator[tuple[int, int]]:
    """Numbers in `new` and in `old` of what is the same: in the order of both, what moved, and repetitions."""
    left = set(range(len(new)))
    free: dict[Hashable, list[int]] = {}
    taken = set()
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        for here, there in zip(range(block.a, block.a + block.size), range(block.b, block.b + block.size)):
            if there in left:
                left.remove(there)
                taken.add(here)
                yield there, here
    for number in reversed(range(len(old))):
        if number not in taken:
            free.setdefault(old[number], []).append(number)
    first = {key: number for number, key in reversed(list(enumerate(old)))}
    for there in sorted(left):
        if new[there] in first:
            yield there, free[new[there]].pop() if free.get(new[there]) else first[new[there]]


class Shape(NamedTuple):
    """Features of a segment for alignment; `anchors` and names are the same in a translation."""

    place: str
    anchors: Counter[str]
    names: Counter[str]
    length: int


def shapes(file: DocumentFile) -> list[Shape]:
    """The features of the segments of a file."""
    made = []
    for segment, lead in zip_longest(file.segments, file.format.leads()):
        place = re.sub(r"[*+]", "-", lead or "") + re.sub(r"line \d+", "", segment.location)
        raw = " ".join([segment.text, *(piece.raw or "" for piece in segment.pieces if isinstance(piece, Tag))])
        anchors, names = (Counter(match[0] for match in pattern.finditer(raw)) for pattern in (ANCHOR, NAME))
        made.append(Shape(place, anchors, names, len(segment.text)))
    return made


def likeness(one: Shape, other: Shape) -> float:
    """How likely two segments are translations of each other: above 0 if pairing them is better than skipping them."""
    shared = in_common(one.anchors, other.anchors)
    all_of = one.anchors.total() + other.anchors.total() - shared
    same = 2 * shared / all_of - 0.8 if all_of else 0.0
    same += 0.2 * min(3, in_common(one.names, other.names))
    lengths = one.length, other.length
    return (one.place == other.place) + same + 2 * min(lengths) / max(*lengths, 1) - 0.7


def in_common(one: Counter[str], other: Counter[str]) -> int:
    """How many entries two counters share."""
    return 0 if one.keys().isdisjoint(other) else (one & other).total()


def aligned(rows: Sequence[Shape], columns: Sequence[Shape]) -> dict[int, int]:
    """The number of the translation of each segment that has one for sure, in order: the best sum of `likeness` (DP).

    Next to a segment without counterpart, segments of its kind are uncertain unless they share something.
    """
    reach, count = 30 + abs(len(rows) - len(columns)), len(columns)
    best = [0.0] * (count + 1)  # of the rows so far with the first 0, 1, ... columns
    steps: list[dict[int, str]] = []
    for number, row in enumerate(rows):
        new, own = best[:], {}
        for column in range(max(1, number + 1 - reach), min(count, number + 1 + reach) + 1):
            pair = best[column - 1] + likeness(row, columns[column - 1])
            new[column], own[column] = max((pair, "pair"), (best[column], "row"), (new[column - 1], "column"))
        last = min(count, number + 1 + reach)
        new[last:] = [new[last]] * (count + 1 - last)
        best = new
        steps.append(own)
    path: list[tuple[Shape | None, Shape | None, int, int]] = []
    number, column = len(rows), count
    while number or column:
        step = steps[number - 1].get(column, "row") if number and column else "row" if number else "column"
        row, other = rows[number - 1] if step != "column" else None, columns[column - 1] if step != "row" else None
        number, column = number - (step != "column"), column - (step != "row")
        path.append((row, other, number, column))
    doubtful: set[int] = set()
    for start, (row, other, *_) in enumerate(path):
        for way in () if row and other else (range(start + 1, len(path)), range(start - 1, -1, -1)):
            place = (row or other).place  # type: ignore[union-attr]
            doubtful.update(takewhile(partial(_is_doubtful, path, place), way))
    return {row: column for n, (one, other, row, column) in enumerate(path) if one and other and n not in doubtful}


def _is_doubtful(path: Sequence[tuple], place: str, number: int) -> bool:
    """Whether the pair, or lone segment, of this number may be a shifted one where a segment of `place` is lone."""
    row, column, *_ = path[number]
    is_sure = row and column and (row.anchors & column.anchors or row.names & column.names)
    return not is_sure and place in (row and row.place, column and column.place)


def shared_out(texts: Sequence[str], lengths: Sequence[int]) -> list[str]:
    """Texts joined to as many as there are lengths, in order, each where its middle falls."""
    made: list[list[str]] = [[] for _ in lengths]
    ends, total, position = list(accumulate(lengths)), sum(map(len, texts)), 0
    for text in texts:
        middle = (position + len(text) / 2) / max(total, 1) * ends[-1]
        made[min(bisect_left(ends, middle), len(ends) - 1)].append(text)
        position += len(text)
    return list(map(" ".join, made))
