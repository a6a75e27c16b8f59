"""Log-probabilities of given translations, by forced decoding: [item][candidate][token]."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from hf_docmt.data.collators import IGNORE_INDEX
from hf_docmt.data.samplers import TokenBudgetBatchSampler
from hf_docmt.data.tokenized_documents import tokenize_sentences
from hf_docmt.evaluation.suites import SuiteItem

NORMALIZATIONS = ("sum", "mean", "window-mean")


def normalized(tokens: Sequence[float], normalization: str) -> float:
    """The score of a candidate from the log-probabilities of its tokens: their sum, else their mean."""
    return math.fsum(tokens) / (1 if normalization == "sum" else len(tokens))


def token_log_probabilities(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    items: Sequence[SuiteItem],
    *,
    collate: Callable[[list[dict]], dict[str, torch.Tensor]],
    past_context: int = 0,
    future_context: int = 0,
    missing_future: str = "empty",
    batch_tokens: int = 4096,
) -> list[list[list[float]]]:
    """Log-probability (natural, fp32) of [item][candidate][token of the current sentence], by forced decoding.

    Scored are the tokens of the current sentence and its end token, given the reference as target context. `collate` is
    the architecture's collator with `context_discount=0`, whose `label_weights` are 1 on these tokens and 0 on context;
    `<bod>`, which translation is given, is not scored. An item has as much of its past context as the model reads;
    future sentences that it does not have are `empty`, as in windows, or `left out`, as at the end of chunks. Equal
    candidates have equal scores. `batch_tokens` limits the padded source and target tokens of a batch; the items are
    sorted by length, and each source is encoded once where the model can share it between rows (`per_source_inputs`).
    ValueError: no items, an item (named) of more tokens than the model has learned positions for.
    """
    if not items:
        raise ValueError("the suite has no items to score")
    choices = suite_choices(items, tokenizer, past_context, future_context, missing_future)
    check_lengths(model, collate, [choice.examples for choice in choices])
    scores: list[list[list[float]]] = [[] for _ in items]
    was_training = model.training
    model.eval()
    try:
        with unchanged_weights(model):
            for batch in _batches(choices, batch_tokens):
                rows = len(choices[batch[0]].examples)
                examples = [example for index in batch for example in choices[index].examples]
                inputs = scored_batch(collate, examples)
                found = log_probabilities(model, inputs, rows)  # (items in batch) x rows x tokens
                for index, values in zip(batch, found):
                    scores[index] = [values[row] for row in choices[index].rows]
    finally:
        model.train(was_training)
    return scores


def unchanged_weights(model: nn.Module) -> AbstractContextManager:
    """The model's scope `prepacked_weights` for faster inference on a CPU, where it has one."""
    return model.prepacked_weights() if hasattr(model, "prepacked_weights") else nullcontext()


def scored_token_ids(
    tokenizer: PreTrainedTokenizerBase,
    items: Sequence[SuiteItem],
    *,
    collate: Callable[[list[dict]], dict[str, torch.Tensor]],
    past_context: int = 0,
    future_context: int = 0,
    missing_future: str = "empty",
) -> list[list[list[int]]]:
    """The tokens that `token_log_probabilities` scores: ids by [item][candidate][token]."""
    found = []
    for choice in suite_choices(items, tokenizer, past_context, future_context, missing_future):
        batch = scored_batch(collate, choice.examples)
        labels = batch["labels"]
        ids = [row[chosen].tolist() for row, chosen in zip(labels, _scored(labels, batch.get("label_weights")))]
        found.append([ids[row] for row in choice.rows])
    return found


def scored_batch(collate: Callable[[list[dict]], dict], examples: list[dict]) -> dict[str, torch.Tensor]:
    """A batch in which `<bod>` is no label: it opens a document in translation, too, where the model does not write it.

    Its id is `collate.bod`, where the collator has one.
    """
    batch, bod = collate(examples), getattr(collate, "bod", None)
    if bod is not None:
        batch["labels"] = batch["labels"].masked_fill(batch["labels"] == bod, IGNORE_INDEX)
    return batch


def check_lengths(model: nn.Module, collate: Callable[[list[dict]], dict], groups: Sequence[list[dict]]) -> None:
    """ValueError names (by `doc_id`) the first group of examples with more tokens than learned positions."""
    config = getattr(model, "config", None)
    if getattr(config, "position_type", None) != "learned":
        return
    for examples in groups:
        batch = collate(examples)
        for side, name in (("source", "input_ids"), ("target", "decoder_input_ids")):
            if batch[name].shape[1] > config.max_position_embeddings:
                raise ValueError(
                    f"{examples[0]['doc_id']}: {batch[name].shape[1]} {side} tokens with their context, but the model "
                    f"has learned positions for {config.max_position_embeddings}; give less context or leave it out"
                )


@dataclass(frozen=True)
class Choice:
    """An item as examples to score; equal candidates share one."""

    examples: list[dict]  # one for each different candidate
    rows: list[int]  # which example each candidate is
    length: int  # source and longest target tokens


def suite_choices(
    items: Sequence[SuiteItem],
    tokenizer: PreTrainedTokenizerBase,
    past_context: int,
    future_context: int,
    missing_future: str = "empty",
) -> list[Choice]:
    """The items as token ids, with as much of their context as the model reads."""
    texts = (text for item in items for text in (*item.source, *item.source_after))
    sources = _tokenize(texts, tokenizer, is_target=False)
    texts = (text for item in items for text in (*item.target_context, *item.candidates, *item.target_after))
    targets = _tokenize(texts, tokenizer, is_target=True)
    choices = []
    for item in items:
        past = min(past_context, len(item.source) - 1)
        missing = [[] for _ in range(future_context if missing_future == "empty" else 0)]
        after = ([sources[text] for text in item.source_after] + missing)[:future_context]
        target_after = ([targets[text] for text in item.target_after] + missing)[:future_context]
        source = [sources[text] for text in item.source[len(item.source) - 1 - past :]] + after
        context = [targets[text] for text in item.target_context[len(item.target_context) - past :]]
        candidates = [tuple(targets[text]) for text in item.candidates]
        different = list(dict.fromkeys(candidates))
        index = len(item.source) - 1 if item.index is None else item.index
        location = {"doc_id": item.where, "index": index, "current": past, "document_start": index == past}
        examples = [
            {**location, "source": source, "target": [*context, list(candidate), *target_after]}
            for candidate in different
        ]
        longest = sum(map(len, source + context)) + max(map(len, different)) + 2 * len(source)
        choices.append(Choice(examples, [different.index(candidate) for candidate in candidates], longest))
    return choices


def _tokenize(texts: Iterator[str], tokenizer: PreTrainedTokenizerBase, *, is_target: bool) -> dict[str, list[int]]:
    """Token ids of every different sentence, as the training views make them."""
    different = list(dict.fromkeys(texts))
    table = tokenize_sentences([different], tokenizer, is_target=is_target)
    return dict(zip(different, table.lists(0, len(different))))


def _batches(choices: list[Choice], batch_tokens: int) -> Iterator[list[int]]:
    """Indices of items with equally many different candidates and of about equal length."""
    groups: dict[int, list[int]] = defaultdict(list)
    for index, choice in enumerate(choices):
        groups[len(choice.examples)].append(index)
    for rows, indices in sorted(groups.items()):
        lengths = [rows * choices[index].length for index in indices]
        for batch in TokenBudgetBatchSampler(lengths, batch_tokens, shuffle=False):
            yield [indices[number] for number in batch]


@torch.inference_mode()
def log_probabilities(model: nn.Module, batch: dict, rows: int) -> list[list[list[float]]]:
    """Of a batch whose rows stand in groups of `rows` with one source: groups x rows x scored tokens, in fp32."""
    device = next(model.parameters()).device
    batch = {name: value.to(device) for name, value in batch.items()}
    labels = batch.pop("labels")  # (B, T)
    scored = _scored(labels, batch.pop("label_weights", None))
    inputs = _share_sources(model, batch, rows)
    if hasattr(model, "logits_at"):
        logits = model.logits_at(scored, **inputs)  # (N, V), N scored tokens of all rows
    else:
        logits = model(**inputs).logits[scored]
    found = -nn.functional.cross_entropy(logits.float(), labels[scored], reduction="none")
    values = [row.tolist() for row in found.cpu().split(scored.sum(dim=1).tolist())]
    return [values[first : first + rows] for first in range(0, len(values), rows)]


def _scored(labels: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
    """(B, T) bool: labels that are tokens, and of weight other than 0 where weights are given."""
    is_token = labels != IGNORE_INDEX
    return is_token if weights is None else is_token & (weights != 0)


def _share_sources(model: nn.Module, batch: dict, rows: int) -> dict:
    """The batch with encoder states instead of source ids, each source encoded once, where the model takes that."""
    shared = getattr(model, "per_source_inputs", None)
    if shared is None or rows == 1:
        return batch
    batch = {name: value[::rows] if name == "input_ids" or name in shared else value for name, value in batch.items()}
    encoder_inputs = {name: value for name, value in batch.items() if name in shared}
    encoder_outputs = model.get_encoder()(input_ids=batch.pop("input_ids"), **encoder_inputs)
    return {**batch, "encoder_outputs": encoder_outputs}
