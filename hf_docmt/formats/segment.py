"""What a document is made of, whatever its format: segments of text with inline markup."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Tag:
    """A piece of inline markup: it opens an element, closes one, or stands alone.

    `raw` is written as it is; None: `text`, as the format writes text. `text` is what a reader of the document sees of
    a piece that is not translated (code, a placeholder): the model reads it in its sentence. At a piece that `breaks`,
    such as a line break, a sentence ends.
    """

    kind: Literal["open", "close", "alone"]
    raw: str | None
    text: str = ""
    breaks: bool = False


Piece = str | Tag  # text without escapes, or markup


@dataclass
class Segment:
    """A paragraph, heading, item, cell or string: what is translated as one, with its inline markup well nested.

    `location` is for messages. `part` names the document in a file that holds several, such as chapters, in their
    order; context does not cross from one to the next. `has_translation`: a bilingual file has one, which
    `--only-missing` leaves as it is.
    """

    pieces: list[Piece]
    location: str = ""
    part: str = ""
    has_translation: bool = False

    def becomes(self, pieces: list[Piece] | None) -> bool:
        """Whether these pieces, if any, are other ones."""
        return pieces is not None and pieces != self.pieces

    @property
    def text(self) -> str:
        """What the model reads of it."""
        return "".join(piece if isinstance(piece, str) else piece.text for piece in self.pieces)


def has_letters(pieces: Iterable[Piece]) -> bool:
    """Whether there is a word outside of the tags."""
    return any(character.isalpha() for piece in pieces if isinstance(piece, str) for character in piece)
