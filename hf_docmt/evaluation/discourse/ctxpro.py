"""ctxpro (Wicks and Post 2023): translations that need context, judged by a word that the last sentence must have."""

import re
import string
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from hf_docmt import __version__
from hf_docmt.evaluation.contrastive_accuracy import wilson_interval
from hf_docmt.evaluation.discourse.sides import Documents
from hf_docmt.evaluation.suites.items import context_name, field_of
from hf_docmt.files import DataError, parse_json, read_lines
from hf_docmt.reports.report import make_result
from hf_docmt.reports.statistics import document_statistics

LAST = ("line", "sentence")
EXPECTED = ("normalised", "as written")
_LANGUAGES = re.compile(r"\.([a-z]{2,3})-([a-z]{2,3})(?:\.|$)")
_DELETED = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True)
class CtxproItem:
    """A source text of which the last sentence is current, and the word that its translation must have."""

    item_id: str
    source: tuple[str, ...]  # context, oldest first, then the current sentence
    expected: str
    rule: str
    reference: str  # of the current sentence
    distance: int | None  # sentences back to what decides; None: the file does not tell
    group: str  # document that the item comes from
    languages: tuple[str | None, str | None] = (None, None)  # of source and translation, as far as the name tells


def read_ctxpro(path: str | Path, inputs: str | Path | None = None) -> list[CtxproItem]:
    """The items of an evaluation set, in file order: JSON `evalsets/NAME.json` and text `inputs/NAME`.

    A line of `inputs` is an item's source, sentences joined by `<eos> `; by default the file stands in the folder
    `inputs` beside that of the JSON, as published. Sentences stay as they are. DataError names file and item.
    """
    path = Path(path)
    entries = parse_json("\n".join(line for _, line in read_lines(path)), path)
    if not isinstance(entries, list) or not entries:
        raise DataError(f"{path}: expected a JSON list of at least one item, got {type(entries).__name__}")
    inputs = path.parent.parent / "inputs" / path.name.removesuffix(".json") if inputs is None else Path(inputs)
    if not inputs.is_file():
        raise DataError(f"{path}: its source texts are needed, but {inputs} is not there; give the file of inputs")
    lines = [line for _, line in read_lines(inputs)]
    if len(lines) != len(entries):
        raise DataError(
            f"{inputs}: {len(lines)} lines for {len(entries)} items in {path}; one of the files is cut or altered"
        )
    return [_item(entry, line, number, path, inputs) for number, (entry, line) in enumerate(zip(entries, lines), 1)]


def source_documents(items: Sequence[CtxproItem], context: int | None = None) -> list[list[str]]:
    """The items as documents to be translated: the current sentence after at most `context` others (None: all)."""
    if context is not None and context < 0:
        raise ValueError(f"context is {context}, expected the number of sentences before the current one, 0 or more")
    return [list(item.source if context is None else item.source[-1 - context :]) for item in items]


def judge_outputs(
    items: Sequence[CtxproItem],
    outputs: Documents,
    *,
    last: str = "line",
    expected: str = "normalised",
    target_lang: str | None = None,
) -> list[bool]:
    """For every item whether the last sentence of its translated document has the expected word.

    It has if, in lower case, without ASCII punctuation and with a blank at both ends, it contains the word between
    blanks. `last`: `line` is the last entry, the translation of the current sentence; `sentence` is what sentencex cuts
    off last, by the rules of `target_lang`, from all entries joined by blanks: near to the published evaluation, which
    is given whole texts and has another splitter. `expected`: `normalised` treats the word as the sentence; with
    `as written` one that has a capital, as some of the set for auxiliaries have, is never found.
    """
    for value, known, name in ((last, LAST, "last"), (expected, EXPECTED, "expected")):
        if value not in known:
            raise ValueError(f"{name} is {value!r}, expected {' or '.join(map(repr, known))}")
    if len(outputs) != len(items) or not items:
        raise ValueError(f"{len(outputs)} translated documents for {len(items)} items; one for each item is needed")
    right = []
    for item, output in zip(items, outputs):
        if isinstance(output, str) or not output:
            raise ValueError(f"item {item.item_id}: got {output!r}, expected a list of translated sentences")
        text = output[-1] if last == "line" else _last_sentence(" ".join(output), target_lang)
        word = _normalised(item.expected) if expected == "normalised" else item.expected
        right.append(f" {word} " in f" {_normalised(text)} ")
    return right


def ctxpro_result(
    items: Sequence[CtxproItem],
    outputs: Documents,
    *,
    dataset: str,
    split: str,
    past_context: int,
    future_context: int = 0,
    context: str = "true",
    last: str = "line",
    expected: str = "normalised",
    target_lang: str | None = None,
    strategy: str | None = None,
    beams: int | None = None,
) -> dict:
    """Share of items judged right (see `judge_outputs`) in percent as a report result, by rule and distance.

    `past_context` and `future_context` are those of the system, for the signature, as is `context`: whether it was the
    `true` one or another that was put in its place. Intervals are Wilson's, 95 %.
    Statistics: [right, n] of each document that items come from.
    """
    right = judge_outputs(items, outputs, last=last, expected=expected, target_lang=target_lang)
    labels, groups = defaultdict(list), defaultdict(list)
    for item, found in zip(items, right):
        groups[item.group].append(found)
        labels[f"rule={item.rule}"].append(found)
        if item.distance is not None:
            labels[f"distance={item.distance if item.distance <= 3 else '>3'}"].append(found)
    splitter = last if last == "line" else f"sentencex-{version('sentencex')}-{target_lang}"
    total = _part(right)
    return make_result(
        task="discourse",
        dataset=dataset,
        split=split,
        metric="generative accuracy",
        value=total["value"],
        signature=(
            f"right:expected-word-in-last-sentence|last:{splitter}|case:lc|punctuation:ascii-deleted|"
            f"expected:{expected.replace(' ', '-')}|past:{context_name(past_context)}|future:{future_context}|"
            f"context:{context}|version:{__version__}"
        ),
        n=total["n"],
        strategy=strategy,
        beams=beams,
        breakdown={label: _part(labels[label]) for label in sorted(labels)},
        details={
            "interval": total["interval"],
            "statistics": document_statistics(list(groups), [[sum(found), len(found)] for found in groups.values()]),
        },
    )


def _part(right: list[bool]) -> dict:
    return {
        "value": 100 * sum(right) / len(right),
        "n": len(right),
        "interval": wilson_interval(sum(right), len(right)),
    }


def _item(entry: dict, line: str, number: int, path: Path, inputs: Path) -> CtxproItem:
    place, source = f"{path}, item {number}", tuple(line.split("<eos> "))
    current, expected = field_of(entry, "src segment", str, place), field_of(entry, "expected", str, place)
    if source[-1].split() != current.split():
        raise DataError(
            f"{inputs}, line {number}: the last sentence is {source[-1]!r}, but the item has {current!r} in {path}; "
            "give the inputs of this set"
        )
    if not _normalised(expected).strip():
        raise DataError(f"{place}: 'expected' is {expected!r}, which no translation can be searched for")
    return CtxproItem(
        item_id=f"{path.name.removesuffix('.json')}:{number}",
        source=source,
        expected=expected,
        rule=field_of(entry, "rule", str, place),
        reference=field_of(entry, "ref segment", str, place),
        distance=field_of(entry, "ante distance", int, place, optional=True),
        group=field_of(entry, "document id", str, place),
        languages=_languages(path),
    )


def _languages(path: Path) -> tuple[str | None, str | None]:
    """`NAME.opensubtitles.en-de.dev.json`: English to German."""
    found = _LANGUAGES.search(path.name)
    return found.groups() if found else (None, None)


def _normalised(text: str) -> str:
    return text.lower().translate(_DELETED)


def _last_sentence(text: str, lang: str | None) -> str:
    if not lang:
        raise ValueError("the target language is needed to cut texts into sentences: give target_lang, such as 'de'")
    try:
        from sentencex import segment
    except ImportError as error:
        raise ValueError(
            "cutting texts into sentences needs sentencex: pip install 'hf-docmt[text]', or judge the last line "
            "(last='line')"
        ) from error
    return ([sentence.strip() for sentence in segment(lang, text) if sentence.strip()] or [""])[-1]
