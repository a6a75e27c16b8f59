"""Attention of one sentence to its context sentences, with models that read these as inputs of their own."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from read_sentences import ContextUse, Passage, mean_attention, read_sentences, training_batch
from scipy.linalg import block_diag
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.model_runs import forward, token_texts
from hf_docmt.modeling.context_inputs import by_offset, completed
from hf_docmt.modeling.modeling_han import left_aligned
from hf_docmt.systems.attention_weights import CROSS_ATTENTION, forward_hooks, kept_outputs, modules_named
from hf_docmt.systems.model_system import evaluation_mode

# in the order in which they run
HIERARCHICAL = ("word_attn.k_proj", "word_attn.q_proj", "sentence_attn.q_proj", "sentence_attn.k_proj", "gate")
CONTEXT = ("context_input_ids", "context_attention_mask", "context_offsets")


@torch.inference_mode()
def context_attention_use(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage) -> ContextUse:
    """Attention of the decoder to each context sentence while the current one is written, over layers and heads.

    Where context vectors are several tokens each (pooling, groups), a vector's attention is shared out to the tokens
    that it was made of: alike, or by their weights in the group. Vectors of the current sentence, and its source where
    the decoder reads both as one sequence, are those of offset 0.
    """
    _, batch = training_batch(model, tokenizer, passage)
    with evaluation_mode(model):
        runs = context_runs(model, batch)
    places = sorted({place for place, *_ in runs if place}, key=lambda place: (place[0] == 0, *place))
    owner = np.array([places.index(place) if place else -1 for place, ids, _ in runs for _ in ids], dtype=int)
    ids = [token for _, row, _ in runs for token in row]
    vectors = block_diag(*(share for *_, share in runs)) if runs else np.zeros((0, 0))  # (N, tokens)
    with gate_openings(model) as openings:
        weights = mean_attention(model, batch, context_modules(model))[0]  # (T, N)
    weights = weights[:, weights.shape[1] - len(vectors) :] @ vectors  # (T, tokens), without a lone mark in front
    sentences, by_token = read_sentences(passage, tokenizer, places, ids, owner, weights)
    gate = 100 * float(np.mean(openings)) if openings and any(offset for offset, _ in places) else None
    kind = "gate" if modules_named(model.get_encoder(), "state_gate") else "context attention"
    kind = "groups" if model.config.groups_tokens else kind
    labels = batch["labels"][0]
    return ContextUse(
        kind, sentences, tuple(token_texts(tokenizer, labels[labels != -100].tolist(), is_target=True)), by_token, gate
    )


def context_modules(model: PreTrainedModel) -> list[nn.Module]:
    """The attention modules of the decoder that read the context."""
    decoder = model.get_decoder()
    if getattr(model.config, "integration", None) == "concatenate":
        return modules_named(decoder, CROSS_ATTENTION)
    modules = dict(decoder.named_modules())
    inner = [module for path, module in modules.items() if path.endswith(".context.attn.attn")]
    return inner or [module for path, module in modules.items() if path.endswith(".context.attn")]


def context_runs(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> list[tuple]:
    """(sentence, ids (L), shares (K, L)) of each run of context vectors, in the order in which the decoder reads them.

    A sentence is (offset, whether it is a translation), None for a placeholder. A row of the shares is
    one vector, and sums to 1, or to 0 where it is made of no token.
    """
    config, source, runs = model.config, batch["input_ids"], []
    shortens = hasattr(config, "shortening")
    ids, mask, offsets = (batch.get(name) for name in CONTEXT)
    if ids is not None and ids.shape[1]:
        is_target = batch.get("context_is_target", torch.zeros_like(offsets))[0].bool().tolist()
        there = {place for place, row in zip(zip(offsets[0].tolist(), is_target), mask[0]) if row.any()}
    else:
        is_target, there = [], set()
    if shortens and config.missing_context == "eos":  # of the source alone
        ids, mask, offsets = completed(config, source, ids, mask, offsets, batch.get("context_is_target"))
        is_target = [False] * len(config.known_offsets)
    if ids is not None and ids.shape[1]:
        shares = vector_shares(model, ids[0], mask[0]) if shortens else [None] * ids.shape[1]
        for row, row_mask, place, share in zip(ids[0], mask[0].bool(), zip(offsets[0].tolist(), is_target), shares):
            if shortens:
                runs.append((place if place in there else None, row.tolist(), share))
            elif row_mask.any():
                runs.append((place, row[row_mask].tolist(), np.eye(int(row_mask.sum()))))
    if not shortens:  # joined in the order of the document
        runs.sort(key=lambda run: run[0][0])
    current = (0, False)
    if getattr(config, "include_current", False):
        runs.append((current, source[0].tolist(), vector_shares(model, source, batch["attention_mask"])[0]))
    if getattr(config, "integration", None) == "concatenate":
        runs.append((current, source[0].tolist(), np.eye(source.shape[1])))
    return runs


def vector_shares(model: PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor) -> np.ndarray:
    """Shares of tokens in the K vectors of each sentence: ids and mask (P, L) -> (P, K, L)."""
    config, encoder, length, mask = model.config, model.get_encoder(), ids.shape[1], mask.bool()
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

    The gate of `doct` (Zhang et al. 2018) keeps g of the state and lets in 1 - g; gates of context attention lambda.
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


@torch.inference_mode()
def hierarchical_use(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage) -> ContextUse:
    """Shares of the sentences before, and of their words in them, each the mean of the heads.

    If the decoder has hierarchical attention, from target words to earlier translations, otherwise from source words
    to earlier sources. `gate` is what is let in of them.
    """
    _, batch = training_batch(model, tokenizer, passage)
    is_target = model.config.hierarchical_attention != "encoder"
    side = model.get_decoder() if is_target else model.get_encoder()
    attention, masks = side.layers[-1].context, []
    ids = read_ids(model, batch, is_target)
    hook = attention.register_forward_pre_hook(lambda module, inputs: masks.append(inputs[2]))
    with evaluation_mode(model), kept_outputs(attention.get_submodule(name) for name in HIERARCHICAL) as kept:
        forward(model, batch)
    hook.remove()
    reading = batch["labels"][0][batch["labels"][0] != -100] if is_target else batch["input_ids"][0]
    tokens = tuple(token_texts(tokenizer, reading.tolist(), is_target=is_target))
    mask = next((mask for mask in reversed(masks) if mask is not None), None)
    if mask is None or not mask.any():
        return ContextUse("hierarchical attention", (), tokens, np.zeros((len(tokens), 0)))
    key, query, sentence_query, sentence_key, gate = (output.double() for output in kept[-len(HIERARCHICAL) :])
    heads, (count, length) = query.shape[-1] // attention.word_attn.head_dim, mask.shape[1:]
    query = query[0].unflatten(-1, (heads, -1))  # (T, H, Dh)
    key = key[0].unflatten(0, (count, length)).unflatten(-1, (heads, -1))  # (C, L, H, Dh)
    scores = torch.einsum("thd,clhd->thcl", query, key) * attention.word_attn.scaling
    words = masked_softmax(scores, mask[0]).mean(dim=1)  # (T, C, L)
    sentence_query = sentence_query[:, 0].unflatten(-1, (heads, -1))  # (T, H, Dh)
    sentence_key = sentence_key.unflatten(-1, (heads, -1))  # (T, C, H, Dh)
    scores = torch.einsum("thd,tchd->thc", sentence_query, sentence_key) * attention.sentence_attn.scaling
    sentences = masked_softmax(scores, mask[0].any(dim=1)).mean(dim=1)  # (T, C)
    there = mask[0].any(dim=1).nonzero()[:, 0].tolist()
    places = [(model.config.known_offsets[column], is_target) for column in there]
    weights = (sentences[..., None] * words)[:, there].flatten(1).cpu().numpy()
    owner = np.repeat(np.arange(len(there)), length)
    read, by_token = read_sentences(passage, tokenizer, places, ids[there].flatten().tolist(), owner, weights)
    opened = 100 * float(1 - torch.sigmoid(gate).mean())
    return ContextUse("hierarchical attention", read, tokens, by_token, opened)


def read_ids(model: PreTrainedModel, batch: dict[str, torch.Tensor], is_target: bool) -> torch.Tensor:
    """Ids (C, L) of the attended tokens, in the order of the states."""
    inputs = {name: value for name, value in batch.items() if name.startswith(("context_", "input_", "attention_"))}
    if is_target:
        return model.get_encoder()(**inputs).context_target_ids[0]
    ids, mask = inputs["context_input_ids"], inputs["context_attention_mask"].bool()
    return left_aligned(*by_offset(model.config, inputs["input_ids"], ids, mask, inputs["context_offsets"], None))[0][0]


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension where the mask is True, zeros where it is nowhere."""
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1).nan_to_num(0)
