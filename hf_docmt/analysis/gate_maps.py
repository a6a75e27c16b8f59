"""Share of each context sentence in the context of each word (Fei et al. 2022, section 4.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.analysis.model_runs import (
    context_result,
    kept_outputs,
    modules_named,
    on_device,
    sentence_ids,
    token_texts,
)
from hf_docmt.evaluation.systems.model_system import evaluation_mode
from hf_docmt.messages import counted
from hf_docmt.reports.result import Result

SELECTION = "selection"  # name of the module that computes the shares in every encoder layer
NOTHING = "nothing"
DECIMALS = 4  # of shares and percentages in a report


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

    @property
    def by_layer(self) -> list[tuple[str, np.ndarray]]:
        """The mean of the layers and each layer (from 1), as a name and shares (tokens, columns)."""
        return [("mean", self.mean), *((str(number), share) for number, share in enumerate(self.shares, 1))]

    @property
    def past(self) -> np.ndarray:
        """Percent that each layer gives to past sentences, mean over the tokens: (layers,); g of equation 15."""
        past = [name.startswith("-") for name in self.columns]
        return 100 * self.shares[:, :, past].sum(axis=2).mean(axis=1)

    def result(self, dataset: str) -> Result:
        """The result of a report: `value` is the percentage of the past, `n` that of tokens."""
        layers, count, _ = self.shares.shape
        shares = dict(zip((f"offset={name}" for name in self.columns), 100 * self.mean.mean(axis=0)))
        shares |= {f"layer={number}": share for number, share in enumerate(self.past, 1)}
        parts = {label: (round(float(share), DECIMALS), count) for label, share in shares.items()}
        signature = {"gate": "encoder", "layers": layers, "unit": "token", "tokens": "with end mark"}
        details = {"sentence": self.sentence, "tokens": list(self.tokens), "columns": list(self.columns)}
        details["shares"] = self.shares.round(DECIMALS).tolist()
        value = float(self.past.mean())
        return context_result("share of past sentences", value, count, dataset, signature, parts, details)


@torch.inference_mode()
def gate_map(
    model: PreTrainedModel, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, sentence: int | None = None
) -> GateMap:
    """The shares in every encoder layer for one sentence of a document, whose sentences are given from the first.

    `sentence` is its number, from 1; None = the middle one, the later of two. A missing context sentence gives the word
    nothing while the others keep their share, so its share is counted with `nothing`. The decoder of `doct` selects,
    too, by the words of a translation, which is not given here. ValueError: a model without such a selection, an empty
    sentence, a number outside the document, or a sentence without any context.
    """
    check_selection(model.config)
    config, ids = model.config, sentence_ids(texts, tokenizer)
    position = len(ids) // 2 if sentence is None else sentence - 1
    first = max(0, position - config.past_context)
    around = range(first, min(len(ids), position + 1 + config.future_context))
    check_position(config, len(ids), position, around)
    batch = batch_of(config, tokenizer, ids[around.start : around.stop], position - first, first == 0)
    shares = encoder_shares(model, batch).double().cpu().numpy()  # (layers, T, C)
    there = [other - position for other in around if other != position]
    offsets = config.known_offsets
    shares = shares[:, :, [offsets.index(offset) for offset in there]]
    columns = [f"{offset:+d}" for offset in there]
    if there != offsets or not (config.past_context and config.future_context):
        columns.append(NOTHING)
        shares = np.concatenate([shares, 1 - shares.sum(axis=2, keepdims=True).clip(max=1)], axis=2)
    tokens = tuple(token_texts(tokenizer, batch["input_ids"][0].tolist()))
    return GateMap(position + 1, tokens, tuple(columns), shares)


def check_selection(config) -> None:
    """ValueError unless words select among context sentences in models of this configuration."""
    if not config.selects_by_word:
        architecture, selection = config.model_type.removeprefix("docmt-"), getattr(config, "selection", None)
        kind = f"architecture {architecture!r}" + (f" with selection={selection!r}" if selection else "")
        raise ValueError(
            f"in a model of {kind} words do not select among context sentences: expected one of architecture "
            "'routing', or 'doct' with selection='routing'; give such a model"
        )


def check_position(config, count: int, position: int, around: range) -> None:
    """ValueError for a position (from 0) outside the document, or without context (`around`: context and itself)."""
    if not 0 <= position < count:
        raise ValueError(f"sentence {position + 1} of {count}: expected a number from 1 to {count}")
    if len(around) < 2:
        raise ValueError(
            f"sentence {position + 1} of {count} has no context: the model reads "
            f"{counted(config.past_context, 'sentence')} before and {config.future_context} after it; give them, "
            "too, or choose another sentence"
        )


def batch_of(config, tokenizer, ids: list[list[int]], current: int, document_start: bool) -> dict[str, torch.Tensor]:
    """The encoder inputs of sentence `current` of `ids`, made as in training."""
    example = {"source": ids, "target": [[] for _ in ids], "current": current, "document_start": document_start}
    example["index"] = current
    batch = registry.for_config(config).collator(config, tokenizer)([example])
    return {name: value for name, value in batch.items() if name.startswith(("input_", "attention_", "context_"))}


def encoder_shares(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Run the encoder on a batch of one sentence; its shares in every layer, (layers, T, C)."""
    encoder = model.get_encoder()
    with evaluation_mode(model), kept_outputs(modules_named(encoder, SELECTION)) as shares:
        encoder(**on_device(model, batch))
    return torch.cat(shares)
