"""What every format of documents has to do, whatever the file: nothing is lost, nothing else is touched."""

import random
from html import unescape

from hf_docmt.formats.document_format import DocumentFormat, FormatOptions, Segment, Tag


def parsed(format: type[DocumentFormat], data: bytes, **options) -> tuple[DocumentFormat, list[Segment]]:
    """A format with a file that it has read, and the segments of the file."""
    document = format()
    return document, document.parse(data, FormatOptions(**options))


def changed(format: type[DocumentFormat], data: bytes, change=str.swapcase, **options) -> bytes:
    """The file with every piece of text changed."""
    document, segments = parsed(format, data, **options)
    new = [[change(piece) if isinstance(piece, str) else piece for piece in segment.pieces] for segment in segments]
    return document.write(new)


def check_round_trips(format: type[DocumentFormat], data: bytes, seed: int = 0, **options) -> int:
    """Check a file with translators that change nothing, swap cases twice, and move tags; the number of its tags.

    Swapping cases gives the same bytes after two times only where the format writes escapes as the file has them, and
    where no letter changes its number: otherwise the texts are compared.
    """
    document, segments = parsed(format, data, **options)
    assert document.write([None] * len(segments)) == data
    document, segments = parsed(format, data, **options)
    assert document.write([list(segment.pieces) for segment in segments]) == data
    once = changed(format, data, swapped, **options)
    twice = changed(format, once, swapped, **options)
    again = parsed(format, twice, **options)[1]
    assert [texts(segment) for segment in again] == [texts(segment) for segment in segments]
    rng = random.Random(seed)
    document, segments = parsed(format, data, **options)
    moved = document.write([shuffled(segment.pieces, rng) for segment in segments])
    after = parsed(format, moved, **options)[1]
    assert [tags(segment) for segment in after] == [tags(segment) for segment in segments]
    return sum(len(tags(segment)) for segment in segments)


def swapped(text: str) -> str:
    """ASCII letters in the other case."""
    return "".join(letter.swapcase() if letter.isascii() else letter for letter in text)


def texts(segment: Segment) -> list[str]:
    return [piece if isinstance(piece, str) else _raw(piece) for piece in segment.pieces]


def tags(segment: Segment) -> list[str]:
    return sorted(_raw(piece) for piece in segment.pieces if isinstance(piece, Tag))


def _raw(tag: Tag) -> str:
    """A tag as written, but for escapes in the values of its attributes, some of which are translated."""
    return unescape(str(tag.raw))


def shuffled(pieces: list, rng: random.Random) -> list:
    """Text with the same tags in other places, well nested: children of an element change their order."""

    def group(start: int) -> tuple[list, int]:
        children, number = [], start
        while number < len(pieces):
            piece = pieces[number]
            if isinstance(piece, Tag) and piece.kind == "close":
                return children, number
            if isinstance(piece, Tag) and piece.kind == "open":
                inner, end = group(number + 1)
                rng.shuffle(inner)
                children.append([piece, *(part for child in inner for part in child), pieces[end]])
                number = end
            else:
                children.append([piece])
            number += 1
        return children, number

    children, _ = group(0)
    if len(children) < 2:
        return list(pieces)
    first, last = children[0], children[-1]  # stay, so that white space at the borders of the segment does
    inner = children[1:-1]
    rng.shuffle(inner)
    return [part for child in [first, *inner, last] for part in child]
