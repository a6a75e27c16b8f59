"""A recurrent memory while it is read and written: documents sentence by sentence, and maps of its attention."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from datasets import Dataset
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.analysis.model_runs import forward, on_device, token_texts
from hf_docmt.data.collators import IGNORE_INDEX
from hf_docmt.data.streams import StreamCollator, split_steps
from hf_docmt.systems.attention_weights import eager_attention, forward_hooks

STACKS = {"source": "encoder", "target": "decoder"}
INPUTS = {"source": "input_ids", "target": "decoder_input_ids"}
ATTENTIONS = ("update", "output")  # memory reads sentence, sentence reads memory
DECIMALS = 4  # of the weights in JSON

Batch = dict[str, torch.Tensor]


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

    def as_json(self) -> dict:
        """All fields, the weights rounded."""
        facts = {name: getattr(self, name) for name in ("attention", "side", "layer", "sentence")}
        return facts | {"tokens": list(self.tokens), "weights": self.weights.round(DECIMALS).tolist()}


def memory_maps(
    model: PreTrainedModel,
    documents: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    document: str,
    *,
    layer: int | None = None,
) -> list[MemoryMap]:
    """Maps of update and output attention for every sentence of a document, references forced.

    Feng et al. (2022), section 5.3: figure 6 has the update by sentence t, figure 7 the output to sentence t + 1.
    `layer`: index from 0; None = the last one with a memory. The paper does not say how heads are combined; here it is
    their mean. ValueError: a model without memory, an unknown document id or one that occurs twice, a layer without a
    memory.
    """
    stacks, maps_read = memory_stacks(model), []
    for side, stack in stacks.items():
        if layer not in (None, *stack.memory_layers):
            layers = ", ".join(map(str, stack.memory_layers))
            raise ValueError(f"layer {layer} has no memory on the {side} side: expected one of {layers}")
    chosen = {side: stack.memory_layers[-1] if layer is None else layer for side, stack in stacks.items()}
    ids = list(documents["doc_id"])
    if ids.count(document) != 1:
        names = ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
        fault = "occurs several times" if document in ids else "is not in the data"
        raise ValueError(f"document {document!r} {fault}: expected the id of one document, there are {names}")
    (steps,) = document_batches(model, documents.select([ids.index(document)]), tokenizer, rows=1)
    memory = empty_memory(model, 1)
    with eager_attention(model), attention_maps(stacks) as maps, torch.inference_mode():
        for number, step in enumerate(steps, 1):
            _, memory = forward_step(model, step, memory)
            maps_read += maps_of_step(maps, chosen, step, number, tokenizer)
    return maps_read


def maps_of_step(weights: dict, layers: dict[str, int], step: Batch, sentence: int, tokenizer) -> list[MemoryMap]:
    """The maps of one sentence in one layer a side, from `weights` as `attention_maps` gives them, of one document."""
    maps = []
    for (attention, side, layer), attended in weights.items():
        if layer == layers[side]:
            mean = attended[0].mean(dim=0).detach().float().cpu().numpy()  # (M, T), output (T, M)
            count = int(token_mask(step, side).sum())
            tokens = token_texts(tokenizer, step[INPUTS[side]][0, :count].tolist())
            mean = mean.T if attention == "update" else mean
            maps.append(MemoryMap(attention, side, layer, sentence, tuple(tokens), mean))
    return maps


def write_and_read_maps(maps: list[MemoryMap], sentence: int) -> list[MemoryMap]:
    """The maps by which sentence t writes and sentence t + 1 reads the memory: update of t, output of t + 1.

    ValueError: one of the two is not in the document.
    """
    last = max(memory_map.sentence for memory_map in maps)
    if not 1 <= sentence < last:
        raise ValueError(
            f"sentence {sentence} and the next one are shown, but the document has {last}: expected a number from "
            f"1 to {last - 1}" + (", which a document of one sentence does not have" if last < 2 else "")
        )
    wanted = {"update": sentence, "output": sentence + 1}
    chosen = [memory_map for memory_map in maps if memory_map.sentence == wanted[memory_map.attention]]
    return sorted(chosen, key=lambda memory_map: (memory_map.side, memory_map.sentence))


# Reading documents


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
