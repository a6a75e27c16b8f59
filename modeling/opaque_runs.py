r"""Opaque runs: code, addresses, placeholders, characters unknown to a tokenizer, copied into the translation.

Each run is found before translation, replaced by a mark that models copy, and checked afterwards: each
mark once. A sentence in which a mark is lost or doubled is translated again with marks of another family, and finally
around its runs. So every run comes back once, letter by letter.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unicodedata import category

from .text_splitting import Sentence, has_text, known_target

Span = tuple[int, int]  # characters of a sentence, from and to
Translate = Callable[[list[list[str]]], list[list[str]]]  # documents, N sentences in, N out

# a sign of an address: ideographs end it, as do signs that RFC 3986 has in no path (without brackets that it opens)
_SIGN = r"[^\s<>\"()\[\]{}|\\^`\u2e80-\uffef]"
_REST = rf"(?:\({_SIGN}*\)|{_SIGN})*(?:\({_SIGN}*\)|(?!['.,:;!?*_»”’…]){_SIGN})"
ADDRESS = (
    rf"(?<![A-Za-z0-9])(?:(?:https?|ftps?)://|www\.){_REST}"
    r"|(?<![A-Za-z0-9._%+-])(?:mailto:)?[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"
)
KINDS: dict[str, str] = {  # in every text; a format adds its own
    "address": ADDRESS,
    "handle": r"(?<![\w@/.])@[A-Za-z_][\w-]*\w(?:@[\w-]+(?:\.[\w-]+)+)?|(?<![\w&#])\#\d+\b",
    "tag": r"</?[A-Za-z][\w:-]*(?:\s[^<>\n]*)?/?>|<!--(?:(?!<!--)[^\n])*?-->|&(?:\#\d+|\#[xX][\da-fA-F]+|[A-Za-z]\w+);",
    "code": r"(?<![\w`])(?P<ticks>`{1,3})(?!`)[^`\n]+(?P=ticks)(?!`)",
    "formula": r"(?<![\w\\$])\$(?=[^\s\d$])[^$\n]*[^\s$\\]\$(?![\w$])|\\\((?:(?!\\\()[^\n])+?\\\)",
    "placeholder": (
        r"%\(\w+\)[sdif]|%(?:\d+\$)?[sdifux@](?!\w)|(?<![\w%])%\w+%(?!\w)"
        r"|\{\{[\w.$:@ -]{0,40}\}\}|[$%#]?\{[\w.$:@ -]{0,40}\}"
    ),
    "notice": (  # of copyright: its years and names
        r"(?:©|\([cC]\)(?=\s*\d{4}))(?:\s*\d{4}(?:\s*[-–,]\s*\d{4})*)?"
        r"(?:,?\s+(?:by\s+)?(?!All\b)[A-Z][\w&'’-]*(?:\.\w+)*)*"
    ),
    "name": (  # of a file, an option, a variable, a version
        r"(?<![\w/.-])(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]+)+/?|(?<![\w-])--[a-z]+(?:-[a-z]+)+\b"
        r"|(?<![\w.-])[\w-]+\.(?:ya?ml|json|toml|cfg|ini|conf|txt|md|rst|html?|css|scss|[jt]sx?|py|sh|xml|csv|png|svg)\b"
        r"|\b[A-Za-z]\w*_\w+(?:\(\))?|\b[A-Za-z]\w*\(\)|(?<![\w.])v\d+(?:\.\d+)+\b"
    ),
}
COMMON = re.compile("|".join(f"(?:{pattern})" for pattern in KINDS.values()))
# which argument they stand for, the order says: those of printf without a number or name, and {}
POSITIONAL = re.compile(r"%(?![%({]|\d+\$|L?\d+$|[\w.]+%$)\S+|\{(?:[!:][^{}]*)?\}")
COUNT = re.compile(r"%(?:\d+\$|\(\w+\))?[dinu]|%n|\{(?:n|count|num\w*|total|\d)\}|\{\{\s*count\s*\}\}")
# marks: a name; and numbers, which replace numbers and are the second try, see `CarriedSentence.mark`
FAMILIES = (
    lambda k: f"X{k + 1}",
    lambda k: f"{105 + 10 * k}",
    lambda k: f"{1991 + k}",
    lambda k: f"A{k + 1}",
    lambda k: chr(0xE000 + k),  # for private use, which no text has: in translations made around the runs
)
TRIES = len(FAMILIES) - 1
MONEY = re.compile(r"[$€£¥]\s?\d[\d.,]*\d|[$€£¥]\s?\d|\d[\d.,]*\s?[€£¥$]|(?<![\d:.,])\d+(?:[.,]\d+)+(?!\d|[.,]\d)")
BLANKS = {character: " " for character in (0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)}
PLAIN = str.maketrans("“”„«»‘’‚–—", '"""""\'\'\'--')
MOST_PAST = 3  # sentences of context with which a sentence is translated again


def matches(text: str, patterns: Iterable[re.Pattern]) -> Iterator[Span]:
    """Spans that match, none overlapping one before; of two that begin together the longer one."""
    position = 0
    spans = (match.span() for pattern in patterns for match in pattern.finditer(text))
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if position <= start < end:
            yield start, end
            position = end


class Finder:
    """Finds the opaque runs of sentences: those of `KINDS`, and signs that the tokenizer drops or reads as unknown."""

    def __init__(self, tokenizer: Any = None):
        self.tokenizer = tokenizer
        self.is_lost = cache(self._is_lost)

    def __call__(self, text: str, given: Sequence[Span] = ()) -> list[Span]:
        """The spans of a sentence in their order; those that are `given` come first, the others do not touch them."""
        spans = sorted(map(tuple, given))
        for start, end in [*matches(text, [COMMON]), *self._lost_runs(text)]:
            place = bisect_left(spans, (start, end))
            if all(last <= start or end <= first for first, last in spans[max(place - 1, 0) : place + 1]):
                spans.insert(place, (start, end))
        return spans

    def plain(self, text: str) -> str:
        """The sentence with plain blanks, and plain quotation marks and dashes for those that the tokenizer lacks."""
        text = text.translate(BLANKS)
        lacking = {ord(sign): PLAIN[ord(sign)] for sign in set(text) if ord(sign) in PLAIN and self.is_lost(sign)}
        return text.translate(lacking)

    def _lost_runs(self, text: str) -> list[Span]:
        """Words with letters that are lost, numbers with signs that are, and such signs alone; neighbours together."""
        lost = [number for number, sign in enumerate(text) if not _is_plain(sign) and self.is_lost(sign)]
        spans: list[Span] = []
        word_end = 0
        for number in lost:
            if number < word_end:
                continue
            if text[number].isalnum() or category(text[number])[0] == "M":
                start, end = _reach(text, number, number + 1, lambda sign: sign.isalnum() or category(sign)[0] == "M")
                word_end = end
            else:
                start, end = _reach(text, number, number + 1, lambda sign: sign.isdecimal() or sign in ".,", True)
            if spans and text[spans[-1][1] : start].strip() == "" and start - spans[-1][1] <= 1:
                start = spans.pop()[0]
            spans.append((start, end))
        return spans

    def _is_lost(self, sign: str) -> bool:
        if self.tokenizer is None or sign.isspace() or category(sign) in ("Cc", "Cf"):
            return False
        ids = self.tokenizer(sign, add_special_tokens=False, verbose=False)["input_ids"]
        if self.tokenizer.unk_token_id in ids or not self.tokenizer.decode(ids, skip_special_tokens=True).strip():
            return True
        is_symbol = category(sign) in ("Sm", "So") or sign == "\u00b5"  # micro; models seldom spell them right in bytes
        return is_symbol and any("\ufffd" in self.tokenizer.decode([number]) for number in ids)


def _is_plain(sign: str) -> bool:
    """Whether a character is not opaque: an ASCII letter or digit, a blank, punctuation, or one with a plain form."""
    return sign.isascii() and (sign.isalnum() or sign in ".,;:!?'\"()-") or sign.isspace() or ord(sign) in PLAIN


def _reach(text: str, start: int, end: int, goes_on: Callable[[str], bool], after_only: bool = False) -> Span:
    while end < len(text) and goes_on(text[end]):
        end += 1
    while not after_only and start and goes_on(text[start - 1]):
        start -= 1
    return start, end - (after_only and text[end - 1] in ".,")


@dataclass
class CarriedSentence:
    """A sentence on its way: `source` and `translation` have marks in the places of its runs.

    `spans` are its runs; `places` those of the marks in `source`. `score` is that of the translation, if it has one.
    """

    text: str
    spans: list[Span]
    plain: str  # the text that the model reads around the runs, as long as `text`
    source: str = ""
    translation: str = ""
    marks: list[str] = field(default_factory=list)
    places: list[Span] = field(default_factory=list)
    glued: list[tuple[bool, bool]] = field(default_factory=list)  # whether blanks before and after a mark are not text
    is_capital: bool = False
    is_in_parts: bool = False  # translated around its runs
    score: float | None = None

    def __post_init__(self):
        self.spans, self.places = list(map(tuple, self.spans)), list(map(tuple, self.places))  # of JSON they are lists
        outside = "".join(self.between())
        letters = [letter for letter in outside if letter.isalpha()]
        self.is_capital = len(letters) >= 6 and outside.isupper() and len(outside.split()) > 1
        lower = self.plain.lower()
        if self.is_capital and len(lower) == len(self.plain):
            first = next(number for number, letter in enumerate(self.plain) if letter.isalpha())
            self.plain = lower[:first] + self.plain[first] + lower[first + 1 :]

    @property
    def has_words(self) -> bool:
        """Whether there are letters outside the runs."""
        return has_letters("".join(self.between()))

    @property
    def is_other(self) -> bool:
        """Whether the model reads something else than the text."""
        return bool(self.spans) or self.plain != self.text or not self.has_words

    @property
    def runs(self) -> list[str]:
        return [self.text[start:end] for start, end in self.spans]

    def between(self) -> list[str]:
        """The texts before, between and after the runs."""
        ends = [0, *(end for _, end in self.spans)]
        starts = [*(start for start, _ in self.spans), len(self.text)]
        return [self.plain[end:start] for end, start in zip(ends, starts)]

    def mark(self, family: int) -> str:
        """The sentence with marks of a family, of numbers for what stands for a number."""
        between, taken = self.between(), 0
        self.marks, self.places, self.glued, self.source = [], [], [], between[0]
        for run, text in zip(self.runs, between[1:]):
            make = FAMILIES[1 if family == 0 and COUNT.fullmatch(run) else family]
            while (mark := make(taken)) in self.plain or mark in self.marks:
                taken += 1
            taken += 1
            before, behind = self.source[-1:].isalnum(), text[:1].isalnum()
            self.source += " " * before
            self.places.append((len(self.source), len(self.source) + len(mark)))
            self.source += mark + " " * behind + text
            self.marks.append(mark)
            self.glued.append((before, behind))
        return self.source

    def take(self, translation: str) -> bool:
        """Keep a translation if it has each mark once, and its sums; a sum that is lost becomes a run."""
        if not self.has_marks(translation):
            return False
        if lost := self._lost_sums(translation):
            self.spans = sorted([*self.spans, *lost])
            return False
        self.keep(translation)
        return True

    def has_marks(self, translation: str) -> bool:
        """Whether it contains each mark once."""
        return all(len(re.findall(as_word(mark), translation)) == 1 for mark in self.marks)

    def keep(self, translation: str) -> None:
        """Take a translation with marks, in which those whose order counts get the order of the source."""
        self.translation = translation.upper() if self.is_capital else translation
        self.score = score_of(translation)
        ordered = [number for number, run in enumerate(self.runs) if POSITIONAL.fullmatch(run)]
        marks = sorted((self.marks[number] for number in ordered), key=self.translation.index)
        for number, mark in zip(ordered, marks):
            self.marks[number] = mark

    def around(self, translations: Sequence[str]) -> None:
        """Take translations of the texts between the runs."""
        self.mark(TRIES)
        written, self.is_in_parts = "", True
        for old, new, mark in zip(self.between(), translations, [*self.marks, ""]):
            words = old.strip()
            kept = new.strip() or words
            if words[-1:].isalnum():
                kept = kept.rstrip(".!? ")
            written += (old.replace(words, kept) if words else old) + mark
        self.keep(written)
        scores = [score for score in map(score_of, translations) if score is not None]
        self.score = min(scores, default=None)

    @classmethod
    def read(cls, text: str, spans: Sequence[Span], translation: str) -> "CarriedSentence":
        """The sentence for a translation that has the runs themselves; missing ones are added at its end."""
        own = cls(text, list(spans), text)
        own.mark(TRIES)
        for mark, run, (before, behind) in zip(own.marks, own.runs, own.glued):
            letter = r"\d" if run.isdecimal() else "" if before or behind else r"\w"  # must not continue next to it
            pattern = f"(?<!{letter}){re.escape(run)}(?!{letter})" if letter else re.escape(run)
            place = re.search(f"{pattern}|$", translation)
            written = mark if place[0] else f" {mark}"
            translation = translation[: place.start()] + written + translation[place.end() :]
        own.is_capital = False
        own.keep(translation)
        return own

    @property
    def restored(self) -> str:
        """The translation with the runs in the places of their marks; nothing where no character is seen."""
        unchanged = self.text if has_text(self.text) else ""
        return self.restore(self.translation) if self.has_words else unchanged

    def restored_candidates(self, texts: Sequence[str]) -> list[str]:
        """The n-best texts in which each run occurs once, or only the translation."""
        others = texts[1:] if texts[:1] == [self.translation] and self.has_words else []
        return list(dict.fromkeys([self.restored, *(self.restore(text) for text in others if self.has_marks(text))]))

    def restore(self, text: str) -> str:
        """A part of the translation with its runs."""
        return "".join(part if isinstance(part, str) else self.runs[part] for part in self.parts(text))

    def parts(self, text: str) -> Iterator[str | int]:
        """The texts between the marks in a part of the translation, and the numbers of the runs."""
        numbers = {mark: number for number, mark in enumerate(self.marks)}
        glued = {mark: (" ?" * before, " ?" * behind) for mark, (before, behind) in zip(self.marks, self.glued)}
        pattern = "|".join(f"{before}({as_word(mark)}){behind}" for mark, (before, behind) in glued.items())
        position = 0
        for match in re.finditer(pattern, text) if pattern else ():
            yield text[position : match.start()]
            yield numbers[match[match.lastindex]]
            position = match.end()
        yield text[position:]

    def place(self, position: int) -> int:
        """Position in `source` of a character of the text; inside a run, the end of its mark."""
        runs = zip(self.spans, self.places, self.glued)
        moved = [(end, stop, blank) for (start, end), (_, stop), (_, blank) in runs if start < position]
        end, stop, blank = moved[-1] if moved else (0, 0, False)
        return stop + blank + position - end if position > end else stop

    def _lost_sums(self, translation: str) -> list[Span]:
        """Sums and fractions outside of the runs, whose digits, or sign of money, the translation has not."""
        digits, needed = re.sub(r"\D", "", translation), re.sub(r"\D", "", self.plain)
        lost = []
        for match in MONEY.finditer(self.text):
            own, signs = re.sub(r"\D", "", match[0]), re.findall(r"[$€£¥]", match[0])
            is_free = all(match.end() <= start or match.start() >= end for start, end in self.spans)
            if is_free and (digits.count(own) < needed.count(own) or any(sign not in translation for sign in signs)):
                lost.append(match.span())
        return lost


def score_of(translation: str) -> float | None:
    """The score of a translation that is a `Sentence` and has one."""
    return getattr(translation, "score", None)


def as_word(mark: str) -> str:
    """A pattern of the mark where no letter or digit of its kind goes on."""
    return rf"(?<![A-Za-z0-9]){mark}(?![A-Za-z0-9]|[.,]\d)" if mark.isascii() else mark


def carry(
    translate: Translate,
    documents: Sequence[Sequence[str]],
    finder: Finder,
    given: Sequence[dict[int, list[Span]]] | None = None,
    reach: tuple[int, int] = (0, 0),
) -> tuple[list[list[str]], list[dict[int, CarriedSentence]]]:
    """Translations that contain every opaque run of the source once, and for each document its sentences with runs.

    `given` are spans that a format knows, by sentence. A sentence whose marks do not come back is translated again with
    `reach` sentences before and after it. Lines without letters are copied; sentences in capitals are
    translated in small letters. Sentences with a known translation keep it, see `Sentence`; their runs are marks, too.
    """
    own = given or [{} for _ in documents]
    carried = [carried_sentences(document, finder, runs) for document, runs in zip(documents, own, strict=True)]
    masked = [masked_lines(document, own, finder) for document, own in zip(documents, carried)]
    for document, sentences in zip(documents, carried):
        for n in [n for n in sentences if known_target(document[n]) is not None]:
            del sentences[n]
    written = [list(lines) for lines in translate(masked)]
    waiting = [(d, n) for d, own in enumerate(carried) for n, each in own.items() if each.has_words]
    answers = [written[d][n] for d, n in waiting]

    def marked(d: int, n: int, family: int) -> str:
        return Sentence(carried[d][n].mark(family), context=getattr(documents[d][n], "context", ()))

    past, future = min(reach[0], MOST_PAST), min(reach[1], MOST_PAST)
    for family in range(1, TRIES + 1):
        waiting = [(d, n) for (d, n), answer in zip(waiting, answers) if not carried[d][n].take(answer)]
        if not waiting or family == TRIES:
            break
        windows = [
            [*masked[d][max(n - past, 0) : n], marked(d, n, family), *masked[d][n + 1 : n + 1 + future]]
            for d, n in waiting
        ]
        answers = [lines[min(n, past)] for lines, (_, n) in zip(translate(windows), waiting)]
    around = [[part.strip() if has_letters(part) else "" for part in carried[d][n].between()] for d, n in waiting]
    for (d, n), lines in zip(waiting, translate(around) if around else ()):
        if any(line.strip() for line in (written[d][n], *lines)):  # else the model writes nothing, which is reported
            carried[d][n].around(lines)
    for lines, own, document in zip(written, carried, documents):
        for n, each in own.items():
            lines[n] = each.restored if each.score is None else Sentence(each.restored, score=each.score)
        for n, target in enumerate(map(known_target, document)):
            if target is not None:
                lines[n] = target
    return written, carried


def context_reach(config: Any) -> tuple[int, int]:
    """Sentences before and after that a model of this configuration reads, as `carry` takes them."""
    return getattr(config, "past_context", 0) or 0, getattr(config, "future_context", 0) or 0


def carried_sentences(
    document: Sequence[str], finder: Finder, given: dict[int, list[Span]]
) -> dict[int, CarriedSentence]:
    """The sentences of a document that the model reads in another form, by number."""
    sentences = {
        n: CarriedSentence(text, finder(text, given.get(n, ())), finder.plain(text)) for n, text in enumerate(document)
    }
    return {n: each for n, each in sentences.items() if each.is_other or MONEY.search(each.text)}


def masked_lines(document: Sequence[str], carried: dict[int, CarriedSentence], finder: Finder) -> list[str]:
    """Input of the model: sentences with marks of the first family, empty for those without words.

    A known translation has the same marks; if it lacks a run, neither it nor its source has marks.
    """
    lines = list(document)
    for n, each in carried.items():
        line, target = each.mark(0) if each.has_words else "", known_target(document[n])
        if target is not None:
            has_runs = not each.is_capital and all(run in target for run in each.runs)
            line, target = (line, finder.plain(target)) if has_runs else (document[n], target)
            for mark, run in zip(each.marks if has_runs else (), each.runs):
                target = target.replace(run, mark, 1)
        lines[n] = Sentence(line, target, getattr(document[n], "context", ()))
    return lines


def has_letters(text: str) -> bool:
    """Whether there is something to translate."""
    return any(map(str.isalpha, text))
