"""Which context sentences the words of a sentence select (Fei et al. 2022)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.analysis.model_runs import on_device, sentence_ids, token_texts
from hf_docmt.messages import counted
from hf_docmt.systems.attention_weights import kept_outputs, modules_named
from hf_docmt.systems.model_system import evaluation_mode

SELECTION = "selection"  # name of the module that computes the shares in every encoder layer
NOTHING = "nothing"


@dataclass(frozen=True)
class GateMap:
    """Shares (layers, tokens, columns) of the context sentences for each token of one sentence (number from 1).

    `columns` are the offsets of the context sentences that exist, such as `-1` and `+1`, and last `nothing`, the rest:
    where all context is on one side (online), or the document lacks some of the sentences. Shares of a token sum to 1.
    `</s>` is among the tokens.
    """

    sentence: int
    tokens: tuple[str, ...]
    columns: tuple[str, ...]
    shares: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Over the layers, (tokens, columns)."""
        return self.shares.mean(axis=0)


@torch.inference_mode()
def gate_map(
    model: PreTrainedModel, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, sentence: int | None = None
) -> GateMap:
    """The shares in every encoder layer for one sentence of a document, whose sentences are given from the first.

    Fei et al. (2022), section 4.3. `sentence` is its number, from 1; None = the middle one, the later of two. A missing
    context sentence gives the word nothing while the others keep their share, so its share is counted with `nothing`.
    The decoder of `doct` selects, too, by the words of a translation, which is not given here. ValueError: a model
    without such a selection, an empty sentence, a number outside the document, or a sentence without any context.
    """
    config = model.config
    if not config.selects_by_word:
        raise ValueError(
            f"in a model of type {config.model_type!r} words do not select among context sentences: expected one of "
            "architecture 'routing', or 'doct' with selection='routing'; give such a model"
        )
    ids = sentence_ids(texts, tokenizer)
    count, position = len(ids), len(ids) // 2 if sentence is None else sentence - 1
    first = max(0, position - config.past_context)
    around = range(first, min(count, position + 1 + config.future_context))
    if not 0 <= position < count:
        raise ValueError(f"sentence {position + 1} of {count}: expected a number from 1 to {count}")
    if len(around) < 2:
        raise ValueError(
            f"sentence {position + 1} of {count} has no context: the model reads "
            f"{counted(config.past_context, 'sentence')} before and {config.future_context} after it; give them, "
            "too, or choose another sentence"
        )
    example = {"source": ids[first : around.stop], "target": [[] for _ in around], "document_start": first == 0}
    example |= {"index": position - first, "current": position - first}
    batch = registry.for_config(config).collator(config, tokenizer)([example])
    batch = {name: value for name, value in batch.items() if name.startswith(("input_", "attention_", "context_"))}
    encoder = model.get_encoder()
    with evaluation_mode(model), kept_outputs(modules_named(encoder, SELECTION)) as layers:
        encoder(**on_device(model, batch))
    there, offsets = [other - position for other in around if other != position], config.known_offsets
    shares = torch.cat(layers).double().cpu().numpy()  # (layers, T, C)
    shares = shares[:, :, [offsets.index(offset) for offset in there]]
    columns = [f"{offset:+d}" for offset in there]
    if there != offsets or not (config.past_context and config.future_context):
        columns.append(NOTHING)
        shares = np.concatenate([shares, 1 - shares.sum(axis=2, keepdims=True).clip(max=1)], axis=2)
    tokens = tuple(token_texts(tokenizer, batch["input_ids"][0].tolist()))
    return GateMap(position + 1, tokens, tuple(columns), shares)
