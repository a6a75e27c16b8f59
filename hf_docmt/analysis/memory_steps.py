"""Batches of documents, read sentence by sentence by a model with a recurrent memory; the memory's attention."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from datasets import Dataset
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.analysis.model_runs import forward_hooks
from hf_docmt.data.collators import IGNORE_INDEX
from hf_docmt.data.streams import StreamCollator, split_steps

STACKS = {"source": "encoder", "target": "decoder"}
INPUTS = {"source": "input_ids", "target": "decoder_input_ids"}
ATTENTIONS = ("update", "output")  # memory reads sentence, sentence reads memory


@dataclass(frozen=True)
class Step:
    """The n-th sentences of some documents: a batch on the model's device, and which rows have one, (B,) bool."""

    batch: dict[str, torch.Tensor]
    present: torch.Tensor


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
) -> Iterator[list[Step]]:
    """The steps of `rows` documents of similar length, from their first sentences to the last, with references.

    Every document keeps its row; after its end the row has an empty sentence that is not `present`.
    """
    if rows < 1:
        raise ValueError(f"rows, the number of documents in a batch, must be at least 1; got {rows}")
    architecture, device = registry.for_config(model.config), model.device
    examples = architecture.examples(documents, tokenizer, model.config)
    collate = StreamCollator(architecture.collator(model.config, tokenizer))
    starts = examples.corpus.document_starts
    lengths = np.diff(starts)
    order = np.argsort(lengths, kind="stable")
    for first in range(0, len(order), rows):
        group, steps = np.sort(order[first : first + rows]), []
        for index in range(lengths[group].max()):
            row = [examples[int(starts[d] + index)] if index < lengths[d] else None for d in group]
            batch = {name: value.to(device) for name, value in next(split_steps(collate([(row, True)]))).items()}
            steps.append(Step(batch, (batch["labels"] != IGNORE_INDEX).any(dim=1)))
        yield steps


def empty_memory(model: PreTrainedModel, rows: int) -> dict[str, torch.Tensor]:
    """The memory of `rows` documents before their start, zeros, `{"encoder_memory": (B, M, D), …}`."""
    weights = {STACKS[side]: stack.initial_memory.weight for side, stack in memory_stacks(model).items()}
    return {f"{name}_memory": torch.zeros_like(weight).repeat(rows, 1, 1) for name, weight in weights.items()}


def forward_step(model: PreTrainedModel, step: Step, memory: dict[str, torch.Tensor]) -> tuple:
    """The outputs for a step with forced references, and the memory after it, with gradients if they are enabled."""
    inputs = {name: value for name, value in step.batch.items() if name not in ("labels", "label_weights")}
    outputs = model(**inputs, **memory, use_cache=False)
    return outputs, {name: outputs[name] for name in memory}


def token_mask(step: Step, side: str) -> torch.Tensor:
    """The attention mask of a side, (B, T), 1 = token."""
    return step.batch["attention_mask" if side == "source" else "decoder_attention_mask"]


@contextmanager
def attention_maps(stacks: dict[str, nn.Module]) -> Iterator[dict[tuple[str, str, int], torch.Tensor]]:
    """{(attention, side, layer): weights} of the last pass: `update` (B, H, M, T), `output` (B, H, T, M).

    Hooks fill it within the context. The model has to run with eager attention.
    """
    maps: dict[tuple[str, str, int], torch.Tensor] = {}

    def keep(key):
        def hook(module, inputs, output):
            maps[key] = output[1]

        return hook

    hooks = []
    for side, stack in stacks.items():
        for layer in stack.memory_layers:
            for kind in ATTENTIONS:
                attention = getattr(stack.layers[layer].memory, f"{kind}_attn")
                hooks.append((attention, keep((kind, side, layer))))
    with forward_hooks(hooks):
        yield maps
