"""Greedy and beam search by the compiled primitives without torch, with the results of `DecodingStep.search`."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np

from hf_docmt.engine.cpu_kernels import BLOCK, MULTIPLE, Search, Step, run, search, threads
from hf_docmt.engine.program_maker import addresses
from hf_docmt.engine.saved_layers import SavedPrograms

ENCODED_ROWS = 256  # of states of sources that the encoder goes over together


@dataclass
class ArraySettings:
    """Settings of a search, see `SearchSettings`."""

    ends: Sequence[int]
    num_beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool = False
    has_sums: bool = False


@dataclass
class Found:
    """Target ids after the prompt, and the sums of log-probabilities before the first and up to each, if kept."""

    ids: list[int]
    sums: list[float]


def best_targets(
    programs: SavedPrograms,
    sources: Sequence[Sequence[int]],
    prompts: Sequence[Sequence[int]],
    limits: Sequence[int],
    settings: ArraySettings,
    at_once: int,
) -> list[Found | None]:
    """The best translation of each source after its prompt, of at most `limits` new tokens; None if beams tie.

    A step has at most `at_once` sources: the next one begins when one is done.
    """
    beams, given = settings.num_beams, np.array([len(prompt) for prompt in prompts], np.int64)
    most, room = min(at_once, len(sources)), int((given + limits).max())  # M, T
    states, visible = encoded(programs, sources)  # (N, L, D)
    step = SearchStep(programs, most * beams, beams, room, states.shape[1], int(given.max()) - 1)
    kept = 1 if beams == 1 else max(2, 1 + len(settings.ends)) * beams + 1
    count, scored, targets = len(sources), len(programs.table), most * beams
    shapes = {"ids": (targets, room), "copies": (beams, room), "indices": (most, kept), "current": (most,)}
    shapes |= {"found": (count, beams, room), "found_lengths": (count, beams)}
    tables = {name: np.empty(shape, np.int64) for name, shape in shapes.items()}
    shapes = {"log_probs": (targets if beams > 1 else 0, scored), "sums": (targets,), "values": (most, kept)}
    shapes |= {"found_scores": (count, beams)}
    totals = {"totals": (targets, room), "total_copies": (beams, room), "found_totals": (count, beams, room)}
    shapes |= totals if settings.has_sums else {}
    tables |= {name: np.empty(shape, np.float32) for name, shape in shapes.items()}
    tables |= {"ends": np.array(settings.ends, np.int64), "is_open": np.zeros(count, np.uint8)}
    tables |= {"prompts": padded(prompts, np.int64), "given": given, "limits": given + np.array(limits, np.int64)}
    found = Search(count, most, prompt=int(given.max()), room=room, end_count=len(settings.ends), beams=beams)
    found.penalty, found.is_early, found.scored = settings.length_penalty, settings.early_stopping, scored
    found.kept, found.steps = kept, 2**62
    for name, table in (tables | {"states": states, "visible": visible}).items():
        setattr(found, name, table.ctypes.data)
    step.read_sources(found, programs)
    search(programs.decoder, step.step, found)
    ids, lengths, first = tables["found"][:, 0].tolist(), tables["found_lengths"][:, 0].tolist(), given.tolist()
    sums = tables["found_totals"][:, 0].tolist() if settings.has_sums else [[]] * count
    return [
        None if is_open else Found(ids[n][first[n] : lengths[n]], sums[n][first[n] - 1 : lengths[n]])
        for n, is_open in enumerate(tables["is_open"])
    ]


def padded(rows: Sequence[Sequence[int]], dtype: type) -> np.ndarray:
    """Rows of ids with zeros after them, (N, longest)."""
    ids = np.zeros((len(rows), max(map(len, rows))), dtype)
    for row, values in zip(ids, rows):
        row[: len(values)] = values
    return ids


def encoded(programs: SavedPrograms, sources: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """States of sources (N, L, D), and how many of each are tokens (N,) int32; neighbours together."""
    ids, lengths = padded(sources, np.int64), np.array([len(source) for source in sources], np.int32)
    states = programs.source_table[ids] * np.float32(programs.scale)
    states += programs.layers.encodings("encoder", ids.shape[1])
    inner, first = programs.layers.config.encoder_ffn_dim, 0
    while first < len(ids):
        end = min(first + max(1, ENCODED_ROWS // int(lengths[first])), len(ids))
        longest, counts = int(lengths[first:end].max()), lengths[first:end].copy()
        part = np.ascontiguousarray(states[first:end, :longest])  # (n, longest, D)
        buffers = Buffers(part.reshape(-1, part.shape[2]), inner, longest)
        buffers.step.shared, buffers.step.places, buffers.step.counts = longest, longest, counts.ctypes.data
        run(programs.encoder, buffers.step)
        states[first:end, :longest] = part
        first = end
    return states, lengths


class Buffers:
    """A step over states (R, D) with scratch for operations, as `programs.buffers` has it; `layers` as there."""

    def __init__(self, states: np.ndarray, inner: int, places: int, scores: np.ndarray | None = None, layers=()):
        rows, size = states.shape
        self.states, self.scores = states, states if scores is None else scores
        self.scratch = np.empty(rows * (8 * size + inner), np.float32)
        self.integers = np.empty((rows + -rows % BLOCK, max(2 * size, inner)), np.int8)
        others = [one.ctypes.data for one in (self.scores, *layers)]
        self.buffers = addresses(states.ctypes.data, states.nbytes, self.scratch.ctypes.data, others)
        self.step = Step(ctypes.addressof(self.buffers), rows, integers=self.integers.ctypes.data)
        self.give_scratch(self.step, rows, places)

    def give_scratch(self, step: Step, rows: int, places: int) -> None:
        """As `tensor_kernels.give_scratch`."""
        step.threads, step.scratch = threads(), max(rows, places + MULTIPLE)
        step.scratches = [np.empty((step.threads, step.scratch), dtype) for dtype in (np.float32, np.int64)]
        step.numbers, step.offsets = (each.ctypes.data for each in step.scratches)


class SearchStep(Buffers):
    """Buffers and tables of a decoding step of W targets with room for T tokens, after sources of L tokens."""

    def __init__(self, programs: SavedPrograms, targets: int, beams: int, room: int, places: int, prefix: int):
        size, inner = programs.table.shape[1], programs.layers.config.decoder_ffn_dim
        written = [np.empty((targets, room, 2 * size), np.float32) for _ in range(programs.writers)]
        self.read = [np.empty((targets // beams, places, 2 * size), np.float32) for _ in range(programs.readers)]
        rows, scores = max(targets, prefix), np.empty((targets, len(programs.table)), np.float32)
        self.layers = list(chain(*zip_longest(written, self.read, fillvalue=scores)))
        states = np.empty((rows, size), np.float32)
        super().__init__(states, inner, max(room, places), scores, self.layers)
        slots = np.arange(targets, dtype=np.int32)
        self.tables = {"slots": slots, "origins": slots // beams, "first": np.zeros(targets, np.int32)}
        self.tables |= {"ancestors": np.tile(slots, (room, 1)), "lengths": np.empty(targets, np.int64)}
        self.tables |= {"tokens": np.empty(rows, np.int64), "counts": np.empty(targets // beams, np.int32)}
        self.tables |= {"encodings": programs.layers.encodings("decoder", room), "bias": programs.bias}
        for name, table in self.tables.items():
            setattr(self.step, name, table.ctypes.data)
        self.step.rows, self.step.fresh, self.step.places = targets, 1, places
        self.step.written, self.step.kept = targets, room

    def read_sources(self, found: Search, programs: SavedPrograms) -> None:
        """Let a search read the states of each source when it begins."""
        places, size = self.step.places, self.states.shape[1]
        self.reading_buffers = (ctypes.c_void_p * len(self.buffers))()
        self.reading_integers = np.empty((places + -places % BLOCK, size), np.int8)
        self.reading = Step(ctypes.addressof(self.reading_buffers), integers=self.reading_integers.ctypes.data)
        self.give_scratch(self.reading, places, places)
        found.readers, found.reader_count = ctypes.addressof(programs.sources), len(programs.sources)
        found.reading = ctypes.addressof(self.reading)
