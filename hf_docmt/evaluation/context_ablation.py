"""Does a system use context? Accuracy under true and other contexts; the door to all measures of context use."""

from collections.abc import Callable, Sequence

from datasets import Dataset

from hf_docmt.data.documents import sentences
from hf_docmt.evaluation.conditions import CONDITIONS, condition_label, with_context
from hf_docmt.evaluation.contrastive_accuracy import contrastive_result, judge
from hf_docmt.evaluation.cxmi import PointwiseCXMI, cxmi_result, pointwise_cxmi, word_gains
from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.evaluation.systems.interface import System
from hf_docmt.evaluation.systems.log_probabilities import NORMALIZATIONS, normalized
from hf_docmt.reports.significance import compare_systems


def context_results(
    system: System,
    items: Sequence[SuiteItem],
    *,
    dataset: str,
    split: str = "all",
    conditions: Sequence[str] = CONDITIONS,
    normalization: str = "sum",
    ties: str | None = None,
    seed: int = 0,
    samples: int = 1000,
    keep: Callable[[str, Sequence[SuiteItem], list[list[float]]], None] | None = None,
) -> list[dict]:
    """Contrastive accuracy under each condition of `with_context`, as report results that differ in `context`.

    Intervals of accuracies are those of `judge`. With `true` among the conditions, `details["difference"]` of the
    others is what they have more than `true` (in points), its 95 % interval and p-value (paired bootstrap over what
    their statistics are of, such as documents), where there are two of these or more. `keep(condition, items, scores)`
    gets the scores.
    """
    if normalization not in NORMALIZATIONS:
        raise ValueError(f"unknown normalization {normalization!r}: expected {' or '.join(NORMALIZATIONS)}")
    results = {}
    for condition in conditions:
        given = with_context(items, condition, seed)
        scores = [
            [normalized(tokens, normalization) for tokens in row] for row in system.token_log_probabilities(given)
        ]
        if keep is not None:
            keep(condition, given, scores)
        results[condition] = contrastive_result(
            judge(given, scores, ties),
            dataset=dataset,
            split=split,
            normalization=normalization,
            past_context=system.past_context,
            future_context=system.future_context,
            target_context=system.target_context,
            context=condition_label(condition, seed),
        )
    return add_differences(results, samples)


def add_differences(results: dict[str, dict], samples: int = 1000) -> list[dict]:
    """The results by condition, with what the others have more than `true` in `details["difference"]`."""
    true = results.get("true")
    if true and len(results) > 1 and len(true["details"]["statistics"]["ids"]) > 1:
        outcomes = compare_systems(results, "true", samples=samples, may_differ=("context",))
        for condition, outcome in outcomes.items():
            results[condition]["details"]["difference"] = {
                "value": outcome.delta,
                "interval": list(outcome.interval),
                "p_value": outcome.p_value,
            }
    return list(results.values())


def items_of_documents(
    documents: Dataset, *, source_lang: str, target_lang: str, past_context: int, future_context: int = 0
) -> list[SuiteItem]:
    """Every sentence as an item whose one candidate is its reference, with the context that it has in its document.

    Sentences that are blank on either side are no items, but stay as context.
    """
    items = []
    for row in documents:
        source, target = (sentences(row, lang) for lang in (source_lang, target_lang))
        for i, (current, reference) in enumerate(zip(source, target, strict=True)):
            if current.strip() and reference.strip():
                start, stop = max(0, i - past_context), i + 1 + future_context
                items.append(
                    SuiteItem(
                        item_id=f"{row['doc_id']}:{i + 1}",
                        source=tuple(source[start : i + 1]),
                        target_context=tuple(target[start:i]),
                        candidates=(reference,),
                        correct=0,
                        phenomenon="reference",
                        distance=None,
                        index=i,
                        source_after=tuple(source[i + 1 : stop]),
                        target_after=tuple(target[i + 1 : stop]),
                        group=row["doc_id"],
                        languages=(source_lang, target_lang),
                    )
                )
    return items


__all__ = [
    "CONDITIONS",
    "PointwiseCXMI",
    "context_results",
    "cxmi_result",
    "items_of_documents",
    "pointwise_cxmi",
    "word_gains",
    "with_context",
]
