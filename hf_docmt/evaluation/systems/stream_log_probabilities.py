"""Forced decoding of models that carry a state: they read the context sentence by sentence before the candidates."""

from collections.abc import Callable, Sequence

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.evaluation.systems.log_probabilities import (
    Choice,
    check_lengths,
    log_probabilities,
    scored_batch,
    suite_choices,
    unchanged_weights,
)


def stream_log_probabilities(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    items: Sequence[SuiteItem],
    *,
    collate: Callable[[list[dict]], dict[str, torch.Tensor]],
    past_context: int,
    batch_tokens: int = 4096,
) -> list[list[list[float]]]:
    """As `token_log_probabilities`: natural logarithms by [item][candidate][token of the current sentence].

    The state before an item is that of a document which starts `past_context` sentences before it, or where the item's
    document does, its translations being the references; blank sentences are left out, as in translation.
    `collate` makes a batch of single sentences. Items are batched by the length of their context, which is encoded
    again for each item, so that long contexts cost time: a smaller `past_context` makes them cheaper. `batch_tokens`
    limits the tokens of one sentence of all items. ValueError: nothing to score, a sentence of more tokens than
    learned positions.
    """
    if not items:
        raise ValueError("the suite has no items to score")
    choices = [without_blanks(choice) for choice in suite_choices(items, tokenizer, past_context, 0)]
    check_lengths(model, collate, [all_sentences(choice) for choice in choices])
    order = sorted(range(len(items)), key=lambda item: -choices[item].examples[0]["current"])
    scores: list[list[list[float]]] = [[] for _ in items]
    with unchanged_weights(model):
        while order:
            size = rows_within(batch_tokens, [choices[item] for item in order])
            batch, order = order[:size], order[size:]
            found = score_batch(model, [choices[item] for item in batch], collate)
            for item in batch:
                values = [found.pop(0) for _ in choices[item].examples]
                scores[item] = [values[row] for row in choices[item].rows]
    return scores


def without_blanks(choice: Choice) -> Choice:
    """The same without the context sentences whose source is blank."""
    first = choice.examples[0]
    kept = [i for i in range(first["current"]) if first["source"][i]]
    examples = [
        {
            **example,
            **{side: [example[side][i] for i in (*kept, first["current"])] for side in ("source", "target")},
            "current": len(kept),
        }
        for example in choice.examples
    ]
    return Choice(examples, choice.rows, choice.length)


def all_sentences(choice: Choice) -> list[dict]:
    """The context sentences of an item in reading order, and the current sentence with each different candidate."""
    first, *others = choice.examples
    context = [sentence_of(first, i) for i in range(first["current"])]
    return context + [sentence_of(example, example["current"]) for example in (first, *others)]


def rows_within(batch_tokens: int, choices: Sequence[Choice]) -> int:
    """How many of the first items fit into a batch."""
    rows, longest = 0, 0
    for number, choice in enumerate(choices, 1):
        rows += len(choice.examples)
        sentences = [len(ids) for example in choice.examples for side in ("source", "target") for ids in example[side]]
        longest = max(longest, 2 * max(sentences) + 2)
        if rows * longest > batch_tokens:
            return max(1, number - 1)
    return len(choices)


@torch.inference_mode()
def score_batch(model: PreTrainedModel, choices: Sequence[Choice], collate: Callable) -> list[list[float]]:
    """Log-probabilities of all different candidates of items with less and less context."""
    past = [choice.examples[0]["current"] for choice in choices]
    memory: dict[str, torch.Tensor] = {}
    for step in range(past[0], 0, -1):  # sentences before the current one
        active = [choice for choice, count in zip(choices, past) if count >= step]
        examples = [sentence_of(choice.examples[0], count - step) for choice, count in zip(active, past)]
        starts = [count == step for count in past[: len(active)]]
        batch = on_device(model, collate(examples) | {"document_start": torch.tensor(starts)})
        batch |= model.memory_with_rows(memory, len(active))
        inputs = {name: value for name, value in batch.items() if name not in ("labels", "label_weights")}
        memory = model.memory_after(model.model(**inputs, use_cache=False))
    rows = torch.tensor([len(choice.examples) for choice in choices], device=model.device)
    examples = [sentence_of(example, example["current"]) for choice in choices for example in choice.examples]
    starts = [count == 0 for choice, count in zip(choices, past) for _ in choice.examples]
    batch = scored_batch(collate, examples) | {"document_start": torch.tensor(starts)}
    memory = model.memory_with_rows(memory, len(choices))
    batch |= {name: state.repeat_interleave(rows, 0) for name, state in memory.items()}
    return [values for row in log_probabilities(model, batch, rows=1) for values in row]


def sentence_of(example: dict, i: int) -> dict:
    """Sentence `i` of an example with its context, as an example of its own."""
    return {
        **example,
        "source": [example["source"][i]],
        "target": [example["target"][i]],
        "current": 0,
        "index": example["index"] - example["current"] + i,
        "document_start": example["document_start"] and i == 0,
    }


def on_device(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The batch on the device of the model."""
    return {name: value.to(model.device) for name, value in batch.items()}
