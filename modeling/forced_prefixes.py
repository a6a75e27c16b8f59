"""Segments translated sentence by sentence: their source is encoded once, what was written is a forced prefix."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

import torch

from .batch_decoding import BatchDecoder, Job, pad_rows
from .document_state import CurrentSentence, DocumentState, SentencePart
from .strategies import Translator


class Segment(NamedTuple):
    """Parts of a document that are read together, from `first` to before `end`."""

    document: DocumentState
    first: int
    end: int

    @property
    def parts(self) -> list[SentencePart]:
        return self.document.parts[self.first : self.end]


class ForcedPrefixTranslator(Translator):
    """Base class of what translates segments in this way."""

    def force_prefixes(self, segments: Sequence[Segment]) -> None:
        """Sentence by sentence inside fixed segments: the source is encoded once, the prefix is read once.

        Where the prefix leaves too few learned positions, the rest of the segment becomes one of its own.
        """
        segments = sorted(segments, key=lambda segment: segment.first - segment.end)  # longest first
        rest: list[Segment] = []
        for start in range(0, len(segments), self.batch_size):
            group = segments[start : start + self.batch_size]
            for together in [group] if self.has_room(group) else [[segment] for segment in group]:
                rest += self.force_prefixes_together(together)
        if rest:
            self.force_prefixes(rest)

    def has_room(self, group: Sequence[Segment]) -> bool:
        """Whether learned positions reach for segments side by side, whatever is written."""
        lengths = [[len(part.ids) for part in segment.parts] for segment in group]
        return (
            1 + self.marks + sum(1 + self.wanted(max(column)) for column in zip_longest(*lengths, fillvalue=0))
            <= self.positions
        )

    def force_prefixes_together(self, group: Sequence[Segment]) -> list[Segment]:
        """One batch of `force_prefixes`, longest first; gives back what is left of a segment without room."""
        state = PrefixState(self, [self.segment_job(*segment) for segment in group])
        for step in range(group[0].end - group[0].first):
            rows = [row for row, segment in enumerate(group) if segment.first + step < segment.end]
            state.select(rows)
            group = [group[row] for row in rows]
            sentences = [CurrentSentence(segment.document, segment.first + step) for segment in group]
            if step and len(group) == 1 and not self.fits(0, state.ids.shape[1] - 1, len(sentences[0].part.ids)):
                return [self.rest_of(group[0], step)]
            jobs = [Job([], [], 1, len(sentence.part.ids), sentence) for sentence in sentences]
            outputs = self.generate(state.inputs(), jobs, stop_at_sep=True, use_cache=True)
            state.extend([[*output.ids, self.sep] for output in outputs])
            for sentence, output in zip(sentences, outputs):
                sentence.part.target = output.ids
                self.check_end(sentence, output)
        return []

    def rest_of(self, segment: Segment, step: int) -> Segment:
        """What is left of a segment after some sentences, which is reported for all that is left."""
        document, first, end = segment
        for index in range(first + step, end):
            document.report_positions(index, end - first - step, end - first, self.positions)
        return Segment(document, first + step, end)


class SourceState:
    """Encoder states of the jobs of a batch, and the ids of their sources, which an assistant and processors read."""

    def __init__(self, decoder: BatchDecoder, jobs: Sequence[Job]):
        self.model, self.pad = decoder.model, decoder.pad
        source = decoder.source_inputs(jobs)
        with torch.no_grad():
            self.encoder_outputs = self.model.get_encoder()(**source, return_dict=True)
        self.source_ids, self.source_mask = source["input_ids"], source["attention_mask"]

    def select_sources(self, index: torch.Tensor) -> None:
        """Keep these rows (N,)."""
        self.source_ids, self.source_mask = self.source_ids[index], self.source_mask[index]
        for name, value in self.encoder_outputs.items():
            if torch.is_tensor(value):
                self.encoder_outputs[name] = value[index]

    def join_sources(self, new: "SourceState") -> None:
        """Take the rows of a new one behind its own; of each source its tensors (B,) or (B, S, ...)."""
        length = max(self.source_mask.shape[1], new.source_mask.shape[1])
        for name in ("source_ids", "source_mask"):
            setattr(self, name, torch.cat([filled_up(getattr(state, name), length) for state in (self, new)]))
        for name, value in self.encoder_outputs.items():
            if torch.is_tensor(value):
                pair = (value, new.encoder_outputs[name])
                self.encoder_outputs[name] = torch.cat(
                    [filled_up(one, length) if one.dim() > 1 else one for one in pair]
                )


def filled_up(states: torch.Tensor, length: int) -> torch.Tensor:
    """Tensors by token, (B, S, ...), with zeros behind the last one: (B, length, ...)."""
    missing = states.new_zeros(len(states), length - states.shape[1], *states.shape[2:])
    return torch.cat([states, missing], dim=1)


class PrefixState(SourceState):
    """Encoder states and the decoder's cache of a growing target prefix, rows = parts of documents.

    New prefix tokens are appended as columns, padded on the left inside their columns; the mask leaves the holes out,
    and positions count tokens only, so rows of different length keep their cache without being moved.
    """

    def __init__(self, decoder: BatchDecoder, jobs: Sequence[Job]):
        super().__init__(decoder, jobs)
        prompts = [[decoder.start, *job.prefix] for job in jobs]
        # padded by the start token, or generate puts one more in front
        self.ids, self.mask = pad_rows(prompts, decoder.start, self.model.device, side="left")
        self.cache = None

    def inputs(self) -> dict:
        """What `generate` takes to go on."""
        self.cache = self.cache if self.cache is not None else self.model.new_cache()
        return {
            "input_ids": self.source_ids,
            "attention_mask": self.source_mask,
            "encoder_outputs": self.encoder_outputs,
            "decoder_input_ids": self.ids,
            "decoder_attention_mask": self.mask,
            "cache": self.cache,
        }

    def extend(self, tokens: list[list[int]]) -> None:
        """Append the chosen sentences; of the cache only the prompt stays, which all beams of a row share.

        It is empty where the search was not ours, which reads the prompt anew.
        """
        if self.cache.get_seq_length():
            self.cache.keep(self.ids.shape[0], self.ids.shape[1])
        ids, mask = pad_rows(tokens, self.pad, self.ids.device, side="left")
        self.ids, self.mask = torch.cat([self.ids, ids], dim=1), torch.cat([self.mask, mask], dim=1)

    def select(self, rows: list[int]) -> None:
        """Keep these rows."""
        if len(rows) == self.ids.shape[0]:
            return
        index = torch.tensor(rows, device=self.ids.device)
        self.ids, self.mask = self.ids[index], self.mask[index]
        self.select_sources(index)
        self.cache.batch_select_indices(index)
