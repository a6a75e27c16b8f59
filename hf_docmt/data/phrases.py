"""Finding words and phrases in text, in scripts with and without blanks between words."""

import unicodedata
from collections.abc import Iterable, Sequence

import regex

# A letter of a script that does not part words by blanks
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]"


def folded(text: str) -> str:
    """The form of a text for comparison: NFC, case-folded, runs of white space as one blank."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def phrase_pattern(phrases: Iterable[str]) -> regex.Pattern:
    """Finds phrases in folded text as whole words, of those that begin at one character the longest.

    A word ends where no letter or digit follows, and no hyphen with one after it, and begins by the same rule. A phrase
    that begins or ends with a letter of a script without blanks, or with punctuation, may be inside other text there.
    """
    longest_first = sorted({folded(phrase) for phrase in phrases}, key=lambda phrase: (-len(phrase), phrase))
    return regex.compile("|".join(map(_bounded, longest_first)))


def words(text: str) -> list[str]:
    """The words of a text, parted by blanks and punctuation, apostrophes too; hyphens within a word stay."""
    return regex.findall(r"\w+(?:-\w+)*", text)


def checked_phrases(phrases: Sequence[str], what: str) -> list[str]:
    """The phrases, folded; ValueError for none, one without a letter or digit, or two that are the same folded."""
    if isinstance(phrases, str) or not phrases:
        raise ValueError(f"{what}: got {phrases!r}, expected a list of at least one word or phrase")
    by_form: dict[str, str] = {}
    for phrase in phrases:
        if not isinstance(phrase, str) or not regex.search(r"\w", phrase):
            raise ValueError(f"{what}: got {phrase!r}, expected a word or phrase")
        if folded(phrase) in by_form:
            raise ValueError(f"{what}: {phrase!r} and {by_form[folded(phrase)]!r} differ only in case; keep one")
        by_form[folded(phrase)] = phrase
    return list(by_form)


def _bounded(phrase: str) -> str:
    before = r"(?<!\w)(?<!\w-)" if _needs_border(phrase[0]) else ""
    after = r"(?!\w)(?!-\w)" if _needs_border(phrase[-1]) else ""
    return before + regex.escape(phrase) + after


def _needs_border(sign: str) -> bool:
    return bool(regex.match(rf"(?!{_UNSPACED})\w", sign))
