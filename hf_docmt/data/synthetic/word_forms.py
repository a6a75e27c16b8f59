"""Words and forms of the built-in discourse corpus: the lexicon, German articles and pronouns, filling of templates.

Templates of the lexicon are (English, German) clauses with fields. German fields are named by their masculine form:
{der_noun}, {den_noun}, {dem_noun}, {ein_noun}, {einen_noun} are article and noun, {er} and {ihn} the pronouns.
"""

import json
from dataclasses import dataclass
from importlib.resources import files

LEXICON = json.loads(files("hf_docmt.data.synthetic").joinpath("lexicon.json").read_text(encoding="utf-8"))
GENDERS = ("m", "f", "n")
CLASSES = tuple(LEXICON["nouns"])
PRONOUNS = {"m": "er", "f": "sie", "n": "es"}
REGISTERS = ("du", "Sie")

_ARTICLES = {
    "der": {"m": "der", "f": "die", "n": "das"},
    "den": {"m": "den", "f": "die", "n": "das"},
    "dem": {"m": "dem", "f": "der", "n": "dem"},
    "ein": {"m": "ein", "f": "eine", "n": "ein"},
    "einen": {"m": "einen", "f": "eine", "n": "ein"},
}
_OBJECT_PRONOUNS = {"m": "ihn", "f": "sie", "n": "es"}


@dataclass(frozen=True)
class Noun:
    """A noun of the lexicon; `kind` is its class, or "term" for a person with two German names."""

    en: str
    de: str
    gender: str
    kind: str


def fill(template: list[str], **fields: str) -> tuple[str, str]:
    """(English, German) clause of a template."""
    return template[0].format(**fields), template[1].format(**fields)


def noun_fields(**nouns: Noun) -> dict[str, str]:
    """Fields of nouns by role, such as noun, a_noun, der_noun, den_noun for the role "noun"."""
    fields = {}
    for role, noun in nouns.items():
        fields[role] = noun.en
        fields[f"a_{role}"] = ("an " if noun.en[0] in "aeiou" else "a ") + noun.en
        fields |= {f"{case}_{role}": f"{forms[noun.gender]} {noun.de}" for case, forms in _ARTICLES.items()}
    return fields


def pronoun_fields(gender: str) -> dict[str, str]:
    """Fields of the pronouns of a gender, nominative and accusative."""
    return {"er": PRONOUNS[gender], "ihn": _OBJECT_PRONOUNS[gender]}


def verb_fields(verb: list[str]) -> dict[str, str]:
    """Fields of a verb: English past, German auxiliary and participle."""
    return dict(zip(("past", "auxiliary", "participle"), verb))


def as_sentence(clause: str) -> str:
    """A clause with a capital first letter, and a full stop where it is not a question."""
    return clause[0].upper() + clause[1:] + ("" if clause.endswith("?") else ".")
