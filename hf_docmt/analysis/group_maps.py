"""Assignment of tokens to the groups of a shortened sentence (Maka et al. 2024, section 5.4)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.model_runs import context_result, sentence_ids, token_texts
from hf_docmt.evaluation.systems.model_system import evaluation_mode
from hf_docmt.reports.result import Result

DECIMALS = 4  # of the percentages in a report
DIGITS = 4  # of the weights in a report, significant ones, so that only zeros are zero


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

    def as_json(self) -> dict:
        """Sentence, tokens and weights for a report."""
        weights = [[float(f"{weight:.{DIGITS}g}") for weight in row] for row in self.weights.tolist()]
        return {"sentence": self.sentence, "tokens": list(self.tokens), "weights": weights}


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
        details["maps"] = [entry.as_json() for entry in self.sentences]
        return context_result("groups used", self.used, count, dataset, signature, parts, details)


def group_maps(model: PreTrainedModel, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> GroupMaps:
    """How a model with latent grouping or latent selecting assigns the tokens of each sentence to its groups.

    Maka et al. (2024), figures 4, 6 and 7: c of equation 3, from the states of the encoder. Sentences are read one by
    one, as the encoder reads them, `tokens </s>` or with the codes of the model's languages, not as the beginning of a
    document (no `<bod>`). ValueError: a model without groups, no sentence, an empty one, or no default languages.
    """
    check_groups(model.config)
    sequence_format = model.config.sequence_format()
    ids = [sequence_format.source(row) for row in sentence_ids(texts, tokenizer)]
    with evaluation_mode(model):
        weights = [token_weights(model, torch.tensor([row], device=model.device)) for row in ids]
    tokens = [tuple(token_texts(tokenizer, row)) for row in ids]
    maps = [GroupMap(number, *pair) for number, pair in enumerate(zip(tokens, weights), 1)]
    return GroupMaps(model.config.shortening, model.config.categorizer, tuple(maps))


def check_groups(config) -> None:
    """ValueError unless models of this configuration assign tokens to groups."""
    if not config.groups_tokens:
        architecture, shortening = config.model_type.removeprefix("docmt-"), getattr(config, "shortening", None)
        kind = f"architecture {architecture!r}" + (f" with shortening={shortening!r}" if shortening else "")
        raise ValueError(
            f"a model of {kind} assigns no tokens to groups: expected one of architecture 'caching' with "
            "shortening='grouping' or 'selecting'; give such a model"
        )


@torch.inference_mode()
def token_weights(model: PreTrainedModel, ids: torch.Tensor) -> np.ndarray:
    """One sentence, ids (1, L) -> (L, K)."""
    encoder, mask = model.get_encoder(), torch.ones_like(ids)
    states, *_ = encoder.read(ids, mask)  # (1, L, D)
    return encoder.shortener.categories(states, mask)[0].cpu().numpy()
