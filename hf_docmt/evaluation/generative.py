"""Do translations show what context tells? Sets of ctxpro translated by a system and judged, with any context."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hf_docmt.evaluation.conditions import condition_label, with_context
from hf_docmt.evaluation.context_use import add_differences
from hf_docmt.evaluation.discourse.ctxpro import CtxproItem, ctxpro_result, read_ctxpro, source_documents
from hf_docmt.evaluation.report import build_report
from hf_docmt.evaluation.suites import SuiteItem, check_language
from hf_docmt.evaluation.systems.interface import System, system_languages


def ctxpro_files(
    system: System,
    sets: Sequence[str | Path],
    *,
    inputs: str | Path | None = None,
    conditions: Sequence[str] = ("true",),
    strategy: str | None = None,
    beams: int | None = None,
    samples: int = 1000,
    seed: int = 0,
) -> dict:
    """The report of ctxpro's generative accuracy (Wicks and Post 2023) on these sets, for every condition of context.

    Items get as many sentences before the current one as the system reads, and the last translated sentence is judged
    (see `judge_outputs`); the conditions are those of `with_context`, without translations of the context, which the
    sets do not have. `inputs` is for one set alone. `strategy` and `beams`, set on the system before, are written down.
    ValueError: a set of other languages than the system's.
    """
    if inputs is not None and len(sets) != 1:
        raise ValueError(f"inputs belong to one set, got {len(sets)} sets; judge them one by one")
    results = []
    for path in sets:
        items = [replace(item, source=item.source[-1 - system.past_context :]) for item in read_ctxpro(path, inputs)]
        check_language([_suite_item(items[0])], *system_languages(system))
        found = {}
        for condition in conditions:
            given = with_other_context(items, condition, seed)
            found[condition] = ctxpro_result(
                given,
                system.translate(source_documents(given)),
                dataset=items[0].item_id.rpartition(":")[0],
                split="all",
                past_context=system.past_context,
                future_context=system.future_context,
                target_lang=items[0].languages[1],
                context=condition_label(condition, seed),
                strategy=strategy,
                beams=beams,
            )
        results += add_differences(found, samples)
    return build_report(model=system.describe(), data={"sets": [Path(path).name for path in sets]}, results=results)


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
