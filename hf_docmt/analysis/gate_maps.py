"""How much each word of a sentence takes from each context sentence (Fei et al. 2022, section 4.3)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import __version__, registry
from hf_docmt.analysis.group_maps import sentence_ids, token_texts

CHOICES = {"routing": None, "doct": "routing"}  # architecture -> its `selection`, where it may be another one
SELECTION = "selection"  # name of the module in every encoder layer that computes the shares
NOTHING = "nothing"
DECIMALS = 4  # of shares and percentages in a report


@dataclass(frozen=True)
class GateMap:
    """Shares (layers, tokens, columns) that the tokens of one sentence (place from 1) give to their context.

    `columns` are the offsets of the context sentences that are there, such as `-1` and `+1`, and last `nothing`, what
    is left: where all context is on one side (online), or the document has not all of the sentences. Shares of a token
    sum to 1. The end mark is among the tokens.
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
    def panels(self) -> list[tuple[str, np.ndarray]]:
        """The mean and each layer (from 1), as a name and shares (tokens, columns)."""
        return [("mean", self.mean), *((str(number), one) for number, one in enumerate(self.shares, 1))]

    @property
    def past(self) -> np.ndarray:
        """Percent that each layer gives to past sentences, mean over the tokens: (layers,); g of equation 15."""
        past = [name.startswith("-") for name in self.columns]
        return 100 * self.shares[:, :, past].sum(axis=2).mean(axis=1)

    def result(self, dataset: str, split: str = "all") -> dict:
        """What `make_result` of evaluation.report takes: `value` is the percentage of the past, `n` that of tokens."""
        layers, count, _ = self.shares.shape
        columns = 100 * self.mean.mean(axis=0)
        parts = {f"offset={name}": float(share) for name, share in zip(self.columns, columns)}
        parts |= {f"layer={number}": float(share) for number, share in enumerate(self.past, 1)}
        signature = f"gate:encoder|layers:{layers}|unit:token|tokens:with end mark|version:{__version__}"
        return {
            "task": "context use",
            "dataset": dataset,
            "split": split,
            "metric": "share of past sentences",
            "value": float(self.past.mean()),
            "signature": signature,
            "n": count,
            "breakdown": {name: {"value": round(share, DECIMALS), "n": count} for name, share in parts.items()},
            "details": {
                "sentence": self.sentence,
                "tokens": list(self.tokens),
                "columns": list(self.columns),
                "shares": self.shares.round(DECIMALS).tolist(),
            },
        }


@torch.inference_mode()
def gate_map(
    model: PreTrainedModel, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, sentence: int | None = None
) -> GateMap:
    """The shares in every encoder layer for one sentence of a document, whose sentences are given from the first.

    `sentence` is its place, from 1; None = the middle one, the later of two. A context sentence that is not there gives
    the word nothing while the others keep their share, so its share is counted with `nothing`. The decoder of `doct`
    chooses, too, word by word of a translation, which is not given here. ValueError: a model without such a choice, an
    empty sentence, no such place, or one without any context.
    """
    check_choice(model.config)
    config, ids = model.config, sentence_ids(texts, tokenizer)
    place = len(ids) // 2 if sentence is None else sentence - 1
    first = max(0, place - config.past_context)
    around = range(first, min(len(ids), place + 1 + config.future_context))
    check_place(config, len(ids), place, around)
    batch = batch_of(config, tokenizer, ids[around.start : around.stop], place - first, first == 0)
    with selections(model) as taken:
        model.get_encoder()(**{name: value.to(model.device) for name, value in batch.items()})
    shares = torch.cat(taken).double().cpu().numpy()  # (layers, T, C)
    there = [other - place for other in around if other != place]
    offsets = config.context_places
    shares = shares[:, :, [offsets.index(offset) for offset in there]]
    columns = [f"{offset:+d}" for offset in there]
    if there != offsets or not (config.past_context and config.future_context):
        columns.append(NOTHING)
        shares = np.concatenate([shares, 1 - shares.sum(axis=2, keepdims=True).clip(max=1)], axis=2)
    tokens = tuple(token_texts(tokenizer, batch["input_ids"][0].tolist()))
    return GateMap(place + 1, tokens, tuple(columns), shares)


def check_choice(config) -> None:
    """ValueError unless words choose among context sentences in models of this configuration."""
    architecture, selection = config.model_type.removeprefix("docmt-"), getattr(config, "selection", None)
    if architecture not in CHOICES or selection != CHOICES[architecture]:
        found = f"architecture {architecture!r}" + (f" with selection={selection!r}" if selection else "")
        raise ValueError(
            f"in a model of {found} words do not choose among context sentences: expected one of architecture "
            "'routing', or 'doct' with selection='routing'; give such a model"
        )


def check_place(config, count: int, place: int, around: range) -> None:
    """ValueError for a place (from 0) that the document has not, or that has no context (`around`, with itself)."""
    if not 0 <= place < count:
        raise ValueError(f"sentence {place + 1} of {count}: expected a number from 1 to {count}")
    if len(around) < 2:
        raise ValueError(
            f"sentence {place + 1} of {count} has no context: the model reads {config.past_context} sentences before "
            f"and {config.future_context} after it; give them, too, or choose another sentence"
        )


def batch_of(config, tokenizer, ids: list[list[int]], current: int, document_start: bool) -> dict[str, torch.Tensor]:
    """What the encoder takes for a sentence among others, made as in training."""
    example = {"source": ids, "target": [[] for _ in ids], "current": current, "document_start": document_start}
    example["index"] = current
    batch = registry.for_config(config).collator(config, tokenizer)([example])
    return {name: value for name, value in batch.items() if name.startswith(("input_", "attention_", "context_"))}


@contextmanager
def selections(model: PreTrainedModel) -> Iterator[list[torch.Tensor]]:
    """The model in evaluation mode, its shares (B, T, C) going into the list, layer by layer."""
    taken: list[torch.Tensor] = []
    modules = [one for name, one in model.get_encoder().named_modules() if name.split(".")[-1] == SELECTION]
    hooks = [one.register_forward_hook(lambda module, inputs, output: taken.append(output)) for one in modules]
    was_training = model.training
    model.eval()
    try:
        yield taken
    finally:
        for hook in hooks:
            hook.remove()
        model.train(was_training)
