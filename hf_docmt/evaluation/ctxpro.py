"""ctxpro (Wicks and Post 2023): translations that need context, where the last sentence must have a certain word.

A set is JSON `evalsets/NAME.json` and text `inputs/NAME`, a line for each item, sentences joined by `<eos> `.
"""

import re
import string
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

from hf_docmt.evaluation.context_ablation import condition_label, with_context
from hf_docmt.evaluation.contrast import add_differences, check_names, items_between
from hf_docmt.evaluation.contrastive_accuracy import by_group, verdict_result
from hf_docmt.evaluation.item_records import ItemRecords, hash_of, write_item_records
from hf_docmt.evaluation.suites import SuiteItem, check_language, items_digest, labels_of
from hf_docmt.evaluation.suites.suite_files import entries_of, field_of
from hf_docmt.files import DataError, read_json, read_lines
from hf_docmt.messages import __version__, check_known, install_command
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result
from hf_docmt.reports.signature import Signature
from hf_docmt.systems import System

RULES = ("line", "published")
LANGUAGES = re.compile(r"\.([a-z]{2,3})-([a-z]{2,3})(?:\.|$)")  # `NAME.opensubtitles.en-de.dev.json`
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def generative_report(
    system: System,
    sets: Sequence[str | Path],
    *,
    inputs: str | Path | None = None,
    conditions: Sequence[str] = ("true",),
    rule: str = "line",
    limit: int | None = None,
    details: str | Path | None = None,
) -> Report:
    """The report of the generative accuracy of a system on these sets, for every condition of context.

    Items get the previous sentences that the system reads, and the last translated sentence counts (see `is_right`);
    the conditions are those of `with_context`, without translations of the context, which the sets do not have.
    `inputs` is for one set alone, `limit` is the maximum number of items of a set. With `details`, a `ItemRecords` of
    every item, an interrupted run can go on. The report has the search that the system does (`System.decoding`).
    ValueError: a set of other languages than the system's, two sets of one name.
    """
    if inputs is not None and len(sets) != 1:
        raise ValueError(f"inputs belong to one set, got {len(sets)} sets; translate them one by one")
    parts, results, file, reach = [], [], ItemRecords(details), system.context
    read = [read_set(path, inputs) for path in sets]
    check_names([items[0].suite for items in read], sets)
    for whole in read:  # conditions are tried, too, before the first set is translated
        items, split = items_between(whole, None, limit)
        items = [nearest_context(item, reach.past) for item in items]
        check_language(items, *system.languages)
        check_rule(rule, items[0].languages[1])
        parts.append((split, {condition: with_context(items, condition) for condition in conditions}))

    def find(part: Sequence[SuiteItem]) -> list[dict]:
        return item_records(part, system.translate([list(item.source) for item in part]), rule)

    for split, part in parts:
        of_conditions = {}
        for condition, items in part.items():
            label = condition_label(condition)
            made = {**reach.entries(), "context": label}
            records = file.records(items, find, system, rule=rule, context=label, **system.decoding)
            result = generative_result(items, [record["right"] for record in records], rule, split, made)
            of_conditions[condition] = replace(result, **system.decoding)
        results += add_differences(of_conditions)
    file.finish()
    return Report(model=system.describe(), data={"sets": [Path(path).name for path in sets]}, results=results)


def translation_file_report(
    name: str,
    path: str | Path,
    translations: str | Path,
    *,
    inputs: str | Path | None = None,
    rule: str | None = None,
    limit: int | None = None,
    details: str | Path | None = None,
) -> Report:
    """The report of a system of this name from a file of its translations, a line for each item of the set, in order.

    A line is the translation of the item's whole source, or its end, as the released script reads it. Without a `rule`
    it is `line` if `<eos>` marks the last sentence of every item with context, otherwise `published`: a line without
    the mark would be searched from its start. `limit` takes the first items; the other arguments are those of
    `generative_report`. DataError: another number of lines than items.
    """
    whole = read_set(path, inputs)
    lines = [line for _, line in read_lines(translations)]
    if len(lines) != len(whole):
        raise DataError(f"{translations}: {len(lines)} lines for {len(whole)} items of {whole[0].suite}; give one each")
    if rule is None:
        marked = all("<eos>" in line for item, line in zip(whole, lines) if len(item.source) > 1)
        rule = "line" if marked else "published"
    check_rule(rule, whole[0].languages[1])
    items, split = items_between(whole, None, limit)
    outputs = [[line] for line in lines[: len(items)]]
    records = item_records(items, outputs, rule)
    write_item_records(details, items, records, context="file", rule=rule, texts=hash_of(outputs))
    result = generative_result(items, [record["right"] for record in records], rule, split, {"translations": "file"})
    data = {"sets": [Path(path).name], "translations": Path(translations).name}
    return Report(model={"name": name}, data=data, results=[result])


def read_set(path: str | Path, inputs: str | Path | None = None) -> list[SuiteItem]:
    """The items of a set in file order, with its rule as phenomenon and the expected word as the label `expected`.

    `inputs`: by default the file in the folder `inputs` next to that of the JSON, as published. Sentences are not
    changed; the translations of the context, which the sets do not have, are empty. DataError names file and item.
    """
    path, entries = Path(path), entries_of(read_json(path), path)
    inputs = Path(inputs) if inputs else path.parent.parent / "inputs" / path.name.removesuffix(".json")
    if not inputs.is_file():
        raise DataError(f"{path}: its source texts are needed, but {inputs} is missing; give the file of inputs")
    lines = [line for _, line in read_lines(inputs)]
    if len(lines) != len(entries):
        raise DataError(f"{inputs}: {len(lines)} lines for {len(entries)} items in {path}; give the whole files")
    languages, items = LANGUAGES.search(path.name), []
    for number, (entry, line) in enumerate(zip(entries, lines), 1):
        where, source = f"{path}, item {number}", tuple(line.split("<eos> "))
        current, expected = field_of(entry, "src segment", str, where), field_of(entry, "expected", str, where)
        if source[-1].split() != current.split():
            raise DataError(
                f"{inputs}, line {number}: the last sentence is {source[-1]!r}, but the item has {current!r} in "
                f"{path}; give the inputs of this set"
            )
        item = SuiteItem(
            item_id=f"{path.name.removesuffix('.json')}:{number}",
            source=source,
            target_context=("",) * (len(source) - 1),
            candidates=(field_of(entry, "ref segment", str, where),),
            correct=0,
            phenomenon=field_of(entry, "rule", str, where),
            distance=field_of(entry, "ante distance", int, where, optional=True),
            labels={"expected": expected},
            group=field_of(entry, "document id", str, where),
            languages=languages.groups() if languages else (None, None),
            location=where,
        )
        items.append(item)
    return items


def nearest_context(item: SuiteItem, past: int) -> SuiteItem:
    """The item with at most this number of sentences before the current one."""
    source = item.source[-1 - past :]
    return replace(item, source=source, target_context=("",) * (len(source) - 1))


def is_right(item: SuiteItem, output: Sequence[str], rule: str = "line", target_lang: str | None = None) -> bool:
    """Whether the last sentence of the translated document has the expected word.

    It has if, in lower case, without ASCII punctuation and with a blank at both ends, it contains the word between
    blanks. With the rule `line` the last sentence is the translation of the current one, the last entry, or what
    follows its last `<eos>`, and the word is normalised as the sentence is (if that leaves anything). The rule
    `published` is that of the released script (`ctxpro score`): the sentence is what the package sentence_splitter cuts
    off last, by the rules of `target_lang`, from all entries joined by blanks, and the word is just lower-cased, so
    that one with ASCII punctuation is never found. ValueError: see `check_rule`.
    """
    word = item.labels["expected"].lower()
    if rule == "published":
        text = " ".join(output).strip()
        text = (_splitter(target_lang).split(text) or [text])[-1]
    else:
        text = output[-1].rpartition("<eos>")[2]
        normalised = word.translate(NO_PUNCTUATION)
        word = normalised if normalised.strip() else word
    return f" {word} " in f" {text.lower().translate(NO_PUNCTUATION)} "


def check_rule(rule: str, target_lang: str | None) -> None:
    """ValueError for an unknown rule, or one whose sentence splitter is missing or does not know the language."""
    check_known(rule, RULES, "rule", "expected one of")
    if rule == "published":
        _splitter(target_lang)


def item_records(items: Sequence[SuiteItem], outputs: Sequence[Sequence[str]], rule: str) -> list[dict]:
    """The record of each item in details files. ValueError: another number of outputs than items."""
    return [
        {
            "suite": item.suite,
            "phenomenon": item.phenomenon,
            "distance": item.distance,
            "translation": list(output),
            "reference": item.candidates[0],
            **item.labels,
            "right": is_right(item, output, rule, item.languages[1]),
        }
        for item, output in zip(items, outputs, strict=True)
    ]


def generative_result(items: Sequence[SuiteItem], right: Sequence[bool], rule: str, split: str, made: dict) -> Result:
    """Share of right items in percent as a report result, by rule of the set and by distance.

    `made` says in the signature where the translations are from. Intervals are Wilson's, 95 %. Statistics: [right, n]
    of each document that items come from.
    """
    parts = defaultdict(list)
    for item, verdict in zip(items, right, strict=True):
        parts[f"rule={item.phenomenon}"].append(verdict)
        if item.distance is not None:
            parts[f"distance={labels_of(item)['distance']}"].append(verdict)
    published = f"sentence_splitter-{version('sentence_splitter')}-{items[0].languages[1]}" if rule != "line" else rule
    signature = {
        "right": "expected-word-in-last-sentence",
        "last": published,
        "case": "lc",
        "punctuation": "ascii-deleted",
        "expected": "normalised" if rule == "line" else "lowercased",
        **made,
        "version": __version__,
        "data": items_digest(items),
    }
    return verdict_result(
        right,
        parts,
        by_group(items, right),
        task="discourse",
        dataset=items[0].suite,
        split=split,
        metric="generative accuracy",
        signature=Signature.of(signature),
    )


@cache
def _splitter(lang: str | None):
    if not lang:
        raise ValueError("the target language is needed to cut texts into sentences: give target_lang, such as 'de'")
    try:
        from sentence_splitter import SentenceSplitter, SentenceSplitterException
    except ImportError as error:
        raise ValueError(
            "the published rule cuts texts into sentences with sentence_splitter (LGPL-3): "
            f"{install_command('ctxpro')}, or use the rule 'line' for "
            "sentences that are alone in their line, or after <eos>"
        ) from error
    try:
        return SentenceSplitter(language=lang)
    except SentenceSplitterException as error:
        raise ValueError(f"sentence_splitter has no rules for {lang!r}; use the rule 'line'") from error
