"""A reader of the built-in discourse corpus who sees its text and the lexicon, and nothing of its making."""

import re

from hf_docmt.data.synthetic.scene import LEXICON

NOUNS = {
    de: (en, gender, kind)
    for kind, genders in LEXICON["nouns"].items()
    for gender, nouns in genders.items()
    for en, de in nouns
}
TERMS = {word: (term["en"], term["gender"], term["de"]) for term in LEXICON["terms"] for word in term["de"]}
DU = re.compile(r"\b(du|dich|dir|deine|warte)\b", re.I)
SIE = re.compile(r"\b(Sie (haben|warten)|(haben|können|wohnen|sehen|mögen|warten) Sie|Ihnen|Ihre|rufe Sie)\b", re.I)


def words(text):
    return re.findall(r"\w+", text)


def class_of_it(english):
    """The class that what is said of *it* belongs to, from the English sentence alone."""
    clause = english.lower().rstrip(".").split(" and ")[-1]
    fits = {
        kind
        for kind, clauses in LEXICON["pronouns"].items()
        for en, _ in clauses["subject"] + clauses["object"]
        if re.fullmatch(re.escape(en).replace(r"\{name\}", r"\w+"), clause)
    }
    assert len(fits) == 1, english
    return fits.pop()


def mentions_of_class(german_sentences, kind):
    """(sentence, gender) of every noun of a class."""
    return [
        (index, NOUNS[word][1])
        for index, text in enumerate(german_sentences)
        for word in words(text)
        if word in NOUNS and NOUNS[word][2] == kind
    ]


def address_of(german):
    forms = {"du"} if DU.search(german) else set()
    return forms | ({"Sie"} if SIE.search(german) else set())


PRONOUN_OF = {"m": {"er", "ihn"}, "f": {"sie"}, "n": {"es"}}
OF_CLASS = {
    kind: {en: de for nouns in genders.values() for en, de in nouns} for kind, genders in LEXICON["nouns"].items()
}
_OWNERS = (
    (r"(\w+) has an? (\w+) and (\w+) has an? (\w+)\.", (0, 1, 2, 3)),
    (r"The (\w+) belongs to (\w+) and the (\w+) to (\w+)\.", (1, 0, 3, 2)),
)


def owners_in(english):
    """{owner: noun} of a sentence that says whose two nouns are."""
    for pattern, (first, noun, second, other) in _OWNERS:
        if match := re.fullmatch(pattern, english):
            words_of_match = match.groups()
            return {words_of_match[first]: words_of_match[noun], words_of_match[second]: words_of_match[other]}
    return {}


def antecedent(english, index):
    """(German noun, distance) of *it* in sentence `index`: the noun of its class or the owner's; last before, or next.

    Fails where a reader would not know which one it is.
    """
    kind = class_of_it(english[index])
    nouns = OF_CLASS[kind]
    named = {at: [word for word in words(text) if word in nouns] for at, text in enumerate(english)}
    candidates = {word for mentioned in named.values() for word in mentioned}
    if len(candidates) > 1:
        owners = [owners_in(english[at]) for at, mentioned in named.items() if mentioned]
        assert all(mentioned == owners[0] for mentioned in owners), english
        assert len(owners[0]) == len(candidates) == 2, english
        candidates = {owners[0][words(english[index])[0]]}
    (meant,) = candidates
    places = [at for at, mentioned in named.items() if meant in mentioned]
    before = [at for at in places if at <= index]
    return nouns[meant], index - (before[-1] if before else places[0])
