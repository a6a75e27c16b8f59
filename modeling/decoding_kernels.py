"""The step of decoding on the compiled primitives, see `decoding_step.py`: weights are int8, or fp32 in a scope.

What the primitives do not know, such as a mechanism's own block or another activation than ReLU, is done by torch in
between. Beams do not move what was written: a table says in which row the state of an earlier token lies.
"""

import ctypes
from collections.abc import Sequence
from itertools import chain, zip_longest

import torch

from .cache import source_states as kept_states
from .cpu_inference import is_for_kernels
from .cpu_kernels import (
    BLOCK,
    LIMITS,
    Limits,
    Search,
    Step,
    are_used,
    give_scratch,
    lone_threads,
    memory,
    most_rows,
    run,
    search,
)
from .decoding_step import DecodingStep, has_list, is_backbone, is_recurrence, may_step
from .encoder_kernels import MOST_PLACES, run_on_rows, seen_places
from .fast_search import best_token
from .int8_linear import whole_blocks
from .kept_work import kept_work
from .kernel_primitives import are_current, held
from .kernel_programs import DecoderProgram, buffers, decoder_program, with_output
from .search import SearchSettings

MOST_SOURCES = 64  # over the number of threads, where torch has several and the kernels one
ROOM = 64  # tokens that there is room for at first, besides the prompt


def decoding_step(state) -> DecodingStep | None:
    """What runs the steps behind the prompt that a `DecoderState` has read; None where `forward` has to be called."""
    if not may_step(state):
        return None
    is_known, program = plan_of(state.model)
    if not is_known:
        return None
    if program is None or not kernels_fit(state):
        return DecodingStep(state)
    packed = held(program.prepacked)
    if packed is None:
        return DecodingStep(state)
    limits = state.model.model.step_limits(state.encoder_outputs) if program.has_limits else None
    has_ends = limits is None or are_ends(limits.borders, state.inputs.get("attention_mask"), state.encoder_outputs[0])
    return KernelStep(state, program, limits, packed) if has_ends else DecodingStep(state)


def are_ends(borders: torch.Tensor | None, mask: torch.Tensor | None, source: torch.Tensor) -> bool:
    """Whether borders (S, N + 1) end with the tokens of a source (S, L, D) that a mask shows: others may be hidden."""
    if borders is None:
        return True
    counts = borders.new_full((len(source),), source.shape[1]) if mask is None else mask.sum(dim=1)
    return torch.equal(borders[:, -1], counts.to(borders))


def plan_of(model) -> tuple[bool, DecoderProgram | None]:
    """Whether the blocks of a model's decoder are known, and their program, where kernels and weights are for one."""
    decoder, has_kernels = model.get_decoder(), are_used() and is_backbone(model, "logits_of")

    def plan() -> tuple[bool, DecoderProgram | None]:
        is_known = has_list(decoder)
        return is_known, decoder_program(model) if is_known and has_kernels else None

    fields = ("position_type", "position_offset", "restarts_positions", "position", "window")  # that programs hold
    is_float = is_for_kernels(model.lm_head)
    given = (has_kernels, is_float, decoder.step_inputs, type(model), type(model.model))
    given += tuple(getattr(decoder.config, name, None) for name in fields)
    return kept_work(
        plan, given, decoder, model.lm_head, holds=lambda found: found[1] is None or are_current(found[1].prepacked)
    )


def kernels_fit(state) -> bool:
    """Whether sources and masks of a search are such as the kernels read."""
    source, mask = state.encoder_outputs[0], state.mask
    head, bias = state.output()
    return (
        len(bias) == head.out_features
        and (lone_threads() == 1 or len(source) <= MOST_SOURCES // lone_threads())
        and source.is_cpu
        and source.dtype is torch.float32
        and (mask is None or is_left_padded(mask))
    )


def is_left_padded(mask: torch.Tensor) -> bool:
    """Whether all padding of a mask (R, T) stands in front, and every row has a token."""
    return bool((mask[:, -1] == 1).all() and (mask[:, 1:] >= mask[:, :-1]).all())


class KernelStep(DecodingStep):
    """As `DecodingStep`, by a program, whose buffers and tables it has; `limits`: the `StepLimits` of the model."""

    def __init__(self, state, program: DecoderProgram, limits=None, packed: Sequence = ()):
        super().__init__(state)
        self.packed = packed  # weights, as long as they are read
        self.is_prompt = state.is_prompt  # whether nothing of the target was read yet
        self.program, self.parts, self.step = program, program.parts, Step()
        self.words, self.is_absent = state.words, state.is_absent
        if self.head is not self.model.lm_head:
            self.parts, *others = with_output(self.parts, self.head)
            self.packed = [*packed, *others]
        stores, writers = self.cache.self_attention_cache.layers, {layer.layer_idx for layer, _ in program.writers}
        self.called = [store for number, store in enumerate(stores) if number not in writers]  # that torch writes to
        self.embeds = (self.embeds or program.has_limits) and program.embedding > 0
        self.is_whole = self.embeds and len(self.parts) == 1
        self.goes_on = self.is_whole and self.model.best_token is best_token
        self.search: Search | None = None  # for the rows that there are
        if self.decoder.config.position_type != "learned":
            self.encodings = program.encodings
        self.history: torch.Tensor | None = None  # (writers, T, R, 2D): keys and values of what was written
        self.read: list[torch.Tensor] | None = None  # of each reader (S, L, 2D): those of the source or context
        self.limits: Limits | None = None  # and the borders whose address they have
        if limits is not None:
            self.borders = None if limits.borders is None else limits.borders.int().contiguous()
            separator = -1 if limits.separator is None else limits.separator
            self.limits = Limits(LIMITS.index(limits.kind), separator, limits.width, ratio=limits.ratio)
            if self.borders is not None:
                self.limits.count, self.limits.borders = self.borders.shape[1] - 1, self.borders.data_ptr()

    def reads_prompt(self, ids: torch.Tensor) -> bool:
        """Short ones behind short sources, too; those that `forward` refuses are left to it."""
        (rows, length), size = ids.shape, len(self.decoder.embed_tokens.weight)
        if rows != len(self.source) or int(ids.min()) < 0 or int(ids.max()) >= size:
            return False
        is_short = max(length, self.source.shape[1]) <= MOST_PLACES
        few = rows * length <= most_rows(self.model.config.d_model, is_for_kernels(self.model.lm_head))
        return super().reads_prompt(ids) or self.is_whole and is_short and few

    def build(self, ids: torch.Tensor, mask: torch.Tensor | None) -> None:
        """Buffers for the targets of ids (B, T) and their mask, and what torch runs."""
        rows, self.length = len(ids), 0 if self.is_prompt else ids.shape[1] - 1
        self.rows, self.sources, self.is_prompt = rows, len(self.source), False
        if len(self.parts) > 1:
            self.prepare(rows)
        elif self.is_whole and not (is_backbone(self.decoder, "source") and self.decoder.step_inputs != "constant"):
            self.inputs_of(ids, mask, ids.shape[1] - 1)  # which finds the source and the layer inputs
        self.operations = [part if isinstance(part, ctypes.Array) else self.operation(*part) for part in self.parts]
        self.history = self.written_so_far() if self.history is None else self.history
        self.read = self.read_source() if self.read is None else self.read
        self.scores, self.bias = memory(rows, len(self.output_bias)), whole_blocks(self.output_bias.float())
        self.first = memory(rows, dtype=torch.int32).zero_() if mask is None else mask.int().argmax(dim=1).int()
        self.padding = int(self.first.min())  # tokens in front of all targets
        self.ancestors = torch.arange(rows, dtype=torch.int32, device="cpu").repeat(self.length, 1)  # (T, B)
        self.search = None
        self.make_room(ids.shape[1])

    def make_room(self, tokens: int) -> None:
        """Room for so many tokens and some more, with what was written, where there is not enough."""
        before = len(self.ancestors)
        if tokens <= before:
            return
        room = tokens + max(tokens, ROOM)
        self.ancestors = with_room(self.ancestors, room, dim=0)
        self.ancestors[before:] = torch.arange(self.rows, dtype=torch.int32, device="cpu")
        self.history = with_room(self.history, room, dim=1)
        self.make_rows(1)

    def make_rows(self, fresh: int) -> None:
        """States and scratch for so many new tokens of every target; the addresses of all that a step reads."""
        config, step, rows = self.model.config, self.step, self.rows * fresh
        size, inner = config.d_model, config.decoder_ffn_dim
        self.states, self.tokens = memory(rows, size), memory(rows, dtype=torch.long)
        self.scratch = memory(rows * (8 * size + inner))
        self.integers = memory(rows + -rows % BLOCK, max(2 * size, inner), dtype=torch.int8)
        give_scratch(step, rows, max(len(self.ancestors), self.source.shape[1], step.context_places))
        layers = chain(*zip_longest(self.history, self.read, fillvalue=self.scores))
        self.buffers = buffers(self.states, self.scratch, self.scores, *layers)
        self.ranges = memory(rows, 3, dtype=torch.int32)
        if self.limits is not None:
            step.limits, step.ranges = ctypes.addressof(self.limits), self.ranges.data_ptr()
        for name in ("ancestors", "first", "tokens", "bias", "integers"):
            setattr(step, name, getattr(self, name).data_ptr())
        step.buffers, step.places = ctypes.addressof(self.buffers), self.source.shape[1]
        step.rows, step.fresh, step.shared = rows, fresh, rows // self.sources

    def encode(self, length: int) -> None:
        """Encodings of positions for targets of so many tokens, padding included."""
        self.encoding(length - 1 - self.padding, torch.float32)
        self.step.encodings = self.encodings.data_ptr()

    def encoding(self, positions: int | torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        found = super().encoding(positions, dtype)
        if self.encodings.shape[1] == 1:  # none, of mechanisms with positions of their own
            self.encodings = self.encodings.expand(-1, self.source.shape[2]).contiguous()
        self.program.encodings = self.encodings  # of a search with others, the same or fewer
        return found

    def logits(self, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        if not self.embeds or not self.is_whole and (mask is not None or not self.operations):
            return super().logits(ids, mask)
        if not self.operations:
            self.build(ids, mask)
        self.make_room(ids.shape[1])
        self.encode(ids.shape[1])
        self.ids = ids.contiguous()
        self.step.ids, self.step.room = self.ids.data_ptr(), ids.shape[1]
        if ids.shape[1] > self.length + 1:
            return self.read_prompt(ids)
        self.tokens.copy_(ids[:, -1])
        return self.run(None)

    def read_prompt(self, ids: torch.Tensor) -> torch.Tensor:
        """Ids (B, T), of which none was read, in one pass -> (B, N)."""
        (operations,), self.length = self.operations, ids.shape[1]
        self.make_rows(self.length)
        self.tokens.copy_(ids.flatten())
        self.step.length, output = self.length, len(operations) - 1
        run(operations, self.step, 0, output)
        last = self.states.view(*ids.shape, -1)[:, -1]  # (B, D)
        self.make_rows(1)
        self.states.copy_(last)
        run(operations, self.step, output)
        return self.scores

    def go_on(self, ids: torch.Tensor, length: int, settings: SearchSettings, ended, sums, mask):
        """As `DecoderState.read_on`."""
        if not self.operations:
            self.build(ids[:, :length], mask)
        if self.search is None or self.search.room != ids.shape[1]:
            self.search = self.new_search(ids, settings)
        self.make_room(length)
        self.encode(length)
        found, encoded = self.search, len(self.encodings) + self.padding
        found.ids, found.length = ids.data_ptr(), length
        found.most = min(settings.plain_until - 1, ids.shape[1] - 1, len(self.ancestors), encoded)
        found.ended, found.sums = (None if tensor is None else tensor.data_ptr() for tensor in (ended, sums))
        search(self.operations[0], self.step, found)
        self.length = found.length
        return self.length, self.scores

    def new_search(self, ids: torch.Tensor, settings: SearchSettings) -> Search:
        """What the steps of a search over ids (R, L) share, besides these."""
        (rows, room), beams, scored = ids.shape, settings.num_beams, len(self.output_bias)
        self.ends = torch.tensor(settings.eos_token_id, dtype=torch.long, device="cpu")
        self.copies = torch.empty_like(ids)
        self.log_probs = memory(rows if beams > 1 else 0, scored)
        self.values = memory(rows // beams, beams + 1)
        self.indices = memory(*self.values.shape, dtype=torch.long)
        scratch = {
            name: getattr(self, name).data_ptr() for name in ("ends", "log_probs", "values", "indices", "copies")
        }
        if self.words is not None:
            scratch |= {"words": self.words.data_ptr(), "is_absent": self.is_absent.data_ptr()}
        sizes = {"room": room, "end_count": len(self.ends), "beams": beams, "scored": scored}
        return Search(pad=settings.pad_token_id, **sizes, **scratch)

    def run(self, hidden_states: torch.Tensor | None) -> torch.Tensor:
        """As in `DecodingStep`; without states they are those of the step's tokens."""
        first, self.length = 0, self.length + 1
        self.make_room(self.length)
        if hidden_states is not None:
            self.states.copy_(hidden_states)
            first = self.program.embedding
        self.step.length = self.length
        for operation in self.operations:
            if isinstance(operation, ctypes.Array):
                run(operation, self.step, first)
            else:
                self.states.copy_(operation(self.states))
            first = 0
        return self.scores

    def reorder(self, rows: torch.Tensor) -> None:
        if self.history is None:
            super().reorder(rows)
            return
        if self.operations:  # else rows were just repeated, and are equal
            self.ancestors[: self.length] = self.ancestors[: self.length].index_select(1, rows)
        for layer in self.called:
            layer.reorder_cache(rows)

    def repeat(self, times: int) -> None:
        if self.history is None:
            super().repeat(times)
            return
        self.history = self.history[:, : self.length].repeat_interleave(times, dim=2)
        for layer in self.called:
            layer.batch_repeat_interleave(times)
        self.operations = []

    # What was there before the first step

    def written_so_far(self) -> torch.Tensor:
        """What the layers of the program have written, out of the cache: (layers, T, R, 2D).

        Of a recurrent one the last state alone, which is all that it reads.
        """
        stores = self.cache.self_attention_cache.layers
        written = memory(len(self.program.writers), self.length, self.rows, 2 * self.model.config.d_model)
        for place, (layer, attention) in zip(written, self.program.writers if self.length else ()):
            store = stores[layer.layer_idx]
            if is_recurrence(attention):
                place[-1, :, : store.keys.shape[1]] = store.keys
                continue
            heads = attention.q_proj.out_features // attention.head_dim
            first = 0 if attention is layer.self_attn else heads  # of two, whose heads stand side by side
            states = [states[:, first : first + heads] for states in (store.keys, store.values)]
            states = [
                states.permute(2, 0, 1, 3).flatten(2) for states in states
            ]  # (T, R, D) each, of a window the last
            torch.cat(states, dim=2, out=place[-len(states[0]) :])
        return written

    def read_source(self) -> list[torch.Tensor]:
        """Keys and values that the readers of the program attend to, (S, L, 2D) each, and which of them are seen.

        Out of the cache, where a prompt was read, which is not filled here but with those of context.
        """
        (sources, length, size), readers = self.source.shape, self.program.readers
        self.seen, self.counts = seen_places(self.source_padding)
        if self.seen is not None:
            self.step.seen, self.step.counts = self.seen.data_ptr(), self.counts.data_ptr()
        context = self.context_states({inputs for _, inputs in readers if inputs is not None})
        read = [memory(*context.get(inputs, self.source).shape[:2], 2 * size) for _, inputs in readers]
        attentions, rows = [attention for attention, inputs in readers if inputs is None], sources * length
        is_run = rows <= most_rows(size, is_for_kernels(self.model.lm_head)) and not any(
            kept_states(self.cache, *attention.place) for attention in attentions
        )
        if is_run:
            run_on_rows(
                self.program.sources, self.source.reshape(rows, size).contiguous(), size, *chain(*zip(read, read))
            )
        for place, (attention, inputs) in zip(read, readers):
            if inputs is None and is_run:
                continue
            states = context.get(inputs, self.source)
            key_value = attention.source_projections(states, self.cache, self.rows)  # (S, H, L, Dh) each
            torch.cat([part.transpose(1, 2).flatten(2).float() for part in key_value], dim=2, out=place)
        return read

    def context_states(self, names: set[str]) -> dict[str, torch.Tensor]:
        """Further sources by the names of their layer inputs, (S, N, D) of one N; which are seen becomes the step's."""
        states, seen = {}, None
        for name in names:
            given, prefix = self.layer_inputs.get(name), name.removesuffix("states")
            if given is None:  # no source has any
                given, seen = self.source[:, :1], self.source.new_zeros(self.sources, 1)
            mask, absent, present = (self.layer_inputs.get(f"{prefix}{x}") for x in ("mask", "absent", "present"))
            if mask is not None:  # as attention takes it, (S, 1, T, N)
                seen = mask[:, 0, 0] if mask.dtype is torch.bool else mask[:, 0, 0] == 0
            given = given.flatten(0, -3)  # of a joined context (S, 1, N, D)
            there = present if absent is None else ~absent.view(self.sources, -1)[:, :1]  # (S, 1)
            if there is not None:
                seen = there.expand(given.shape[:2]) if seen is None else seen & there
            states[name], self.step.context_places = given, given.shape[1]
        self.context_seen, self.context_counts = seen_places(seen)
        if self.context_seen is not None:
            self.step.context_seen = self.context_seen.data_ptr()
            self.step.context_counts = self.context_counts.data_ptr()
        return states


def with_room(states: torch.Tensor, tokens: int, dim: int) -> torch.Tensor:
    """States of some tokens, which are a dimension, at the beginning of a tensor for more."""
    shape = list(states.shape)
    count, shape[dim] = shape[dim], tokens
    larger = states.new_empty(shape)
    larger.narrow(dim, 0, count).copy_(states)
    return larger
