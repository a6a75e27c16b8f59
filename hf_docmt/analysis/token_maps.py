"""What the tokens of a sentence choose: context sentences (Fei et al. 2022) or groups (Maka et al. 2024)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.analysis.model_runs import context_result, on_device, sentence_ids, token_texts
from hf_docmt.messages import counted
from hf_docmt.reports.result import Result
from hf_docmt.systems.attention_weights import kept_outputs, modules_named
from hf_docmt.systems.model_system import evaluation_mode

SELECTION = "selection"  # name of the module that computes the shares in every encoder layer
NOTHING = "nothing"
DECIMALS = 4  # of shares and percentages in a report
DIGITS = 4  # of the weights of groups in a report, significant ones, so that only zeros are zero


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

    Fei et al. (2022), section 4.3. `sentence` is its number, from 1; None = the middle one, the later of two. A missing
    context sentence gives the word nothing while the others keep their share, so its share is counted with `nothing`.
    The decoder of `doct` selects, too, by the words of a translation, which is not given here. ValueError: a model
    without such a selection, an empty sentence, a number outside the document, or a sentence without any context.
    """
    config = model.config
    if not config.selects_by_word:
        raise ValueError(
            f"in a model of {kind_of(config, 'selection')} words do not select among context sentences: expected one "
            "of architecture 'routing', or 'doct' with selection='routing'; give such a model"
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


@dataclass(frozen=True)
class GroupMap:
    """Weights (tokens, K) of the tokens of one sentence (number from 1) in K groups; `</s>` is among the tokens.

    With `grouping` each token is distributed over the groups, rows sum to 1; with `selecting` each group is distributed
    over the tokens, columns sum to 1, and a token may be in no group.
    """

    sentence: int
    tokens: tuple[str, ...]
    weights: np.ndarray

    @property
    def used(self) -> int:
        """Number of groups that have any weight."""
        return int(self.weights.any(axis=0).sum())


@dataclass(frozen=True)
class GroupMaps:
    """The maps of some sentences, and how the groups are used in all of them."""

    shortening: str
    categorizer: str
    sentences: tuple[GroupMap, ...]

    @property
    def weights(self) -> np.ndarray:
        """Weights of the tokens of all sentences, (tokens, K)."""
        return np.concatenate([entry.weights for entry in self.sentences])

    @property
    def groups(self) -> pd.DataFrame:
        """A row for each `group` (from 1), unused ones too: `share` of all weight in percent, `tokens`, `largest`.

        The last two are the numbers of tokens with any weight in the group, and with their largest. Softmax gives every
        group some weight of every token; there `largest` is more informative. With `selecting` all groups have the same
        share.
        """
        weights = self.weights
        grouped, size = weights[weights.any(axis=1)], weights.shape[1]
        return pd.DataFrame(
            {
                "group": range(1, size + 1),
                "share": 100 * weights.sum(axis=0) / weights.sum(),
                "tokens": np.count_nonzero(weights, axis=0),
                "largest": np.bincount(grouped.argmax(axis=1), minlength=size),
            }
        )

    @property
    def used(self) -> int:
        """Number of groups that have any weight in any sentence."""
        return int(self.weights.any(axis=0).sum())

    @property
    def ungrouped(self) -> int:
        """Number of tokens that are in no group, which `selecting` allows."""
        return int((~self.weights.any(axis=1)).sum())

    def result(self, dataset: str) -> Result:
        """The result of a report: `value` is the number of used groups, `n` that of tokens."""
        count, size = self.weights.shape
        signature = {"shortening": self.shortening, "categorizer": self.categorizer, "groups": size}
        signature |= {"used": "any weight", "tokens": "with end mark"}
        parts = {f"sentence={entry.sentence}": (entry.used, len(entry.tokens)) for entry in self.sentences}
        groups = self.groups.astype({"share": float}).round({"share": DECIMALS}).to_dict("records")
        details = {"groups": groups, "tokens in no group": self.ungrouped}
        details["maps"] = [
            {
                "sentence": entry.sentence,
                "tokens": list(entry.tokens),
                "weights": [[float(f"{weight:.{DIGITS}g}") for weight in row] for row in entry.weights.tolist()],
            }
            for entry in self.sentences
        ]
        return context_result("groups used", self.used, count, dataset, signature, parts, details)


def group_maps(model: PreTrainedModel, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> GroupMaps:
    """How a model with latent grouping or latent selecting assigns the tokens of each sentence to its groups.

    Maka et al. (2024), figures 4, 6 and 7: c of equation 3, from the states of the encoder. Sentences are read one by
    one, as the encoder reads them, `tokens </s>` or with the codes of the model's languages, not as the beginning of a
    document (no `<bod>`). ValueError: a model without groups, no sentence, an empty one, or no default languages.
    """
    if not model.config.groups_tokens:
        raise ValueError(
            f"a model of {kind_of(model.config, 'shortening')} assigns no tokens to groups: expected one of "
            "architecture 'caching' with shortening='grouping' or 'selecting'; give such a model"
        )
    sequence_format = model.config.sequence_format()
    ids = [sequence_format.source(row) for row in sentence_ids(texts, tokenizer)]
    with evaluation_mode(model):
        weights = [token_weights(model, torch.tensor([row], device=model.device)) for row in ids]
    tokens = [tuple(token_texts(tokenizer, row)) for row in ids]
    maps = [GroupMap(number, *pair) for number, pair in enumerate(zip(tokens, weights), 1)]
    return GroupMaps(model.config.shortening, model.config.categorizer, tuple(maps))


@torch.inference_mode()
def token_weights(model: PreTrainedModel, ids: torch.Tensor) -> np.ndarray:
    """One sentence, ids (1, L) -> (L, K)."""
    encoder, mask = model.get_encoder(), torch.ones_like(ids)
    states, *_ = encoder.read(ids, mask)  # (1, L, D)
    return encoder.shortener.categories(states, mask)[0].cpu().numpy()


def kind_of(config, field: str) -> str:
    """Architecture of a configuration and, if it has the field, the field's value, for messages."""
    value = getattr(config, field, None)
    return f"architecture {config.model_type.removeprefix('docmt-')!r}" + (f" with {field}={value!r}" if value else "")
