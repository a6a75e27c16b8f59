"""Voita et al. (2019): Russian deixis, lexical cohesion and ellipsis, four sentences joined by `_eos`.

As JSON, or as the text files that are scored, `NAME.src` and `NAME.dst`, with one line for each candidate; which lines
are an item, and which is right, says the JSON: neighbouring items can have the same source.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hf_docmt.evaluation.suites.items import SuiteItem, field_of, same_text
from hf_docmt.evaluation.suites.texts import read_texts
from hf_docmt.files import DataError, stem

PUBLISHED = ("deixis_dev", "deixis_test", "lex_cohesion_dev", "lex_cohesion_test", "ellipsis_infl", "ellipsis_vp")


def voita_items(
    entries: list[dict], path: str | Path, context: int, places: Sequence[str] | None = None
) -> Iterator[SuiteItem]:
    """`places`: how messages call the items; by default by their number in the file."""
    name = stem(path)
    languages = _languages(entries, name)
    groups: dict[tuple[str, ...], str] = {}  # items with one context, called by the first of them
    for number, entry in enumerate(entries, 1):
        place = places[number - 1] if places else f"{path}, item {number}"
        source = _split_eos(field_of(entry, "src", str, place))
        targets = _targets(entry, source, place)
        start = max(0, len(source) - 1 - context)
        yield SuiteItem(
            item_id=f"{name}:{number}",
            source=source[start:],
            target_context=targets[0][start:-1],
            candidates=tuple(target[-1] for target in targets),
            correct=entry["true_ind"],
            phenomenon=re.sub(r"[_-](dev|valid|validation|test|train)$", "", name),
            distance=field_of(entry, "ctx_dist", int, place, optional=True),
            index=len(source) - 1,
            group=groups.setdefault(source[:-1], f"{name}:{number}"),
            format="voita",
            languages=languages,
            place=place,
        )


def voita_text_items(path: Path, context: int, records: list[dict], records_path: Path) -> Iterator[SuiteItem]:
    """Items of `NAME.src` or `.dst` and the file beside it; `records` are the items of the JSON."""
    told = list(voita_items(records, records_path, context))
    files = [path.with_suffix(suffix) for suffix in (".src", ".dst")]
    entries, places = [], []
    for entry, item, block in zip(records, told, read_texts(*files).blocks([len(item.candidates) for item in told])):
        for text, other in zip((block.source, *block.candidates), (entry["src"], *entry["dst"])):
            if not same_text(text, other):
                raise DataError(
                    f"{block.place}: {text!r} is not {other!r}, {item.place}; the files are not of one suite"
                )
        entries.append(entry | {"src": block.source, "dst": block.candidates})
        places.append(block.place)
    return voita_items(entries, path, context, places)


def _targets(entry: dict, source: tuple[str, ...], place: str) -> list[tuple[str, ...]]:
    """The sentences of every candidate."""
    candidates, correct = field_of(entry, "dst", list, place), field_of(entry, "true_ind", int, place)
    if len(candidates) < 2 or not 0 <= correct < len(candidates):
        raise DataError(
            f"{place}: true_ind is {correct} with {len(candidates)} candidates in 'dst'; expected two or more "
            "candidates and the place, from 0, of the right one"
        )
    targets = []
    for which, candidate in enumerate(candidates):
        if not isinstance(candidate, str):
            raise DataError(f"{place}: candidate {which} is {candidate!r}, expected text")
        target = _split_eos(candidate)
        if len(target) != len(source):
            raise DataError(
                f"{place}: candidate {which} has {len(target)} sentences, the source has {len(source)}; "
                "both need the same number, joined by ' _eos '"
            )
        if targets and target[:-1] != targets[0][:-1]:
            raise DataError(f"{place}: candidate {which} has another context; only the last sentence may differ")
        targets.append(target)
    return targets


def _languages(entries: Sequence[dict], name: str) -> tuple[str | None, str | None]:
    """English and Russian for a suite of a published name in Cyrillic letters; others use the format, too."""
    text = str([entry.get("dst") for entry in entries]) if name in PUBLISHED else ""
    letters = [letter for letter in text.replace("_eos", "") if letter.isalpha()]
    cyrillic = sum("\u0400" <= letter <= "\u04ff" for letter in letters)
    return ("en", "ru") if 2 * cyrillic > len(letters) else (None, None)


def _split_eos(text: str) -> tuple[str, ...]:
    return tuple(sentence.strip() for sentence in text.split("_eos"))
