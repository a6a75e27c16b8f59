"""Inline markup of a sentence on its translation: around the words that translate its words, each tag once, nested."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from hf_docmt.data.readers.subtitles import distribute, text_size
from hf_docmt.data.word_fits import UNSPACED, Fit, position_fit, words_of
from hf_docmt.formats.document_format import Piece, Tag

THRESHOLD = 0.5  # a target word belongs to an element if it fits one of its words at least half as well as the best one
ENDS = tuple(".,;:!?…。，、！？")
Span = tuple[int, int]  # characters, from and to


@dataclass
class Node:
    """An element or a standalone piece, at characters `start` to `end` of a sentence.

    `opening` is None where the element began in an earlier sentence, `closing` where it ends in a later one. For a
    standalone piece `opening` is the tag, and start and end are equal.
    """

    start: int
    end: int
    opening: Tag | None = None
    closing: Tag | None = None
    is_spaced: bool = False
    children: list["Node"] = field(default_factory=list)

    @property
    def is_alone(self) -> bool:
        return self.opening is not None and self.opening.kind == "alone"

    @property
    def is_whole(self) -> bool:
        """Whether it begins and ends in the sentence."""
        return self.is_alone or self.opening is not None and self.closing is not None


def markup_tree(length: int, tags: Iterable[tuple[int, Tag, bool]], opened: int) -> Node:
    """The elements of a sentence of this length, given its tags in order: place, tag, whether it is spaced.

    `opened` elements go on from earlier sentences. The root is the sentence.
    """
    root = Node(0, length)
    stack = [root]
    for _ in range(opened):
        stack[-1].children.append(Node(0, length))
        stack.append(stack[-1].children[-1])
    for place, tag, is_spaced in tags:
        if tag.kind == "close":
            node = stack.pop()
            node.closing, node.end = tag, place
            continue
        node = Node(place, place if tag.kind == "alone" else length, tag, is_spaced=is_spaced)
        stack[-1].children.append(node)
        if tag.kind == "open":
            stack.append(node)
    return root


def project(root: Node, source: str, target: str, fit: Fit | None, marks: Collection[str] = ()) -> list[Piece]:
    """The pieces of a translation with the markup of its sentence.

    `fit` is as `word_fits` gives it; None or empty: by relative position. `marks` are words that occur once in both for
    runs to copy, and fit each other only.
    """
    return list(_Projection(source, target, fit, marks).pieces(root, (0, len(target))))


class _Projection:
    def __init__(self, source: str, target: str, fit: Fit | None, marks: Collection[str]):
        self.source, self.target = source, target
        self.source_words, self.target_words = words_of(source), words_of(target)
        self.fit = np.zeros((len(self.target_words), len(self.source_words)))  # (T, S)
        for row, column, value in fit or position_fit(source, target):
            self.fit[int(row), int(column)] = value
        columns, rows = (
            {text[start:end]: number for number, (start, end) in enumerate(words) if text[start:end] in marks}
            for text, words in ((source, self.source_words), (target, self.target_words))
        )
        for mark in columns.keys() & rows.keys():
            self.fit[rows[mark]] = self.fit[:, columns[mark]] = 0
            self.fit[rows[mark], columns[mark]] = 1

    def pieces(self, node: Node, span: Span) -> Iterator[Piece]:
        """Text and tags of these characters of the target, which are those of the node."""
        position = span[0]
        for child, (start, end) in self._places(node, span):
            yield from self._text(position, start)
            position = end
            if child.is_alone:
                yield from self._alone(child, start, end)
                continue
            if child.opening:
                yield child.opening
            yield from self.pieces(child, (start, end))
            if child.closing:
                yield child.closing
        yield from self._text(position, span[1])

    def _text(self, start: int, end: int) -> Iterator[str]:
        if start < end:
            yield self.target[start:end]

    def _places(self, node: Node, span: Span) -> list[tuple[Node, Span]]:
        """The children of a node with their characters in the target, inside `span`, from left to right.

        Those that go over a border of the sentence are placed first, then those that fit best; none overlaps another.
        What has no words comes between them.
        """
        free = [word for word, place in enumerate(self.target_words) if _inside(place, span)]
        placed: list[tuple[Node, Span]] = []
        wide = [child for child in node.children if child.end > child.start]
        best = {id(child): self._best_run(child, free)[1] for child in wide}
        for child in sorted(wide, key=lambda child: (child.is_whole, -best[id(child)])):
            place = self._place(child, free, span)
            if place is None or any(_touches(place, other) for _, other in placed):
                point = self._point(child, node, span, placed)
                place = (point, point)
            placed.append((child, place))
            free = [word for word in free if not _inside(self.target_words[word], place)]
        for child in node.children:
            if child.end == child.start:
                point = self._point(child, node, span, placed)
                placed.append((child, (point, point)))
        order = {id(child): number for number, child in enumerate(node.children)}
        return sorted(placed, key=lambda item: (item[1], order[id(item[0])]))

    def _place(self, node: Node, free: list[int], span: Span) -> Span | None:
        """The characters of an element among the free target words; None without any.

        One that crosses a border of the sentence reaches up to that of the translation.
        """
        run, _ = self._best_run(node, free)
        if run is not None:
            start, end = self._characters(node, run)
            start, end = max(start, span[0]), min(end, span[1])
            return (span[0] if node.opening is None else start, span[1] if node.closing is None else end)
        if node.is_whole:
            return None
        return (span[0], span[0] if node.closing else span[1]) if node.opening is None else (span[1], span[1])

    def _columns(self, node: Node) -> list[int]:
        """The source words of a node."""
        return [word for word, place in enumerate(self.source_words) if _touches(place, (node.start, node.end))]

    def _best_run(self, node: Node, free: list[int]) -> tuple[range | None, float]:
        """The run of adjacent free words of the largest sum of fit minus threshold, and that sum."""
        columns = self._columns(node)
        best: tuple[range | None, float] = (None, 0.0)
        total, start = 0.0, 0
        fits = self.fit[:, columns].max(axis=1).tolist() if columns else [0.0] * len(self.fit)
        for number, word in enumerate(free):
            if total <= 0 or word != free[number - 1] + 1:
                total, start = 0.0, word
            total += fits[word] - THRESHOLD + 1e-6
            if total > best[1]:
                best = range(start, word + 1), total
        return best

    def _characters(self, node: Node, words: range) -> Span:
        """The characters of a run of target words, or of the same part of a word that was copied.

        The mark that ends the sentence, or a part of it, stays outside if it is so in the source.
        """
        if self.source[: node.end].rstrip()[-1:] not in ENDS:
            while len(words) > 1 and self.target[slice(*self.target_words[words.stop - 1])] in ENDS:
                words = words[:-1]
        start, end = self.target_words[words.start][0], self.target_words[words.stop - 1][1]
        own = [self.source_words[word] for word in self._columns(node)]
        if own:
            (first, first_end), (last, last_end) = own[0], own[-1]
            if self.source[first:first_end] == self.target[slice(*self.target_words[words.start])]:
                start += max(node.start - first, 0)
            if self.source[last:last_end] == self.target[slice(*self.target_words[words.stop - 1])]:
                end -= max(last_end - node.end, 0)
        return start, max(start, end)

    def _point(self, node: Node, parent: Node, span: Span, placed: list[tuple[Node, Span]]) -> int:
        """The place between target words of a node without its own words: next to the word it is attached to.

        Inside none of the placed elements; at the start or end of its element where it is there in the source.
        """
        words = [word for word, place in enumerate(self.source_words) if _inside(place, (parent.start, parent.end))]
        before = [word for word in words if self.source_words[word][0] < node.start]
        after = [word for word in words if self.source_words[word][0] >= node.end]
        follows = node.end > node.start or node.start > 0 and not self.source[node.start - 1].isspace()
        if not before or not after:
            point = span[0] if not before else span[1]
        else:
            word, is_end = (before[-1], 1) if follows else (after[0], 0)
            column = self.fit[:, word] if len(self.fit) else np.zeros(0)
            allowed = [row for row, place in enumerate(self.target_words) if _inside(place, span)]
            if allowed and column[allowed].max() > 0 and not (node.opening and node.opening.by_length):
                point = self.target_words[max(allowed, key=lambda row: column[row])][is_end]
            else:  # by length, at the end of a word
                text, parts = self.target[slice(*span)], (slice(parent.start, node.start), slice(node.end, parent.end))
                tail = distribute(text, [text_size(self.source[part]) for part in parts])[1]
                head = text[: len(text.rstrip()) - len(tail)]
                point = span[0] + len(head.rstrip() if is_end else head)
        for other, (start, end) in placed:
            begins, ends = other.opening is not None, other.closing is not None or other.is_alone
            if start < point < end or start < end and (point == start and not begins or point == end and not ends):
                point = end if not begins or ends and point - start > end - point else start
        return point

    def _alone(self, node: Node, start: int, end: int) -> Iterator[Piece]:
        """A standalone tag, with its blanks of the source where the target has none."""
        if node.opening is None:
            return
        is_behind_blank = node.is_spaced and self.source[node.start - 1 : node.start].isspace()
        if is_behind_blank and _wants_blank(self.target[:start][-1:], "("):
            yield " "
        yield node.opening
        if node.is_spaced and _wants_blank(self.target[end:][:1], ",.;:!?)"):
            yield " "


def _wants_blank(character: str, others: str) -> bool:
    """Whether a character is a letter or sign of a script with blanks between words, and none of the others."""
    return bool(character) and not character.isspace() and not UNSPACED.match(character) and character not in others


def _inside(place: Span, span: Span) -> bool:
    return span[0] <= place[0] and place[1] <= span[1]


def _touches(place: Span, span: Span) -> bool:
    return place[0] < span[1] and place[1] > span[0]
