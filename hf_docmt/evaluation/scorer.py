"""Contrastive accuracy: does the model give the right translation a higher probability than every wrong one?"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from hf_docmt import __version__
from hf_docmt.data.sampling import TokenBudgetBatchSampler
from hf_docmt.data.views import TokenizedSentences
from hf_docmt.evaluation.report import make_result
from hf_docmt.evaluation.suites import SuiteItem

NORMALIZATIONS = ("sum", "mean")


@dataclass(frozen=True)
class Verdict:
    """How often the right candidate won: percent, number of items, each item, and {label: {"value", "n"}}."""

    accuracy: float
    n: int
    right: tuple[bool, ...]
    breakdown: dict[str, dict]


def score_suite(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    items: Sequence[SuiteItem],
    *,
    collate: Callable[[list[dict]], dict[str, torch.Tensor]],
    past_context: int = 0,
    future_context: int = 0,
    normalization: str = "sum",
    batch_tokens: int = 4096,
) -> list[list[float]]:
    """Log-probability (natural, fp32) of every candidate of every item, by forced decoding; higher is better.

    Scored are the tokens of the current sentence and the mark that ends it, given the reference as target context:
    their `sum`, or their `mean`. `collate` is the architecture's collator with `context_discount=0`, whose
    `label_weights` are then 1 on these tokens and 0 on context. An item has as much of its past context as the model
    takes; future sentences are empty. Equal candidates have equal scores. `batch_tokens` limits the padded source and
    target tokens of a batch; the items are sorted by length, and each source is encoded once where the model can share
    it between rows (`per_source_inputs`). ValueError: unknown normalization, nothing to score.
    """
    if normalization not in NORMALIZATIONS:
        raise ValueError(f"unknown normalization {normalization!r}: expected {' or '.join(NORMALIZATIONS)}")
    if not items:
        raise ValueError("the suite has no items to score")
    choices = _choices(items, tokenizer, past_context, future_context)
    scores: list[list[float]] = [[] for _ in items]
    was_training = model.training
    model.eval()
    try:
        for batch in _batches(choices, batch_tokens):
            rows = len(choices[batch[0]].examples)
            examples = [example for place in batch for example in choices[place].examples]
            found = _log_probabilities(model, collate(examples), rows, normalization)  # (items in batch, rows)
            for place, values in zip(batch, found.tolist()):
                scores[place] = [values[row] for row in choices[place].rows]
    finally:
        model.train(was_training)
    return scores


def judge(items: Sequence[SuiteItem], scores: Sequence[Sequence[float]]) -> Verdict:
    """Accuracy in percent, with its breakdown by phenomenon, distance and further labels; a tie counts as wrong.

    ValueError: another number of items or candidates than scores, or a score that is not a number.
    """
    if len(items) != len(scores) or not items:
        raise ValueError(f"{len(scores)} rows of scores for {len(items)} items; one row for each item is needed")
    groups: dict[str, list[bool]] = defaultdict(list)
    several, right = len({item.phenomenon for item in items}) > 1, []
    for item, row in zip(items, scores):
        if len(row) != len(item.candidates):
            raise ValueError(f"item {item.item_id}: {len(row)} scores for {len(item.candidates)} candidates")
        if any(math.isnan(score) for score in row):
            raise ValueError(f"item {item.item_id}: NaN in its scores {list(row)}; check the model's weights")
        wrong = [score for place, score in enumerate(row) if place != item.correct]
        right.append(row[item.correct] > max(wrong))
        for label in _labels(item, crossed=several):
            groups[label].append(right[-1])
    breakdown = {label: {"value": _percent(groups[label]), "n": len(groups[label])} for label in sorted(groups)}
    return Verdict(_percent(right), len(right), tuple(right), breakdown)


def contrastive_result(
    verdict: Verdict, *, dataset: str, split: str, normalization: str, past_context: int, future_context: int = 0
) -> dict:
    """The verdict as an entry of a report, its signature saying how the scores were made."""
    signature = (
        f"logprob:{normalization}|tokens:current|target-context:reference|past:{past_context}|future:{future_context}|"
        f"ties:wrong|version:{__version__}"
    )
    return make_result(
        task="contrastive",
        dataset=dataset,
        split=split,
        metric="accuracy",
        value=verdict.accuracy,
        signature=signature,
        n=verdict.n,
        breakdown=verdict.breakdown,
    )


@dataclass(frozen=True)
class _Choice:
    examples: list[dict]  # one for each different candidate
    rows: list[int]  # which example each candidate is
    length: int  # source and longest target tokens


def _choices(
    items: Sequence[SuiteItem], tokenizer: PreTrainedTokenizerBase, past_context: int, future_context: int
) -> list[_Choice]:
    sources = _tokenize((text for item in items for text in item.source), tokenizer, is_target=False)
    texts = (text for item in items for text in (*item.target_context, *item.candidates))
    targets = _tokenize(texts, tokenizer, is_target=True)
    choices = []
    for item in items:
        past = min(past_context, len(item.source) - 1)
        missing = [[] for _ in range(future_context)]
        source = [sources[text] for text in item.source[len(item.source) - 1 - past :]] + missing
        context = [targets[text] for text in item.target_context[len(item.target_context) - past :]]
        candidates = [tuple(targets[text]) for text in item.candidates]
        different = list(dict.fromkeys(candidates))
        index = len(item.source) - 1 if item.index is None else item.index
        place = {"doc_id": item.item_id, "index": index, "current": past, "document_start": index == past}
        examples = [
            {**place, "source": source, "target": [*context, list(candidate), *missing]} for candidate in different
        ]
        longest = sum(map(len, source + context)) + max(map(len, different)) + 2 * len(source)
        choices.append(_Choice(examples, [different.index(candidate) for candidate in candidates], longest))
    return choices


def _tokenize(texts: Iterator[str], tokenizer: PreTrainedTokenizerBase, *, is_target: bool) -> dict[str, list[int]]:
    """Token ids of every different sentence, as the training views make them."""
    different = list(dict.fromkeys(texts))
    table = TokenizedSentences([different], tokenizer, is_target=is_target)
    return dict(zip(different, table.lists(0, len(different))))


def _batches(choices: list[_Choice], batch_tokens: int) -> Iterator[list[int]]:
    """Places of items with equally many different candidates and of about equal length."""
    groups: dict[int, list[int]] = defaultdict(list)
    for place, choice in enumerate(choices):
        groups[len(choice.examples)].append(place)
    for rows, places in sorted(groups.items()):
        lengths = [rows * choices[place].length for place in places]
        for batch in TokenBudgetBatchSampler(lengths, batch_tokens, shuffle=False):
            yield [places[number] for number in batch]


@torch.inference_mode()
def _log_probabilities(model: nn.Module, batch: dict, rows: int, normalization: str) -> torch.Tensor:
    """Scores of a batch whose rows stand in groups of `rows` with one source: (B,) as (B / rows, rows), fp32."""
    device = next(model.parameters()).device
    batch = {name: value.to(device) for name, value in batch.items()}
    labels = batch.pop("labels")  # (B, T)
    scored = (labels != -100).float()
    scored = scored * batch.pop("label_weights", scored)
    logits = model(**_share_sources(model, batch, rows)).logits.float()  # (B, T, V)
    losses = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(scored)
    found = -(losses * scored).sum(dim=1)
    if normalization == "mean":
        found = found / scored.sum(dim=1)
    return found.view(-1, rows)


def _share_sources(model: nn.Module, batch: dict, rows: int) -> dict:
    """The batch with encoder states in place of source ids, each source encoded once, where the model takes that."""
    shared = getattr(model, "per_source_inputs", None)
    if shared is None or rows == 1:
        return batch
    batch = {name: value[::rows] if name == "input_ids" or name in shared else value for name, value in batch.items()}
    encoder_inputs = {name: value for name, value in batch.items() if name in shared}
    encoder_outputs = model.get_encoder()(input_ids=batch.pop("input_ids"), **encoder_inputs)
    return {**batch, "encoder_outputs": encoder_outputs}


def _labels(item: SuiteItem, crossed: bool) -> list[str]:
    """What an item counts for in the breakdown; distances above 3 are one class, as in ContraPro.

    `crossed`: each distance within a phenomenon, too.
    """
    labels = [f"phenomenon={item.phenomenon}", *(f"{name}={value}" for name, value in item.labels.items())]
    if item.distance is not None:
        distance = f"distance={item.distance if item.distance <= 3 else '>3'}"
        labels += [distance, f"phenomenon={item.phenomenon} {distance}"] if crossed else [distance]
    return labels


def _percent(right: Sequence[bool]) -> float:
    return 100.0 * sum(right) / len(right)
