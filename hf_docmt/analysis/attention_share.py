"""Share of cross-attention that goes to the source of the current sentence (Herold and Ney 2023, table 1)."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.model_runs import forward, on_device, training_batches
from hf_docmt.loading import registry
from hf_docmt.modeling.segments import sentence_index
from hf_docmt.systems.attention_weights import (
    CROSS_ATTENTION,
    attention_weights,
    eager_attention,
    kept_outputs,
    modules_named,
)


@dataclass(frozen=True)
class AttentionShare:
    """Shares of cross-attention in percent, means over target tokens.

    `shares` (N, N): while sentence n of the target is written, to sentence m of the source, over layers and heads; a
    row sums to 100, or is zero where no segment has that target sentence. `heads` (layers, heads): to the source
    sentence of the same number, over all target tokens. `tokens` (N,): target tokens of each sentence n.
    """

    shares: np.ndarray
    heads: np.ndarray
    tokens: np.ndarray

    @property
    def value(self) -> float:
        """The share of the source sentence of the same number, over all target tokens, layers and heads."""
        return float(self.heads.mean())


def attention_share(
    model: PreTrainedModel,
    documents: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int = 4096,
) -> AttentionShare:
    """Cross-attention of a model of any architecture, while references are forced.

    Herold and Ney (2023), section 3.1: the share of the attention to the n-th source sentence while the n-th target
    sentence is written. A separator belongs to the sentence it ends, so every weight counts. Documents are cut
    as in training, so that systems differ by their attention alone; examples/analysis/attention_share.py measures while
    decoding, too.

    A layer's weights are reduced immediately and never kept. Batches have up to `max_tokens` source
    and target tokens. The model runs with eager attention and afterwards has its own again. ValueError: see
    `check_joined`; no cross-attention, or one that does not give its weights (see `attention_weights`).
    """
    check_joined(model)
    return count_shares(model, (batch for _, batch in training_batches(model, documents, tokenizer, max_tokens)))


def check_joined(model: PreTrainedModel) -> None:
    """ValueError: a source of the current sentence alone, to which all attention goes."""
    architecture = registry.for_config(model.config)
    if architecture.separate_context or architecture.carries_state:
        raise ValueError(
            f"{model.config.model_type} reads other sentences apart from the source, so all of its "
            "cross-attention goes to the current sentence; give a model that reads several sentences as one segment"
        )


def count_shares(model: PreTrainedModel, batches: Iterable[dict[str, torch.Tensor]]) -> AttentionShare:
    """The shares on batches as the architecture's collator makes them; see `attention_share`."""
    attentions = modules_named(model.get_decoder(), CROSS_ATTENTION)
    if not attentions:
        raise ValueError(f"{type(model).__name__} has no cross-attention (no module named {CROSS_ATTENTION})")
    sums, tokens = torch.zeros(0, 0, 0, 0), torch.zeros(0)  # (layers, H, N, N), target by source; (N,)
    for batch in (on_device(model, batch) for batch in batches):
        source, target = sentences_of_tokens(model.config, batch)  # (B, S, N), (B, T, N)
        reduce = partial(weights_by_sentence, source, target)
        with eager_attention(model), kept_outputs(attentions, reduce) as layers, torch.inference_mode():
            forward(model, batch)
        sums, tokens = padded_sum(sums, torch.stack(layers).cpu()), padded_sum(tokens, target.sum(dim=(0, 1)).cpu())
    per_token = 100 * sums / tokens.clamp(min=1)[:, None]  # (layers, H, N, N)
    diagonal = 100 * sums.diagonal(dim1=2, dim2=3).sum(dim=-1) / tokens.sum()  # (layers, H)
    return AttentionShare(per_token.mean(dim=(0, 1)).numpy(), diagonal.numpy(), tokens.long().numpy())


def weights_by_sentence(source: torch.Tensor, target: torch.Tensor, output) -> torch.Tensor:
    """The weights of an attention module, summed by target and source sentence, (H, N, N)."""
    weights = attention_weights(output, source.shape[1]).double()  # (B, H, T, S)
    return torch.einsum("bhts,bsm,btn->hnm", weights, source, target)


def sentences_of_tokens(config, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """1 at the sentence of every source and target token, (B, S, N) and (B, T, N).

    Target tokens that do not count, those without labels or not of `is_counted`, have 0 everywhere.
    """
    labels = batch["labels"]
    source = sentence_index(batch["input_ids"], config.sep_token_id)  # (B, S)
    target = sentence_index(labels, config.sep_token_id)  # (B, T)
    if config.context_sides == "source":  # the target is the current sentence alone
        current = source.max(dim=1, keepdim=True).values - config.future_context
        target = target + current.clamp(min=0)  # a sentence read alone has no future sentences
    size = int(max(source.max(), target.max())) + 1  # N
    source, target = (torch.nn.functional.one_hot(sentences, size).double() for sentences in (source, target))
    return source, target * batch.get("is_counted", labels != -100)[..., None]


def padded_sum(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The sum of two tensors of different sizes, the smaller one padded with zeros at the ends."""
    sizes = [max(pair) for pair in zip(tensor.shape, other.shape)]
    total = torch.zeros(sizes, dtype=torch.double)
    for part in (tensor, other):
        total[tuple(slice(size) for size in part.shape)] += part
    return total
