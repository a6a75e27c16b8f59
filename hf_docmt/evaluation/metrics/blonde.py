"""BlonDe: verb forms, pronouns, persons, discourse markers and n-grams, for English targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from hf_docmt.data.language_codes import primary_language
from hf_docmt.evaluation.metrics.metric import Measurement, Metric, TranslatedDocuments
from hf_docmt.evaluation.metrics.tagging import Analyser, NameTagger, tagger_name
from hf_docmt.messages import __version__
from hf_docmt.reports.signature import Signature

VERBS = ("VBD", "VBN", "VBP", "VBZ", "VBG", "VB", "MD")  # tags
PRONOUNS = {  # with their weights; neuter and epicene ones have none in the released tool
    "masculine": (0.5, "he his him himself"),
    "feminine": (0.5, "she her hers herself"),
}
MARKERS = {
    "comparison": "but|while|however|although|though|still|yet|whereas|on the other hand|in contrast|by contrast|"
    "by comparison|conversely",
    "cause": "if|because|so|since|thus|hence|as a result|therefore|thereby|accordingly|consequently|in consequence|"
    "for this reason",
    "conjunction": "also|in addition|moreover|additionally|besides|else,|plus",
    "asynchronous": "when|after|then|before|until|later|once|afterward|next",
    "synchronous": "meantime|meanwhile|simultaneously",
}
ORDERS = (1, 2, 3, 4)  # of n-grams
CATEGORIES = ("tense", "pronoun", "entity", "dm", *(f"{order}-gram" for order in ORDERS))
FLOOR = 1e-5  # of a recall or precision in the mean
COLUMNS = 3 * len(CATEGORIES)  # matched, of the reference, of the hypothesis, for each category

_Features = dict[str, list[tuple[float, Counter]]]  # {category: (weight, counts) of each of its types}


class Blonde(Metric):
    """F1 of recall and precision, each the geometric mean over eight categories; Jiang et al. (2022).

    Categories are tense (verb tags), pronoun, entity (persons), dm (discourse markers) and n-grams of 1 to 4 tokens.
    Matches of a sentence with its reference are counted up to the smaller number, and summed over
    the corpus. N-grams without a match are smoothed (exp). A category that one side lacks is excluded from that side's
    mean. `tagger` gives tokens, Penn tags and names of persons, by default the spaCy pipeline of the
    released tool, whose weights and lists these are; its scores for sentences and its categories annotated by hand are
    not implemented. `details`: recall, precision and F1 of each category, and `dBlonDe`, the mean of the first four.
    Statistics: COLUMNS. ValueError: a target other than English.
    """

    name = "BlonDe"
    choice = "blonde"
    task = "discourse"

    def __init__(self, tagger: Analyser | None = None):
        self.tagger = tagger

    @classmethod
    def check_languages(cls, source_lang, target_lang):
        if primary_language(target_lang) not in (None, "en"):
            raise ValueError(f"BlonDe is made for English translations, got {target_lang!r}; omit the metric")

    @staticmethod
    def score_from_sums(sums):
        return np.array([100 * scores_of(row)["BlonDe"][2] for row in sums])

    def measure(self, documents: TranslatedDocuments) -> Measurement:
        tagger, lengths = self.tagger or NameTagger("en_core_web_sm"), [len(side) for side in documents.references]
        hypothesis, reference = (
            [features_of(tokens, names) for tokens, names in tagger([text for document in side for text in document])]
            for side in (documents.hypotheses, documents.references)
        )
        rows = iter([statistics_of(*pair) for pair in zip(hypothesis, reference, strict=True)])
        statistics = [[next(rows) for _ in range(length)] for length in lengths]
        scores = scores_of(np.sum([row for document in statistics for row in document], axis=0))
        signature = {"segments": "sentence", "average": "geometric", "smooth": "exp", "case": "mixed"}
        return Measurement(
            statistics,
            Signature.of({**signature, "tagger": tagger_name(tagger), "version": __version__}),
            details={
                name: {
                    part: 100 * float(value) if np.isfinite(value) else None
                    for part, value in zip(("recall", "precision", "F1"), values)
                }
                for name, values in scores.items()
            },
        )


def features_of(tokens: Sequence[tuple[str, str]], names: Sequence[str]) -> _Features:
    """The weighted counts of each category in a sentence, from (token, tag) and the names of persons."""
    words = [word for word, _ in tokens]
    lower = [word.lower() for word in words]
    tags = Counter(tag for _, tag in tokens)
    features: _Features = {
        "tense": [(1 / len(VERBS), Counter({tag: tags[tag]})) for tag in VERBS],
        "pronoun": [(weight, Counter(_forms(words, forms.split()))) for weight, forms in PRONOUNS.values()],
        "entity": [(1.0, Counter(name.removesuffix("’s") for name in names))],
        "dm": [
            (
                1 / len(MARKERS),
                Counter({kind: sum(_occurrences(lower, phrase.split()) for phrase in phrases.split("|"))}),
            )
            for kind, phrases in MARKERS.items()
        ],
    }
    for order in ORDERS:
        ngrams = Counter(" ".join(words[start : start + order]) for start in range(len(words) - order + 1))
        features[f"{order}-gram"] = [(1 / len(ORDERS), ngrams)]
    return features


def statistics_of(hypothesis: _Features, reference: _Features) -> list[float]:
    """The row of a sentence, of COLUMNS numbers: weighted counts, matched, of the reference, of the hypothesis."""
    row: list[float] = []
    for category in CATEGORIES:
        pairs = list(zip(hypothesis[category], reference[category]))
        row.append(sum(weight * (own & other).total() for (weight, own), (_, other) in pairs))
        row.append(sum(weight * other.total() for _, (weight, other) in pairs))
        row.append(sum(weight * own.total() for (weight, own), _ in pairs))
    return row


def scores_of(row: Sequence[float]) -> dict[str, tuple[float, float, float]]:
    """(recall, precision, F1) of each category, of dBlonDe and of BlonDe, in [0, 1], from summed statistics."""
    match, *totals = np.asarray(row, float).reshape(len(CATEGORIES), 3).T  # each (categories,)
    with np.errstate(invalid="ignore"):  # NaN for a category without counts
        recall, precision = (np.array([*match[:4] / total[:4], *_smoothed(match[4:], total[4:])]) for total in totals)
    scores = {name: _with_f1(*pair) for name, *pair in zip(CATEGORIES, recall, precision)}
    scores["dBlonDe"] = _with_f1(_geometric_mean(recall[:4]), _geometric_mean(precision[:4]))
    scores["BlonDe"] = _with_f1(_geometric_mean(recall), _geometric_mean(precision))
    return scores


def _forms(words: Sequence[str], forms: Sequence[str]) -> dict[str, int]:
    """How many of the words are one of these forms, in small letters or with a capital, as one type."""
    return {"": sum(word in forms or (word.istitle() and word.lower() in forms) for word in words)}


def _occurrences(words: Sequence[str], phrase: Sequence[str]) -> int:
    return sum(list(words[start : start + len(phrase)]) == list(phrase) for start in range(len(words)))


def _smoothed(match: np.ndarray, total: np.ndarray) -> Iterator[float]:
    """For n-grams: those without a match count half, then a quarter, ...; 0 without n-grams."""
    halved, whole_before = 1.0, True
    for own, whole in zip(match, total):
        whole_before = whole_before and bool(whole)
        if whole_before and not own:
            halved *= 2
        yield (own / whole if own else 1 / (halved * whole)) if whole_before else 0.0


def _geometric_mean(values: np.ndarray) -> float:
    defined = values[~np.isnan(values)]
    return float(np.exp(np.log(np.maximum(defined, FLOOR)).mean())) if len(defined) else np.nan


def _with_f1(recall: float, precision: float) -> tuple[float, float, float]:
    return recall, precision, 2 * recall * precision / (recall + precision) if recall + precision else 0.0
