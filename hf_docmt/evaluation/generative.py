"""Do translations show what context tells? Sets of ctxpro translated by a system and judged, with any context."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hf_docmt.evaluation.conditions import condition_label, with_context
from hf_docmt.evaluation.context_ablation import add_differences
from hf_docmt.evaluation.discourse.ctxpro import (
    CtxproItem,
    ctxpro_result,
    judge_outputs,
    read_ctxpro,
    source_documents,
)
from hf_docmt.evaluation.suite_files import check_names
from hf_docmt.evaluation.suites import SuiteItem, check_language
from hf_docmt.evaluation.systems.interface import System, system_languages
from hf_docmt.reports.report import build_report

RULES = {"line": {}, "published": {"last": "sentence", "expected": "as written"}}


def ctxpro_files(
    system: System,
    sets: Sequence[str | Path],
    *,
    inputs: str | Path | None = None,
    conditions: Sequence[str] = ("true",),
    rule: str = "line",
    samples: int = 1000,
    seed: int = 0,
) -> dict:
    """The report of ctxpro's generative accuracy (Wicks and Post 2023) on these sets, for every condition of context.

    Items get as many sentences before the current one as the system reads, and the last translated sentence is judged
    (see `judge_outputs`); the conditions are those of `with_context`, without translations of the context, which the
    sets do not have. `rule`: `line` judges the translation of the current sentence and normalises the word that it must
    have; `published` is that of the paper's evaluation, see `judge_outputs`. `inputs` is for one set alone. Written
    down is the search that the system does (see `search_of`).
    ValueError: a set of other languages than the system's, two sets of one name.
    """
    if inputs is not None and len(sets) != 1:
        raise ValueError(f"inputs belong to one set, got {len(sets)} sets; judge them one by one")
    parts, results = [], []
    read = [read_ctxpro(path, inputs) for path in sets]
    check_names([items[0].item_id.rpartition(":")[0] for items in read], sets)
    for whole in read:  # other contexts are drawn, too, before the first set is translated
        items = [replace(item, source=item.source[-1 - system.past_context :]) for item in whole]
        check_language([_suite_item(items[0])], *system_languages(system))
        check_rule(rule, items[0].languages[1])
        parts.append({condition: with_other_context(items, condition, seed) for condition in conditions})
    for part in parts:
        found = {}
        for condition, items in part.items():
            found[condition] = ctxpro_result(
                items,
                system.translate(source_documents(items)),
                dataset=items[0].item_id.rpartition(":")[0],
                split="all",
                past_context=system.past_context,
                future_context=system.future_context,
                target_lang=items[0].languages[1],
                context=condition_label(condition, seed),
                **search_of(system),
                **RULES[rule],
            )
        results += add_differences(found, samples)
    return build_report(model=system.describe(), data={"sets": [Path(path).name for path in sets]}, results=results)


def check_rule(rule: str, target_lang: str | None) -> None:
    """ValueError for an unknown rule, or one whose sentence splitter is missing or does not know the language."""
    if rule not in RULES:
        raise ValueError(f"unknown rule {rule!r}: expected {' or '.join(RULES)}")
    some = CtxproItem("", ("",), "a", "", "", None, "")
    judge_outputs([some], [["A."]], target_lang=target_lang, **RULES[rule])


def search_of(system: System) -> dict:
    """The `strategy` and `beams` that a system translates with: those it was given, else those of its model."""
    model, given = getattr(system, "model", None), getattr(system, "generate_kwargs", {})
    strategy = getattr(system, "strategy", None)
    if strategy is None and hasattr(model, "default_strategy"):
        strategy = model.default_strategy()
    config = given.get("generation_config") or getattr(model, "generation_config", None)
    beams = given.get("num_beams") or (config and (config.num_beams or 1))
    return {"strategy": strategy, "beams": beams}


def with_other_context(items: Sequence[CtxproItem], condition: str, seed: int = 0) -> list[CtxproItem]:
    """The items with the context that `with_context` puts in the place of their own."""
    given = with_context([_suite_item(item) for item in items], condition, seed)
    return [replace(item, source=other.source) for item, other in zip(items, given)]


def _suite_item(item: CtxproItem) -> SuiteItem:
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
