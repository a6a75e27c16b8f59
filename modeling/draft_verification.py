"""Greedy search with drafts: a draft is read in one pass, and of it stays what the model itself would have written.

Speculative decoding (Leviathan et al. 2023) in which a translation that there is already takes the place of a smaller
model. What is written is that of greedy search without drafts, but where two tokens score the same to the last digits:
several tokens in one pass are rounded otherwise than one by one, as batches of another size are, too.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import nn
from transformers.utils import logging

from .cache import DecodingCache
from .decoding import Job, NonFiniteScoresError, Output, Translator, model_name, pad_rows
from .decoding_kernels import has_cheap_steps
from .document_state import CurrentSentence, DocumentState, split_at
from .fast_search import BeamLayer
from .generation_seams import PROCESSED, is_neutral, is_plain

logger = logging.get_logger(__name__)

LEAST = 4  # draft tokens that are proposed at least, also where the last ones were wrong
FIRST = 8  # draft tokens that are proposed at most until so many were written that it shows whether drafts hold
ENOUGH = 64
PAYS = 0.7  # share of accepted tokens below which drafts are read no further
HOLES = 32  # columns of the cache that may be without use
FULL = 0.75  # share of rows that must go on for those that ended to be left in the batch
LOGITS = 2**24  # scores that are computed at once


def draft_search(translator: Translator) -> "DraftSearch | None":
    """A search with drafts where nothing but the model's scores decides about the next token.

    No beams, no sampling, no recurrent decoder, which cannot go back, no processors or criteria, neither given nor made
    by settings, which might depend on the step, as a penalty of repetition does, and none of the steps that cost less
    than a pass with a draft.
    """
    settings = translator.settings
    if not translator.drafts or translator.generate_kwargs or (settings.num_beams or 1) > 1:
        return None
    if translator.config.decoder_autoregression != "self_attention" or has_cheap_steps(translator.model):
        return None
    is_greedy = settings.use_cache is not False and is_plain(settings)
    neutral = is_greedy and all(is_neutral(name, getattr(settings, name)) for name in PROCESSED)
    return DraftSearch(translator) if neutral else None


class DraftSearch:
    """Greedy search for the jobs of a translator, and the drafts that windows are for each other.

    Windows side by side come first. They hold a translation of every sentence, which is the draft of it in all other
    windows.
    """

    def __init__(self, translator: Translator):
        self.translator = translator
        self.accepted = self.written = 0  # tokens of drafts that stayed, and all of passes with drafts
        self.targets: dict[tuple[DocumentState, int], list[int]] = {}  # what windows hold for the parts of documents

    # Windows

    def side_by_side(self, sentences: Sequence[CurrentSentence]) -> tuple[list[CurrentSentence], list[CurrentSentence]]:
        """The sentences whose windows stand side by side, so that together they have all sentences, and the others."""
        past, future = self.translator.past, self.translator.future
        first, others = [], []
        covered: dict[DocumentState, int] = {}  # sentences that the windows of a document have so far
        for sentence in sentences:
            document, index = sentence
            last = min(covered.get(document, 0) + past, len(document.parts) - 1)
            if index == last and covered.get(document, 0) < len(document.parts):
                covered[document] = index + future + 1
                first.append(sentence)
            else:
                others.append(sentence)
        return first, others

    def windows(self, jobs: Sequence[Job]) -> list[Output]:
        """Outputs of windows, with the targets of their sentences in other windows as drafts; which are kept, too."""
        windows = []  # keys of the targets of each job's sentences
        for job in jobs:
            document, index = job.current
            windows.append([(document, part) for part in range(index - job.past, index + 1 + job.future)])
            size = len(document.parts)  # behind the last sentence targets are empty
            job.draft = [self.targets.get(key) if key[1] < size else [] for key in windows[-1]]
        outputs = self.translator.decode(jobs, drafts=self)
        for job, keys, output in zip(jobs, windows, outputs):
            if self.translator.repairs == "all" and job.past + job.future and self.translator.is_cut_off(job, output):
                continue  # translated again with fewer sentences
            for key, target in zip(keys, split_at(output.ids, self.translator.sep)):
                self.targets.setdefault(key, target)
        if self.written:
            logger.debug("sliding: of %d tokens %d were accepted from drafts", self.written, self.accepted)
        return outputs

    # Jobs

    def decode(self, jobs: Sequence[Job], stop_at_sep: bool = False) -> list[Output]:
        """Outputs of jobs, in their order."""
        rows = [self.row(job, stop_at_sep) for job in jobs]
        for batch in self.translator.batches(rows, lambda row: len(row.job.source)):
            waiting = iter([batch])
            self.write(lambda places, waiting=waiting: next(waiting, []), len(batch))
        return [row.output() for row in rows]

    def write_jobs(self, next_jobs: Callable[[int], list[Job]], take: Callable[[Job, Output], None]) -> None:
        """Sentences of jobs, of which one takes the place of one that has ended, and is for `take`."""
        rows: list[DraftRow] = []

        def more(places: int) -> list[DraftRow]:
            nonlocal rows
            for row in rows:
                if row.is_finished:
                    take(row.job, row.output())
            new = [self.row(job, stop_at_sep=True) for job in next_jobs(places)]
            rows = [row for row in rows if not row.is_finished] + new
            return new

        self.write(more, self.translator.batch_size)

    def row(self, job: Job, stop_at_sep: bool = False) -> "DraftRow":
        """The row of a job, which ends at its end token, or at a separator, too."""
        return DraftRow(self.translator, job, self.translator.ends_of(stop_at_sep))

    def write(self, more: Callable[[int], list["DraftRow"]], size: int) -> None:
        """Write rows to their ends, at most `size` at a time.

        `more` gives rows for so many free places; it is asked at the start, when many rows have ended, where the cache
        takes rows in between, and when all have, until it gives none.
        """
        rows: list[DraftRow] = []
        state = None
        while True:
            if not rows or state.cache.can_have_holes and len(rows) <= FULL * size:
                added = more(size - len(rows))
                if not rows + added:
                    return
                if added:
                    new = DraftState(self.translator, [row.job for row in added])
                    added = self.write_further(added, new)
                    state = state.joined(new) if rows and added else new if added else state
                    rows = rows + added
            if rows:
                rows = self.write_further(rows, state)

    def write_further(self, rows: list["DraftRow"], state: "DraftState") -> list["DraftRow"]:
        """One pass; gives back the rows that stay in the batch, from which those that ended go when they are many."""
        self.translator.before_pass()
        most = self.longest_proposal(rows)
        proposals = [row.proposal(most) for row in rows]
        unread = [[*row.unread, *proposal] for row, proposal in zip(rows, proposals)]
        asked = [0 if row.is_finished else 1 + len(proposal) for row, proposal in zip(rows, proposals)]
        chosen = state.read(unread, asked)
        kept = [row.take(proposal, best) if best else 0 for row, proposal, best in zip(rows, proposals, chosen)]
        remaining = [number for number, row in enumerate(rows) if not row.is_finished]
        if len(remaining) > FULL * len(rows):
            remaining = list(range(len(rows)))
        state.keep(remaining, kept)
        for number in set(range(len(rows))).difference(remaining):
            self.accepted += rows[number].accepted
            self.written += rows[number].tried
        return [rows[number] for number in remaining]

    def longest_proposal(self, rows: Sequence["DraftRow"]) -> float:
        """Draft tokens that a row may propose: few until it shows whether drafts hold, none where they do not."""
        accepted = self.accepted + sum(row.accepted for row in rows)
        written = self.written + sum(row.tried for row in rows)
        if written < ENOUGH:
            return FIRST
        return math.inf if accepted >= PAYS * written else 0


class DraftRow:
    """The translation of one job while it is written, and where the draft goes on behind it.

    Behind a difference the draft goes on after the next place of the model's own token in its sentence, or else one
    token further; and in any case behind the separator that ends the sentence.
    """

    def __init__(self, translator: Translator, job: Job, ends: Sequence[int]):
        self.job, self.draft, self.ends = job, job.draft, ends
        self.sep, self.eos, self.model = translator.sep, translator.eos, model_name(translator.model)
        (self.limit,) = translator.token_limits([job.length], 1 + len(job.prefix))
        self.unread = [translator.start, *job.prefix]  # tokens that the decoder has not read yet
        self.written: list[int] = []
        self.accepted = self.tried = 0  # tokens of the draft that stayed, and all that were written in passes with it
        self.sentence = self.column = self.agreed = 0  # of the draft: next token, and the first one not accepted
        self.most = self.limit  # draft tokens that are proposed

    @property
    def has_end(self) -> bool:
        return bool(self.written) and self.written[-1] in self.ends

    @property
    def is_finished(self) -> bool:
        return self.has_end or len(self.written) >= self.limit

    def output(self) -> Output:
        return Output(self.written[:-1] if self.has_end else self.written, self.has_end)

    def proposal(self, most: float = math.inf) -> list[int]:
        """The tokens of the draft that may come next, up to a sentence without one; the end token where none is."""
        if not self.draft or not most:
            return []
        tokens: list[int] = []
        for sentence in () if self.is_finished else self.draft[self.sentence :]:
            if sentence is None:
                break
            tokens += [*sentence, self.sep]
        else:
            tokens[-1:] = [self.eos] if tokens else []
        room = self.limit - len(self.written) - 1  # for the token behind the proposal
        return tokens[self.column : self.column + min(self.most, most, room)]

    def take(self, proposal: list[int], best: list[int | None]) -> int:
        """Write the tokens of a proposal that the model has, too, and its own one behind them.

        `best` are the model's tokens at the places of the proposal and behind it, None where scores are not finite.
        Returns the number of tokens, read before and accepted, that stay in the cache.
        """
        same = [own == token for own, token in zip(best, proposal)]
        count = same.index(False) if False in same else len(same)
        read = len(self.unread) + count
        for token in proposal[:count]:
            self.written.append(token)
            self.column = self.agreed = self.column + 1
            if token == self.sep:
                self.begin_next()
        self.accepted += count
        self.most = max(LEAST, 2 * count)
        self.unread = []
        if not self.is_finished:
            self.write_own(best[count])
            count += 1
        self.tried += count if proposal else 0
        return read

    def write_own(self, token: int | None) -> None:
        if token is None:
            document, part = self.job.current.document, self.job.current.part
            raise NonFiniteScoresError(self.model, document.number, part.sentence, len(self.written) + 1)
        self.written.append(token)
        if self.is_finished:
            return
        self.unread = [token]
        draft = self.draft[self.sentence] if self.sentence < len(self.draft) else None
        if token == self.sep:
            self.begin_next()
        elif draft is not None:
            places = [place for place in range(self.agreed, len(draft)) if draft[place] == token]
            nearest = min(places, key=lambda place: abs(place - self.column), default=self.column)
            self.column = min(nearest + 1, len(draft))

    def begin_next(self) -> None:
        self.sentence += 1
        self.column = self.agreed = 0


class DraftState:
    """Encoder states of jobs and the decoder's cache of what was accepted, padded on the left or with holes."""

    def __init__(self, translator: Translator, jobs: Sequence[Job]):
        self.model, self.pad = translator.model, translator.pad
        source = translator.source_inputs(jobs)
        with torch.no_grad():
            self.encoder_outputs = self.model.get_encoder()(**source, return_dict=True)
        self.source_mask = source["attention_mask"]
        self.ids = torch.empty(len(jobs), 0, dtype=torch.long, device=self.model.device)
        self.mask = self.ids.clone()
        self.past = 0  # columns before those that were read last
        self.cache = self.model.new_cache()

    def joined(self, new: "DraftState") -> "DraftState":
        """With the rows of a new one behind its own; of each source there are tensors (B,) or (B, S, ...)."""
        length = max(self.source_mask.shape[1], new.source_mask.shape[1])
        self.source_mask = torch.cat([filled_up(mask, length, dim=1) for mask in (self.source_mask, new.source_mask)])
        for name, value in self.encoder_outputs.items():
            if torch.is_tensor(value):
                pair = (value, new.encoder_outputs[name])
                self.encoder_outputs[name] = torch.cat(
                    [filled_up(states, length, dim=1) if states.dim() > 1 else states for states in pair]
                )
        join(self.cache, new.cache)
        width = max(self.ids.shape[1], new.ids.shape[1])
        for name, filling in (("ids", self.pad), ("mask", 0)):
            pair = (getattr(self, name), getattr(new, name))
            filled = [nn.functional.pad(states, (width - states.shape[1], 0), value=filling) for states in pair]
            setattr(self, name, torch.cat(filled))
        return self

    @torch.no_grad()
    def read(self, tokens: list[list[int]], last: list[int]) -> list[list[int | None]]:
        """Read further tokens of every row; the most probable ones behind each of its `last` ones.

        None where the scores are not finite.
        """
        ids, mask = pad_rows(tokens, self.pad, self.ids.device)  # (B, T_new)
        self.past = self.ids.shape[1]
        self.ids, self.mask = torch.cat([self.ids, ids], dim=1), torch.cat([self.mask, mask], dim=1)
        inputs = self.model.prepare_inputs_for_generation(
            self.ids,
            ids.shape[1],
            cache=self.cache,
            encoder_outputs=self.encoder_outputs,
            attention_mask=self.source_mask,
            decoder_attention_mask=self.mask,
            use_cache=True,
        )
        first = mask.sum(dim=1, keepdim=True) - torch.tensor(last, device=mask.device)[:, None]  # (B, 1)
        asked = mask.bool() & (torch.arange(mask.shape[1], device=mask.device) >= first)
        states = self.model.model(**inputs, return_dict=True).last_hidden_state[asked]  # (N, D)
        best = torch.cat(
            [self.best_tokens(part) for part in states.split(max(1, LOGITS // self.model.config.vocab_size))]
        )
        return [[None if token < 0 else token for token in row.tolist()] for row in best.split(last)]

    def best_tokens(self, states: torch.Tensor) -> torch.Tensor:
        """States (N, D) -> the most probable tokens (N,), -1 where scores are not finite."""
        logits = self.model.logits_of(states).float()  # (N, V)
        return logits.argmax(dim=-1).masked_fill(~logits.amax(dim=-1).isfinite(), -1)

    def keep(self, rows: list[int], lengths: list[int]) -> None:
        """Keep these rows, and of what every row has read last so many tokens.

        Tokens that are not kept are holes of the mask, until there are many or rows go.
        """
        if not rows:
            return
        device = self.ids.device
        ends = self.past + torch.tensor(lengths, device=device)[:, None]  # (B, 1)
        self.mask = self.mask * (torch.arange(self.mask.shape[1], device=device) < ends)
        self.ids = self.ids.masked_fill(self.mask == 0, self.pad)
        width = int(self.mask.sum(dim=1).max())
        if self.cache.can_have_holes and len(rows) == len(lengths) and self.mask.shape[1] <= width + HOLES:
            return
        index = torch.tensor(rows, dtype=torch.long, device=device)
        columns = self.mask[index].argsort(dim=1, stable=True)[:, -width:]  # padding in front
        self.ids, self.mask = self.ids[index].gather(1, columns), self.mask[index].gather(1, columns)
        for layer in self.cache.self_attention_cache.layers:
            select_tokens(layer, index, columns)
        if len(rows) < len(lengths):
            self.source_mask = self.source_mask[index]
            for name, value in self.encoder_outputs.items():
                if torch.is_tensor(value):
                    self.encoder_outputs[name] = value[index]
            self.cache.cross_attention_cache.batch_select_indices(index)


# The cache


def select_tokens(layer, rows: torch.Tensor, columns: torch.Tensor) -> None:
    """Of the rows (N,) of self-attention keep the tokens in these columns (N, T), right after all were read."""
    if not isinstance(layer, BeamLayer):
        layer.select_tokens(rows, columns)
        return
    batch, length = layer.keys.shape[0], columns.shape[1]
    index = (columns.T * batch + rows).flatten()  # (T*N,)
    kept = [buffer.flatten(0, 1).index_select(0, index) for buffer in layer.buffers]
    for number, states in enumerate(kept):
        layer.buffers[number] = states.new_empty(length + 32, len(rows), states.shape[1])
        layer.buffers[number][:length] = states.view(length, len(rows), -1)  # (T, N, H*Dh)
    layer.origins = rows.new_empty(0, len(rows))
    layer.show(length)


def join(cache: DecodingCache, other: DecodingCache) -> None:
    """Take the rows of another cache, of one row for each source, behind those of the first, padding in front."""
    for layer, new in zip(cache.self_attention_cache.layers, other.self_attention_cache.layers):
        length = max(layer.keys.shape[2], new.keys.shape[2])
        pairs = ((layer.keys, new.keys), (layer.values, new.values))
        layer.adopt(*(torch.cat([filled_up(states, length, front=True) for states in pair]) for pair in pairs), room=32)
    for layer, new in zip(cache.cross_attention_cache.layers, other.cross_attention_cache.layers):
        if not layer.is_initialized:
            continue  # of a kind of source that the model does not have
        length = max(layer.keys.shape[2], new.keys.shape[2])
        layer.keys, layer.values = (
            torch.cat([filled_up(states, length) for states in pair])
            for pair in ((layer.keys, new.keys), (layer.values, new.values))
        )


def filled_up(states: torch.Tensor, length: int, dim: int = 2, front: bool = False) -> torch.Tensor:
    """With zeros behind the last of `dim`, or in `front`: keys (B, H, T, Dh) -> (B, H, length, Dh)."""
    shape = list(states.shape)
    shape[dim] = length - shape[dim]
    missing = states.new_zeros(shape)
    return torch.cat([missing, states] if front else [states, missing], dim=dim)
