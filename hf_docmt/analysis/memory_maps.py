"""Attention maps between sentences and a recurrent memory (Feng et al. 2022, figures 6 and 7)."""

from dataclasses import dataclass

import numpy as np
import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.memory_steps import (
    INPUTS,
    Step,
    attention_maps,
    document_batches,
    empty_memory,
    forward_step,
    memory_stacks,
    token_mask,
)
from hf_docmt.analysis.model_runs import eager_attention, token_texts

DECIMALS = 4  # of the weights in JSON


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
    stacks = memory_stacks(model)
    chosen = {side: layer_of(stack.memory_layers, layer, side) for side, stack in stacks.items()}
    maps_read = []
    (steps,) = document_batches(model, one_document(documents, document), tokenizer, rows=1)
    memory = empty_memory(model, 1)
    with eager_attention(model), attention_maps(stacks) as maps, torch.inference_mode():
        for number, step in enumerate(steps, 1):
            _, memory = forward_step(model, step, memory)
            maps_read += maps_of_step(maps, chosen, step, number, tokenizer)
    return maps_read


def maps_of_step(weights: dict, layers: dict[str, int], step: Step, sentence: int, tokenizer) -> list[MemoryMap]:
    """The maps of one sentence in one layer a side, from `weights` as `attention_maps` gives them, of one document."""
    maps = []
    for (attention, side, layer), attended in weights.items():
        if layer == layers[side]:
            mean = attended[0].mean(dim=0).detach().float().cpu().numpy()  # (M, T), output (T, M)
            count = int(token_mask(step, side).sum())
            tokens = token_texts(tokenizer, step.batch[INPUTS[side]][0, :count].tolist())
            mean = mean.T if attention == "update" else mean
            maps.append(MemoryMap(attention, side, layer, sentence, tuple(tokens), mean))
    return maps


def write_and_read_maps(maps: list[MemoryMap], sentence: int) -> list[MemoryMap]:
    """The maps by which sentence t writes and sentence t + 1 reads the memory: update of t, output of t + 1.

    ValueError: one of the two is not in the document.
    """
    last = max(one.sentence for one in maps)
    if not 1 <= sentence < last:
        raise ValueError(
            f"sentence {sentence} and the next one are shown, but the document has {last}: expected a number from "
            f"1 to {last - 1}" + (", which a document of one sentence does not have" if last < 2 else "")
        )
    wanted = {"update": sentence, "output": sentence + 1}
    chosen = [one for one in maps if one.sentence == wanted[one.attention]]
    return sorted(chosen, key=lambda one: (one.side, one.sentence))


def one_document(documents: Dataset, document: str) -> Dataset:
    """The document with this id, as the only row. ValueError: no such id, or several documents with it."""
    ids = list(documents["doc_id"])
    if ids.count(document) != 1:
        names = ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
        fault = "occurs several times" if document in ids else "is not in the data"
        raise ValueError(f"document {document!r} {fault}: expected the id of one document, there are {names}")
    return documents.select([ids.index(document)])


def layer_of(layers: list[int], layer: int | None, side: str) -> int:
    """The layer that was asked for, or the last one with a memory. ValueError: it has no memory."""
    if layer is None:
        return layers[-1]
    if layer not in layers:
        raise ValueError(
            f"layer {layer} has no memory on the {side} side: expected one of {', '.join(map(str, layers))}"
        )
    return layer
