"""What is published about the suites: counts, the rule for ties, languages."""

import re
from collections import Counter
from collections.abc import Sequence

from hf_docmt.evaluation.suites.items import SuiteItem, labels_of
from hf_docmt.files import DataError

TIES = {"contrapro": "wrong", "voita": "first", "lopes": "wrong", "bawden": "wrong"}
DISTANCES = {"0": 2400, "1": 7075, "2": 1510, "3": 573, ">3": 442}  # ContraPro: items at each antecedent distance
CONTRAPRO = "contrapro"
_CONTRAPRO_ID = re.compile(r"\d{4}_\d+_\d+(\.de)?")  # year, film, subtitles
COUNTS = {  # (format, name; None: any): what is counted, by the names of `counts`
    ("contrapro", CONTRAPRO): {"items": 12000, "candidates": 36000}
    | {f"distance={d}": n for d, n in DISTANCES.items()},
    ("voita", "deixis_dev"): {"items": 500, "candidates": 1000},
    ("voita", "deixis_test"): {"items": 2500, "candidates": 5000},
    ("voita", "lex_cohesion_dev"): {"items": 500, "candidates": 1124},
    ("voita", "lex_cohesion_test"): {"items": 1500, "candidates": 3428},
    ("voita", "ellipsis_infl"): {"items": 500, "candidates": 2520},
    ("voita", "ellipsis_vp"): {"items": 500, "candidates": 5203},
    ("lopes", None): {"items": 14000, "candidates": 28000}
    | {f"phenomenon={pronoun}": 3500 for pronoun in ("il", "elle", "ils", "elles")},
    ("bawden", "anaphora"): {"items": 200, "groups": 50, "kind=correct": 100, "kind=semi-correct": 100},
    ("bawden", "lexical_choice"): {"items": 200, "groups": 100},
}
_CODES = {"eng": "en", "deu": "de", "ger": "de", "fra": "fr", "fre": "fr", "rus": "ru", "spa": "es", "ita": "it"}
_CODES |= {"pol": "pl", "por": "pt"}


def counts(items: Sequence[SuiteItem]) -> dict[str, int]:
    """How many items, candidates, groups, and items with each label (`phenomenon=il`, `distance=>3`, …) there are."""
    found = Counter(f"{name}={value}" for item in items for name, value in labels_of(item).items())
    groups = {item.group for item in items if item.group is not None}
    candidates = sum(len(item.candidates) for item in items)
    return {"items": len(items), "candidates": candidates, "groups": len(groups), **found}


def counts_note(items: Sequence[SuiteItem]) -> str | None:
    """What differs from the counts of the suite as published; None if nothing does, or none is known of that name.

    `items` are the whole suite; its name, such as `deixis_dev`, is that of the file without endings. Lopes is compared
    under any name, ContraPro under its own, or with its document ids: other suites use the format, too. What no item
    tells (distances, say, where only texts were read) is not compared.
    """
    format, name = items[0].format, items[0].item_id.rpartition(":")[0]
    is_contrapro = all(_CONTRAPRO_ID.fullmatch(item.group or "") for item in items)
    published = COUNTS.get((format, name)) or COUNTS.get((format, CONTRAPRO if is_contrapro else None))
    if published is None:
        return None
    found = counts(items)
    told = {key.partition("=")[0] for key in found}
    parts = [
        f"{key} {found.get(key, 0):,} (published {count:,})"
        for key, count in published.items()
        if key.partition("=")[0] in told and found.get(key, 0) != count
    ]
    return f"{name}: other counts than published: {', '.join(parts)}" if parts else None


def check_language(items: Sequence[SuiteItem], source_lang: str | None, target_lang: str | None) -> None:
    """DataError where items are known to be of other languages than a model that translates between these.

    Lopes and Bawden are English-French. The formats of ContraPro and Voita serve other suites, too: there documents,
    file names, document ids, or a published name with Cyrillic candidates tell. What is not told on either side is not
    compared; codes such as `de_DE`, `deu_Latn` and `de` are the same language, codes of other length are not compared.
    """
    for item in items[:1]:
        check_languages(item.where, item.languages, source_lang, target_lang)


def check_languages(
    place: str, languages: tuple[str | None, str | None], source_lang: str | None, target_lang: str | None
) -> None:
    """As `check_language`, with the languages of what was read from a place."""
    for side, own, other in zip(("source", "target"), languages, (source_lang, target_lang)):
        codes = {_primary(code) for code in (own, other) if code}
        if len(codes) == 2 and len(set(map(len, codes))) == 1:
            raise DataError(
                f"{place}: the {side} language is {own!r}, the model's {other!r}; take data from {source_lang} to "
                f"{target_lang}, or a model of these languages"
            )


def _primary(code: str) -> str:
    language = code.lower().replace("-", "_").split("_")[0]
    return _CODES.get(language, language)
