"""The sentences of a segment as the model reads them, and the segment again with their translations."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from hf_docmt.formats.document_format import Piece, Tag, joined
from hf_docmt.formats.projection import markup_tree, project
from hf_docmt.modeling.opaque_runs import CarriedSentence, Span, matches
from hf_docmt.modeling.text_splitting import blank_behind
from hf_docmt.systems.word_alignment import Fit

Split = Callable[[str], Iterable[str]]
MARK = re.compile(r"[\[(]?(?:\d{1,3}|[*†‡§¶]+)[\])]?")  # of a note, or a small number
LINK_END = re.compile(r"</a\b|\]")
OPENED = {"open": 1, "close": -1, "alone": 0}  # how many more elements are open behind a tag than before it
SEAM = Tag("alone", "", breaks=True)


@dataclass
class Sentence:
    """The text that the model reads, in which a run of white space is one blank, and its tags with their places.

    A place is from where to where the text of a tag stands: nowhere, if it is one blank with what stands before it. A
    tag is spaced if white space stands on both sides of it. `gap` are the pieces before the sentence, white space and
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
        """The most elements in each other around its words, if they have tags between them."""
        return (
            max(accumulate((OPENED[tag.kind] for _, _, tag, _ in self.tags), initial=self.opened)) if self.tags else 0
        )


class SegmentSentences:
    """A segment cut into sentences. `end` are the pieces behind the last of them."""

    def __init__(
        self,
        pieces: Sequence[Piece],
        split: Split,
        keep: Sequence[re.Pattern] = (),
    ):
        """`keep` matches text that is carried."""
        self.written: dict[int, list[Piece]] = {id(SEAM): []}  # id of a tag that is no markup -> what it stands for
        pieces = list(_with_notes(list(kept_apart(pieces, keep)), self.written))
        text, tags = _flat(_with_seams(pieces))
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

    @property
    def depth(self) -> int:
        """That of the sentence with the deepest markup."""
        return max((sentence.depth for sentence in self.sentences), default=0)

    def translated(
        self, translations: Sequence[str], fits: Sequence[Fit | None], carried: Sequence[CarriedSentence | None] = ()
    ) -> list[Piece] | None:
        """The pieces with these translations, one a sentence; None where nothing is another text.

        A sentence whose translation is empty keeps its text. `fits` are those of `word_fits`; None: by position.
        `carried` are the sentences with runs as they were translated; without them the runs are looked for.
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
        pieces = [each for piece in [*pieces, *self.end] for each in self.written.get(id(piece), [piece])]
        return joined(pieces)


def _with_markup(sentence: Sentence, text: str, fit: Fit | None, carried: CarriedSentence | None) -> Iterator[Piece]:
    """The pieces of a translation with the tags of its sentence: those that are read in place of their marks."""
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
    """The pieces with what matches one of these as a tag that stands alone."""
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


def _with_seams(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces with a seam between two elements whose words touch, such as two links."""
    for number, (piece, before, opened) in enumerate(zip(pieces, _last_characters(pieces), _openings(pieces))):
        text = _text(pieces[number + opened]) if number + opened < len(pieces) else ""
        closing = pieces[number - 1] if number else ""
        if opened and before.isalpha() and text[:1].isalpha() and isinstance(closing, Tag) and closing.kind == "close":
            if LINK_END.match(closing.raw or "") or before.islower() and text[0].isupper():
                yield SEAM
        yield piece


def _with_notes(pieces: Sequence[Piece], written: dict[int, list[Piece]]) -> Iterator[Piece]:
    """The pieces with elements that are a mark behind a word as one tag each."""
    number, before, opened = 0, _last_characters(pieces), _openings(pieces)
    while number < len(pieces):
        is_behind_word = before[number].isalpha() or before[number] in tuple(".,;!?\"'”’»)")
        note = _note(pieces, number, opened[number]) if is_behind_word else []
        if note:
            mark = Tag("alone", None, "".join(map(_text, note)))
            written[id(mark)] = note
        yield mark if note else pieces[number]
        number += len(note) or 1


def _note(pieces: Sequence[Piece], start: int, opened: int) -> list[Piece]:
    """The elements that begin here, one in the other, if a mark is all that they have and no word goes on behind it."""
    end = start + 2 * opened + 1
    note = list(pieces[start:end])
    if not opened or end > len(pieces) or not MARK.fullmatch(_text(note[opened])):
        return []
    after = _text(pieces[end])[:1] if end < len(pieces) else ""
    return note if all(_is(piece, "close") for piece in note[opened + 1 :]) and not after.isalnum() else []


def _openings(pieces: Sequence[Piece]) -> list[int]:
    """At each piece how many elements open, one in the other."""
    return list(accumulate(reversed(pieces), lambda after, piece: after + 1 if _is(piece, "open") else 0, initial=0))[
        :0:-1
    ]


def _last_characters(pieces: Sequence[Piece]) -> list[str]:
    """Before each piece the last character of its line."""
    last, before = "", []
    for piece in pieces:
        before.append(last)
        last = "" if isinstance(piece, Tag) and piece.breaks else _text(piece)[-1:] or last
    return before


def _is(piece: Piece, kind: str) -> bool:
    return isinstance(piece, Tag) and piece.kind == kind


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
    """(start, end) of the sentences without the white space around them; none ends inside what stands alone."""
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
            start, end = _stripped(text, begin + start, begin + end)
            if start >= end:
                continue
            if own and (cuts(start) or cuts(own[-1][1])):
                own[-1] = (own[-1][0], end)
            else:
                own.append((start, end))
        spans += own
    return spans


def _ends(part: str, split: Split) -> list[int]:
    """Where the sentences of a text end; the whole is one where the splitter changes the text."""
    sentences = list(split(re.sub(r"\s", " ", part)))
    ends, position = [], 0
    for sentence in sentences:
        position += len(sentence)
        ends.append(position)
    return ends if position == len(part) else [len(part)]


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    inner = text[start:end]
    return start + len(inner) - len(inner.lstrip()), start + len(inner.rstrip())


def _homes(tags: list[tuple[int, Tag]], spans: list[tuple[int, int]]) -> list[int]:
    """Where each tag belongs: to sentence k (2 k + 1), or to the gap before it (2 k).

    An element that ends in the sentence before which it begins belongs to it, and so does one that begins in the
    sentence behind which it ends; what is around whole sentences stays in the gaps.
    """
    ends = [end for _, end in spans]
    homes = [_home(place, tag, spans, bisect_right(ends, place)) for place, tag in tags]
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
    for number in range(1, len(tags)):  # what stands behind a tag that moved to the next sentence, moves too
        if own[number] == homes[number] == homes[number - 1] < own[number - 1]:
            own[number] = own[number - 1]
    for number in range(len(tags) - 2, -1, -1):  # and what stands before one that moved to the sentence before
        if own[number] == homes[number] == homes[number + 1] > own[number + 1]:
            own[number] = own[number + 1]
    return own


def _home(place: int, tag: Tag, spans: list[tuple[int, int]], number: int) -> int:
    """Of a tag by its place; `number` is that of the first span that ends behind it."""
    if number == len(spans):
        return 2 * number
    start, _ = spans[number]
    return 2 * number if place < start or place == start and not tag.text else 2 * number + 1


def _opened(tags: Iterable[tuple[int, Tag]]) -> int:
    """How many more elements are open behind these tags than before them."""
    return sum(OPENED[tag.kind] for _, tag in tags)


def _gap_pieces(text: str, tags: list[tuple[int, Tag]], position: int, end: int) -> list[Piece]:
    pieces: list[Piece] = []
    for place, tag in tags:
        pieces += [text[position:place], tag]
        position = place + len(tag.text)
    pieces.append(text[position:end])
    return [piece for piece in pieces if piece != ""]


def _collapsed(text: str) -> str:
    return " ".join(text.split())


def _collapsed_lengths(text: str) -> list[int]:
    """How long the collapsed beginnings of a stripped text are: of 0, 1, ... characters."""
    kept = [not (letter.isspace() and before.isspace()) for before, letter in zip("." + text, text)]
    return [0, *accumulate(kept)]
