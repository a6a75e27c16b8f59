"""Context chosen word by word: attention to each context sentence, weighed by a gate."""

import torch
from torch import nn
from transformers.masking_utils import create_bidirectional_mask

from .layers import Attention, keep_source_states, source_states


class SelectedAttention(nn.Module):
    """h_AS: attention to every context sentence, summed with the shares that `Selection` gives.

    Equation 12 adds up the states of two sentences, c = g * c_{-1} W_{-1} + (1 - g) * c_{+1} W_{+1}, whose words are
    different in number, from each other and from those of x, which the gate is computed from. Read here: the gate
    belongs to the word of the current sentence that asks, so it weighs what attention gives that word from each
    sentence. `SelectedStates` is the unchanged equation. With `selects` false it is plain attention to one sequence.
    """

    def __init__(self, config, num_heads: int, layer_idx: int | None = None, selects: bool = True):
        super().__init__()
        attention = self.attention_class() if selects else Attention
        self.attn = attention(config, num_heads, layer_idx, source_name="context")
        self.past = config.past_context
        if selects:
            self.selection = Selection(config)
            if config.past_context:
                self.past_proj = nn.Linear(config.d_model, config.d_model, bias=False)  # W_{-1}
            if config.future_context:
                self.future_proj = nn.Linear(config.d_model, config.d_model, bias=False)  # W_{+1}

    @staticmethod
    def attention_class() -> type[Attention]:
        return AttentionToSentences

    def forward(
        self,
        states: torch.Tensor,  # (B, T, D)
        context_states: torch.Tensor,  # (S, C, L, D), S = B or fewer sources
        context_mask: torch.Tensor | None,  # of S * C sequences, as attention takes it
        context_present: torch.Tensor,  # (S, C) bool
        cache=None,
    ) -> torch.Tensor:
        """The context states that words read, (B, T, D). A missing sentence adds zero; the others keep their share."""
        sources = context_present.shape[0]
        words = states.view(sources, -1, states.shape[2])  # (S, beams*T, D)
        keys = self.keys(context_states, cache).flatten(0, 1)  # (S*C, L, D)
        inputs = (words, keys, cache, context_mask)
        if hasattr(self, "selection"):
            shares = self.selection(states).view(sources, words.shape[1], -1)  # (S, beams*T, C)
            attended, _ = self.attn(*inputs, shares=shares.masked_fill(~context_present[:, None], 0))
        else:
            attended = self.attn(*inputs)[0].masked_fill(~context_present[:, :, None], 0)  # C = 1
        return attended.view(states.shape)

    def keys(self, context_states: torch.Tensor, cache=None) -> torch.Tensor:
        """c_{-1} W_{-1} and c_{+1} W_{+1}, (S, C, L, D); unchanged where keys are cached or nothing is selected."""
        cached = cache is not None and source_states(cache, *self.attn.place) is not None
        if cached or not hasattr(self, "selection"):
            return context_states
        projected = [self.past_proj(context_states[:, : self.past])] if self.past else []
        if context_states.shape[1] > self.past:
            projected.append(self.future_proj(context_states[:, self.past :]))
        return torch.cat(projected, dim=1)


class SelectedStates(SelectedAttention):
    """Attention to one sequence, c = g(x) * c_{-1} W_{-1} + (1 - g(x)) * c_{+1} W_{+1} (equations 10, 12 and 13).

    Position by position, after padding with zeros: the word at a position decides over the context words at the same
    one, and where the sentence has no word the gate is that of a zero. Positions at which no context sentence has a
    word are not attended to. After 800 updates on the built-in corpus, three seeds, it has learned the noun of the next
    sentence as well as `SelectedAttention`, and the pronouns for the previous one less well: 27, 37 and 31 % right,
    where that has 52, 37 and 42 %.
    """

    @staticmethod
    def attention_class() -> type[Attention]:
        return Attention

    def forward(
        self,
        states: torch.Tensor,  # (B, T, D)
        context_states: torch.Tensor,  # (B, C, L, D)
        context_mask: torch.Tensor | None,  # of B sequences of L, as attention takes it
        context_present: torch.Tensor,  # (B, 1) bool: any context
        context_tokens: torch.Tensor,  # (B, C, L) bool
        words: torch.Tensor | None = None,  # (B, T) bool; None = all
    ) -> torch.Tensor:
        """The context states that words read, (B, T, D)."""
        known = states if words is None else states * words[..., None]
        length = context_states.shape[2]
        known = nn.functional.pad(known, (0, 0, 0, length))[:, :length]  # (B, L, D)
        shares = self.selection(known).transpose(1, 2) * context_tokens  # (B, C, L)
        sequence = (self.keys(context_states) * shares[..., None].to(context_states.dtype)).sum(dim=1)  # c (B, L, D)
        attended, _ = self.attn(states, sequence, attention_mask=context_mask)
        return attended.masked_fill(~context_present[:, :, None], 0)


class AttentionToSentences(Attention):
    """Attention of words to each of some sentences, summed with shares.

    Queries are projected once for all sentences, and what is read once after the sum.
    """

    def forward(
        self,
        hidden_states: torch.Tensor,  # (S, T, D)
        key_value_states: torch.Tensor,  # (S*C, L, D)
        cache=None,
        attention_mask: torch.Tensor | None = None,
        shares: torch.Tensor | None = None,  # (S, T, C)
    ) -> tuple[torch.Tensor, None]:
        """The sum over sentences of share * Attention(x, sentence), (S, T, D); no weights are returned."""
        heads, _ = self.heads_output(hidden_states, key_value_states, cache, attention_mask)
        attended = heads.flatten(2).unflatten(0, (shares.shape[0], -1))  # (S, C, T, D)
        total = shares.sum(dim=2, keepdim=True)  # (S, T, 1)
        mean = shares / total.clamp(min=torch.finfo(total.dtype).tiny)  # the output's bias is weighed by the total
        attended = (attended * mean.transpose(1, 2)[..., None].to(attended.dtype)).sum(dim=1)  # (S, T, D)
        return self.out_proj(attended) * total.to(attended.dtype), None

    def source_queries(self, hidden_states: torch.Tensor, key_value_states: torch.Tensor) -> torch.Tensor:
        """The words of a source for each of its sentences: (S, T, D) -> (S*C, H, T, Dh)."""
        query = self.heads(self.q_proj(hidden_states))  # (S, H, T, Dh)
        return query.repeat_interleave(key_value_states.shape[0] // query.shape[0], dim=0)

    def source_projections(self, key_value_states: torch.Tensor, cache, rows: int) -> list[torch.Tensor]:
        """K, V of all sentences, (S*C, H, L, Dh) each; a cache keeps those of a source as one row."""
        kept = None if cache is None else source_states(cache, *self.place)
        if kept is None:
            states = [self.heads(layer(key_value_states)) for layer in (self.k_proj, self.v_proj)]
            if cache is None:
                return states
            joined = [tensor.unflatten(0, (rows, -1)).flatten(1, 2) for tensor in states]  # (S, C*H, L, Dh)
            kept = keep_source_states(cache, *self.place, joined)
        heads = self.q_proj.out_features // self.head_dim
        return [tensor.unflatten(1, (-1, heads)).flatten(0, 1) for tensor in kept]


class Selection(nn.Module):
    """How much of each context sentence a word reads (Fei et al. 2022, section 4.3).

    g(x) = sigmoid(G(x)), G(x) = ReLU(x W + b) W' (equations 14 and 15) gives the share of the previous sentence, 1 - g
    that of the next one. For more sentences it is a softmax over one G for each but the last, whose score stays 0; for
    two sentences that is the formula. Where all are on one side of the current sentence (online), the 0 is the score of
    nothing.
    """

    def __init__(self, config):
        super().__init__()
        self.sentences = len(config.known_offsets)
        self.fc1 = nn.Linear(config.d_model, config.d_model)
        self.fc2 = nn.Linear(config.d_model, len(scored_offsets(config)), bias=False)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """States (B, T, D) -> shares (B, T, C) of the context sentences, in order of the document."""
        scores = self.fc2(nn.functional.relu(self.fc1(hidden_states)))
        scores = torch.cat([scores, scores.new_zeros(*scores.shape[:2], 1)], dim=-1)
        return scores.softmax(dim=-1)[..., : self.sentences]


def scored_offsets(config) -> list[int]:
    """Offsets of the sentences that have a row of W', in order of the document."""
    both = config.past_context > 0 and config.future_context > 0
    return config.known_offsets[:-1] if both else config.known_offsets


def selectable(config, states: torch.Tensor, mask: torch.Tensor, words: int) -> dict[str, torch.Tensor | None]:
    """Inputs of `SelectedAttention`: states (S, C, L, D) with `mask` (S, C, L) bool, and the words per source.

    `context_mask` and `context_present`; the states themselves are the caller's.
    """
    present = mask.any(dim=2)
    seen = (mask | ~present[:, :, None]).flatten(0, 1)  # (S*C, L); a softmax needs a key, its result is discarded
    keys = states.flatten(0, 1)  # (S*C, L, D)
    mask = create_bidirectional_mask(
        config=config,
        inputs_embeds=keys.new_empty(keys.shape[0], words, 1),
        attention_mask=seen,
        encoder_hidden_states=keys,
    )
    return {"context_mask": mask, "context_present": present}


def adapt_selection(
    model: nn.Module, state_dict: dict[str, torch.Tensor], new_names: set[str], source_config
) -> tuple[dict[str, torch.Tensor], set[str]]:
    """`adapt_state_dict` of a model with `SelectedAttention`, from one of the same architecture with other context.

    The gate's rows follow their sentences; the projection of a side that this model does not read is removed.
    """
    config = model.config
    if source_config.model_type != config.model_type:
        return state_dict, new_names
    sides = {"past_proj.weight": config.past_context, "future_proj.weight": config.future_context}
    unneeded = tuple(name for name, sentences in sides.items() if not sentences)
    state_dict = {name: weight for name, weight in state_dict.items() if not name.endswith(unneeded)}
    before, now = scored_offsets(source_config), scored_offsets(config)
    for name in [name for name in state_dict if name.endswith("selection.fc2.weight")]:
        state_dict, new_names = move_rows(model, state_dict, new_names, name, before, now)
    return state_dict, new_names


def move_rows(
    model: nn.Module, state_dict: dict[str, torch.Tensor], new_names: set[str], name: str, before: list, now: list
) -> tuple[dict[str, torch.Tensor], set[str]]:
    """A table whose rows stand for sentences, `before` in `state_dict`, `now` in the model: each row to its sentence.

    Rows of sentences that `state_dict` has not are those of the model; the table is new where there are any.
    """
    parameters = dict(model.named_parameters())
    if before == now or name not in state_dict or name not in parameters:
        return state_dict, new_names
    table, theirs = parameters[name].detach().clone(), state_dict[name]  # (rows, D)
    if table.shape[1:] != theirs.shape[1:]:
        return state_dict, new_names
    for row, sentence in enumerate(now):
        if sentence in before:
            table[row] = theirs[before.index(sentence)]
    is_new = not set(now) <= set(before)
    return {**state_dict, name: table}, new_names | ({name} if is_new else set())
