"""Greedy and beam search, with the results of transformers' searches; the prompt is read once a source."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import nn
from transformers import LogitsProcessorList, StoppingCriteriaList
from transformers.utils import ModelOutput

from hf_docmt.engine.cache import DecodingCache
from hf_docmt.engine.cpu_kernels import MOST_BEAMS
from hf_docmt.engine.decoding_step import decoding_step
from hf_docmt.engine.scope import packed_products
from hf_docmt.engine.tensor_kernels import best_of
from hf_docmt.modeling.layers import cached_length

NEVER = -1e9  # added to the score of what must not be chosen
ROOM = 256  # tokens that there is room for at once
MOST_WASTE = 1 / 4  # of the sources that are computed, those that have ended


@dataclass
class SearchSettings:
    """Settings of a search, with the names and meanings of transformers' `GenerationConfig`.

    `max_length` counts the prompt. Scores are sums of log-probabilities over length ** `length_penalty`. With
    `early_stopping` True a source is done as soon as `num_beams` translations are finished; with False when no beam
    could be better if it ended now; with "never" when no beam could be better at any length.
    """

    max_length: int
    eos_token_id: list[int]
    pad_token_id: int
    num_beams: int = 1
    num_return_sequences: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    processors: LogitsProcessorList = field(default_factory=LogitsProcessorList)
    criteria: StoppingCriteriaList = field(default_factory=StoppingCriteriaList)
    has_sums: bool = False  # whether greedy search sums up log-probabilities, which beam search does anyway
    is_by_row: bool = False  # whether each of these sees rows alone, or gives by `of_rows` what some sources need

    def of_rows(self, sources: torch.Tensor) -> "SearchSettings":
        """These settings for some sources (S,) only."""
        processors, criteria = (
            [one.of_rows(sources) if hasattr(one, "of_rows") else one for one in given]
            for given in (self.processors, self.criteria)
        )
        return replace(self, processors=LogitsProcessorList(processors), criteria=StoppingCriteriaList(criteria))

    def going_on(self, ended: torch.Tensor) -> torch.Tensor | None:
        """The sources that have not `ended` (B,) bool; None where too few have, or none can leave the others."""
        may_leave = self.is_by_row and self.eos_token_id and len(ended) > 1
        return (~ended).nonzero()[:, 0] if may_leave and ended.sum() > len(ended) * MOST_WASTE else None

    @property
    def candidates(self) -> int:
        """The number of candidates of a source in beam search, so that `num_beams` continue even if others end."""
        return max(2, 1 + len(self.eos_token_id)) * self.num_beams

    @property
    def earliest_end(self) -> int:
        """The least length of target ids at which a limit or criterion may end a row; 0 if criteria do not say."""
        return min(self.max_length, *(getattr(criterion, "earliest_end", 0) for criterion in self.criteria), 2**31)

    def is_plain(self, scored: int) -> bool:
        """Whether nothing decides but the scores of this number of tokens, ends, and the number of tokens of a row."""
        has_limits = all(hasattr(one, "row_ends") for one in self.criteria if one not in self.callbacks)
        fits = self.num_beams == 1 or self.candidates < scored and self.num_beams <= MOST_BEAMS
        return has_limits and self.passes_finite and fits and self.early_stopping in (True, False)

    @property
    def callbacks(self) -> list:
        """Criteria that say by `ends_nothing` that they end no row: a search may call them after a few steps."""
        return [criterion for criterion in self.criteria if getattr(criterion, "ends_nothing", False)]

    def limits(self, prompt: torch.Tensor) -> torch.Tensor:
        """The most tokens of each translation of prompts (B, T), these included, (B,)."""
        limits = torch.full((len(prompt),), self.max_length, device="cpu")
        for criterion in self.criteria:
            limits = limits.minimum(getattr(criterion, "row_ends", limits))
        return limits.clamp_min(prompt.shape[1] + 1)

    @property
    def padding(self) -> int:
        """The token after the end of a translation, as in transformers."""
        beams_pad = (self.pad_token_id or self.eos_token_id[0]) if self.eos_token_id else -1
        return self.pad_token_id if self.num_beams == 1 else beams_pad

    @property
    def passes_finite(self) -> bool:
        """Whether all processors say that they leave finite scores alone, of whichever tokens, by `passes_finite`."""
        return all(getattr(processor, "passes_finite", False) for processor in self.processors)

    def processed(
        self, ids: torch.Tensor, scores: torch.Tensor, state: "DecoderState"
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Scores (R, N) of what comes after target ids (R, T), as the processors want them, and of which tokens (N,).

        None = all of them, (R, V), as processors see them.
        """
        words, are_few = state.words, scores.shape[1] <= 1 + len(self.eos_token_id)  # for the candidates of beams
        if are_few or not self.passes_finite:
            scores, words = state.of_all_words(scores), None
        for processor in self.processors:  # a call of the list would look up the signature of each, too
            scores = processor(ids, scores)
        return scores, words

    def has_ended(self, ids: torch.Tensor) -> torch.Tensor:
        """Whether rows of target ids (R, T) end with their last token, (R,) bool."""
        if ids.shape[1] >= self.max_length:
            return torch.ones(len(ids), dtype=torch.bool, device=ids.device)
        ended = self.are_ends(ids[:, -1])
        return ended | self.criteria(ids, None) if self.criteria else ended

    def are_ends(self, tokens: torch.Tensor) -> torch.Tensor:
        """Whether each of these tokens ends a translation, bool."""
        ended = torch.zeros_like(tokens, dtype=torch.bool)
        for token in self.eos_token_id:
            ended |= tokens == token
        return ended


@torch.no_grad()
def best_translations(
    state: "DecoderState", prompt: torch.Tensor, settings: SearchSettings, at_once: int | None = None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Translations (B * returned, at most `max_length`) of prompts (B, T), and sums up to each token, if any.

    The kernels search if settings are plain; the searches below translate what they leave open. With sources padded on
    the right a step has at most `at_once` of them: the next one begins when one is done.
    """
    is_plain, logits, before = settings.is_plain(len(state.output()[1])), None, copy.copy(state)
    if is_plain:
        state.at_once = at_once if at_once is not None and at_once < len(prompt) else None
        state.start(prompt)
        if state.step is None:
            logits = state.read(prompt)
    if not is_plain or state.step is None or not state.step.is_whole:
        return step_by_step(state, prompt, settings, logits)
    if logits is not None:
        logits = logits.clone()
        state.repeat(settings.num_beams)
    ids, sums, rows = state.step.search(prompt, settings, state.mask, logits)
    if not len(rows):
        return ids, sums
    before.cache, before.keeps_cache = DecodingCache(), False
    before.keep(rows)
    others, sums_of_others = step_by_step(before, prompt[rows], settings.of_rows(rows))
    ids = with_rows(ids, rows, others, settings.padding)
    return ids, None if sums is None else with_rows(sums, rows, sums_of_others, 0)


def step_by_step(state: "DecoderState", prompt: torch.Tensor, settings: SearchSettings, logits=None) -> tuple:
    """As `best_translations`; `logits` of the prompts, if they were read."""
    ids, *_, sums = (beam_search if settings.num_beams > 1 else greedy_search)(state, prompt, settings, logits)
    return ids, sums


def with_rows(values: torch.Tensor, sources: torch.Tensor, others: torch.Tensor, padding: int) -> torch.Tensor:
    """Values (B * N, L) with others (S * N, M) in the place of those of these sources (S,)."""
    times, longest = len(others) // len(sources), max(values.shape[1], others.shape[1])
    values, others = (nn.functional.pad(one, (0, longest - one.shape[1]), value=padding) for one in (values, others))
    values.view(-1, times, longest)[sources] = others.view(-1, times, longest)
    return values


@torch.no_grad()
def greedy_search(
    state: "DecoderState", prompt: torch.Tensor, settings: SearchSettings, logits: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Prompts (B, T) to the best token at every step: (B, at most `max_length`), and `sums` of its shape, if any.

    `logits` are those of the prompts, if they were read.
    """
    batch, length = prompt.shape
    ids = nn.functional.pad(prompt, (0, min(ROOM, max(settings.max_length - length, 1))))
    sums = torch.zeros(ids.shape, dtype=torch.float32, device=ids.device) if settings.has_sums else None
    finished = torch.zeros(batch, dtype=torch.bool, device=ids.device)
    is_any, are_kept = False, any(map(keeps_scores, settings.processors))
    sources, left = torch.arange(batch, device=ids.device), []  # of rows; those that have left, with their ids
    while True:
        logits = state.read(ids[:, :length]) if logits is None else logits
        scores, words = settings.processed(ids[:, :length], logits.clone() if are_kept else logits, state)
        tokens, logits = tokens_at(words, best_token(scores)), None  # (B,)
        if is_any and settings.eos_token_id:
            tokens = tokens.masked_fill(finished, settings.pad_token_id)
        ids[:, length] = tokens
        if sums is not None:
            sums[:, length] = sums[:, length - 1] + scores.amax(dim=1) - scores.logsumexp(dim=1)
        length += 1
        if length == ids.shape[1] < settings.max_length:
            ids = nn.functional.pad(ids, (0, length))
            sums = None if sums is None else nn.functional.pad(sums, (0, length))
        ended = settings.has_ended(ids[:, :length])
        if ended.any():
            is_any, finished = True, finished | ended
            if finished.all():
                parts = [*left, (sources, ids[:, :length], None if sums is None else sums[:, :length])]
                return joined(parts, settings.pad_token_id), None if sums is None else joined(parts, 0, values=2)
            if (rows := settings.going_on(finished)) is not None:
                kept = None if sums is None else sums[finished, :length]
                left.append((sources[finished], ids[finished, :length], kept))
                ids, sources, finished, is_any = ids[rows], sources[rows], finished[rows], False
                sums = None if sums is None else sums[rows]
                settings = settings.of_rows(rows)
                state.keep(rows)


def joined(parts: list[tuple[torch.Tensor, ...]], pad: int, values: int = 1) -> torch.Tensor:
    """Ids (S_i, L_i), or other `values`, of sources (S_i,) in the order of these: (sum of S_i, longest)."""
    longest = parts[-1][1].shape[1]
    rows = [nn.functional.pad(part[values], (0, longest - part[values].shape[1]), value=pad) for part in parts]
    return torch.cat(rows)[torch.cat([part[0] for part in parts]).argsort()]


@torch.no_grad()
def beam_search(
    state: "DecoderState", prompt: torch.Tensor, settings: SearchSettings, logits: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Prompts (B, T) to the best translations (B * returned, at most `max_length`), their scores, and sums up to each.

    Scores are (B * returned,), the sums of log-probabilities up to each token have the shape of the translations.
    """
    beams, (batch, length), device = settings.num_beams, prompt.shape, prompt.device
    count = settings.candidates
    running = torch.full((batch * beams, settings.max_length), settings.padding, dtype=torch.long, device=device)
    running[:, :length] = prompt.repeat_interleave(beams, dim=0)
    sums = torch.zeros(running.shape, dtype=torch.float32, device=device)
    scores = torch.zeros(batch, beams, dtype=torch.float32, device=device)
    scores[:, 1:] = NEVER  # the beams of a prompt are equal, so only the first one is continued
    finished = FinishedTranslations(running.view(batch, beams, -1), length, settings)
    first_rows, first_candidates = (torch.arange(batch, device=device)[:, None] * size for size in (beams, count))

    logits = (state.read(prompt) if logits is None else logits).repeat_interleave(beams, dim=0)  # (B * beams, V)
    state.repeat(beams)
    log_probs, are_kept = None, any(map(keeps_scores, settings.processors))
    while True:
        log_probs = torch.log_softmax(logits, dim=-1, out=None if are_kept else log_probs)  # memory of the last step
        processed, words = settings.processed(running[:, :length], log_probs, state)
        values, indices = best_continuations(processed, scores, count)  # (B, K)
        tokens = tokens_at(words, indices % processed.shape[1])
        rows = indices // processed.shape[1] + first_rows  # (B, K)
        length += 1
        if length >= settings.earliest_end or settings.are_ends(tokens[:, :beams]).any():
            continued, sums = with_tokens(running, rows, tokens, length), with_tokens(sums, rows, values, length)
            ended = settings.has_ended(continued[:, :length]).view(tokens.shape)
            open_values = values + NEVER * ended.float()
            order = open_values.topk(beams).indices  # (B, beams)
            chosen = (order + first_candidates).flatten()  # (B * beams,)
            running, rows, scores = continued[chosen], rows.flatten()[chosen], open_values.gather(1, order)
            finished.add(*(each.view(*tokens.shape, -1) for each in (continued, sums)), values, ended, length)
            sums = sums[chosen]
            if not finished.may_improve(scores, length) or ended.all():
                return finished.best()
        else:  # the best ones continue unchanged
            rows, scores = rows[:, :beams], values[:, :beams].contiguous()
            running, sums = (
                with_tokens(*each, length) for each in ((running, rows, tokens[:, :beams]), (sums, rows, scores))
            )
            rows = rows.flatten()
            if not finished.may_improve(scores, length):
                return finished.best()
        state.reorder(rows)
        if finished.is_any and (sources := settings.going_on(finished.are_done)) is not None:
            running, sums = (each.view(len(scores), beams, -1)[sources].flatten(0, 1) for each in (running, sums))
            scores = scores[sources]
            first_rows, first_candidates = first_rows[: len(sources)], first_candidates[: len(sources)]
            settings, log_probs = settings.of_rows(sources), None
            finished.keep(sources)
            state.keep(sources)
        logits = state.read(running[:, :length])


def tokens_at(words: torch.Tensor | None, places: torch.Tensor) -> torch.Tensor:
    """The tokens of scores by their places among all, or among those of these words (N,)."""
    return places if words is None else words[places]


def with_tokens(ids: torch.Tensor, rows: torch.Tensor, tokens: torch.Tensor, length: int) -> torch.Tensor:
    """Rows (B, K) of ids (R, L), or of sums, with tokens (B, K) after them, as the last of `length`: (B * K, L)."""
    continued = ids.index_select(0, rows.flatten())
    continued[:, length - 1] = tokens.flatten()
    return continued


class FinishedTranslations:
    """The best translations of every source that have ended, as many as beams, best first; `NEVER` = none yet."""

    def __init__(self, running: torch.Tensor, prompt: int, settings: SearchSettings):
        self.ids, self.settings, self.prompt = running.clone(), settings, prompt  # (B, beams, L)
        self.sums = torch.zeros(running.shape, dtype=torch.float32, device=running.device)
        self.scores = torch.full(running.shape[:2], NEVER, dtype=torch.float32, device=running.device)
        self.lengths = torch.zeros(running.shape[:2], dtype=torch.long, device=running.device)  # of new tokens
        self.has_ended = torch.zeros_like(self.scores, dtype=torch.bool)
        self.is_any = False  # whether a translation has ended
        self.improves = self.has_ended.new_ones(len(running), 1)  # whether a running translation may become the best
        self.sources = torch.arange(len(running), device=running.device)
        self.left: list[tuple[torch.Tensor, ...]] = []  # sources that have left, their ids, sums, scores and lengths

    def add(
        self, ids: torch.Tensor, sums: torch.Tensor, values: torch.Tensor, ended: torch.Tensor, length: int
    ) -> None:
        """Add what ended of the first `beams` candidates (B, K, L), with log-probabilities (B, K) and sums of these."""
        beams, new = self.settings.num_beams, length - self.prompt
        counts = ended & (torch.arange(values.shape[1], device=values.device) < beams)
        self.is_any = True
        is_full = self.has_ended.all(dim=1, keepdim=True) & (self.settings.early_stopping is True)
        scores = values / new**self.settings.length_penalty
        for excluded in (is_full, ~self.improves, ~counts):
            scores = scores + NEVER * excluded.float()
        scores = torch.cat([self.scores, scores], dim=1)
        order = scores.topk(beams).indices
        self.scores = rows_at(scores, order)
        self.ids, self.sums = (rows_at(torch.cat(pair, dim=1), order) for pair in ((self.ids, ids), (self.sums, sums)))
        self.lengths = rows_at(torch.cat([self.lengths, torch.full_like(counts, new, dtype=torch.long)], dim=1), order)
        self.has_ended = rows_at(torch.cat([self.has_ended, counts], dim=1), order)

    def may_improve(self, running: torch.Tensor, length: int) -> bool:
        """Whether a source may get a better translation than it has, by the sums (B, beams) of its running beams."""
        settings = self.settings
        if not self.is_any:
            return True
        longest = settings.early_stopping == "never" and settings.length_penalty > 0
        new = (settings.max_length if longest else length) - self.prompt  # the length at which scores would be best
        worst = torch.where(self.has_ended, self.scores.amin(dim=1, keepdim=True), NEVER)
        self.improves = self.improves & (running[:, :1] / new**settings.length_penalty > worst).any(dim=1, keepdim=True)
        self.are_done = ~self.improves[:, 0]  # (B,)
        if settings.early_stopping is True:
            self.are_done |= self.has_ended.all(dim=1)
        return not self.are_done.all()

    def keep(self, sources: torch.Tensor) -> None:
        """Go on with these sources (S,) alone."""
        left = torch.ones_like(self.sources, dtype=torch.bool).index_fill_(0, sources, False)
        self.left.append(tuple(getattr(self, name)[left] for name in ("sources", "ids", "sums", "scores", "lengths")))
        for name in ("sources", "ids", "sums", "scores", "lengths", "has_ended", "improves"):
            setattr(self, name, getattr(self, name)[sources])

    def best(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Ids (B * returned, longest), scores, and sums up to each id."""
        returned, own = self.settings.num_return_sequences, (self.sources, self.ids, self.sums)
        sources, ids, sums, scores, lengths = map(torch.cat, zip(*self.left, (*own, self.scores, self.lengths)))
        order, longest = sources.argsort(), self.prompt + int(lengths[:, :returned].max())
        ids, sums = (each[order, :returned, :longest].flatten(0, 1) for each in (ids, sums))
        return ids, scores[order, :returned].flatten(), sums


def rows_at(values: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """For every source the rows with these indices (B, N): (B, K, ...) -> (B, N, ...)."""
    while indices.dim() < values.dim():
        indices = indices[..., None]
    return values.take_along_dim(indices, dim=1)


def keeps_scores(processor) -> bool:
    """Whether a processor may look at its scores after the step; those of transformers do not."""
    return getattr(processor, "keeps_scores", not type(processor).__module__.startswith("transformers."))


class DecoderState:
    """Sources that were read, and the cache of their targets: one row of each source, one or more of each target.

    `mask` (B, T) is that of target tokens, 1 = token, None = all. `inputs` are further arguments of `forward` with a
    row for each source, such as its mask and a memory. Without a cache all of the target is read at every step. A cache
    that is used after the search, `keeps_cache`, has what the prompt leaves there, and need not have more.
    """

    at_once: int | None = None  # the most sources of a step, where others wait
    words: torch.Tensor | None = None  # (N,) int64: the tokens that are scored, of all V
    is_absent: torch.Tensor | None = None  # (B, N) bool: which of them are not for a source

    def __init__(
        self,
        model,
        encoder_outputs,
        cache: DecodingCache | None,
        mask: torch.Tensor | None = None,
        keeps_cache: bool = True,
        **inputs,
    ):
        self.model, self.encoder_outputs, self.inputs = model, encoder_outputs, inputs
        self.cache, self.mask, self.is_prompt, self.keeps_cache = cache, mask, True, keeps_cache
        self.times = 1  # targets of a source
        self.step = None  # what runs the steps after the prompt; None = not built yet, or `forward` is called

    def read(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (R, N) in float32 of what comes after target ids (R, T); the next ones may take their memory."""
        if self.mask is not None:
            self.mask = nn.functional.pad(self.mask, (0, ids.shape[1] - self.mask.shape[1]), value=1)
        self.start(ids)
        if self.step is not None:
            return self.masked(self.step.logits(ids, self.mask).to(ids.device, torch.float32))
        arguments = self.model.prepare_inputs_for_generation(
            ids,
            ids.shape[1] - cached_length(self.cache),
            cache=self.cache,
            encoder_outputs=self.encoder_outputs,
            decoder_attention_mask=self.mask,
            use_cache=self.cache is not None,
            **self.inputs,
        )
        with packed_products(self.model):
            logits = self.logits(**arguments)
        was_prompt, self.is_prompt = self.is_prompt, False
        if was_prompt and self.cache is not None:
            self.step = decoding_step(self)
        return self.masked(logits.to(ids.device, torch.float32))

    def start(self, prompt: torch.Tensor) -> None:
        """Let the primitives read a prompt (B, T), too, where they can."""
        if self.is_prompt and not self.keeps_cache:
            step = decoding_step(self)
            if prompt.shape[1] == 1 if step is None else step.reads_prompt(prompt):
                self.step, self.is_prompt = step, False

    def logits(self, **arguments) -> torch.Tensor:
        """Logits (R, N) of what comes after the last token, by `forward`."""
        return self.model(**arguments, logits_to_keep=1, return_dict=True).logits[:, -1]

    def output(self) -> tuple[nn.Module, torch.Tensor]:
        """The output layer from states to logits: a projection, and a bias (N,)."""
        return self.model.lm_head, self.model.final_logits_bias[0]

    def masked(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits (R, N), now -inf where a token is not for the source of a row."""
        if self.is_absent is not None:
            logits.view(len(self.is_absent), -1, logits.shape[1]).masked_fill_(self.is_absent[:, None], float("-inf"))
        return logits

    def of_all_words(self, scores: torch.Tensor) -> torch.Tensor:
        """Scores (R, N) as (R, V), -inf where a token is not scored."""
        if self.words is None:
            return scores
        every = scores.new_full((len(scores), self.model.config.vocab_size), float("-inf"))
        return every.index_copy_(1, self.words, scores)

    def repeat(self, times: int) -> None:
        """Repeat every target this number of times, in adjacent rows."""
        self.times *= times
        if self.step is not None:
            self.step.repeat(times)
        elif self.cache is not None:
            self.cache.batch_repeat_interleave(times)
        if self.mask is not None:
            self.mask = self.mask.repeat_interleave(times, dim=0)

    def reorder(self, rows: torch.Tensor) -> None:
        """Targets go on from these rows (R,), each from one of the same source, so that their masks are the same."""
        if self.step is not None:
            self.step.reorder(rows)
        elif self.cache is not None:
            self.cache.reorder_cache(rows)

    def keep(self, sources: torch.Tensor) -> None:
        """Go on with these sources (S,) and their targets alone."""
        targets = (sources[:, None] * self.times + torch.arange(self.times, device=sources.device)).flatten()
        count = len(self.encoder_outputs[0])
        self.encoder_outputs = of_rows(self.encoder_outputs, sources, count)
        self.inputs = of_rows(self.inputs, sources, count)
        if self.mask is not None:
            self.mask = self.mask[targets]
        if self.is_absent is not None:
            self.is_absent = self.is_absent[sources]
        if self.cache is not None:  # one that is used after the search must not change
            self.cache = self.cache.of_rows(sources, targets)
        if self.step is not None:
            self.step.keep(self, sources, targets)


def of_rows(given, rows: torch.Tensor, count: int):
    """Tensors with `count` rows, of these (R,) alone, in mappings and tuples; other objects unchanged."""
    if isinstance(given, Mapping):
        made = {name: of_rows(value, rows, count) for name, value in given.items()}
        return type(given)(**made) if isinstance(given, ModelOutput) else made
    if isinstance(given, tuple):
        return tuple(of_rows(value, rows, count) for value in given)
    has_rows = torch.is_tensor(given) and given.dim() > 0 and len(given) == count
    return given[rows] if has_rows else given


def best_token(scores: torch.Tensor) -> torch.Tensor:
    """`argmax` of scores (R, V), (R,): the first of the largest, or of the NaN ones."""
    best = best_of(scores, 1)
    return scores.argmax(dim=1) if best is None else best[1][:, 0]


def best_continuations(log_probs: torch.Tensor, scores: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`topk` of log-probabilities (B * beams, V) plus the scores of their beams (B, beams), over beams and tokens.

    Returns values and indices into (beams * V), (B, count) each. Where values are equal, their order is that of torch.
    """
    best = best_of(log_probs, count + 1, scores)
    if best is None or best[2]:  # some are equal, or no numbers
        return (log_probs.view(*scores.shape, -1) + scores[..., None]).flatten(1).topk(count)
    return best[0][:, :-1], best[1][:, :-1]
