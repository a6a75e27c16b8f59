"""Log-probabilities of given translations by forced decoding: [item][candidate][token]."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import BaseModelOutput

from hf_docmt.data.collators import IGNORE_INDEX
from hf_docmt.data.samplers import TokenBudgetBatchSampler
from hf_docmt.data.tokenizers import tokenize_sentences
from hf_docmt.data.word_fits import Fit
from hf_docmt.systems.items import SuiteItem
from hf_docmt.systems.model_system import ModelSystem, check_positions, evaluation_mode, piece_texts
from hf_docmt.systems.word_alignment import attention_fit

BATCH_TOKENS = 4096
Collate = Callable[[list[dict]], dict[str, torch.Tensor]]  # examples -> batch


class ForcedDecoding(ModelSystem):
    """An encoder-decoder model with its tokenizer, and the collator that makes its batches, here or as a property.

    `collate` gives `label_weights` 1 to the tokens of the current sentence and its end token, 0 to context, as the
    collators of architectures do with `context_discount=0`; `<bod>`, which translation is given, is not scored. Future
    sentences that an item does not have are `missing_future`: `empty`, as in windows, or `absent`, as at the end of
    chunks. `batch_tokens` limits the padded source and target tokens of a batch, 4096 by default; each source is
    encoded once. `options` are those of `ModelSystem`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        *,
        collate: Collate | None = None,
        batch_tokens: int | None = None,
        missing_future: str = "empty",
        **options,
    ):
        super().__init__(model, tokenizer, name, **options)
        if collate is not None:
            self.collate = collate
        self.batch_tokens, self.missing_future = batch_tokens, missing_future

    @property
    def scored_tokens(self) -> int:
        """The maximum number of tokens of a batch that is scored."""
        return self.batch_tokens or BATCH_TOKENS

    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        """As `System`'s, in fp32, given the source, the context that is read and the reference translation of it.

        Equal candidates have equal scores. ValueError: an item (named) of more tokens than learned positions.
        """
        return self.forced(items, self.collate)

    def token_texts(self, items: Sequence[SuiteItem]) -> list[list[list[str]]]:
        texts = []
        for choice in self.choices(items):
            batch = scored_batch(self.collate, choice.examples)
            scored = scored_labels(batch["labels"], batch.get("label_weights"))
            rows = [piece_texts(self.tokenizer, row[chosen].tolist()) for row, chosen in zip(batch["labels"], scored)]
            texts.append([rows[row] for row in choice.rows])
        return texts

    @property
    def target_context(self) -> str:
        reads = self.past_context or self.future_context
        return "none" if reads and self.collate.context_sides == "source" else "reference"

    @property
    def scored_model(self) -> nn.Module:
        """The model as `forced` calls it."""
        return self.model

    def word_fits(self, source: str, translation: str) -> Fit | None:
        """By the model's cross-attention."""
        self.give_way()
        choice = self.choices([SuiteItem("", (source,), (), (translation,), 0, "", 0)])[0]
        example = choice.examples[0]
        return attention_fit(self.model, self.tokenizer, example, self.collate([example]), source, translation)

    def forced(self, items: Sequence[SuiteItem], collate: Collate) -> list[list[list[float]]]:
        """Log-probabilities of the labels that have a weight in the batches of `collate`."""
        model, choices = self.scored_model, self.choices(items)
        check_lengths(model, collate, [choice.examples for choice in choices])
        scores: list[list[list[float]]] = [[] for _ in items]
        with evaluation_mode(model), unchanged_weights(model):
            for batch in _batches(choices, self.scored_tokens):
                self.give_way()
                rows = len(choices[batch[0]].examples)
                examples = [example for index in batch for example in choices[index].examples]
                groups = log_probabilities(model, scored_batch(collate, examples), rows)  # items x rows x tokens
                for index, values in zip(batch, groups):
                    scores[index] = [values[row] for row in choices[index].rows]
        return scores

    @torch.inference_mode()
    def next_texts(self, items: Sequence[SuiteItem], count: int) -> list[list[list[str]]]:
        """The most probable tokens, as text, after each candidate of each item as the beginning of a translation."""
        model, texts = self.scored_model, []
        with evaluation_mode(model), unchanged_weights(model):
            for choice in self.choices(items):
                self.give_way()
                batch = {k: v.to(model.device) for k, v in scored_batch(self.collate, choice.examples).items()}
                scored = scored_labels(batch.pop("labels"), batch.pop("label_weights", None))
                ends = scored.sum(dim=1).cumsum(dim=0) - 1  # of each candidate, where its end token is expected
                logits = model(**batch, use_cache=False).logits[scored][ends]  # (candidates, V)
                rows = [
                    self.tokenizer.batch_decode([[token] for token in row]) for row in logits.topk(count)[1].tolist()
                ]
                texts.append([rows[row] for row in choice.rows])
        return texts

    def choices(self, items: Sequence[SuiteItem]) -> list["Choice"]:
        """The items as token ids, with the context that the model reads."""
        texts = (text for item in items for text in (*item.source, *item.source_after))
        sources = _tokenize(texts, self.tokenizer, is_target=False)
        texts = (text for item in items for text in (*item.target_context, *item.candidates, *item.target_after))
        targets = _tokenize(texts, self.tokenizer, is_target=True)
        missing = [[]] * self.future_context if self.missing_future == "empty" else []
        choices = []
        for item in items:
            past = min(self.past_context, len(item.source) - 1)
            first = len(item.source) - 1 - past
            source_after, target_after = (
                ([ids[text] for text in after] + missing)[: self.future_context]
                for ids, after in ((sources, item.source_after), (targets, item.target_after))
            )
            source = [sources[text] for text in item.source[first:]] + source_after
            context = [targets[text] for text in item.target_context[first:]]
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


@dataclass(frozen=True)
class Choice:
    """An item as examples to score; equal candidates share one."""

    examples: list[dict]  # one for each different candidate
    rows: list[int]  # which example each candidate is
    length: int  # source and longest target tokens


def check_lengths(model: nn.Module, collate: Collate, groups: Sequence[list[dict]]) -> None:
    """ValueError names (by `doc_id`) the first group of examples with more tokens than learned positions."""
    config = getattr(model, "config", None)
    if getattr(config, "position_type", None) != "learned":
        return
    for examples in groups:
        batch = collate(examples)
        for side, name in (("source", "input_ids"), ("target", "decoder_input_ids")):
            size, limit = batch[name].shape[1], config.max_position_embeddings
            what = f"{side} tokens with their context"
            check_positions(examples[0]["doc_id"], size, what, limit, "learned positions")


def unchanged_weights(model: nn.Module) -> AbstractContextManager:
    """The model's scope `unchanged_weights`, for faster inference on a CPU, where it has one."""
    return model.unchanged_weights() if hasattr(model, "unchanged_weights") else nullcontext()


def scored_batch(collate: Collate, examples: list[dict]) -> dict[str, torch.Tensor]:
    """A batch without labels for `<bod>` (`collate.bod`), which the model does not write in translation either."""
    batch, bod = collate(examples), getattr(collate, "bod", None)
    if bod is not None:
        batch["labels"] = batch["labels"].masked_fill(batch["labels"] == bod, IGNORE_INDEX)
    return batch


def scored_labels(labels: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
    """(B, T) bool: labels that are tokens, and of weight other than 0 where weights are given."""
    is_token = labels != IGNORE_INDEX
    return is_token if weights is None else is_token & (weights != 0)


@torch.inference_mode()
def log_probabilities(model: nn.Module, batch: dict, rows: int) -> list[list[list[float]]]:
    """For a batch in groups of `rows` rows with one source: groups x rows x scored tokens, in fp32."""
    device = next(model.parameters()).device
    batch = {name: value.to(device) for name, value in batch.items()}
    labels = batch.pop("labels")  # (B, T)
    scored = scored_labels(labels, batch.pop("label_weights", None))
    inputs = _share_sources(model, batch, rows)
    if hasattr(model, "logits_at"):
        logits = model.logits_at(scored, **inputs)  # (N, V), N scored tokens of all rows
    else:
        logits = model(**inputs, use_cache=False).logits[scored]
    scores = -nn.functional.cross_entropy(logits.float(), labels[scored], reduction="none")
    values = [row.tolist() for row in scores.cpu().split(scored.sum(dim=1).tolist())]
    return [values[first : first + rows] for first in range(0, len(values), rows)]


def _share_sources(model: nn.Module, batch: dict, rows: int) -> dict:
    """The batch with encoder states instead of source ids, each source encoded once for the rows that have it.

    Models of this package take a source for several rows (`per_source_inputs`), others one for each row.
    """
    if rows == 1:
        return batch
    is_ours = hasattr(model, "per_source_inputs")
    shared = model.per_source_inputs if is_ours else ("attention_mask",)
    batch = {name: value[::rows] if name == "input_ids" or name in shared else value for name, value in batch.items()}
    encoder_inputs = {name: value for name, value in batch.items() if name in shared}
    encoder_outputs = model.get_encoder()(input_ids=batch.pop("input_ids"), **encoder_inputs)
    if not is_ours:
        states = encoder_outputs[0].repeat_interleave(rows, dim=0)  # (B, S, D)
        encoder_outputs = BaseModelOutput(last_hidden_state=states)
        batch["attention_mask"] = batch["attention_mask"].repeat_interleave(rows, dim=0)
    return {**batch, "encoder_outputs": encoder_outputs}


def _tokenize(texts: Iterator[str], tokenizer: PreTrainedTokenizerBase, *, is_target: bool) -> dict[str, list[int]]:
    """Token ids of every different sentence, as the training views make them."""
    different = list(dict.fromkeys(texts))
    return dict(zip(different, tokenize_sentences(different, tokenizer, is_target=is_target) if different else []))


def _batches(choices: list[Choice], batch_tokens: int) -> Iterator[list[int]]:
    """Indices of items with equally many different candidates and of about equal length."""
    groups: dict[int, list[int]] = defaultdict(list)
    for index, choice in enumerate(choices):
        groups[len(choice.examples)].append(index)
    for rows, indices in sorted(groups.items()):
        lengths = [rows * choices[index].length for index in indices]
        for batch in TokenBudgetBatchSampler(lengths, batch_tokens, shuffle=False):
            yield [indices[number] for number in batch]


def stream_log_probabilities(system: ForcedDecoding, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
    """Log-probabilities of a model that carries a state: it reads the context sentence by sentence, then candidates.

    The state before an item is that of a document which starts `past_context` sentences before it, or where the item's
    document does, its translations being the references; blank sentences are skipped, as in translation. The context
    is encoded again for each item, so that a smaller `past_context` is cheaper. `batch_tokens` limits the tokens of
    one sentence of all items. ValueError: as `ForcedDecoding`.
    """
    model, collate = system.model, system.collate
    choices = [_without_blanks(choice) for choice in system.choices(items)]
    for choice in choices:
        first, *others = choice.examples
        context = [_sentence(first, i) for i in range(first["current"])]
        current = [_sentence(example, example["current"]) for example in (first, *others)]
        check_lengths(model, collate, [context + current])
    order = sorted(range(len(items)), key=lambda item: -choices[item].examples[0]["current"])
    scores: list[list[list[float]]] = [[] for _ in items]
    with evaluation_mode(model), unchanged_weights(model):
        while order:
            size = _rows_within(system.scored_tokens, [choices[item] for item in order])
            batch, order = order[:size], order[size:]
            values = _stream_batch(model, [choices[item] for item in batch], collate)
            for item in batch:
                own = [values.pop(0) for _ in choices[item].examples]
                scores[item] = [own[row] for row in choices[item].rows]
    return scores


@torch.inference_mode()
def _stream_batch(model: PreTrainedModel, choices: Sequence[Choice], collate: Collate) -> list[list[float]]:
    """Log-probabilities of all different candidates of items with less and less context."""
    past = [choice.examples[0]["current"] for choice in choices]
    memory: dict[str, torch.Tensor] = {}
    for step in range(past[0], 0, -1):  # sentences before the current one
        active = [choice for choice, count in zip(choices, past) if count >= step]
        examples = [_sentence(choice.examples[0], count - step) for choice, count in zip(active, past)]
        starts = torch.tensor([count == step for count in past[: len(active)]])
        batch = {**collate(examples), "document_start": starts, **model.memory_with_rows(memory, len(active))}
        inputs = {k: value.to(model.device) for k, value in batch.items() if k not in ("labels", "label_weights")}
        memory = model.memory_after(model.model(**inputs, use_cache=False))
    rows = torch.tensor([len(choice.examples) for choice in choices], device=model.device)
    examples = [_sentence(example, example["current"]) for choice in choices for example in choice.examples]
    starts = [count == 0 for choice, count in zip(choices, past) for _ in choice.examples]
    batch = scored_batch(collate, examples) | {"document_start": torch.tensor(starts)}
    memory = model.memory_with_rows(memory, len(choices))
    batch |= {name: state.repeat_interleave(rows, 0) for name, state in memory.items()}
    return [values for row in log_probabilities(model, batch, rows=1) for values in row]


def _without_blanks(choice: Choice) -> Choice:
    """The choice without the context sentences whose source is blank."""
    source, current = choice.examples[0]["source"], choice.examples[0]["current"]
    kept = [i for i in range(current) if source[i]]
    examples = [
        example | {side: [example[side][i] for i in (*kept, current)] for side in ("source", "target")}
        for example in choice.examples
    ]
    return replace(choice, examples=[example | {"current": len(kept)} for example in examples])


def _sentence(example: dict, i: int) -> dict:
    """Sentence `i` of an example with its context, as an example of its own."""
    return {
        **example,
        "source": [example["source"][i]],
        "target": [example["target"][i]],
        "current": 0,
        "index": example["index"] - example["current"] + i,
        "document_start": example["document_start"] and i == 0,
    }


def _rows_within(batch_tokens: int, choices: Sequence[Choice]) -> int:
    """How many of the first items fit into a batch."""
    rows, longest = 0, 0
    for number, choice in enumerate(choices):
        rows += len(choice.examples)
        sentences = [len(ids) for example in choice.examples for side in ("source", "target") for ids in example[side]]
        longest = max(longest, 2 * max(sentences) + 2)
        if number and rows * longest > batch_tokens:
            return number
    return len(choices)
