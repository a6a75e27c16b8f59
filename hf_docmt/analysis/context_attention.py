"""Attention of one sentence to its context sentences, with models that read these as inputs of their own."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.model_runs import CROSS_ATTENTION, forward_hooks, modules_named, token_texts
from hf_docmt.analysis.read_sentences import (
    ContextUse,
    Passage,
    mean_attention,
    read_sentences,
    training_batch,
)
from hf_docmt.evaluation.systems.model_system import evaluation_mode
from hf_docmt.modeling.context_inputs import completed


@torch.inference_mode()
def context_attention_use(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage) -> ContextUse:
    """Attention of the decoder to each context sentence while the current one is written, over layers and heads.

    Where context vectors are several tokens each (pooling, groups), a vector's attention is shared out to the tokens
    that it was made of: alike, or by their weights in the group. Vectors of the current sentence, and its source where
    the decoder reads both as one sequence, are those of offset 0.
    """
    _, batch = training_batch(model, tokenizer, passage)
    with evaluation_mode(model):
        places, ids, owner, vectors = context_tokens(model, batch)
    with gate_openings(model) as openings:
        weights = mean_attention(model, batch, context_modules(model))[0]  # (T, N)
    weights = weights[:, weights.shape[1] - len(vectors) :] @ vectors  # (T, tokens), without a lone mark in front
    sentences, by_token = read_sentences(passage, tokenizer, places, ids, owner, weights)
    there = any(offset for offset, _ in places)
    gate = 100 * float(np.mean(openings)) if openings and there else None
    kind = "gate" if modules_named(model.get_encoder(), "state_gate") else "context attention"
    kind = "groups" if model.config.groups_tokens else kind
    labels = batch["labels"][0]
    return ContextUse(kind, sentences, tuple(token_texts(tokenizer, labels[labels != -100].tolist())), by_token, gate)


def context_modules(model: PreTrainedModel) -> list[nn.Module]:
    """The attention modules of the decoder that read the context."""
    decoder = model.get_decoder()
    if getattr(model.config, "integration", None) == "concatenate":
        return modules_named(decoder, CROSS_ATTENTION)
    modules = dict(decoder.named_modules())
    inner = [module for path, module in modules.items() if path.endswith(".context.attn.attn")]
    return inner or [module for path, module in modules.items() if path.endswith(".context.attn")]


def context_tokens(
    model: PreTrainedModel, batch: dict[str, torch.Tensor]
) -> tuple[list[tuple[int, bool]], list[int], np.ndarray, np.ndarray]:
    """What the decoder's context vectors are made of: sentences, tokens, their sentences, and shares (N, tokens).

    Sentences are (offset, whether it is a translation). A row of the shares is one vector and sums to 1, or to 0 where
    it is made of no token of a sentence.
    """
    sentences = context_sentences(batch)
    if hasattr(model.config, "shortening"):
        blocks = shortened_blocks(model, batch, sentences)
    else:  # joined in the order of the document, absent ones left out
        blocks = [(number, ids, np.eye(len(ids))) for number, (_, ids) in enumerate(sentences)]
    places = [place for place, _ in sentences]
    current = len(places)
    if getattr(model.config, "integration", None) == "concatenate":
        length = batch["input_ids"].shape[1]
        blocks.append((current, batch["input_ids"][0].tolist(), np.eye(length)))
    if any(number == current for number, *_ in blocks):
        places.append((0, False))
    ids = [token for _, row, _ in blocks for token in row]
    owner = np.array([number for number, row, _ in blocks for _ in row], dtype=int)
    shares = np.zeros((sum(len(block) for *_, block in blocks), len(ids)))
    row = column = 0
    for *_, block in blocks:
        height, width = block.shape
        shares[row : row + height, column : column + width] = block
        row, column = row + height, column + width
    return places, ids, owner, shares


def context_sentences(batch: dict[str, torch.Tensor]) -> list[tuple[tuple[int, bool], list[int]]]:
    """((offset, is_target), ids) of the context sentences of a batch of one row, in the order of the document."""
    if "context_input_ids" not in batch:
        return []
    names = ("context_input_ids", "context_attention_mask", "context_offsets")
    rows, masks, offsets = (batch[name][0] for name in names)
    is_target = batch.get("context_is_target", torch.zeros_like(batch["context_offsets"]))[0].bool().tolist()
    there = [
        ((offset, target), row[mask.bool()].tolist())
        for row, mask, offset, target in zip(rows, masks, offsets.tolist(), is_target)
        if mask.any()
    ]
    return sorted(there, key=lambda entry: entry[0][0])


def shortened_blocks(model: PreTrainedModel, batch: dict[str, torch.Tensor], sentences: list) -> list:
    """(sentence, ids, shares (K, L)) of the vectors of `caching`, in the order in which the decoder reads them.

    The sentence is an index in `sentences`, the one behind them is the current one, -1 is none.
    """
    encoder, config = model.get_encoder(), model.config
    names = ("context_input_ids", "context_attention_mask", "context_offsets", "context_is_target")
    ids, mask, offsets, is_target = (batch.get(name) for name in names)
    if config.missing_context == "eos":
        ids, mask, offsets = completed(config, batch["input_ids"], ids, mask, offsets, is_target)
        is_target = None
    places = [place for place, _ in sentences]
    blocks = []
    if ids is not None and ids.shape[1]:
        shares = vector_shares(encoder, config, ids[0], mask[0])
        targets = [False] * ids.shape[1] if is_target is None else is_target[0].bool().tolist()
        for row, share, offset, target in zip(ids[0].tolist(), shares, offsets[0].tolist(), targets):
            of_row = [
                place for place in places if place == (offset, target) or is_target is None and place[0] == offset
            ]
            blocks.append((places.index(of_row[0]) if of_row else -1, row, share))
    if config.include_current:
        share = vector_shares(encoder, config, batch["input_ids"], batch["attention_mask"])[0]
        blocks.append((len(places), batch["input_ids"][0].tolist(), share))
    return blocks


def vector_shares(encoder, config, ids: torch.Tensor, mask: torch.Tensor) -> np.ndarray:
    """Of what tokens the K vectors of each sentence are made: ids and mask (P, L) -> (P, K, L)."""
    length, mask = ids.shape[1], mask.bool()
    if config.groups_tokens:
        there = mask | ~mask.any(dim=1, keepdim=True)
        shares = encoder.shortener.categories(encoder.encode(ids, there), there).transpose(1, 2)  # (P, K, L)
        shares = shares * mask[:, None]
    else:
        size = {"none": 1, "sentence": length}.get(config.shortening) or config.shortening_size
        window = torch.arange(length, device=ids.device) // size  # (L,)
        vectors = -(-length // size)
        shares = (window == torch.arange(vectors, device=ids.device)[:, None]) * mask[:, None]  # (P, K, L)
    shares = shares.double()
    return (shares / shares.sum(dim=2, keepdim=True).clamp(min=1e-12)).cpu().numpy()


@contextmanager
def gate_openings(model: PreTrainedModel) -> Iterator[list[float]]:
    """Filled within the context: for each gate that a pass goes through, the mean share that it lets in of the context.

    That of `doct` (Zhang et al. 2018) keeps g of the state and lets in 1 - g; those of context attention let in lambda.
    """
    openings: list[float] = []
    kept: list[torch.Tensor] = []

    def open_to_context(module, inputs, output):
        openings.append(float(torch.sigmoid(output).mean()))

    def keep(module, inputs, output):
        kept.append(output)

    def open_beside_state(module, inputs, output):
        openings.append(1 - float(torch.sigmoid(kept.pop() + output).mean()))

    hooks = [(module, open_to_context) for module in modules_named(model.get_decoder(), "gate")]
    for stack in (model.get_encoder(), model.get_decoder()):
        hooks += [(module, keep) for module in modules_named(stack, "state_gate")]
        hooks += [(module, open_beside_state) for module in modules_named(stack, "context_gate")]
    with forward_hooks(hooks):
        yield openings
