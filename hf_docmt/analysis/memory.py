"""A recurrent memory while documents are read sentence by sentence: attention to it, gradients through it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from datasets import Dataset
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.model_runs import forward, on_device, token_texts
from hf_docmt.data.collators import IGNORE_INDEX
from hf_docmt.data.streams import StreamCollator, split_steps
from hf_docmt.loading import registry
from hf_docmt.systems.attention_weights import forward_hooks
from hf_docmt.systems.model_system import evaluation_mode

STACKS = {"source": "encoder", "target": "decoder"}
INPUTS = {"source": "input_ids", "target": "decoder_input_ids"}
ATTENTIONS = ("update", "output")  # memory reads sentence, sentence reads memory

Batch = dict[str, torch.Tensor]
Words = tuple[Batch, dict[str, torch.Tensor]]  # a step, and the embeddings (B, T, D) of its tokens by side


@dataclass(frozen=True)
class MemoryMap:
    """Attention between the tokens of one sentence (number from 1) and the slots of a memory, mean of the heads.

    `weights` (tokens, slots): in the update each slot distributes its attention over the tokens, columns sum to 1; in
    the output each token distributes it over the slots, rows sum to 1. `attention` is `update` or `output`,
    `side` is `source` or `target`; target tokens are those the decoder reads, the start token first.
    """

    attention: str
    side: str
    layer: int
    sentence: int
    tokens: tuple[str, ...]
    weights: np.ndarray


def maps_of_step(weights: dict, layers: dict[str, int], step: Batch, sentence: int, tokenizer) -> list[MemoryMap]:
    """The maps of one sentence in one layer a side, from `weights` as `attention_maps` gives them, of one document."""
    maps = []
    for (attention, side, layer), attended in weights.items():
        if layer == layers[side]:
            mean = attended[0].mean(dim=0).detach().float().cpu().numpy()  # (M, T), output (T, M)
            count = int(token_mask(step, side).sum())
            tokens = token_texts(tokenizer, step[INPUTS[side]][0, :count].tolist(), is_target=side == "target")
            mean = mean.T if attention == "update" else mean
            maps.append(MemoryMap(attention, side, layer, sentence, tuple(tokens), mean))
    return maps


def memory_stacks(model: PreTrainedModel) -> dict[str, nn.Module]:
    """Encoder (`source`) and decoder (`target`), as far as they have a memory. ValueError: a model without one."""
    if not registry.for_config(model.config).carries_state:
        raise ValueError(
            f"a model of architecture {model.config.model_type.removeprefix('docmt-')!r} has no memory: expected one "
            "that carries a state from sentence to sentence, architecture 'memory'"
        )
    stacks = {side: getattr(model.model, name) for side, name in STACKS.items()}
    return {side: stack for side, stack in stacks.items() if stack.memory_layers}


def document_batches(
    model: PreTrainedModel, documents: Dataset, tokenizer: PreTrainedTokenizerBase, rows: int = 8
) -> Iterator[list[Batch]]:
    """The steps of `rows` documents of similar length, from their first sentences to the last, with references.

    A step is the batch of the n-th sentences, on the model's device. Every document keeps its row; after its end the
    row has an empty sentence that `has_sentence` says no of.
    """
    if rows < 1:
        raise ValueError(f"rows, the number of documents in a batch, must be at least 1; got {rows}")
    architecture = registry.for_config(model.config)
    examples = architecture.examples(documents, tokenizer, model.config)
    collate = StreamCollator(architecture.collator(model.config, tokenizer))
    starts = examples.corpus.document_starts
    lengths = np.diff(starts)
    order = np.argsort(lengths, kind="stable")
    for first in range(0, len(order), rows):
        group, steps = np.sort(order[first : first + rows]), []
        for index in range(lengths[group].max()):
            row = [examples[int(starts[d] + index)] if index < lengths[d] else None for d in group]
            steps.append(on_device(model, next(split_steps(collate([(row, True)])))))
        yield steps


def empty_memory(model: PreTrainedModel, rows: int) -> dict[str, torch.Tensor]:
    """The memory of `rows` documents before their start, zeros, `{"encoder_memory": (B, M, D), …}`."""
    weights = {STACKS[side]: stack.initial_memory.weight for side, stack in memory_stacks(model).items()}
    return {f"{name}_memory": torch.zeros_like(weight).repeat(rows, 1, 1) for name, weight in weights.items()}


def forward_step(model: PreTrainedModel, step: Batch, memory: dict[str, torch.Tensor]) -> tuple:
    """The outputs for a step with forced references, and the memory after it, with gradients if they are enabled."""
    outputs = forward(model, step, **memory, use_cache=False)
    return outputs, {name: outputs[name] for name in memory}


def token_mask(step: Batch, side: str) -> torch.Tensor:
    """The attention mask of a side, (B, T), 1 = token."""
    return step["attention_mask" if side == "source" else "decoder_attention_mask"]


def has_sentence(step: Batch) -> torch.Tensor:
    """Which rows of a step have a sentence, (B,) bool."""
    return (step["labels"] != IGNORE_INDEX).any(dim=1)


@contextmanager
def attention_maps(stacks: dict[str, nn.Module]) -> Iterator[dict[tuple[str, str, int], torch.Tensor]]:
    """{(attention, side, layer): weights} of the last pass: `update` (B, H, M, T), `output` (B, H, T, M).

    Hooks fill it within the context. The model has to run with eager attention.
    """
    maps: dict[tuple[str, str, int], torch.Tensor] = {}

    def keep(key):
        return lambda module, inputs, output: maps.update({key: output[1]})

    units = {(side, n): stack.layers[n].memory for side, stack in stacks.items() for n in stack.memory_layers}
    hooks = [(getattr(unit, f"{kind}_attn"), keep((kind, *key))) for key, unit in units.items() for kind in ATTENTIONS]
    with forward_hooks(hooks):
        yield maps


def replay(stack: nn.Module, memory: torch.Tensor | None, states: dict, step: Batch, side: str) -> torch.Tensor:
    """Output and update attention of a stack's memory M^t to the states {layer: h^t (B, T, D)}; returns M^{t+1}."""
    start, batch = step["document_start"], len(step["labels"])
    if memory is None:
        memory, start = stack.initial_memory.weight.repeat(batch, 1, 1), None
    memory = stack.memory_before(memory, start, stack.initial_memory.weight.device, batch)
    for layer, layer_memory in stack.by_layer(memory).items():
        stack.layers[layer].memory.output_attn(states[layer], layer_memory)
    return stack.memory_after(memory, states, token_mask(step, side))


def mean_losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy per target token of each row, (B, T, V) and (B, T) -> (B,); 0 without one."""
    losses = torch.nn.functional.cross_entropy(logits.float().mT, labels, ignore_index=IGNORE_INDEX, reduction="none")
    return losses.sum(dim=1) / (labels != IGNORE_INDEX).sum(dim=1).clamp(min=1)


@contextmanager
def embedding_gradients(model: PreTrainedModel) -> Iterator[list[torch.Tensor]]:
    """The model without dropout, with gradients for token embeddings only; a forward pass appends them to the list."""
    embeddings: list[torch.Tensor] = []

    def make_leaf(module, inputs, output):
        embeddings.append(output.detach().requires_grad_())
        return embeddings[-1]

    tables = {getattr(model.model, name).embed_tokens for name in STACKS.values()}  # one module where they share it
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    model.requires_grad_(False)
    try:
        with evaluation_mode(model), forward_hooks((table, make_leaf) for table in tables), torch.enable_grad():
            yield embeddings
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


def sentence_losses(
    model: PreTrainedModel, steps: list[Batch], embeddings: list[torch.Tensor], reach: int
) -> Iterator[tuple[list[Words], torch.Tensor]]:
    """For each step: it and up to `reach` steps before, nearest first, with their embeddings, and the summed loss.

    `embeddings` is filled by `embedding_gradients`. A graph spans 2 `reach` sentences, of which the later half is
    scored: every sentence is read twice, and memory does not grow with the document.
    """
    before = empty_memory(model, len(steps[0]["labels"]))  # the state before the span
    for first in range(0, len(steps), reach):
        memory, words, begin = before, [], max(0, first - reach)
        for index, step in enumerate(steps[begin : first + reach], begin):
            if index == first:
                before = {name: state.detach() for name, state in memory.items()}
            embeddings.clear()
            outputs, memory = forward_step(model, step, memory)
            words.append((step, dict(zip(INPUTS, embeddings, strict=True))))
            if index >= first:
                yield words[: -reach - 2 : -1], mean_losses(outputs.logits, step["labels"]).sum()
