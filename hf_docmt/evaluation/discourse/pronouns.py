"""Pronoun and formality F1, English to German: is *it* given the right gender, *you* the right form of address?"""

from collections.abc import Sequence
from dataclasses import dataclass

from hf_docmt import __version__
from hf_docmt.evaluation.discourse.sides import Documents, check_sides
from hf_docmt.evaluation.discourse.tagging import Tagger, Token, load_tagger, tag, tagger_name
from hf_docmt.reports.result import Part, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import Statistics

SOURCE_TAGS = frozenset("PRP PRP$ WP WP$".split())
TARGET_TAGS = frozenset("PDAT PDS PIAT PIS PPER PPOSAT PPOSS PRELAT PRELS PRF PWAT PWAV PWS".split())
WEIGHTS = {
    "paper": {"masculine": 1, "feminine": 1, "neuter": 1, "formal": 1, "informal": 1},
    "released": {"masculine": 0.5, "feminine": 0.5, "neuter": 0, "formal": 0.5, "informal": 0.5},
}


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


def pronoun_f1(
    sources: Documents | None,
    hypotheses: Documents,
    references: Documents,
    *,
    dataset: str,
    split: str,
    phenomenon: str = "pronoun",
    taggers: tuple[Tagger, Tagger] | None = None,
    weights: str = "paper",
    lowercase: bool = False,
    doc_ids: Sequence[str] | None = None,
    strategy: str | None = None,
    beams: int | None = None,
) -> Result:
    """The F1 of a phenomenon in percent as a report result; Herold and Ney (2023), section 3.5 and appendix A.1.

    Words count where their tag is a pronoun's, all of them in a sentence; a match is the smaller count of the two
    sides, and the sums go over the corpus. The source alone says which sentences and classes count (see `PHENOMENA`);
    with `sources=None` all do. `taggers`: English and German, by default the spaCy pipelines of the paper. `weights`:
    `paper` sums the classes, `released` is the default of the authors' code, in which *es* has no weight in any of the
    sums. `lowercase` is what that code's command does to all sides before tagging.

    F1 is 2·match / (hypothesis + reference): the harmonic mean of precision and recall, and 0 where the authors' code
    gives NaN but one side has words that count. Without any it is undefined: a ValueError for the corpus; a class is
    left out of the breakdown and named in `details["undefined"]`. Precision or recall without words is null. `n` is the
    number of words in the reference. Statistics: [match, hypothesis, reference], weighted.
    """
    rule, weight = _choice(phenomenon, PHENOMENA, "phenomenon"), _choice(weights, WEIGHTS, "weights")
    ids = check_sides(hypotheses, references, sources, doc_ids)
    taggers = taggers or (load_tagger("en"), load_tagger("de"))
    source = _tagged(taggers[0], sources, lowercase)
    hypothesis, reference = (_tagged(taggers[1], side, lowercase) for side in (hypotheses, references))
    counts = _document_counts(phenomenon, source, hypothesis, reference, [len(document) for document in references])
    totals = {name: [sum(part[name][i] for part in counts) for i in range(3)] for name in rule.classes}
    rows = [[sum(weight[name] * part[name][i] for name in rule.classes) for i in range(3)] for part in counts]
    match, found, expected = (sum(column) for column in zip(*rows))
    if not found + expected:
        raise ValueError(
            f"{phenomenon} F1 is undefined: not one word that counts in {sum(map(len, references))} translations and "
            "references; check that the text is English to German and the taggers' tags are those of spaCy's pipelines"
        )
    return Result(
        task="discourse",
        dataset=dataset,
        split=split,
        metric=f"{phenomenon} F1",
        value=_f1(match, found, expected),
        signature=_signature(rule, taggers, weights, lowercase, sources is None),
        n=sum(total[2] for name, total in totals.items() if weight[name]),
        strategy=strategy,
        beams=beams,
        breakdown={f"class={name}": _part(*total) for name, total in totals.items() if any(total)},
        details={
            **_precision_recall(match, found, expected),
            "undefined": [name for name, total in totals.items() if not any(total)],
            "statistics": Statistics(ids, rows).to_dict(),
        },
    )


def count_words(phenomenon: str, source: Sequence[Token] | None, target: Sequence[Token]) -> dict[str, int]:
    """How many words of each class one tagged sentence has, all 0 where its source does not count."""
    rule = _choice(phenomenon, PHENOMENA, "phenomenon")
    pronouns = {word for word, tag in source or () if tag in SOURCE_TAGS}
    if source is not None and not pronouns & rule.valid:
        return dict.fromkeys(rule.classes, 0)
    words = [word for word, tag in target if tag in TARGET_TAGS]
    return {
        name: 0 if pronouns & rule.conflicts.get(name, frozenset()) else sum(word in forms for word in words)
        for name, forms in rule.classes.items()
    }


def _document_counts(phenomenon: str, source, hypothesis, reference, lengths) -> list[dict[str, list[int]]]:
    """{class: [match, hypothesis, reference]} of every document, from the tagged sentences of all."""
    sentences = iter(zip(source or [None] * sum(lengths), hypothesis, reference))
    documents = []
    for length in lengths:
        counts = {name: [0, 0, 0] for name in PHENOMENA[phenomenon].classes}
        for _ in range(length):
            words, *sides = next(sentences)
            pair = [count_words(phenomenon, words, side) for side in sides]
            for name, sums in counts.items():
                found, expected = (side[name] for side in pair)
                counts[name] = [a + b for a, b in zip(sums, (min(found, expected), found, expected))]
        documents.append(counts)
    return documents


def _tagged(tagger: Tagger, side: Documents | None, lowercase: bool) -> list[list[Token]] | None:
    if side is None:
        return None
    return tag(tagger, [sentence.lower() if lowercase else sentence for document in side for sentence in document])


def _part(match: int, found: int, expected: int) -> Part:
    details = {**_precision_recall(match, found, expected), "hypothesis": found, "match": match}
    return Part(_f1(match, found, expected), expected, details)


def _f1(match: float, found: float, expected: float) -> float:
    return 200 * match / (found + expected)


def _precision_recall(match: float, found: float, expected: float) -> dict[str, float | None]:
    return {
        "precision": 100 * match / found if found else None,
        "recall": 100 * match / expected if expected else None,
    }


def _signature(rule: Phenomenon, taggers: tuple, weights: str, lowercase: bool, unchecked: bool) -> Signature:
    source, target = ("none" if unchecked else tagger_name(taggers[0])), tagger_name(taggers[1])
    values = {
        "langs": "en-de",
        "classes": "+".join(rule.classes),
        "weights": weights,
        "case": "lc" if lowercase else "mixed",
        "validity": "all" if unchecked else "source",
        "source-tagger": source,
        "target-tagger": target,
        "version": __version__,
    }
    return Signature.of(values)


def _choice(name: str, known: dict, what: str):
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}: expected {' or '.join(known)}")
    return known[name]
