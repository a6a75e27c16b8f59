"""Generative accuracy: do translations of a system show what only the context says? For the true and other contexts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hf_docmt import __version__
from hf_docmt.evaluation.conditions import condition_label, with_context
from hf_docmt.evaluation.context_ablation import add_differences
from hf_docmt.evaluation.contrast import check_names, items_between
from hf_docmt.evaluation.contrastive_accuracy import wilson_interval
from hf_docmt.evaluation.details import DetailsFile, hash_of
from hf_docmt.evaluation.suites import SuiteItem, check_language
from hf_docmt.evaluation.suites.ctxpro import Ctxpro
from hf_docmt.evaluation.suites.generative_suite import GenerativeItem, GenerativeSuite
from hf_docmt.evaluation.suites.items import context_name
from hf_docmt.evaluation.systems import System
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Part, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import Statistics


def generative_report(
    system: System,
    sets: Sequence[str | Path],
    *,
    suite: type[GenerativeSuite] = Ctxpro,
    inputs: str | Path | None = None,
    conditions: Sequence[str] = ("true",),
    rule: str = "line",
    limit: int | None = None,
    details: str | Path | None = None,
    samples: int = 1000,
    seed: int = 0,
) -> Report:
    """The report of the generative accuracy (Wicks and Post 2023) on these sets, for every condition of context.

    Items get as many sentences before the current one as the system reads, and the last translated sentence counts
    (see `Ctxpro.right`); the conditions are those of `with_context`, without translations of the context, which the
    sets do not have. `rule` is one of `suite.rules`. `inputs` is for one set alone, `limit` is the most items of a set.
    With `details`, a `DetailsFile` of every item, an interrupted run can go on. The report has the search that the
    system does (`System.decoding`). ValueError: a set of other languages than the system's, two sets of one name.
    """
    if inputs is not None and len(sets) != 1:
        raise ValueError(f"inputs belong to one set, got {len(sets)} sets; translate them one by one")
    parts, results, file = [], [], DetailsFile(details)
    read = [suite(path, inputs).read() for path in sets]
    check_names([items[0].suite for items in read], sets)
    for whole in read:  # conditions are tried, too, before the first set is translated
        items, split = items_between(whole, None, limit)
        items = [replace(item, source=item.source[-1 - system.context.past :]) for item in items]
        check_language([_suite_item(items[0])], *system.languages)
        _check_rule(suite, rule, items[0].languages[1])
        parts.append((split, {condition: with_other_context(items, condition, seed) for condition in conditions}))
    for split, part in parts:
        found = {}
        for condition, items in part.items():
            label = condition_label(condition, seed)
            found[condition] = generative_result(
                items,
                _translations(system, items, suite, rule, label, file),
                suite=suite,
                dataset=items[0].suite,
                split=split,
                past_context=system.context.past,
                future_context=system.context.future,
                target_lang=items[0].languages[1],
                context=label,
                **system.decoding,
                **suite.rules[rule],
            )
        results += add_differences(found, samples)
    file.finish()
    return Report(model=system.describe(), data={"sets": [Path(path).name for path in sets]}, results=results)


def translation_file_report(
    name: str,
    path: str | Path,
    translations: str | Path,
    *,
    suite: type[GenerativeSuite] = Ctxpro,
    inputs: str | Path | None = None,
    rule: str = "line",
    limit: int | None = None,
    details: str | Path | None = None,
) -> Report:
    """The report of a system of this name from a file of its translations, in the order of the set's items.

    `translations` are those of the whole set, of which `limit` takes the first ones; the other arguments are those of
    `generative_report`.
    """
    whole = suite(path, inputs).read()
    target_lang = whole[0].languages[1]
    _check_rule(suite, rule, target_lang)
    items, split = items_between(whole, None, limit)
    outputs = suite.read_translations(translations, whole)[: len(items)]
    file = DetailsFile(details)
    file.records(
        items,
        lambda part: _records(part, outputs, suite, rule, "file"),
        lambda: {"translations": "file", "rule": rule, "texts": hash_of(outputs)},
        chunk=len(items),
    )
    file.finish()
    result = _result(
        items, outputs, {"translations": "file"}, suite, items[0].suite, split, target_lang, suite.rules[rule]
    )
    data = {"sets": [Path(path).name], "translations": Path(translations).name}
    return Report(model={"name": name}, data=data, results=[result])


def generative_result(
    items: Sequence[GenerativeItem],
    outputs: Sequence[Sequence[str]],
    *,
    suite: type[GenerativeSuite] = Ctxpro,
    dataset: str,
    split: str,
    past_context: int,
    future_context: int = 0,
    context: str = "true",
    target_lang: str | None = None,
    strategy: str | None = None,
    beams: int | None = None,
    **rule: str,
) -> Result:
    """Share of right items in percent as a report result, by rule of the set and by distance.

    `outputs` are the translated documents. `past_context` and `future_context` are those of the system, for the
    signature, as is `context`: the `true` one or another instead; `rule` are arguments of `suite.right`.
    Intervals are Wilson's, 95 %. Statistics: [right, n] of each document that items come from.
    """
    made = {"past": context_name(past_context), "future": future_context, "context": context}
    result = _result(items, outputs, made, suite, dataset, split, target_lang, rule)
    return replace(result, strategy=strategy, beams=beams)


def _result(
    items: Sequence[GenerativeItem],
    outputs: Sequence[Sequence[str]],
    made: dict,
    suite: type[GenerativeSuite],
    dataset: str,
    split: str,
    target_lang: str | None,
    rule: Mapping[str, str],
) -> Result:
    """`made` says in the signature where the translations are from."""
    right = suite.right(items, outputs, target_lang=target_lang, **rule)
    labels, groups = defaultdict(list), defaultdict(list)
    for item, found in zip(items, right):
        groups[item.group].append(found)
        labels[f"rule={item.rule}"].append(found)
        if item.distance is not None:
            labels[f"distance={item.distance if item.distance <= 3 else '>3'}"].append(found)
    total = _part(right)
    statistics = Statistics(list(groups), [[sum(found), len(found)] for found in groups.values()])
    return Result(
        task="discourse",
        dataset=dataset,
        split=split,
        metric="generative accuracy",
        value=total.value,
        signature=Signature.parse(suite.rule_signature(target_lang=target_lang, **rule))
        + Signature.of({**made, "version": __version__}),
        n=total.n,
        breakdown={label: _part(labels[label]) for label in sorted(labels)},
        details={**total.details, "statistics": statistics.to_dict()},
    )


def _translations(
    system: System,
    items: list[GenerativeItem],
    suite: type[GenerativeSuite],
    rule: str,
    context: str,
    file: DetailsFile,
) -> list[list[str]]:
    """The translated documents of the items, as far as possible from the file."""

    def find(part: list[GenerativeItem]) -> list[dict]:
        return _records(part, system.translate(source_documents(part)), suite, rule, context)

    def facts() -> dict:
        return {"rule": rule, "context": context, "model": system.fingerprint(), **system.decoding}

    return [record["translation"] for record in file.records(items, find, facts)]


def _records(
    items: Sequence[GenerativeItem], outputs: list[list[str]], suite: type[GenerativeSuite], rule: str, context: str
) -> list[dict]:
    """What details files have of each item."""
    right = suite.right(items, outputs, target_lang=items[0].languages[1], **suite.rules[rule])
    return [
        {
            "suite": item.suite,
            "context": context,
            "phenomenon": item.rule,
            "distance": item.distance,
            "document": item.group,
            "source": list(item.source),
            "translation": list(output),
            "reference": item.reference,
            "expected": item.expected,
            "right": found,
        }
        for item, output, found in zip(items, outputs, right)
    ]


def source_documents(items: Sequence[GenerativeItem], context: int | None = None) -> list[list[str]]:
    """The items as documents to be translated: the current sentence after at most `context` others (None: all)."""
    if context is not None and context < 0:
        raise ValueError(f"context is {context}, expected the number of sentences before the current one, 0 or more")
    return [list(item.source if context is None else item.source[-1 - context :]) for item in items]


def with_other_context(items: Sequence[GenerativeItem], condition: str, seed: int = 0) -> list[GenerativeItem]:
    """The items with the context that `with_context` gives them instead of their own."""
    given = with_context([_suite_item(item) for item in items], condition, seed)
    return [replace(item, source=other.source) for item, other in zip(items, given)]


def _check_rule(suite: type[GenerativeSuite], rule: str, target_lang: str | None) -> None:
    """ValueError for an unknown rule, or one whose sentence splitter is missing or does not know the language."""
    if rule not in suite.rules:
        raise ValueError(f"unknown rule {rule!r}: expected {' or '.join(suite.rules)}")
    some = GenerativeItem("", ("",), "a", "", "", None, "")
    suite.right([some], [["A."]], target_lang=target_lang, **suite.rules[rule])


def _suite_item(item: GenerativeItem) -> SuiteItem:
    return SuiteItem(
        item_id=item.item_id,
        source=item.source,
        target_context=("",) * (len(item.source) - 1),
        candidates=(item.reference,),
        correct=0,
        phenomenon=item.rule,
        distance=item.distance,
        group=item.group,
        languages=item.languages,
    )


def _part(right: Sequence[bool]) -> Part:
    interval = wilson_interval(sum(right), len(right))
    return Part(100 * sum(right) / len(right), len(right), {"interval": interval})
