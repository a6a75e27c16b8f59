"""Context chosen word by word: attention to each context sentence, weighed by a gate."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from transformers.masking_utils import create_bidirectional_mask

from .backbone import Attention
from .context import check_context, sentences_to_read
from .cpu_inference import Linear


class Selection(nn.Module):
    """How much of each context sentence a word reads (Fei et al. 2022, section 4.3).

    g(x) = sigmoid(G(x)), G(x) = ReLU(x W + b) W' (equations 14 and 15) gives the share of the previous sentence, 1 - g
    that of the next one. For more sentences it is a softmax over one G for each but the last, whose score stays 0; for
    two sentences that is the formula. Where all are on one side of the current sentence (online), the 0 is the score of
    nothing.
    """

    def __init__(self, config):
        super().__init__()
        places = config.context_places
        self.sentences = len(places)
        both = config.past_context > 0 and config.future_context > 0
        scored = places[:-1] if both else places
        self.fc1 = Linear(config.d_model, config.d_model)
        self.fc2 = Linear(config.d_model, len(scored), bias=False)
        self.rows_by_place = {"fc2.weight": scored}  # for a stage with other context

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """States (B, T, D) -> shares (B, T, C) of the context sentences, in order of the document."""
        scores = self.fc2(nn.functional.relu(self.fc1(hidden_states)))
        scores = torch.cat([scores, scores.new_zeros(*scores.shape[:2], 1)], dim=-1)
        return scores.softmax(dim=-1)[..., : self.sentences]


class SelectedAttention(nn.Module):
    """h_AS: attention to every context sentence, summed with the shares that `Selection` gives.

    Equation 12 adds up the states of two sentences, c = g * c_{-1} W_{-1} + (1 - g) * c_{+1} W_{+1}, whose words are
    not as many, and not as many as those of x that the gate is computed from. Read here: the gate belongs to the word
    of the current sentence that asks, so it weighs what attention gives that word from each sentence. The other
    reading, place by place after padding, lets the word at a place decide over context words at the same place; trained
    alike on the built-in corpus, it learned the noun of the next sentence as well, and chose between the two nouns of
    the previous one by chance, where this reading knows the right one.
    With `selects` false it is plain attention to one sequence.
    """

    def __init__(self, config, num_heads: int, cache_index: int | None = None, selects: bool = True):
        super().__init__()
        self.attn = Attention(config, num_heads, cache_index)
        self.past = config.past_context
        if selects:
            self.selection = Selection(config)
            self.needed_for = {"past_proj.weight": "past_context", "future_proj.weight": "future_context"}
            if config.past_context:
                self.past_proj = Linear(config.d_model, config.d_model, bias=False)  # W_{-1}
            if config.future_context:
                self.future_proj = Linear(config.d_model, config.d_model, bias=False)  # W_{+1}

    def forward(self, states: torch.Tensor, context: "Selectable", past_key_values=None, **kwargs) -> torch.Tensor:
        """Words (B, T, D), context of B or fewer rows -> (B, T, D).

        A sentence that is not there gives nothing; the others keep their share.
        """
        sources, sentences = context.present.shape
        beams, keys = states.shape[0] // sources, context.states
        known = past_key_values is not None and past_key_values.is_updated.get(self.attn.layer_idx)
        if hasattr(self, "selection") and not known:
            projected = [self.past_proj(keys[:, : self.past])] if self.past else []
            if sentences > self.past:
                projected.append(self.future_proj(keys[:, self.past :]))
            keys = torch.cat(projected, dim=1)
        words = states.view(sources, -1, states.shape[2])  # (S, beams*T, D)
        read = self.attn(
            words.repeat_interleave(sentences, dim=0),  # (S*C, beams*T, D)
            keys.flatten(0, 1),
            past_key_values,
            attention_mask=context.mask,
            **kwargs,
        )[0].unflatten(0, (sources, sentences))  # (S, C, beams*T, D)
        read = torch.where(context.present[:, :, None, None], read, torch.zeros_like(read))
        if not hasattr(self, "selection"):
            return read[:, 0].reshape(states.shape)
        shares = self.selection(states).view(sources, beams * states.shape[1], sentences)
        return torch.einsum("sctd,stc->std", read, shares.to(read.dtype)).reshape(states.shape)


@dataclass
class Selectable:
    """Context as `SelectedAttention` takes it: states (B, C, L, D), which sentences are there (B, C), mask of keys."""

    states: torch.Tensor
    present: torch.Tensor
    mask: torch.Tensor | None


def selectable(config, states: torch.Tensor, mask: torch.Tensor, words: int) -> Selectable:
    """Of states (B, C, L, D) with `mask` (B, C, L) bool, to be read by so many words in each row B."""
    present = mask.any(dim=2)
    keys = states.flatten(0, 1)
    seen = (mask | ~present[:, :, None]).flatten(0, 1)  # a softmax needs a key; what it finds there is left out
    queries = keys.new_empty(keys.shape[0], words, 1)
    return Selectable(
        states,
        present,
        create_bidirectional_mask(
            config=config, inputs_embeds=queries, attention_mask=seen, encoder_hidden_states=keys
        ),
    )


def in_places(config, input_ids, ids, mask, offsets, is_target) -> tuple[torch.Tensor, torch.Tensor]:
    """Context sentences (B, C, L) by place, past ones first: (B, past_context + future_context, L), mask bool.

    Without any, ids None, all places are empty. Raises `ValueError` as `check_context` does.
    """
    places = config.past_context + config.future_context
    if ids is None:
        placed = input_ids.new_full((input_ids.shape[0], places, 1), config.pad_token_id)
        return placed, torch.zeros_like(placed, dtype=torch.bool)
    check_context(config, input_ids, ids, mask, offsets, is_target)
    mask = mask.bool()
    rows, columns = mask.any(dim=2).nonzero(as_tuple=True)
    found = offsets[rows, columns]
    place = found + config.past_context - (found > 0).long()
    shape = (ids.shape[0], places, ids.shape[2])
    placed, seen = ids.new_full(shape, config.pad_token_id), mask.new_zeros(shape)
    placed[rows, place], seen[rows, place] = ids[rows, columns], mask[rows, columns]
    return placed, seen


def spread(read: Callable, ids, mask, is_next) -> tuple[list[torch.Tensor], torch.Tensor]:
    """What `read` gives for the sentences that are there, (P, L, D) each, in the places of all: (B, C, L, D), mask.

    `ids`, `mask` (B, C, L), `is_next` (C,), as `in_places` has them.
    """
    present = sentences_to_read(mask)
    seen = mask[present] | ~mask[present].any(dim=1, keepdim=True)
    outputs = []
    for states in read(ids[present], seen, is_next.expand_as(present)[present]):
        placed = states.new_zeros(*ids.shape, states.shape[2])
        placed[present] = states
        outputs.append(placed)
    return outputs, mask
