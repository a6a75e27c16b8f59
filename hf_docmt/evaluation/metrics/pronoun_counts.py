"""German pronouns and forms of address of a sentence by class, counted where its English source asks for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hf_docmt.evaluation.metrics.tagging import Token

Choice = TypeVar("Choice")

SOURCE_TAGS = frozenset("PRP PRP$ WP WP$".split())
TARGET_TAGS = frozenset("PDAT PDS PIAT PIS PPER PPOSAT PPOSS PRELAT PRELS PRF PWAT PWAV PWS".split())


def _forms(words: str) -> frozenset[str]:
    """The words in lower case and with a capital."""
    return frozenset(form for word in words.split() for form in (word, word.capitalize()))


IT, SHE = _forms("it its itself"), _forms("she her hers herself")
YOU, THEY = _forms("you your yours yourself"), _forms("they them their theirs themselves")


@dataclass(frozen=True)
class Phenomenon:
    """What is counted: German words by class, in sentences whose source has a word of `valid`.

    A class is not counted beside a source word of `conflicts[class]`, which may have the same German form.
    """

    valid: frozenset[str]
    classes: dict[str, frozenset[str]]
    conflicts: dict[str, frozenset[str]]


PHENOMENA = {
    "pronoun": Phenomenon(
        valid=IT,
        classes={
            "masculine": _forms("er ihm ihn"),
            "feminine": _forms("sie ihrer ihr ihre ihres ihrem"),
            "neuter": _forms("es"),
        },
        conflicts={"feminine": YOU | THEY},
    ),
    "formality": Phenomenon(
        valid=YOU,
        classes={
            "formal": _forms("sie ihr ihrer ihnen ihre ihres"),
            "informal": _forms("du deiner dir dich deine dein deines deinem deinen"),
        },
        conflicts={"formal": THEY | IT | SHE},
    ),
}


def count_words(phenomenon: str, source: Sequence[Token] | None, target: Sequence[Token]) -> dict[str, int]:
    """How many words of each class one tagged sentence has, all 0 where its source does not count."""
    rule = choice_of(phenomenon, PHENOMENA, "phenomenon")
    pronouns = {word for word, tag in source or () if tag in SOURCE_TAGS}
    if source is not None and not pronouns & rule.valid:
        return dict.fromkeys(rule.classes, 0)
    words = [word for word, tag in target if tag in TARGET_TAGS]
    return {
        name: 0 if pronouns & rule.conflicts.get(name, frozenset()) else sum(word in forms for word in words)
        for name, forms in rule.classes.items()
    }


def choice_of(name: str, known: Mapping[str, Choice], what: str) -> Choice:
    """The value of this name; ValueError with the known names where it is none of them."""
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}: expected {' or '.join(known)}")
    return known[name]
