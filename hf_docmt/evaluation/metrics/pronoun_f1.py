"""Pronoun and formality F1 from English: is *it* given the right gender, *you* the right form of address?"""

from collections.abc import Sequence
from functools import cache
from itertools import repeat
from typing import ClassVar, NamedTuple
from unicodedata import normalize

import numpy as np
import regex

from hf_docmt.data.language_codes import primary_language
from hf_docmt.evaluation.metrics.metric import Documents, Measurement, Metric, TranslatedDocuments, UndefinedError
from hf_docmt.evaluation.metrics.tagging import Tagger, Token, load_tagger, tag, tagger_name
from hf_docmt.messages import __version__
from hf_docmt.reports.result import PartScore
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import column_sums

SOURCE_TAGS = frozenset("PRP PRP$ WP WP$".split())
TARGET_TAGS = frozenset("PDAT PDS PIAT PIS PPER PPOSAT PPOSS PRELAT PRELS PRF PWAT PWAV PWS".split())


@cache
def _forms(words: str) -> frozenset[str]:
    """The words in lower case and with a capital."""
    return frozenset(form for word in words.split() for form in (word, word.capitalize()))


IT, SHE = _forms("it its itself"), _forms("she her hers herself")
YOU, THEY = _forms("you your yours yourself"), _forms("they them their theirs themselves")


class Phenomenon(NamedTuple):
    """Counted words by class, in sentences whose source has a word of `valid`.

    A class is not counted next to a source word of `conflicts[class]`, which may have the same form. With `tags` only
    words that a tagger takes for pronouns count.
    """

    valid: frozenset[str]
    classes: dict[str, str]
    conflicts: dict[str, frozenset[str]] = {}
    tags: bool = False


POINTING = IT | _forms("they them this that these those")
PHENOMENA = {  # (what is counted, target language): German as Herold and Ney (2023), others by the words of MuDA
    ("pronoun", "de"): Phenomenon(
        IT,
        {"masculine": "er ihm ihn", "feminine": "sie ihrer ihr ihre ihres ihrem", "neuter": "es"},
        conflicts={"feminine": YOU | THEY},
        tags=True,
    ),
    ("formality", "de"): Phenomenon(
        YOU,
        {
            "formal": "sie ihr ihrer ihnen ihre ihres",
            "informal": "du deiner dir dich deine dein deines deinem deinen",
        },
        conflicts={"formal": THEY | IT | SHE},
        tags=True,
    ),
    ("pronoun", "fr"): Phenomenon(POINTING, {"masculine": "il ils celui ceux", "feminine": "elle elles celle celles"}),
    ("formality", "fr"): Phenomenon(
        YOU, {"formal": "vous votre vos", "informal": "tu ton ta tes toi te tien tiens tienne tiennes"}
    ),
    ("pronoun", "es"): Phenomenon(
        POINTING,
        {
            "masculine": "él ellos éste ese estos aquellos ésos",
            "feminine": "ella ellas ésta esa estas aquellas ésas",
        },
    ),
    ("formality", "es"): Phenomenon(
        YOU, {"formal": "usted vosotros vuestro vuestra vuestras os", "informal": "tú tu tus ti contigo tuyo te tuya"}
    ),
    ("formality", "ru"): Phenomenon(
        YOU, {"formal": "вы вас вам вами ваш ваши", "informal": "ты тебя тебе тобой твой твоя твои"}
    ),
}
WORD = regex.compile(r"rendez-vous|\w+", regex.IGNORECASE)  # a noun, with no form of address


class PronounF1(Metric):
    """F1 of pronouns by gender, in percent, from English; Herold and Ney (2023), section 3.5 and A.1.

    So it is for German. For French and Spanish words count that MuDA (Fernandes et al. 2023) lists for *it*, *they*,
    *this* and their like, those of one gender alone, without a tagger: each word of a list counts.

    Words count where their tag is a pronoun's, all of them in a sentence; a match is the smaller count of the two
    sides, and the sums go over the corpus. The source alone says which sentences and classes count (see `PHENOMENA`);
    without sources all do. `tagger`: `spacy`, the pipelines of the paper, or `hanta`; `taggers` are two functions
    instead, English and German. Classes count alike, as in the paper; in the authors' code *es* has no weight.

    F1 is 2·match / (hypothesis + reference): the harmonic mean of precision and recall, and 0 where the authors' code
    gives NaN but one side has words that count. Without any it is undefined: an `UndefinedError` for the corpus; a
    class is not in the breakdown and is named in `details["undefined"]`. Precision or recall without words is null.
    `n` is the number of words in the reference. Statistics: [match, hypothesis, reference].
    """

    name = "pronoun F1"
    choice = "pronouns"
    task = "discourse"
    needs_sources = True
    segment = "document"
    phenomenon: ClassVar[str] = "pronoun"
    evaluation_options = {"tagger": "tagger"}

    def __init__(self, taggers: tuple[Tagger, Tagger] | None = None, tagger: str = "spacy"):
        self.taggers = taggers or (load_tagger("en", tagger), load_tagger("de", tagger))
        self.has_taggers = taggers is not None

    @classmethod
    def check_languages(cls, source_lang, target_lang):
        source, target = (primary_language(lang) for lang in (source_lang, target_lang))
        if (source or "en") != "en" or (cls.phenomenon, target or "de") not in PHENOMENA:
            targets = ", ".join(lang for phenomenon, lang in PHENOMENA if phenomenon == cls.phenomenon)
            raise ValueError(f"{cls.choice} are counted from en to {targets}, got {source_lang} to {target_lang}")

    def required_sources(self, documents):
        return documents.sources  # without them all sentences count

    def measure(self, documents: TranslatedDocuments) -> Measurement:
        self.check_languages(documents.source_lang, documents.target_lang)
        lang = primary_language(documents.target_lang) or "de"
        rule = PHENOMENA[self.phenomenon, lang]
        taggers = self.taggers if rule.tags or self.has_taggers else (split_words, split_words)
        source = _tagged(taggers[0], documents.sources)
        sides = [_tagged(taggers[1], side) for side in (documents.hypotheses, documents.references)]
        sentences = zip(source or repeat(None), *sides)
        none = [[0] * 3] * len(rule.classes)
        counts = [
            np.sum([none, *(_counts(rule, *next(sentences)) for _ in document)], axis=0)  # (classes, 3)
            for document in documents.references
        ]
        totals = dict(zip(rule.classes, np.sum(counts, axis=0).tolist()))
        rows = [of_document.sum(axis=0).tolist() for of_document in counts]
        match, hypothesised, expected = column_sums(rows)
        if not hypothesised + expected:
            raise UndefinedError(
                f"not one word that counts in {len(sides[0])} translations and references; "
                "check the languages, and that taggers have the tags of spaCy's pipelines"
            )
        signature = {
            "langs": f"en-{lang}",
            "classes": "+".join(rule.classes),
            "weights": "paper",
            "case": "mixed",
            "validity": "all" if source is None else "source",
            "source-tagger": "none" if source is None else tagger_name(taggers[0]),
            "target-tagger": tagger_name(taggers[1]),
            "version": __version__,
        }
        undefined = {"undefined": [name for name, total in totals.items() if not any(total)]}
        return Measurement(
            [[row] for row in rows],
            Signature.of(signature),
            n=expected,
            breakdown={f"class={name}": _part(*total) for name, total in totals.items() if any(total)},
            details=_precision_recall(match, hypothesised, expected) | undefined,
        )


class FormalityF1(PronounF1):
    """F1 of formal and informal address, as `PronounF1`; from English to German, French, Spanish and Russian.

    In Spanish *usted* counts, but not the forms that it shares with the third person.
    """

    name = "formality F1"
    choice = "formality"
    phenomenon = "formality"


def split_words(sentences: list[str]) -> list[list[Token]]:
    """The words of each sentence, with no tags: any word of a list counts, also after a hyphen (*vois-tu*)."""
    return [[(word, "") for word in WORD.findall(normalize("NFC", sentence))] for sentence in sentences]


def count_words(rule: Phenomenon, source: Sequence[Token] | None, target: Sequence[Token]) -> dict[str, int]:
    """How many words of each class one tagged sentence has, all 0 where its source does not count."""
    pronouns = {word for word, tag in source or () if not rule.tags or tag in SOURCE_TAGS}
    if source is not None and not pronouns & rule.valid:
        return dict.fromkeys(rule.classes, 0)
    own = [word for word, tag in target if not rule.tags or tag in TARGET_TAGS]
    return {
        name: 0 if pronouns & rule.conflicts.get(name, frozenset()) else sum(word in _forms(words) for word in own)
        for name, words in rule.classes.items()
    }


def _counts(rule: Phenomenon, source: Sequence[Token] | None, *sides: Sequence[Token]) -> list[list[int]]:
    """[match, hypothesis, reference] of each class in a sentence."""
    pair = [count_words(rule, source, side).values() for side in sides]
    return [[min(both), *both] for both in zip(*pair)]


def _tagged(tagger: Tagger, side: Documents | None) -> list[list[Token]] | None:
    if side is None:
        return None
    return tag(tagger, [sentence for document in side for sentence in document])


def _part(match: int, hypothesised: int, expected: int) -> PartScore:
    details = {**_precision_recall(match, hypothesised, expected), "hypothesis": hypothesised, "match": match}
    return PartScore(200 * match / (hypothesised + expected), expected, details)


def _precision_recall(match: float, hypothesised: float, expected: float) -> dict[str, float | None]:
    return {
        "precision": 100 * match / hypothesised if hypothesised else None,
        "recall": 100 * match / expected if expected else None,
    }
