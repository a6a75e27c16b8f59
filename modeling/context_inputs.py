"""Context sentences as the forward takes them: checks, one sequence of several sentences, which of them are read."""

from collections.abc import Callable, Sequence

import torch
from torch import nn

from .layers import EncoderLayer

CONTEXT_INPUTS = ("context_input_ids", "context_attention_mask", "context_offsets", "context_is_target")


def given_context(inputs: dict) -> tuple[torch.Tensor | None, ...]:
    """The context arguments of `forward`, None if missing: ids, mask, offsets, side.

    Without any sentence or token (C or L is 0) they describe one missing sentence.
    """
    ids, *others = (inputs.get(name) for name in CONTEXT_INPUTS)
    if ids is None or ids.numel():
        return ids, *others
    absent = ids.new_zeros(ids.shape[0], 1, 1)
    return absent, absent, absent[..., 0], None


def joined(config, ids: torch.Tensor, mask: torch.Tensor, offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sentences (B, C, L) as one sequence a row in the document's order, `s1 <sep> s2 ... </s>`: (B, N), (B, N).

    N is the length of the longest; under `torch.compile`, which does not see it, C*L.
    """
    present = mask.any(dim=2)
    far = torch.iinfo(offsets.dtype).max
    order = offsets.masked_fill(~present, far).sort(dim=1, stable=True).indices[..., None].expand_as(ids)
    ids, mask = ids.gather(1, order), mask.gather(1, order)
    present = mask.any(dim=2)
    ends = mask & (mask.flip(2).cumsum(dim=2).flip(2) == 1)  # the last token of each sentence, </s>
    last = present & (present.flip(1).cumsum(dim=1).flip(1) == 1)
    ids = ids.masked_fill(ends & ~last[..., None], config.sep_token_id).flatten(1)  # (B, C*L)
    mask = mask.flatten(1)
    width = mask.shape[1] if torch.compiler.is_compiling() else max(int(mask.sum(dim=1).max()), 1)
    front = tokens_first(mask)[:, :width]
    mask = mask.gather(1, front)
    return ids.gather(1, front).masked_fill(~mask, config.pad_token_id), mask


def tokens_first(mask: torch.Tensor) -> torch.Tensor:
    """Columns of every row, those of tokens in front and all in their order: mask (B, T) bool -> (B, T) int64."""
    return (~mask).long().sort(dim=1, stable=True).indices


Copies = tuple[torch.Tensor, torch.Tensor]


def sentences_to_read(
    mask: torch.Tensor, contents: tuple[torch.Tensor, ...] = ()
) -> tuple[torch.Tensor | None, Copies | None]:
    """Which sentences of (B, C, L) go through layers: all that exist, of equal `contents` only the first.

    Their indices in (B*C), (P,), None = all; and if some are equal, the indices of all that exist and for each
    the one of P that it is equal to, (Q,) each. `contents` (B, C, ...) are what layers read; without any, as in
    training with its dropout, all sentences differ. If no sentence exists, the first row is read, so that the same
    parameters take part in every step, as training with several processes needs it. In compilation all are read, since
    shapes must not depend on the data.
    """
    if torch.compiler.is_compiling():
        return None, None
    present = mask.any(dim=2).flatten()
    rows = present.nonzero()[:, 0]
    if contents and len(rows):
        first, numbers = equal_rows(*(content.flatten(0, 1)[rows] for content in (mask, *contents)))
        if len(first) < len(rows):
            return rows[first], (rows, numbers)
    if len(rows) == len(present):
        return None, None
    return rows if len(rows) else rows.new_zeros(1), None


def read_each(
    read: Callable, mask: torch.Tensor, inputs: Sequence[torch.Tensor], contents: tuple[torch.Tensor, ...] = ()
) -> list[torch.Tensor]:
    """The results of a function for all sentences (B, C, ...), see `sentences_to_read`; zeros for missing ones."""
    rows, copies = sentences_to_read(mask, contents)
    flat = [tensor.flatten(0, 1) for tensor in inputs]  # (B*C, ...)
    if rows is not None:
        flat = [tensor[rows] for tensor in flat]  # (P, ...)
    return [scatter_sentences(states, rows, copies, mask.shape[:2]) for states in read(*flat)]


def with_key(mask: torch.Tensor) -> torch.Tensor:
    """A mask (..., N) in which a row that would see nothing sees all, since a softmax needs a key."""
    return mask | ~mask.any(dim=-1, keepdim=True)


def equal_rows(*contents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows (P, ...) of whole numbers: the first of each that are equal in all tensors, (U,), and for all its place."""
    count, device = len(contents[0]), contents[0].device
    every = torch.arange(count, device=device)
    values = torch.cat([content.reshape(count, -1).long() for content in contents], dim=1)  # (P, N)
    factors = torch.full((values.shape[1],), 6364136223846793005, device=device).cumprod(dim=0)  # modulo 2^64
    keys, numbers = ((values + 1) * factors).sum(dim=1).unique(return_inverse=True)  # (U,), (P,)
    if len(keys) == count:
        return every, every
    first = torch.full_like(keys, count).scatter_reduce(0, numbers, every, "amin")
    if not torch.equal(values[first[numbers]], values):  # rows that differ have one key
        return every, every
    first, order = first.sort()
    return first, order.argsort()[numbers]


def scatter_sentences(
    states: torch.Tensor, rows: torch.Tensor | None, copies: Copies | None, shape: tuple[int, int]
) -> torch.Tensor:
    """States of the sentences read, (P, ...), in (B, C, ...), see `sentences_to_read`; zeros for the others."""
    if copies is not None:
        rows, numbers = copies
        states = states[numbers]
    if rows is not None:
        empty = states.new_zeros(shape[0] * shape[1], *states.shape[1:])
        states = empty.index_copy(0, rows, states)
    return states.unflatten(0, shape)


def check_context(
    config, input_ids, context_input_ids, context_attention_mask, context_offsets, context_is_target=None
) -> None:
    """Raise `ValueError` for context inputs that do not belong together, or of sentences that the model cannot tell."""
    if context_attention_mask is None or context_offsets is None:
        raise ValueError(
            "context_input_ids (B, C, L) was given without context_attention_mask (B, C, L) or context_offsets (B, C): "
            "give all three, as the collator makes them."
        )
    shape = tuple(context_input_ids.shape)
    if len(shape) != 3 or shape[0] != input_ids.shape[0]:
        raise ValueError(f"context_input_ids must be ({input_ids.shape[0]}, C, L), as input_ids has rows; got {shape}.")
    if tuple(context_attention_mask.shape) != shape or tuple(context_offsets.shape) != shape[:2]:
        raise ValueError(
            f"context_attention_mask must be {shape} and context_offsets {shape[:2]}, got "
            f"{tuple(context_attention_mask.shape)} and {tuple(context_offsets.shape)}."
        )
    if torch.compiler.is_compiling():
        return
    there = context_attention_mask.any(dim=2)
    present = context_offsets[there]
    wrong = (present < -config.past_context) | (present > config.future_context) | (present == 0)
    if wrong.any():
        raise ValueError(
            f"context_offsets: got {int(present[wrong][0])}, but this model has context from -{config.past_context} to "
            f"{config.future_context}, without 0 (past_context={config.past_context}, future_context="
            f"{config.future_context}): give fewer context sentences, or train with more."
        )
    is_target = torch.zeros_like(there) if context_is_target is None else context_is_target.bool()
    allowed = {"source": ~is_target, "target": is_target}.get(config.context_sides, torch.ones_like(there))
    if (there & (~allowed | (is_target & (context_offsets > 0)))).any():
        raise ValueError(
            f"context_is_target: this model reads context of the side context_sides={config.context_sides!r}, earlier "
            "translations being true and at offsets below 0; got others."
        )
    rows = torch.arange(len(there), device=there.device)[:, None].expand_as(there)
    sentences = torch.stack([rows[there], context_offsets[there], is_target[there].long()], dim=1)
    if len(sentences.unique(dim=0)) != len(sentences):
        raise ValueError("context_offsets: a row has two context sentences of one offset; give each sentence once.")


def completed(config, input_ids, ids, mask, offsets, is_target=None) -> tuple[torch.Tensor | None, ...]:
    """Context inputs with a lone `</s>` for every missing sentence, a column for every known offset.

    Ids, mask and offsets of them, (B, C, L), (B, C, L), (B, C); None each for a model that reads no context. Raises
    `ValueError` as `check_context` does.
    """
    if not config.known_offsets:
        return None, None, None
    ids, mask = by_offset(config, input_ids, ids, mask, offsets, is_target)
    ids, mask = with_end(config, ids, mask)
    return ids, mask, torch.tensor(config.known_offsets, device=ids.device).expand(mask.shape[:2])


def with_end(config, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask (..., L) with a lone `</s>` where a sequence has no tokens."""
    eos = config.eos_token_id if isinstance(config.eos_token_id, int) else config.eos_token_id[0]
    missing = ~mask.any(dim=-1, keepdim=True)
    first = torch.arange(ids.shape[-1], device=ids.device) == 0  # (L,)
    return ids.masked_fill(missing & first, eos), mask | (missing & first)


def by_offset(config, input_ids, ids, mask, offsets, is_target) -> tuple[torch.Tensor, torch.Tensor]:
    """Context sentences (B, C, L), a column for every offset that the model knows: (B, past + future, L), mask bool.

    Past sentences come first, in document order. Without any, ids None, all columns are empty. Raises
    `ValueError` as `check_context` does.
    """
    if ids is None:
        columns = config.past_context + config.future_context
        empty_ids = input_ids.new_full((input_ids.shape[0], columns, 1), config.pad_token_id)
        return empty_ids, torch.zeros_like(empty_ids, dtype=torch.bool)
    check_context(config, input_ids, ids, mask, offsets, is_target)
    mask = mask.bool()
    column_offsets = torch.tensor(config.known_offsets, device=offsets.device)  # (columns,)
    matches = (offsets[:, None] == column_offsets[:, None]) & mask.any(dim=2)[:, None]  # (B, columns, C)
    rows = matches.int().argmax(dim=2)[..., None].expand(-1, -1, ids.shape[2])  # (B, columns, L)
    mask = mask.gather(1, rows) & matches.any(dim=2)[..., None]
    return ids.gather(1, rows).masked_fill(~mask, config.pad_token_id), mask


class ContextLayers:
    """Adds a context encoder to an encoder, over the embeddings of the encoder that it is added to."""

    def add_context_layers(self, config, layers: int) -> None:
        self.context_layers = nn.ModuleList([EncoderLayer(config, i) for i in range(layers)])
        if config.normalize_before:
            self.context_layer_norm = nn.LayerNorm(config.d_model)
        self.post_init()

    def start_neutral(self) -> None:
        """The context layers begin as copies of the encoder's first ones, their norm as a copy of its last."""
        for layer, own in zip(self.context_layers, self.layers):
            layer.load_state_dict({name: own.state_dict()[name] for name in layer.state_dict()})
        if self.config.normalize_before:
            self.context_layer_norm.load_state_dict(self.layer_norm.state_dict())

    def encode_context(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Ids and mask (B, N), 1 = token -> states (B, N, D)."""
        hidden_states = self.embed(ids, self.positions(ids, mask))
        context_layer_norm = getattr(self, "context_layer_norm", None)
        return self.run_plain(hidden_states, with_key(mask), self.context_layers, context_layer_norm)

    def read_context(self, input_ids, attention_mask, is_next: torch.Tensor) -> list[torch.Tensor]:
        """Sentences (P, L), which of them follow the current one (P,) -> what layers read of them, (P, L, D) each.

        To be defined by encoders that read each context sentence separately.
        """
        raise NotImplementedError

    def read_present(
        self, ids: torch.Tensor, mask: torch.Tensor, is_next: torch.Tensor
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """`read_context` of the existing sentences: (B, C, L, D) each, zeros for the others, and the mask.

        `ids`, `mask` (B, C, L), a column for every offset, see `by_offset`; `is_next` (C,).
        """
        roles = is_next.expand(ids.shape[:2])  # (B, C)
        inputs, contents = (ids, with_key(mask), roles), () if self.training else (ids, roles)
        return read_each(self.read_context, mask, inputs, contents), mask
