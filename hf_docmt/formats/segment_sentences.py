"""The sentences of a segment as the model reads them, and the segment again with their translations."""

import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from hf_docmt.data.word_fits import Fit
from hf_docmt.formats.document_format import Piece, Tag, joined
from hf_docmt.formats.projection import markup_tree, project
from hf_docmt.modeling.opaque_runs import CarriedSentence, Span, matches
from hf_docmt.modeling.text_splitting import blank_behind

Split = Callable[[str], Iterable[str]]
WORDS = re.compile(r"\S(?:.*\S)?", re.DOTALL)
LINK_END = re.compile(r"</a\b|\]")
OPEN, CLOSE, ALONE = "\ud800", "\ud801", "\ud802"  # tags in the shape of a segment
MARK = r"[\[(]?(?:\d{1,3}|[*†‡§¶]+)[\])]?"  # of a note, or a small number, in elements in each other, after a word
NOTE = re.compile(
    rf"(?:[^\W\d_]|[.,;!?\"'”’»)])[{OPEN}-{ALONE}]*?"
    rf"(?P<note>{'|'.join(OPEN * depth + MARK + CLOSE * depth for depth in (3, 2, 1))})(?!\w)"
)
TOUCHING = re.compile(  # words of two elements, such as two links
    rf"(?P<before>[^\W\d_])[{OPEN}-{ALONE}]*?{CLOSE}(?={OPEN}+(?P<after>[^\W\d_]))"
)
OPENED = {"open": 1, "close": -1, "alone": 0}  # how many more elements are open after a tag than before it


@dataclass(frozen=True)
class Mark(Tag):
    """A tag that is not markup of the file: the pieces that it stands for are written."""

    pieces: tuple[Piece, ...] = ()


SEAM = Mark("alone", "", breaks=True)


@dataclass
class Sentence:
    """The text that the model reads, in which a run of white space is one blank, and its tags with their places.

    A place is the start and end of a tag's text: empty, if it shares one blank with the text before it. A
    tag is spaced if white space is on both sides of it. `gap` are the pieces before the sentence, white space and
    tags; `opened` elements that began before it go on in it.
    """

    text: str
    tags: list[tuple[int, int, Tag, bool]]
    gap: list[Piece]
    opened: int

    @property
    def runs(self) -> list[Span]:
        """The places of the tags that a reader sees text of, which is carried."""
        return [(start, end) for start, end, _, _ in self.tags if start < end]

    @property
    def depth(self) -> int:
        """The greatest nesting of elements around its words, if they have tags between them."""
        return (
            max(accumulate((OPENED[tag.kind] for _, _, tag, _ in self.tags), initial=self.opened)) if self.tags else 0
        )


class SegmentSentences:
    """A segment cut into sentences. `end` are the pieces after the last of them."""

    def __init__(self, pieces: Sequence[Piece], split: Split, keep: Sequence[re.Pattern] = ()):
        """`keep` matches text that is carried."""
        text, tags = _flat(_with_marks(list(kept_apart(pieces, keep))))
        spans = _sentence_spans(text, tags, split)
        by_home = defaultdict(list)
        for tag, home in zip(tags, _homes(tags, spans)):
            by_home[home].append(tag)
        self.sentences: list[Sentence] = []
        opened = position = 0
        for number, (start, end) in enumerate(spans):
            gap, inner = by_home[2 * number], by_home[2 * number + 1]
            opened += _opened(gap)
            lengths = _collapsed_lengths(text[start:end]) if inner else []
            places = [
                (
                    lengths[max(0, min(place, end) - start)],
                    lengths[max(0, min(place + len(tag.text) * bool(tag.text.strip()), end) - start)],
                    tag,
                    text[start:place][-1:].isspace() and text[place:end][:1].isspace(),
                )
                for place, tag in inner
            ]
            pieces_before = _gap_pieces(text, gap, position, start)
            self.sentences.append(Sentence(_collapsed(text[start:end]), places, pieces_before, opened))
            opened += _opened(inner)
            position = end
        self.end = _gap_pieces(text, by_home[2 * len(spans)], position, len(text))

    def translated(
        self, translations: Sequence[str], fits: Sequence[Fit | None], carried: Sequence[CarriedSentence | None] = ()
    ) -> list[Piece] | None:
        """The pieces with these translations, one per sentence; None if no text changes.

        A sentence whose translation is empty keeps its text. `fits` are those of `word_fits`; None: by position.
        `carried` are the sentences with runs, as translated; without them the runs are searched.
        """
        texts = [new.strip() or own.text for own, new in zip(self.sentences, translations, strict=True)]
        if all(own.text == new for own, new in zip(self.sentences, texts)):
            return None
        pieces: list[Piece] = []
        for number, (sentence, text, fit) in enumerate(zip(self.sentences, texts, fits, strict=True)):
            gap = sentence.gap
            if pieces and gap in ([" "], []) and isinstance(pieces[-1], str):
                gap = [blank_behind(pieces[-1])]
            own = carried[number] if carried else None
            pieces += [*gap, *_with_markup(sentence, text, fit, own)]
        written = (piece.pieces if isinstance(piece, Mark) else [piece] for piece in [*pieces, *self.end])
        return joined(chain.from_iterable(written))


def _with_markup(sentence: Sentence, text: str, fit: Fit | None, carried: CarriedSentence | None) -> Iterator[Piece]:
    """The pieces of a translation with the tags of its sentence, which replace their marks."""
    if text == sentence.text or not sentence.tags:
        position = 0
        for start, end, tag, _ in sentence.tags:
            yield from (sentence.text[position:start], tag)
            position = end
        yield text[position:]
        return
    if carried is None or not carried.has_words:
        fit = None if sentence.runs else fit
        carried = CarriedSentence.read(sentence.text, sentence.runs, text)
    inner = [(carried.place(place), tag, spaced) for place, end, tag, spaced in sentence.tags if place == end]
    root = markup_tree(len(carried.source), inner, sentence.opened)
    shown = {(start, end): tag for start, end, tag, _ in sentence.tags if start < end}
    for piece in project(root, carried.source, carried.translation, fit, carried.marks):
        for part in carried.parts(piece) if isinstance(piece, str) else [piece]:
            span = carried.spans[part] if isinstance(part, int) else (0, 0)
            yield shown.get(span, carried.text[slice(*span)]) if isinstance(part, int) else part


def kept_apart(pieces: Iterable[Piece], keep: Sequence[re.Pattern]) -> Iterator[Piece]:
    """The pieces with the matches of these patterns as standalone tags."""
    for piece in pieces:
        if isinstance(piece, Tag) or not keep:
            yield piece
            continue
        position = 0
        for start, end in matches(piece, keep):
            if start > position:
                yield piece[position:start]
            yield Tag("alone", None, piece[start:end])
            position = end
        if position < len(piece):
            yield piece[position:]


def _with_marks(pieces: list[Piece]) -> list[Piece]:
    """The pieces with elements that are a mark after a word as one tag each, and a seam between words that touch."""
    shapes = list(map(_shape, pieces))
    starts, shape = list(accumulate(map(len, shapes), initial=0)), "".join(shapes)
    edits: list[tuple[int, int, Tag]] = []
    for match in NOTE.finditer(shape):
        first, last = (bisect_right(starts, place) - 1 for place in match.span("note"))
        note = pieces[first:last]
        edits.append((first, last, Mark("alone", None, "".join(map(_text, note)), pieces=tuple(note))))
    for match in TOUCHING.finditer(shape):
        number = bisect_right(starts, match.end()) - 1
        closing = pieces[number - 1]
        is_link = isinstance(closing, Tag) and LINK_END.match(closing.raw or "")
        if is_link or match["before"].islower() and match["after"].isupper():
            edits.append((number, number, SEAM))
    for first, last, tag in reversed(sorted(edits, key=lambda edit: edit[0])):
        pieces[first:last] = [tag]
    return pieces


def _shape(piece: Piece) -> str:
    """The visible text of a piece, or one character for a tag without text."""
    if isinstance(piece, str):
        return piece
    return "\n" if piece.breaks else piece.text or {"open": OPEN, "close": CLOSE, "alone": ALONE}[piece.kind]


def _text(piece: Piece) -> str:
    return piece.text if isinstance(piece, Tag) else piece


def _flat(pieces: Iterable[Piece]) -> tuple[str, list[tuple[int, Tag]]]:
    """The text that a reader sees, and the tags with their places in it."""
    text, tags = "", []
    for piece in pieces:
        if isinstance(piece, Tag):
            tags.append((len(text), piece))
        text += piece if isinstance(piece, str) else piece.text
    return text, tags


def _sentence_spans(text: str, tags: list[tuple[int, Tag]], split: Split) -> list[tuple[int, int]]:
    """(start, end) of the sentences without the white space around them; none ends inside a standalone tag."""
    breaks = [place for place, tag in tags if tag.breaks]
    opaque = [(place, place + len(tag.text)) for place, tag in tags if tag.text]  # in order, none overlaps another

    def cuts(position: int) -> bool:
        number = bisect_left(opaque, (position, 0)) - 1
        return number >= 0 and position < opaque[number][1]

    spans: list[tuple[int, int]] = []
    for begin, stop in zip([0, *breaks], [*breaks, len(text)]):
        part = text[begin:stop]
        ends = _ends(part, split)
        own: list[tuple[int, int]] = []
        for start, end in zip([0, *ends[:-1]], ends):
            words = WORDS.search(text, begin + start, begin + end)
            if words and own and (cuts(words.start()) or cuts(own[-1][1])):
                own[-1] = (own[-1][0], words.end())
            elif words:
                own.append(words.span())
        spans += own
    return spans


def _ends(part: str, split: Split) -> list[int]:
    """The ends of the sentences of a text; it is one sentence if the splitter changes it."""
    sentences = list(split(re.sub(r"\s", " ", part)))
    ends, position = [], 0
    for sentence in sentences:
        position += len(sentence)
        ends.append(position)
    return ends if position == len(part) else [len(part)]


def _homes(tags: list[tuple[int, Tag]], spans: list[tuple[int, int]]) -> list[int]:
    """The place of each tag: in sentence k (2 k + 1), or in the gap before it (2 k).

    An element that ends in the sentence before which it begins belongs to it, and so does one that begins in the
    sentence after which it ends; what is around whole sentences stays in the gaps.
    """
    starts, ends = zip(*spans, (math.inf, math.inf))
    homes: list[int] = []
    for place, tag in tags:
        number = bisect_right(ends, place)
        homes.append(2 * number + (place > starts[number] or place == starts[number] and bool(tag.text)))
    own = list(homes)
    stack: list[int] = []
    for number, (_, tag) in enumerate(tags):
        if tag.kind == "open":
            stack.append(number)
        elif tag.kind == "close":
            begin = stack.pop()
            if homes[begin] % 2 == 0 and homes[number] == homes[begin] + 1:
                own[begin] = homes[number]
            elif homes[number] % 2 == 0 and homes[begin] == homes[number] - 1:
                own[number] = homes[begin]
    for number in range(1, len(tags)):  # text after a tag that moved to the next sentence moves too
        if own[number] == homes[number] == homes[number - 1] < own[number - 1]:
            own[number] = own[number - 1]
    for number in range(len(tags) - 2, -1, -1):  # as does text before one that moved to the previous sentence
        if own[number] == homes[number] == homes[number + 1] > own[number + 1]:
            own[number] = own[number + 1]
    return own


def _opened(tags: Iterable[tuple[int, Tag]]) -> int:
    """How many more elements are open after these tags than before them."""
    return sum(OPENED[tag.kind] for _, tag in tags)


def _gap_pieces(text: str, tags: list[tuple[int, Tag]], position: int, end: int) -> list[Piece]:
    pieces: list[Piece] = []
    for place, tag in tags:
        pieces += [text[position:place], tag]
        position = place + len(tag.text)
    return joined([*pieces, text[position:end]])


def _collapsed(text: str) -> str:
    return " ".join(text.split())


def _collapsed_lengths(text: str) -> list[int]:
    """How long the collapsed beginnings of a stripped text are: of 0, 1, ... characters."""
    kept = [not (letter.isspace() and before.isspace()) for before, letter in zip("." + text, text)]
    return [0, *accumulate(kept)]
