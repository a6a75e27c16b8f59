"""The layers of an encoder on the compiled primitives, by one call."""

import ctypes
from collections.abc import Sequence

import torch
from torch import nn

from hf_docmt.engine.cpu_kernels import BLOCK, Step, most_rows, run
from hf_docmt.engine.int8_linear import is_plain_int8
from hf_docmt.engine.known_layers import source_limits
from hf_docmt.engine.programs import buffers, encoder_program
from hf_docmt.engine.scope import is_for_kernels, is_in_scope, is_inference, made_once
from hf_docmt.engine.tensor_kernels import give_scratch, memory
from hf_docmt.modeling.segments import is_right_padded

CACHED_ROWS = 256  # of states that operations go over one after the other
MOST_PLACES = 128  # of a source, up to which attention by rows is at least as fast as torch's


def encoder_states(
    stack: nn.Module,
    hidden_states: torch.Tensor,
    attention_mask: torch.Tensor | None,
    layers: Sequence[nn.Module],
    norm: nn.LayerNorm | None = None,
    input_ids: torch.Tensor | None = None,
) -> torch.Tensor | None:
    """Embeddings (B, S, D), mask (B, S) -> states (B, S, D) of layers of an encoder and a norm after them, if any.

    None where they have to be called, as outside of a scope. `input_ids` (B, S) tell the limits of attention, where it
    has some.
    """
    batch, length, size = hidden_states.shape
    fits = hidden_states.is_cpu and hidden_states.dtype is torch.float32 and length <= MOST_PLACES
    program = layers_program(stack, batch * length, layers, norm) if fits else None
    if program is None:
        return None
    states = hidden_states.clone(memory_format=torch.contiguous_format)
    (operations, has_limits, _), inner = program, stack.config.encoder_ffn_dim
    limits = source_limits(stack, input_ids, attention_mask) if has_limits else None
    if attention_mask is not None and is_right_padded(attention_mask):
        run_in_batches(operations, states, inner, attention_mask, limits)
        return states
    run_on_rows(operations, states.view(-1, size), inner, places=length, mask=attention_mask, limits=limits)
    return states


def layers_program(
    stack: nn.Module, rows: int, layers: Sequence[nn.Module], norm: nn.LayerNorm | None
) -> tuple[ctypes.Array, bool, list] | None:
    """`encoder_program` of layers, for this number of rows; None where they have to be called."""
    if not len(layers) or not is_in_scope(stack) or stack.training or not is_inference(stack):
        return None
    is_float = is_for_kernels(layers[0].fc1)
    if not is_float and not is_plain_int8(layers[0].fc1) or rows > most_rows(stack.config.d_model, is_float):
        return None
    return made_once(stack, lambda: encoder_program(stack, layers, norm), *layers)


def run_in_batches(operations: ctypes.Array, states: torch.Tensor, inner: int, mask: torch.Tensor, limits) -> None:
    """As `run_on_rows`, over states (B, S, D) of a few sources at a time, without the padding at their end."""
    lengths, first = mask.sum(dim=1).tolist(), 0
    while first < len(states):
        end = min(first + max(1, CACHED_ROWS // max(1, lengths[first])), len(states))
        longest = max(lengths[first:end])
        part = states[first:end, :longest]
        rows, first = part.reshape(-1, part.shape[2]), end
        seen, reach = (None if one is None else one[end - len(part) : end, :longest] for one in (mask, limits))
        run_on_rows(operations, rows, inner, places=longest, mask=seen, limits=reach)
        if rows.data_ptr() != part.data_ptr():
            part.copy_(rows.view_as(part))


def run_on_rows(
    operations: ctypes.Array, states: torch.Tensor, inner: int, *layers, places: int = 1, mask=None, limits=None
) -> None:
    """Run operations over states (R, D) of sources of `places` tokens, with their mask (S, L); `layers` as `buffers`.

    `limits` (S, L, 2): of the visible ones, the first one that a token reads and the one after the last.
    """
    rows, size = states.shape
    integers = memory(rows + -rows % BLOCK, max(2 * size, inner), dtype=torch.int8)
    scratch = memory(rows * (8 * size + inner))
    addresses = buffers(states, scratch, states, *layers)
    step = Step(ctypes.addressof(addresses), rows, shared=places, places=places, integers=integers.data_ptr())
    give_scratch(step, rows, places)
    seen, counts = seen_places(mask)
    if seen is not None:
        step.seen, step.counts = seen.data_ptr(), counts.data_ptr()
    if limits is not None:
        ranges = nn.functional.pad(limits.reshape(rows, 2).int(), (1, 0)).contiguous()  # (R, 3)
        step.ranges = ranges.data_ptr()
    run(operations, step)


def seen_places(mask: torch.Tensor | None) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """The visible places of a mask (S, L), first in (S, L) int32, and their number (S,) int32; None if all are."""
    if mask is None or (mask := mask.bool().contiguous()).all():
        return None, None
    return mask.sort(dim=1, descending=True, stable=True).indices.int(), mask.sum(dim=1).int()
