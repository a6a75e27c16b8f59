"""Pronoun and formality F1 from English: is *it* given the right gender, *you* the right form of address?"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar
from unicodedata import normalize

import regex

from hf_docmt import __version__
from hf_docmt.data.language_codes import primary_language
from hf_docmt.evaluation.metrics.metric import Metric, ScoreSettings, UndefinedError
from hf_docmt.evaluation.metrics.tagging import Tagger, Token, load_tagger, tag, tagger_name
from hf_docmt.evaluation.metrics.translated_documents import Documents, TranslatedDocuments, check_sides
from hf_docmt.messages import check_known
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import Statistics

SOURCE_TAGS = frozenset("PRP PRP$ WP WP$".split())
TARGET_TAGS = frozenset("PDAT PDS PIAT PIS PPER PPOSAT PPOSS PRELAT PRELS PRF PWAT PWAV PWS".split())


def _forms(words: str) -> frozenset[str]:
    """The words in lower case and with a capital."""
    return frozenset(form for word in words.split() for form in (word, word.capitalize()))


IT, SHE = _forms("it its itself"), _forms("she her hers herself")
YOU, THEY = _forms("you your yours yourself"), _forms("they them their theirs themselves")


@dataclass(frozen=True)
class Phenomenon:
    """What is counted: words by class, in sentences whose source has a word of `valid`.

    A class is not counted beside a source word of `conflicts[class]`, which may have the same form. With `tags` only
    words that a tagger takes for pronouns count.
    """

    valid: frozenset[str]
    classes: dict[str, frozenset[str]]
    conflicts: dict[str, frozenset[str]] = field(default_factory=dict)
    tags: bool = False


POINTING = IT | _forms("they them this that these those")
PHENOMENA = {  # (what is counted, target language): German as Herold and Ney (2023), others by the words of MuDA
    ("pronoun", "de"): Phenomenon(
        tags=True,
        valid=IT,
        classes={
            "masculine": _forms("er ihm ihn"),
            "feminine": _forms("sie ihrer ihr ihre ihres ihrem"),
            "neuter": _forms("es"),
        },
        conflicts={"feminine": YOU | THEY},
    ),
    ("formality", "de"): Phenomenon(
        tags=True,
        valid=YOU,
        classes={
            "formal": _forms("sie ihr ihrer ihnen ihre ihres"),
            "informal": _forms("du deiner dir dich deine dein deines deinem deinen"),
        },
        conflicts={"formal": THEY | IT | SHE},
    ),
    ("pronoun", "fr"): Phenomenon(
        valid=POINTING,
        classes={"masculine": _forms("il ils celui ceux"), "feminine": _forms("elle elles celle celles")},
    ),
    ("formality", "fr"): Phenomenon(
        valid=YOU,
        classes={
            "formal": _forms("vous votre vos"),
            "informal": _forms("tu ton ta tes toi te tien tiens tienne tiennes"),
        },
    ),
    ("pronoun", "es"): Phenomenon(
        valid=POINTING,
        classes={
            "masculine": _forms("él ellos éste ese estos aquellos ésos"),
            "feminine": _forms("ella ellas ésta esa estas aquellas ésas"),
        },
    ),
    ("formality", "es"): Phenomenon(
        valid=YOU,
        classes={
            "formal": _forms("usted vosotros vuestro vuestra vuestras os"),
            "informal": _forms("tú tu tus ti contigo tuyo te tuya"),
        },
    ),
    ("formality", "ru"): Phenomenon(
        valid=YOU,
        classes={
            "formal": _forms("вы вас вам вами ваш ваши"),
            "informal": _forms("ты тебя тебе тобой твой твоя твои"),
        },
    ),
}
WORD = regex.compile(r"rendez-vous|\w+", regex.IGNORECASE)  # a noun, with no form of address
WEIGHTS = {
    "paper": {"masculine": 1, "feminine": 1, "neuter": 1, "formal": 1, "informal": 1},
    "released": {"masculine": 0.5, "feminine": 0.5, "neuter": 0, "formal": 0.5, "informal": 0.5},
}


class PronounF1(Metric):
    """F1 of pronouns by gender, in percent, from English; Herold and Ney (2023), section 3.5 and A.1.

    So it is for German. For French and Spanish words count that MuDA (Fernandes et al. 2023) lists for *it*, *they*,
    *this* and their like, those of one gender alone, without a tagger: each word of a list counts.

    Words count where their tag is a pronoun's, all of them in a sentence; a match is the smaller count of the two
    sides, and the sums go over the corpus. The source alone says which sentences and classes count (see `PHENOMENA`);
    without sources all do. `taggers`: English and German, by default the spaCy pipelines of the paper. `weights`:
    `paper` sums the classes, `released` is the default of the authors' code, in which *es* has no weight in any of the
    sums. `lowercase` is what that code's command does to all sides before tagging.

    F1 is 2·match / (hypothesis + reference): the harmonic mean of precision and recall, and 0 where the authors' code
    gives NaN but one side has words that count. Without any it is undefined: an `UndefinedError` for the corpus; a
    class is left out of the breakdown and named in `details["undefined"]`. Precision or recall without words is null.
    `n` is the number of words in the reference. Statistics: [match, hypothesis, reference], weighted.
    """

    name = "pronoun F1"
    choice = "pronouns"
    task = "discourse"
    needs_sources = True
    phenomenon: ClassVar[str] = "pronoun"

    def __init__(self, taggers: tuple[Tagger, Tagger] | None = None, weights: str = "paper", lowercase: bool = False):
        check_known(weights, WEIGHTS, "weights", "expected one of")
        self.taggers, self.weights, self.lowercase = taggers, weights, lowercase

    @classmethod
    def check_languages(cls, source_lang, target_lang):
        source, target = (primary_language(lang) for lang in (source_lang, target_lang))
        if (source or "en") != "en" or (cls.phenomenon, target or "de") not in PHENOMENA:
            targets = ", ".join(lang for phenomenon, lang in PHENOMENA if phenomenon == cls.phenomenon)
            raise ValueError(f"{cls.choice} are counted from en to {targets}, got {source_lang} to {target_lang}")

    def score(self, documents: TranslatedDocuments, settings: ScoreSettings | None = None) -> list[Result]:
        sources, hypotheses, references = documents.sources, documents.hypotheses, documents.references
        self.check_languages(documents.source_lang, documents.target_lang)
        lang = primary_language(documents.target_lang) or "de"
        rule, weight = PHENOMENA[self.phenomenon, lang], WEIGHTS[self.weights]
        ids = check_sides(hypotheses, references, sources, documents.doc_ids or None)
        taggers = self.taggers or ((load_tagger("en"), load_tagger("de")) if rule.tags else (split_words, split_words))
        source = _tagged(taggers[0], sources, self.lowercase)
        hypothesis, reference = (_tagged(taggers[1], side, self.lowercase) for side in (hypotheses, references))
        lengths = [len(document) for document in references]
        counts = _document_counts(rule, source, hypothesis, reference, lengths)
        totals = {name: [sum(part[name][i] for part in counts) for i in range(3)] for name in rule.classes}
        rows = [[sum(weight[name] * part[name][i] for name in rule.classes) for i in range(3)] for part in counts]
        match, hypothesised, expected = (sum(column) for column in zip(*rows))
        if not hypothesised + expected:
            raise UndefinedError(
                f"not one word that counts in {sum(lengths)} translations and references; "
                "check the languages, and that taggers have the tags of spaCy's pipelines"
            )
        result = self.result(
            documents,
            value=_f1(match, hypothesised, expected),
            signature=Signature.of(
                {
                    "langs": f"en-{lang}",
                    "classes": "+".join(rule.classes),
                    "weights": self.weights,
                    "case": "lc" if self.lowercase else "mixed",
                    "validity": "all" if sources is None else "source",
                    "source-tagger": "none" if sources is None else tagger_name(taggers[0]),
                    "target-tagger": tagger_name(taggers[1]),
                    "version": __version__,
                }
            ),
            n=sum(total[2] for name, total in totals.items() if weight[name]),
            breakdown={f"class={name}": _part(*total) for name, total in totals.items() if any(total)},
            details={
                **_precision_recall(match, hypothesised, expected),
                "undefined": [name for name, total in totals.items() if not any(total)],
                "statistics": Statistics(ids, rows).to_dict(),
            },
        )
        return [result]


class FormalityF1(PronounF1):
    """F1 of formal and informal address, as `PronounF1`; from English to German, French, Spanish and Russian.

    In Spanish *usted* counts, but not the forms that it shares with the third person.
    """

    name = "formality F1"
    choice = "formality"
    phenomenon = "formality"


def split_words(sentences: list[str]) -> list[list[Token]]:
    """The words of each sentence, with no tags: any word of a list counts, also behind a hyphen (*vois-tu*)."""
    return [[(word, "") for word in WORD.findall(normalize("NFC", sentence))] for sentence in sentences]


def count_words(rule: Phenomenon, source: Sequence[Token] | None, target: Sequence[Token]) -> dict[str, int]:
    """How many words of each class one tagged sentence has, all 0 where its source does not count."""
    pronouns = {word for word, tag in source or () if not rule.tags or tag in SOURCE_TAGS}
    if source is not None and not pronouns & rule.valid:
        return dict.fromkeys(rule.classes, 0)
    own = [word for word, tag in target if not rule.tags or tag in TARGET_TAGS]
    return {
        name: 0 if pronouns & rule.conflicts.get(name, frozenset()) else sum(word in forms for word in own)
        for name, forms in rule.classes.items()
    }


def _document_counts(rule: Phenomenon, source, hypothesis, reference, lengths) -> list[dict[str, list[int]]]:
    """{class: [match, hypothesis, reference]} of every document, from the tagged sentences of all."""
    sentences = iter(zip(source or [None] * sum(lengths), hypothesis, reference))
    documents = []
    for length in lengths:
        counts = {name: [0, 0, 0] for name in rule.classes}
        for _ in range(length):
            source_words, *sides = next(sentences)
            pair = [count_words(rule, source_words, side) for side in sides]
            for name, sums in counts.items():
                hypothesised, expected = (side[name] for side in pair)
                counts[name] = [a + b for a, b in zip(sums, (min(hypothesised, expected), hypothesised, expected))]
        documents.append(counts)
    return documents


def _tagged(tagger: Tagger, side: Documents | None, lowercase: bool) -> list[list[Token]] | None:
    if side is None:
        return None
    return tag(tagger, [sentence.lower() if lowercase else sentence for document in side for sentence in document])


def _part(match: int, hypothesised: int, expected: int) -> PartScore:
    details = {**_precision_recall(match, hypothesised, expected), "hypothesis": hypothesised, "match": match}
    return PartScore(_f1(match, hypothesised, expected), expected, details)


def _f1(match: float, hypothesised: float, expected: float) -> float:
    return 200 * match / (hypothesised + expected)


def _precision_recall(match: float, hypothesised: float, expected: float) -> dict[str, float | None]:
    return {
        "precision": 100 * match / hypothesised if hypothesised else None,
        "recall": 100 * match / expected if expected else None,
    }
