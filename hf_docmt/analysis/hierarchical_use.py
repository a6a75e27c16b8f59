"""Attention of one sentence to the words of those before it, with hierarchical attention networks."""

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.model_runs import forward, token_texts
from hf_docmt.analysis.read_sentences import ContextUse, Passage, read_sentences, training_batch
from hf_docmt.modeling.context_inputs import by_offset
from hf_docmt.modeling.modeling_han import left_aligned
from hf_docmt.systems.attention_weights import kept_outputs
from hf_docmt.systems.model_system import evaluation_mode

# in the order in which they run
NAMES = ("word_attn.k_proj", "word_attn.q_proj", "sentence_attn.q_proj", "sentence_attn.k_proj", "gate")


@torch.inference_mode()
def hierarchical_use(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage) -> ContextUse:
    """Shares of the sentences before, and of their words in them, each the mean of the heads.

    Of target words to earlier translations where the decoder has hierarchical attention, else of source words to
    earlier sources. `gate` is what is let in of them.
    """
    _, batch = training_batch(model, tokenizer, passage)
    is_target = model.config.hierarchical_attention != "encoder"
    side = model.get_decoder() if is_target else model.get_encoder()
    attention, masks = side.layers[-1].context, []
    ids = read_ids(model, batch, is_target)
    hook = attention.register_forward_pre_hook(lambda module, inputs: masks.append(inputs[2]))
    with evaluation_mode(model), kept_outputs(attention.get_submodule(name) for name in NAMES) as kept:
        forward(model, batch)
    hook.remove()
    reading = batch["labels"][0][batch["labels"][0] != -100] if is_target else batch["input_ids"][0]
    tokens = tuple(token_texts(tokenizer, reading.tolist()))
    mask = next((mask for mask in reversed(masks) if mask is not None), None)
    if mask is None or not mask.any():
        return ContextUse("hierarchical attention", (), tokens, np.zeros((len(tokens), 0)))
    key, query, sentence_query, sentence_key, gate = (output.double() for output in kept[-len(NAMES) :])
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
    """Ids (C, L) of what is attended to, as the states stand there."""
    inputs = {name: value for name, value in batch.items() if name.startswith(("context_", "input_", "attention_"))}
    if is_target:
        return model.get_encoder()(**inputs).context_target_ids[0]
    ids, mask = inputs["context_input_ids"], inputs["context_attention_mask"].bool()
    return left_aligned(*by_offset(model.config, inputs["input_ids"], ids, mask, inputs["context_offsets"], None))[0][0]


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension where the mask is True, zeros where it is nowhere."""
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1).nan_to_num(0)
