"""What goes into a memory and what comes out: attention maps of a document (Feng et al. 2022, figures 6 and 7)."""

from dataclasses import dataclass

import numpy as np
import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.attention_share import eager_attention
from hf_docmt.analysis.group_maps import token_texts
from hf_docmt.analysis.memory_steps import (
    INPUTS,
    attention_maps,
    empty_memory,
    memory_stacks,
    read,
    side_by_side,
    token_mask,
)

DECIMALS = 4  # of the weights in JSON


@dataclass(frozen=True)
class MemoryMap:
    """Attention between the tokens of one sentence (places from 1) and the slots of a memory, the mean of the heads.

    `weights` (tokens, slots): in the update each slot spreads its attention over the tokens, columns sum to 1; in the
    output each token spreads it over the slots, rows sum to 1. `attention` is `update` or `output`, `side` `source` or
    `target`, where the tokens are those the decoder reads, the start token first.
    """

    attention: str
    side: str
    layer: int
    sentence: int
    tokens: tuple[str, ...]
    weights: np.ndarray

    def row(self) -> dict:
        """As JSON."""
        told = {name: getattr(self, name) for name in ("attention", "side", "layer", "sentence")}
        return told | {"tokens": list(self.tokens), "weights": self.weights.round(DECIMALS).tolist()}


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
    `layer`: which one, from 0; None = the last one that has a memory. The paper does not say how heads are put
    together; here it is their mean. ValueError: a model without memory, an unknown document or one that is there twice,
    a layer without a memory.
    """
    stacks = memory_stacks(model)
    chosen = {side: layer_of(stack.memory_layers, layer, side) for side, stack in stacks.items()}
    found = []
    (steps,) = side_by_side(model, one_document(documents, document), tokenizer, rows=1)
    memory = empty_memory(model, 1)
    with eager_attention(model), attention_maps(stacks) as maps, torch.inference_mode():
        for place, step in enumerate(steps, 1):
            _, memory = read(model, step, memory)
            for (attention, side, number), weights in maps.items():
                if number != chosen[side]:
                    continue
                mean = weights[0].mean(dim=0).float().cpu().numpy()  # (M, T), output (T, M)
                count = int(token_mask(step, side).sum())
                tokens = token_texts(tokenizer, step.batch[INPUTS[side]][0, :count].tolist())
                mean = mean.T if attention == "update" else mean
                found.append(MemoryMap(attention, side, number, place, tuple(tokens), mean))
    return found


def consecutive(maps: list[MemoryMap], sentence: int) -> list[MemoryMap]:
    """What sentence t writes into the memory and sentence t + 1 reads from it: update maps of t, output maps of t + 1.

    ValueError: one of the two is not in the document.
    """
    last = max(one.sentence for one in maps)
    if not 1 <= sentence < last:
        raise ValueError(
            f"sentence {sentence} and the one after it are shown, but the document has {last}: expected a number from "
            f"1 to {last - 1}" + (", which a document of one sentence does not have" if last < 2 else "")
        )
    wanted = {"update": sentence, "output": sentence + 1}
    chosen = [one for one in maps if one.sentence == wanted[one.attention]]
    return sorted(chosen, key=lambda one: (one.side, one.sentence))


def one_document(documents: Dataset, document: str) -> Dataset:
    """The document of that id, alone."""
    ids = list(documents["doc_id"])
    if ids.count(document) != 1:
        known = ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
        found = "is there twice" if document in ids else "is not in the data"
        raise ValueError(f"document {document!r} {found}: expected the id of one document, there are {known}")
    return documents.select([ids.index(document)])


def layer_of(layers: list[int], layer: int | None, side: str) -> int:
    if layer is None:
        return layers[-1]
    if layer not in layers:
        raise ValueError(
            f"layer {layer} has no memory on the {side} side: expected one of {', '.join(map(str, layers))}"
        )
    return layer
