"""The steps of decoding on the compiled primitives: weights are int8, or fp32 in a scope.

Torch computes what the primitives lack, such as a mechanism's own block or another activation than ReLU. Beams do not
move states: a table has the row of each earlier token's state. Results are
those of `forward`, up to rounding.
"""

import ctypes
from itertools import chain, zip_longest

import torch
from torch import nn

from hf_docmt.engine.cpu_kernels import (
    BLOCK,
    LIMITS,
    RECURRENCE,
    SELF_ATTENTION,
    Limits,
    Search,
    Step,
    are_used,
    lone_threads,
    most_rows,
    run,
    search,
)
from hf_docmt.engine.encoder import MOST_PLACES, run_on_rows, seen_places
from hf_docmt.engine.int8_linear import whole_blocks
from hf_docmt.engine.known_layers import (
    Block,
    embeds_tokens,
    is_known_decoder,
    is_recurrence,
    is_unchanged,
    makes_plain_logits,
    step_inputs,
    step_limits,
)
from hf_docmt.engine.programs import DecoderProgram, buffers, decoder_program, with_output
from hf_docmt.engine.scope import is_for_kernels, is_in_scope, is_inference, made_once, packed_products
from hf_docmt.engine.tensor_kernels import give_scratch, memory
from hf_docmt.modeling.layers import source_states as kept_states
from hf_docmt.modeling.modeling_docmt import Decoder

MOST_SOURCES = 64  # over the number of threads, where torch has several and the kernels one
ROOM = 64  # tokens with room at first, in addition to the prompt
TOTALS = ("totals", "total_copies", "found_totals")  # of `Search`
POSITIONS = 64  # encodings that are computed at once
MOST_WAITING, FEW_WAITING = 2**14, 2**11  # tokens of sources that are read when each begins, or all before
STEPS = 16  # of a search between two calls of what is called in between


def decoding_step(state) -> "DecodingStep | None":
    """The runner of steps after the prompt that a `DecoderState` has read; None if `forward` has to run them."""
    model = state.model
    is_known = state.cache is not None and all(is_unchanged(one, type(one)) for one in (model, model.model))
    if not is_known or not are_used() or not is_in_scope(model) or not is_inference(model.get_decoder()):
        return None
    program = made_once(model, lambda: known_program(model))
    if program is None or not kernels_fit(state):
        return None
    limits = step_limits(model, state.encoder_outputs) if program.has_limits else None
    has_ends = limits is None or are_ends(limits.borders, state.inputs.get("attention_mask"), state.encoder_outputs[0])
    return DecodingStep(state, program, limits) if has_ends else None


def waiting_tokens(model) -> int:
    """The most tokens of sources, padding included, that a search for a model in a scope takes together; 0: none wait.

    Where limits need all sources, attention reads the states of all of them before.
    """
    decoder = model.get_decoder()
    is_known = are_used() and is_in_scope(model) and lone_threads() == 1 and model.device.type == "cpu"
    if not is_known or not is_unchanged(model, type(model)) or step_inputs(decoder) not in ("none", "limits"):
        return 0
    program = made_once(model, lambda: known_program(model))
    fits = program is not None and len(program.parts) == 1 and program.embedding
    if not fits or type(decoder).source is not Decoder.source or len(program.sources) != len(program.readers):
        return 0
    return FEW_WAITING if program.has_limits else MOST_WAITING


def known_program(model) -> DecoderProgram | None:
    """The program of a model's decoder, where its blocks are known, and kernels and weights are for one."""
    return decoder_program(model) if makes_plain_logits(model) and is_known_decoder(model.get_decoder()) else None


def are_ends(borders: torch.Tensor | None, mask: torch.Tensor | None, source: torch.Tensor) -> bool:
    """Whether borders (S, N + 1) end with the tokens of a source (S, L, D) that a mask shows: others may be hidden."""
    if borders is None:
        return True
    counts = borders.new_full((len(source),), source.shape[1]) if mask is None else mask.sum(dim=1)
    return torch.equal(borders[:, -1], counts.to(borders))


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
    """Whether all padding of a mask (R, T) is on the left, and every row has a token."""
    return bool((mask[:, -1] == 1).all() and (mask[:, 1:] >= mask[:, :-1]).all())


class DecodingStep:
    """Logits of what follows one new token per row, of the words that a `DecoderState` scores, by a program.

    It has the buffers and tables of the program; `limits`: the `StepLimits` of the model.
    """

    def __init__(self, state, program: DecoderProgram, limits=None):
        self.model, self.decoder, self.program = state.model, state.model.get_decoder(), program
        self.head, self.output_bias = state.output()
        stores = state.cache.self_attention_cache
        missing = len(self.decoder.layers) - len(stores.layers)
        stores.layers += [stores.layer_class_to_replicate() for _ in range(missing)]  # as its first use would
        self.take(state)
        self.source_mask = self.self_mask = None  # as attention takes them
        self.layer_inputs: dict[str, torch.Tensor] = {}
        self.encodings = torch.empty(0)  # (positions, D) from the first one on
        self.is_prompt = state.is_prompt  # whether no target token was read yet
        self.parts, self.step, self.words = program.parts, Step(), state.words
        if self.head is not self.model.lm_head:
            self.parts, self.kept = with_output(self.parts, self.head)
        inputs = step_inputs(self.decoder)
        self.has_constant_inputs = inputs == "constant"
        embeds = embeds_tokens(self.decoder) and inputs in ("none", "constant")
        self.embeds = (embeds or program.has_limits) and program.embedding > 0
        self.is_whole = self.embeds and len(self.parts) == 1
        if self.decoder.config.position_type != "learned":
            self.encodings = program.encodings
        self.history: torch.Tensor | None = None  # (writers, W, T, 2D): keys and values of what was written
        self.read: list[torch.Tensor] | None = None  # of each reader (S, L, 2D): those of the source or context
        self.at_once = state.at_once  # the most sources of a step, where others wait
        self.reads_later = self.at_once is not None and limits is None  # each source when it begins
        self.prefix = 0  # the most tokens of a prompt that a search reads in one pass
        self.limits: Limits | None = None  # and the borders whose address they have
        if limits is not None:
            self.borders = None if limits.borders is None else limits.borders.int().contiguous()
            separator = -1 if limits.separator is None else limits.separator
            self.limits = Limits(LIMITS.index(limits.kind), separator, limits.width, ratio=limits.ratio)
            if self.borders is not None:
                self.limits.count, self.limits.borders = self.borders.shape[1] - 1, self.borders.data_ptr()

    def take(self, state) -> None:
        """Take over the sources and the cache of a `DecoderState`; what belongs to rows is built again."""
        self.cache, self.encoder_outputs, self.inputs = state.cache, state.encoder_outputs, dict(state.inputs)
        self.source, self.source_padding = self.encoder_outputs[0], self.inputs.pop("attention_mask", None)
        self.encoded, self.is_absent = (self.source, self.source_padding), state.is_absent
        stores, writers = self.cache.self_attention_cache.layers, {layer.layer_idx for layer, _ in self.program.writers}
        self.called = [store for number, store in enumerate(stores) if number not in writers]  # that torch writes to
        self.operations: list[ctypes.Array | Block] = []

    def keep(self, state, sources: torch.Tensor, targets: torch.Tensor) -> None:
        """Go on with these sources (S,) and targets (R,); what was written and read stays where it is."""
        self.take(state)
        if self.history is not None:
            self.slots = self.slots[targets]
        elif self.limits is not None and self.borders is not None:
            self.borders = self.borders[sources]
            self.limits.borders = self.borders.data_ptr()

    def reads_prompt(self, ids: torch.Tensor) -> bool:
        """Whether it may read prompts (B, T) of which nothing was read: one token, more where primitives run all of it.

        These are short, behind short sources, unless sources wait. Those that `forward` refuses are left to it.
        """
        (rows, length), table = ids.shape, self.decoder.embed_tokens
        if rows != len(self.source) or not self.embeds:
            return rows == len(self.source) and length == 1
        if int(ids.min()) < 0 or int(ids.max()) >= len(table.weight):
            return False
        most = min(MOST_PLACES, most_rows(self.model.config.d_model, is_for_kernels(self.model.lm_head)))
        is_short = self.at_once is not None or max(length, self.source.shape[1]) <= most
        return length == 1 or self.is_whole and is_short

    def build(self, ids: torch.Tensor, mask: torch.Tensor | None) -> None:
        """Buffers for the targets of ids (B, T) and their mask, and what torch runs."""
        rows, self.length = len(ids), 0 if self.is_prompt else ids.shape[1] - 1
        self.rows, self.sources, self.is_prompt = rows, self.at_once or len(self.source), False
        if len(self.parts) > 1:
            self.source_mask = self.decoder.source_mask(self.source, self.source_padding, (rows, 1))
        elif self.is_whole and (self.has_constant_inputs or type(self.decoder).source is not Decoder.source):
            self.inputs_of(ids, mask, ids.shape[1] - 1)  # which finds the source and the layer inputs
        self.operations = self.parts
        if self.history is None:
            self.history = self.written_so_far()
            self.number_slots(rows)
        if self.read is None:
            self.read = self.room_for_sources() if self.reads_later else self.read_source(self.find_seen())
        self.scores, self.bias = memory(rows, len(self.output_bias)), whole_blocks(self.output_bias.float())
        self.first, self.padding = torch.zeros_like(self.origins), 0  # (W,); tokens in front of all targets
        if mask is not None:
            self.first[self.slots] = first = mask.int().argmax(dim=1).int()
            self.padding = int(first.min())
        if ids.shape[1] > len(self.ancestors):
            self.make_room(ids.shape[1])
        else:
            self.make_rows()

    def number_slots(self, count: int) -> None:
        """Give each target a slot of W; `origins` (W,) are their sources."""
        self.slots = torch.arange(count, dtype=torch.int32, device="cpu")  # (R,)
        self.origins, self.lengths = self.slots // (count // self.sources), memory(count, dtype=torch.long)
        self.ancestors = self.slots.repeat(self.length, 1)  # (T, W)

    def make_room(self, tokens: int) -> None:
        """Make room for this number of tokens and some more if needed, and keep the old states."""
        before = len(self.ancestors)
        if tokens <= before:
            return
        room = tokens + max(tokens, ROOM)
        self.ancestors = with_room(self.ancestors, room, dim=0)
        self.ancestors[before:] = torch.arange(self.ancestors.shape[1], device="cpu")
        self.history = with_room(self.history, room, dim=2)
        self.make_rows()

    def make_rows(self) -> None:
        """States and scratch for a new token of every target, or a prefix; the addresses of all inputs of a step."""
        config, step, rows = self.model.config, self.step, max(self.rows, self.prefix)
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
        step.written, step.kept = self.history.shape[1:3]
        for name in ("ancestors", "first", "tokens", "bias", "integers", "slots", "origins", "lengths"):
            setattr(step, name, getattr(self, name).data_ptr())
        step.buffers, step.places = ctypes.addressof(self.buffers), self.source.shape[1]
        step.rows, step.fresh = self.rows, 1

    def encode(self, length: int) -> None:
        """Encodings of positions for targets of this length, padding included."""
        self.encoding(length - 1 - self.padding)
        self.step.encodings = self.encodings.data_ptr()

    def encoding(self, last: int) -> None:
        """Encodings of positions up to the last one; ValueError where the table of learned ones ends."""
        if last >= len(self.encodings):
            decoder, end = self.decoder, last + POSITIONS
            decoder.positions(torch.empty(1, 1), None, last)
            if decoder.config.position_type == "learned":
                end = min(end, decoder.config.max_position_embeddings)
            every = torch.arange(end, device=self.source.device)[None]
            self.encodings = decoder.position_encoding(every)[0].float()
        if self.encodings.shape[1] == 1:  # none, of mechanisms with positions of their own
            self.encodings = self.encodings.expand(-1, self.source.shape[2]).contiguous()
        self.program.encodings = self.encodings  # of a search with others, the same or fewer

    def logits(self, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """All target ids (R, T) so far, the last one new, and their mask -> (R, N)."""
        if not self.embeds or not self.is_whole and (mask is not None or not self.operations):
            hidden_states = self.inputs_of(ids, mask, ids.shape[1] - 1)[:, 0]
            if not self.operations:
                self.build(ids, mask)
            return self.run(hidden_states)
        count, new = ids.shape[1], ids.shape[1] - 1 if self.is_prompt else 0
        if not self.operations:
            self.prefix = len(ids) * new
            self.build(ids, mask)
        self.make_room(count)
        self.encode(count)
        self.ids = ids.new_zeros(len(self.lengths), count).index_copy_(0, self.slots.long(), ids)
        self.step.ids, self.step.room = self.ids.data_ptr(), count
        if new:
            self.read_prefix(ids[:, :-1])
        self.tokens[: self.rows].copy_(ids[:, -1])
        return self.run(None)

    def read_prefix(self, ids: torch.Tensor) -> None:
        """Read the first target ids (R, T) in one pass, up to the last operation that later tokens read from."""
        step, (operations,) = self.step, self.operations
        kinds = [operation.kind in (SELF_ATTENTION, RECURRENCE) for operation in operations]
        self.length = step.fresh = ids.shape[1]
        step.rows = ids.numel()
        self.tokens[: step.rows].copy_(ids.flatten())
        self.lengths.fill_(self.length)
        run(operations, step, end=len(kinds) - kinds[::-1].index(True))
        step.rows, step.fresh = self.rows, 1

    def search(self, prompt: torch.Tensor, settings, mask: torch.Tensor | None, logits: torch.Tensor | None):
        """Translations of prompts (B, T) that were not read, or were and gave logits (B, N); see `SearchSettings`.

        Returns ids (B * returned, longest), sums up to each (or None), and the open sources, whose ids are undefined:
        their beams tie, or their scores are NaN.
        """
        beams, (sources, width) = settings.num_beams, prompt.shape
        targets, is_read = (self.at_once or sources) * beams, logits is not None
        places = torch.arange(width, device="cpu")
        padding = places.new_zeros(sources, 1) if mask is None or is_read else width - mask.sum(dim=1, keepdim=True)
        first = prompt.gather(1, (places + padding) % width)  # without the padding on the left
        self.prefix = 0 if is_read else width - int(padding.min()) - 1
        rows = nn.functional.pad(prompt.repeat_interleave(beams, dim=0)[:targets], (0, is_read))
        self.build(rows, mask if is_read else None)
        if is_read:
            self.scores[:sources] = logits
        tables = self.search_tables(first, width - padding[:, 0], settings.limits(prompt) - padding[:, 0], settings)
        found, growing = Search(is_read=is_read), {"ids", "copies", "found", *TOTALS} & tables.keys()
        sizes = {"sources": sources, "most": targets // beams, "prompt": width, "beams": beams}
        sizes |= {"end_count": len(tables["ends"]), "penalty": settings.length_penalty, "scored": self.scores.shape[1]}
        sizes |= {"is_early": settings.early_stopping is True, "kept": tables["values"].shape[1]}
        sizes["steps"] = STEPS if settings.callbacks else 2**62
        if self.reads_later:
            self.read_one_by_one(found)
        needed, most = width + 1, int(tables["limits"].max())
        while needed:
            self.make_room(needed)
            self.encode(needed - 1)
            sizes["room"] = max(width, min(len(self.ancestors), len(self.encodings) + self.padding + 1, most))
            tables |= {name: with_room(tables[name], sizes["room"], dim=tables[name].dim() - 1) for name in growing}
            for name, value in (sizes | {name: table.data_ptr() for name, table in tables.items()}).items():
                setattr(found, name, value)
            while (needed := search(self.operations[0], self.step, found)) < 0:
                found.steps = STEPS
                for callback in settings.callbacks:
                    callback(prompt, None)
        lengths = tables["found_lengths"][:, : settings.num_return_sequences] + padding
        places = (torch.arange(max(width, int(lengths.max())), device="cpu") - padding)[:, None]  # (S, 1, L)
        is_behind, places = places >= (lengths - padding)[..., None], places.clamp(0, sizes["room"] - 1)
        places, ends = places.expand(*lengths.shape, -1), {"found": settings.padding, "found_totals": 0}
        ids, sums = (
            tables[name].gather(2, places).masked_fill(is_behind, end).flatten(0, 1) if name in tables else None
            for name, end in ends.items()
        )
        ids[:, :width] = prompt.repeat_interleave(lengths.shape[1], dim=0)
        return ids, sums, tables["is_open"].nonzero()[:, 0]

    def search_tables(self, prompt: torch.Tensor, given, limits, settings) -> dict[str, torch.Tensor]:
        """Tables of `Search` by their names, with room for prompts (B, T) of `given` tokens each."""
        (targets, scored), (sources, width), beams = self.scores.shape, prompt.shape, settings.num_beams
        kept = 1 if beams == 1 else settings.candidates + 1
        shapes = {"ids": (targets, width), "copies": (beams, width), "indices": (targets // beams, kept)}
        shapes |= {"found": (sources, beams, width), "found_lengths": (sources, beams), "current": (targets // beams,)}
        tables = {name: memory(*shape, dtype=torch.long) for name, shape in shapes.items()}
        shapes = {"log_probs": (targets if beams > 1 else 0, scored), "sums": (targets,)}
        shapes |= {"values": (targets // beams, kept), "found_scores": (sources, beams)}
        totals = (targets, width), (beams, width), (sources, beams, width)
        shapes |= dict(zip(TOTALS, totals)) if settings.has_sums else {}
        tables |= {name: memory(*shape) for name, shape in shapes.items()}
        tables |= {name: listed for name in ("words", "is_absent") if (listed := getattr(self, name)) is not None}
        ends = torch.tensor(settings.eos_token_id, dtype=torch.long, device="cpu")
        tables |= {"ends": ends, "is_open": torch.zeros(sources, dtype=torch.bool, device="cpu")}
        return tables | {"prompts": prompt.contiguous(), "given": given.contiguous(), "limits": limits.contiguous()}

    # Sources that wait

    def room_for_sources(self) -> list[torch.Tensor]:
        """Empty keys and values as in `read_source`, for the number of sources that are read at once."""
        length, size = self.source.shape[1:]
        self.counts = memory(self.at_once, dtype=torch.int32)
        self.step.counts = self.counts.data_ptr()
        return [memory(self.at_once, length, 2 * size) for _ in self.program.readers]

    def read_one_by_one(self, found: Search) -> None:
        """Let a search read each source when it begins."""
        count, length, size = self.source.shape
        self.states_of_sources, padding = self.source.contiguous(), self.source_padding
        self.visible = torch.full((count,), length, device="cpu").int() if padding is None else padding.sum(dim=1).int()
        self.reading_buffers = (ctypes.c_void_p * len(self.buffers))()
        self.reading_integers = memory(length + -length % BLOCK, size, dtype=torch.int8)
        self.reading = Step(ctypes.addressof(self.reading_buffers), integers=self.reading_integers.data_ptr())
        give_scratch(self.reading, length, length)
        found.readers, found.reader_count = ctypes.addressof(self.program.sources), len(self.program.sources)
        found.reading, found.states = ctypes.addressof(self.reading), self.states_of_sources.data_ptr()
        found.visible = self.visible.data_ptr()

    def run(self, hidden_states: torch.Tensor | None) -> torch.Tensor:
        """States (R, D) of the new tokens, without any those of the step's tokens -> (R, N)."""
        first, self.length = 0, self.length + 1
        self.make_room(self.length)
        if hidden_states is not None:
            self.states.copy_(hidden_states)
            first = self.program.embedding
        self.lengths.fill_(self.length)
        for operation in self.operations:
            if isinstance(operation, ctypes.Array):
                run(operation, self.step, first)
            else:
                self.states.copy_(self.called_block(operation))
            first = 0
        return self.scores

    def reorder(self, rows: torch.Tensor) -> None:
        """Targets go on from these rows (R,)."""
        if self.history is None:
            self.cache.reorder_cache(rows)
            return
        slots, table = self.slots.long(), self.ancestors[: self.length]
        table[:, slots] = table[:, slots[rows]]
        for layer in self.called:
            layer.reorder_cache(rows)

    def repeat(self, times: int) -> None:
        """Repeat every target this number of times; data of rows is built again."""
        if self.history is None:
            self.cache.batch_repeat_interleave(times)
            self.operations = []
            return
        self.history = self.history[:, :, : self.length].repeat_interleave(times, dim=1)
        for layer in self.called:
            layer.batch_repeat_interleave(times)
        self.number_slots(self.history.shape[1])
        self.operations = []

    def inputs_of(self, ids: torch.Tensor, mask: torch.Tensor | None, past: int) -> torch.Tensor:
        """States (R, 1, D) of the last of target ids (R, T), by the seams of the model; keeps layer inputs and mask."""
        model, decoder, new = self.model, self.decoder, ids[:, -1:]
        known = {"decoder_input_ids": new, "decoder_attention_mask": mask, "encoder_outputs": self.encoder_outputs}
        known |= {"attention_mask": self.source_padding, "cache": self.cache, **self.inputs}
        known = {name: value for name, value in known.items() if value is not None}
        known |= model.decoder_inputs_for_generation(ids, known)
        own = {name: known[name] for name in model.model.decoder_input_names if name in known}
        inputs = model.model.decoder_inputs(new, mask, self.encoder_outputs, self.cache, **own)
        if not self.operations:
            self.source, self.source_padding = decoder.source(*self.encoded, **inputs)
        arguments = {"attention_mask": mask, "encoder_hidden_states": self.source, "cache": self.cache}
        mask = decoder.padding_to_mask(mask, past)
        positions = decoder.positions(new, mask, past)
        self.layer_inputs = decoder.layer_inputs(new, positions, **arguments, **inputs)
        hidden_states = decoder.embed(new, positions, **self.layer_inputs)  # (R, 1, D)
        self.self_mask = decoder.attention_mask(hidden_states, mask, self.cache)
        return hidden_states

    def called_block(self, block: Block) -> torch.Tensor:
        """A block of a layer over the states of the new tokens, as `forward` calls it: (R, D)."""
        inputs = {"self": (self.self_mask, self.cache), "source": (self.source, self.source_mask, self.cache)}
        arguments, layer_inputs = inputs.get(block.kind, (self.cache,)), self.layer_inputs
        if block.kind == "feed_forward":
            arguments, layer_inputs = (), {}
        with packed_products(self.model):
            return block.call(self.states[:, None], *arguments, **layer_inputs)[:, 0]

    # Inputs from before the first step

    def written_so_far(self) -> torch.Tensor:
        """The entries that the layers of the program wrote into the cache: (layers, R, T, 2D).

        For a recurrent one the last state only, since it reads no other.
        """
        stores = self.cache.self_attention_cache.layers
        written = memory(len(self.program.writers), self.rows, self.length, 2 * self.model.config.d_model)
        for place, (layer, attention) in zip(written, self.program.writers if self.length else ()):
            store = stores[layer.layer_idx]
            if is_recurrence(attention):
                place[:, -1, : store.keys.shape[1]] = store.keys
                continue
            heads = attention.q_proj.out_features // attention.head_dim
            first = 0 if attention is layer.self_attn else heads  # of two with concatenated heads
            states = [states[:, first : first + heads] for states in (store.keys, store.values)]
            states = [states.transpose(1, 2).flatten(2) for states in states]  # (R, T, D) each, of a window the last
            place[:, -states[0].shape[1] :] = torch.cat(states, dim=2)
        return written

    def find_seen(self) -> dict[str, torch.Tensor]:
        """The visible states of the source and of context; those of context by the names of their layer inputs."""
        context, context_seen = self.context_states()
        for prefix, seen in ("", self.source_padding), ("context_", context_seen):
            kept = seen_places(seen)
            for name, places in zip(("seen", "counts"), kept):
                setattr(self, prefix + name, places)
                setattr(self.step, prefix + name, None if places is None else places.data_ptr())
        return context

    def read_source(self, context: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        """Keys and values that the readers of the program attend to, (S, L, 2D) each, of the source and of context.

        If a prompt was read, they come from the cache, to which only those of context are added here.
        """
        (sources, length, size), readers = self.source.shape, self.program.readers
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

    def context_states(self) -> tuple[dict[str, torch.Tensor], torch.Tensor | None]:
        """Further sources by the names of their layer inputs, (S, N, D) of one N, and which are seen (S, N)."""
        states, seen = {}, None
        for name in {inputs for _, inputs in self.program.readers if inputs is not None}:
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
        return states, seen


def with_room(states: torch.Tensor, tokens: int, dim: int) -> torch.Tensor:
    """States of some tokens, which are a dimension, at the beginning of a tensor for more."""
    shape = list(states.shape)
    count, shape[dim] = shape[dim], tokens
    larger = states.new_empty(shape)
    larger.narrow(dim, 0, count).copy_(states)
    return larger
