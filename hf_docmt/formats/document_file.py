"""A file with markup as documents of sentences, and the file again with their translations."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING

from hf_docmt.data.documents import TARGETS, make_row
from hf_docmt.data.readers.running_text import sentence_splitter
from hf_docmt.data.word_fits import Fit
from hf_docmt.files import STDIN, DataError, display_path, open_bytes
from hf_docmt.formats.document_format import (
    DocumentFormat,
    FormatOptions,
    KeptPieces,
    Piece,
    Remark,
    Segment,
    Tag,
    joined,
    located,
)
from hf_docmt.formats.segment_sentences import SegmentSentences, kept_apart
from hf_docmt.formats.xml_positions import MAX_DEPTH
from hf_docmt.messages import counted
from hf_docmt.modeling.opaque_runs import COMMON, CarriedSentence, Span

if TYPE_CHECKING:
    from hf_docmt.systems import System

MARKUP = "docmt_markup"  # column of the rows: the file, sentences with inline markup, places of opaque runs
FITS = "word_fits"  # of a result row: those of the sentences with markup, by number
CARRIED = "carried"  # of a result row: those of the sentences with opaque runs, by number


@dataclass
class WrittenFile:
    """The result for a file: counts and problems."""

    segments: int = 0
    tags: int = 0
    unchanged: int = 0  # segments whose translation is the text that they had
    by_position: int = 0  # sentences whose markup was placed by relative position
    problems: list[str] = field(default_factory=list)
    remarks: Counter[Remark] = field(default_factory=Counter)
    kept: int = 0  # segments with an earlier translation

    def add(self, other: "WrittenFile") -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def text(self) -> str:
        """The line of the report, after a line for each problem."""
        placed = f", {self.by_position} with markup placed by position" if self.by_position else ""
        kept = f", {self.kept} kept as translated before" if self.kept else ""
        same = f", {self.unchanged} the same as before" if self.unchanged else ""
        told = ((counted(count, noun), what) for (noun, what), count in sorted(self.remarks.items()) if count)
        remarks = "".join(f", {count} {what}" for count, what in told)
        segments, tags = counted(self.segments, "segment"), counted(self.tags, "tag")
        nothing = "" if self.segments else ", nothing to translate"
        return "\n".join([*self.problems, f"{segments}{nothing}{kept}{same}, {tags} kept{placed}{remarks}"])


@dataclass
class DocumentTranslation:
    """The translated pieces of each segment, None: unchanged, and its score: the lowest one of its sentences."""

    pieces: list[list[Piece] | None]
    scores: list[float | None]
    by_position: int = 0  # sentences whose markup was placed by relative position


class DocumentFile:
    """A file of a format. DataError: it cannot be read, with what to do.

    `name` is that of the file in ids of documents: a file is one document, or several where it has parts.
    """

    def __init__(self, data: bytes, name: str, format: DocumentFormat, options: FormatOptions, location: str = ""):
        self.name, self.format, self.options, self.location = name, format, options, location or name
        self.size = len(data)
        with located(self.location):
            segments = format.parse(data, options)
        split = sentence_splitter(options.source_lang)
        self.opaque = [pattern for pattern in (COMMON, format.placeholders) if pattern]
        keep = [options.keep, *self.opaque] if options.keep else self.opaque
        self.segments = [None if segment.has_translation and not options.all else segment for segment in segments]
        self.kept: dict[int, KeptPieces] = {}  # translations of segments that stay, and of sentences, by number
        self.known: dict[int, dict[int, str]] = {}
        self.unchanged: bytes | None = None  # the translation of a file that has not changed
        self.sentences = [SegmentSentences(segment.pieces if segment else [], split, keep) for segment in self.segments]
        for segment, own in zip(self.segments, self.sentences):
            if segment and max((each.depth for each in own.sentences), default=0) > MAX_DEPTH:
                raise DataError(f"{self.location}, {segment.location}: nested more than {MAX_DEPTH} deep; simplify it")

    @classmethod
    def read(cls, path: str | Path, name: str, format: DocumentFormat, options: FormatOptions) -> "DocumentFile":
        """The file of a path."""
        if str(path) == STDIN:
            raise DataError(f"a document with markup ({format.name}) is read from a file; give its name instead of -")
        with open_bytes(path) as file:
            return cls(file.read(), name, format, options, display_path(path))

    def rows(self, languages: Sequence[str]) -> Iterator[tuple[str, dict]]:
        """Locations and rows of the document contract. DataError: a target side was requested."""
        if len(languages) > 1:
            raise DataError(
                f"{self.location}: {self.format.name} is read to be translated, got target language {languages[1]!r}; "
                "omit it, or use tsv or jsonl for parallel documents"
            )
        for part, numbers in self._parts():
            places = [(number, n) for number in numbers for n in range(len(self.sentences[number].sentences))]
            sentences = [self.sentences[number].sentences[n] for number, n in places]
            targets = {n: self.known.get(number, {}).get(place) for n, (number, place) in enumerate(places)}
            tagged = [n for n, (number, _) in enumerate(places) if sentences[n].tags and number not in self.kept]
            texts = [sentence.text for sentence in sentences]
            runs = [[number, *span] for number, sentence in enumerate(sentences) for span in sentence.runs]
            own: dict[str, dict] = {MARKUP: {"file": self.name, "tagged": tagged, "runs": runs}}
            if self.known:
                own[TARGETS] = {n: text for n, text in targets.items() if text is not None}
            yield self.location, make_row(self.location, self._id(part), texts, None, list(languages), **own)

    def translated(self, results: Mapping[str, dict]) -> tuple[bytes, WrittenFile]:
        """The file with the translations of result rows by document id; documents without one stay unchanged."""
        return self.written(self.translation(results))

    def translation(self, results: Mapping[str, dict]) -> DocumentTranslation:
        """The translations of result rows as pieces of segments."""
        pieces: list[list | None] = [None] * len(self.segments)
        scores: list[float | None] = [None] * len(self.segments)
        by_position = 0
        for part, numbers in self._parts():
            result = results.get(self._id(part), {"translation": [], "error": "not translated"})
            translations = marked_translations(result)
            own_scores = iter(result.get("score") or [None] * len(result["translation"]))
            for number in [] if "error" in result else numbers:
                own = self.sentences[number]
                chosen = list(islice(translations, len(own.sentences)))
                sure = [score for score in islice(own_scores, len(own.sentences)) if score is not None]
                scores[number] = min(sure, default=None)
                if number in self.kept:
                    pieces[number] = self.kept[number]
                    continue
                fits = [fit for _, fit, _ in chosen]
                by_position += sum(bool(each.tags) and not fit for each, fit in zip(own.sentences, fits))
                pieces[number] = own.translated(*zip(*chosen)) if chosen else None
                if self.options.bilingual:
                    pieces[number] = self._both(number, pieces[number])
                if pieces[number] is None and self.format.is_bilingual:
                    pieces[number] = self.segments[number].pieces
        return DocumentTranslation(pieces, scores, by_position)

    def counts(self, translation: DocumentTranslation) -> WrittenFile:
        """The counts of a translation that is written."""
        pieces = translation.pieces
        unchanged = sum(bool(each) and not each.becomes(new) for each, new in zip(self.segments, pieces))
        tags = sum(isinstance(piece, Tag) for new in pieces for piece in new or ())
        size, kept = sum(map(bool, self.segments)), len(self.kept)
        return WrittenFile(size, tags, unchanged, translation.by_position, kept=kept)

    def written(self, translation: DocumentTranslation) -> tuple[bytes, WrittenFile]:
        """The file with a translation, its counts and the problems found when it is read again."""
        if self.unchanged is not None:
            size = sum(map(bool, self.segments))
            return self.unchanged, WrittenFile(size, kept=size)
        written, pieces = self.counts(translation), translation.pieces
        self.format.scores = translation.scores
        data = self.format.write(pieces)
        written.problems = [*self._problems(data, pieces), *self._other_runs(pieces)]
        written.remarks = Counter(self.format.remarks)
        return data, written

    def _both(self, number: int, translation: list[Piece] | None) -> list[Piece] | None:
        """A segment with its translation below it, or after it in an attribute or title.

        Pictures, notes and their like stay in the first alone.
        """
        segment = self.segments[number]
        if segment is None or not translation or not segment.becomes(translation):
            return translation
        between = " / " if segment.is_value or not self.format.line_break else self.format.line_break
        shown = joined(piece for piece in translation if not is_silent(piece))
        shown = [re.sub(" {2,}", " ", piece) if isinstance(piece, str) else piece for piece in shown]
        return KeptPieces(joined([*segment.pieces, between, *shown]))

    def _parts(self) -> Iterator[tuple[str, list[int]]]:
        """The parts of the file and the numbers of their segments."""
        numbers = [number for number, segment in enumerate(self.segments) if segment]
        if not numbers or self.unchanged is not None:
            yield "", []
            return
        for part, group in groupby(numbers, lambda number: self.segments[number].part):
            yield part, list(group)

    def _id(self, part: str) -> str:
        return f"{self.name}#{part}" if part else self.name

    def _problems(self, data: bytes, pieces: Sequence[list[Piece] | None]) -> list[str]:
        """Problems of the written file: it has to be readable, with its former segments and markup.

        Segments may have other places, as pictures of a paragraph have when it is translated.
        """
        try:
            segments = self.format.read_again(data, self.options)
        except DataError as error:
            return [f"{self.name}: the written file cannot be read again ({error}); please report this"]
        expected = [
            replace(old, pieces=list(new)) if isinstance(new, KeptPieces) and old else old
            for old, new in zip(self.segments, pieces)
            if new is None or old is None or self.format.is_found(new)
        ]
        line_break = self.format.line_break
        if self.options.bilingual and line_break and str(line_break.raw).isspace():
            return []  # every line is a segment
        if len(segments) != len(expected):
            return [
                f"{self.name}: {len(expected)} segments were written, and {len(segments)} are read in the new file; "
                "compare the two files"
            ]
        compared = [(old, self._tag_names(old), self._tag_names(new)) for old, new in zip(expected, segments) if old]
        if Counter(before for _, before, _ in compared) == Counter(after for _, _, after in compared):
            return []
        return [
            f"{self.name}, {old.location}: the markup differs from the original; check it"
            for old, before, after in compared
            if before != after
        ]

    def _other_runs(self, pieces: Sequence[list[Piece] | None]) -> Iterator[str]:
        """Segments that lost or repeat an opaque run, or have a placeholder that the source has not."""
        own = [self.format.placeholders] if self.format.placeholders else []
        for old, new in zip(self.segments, pieces):
            if not old or not new or isinstance(new, KeptPieces):
                continue
            before, after = (_opaque_texts(each, self.opaque) for each in (old.pieces, new))
            added = after.keys() & _opaque_texts(new, own).keys() - before.keys()
            if added or any(after[run] != count for run, count in before.items()):
                yield f"{self.name}, {old.location}: the placeholders or URLs differ from the original; check them"

    def _tag_names(self, segment: Segment) -> tuple[str, ...]:
        tags = [piece.raw for piece in segment.pieces if isinstance(piece, Tag) and piece.raw is not None]
        return tuple(sorted(filter(None, map(self.format.tag_name, tags))))


def marked_translations(result: dict) -> Iterator[tuple[str, Fit | None, CarriedSentence | None]]:
    """The translations of a result row, with their fits and carried sentences; None without any."""
    fits, carried = result.get(FITS, {}), result.get(CARRIED, {})
    for number, text in enumerate(result["translation"]):
        own = carried.get(str(number))
        yield text, fits.get(str(number)), CarriedSentence(**own) if own else None


def is_silent(piece: Piece) -> bool:
    """Whether it is a standalone tag without text that breaks no line: a picture, a note."""
    return isinstance(piece, Tag) and piece.kind == "alone" and not piece.text and not piece.breaks


def _opaque_texts(pieces: Iterable[Piece], patterns: Sequence[re.Pattern]) -> Counter[str]:
    """The tags of a segment, and what these patterns match in it."""
    tags = (piece for piece in kept_apart(pieces, patterns) if isinstance(piece, Tag))
    return Counter(tag.text if tag.raw is None else tag.raw for tag in tags)


def given_runs(row: dict) -> dict[int, list[Span]]:
    """The opaque runs that the format of a row knows, by sentence."""
    runs: dict[int, list[Span]] = {}
    for number, start, end in row.get(MARKUP, {}).get("runs", ()):
        runs.setdefault(number, []).append((start, end))
    return runs


def with_markup(system: "System | None", row: dict, result: dict, carried: Mapping[int, CarriedSentence]) -> dict:
    """A result row with what places the markup of its row: word fits and carried sentences; none for other rows."""
    if MARKUP not in row:
        return result
    tagged = row[MARKUP]["tagged"]
    kept = {number: carried[number] for number in tagged if number in carried and carried[number].has_words}
    texts = {"source": [*result["source"]], "translation": [*result["translation"]]}
    for number, each in kept.items():
        texts["source"][number], texts["translation"][number] = each.source, each.translation
    marks = {str(number): asdict(each) for number, each in kept.items()}
    return result | {CARRIED: marks, FITS: sentence_fits(system, tagged, texts)}


def sentence_fits(system: "System | None", tagged: Sequence[int], result: dict) -> dict[str, Fit]:
    """The word fits of these sentences of a result row, by number; none by a system without cross-attention.

    They are empty for a sentence that is too long for the model, or whose characters the tokenizer does not give.
    """
    fits: dict[str, Fit] = {}
    for number in tagged if system else ():
        source, translation = result["source"][number], result["translation"][number]
        try:
            fit = system.word_fits(source, translation) if translation.strip() else []
        except ValueError:
            fit = []
        if fit is None:
            return {}
        fits[str(number)] = fit
    return fits
