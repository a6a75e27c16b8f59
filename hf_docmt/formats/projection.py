"""Inline markup of a sentence on its translation: around the words that translate its words, each tag once, nested."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from hf_docmt.formats.document_format import Piece, Tag
from hf_docmt.formats.placeholders import POSITIONAL
from hf_docmt.systems.word_alignment import UNSPACED, Fit, position_fit, words_of

THRESHOLD = 0.5  # a target word belongs to an element if it fits one of its words at least half as well as the best one
Span = tuple[int, int]  # characters, from and to


@dataclass
class Node:
    """An element or a piece that stands alone, at characters `start` to `end` of a sentence.

    `opening` is None where the element began in an earlier sentence, `closing` where it ends in a later one. Of what
    stands alone, `opening` is the tag, and start and end are the same unless a reader sees text of it.
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


def markup_tree(length: int, tags: Iterable[tuple[int, int, Tag, bool]], opened: int) -> Node:
    """The elements of a sentence of so many characters, given its tags in order: from, to, tag, whether it is spaced.

    `opened` elements go on from earlier sentences. The root is the sentence.
    """
    root = Node(0, length)
    stack = [root]
    for _ in range(opened):
        stack[-1].children.append(Node(0, length))
        stack.append(stack[-1].children[-1])
    for start, end, tag, is_spaced in tags:
        if tag.kind == "close":
            node = stack.pop()
            node.closing, node.end = tag, start
            continue
        node = Node(start, end if tag.kind == "alone" else length, tag, is_spaced=is_spaced)
        stack[-1].children.append(node)
        if tag.kind == "open":
            stack.append(node)
    return root


def project(root: Node, source: str, target: str, fit: Fit | None) -> list[Piece]:
    """The pieces of a translation with the markup of its sentence.

    `fit` is as `word_fits` gives it; None or empty: by relative position. What a reader sees of a piece that stands
    alone (code, a placeholder) takes the place of the same text in the translation, else of words that fit it, which
    positions do not tell: there it is put between words.
    """
    return list(_Projection(source, target, fit).pieces(root, (0, len(target))))


class _Projection:
    def __init__(self, source: str, target: str, fit: Fit | None):
        self.source, self.target, self.is_measured = source, target, bool(fit)
        self.source_words, self.target_words = words_of(source), words_of(target)
        self.fit = np.zeros((len(self.target_words), len(self.source_words)))  # (T, S)
        for row, column, value in fit or position_fit(source, target):
            self.fit[int(row), int(column)] = value

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

        Those that go over a border of the sentence are placed first, then what was copied, then those that fit
        best; none overlaps another. What has no words comes between them.
        """
        free = [word for word, place in enumerate(self.target_words) if _inside(place, span)]
        placed: list[tuple[Node, Span]] = []
        wide = [child for child in node.children if child.end > child.start]
        best = {id(child): self._best_run(child, free)[1] for child in wide}
        copied = {id(child): child.is_alone and bool(self._copy(child, None, free, span, [])) for child in wide}
        for child in sorted(wide, key=lambda child: (child.is_whole, not copied[id(child)], -best[id(child)])):
            taken = [other for _, other in placed]
            place = self._place(child, free, span, taken)
            if place is None or any(_touches(place, other) for other in taken):
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

    def _place(self, node: Node, free: list[int], span: Span, taken: list[Span]) -> Span | None:
        """The characters of a node among the free target words, a copy outside of `taken`; None where there are none.

        An element that goes over a border of the sentence goes up to that of the translation.
        """
        run, _ = self._best_run(node, free)
        if node.is_alone:
            copy = self._copy(node, run, free, span, taken)
            text = self.source[node.start : node.end]
            # nobody translates %s or 3, but one may {name}
            is_word = self.is_measured and any(map(str.isalpha, text)) and not POSITIONAL.fullmatch(text)
            fits = run is not None and is_word and len(run) <= len(self._columns(node))
            return copy or (self._characters(node, run) if run is not None and fits else None)
        if run is not None:
            start, end = self._around_copies(node, self._characters(node, run))
            start, end = max(start, span[0]), min(end, span[1])
            return (span[0] if node.opening is None else start, span[1] if node.closing is None else end)
        if node.is_whole:
            return None
        return (span[0], span[0] if node.closing else span[1]) if node.opening is None else (span[1], span[1])

    def _copy(self, node: Node, run: range | None, free: list[int], span: Span, taken: list[Span]) -> Span | None:
        """Where the text of a piece that stands alone was copied, nearest to the words that fit it.

        With other capitals where it is not there letter by letter. Of a word that goes over a border of `span` a part.
        """
        text, allowed = self.source[node.start : node.end], {self.target_words[word] for word in free}
        near, target = self.target_words[run.start][0] if run else span[0], self.target
        end = self.target_words[run.stop - 1][1] if run else near
        if text and text not in target and len(target.lower()) == len(target):
            text, target = text.lower(), target.lower()
        copies, start = [], span[0] - 1
        while text and (start := target.find(text, start + 1, span[1])) >= 0:
            copy = (start, start + len(text))
            touched = [place for place in self.target_words if _touches(place, copy)]
            is_free = all(place in allowed or not _inside(place, span) for place in touched)
            around = target[start - 1 : start] if start else "", target[copy[1] : copy[1] + 1]
            is_free &= not (text.isdecimal() and any(map(str.isdecimal, around)))  # the 3 of 2013
            if is_free and not any(_touches(copy, other) for other in taken):
                copies.append(copy)
        return min(copies, key=lambda place: (not _inside(place, (near, end)), abs(place[0] - near)), default=None)

    def _around_copies(self, node: Node, place: Span) -> Span:
        """The place of an element, up to the ends of copies that its borders cut, of what stands alone in it."""
        for child in node.children:
            text, start = self.source[child.start : child.end] if child.is_alone else "", -1
            while text and (start := self.target.find(text, start + 1)) >= 0:
                if _touches(place, (start, start + len(text))):
                    place = min(place[0], start), max(place[1], start + len(text))
        return place

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
        """The characters of a run of target words, or of the same part of a word that was copied."""
        start, end = self.target_words[words.start][0], self.target_words[words.stop - 1][1]
        own = [self.source_words[word] for word in self._columns(node)]
        if own and not node.is_alone:
            (first, first_end), (last, last_end) = own[0], own[-1]
            if self.source[first:first_end] == self.target[slice(*self.target_words[words.start])]:
                start += max(node.start - first, 0)
            if self.source[last:last_end] == self.target[slice(*self.target_words[words.stop - 1])]:
                end -= max(last_end - node.end, 0)
        return start, max(start, end)

    def _point(self, node: Node, parent: Node, span: Span, placed: list[tuple[Node, Span]]) -> int:
        """Where between words of the target a node without words of its own stands: beside the one it is attached to.

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
            if allowed and column[allowed].max() > 0:
                point = self.target_words[max(allowed, key=lambda row: column[row])][is_end]
            else:  # the same share of the characters, at the end of a word
                share = (node.start - parent.start) / max(parent.end - parent.start, 1)
                wanted = span[0] + share * (span[1] - span[0])
                point = min(
                    (self.target_words[row][is_end] for row in allowed), default=span[0], key=lambda x: abs(x - wanted)
                )
        for other, (start, end) in placed:
            begins, ends = other.opening is not None, other.closing is not None or other.is_alone
            if start < point < end or start < end and (point == start and not begins or point == end and not ends):
                point = end if not begins or ends and point - start > end - point else start
        return point

    def _alone(self, node: Node, start: int, end: int) -> Iterator[Piece]:
        """What stands alone, with the blanks around it that it has in the source, where the target has none."""
        tag = node.opening
        if tag is None:
            return
        spaced = bool(tag.text) or node.is_spaced
        if (
            spaced
            and self.source[node.start - 1 : node.start].isspace()
            and _wants_blank(self.target[:start][-1:], "(")
        ):
            yield " "
        yield tag
        after = node.is_spaced or self.source[node.end : node.end + 1].isspace()
        if spaced and after and _wants_blank(self.target[end:][:1], ",.;:!?)"):
            yield " "


def _wants_blank(character: str, others: str) -> bool:
    """Whether a character is a letter or sign of a script with blanks between words, and none of the others."""
    return bool(character) and not character.isspace() and not UNSPACED.match(character) and character not in others


def _inside(place: Span, span: Span) -> bool:
    return span[0] <= place[0] and place[1] <= span[1]


def _touches(place: Span, span: Span) -> bool:
    return place[0] < span[1] and place[1] > span[0]
