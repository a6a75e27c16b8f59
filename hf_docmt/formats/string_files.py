"""The bases of formats that hold strings of programs: files of strings, and of strings with their translations."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar

from hf_docmt.data.language_codes import primary_language
from hf_docmt.files import DataError
from hf_docmt.formats.document_format import DocumentFormat, FormatOptions, Piece, Segment, Tag
from hf_docmt.formats.inline_strings import (
    HALF_CHARACTER,
    ICU_MESSAGE,
    PLACEHOLDERS,
    has_words,
    is_message,
    is_text,
    plain_string,
    string_pieces,
)
from hf_docmt.formats.text_positions import Slot, TextFormat


def locale_code(code: str, separator: str) -> str:
    """A language code as files of strings have it: `pt_BR`, `pt-BR`, `de`."""
    tag = code.replace("-", "_")
    return (tag if re.fullmatch(r"[a-z]{2}(_[A-Za-z0-9]{2,8})*", tag) else primary_language(code)).replace(
        "_", separator
    )


class StringSlot(Slot):
    """A string in a file; `escape` says how a text is written there."""

    def rendered(self, pieces: Sequence[Piece], raw: Callable[[Tag], str]) -> str:
        return self.escape(plain_string(pieces))


class BilingualFormat(DocumentFormat):
    """A file of sources with their translations, which are made or replaced. A subclass adds its units."""

    placeholders: re.Pattern | None = PLACEHOLDERS
    takes: ClassVar[frozenset[str]] = frozenset({"all"})
    is_bilingual = True
    options: FormatOptions

    def __init__(self) -> None:
        super().__init__()
        self.slots: list[tuple[Any, list[Segment]]] = []

    def add(self, unit: Any, segments: list[Segment]) -> None:
        """Add a unit if it has words. ICU messages with branches are counted: they would have to be taken apart."""
        if any(is_message(segment.pieces) for segment in segments):
            self.remarks[ICU_MESSAGE] += 1
        elif any(has_words(segment.pieces) for segment in segments):
            self.slots.append((unit, segments))

    def segments(self, languages: Iterable[str | None]) -> list[Segment]:
        """The segments of the units. DataError: existing translations are in another of these `languages`."""
        segments = [segment for _, segments in self.slots for segment in segments]
        target = self.options.target_lang
        others = [code for code in languages if code and target and primary_language(code) != primary_language(target)]
        if others and not self.options.all and any(segment.has_translation for segment in segments):
            raise DataError(
                f"its translations are in {others[0]!r}, and those into {target!r} would be added to them; name that "
                "language, or replace them (--all)"
            )
        return segments

    def translated_units(
        self, translations: Sequence[list[Piece] | None]
    ) -> Iterator[tuple[Any, list[list[Piece] | None], float | None]]:
        """The units that get a translation, the pieces of their segments, and the lowest score of these.

        None instead of pieces: its translation stays.
        """
        rest = iter(zip(translations, self.scores or [None] * len(translations), strict=True))
        for unit, segments in self.slots:
            new, scores = zip(*islice(rest, len(segments)))
            if any(pieces is not None for pieces in new):
                yield unit, list(new), min((score for score in scores if score is not None), default=None)

    def is_found(self, pieces: Sequence[Piece]) -> bool:
        """Always, since the source stays."""
        return True


class StringFile(TextFormat):
    """A file of strings in one language, in Unicode. A subclass says which those are."""

    placeholders: re.Pattern | None = PLACEHOLDERS

    @classmethod
    def tag_name(cls, raw: str) -> str | None:
        """None for anything but an XML tag: it stands for itself unless it is at the border of a word."""
        return super().tag_name(raw) if raw.startswith("<") else None

    def is_found(self, pieces: Sequence[Piece]) -> bool:
        text = plain_string(pieces)
        return self.is_meant(text) and not is_message([text])

    def is_meant(self, text: str) -> bool:
        """Whether a string is for people."""
        return is_text(text)

    def is_translated(self, text: str) -> bool:
        """Whether a string is for people. ICU messages with branches are counted: they would have to be taken apart."""
        self.remarks[ICU_MESSAGE] += is_message([text])
        return self.is_meant(text) and not is_message([text]) and not HALF_CHARACTER.search(text)

    def add(self, start: int, end: int, text: str, name: str, encode: Callable[[str], str]) -> None:
        segment = Segment(string_pieces(text), f"line {self.page.line(start)}, {name}")
        self.page.slots.append(StringSlot(start, end, segment, encode))
