"""Placeholders and addresses in a translation, each as often as the source has it, in an order that programs read."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from hf_docmt.formats.document_format import Piece, Tag
from hf_docmt.systems.word_alignment import Fit, words_of

# which argument they stand for, the order says: those of printf without a number or name, and {}
POSITIONAL = re.compile(r"%(?![%({]|\d+\$|L?\d+$|[\w.]+%$)\S+|\{(?:[!:][^{}]*)?\}")
# without the mark of a sentence behind it, and without a bracket that opens before it; ideographs end it
_SIGN = r"[^\s<>\"()\u2e80-\uffef]"
_REST = rf"(?:\({_SIGN}*\)|{_SIGN})*(?:\({_SIGN}*\)|(?!['.,:;!?*_\]}}»”’…]){_SIGN})"
ADDRESS = re.compile(
    rf"(?<![A-Za-z0-9])(?:(?:https?|ftps?)://|www\.){_REST}"
    r"|(?<![A-Za-z0-9._%+-])(?:mailto:)?[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"
)
LEAST_RATIO = 0.2  # of what is equal in a placeholder and its broken copy


def matches(text: str, patterns: Iterable[re.Pattern]) -> Iterator[tuple[int, int]]:
    """Spans that match, none overlapping one before; of two that begin together the longer one."""
    position = 0
    spans = (match.span() for pattern in patterns for match in pattern.finditer(text))
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if position <= start < end:
            yield start, end
            position = end


def copies(names: Collection[str], read: str, patterns: Sequence[re.Pattern]) -> list[re.Pattern]:
    """What finds broken copies of these placeholders in a translation; `read` is the text beside them."""
    found = [*patterns] if names else []
    for name in names:
        if "@" in name and ADDRESS.fullmatch(name):  # of which a model writes a hyphen for @
            found.append(re.compile(r"[\W_]{1,3}".join(re.findall(r"[^\W_]+", name))))
    signs = "".join(sign for sign in "%$" if sign not in read and any(sign in name for name in names))
    if signs:  # behind a number it may translate "percent"
        found.append(re.compile(rf"(?<!\d)(?<!\d\s)[{signs}](?:\(\w*\)|\d+\$|[-#+]\w+|[\d.]+)?"))
    return found


def mended(text: str, names: Sequence[str], patterns: Sequence[re.Pattern]) -> tuple[str, list[int]]:
    """A text with each of these placeholders once at most, in their order where it counts, and no broken copies.

    For each character of it, its place in `text`; -1: it has none.
    """
    whole = list(matches(text, [re.compile(re.escape(name)) for name in names]))
    others = matches(text, patterns)
    broken = [(start, end) for start, end in others if all(end <= first or start >= last for first, last in whole)]
    spots, missing = sorted([*whole, *broken]), list(names)
    chosen = dict.fromkeys(spots, "")
    for start, end in spots:
        if text[start:end] in missing:
            missing.remove(text[start:end])
            chosen[start, end] = text[start:end]
    for start, end in spots:
        ratios = [SequenceMatcher(None, name, text[start:end]).ratio() for name in missing]
        if not chosen[start, end] and max(ratios, default=0) >= LEAST_RATIO:
            chosen[start, end] = missing.pop(ratios.index(max(ratios)))
    left = Counter(chosen.values())
    ordered = []
    for name in filter(POSITIONAL.fullmatch, names):
        ordered += [name] * (left[name] > 0)
        left[name] -= 1
    in_turn = iter(ordered)
    new, origin, position = "", list[int](), 0
    for (start, end), name in chosen.items():
        name = next(in_turn) if POSITIONAL.fullmatch(name) else name
        same = name == text[start:end]
        new += text[position:start] + name
        origin += [*range(position, start), *(range(start, end) if same else [-1] * len(name))]
        position = end + (not name and new[-1:].isspace() and text[end : end + 1].isspace())
    return new + text[position:], [*origin, *range(position, len(text))]


def moved_fit(fit: Fit, source: str, text: str, new: str, origin: Sequence[int], names: Collection[str]) -> Fit:
    """The fit of a text for the words that `mended` left of it, whose placeholders fit those of the source alone."""
    rows = {start: row for row, (start, _) in enumerate(words_of(text))}
    moved = {rows.get(origin[start], -1): row for row, (start, _) in enumerate(words_of(new))}
    pairs = [pair for name in set(names) for pair in zip(_word_numbers(new, name), _word_numbers(source, name))]
    own = [{pair[side] for pair in pairs} for side in (0, 1)]
    kept = [[moved[int(row)], column, value] for row, column, value in fit if row in moved]
    kept = [each for each in kept if each[0] not in own[0] and each[1] not in own[1]]
    return [*kept, *([row, column, 1.0] for row, column in pairs)]


def _word_numbers(text: str, name: str) -> list[int]:
    """The numbers of the words that the copies of a placeholder have, copy for copy."""
    spans = [match.span() for match in re.finditer(re.escape(name), text)]
    words = list(enumerate(words_of(text)))
    return [number for first, last in spans for number, (start, end) in words if start < last and end > first]


def in_order(pieces: Sequence[Piece], tags: Iterable[Tag]) -> Iterator[Piece]:
    """The pieces with the placeholders whose order counts in that of the tags of the source."""
    ordered = iter([tag for tag in tags if _is_positional(tag)])
    for piece in pieces:
        yield next(ordered) if isinstance(piece, Tag) and _is_positional(piece) else piece


def _is_positional(tag: Tag) -> bool:
    return tag.raw is None and POSITIONAL.fullmatch(tag.text) is not None


def placeholders_of(pieces: Iterable[Piece], patterns: Sequence[re.Pattern]) -> tuple[list[str], list[str]]:
    """The placeholders of a segment that is written: those whose order counts, and the others sorted."""
    text = "".join(piece if isinstance(piece, str) else piece.text if piece.raw is None else "\n" for piece in pieces)
    found = [text[start:end] for start, end in matches(text, patterns)]
    positional = [name for name in found if POSITIONAL.fullmatch(name)]
    return positional, sorted(name for name in found if not POSITIONAL.fullmatch(name))
