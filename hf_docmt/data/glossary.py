"""Glossaries: terms and their translations, which are found in text by base forms (simplemma)."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from os.path import commonprefix
from pathlib import Path
from typing import NamedTuple

import regex

from hf_docmt.data.glossary_files import read_entries, with_status
from hf_docmt.data.language_codes import UNSPACED, primary_language
from hf_docmt.journal import value_digest
from hf_docmt.messages import install_command

TOKEN = regex.compile(r"\w+|[^\w\s]")
INVISIBLE = regex.compile(r"\p{Cf}")
COMPOUNDING = ("da", "de", "et", "fi", "hu", "is", "nb", "nl", "nn", "no", "sv")  # languages that join nouns
GivenTerms = Path | Mapping[str, str] | Sequence[Sequence]  # a file (or its name), {source: target}, or entries
SHORTEST_PART = 4  # letters of a term that may be a part of a compound


class Span(NamedTuple):
    """Characters of a text."""

    start: int
    stop: int


class Word(NamedTuple):
    """A word or sign of a text, and its base forms (folded; with the word itself)."""

    span: Span
    text: str  # folded
    forms: frozenset[str]


class BaseForms:
    """Finds phrases of a language by their words or the base forms of these, regardless of case.

    A phrase has no word character right before or after it, except in languages without blanks. If simplemma has no
    dictionary of the language, the base form of a word is the word itself. ValueError: simplemma is not installed.
    """

    def __init__(self, lang: str | None):
        self.lang = primary_language(lang)
        self.is_spaced = self.lang not in UNSPACED
        self.has_dictionary = self.lang in _dictionaries()

    def words(self, text: str) -> list[Word]:
        """The words and signs of a text."""
        return [Word(Span(*match.span()), folded(match[0]), self.forms(match[0])) for match in TOKEN.finditer(text)]

    def forms(self, word: str) -> frozenset[str]:
        """The base forms of a word, as written and in lower case, and the word itself."""
        return _forms(word, self.lang if self.has_dictionary else "")

    def spans(self, phrase: str, text: str) -> list[Span]:
        """The places of a phrase in a text."""
        wanted = self.words(phrase)
        if not self.is_spaced:
            return [Span(*match.span()) for match in regex.finditer(regex.escape(folded(phrase)), folded(text))]
        words = self.words(text)
        return [
            Span(words[start].span.start, words[start + len(wanted) - 1].span.stop)
            for start in range(len(words) - len(wanted) + 1)
            if wanted and all(one.forms & word.forms for one, word in zip(wanted, words[start:]))
        ]

    def contains(self, phrase: str, text: str) -> bool:
        """Whether a text has a phrase, in languages that join nouns also as first or last part of a word."""
        if self.spans(phrase, text):
            return True
        if self.lang not in COMPOUNDING or len(phrase) < SHORTEST_PART or not phrase.isalpha():
            return False
        forms = [form for form in self.forms(phrase) if len(form) >= SHORTEST_PART]
        return any(
            form != part and (form.startswith(part) or form.endswith(part))
            for word in self.words(text)
            for form in word.forms
            for part in forms
        )


@cache
def _dictionaries() -> frozenset[str]:
    try:
        from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES
    except ImportError as error:
        raise ValueError(f"a glossary needs simplemma: {install_command('terms')}") from error
    return frozenset(SUPPORTED_LANGUAGES)


@cache
def _forms(word: str, lang: str) -> frozenset[str]:
    from simplemma import lemmatize

    spellings = (word, word.lower()) if lang else ()
    return frozenset(map(folded, (word, *(lemmatize(spelling, lang) for spelling in spellings))))


def folded(text: str) -> str:
    """A text for comparison: NFC, small letters."""
    return unicodedata.normalize("NFC", text).lower()


def visible(text: str) -> str:
    """A text without invisible characters, such as soft hyphens, and with single blanks."""
    return " ".join(INVISIBLE.sub("", text).split())


class Term(NamedTuple):
    """A term of the source, its allowed translations, of which the first is preferred, and its forbidden ones."""

    source: str
    targets: tuple[str, ...]
    forbidden: tuple[str, ...] = ()


class TermMatch(NamedTuple):
    """A term at a place of a source sentence."""

    term: Term
    span: Span


class Glossary:
    """Terms of a language pair, from entries (source, target, whether it is forbidden) as `read_entries` gives them.

    A pair may have `NOT ` before a forbidden target. Entries with the same source are one term. ValueError: no entry,
    an empty text.
    """

    def __init__(self, entries: Iterable[Sequence], source_lang: str | None, target_lang: str | None):
        self.source, self.target, read = BaseForms(source_lang), BaseForms(target_lang), []
        found: dict[str, tuple[str, dict[str, bool]]] = {}
        for entry in map(tuple, entries):
            if len(entry) not in (2, 3) or not all(isinstance(text, str) and visible(text) for text in entry[:2]):
                raise ValueError(f"a glossary entry needs a source term and its translation, got {entry!r:.80}")
            read.append(entry if entry[2:] else with_status(*entry))
            (source, target), is_forbidden = map(visible, read[-1][:2]), read[-1][2]
            found.setdefault(folded(source), (source, {}))[1].setdefault(target, is_forbidden)
        self.digest = value_digest(list(map(list, read)))[:12]
        self.terms = [
            Term(source, *(tuple(t for t, flag in targets.items() if flag is forbidden) for forbidden in (False, True)))
            for source, targets in found.values()
        ]
        if not self.terms:
            raise ValueError("the glossary is empty; it needs at least one term and its translation")

    @classmethod
    def of(cls, given: GivenTerms, source_lang: str | None, target_lang: str | None) -> "Glossary | None":
        """The glossary of an option; None without any. DataError: a file that cannot be read (see `read_entries`)."""
        if isinstance(given, str | Path):
            given = read_entries(given, source_lang, target_lang)
        return cls(given.items() if isinstance(given, Mapping) else given, source_lang, target_lang) if given else None

    @cached_property
    def by_first_form(self) -> dict[str, list[tuple[Term, list[Word]]]]:
        """Terms and their words by each form of their first word."""
        index: dict[str, list[tuple[Term, list[Word]]]] = {}
        for term in self.terms:
            words = self.source.words(term.source)
            for form in words[0].forms:
                index.setdefault(form, []).append((term, words))
        return index

    def in_source(self, text: str) -> list[TermMatch]:
        """The terms in a source sentence, in order; of overlapping ones the longest, or the one spelled so."""
        found: list[tuple[tuple, TermMatch]] = []
        if self.source.is_spaced:
            words = self.source.words(text)
            for start, word in enumerate(words):
                near = {id(term): (term, own) for form in word.forms for term, own in self.by_first_form.get(form, ())}
                for term, own in near.values():
                    last = start + len(own) - 1
                    if last < len(words) and all(map(_is_form, own, words[start:])):
                        span = Span(word.span.start, words[last].span.stop)
                        found.append((_order(term, span, text), TermMatch(term, span)))
        else:
            matches = [TermMatch(term, span) for term in self.terms for span in self.source.spans(term.source, text)]
            found = [(_order(*match, text), match) for match in matches]
        chosen: list[TermMatch] = []
        for _, match in sorted(found, key=lambda each: each[0]):
            if all(match.span.stop <= other.span.start or other.span.stop <= match.span.start for other in chosen):
                chosen.append(match)
        return sorted(chosen, key=lambda match: match.span)

    def is_met(self, term: Term, translation: str) -> bool:
        """Whether a translation has one of the allowed forms of a term; a term of forbidden forms alone is met."""
        return not term.targets or any(self.target.contains(target, translation) for target in term.targets)

    def forbidden_in(self, term: Term, translation: str) -> list[str]:
        """The forbidden forms of a term that a translation has."""
        return [form for form in term.forbidden if self.target.spans(form, translation)]


def _is_form(wanted: Word, word: Word) -> bool:
    """Whether a word is a form of the word of a term: not `met` of `meeting`, whose base forms are both `meet`."""
    has_ending = len(commonprefix((wanted.text, word.text))) >= len(wanted.text) - 2
    return wanted.text in word.forms or has_ending and bool(wanted.forms & word.forms)


def _order(term: Term, span: Span, text: str) -> tuple:
    return -(span.stop - span.start), text[span.start : span.stop] != term.source, span.start
