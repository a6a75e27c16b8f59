"""The decoder of all strategies: jobs of token ids in batches of `generate`, each row with its own limit of tokens."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from transformers import LogitsProcessorList, StoppingCriteriaList

from .generation_mixin import check_untested_version, inference
from .row_processors import FiniteScores, ForcedBeginnings, RowLimits, pad_rows
from .translation_jobs import BaseTranslator, Job, Output, model_name


class Translator(BaseTranslator):
    """Decodes jobs by `model.generate`."""

    searches: dict | None = None  # of an engine, by the tokens that end them; None = weights may change in between

    @contextmanager
    def inference(self) -> Iterator[None]:
        """Scope of a translation: weights that do not change, and no dropout."""
        check_untested_version(self.model)
        with inference(self.model):
            self.searches = {} if type(self).generate is Translator.generate else None
            try:
                yield
            finally:
                self.searches = None

    def decode(self, jobs: list[Job], stop_at_sep: bool = False) -> list[Output]:
        """Outputs of independent jobs, in their order; longest together in batches."""
        outputs: list[Output] = [Output([], True)] * len(jobs)
        for rows in self.batches(range(len(jobs)), lambda row: len(jobs[row].source), self.waiting_tokens(jobs)):
            most = self.rows_of_batch(len(jobs[rows[0]].source))
            settings = {"sources_at_once": most} if len(rows) > most else {}
            for together in self.rows_with_room(rows, jobs):
                batch = [jobs[row] for row in together]
                if len(batch) == 1 and (output := self.search_alone(batch[0], self.ends_of(stop_at_sep))):
                    outputs[together[0]] = output
                    continue
                inputs = self.source_inputs(batch) | self.prefix_inputs(batch) | settings
                for row, output in zip(together, self.generate(inputs, batch, stop_at_sep)):
                    outputs[row] = output
        return outputs

    def search_alone(self, job: Job, ends: list[int]) -> Output | None:
        """The output of a lone job by a search of an engine, which is kept for the next one; None: by `generate`."""
        is_other = self.keeps_candidates or self.format.target_before or job.current.part.beginning
        if self.searches is None or is_other:
            return None
        if (key := tuple(ends)) not in self.searches:
            config, engine = copy.copy(self.settings), getattr(self.model, "engine", None)
            config.eos_token_id, arguments = ends, (self.generate_kwargs, self.keeps_scores)
            self.searches[key] = engine and engine.lone_search(self.model, config, *arguments)
        prompt, search = [self.start, *job.prefix], self.searches[key]
        found = search and search(job.source, prompt, *self.token_limits([job.length], len(prompt)))
        if not found:
            return None
        finished = found.ids[-1] in ends
        return Output(found.ids[: len(found.ids) - finished], finished, found.sums)

    def waiting_tokens(self, jobs: list[Job]) -> int:
        """As in the base class, where the model has an engine."""
        engine = getattr(self.model, "engine", None)
        is_plain = not self.format.target_before and not any(job.current.part.beginning for job in jobs)
        if len(jobs) < 2 or not is_plain or engine is None:
            return 0
        return engine.waiting_tokens(self.model, self.settings, self.generate_kwargs)

    def rows_with_room(self, rows: list[int], jobs: list[Job]) -> list[list[int]]:
        """A batch, or row by row where a long prefix leaves too few positions to another; without a prefix apart."""
        with_prefix = [row for row in rows if self.has_prefix(jobs[row])]
        if 0 < len(with_prefix) < len(rows):
            without = [row for row in rows if not self.has_prefix(jobs[row])]
            return self.rows_with_room(with_prefix, jobs) + self.rows_with_room(without, jobs)
        prompts = [1 + len(jobs[row].prefix) for row in rows]
        limits = [min(self.wanted(jobs[row].length), self.positions - prompt) for row, prompt in zip(rows, prompts)]
        return [rows] if max(prompts) + max(limits) <= self.positions else [[row] for row in rows]

    def source_inputs(self, jobs: Sequence[Job]) -> dict[str, torch.Tensor]:
        """`input_ids` and `attention_mask` (B, S) of the jobs' sources."""
        ids, mask = pad_rows([job.source for job in jobs], self.pad, self.device)
        return {"input_ids": ids, "attention_mask": mask}

    def prefix_inputs(self, jobs: list[Job]) -> dict[str, torch.Tensor]:
        """`decoder_input_ids` and `decoder_attention_mask` (B, T) of the jobs' prefixes, padded on the left, if any."""
        if not any(map(self.has_prefix, jobs)):
            return {}
        prompts = [[self.start, *job.prefix] for job in jobs]
        ids, mask = pad_rows(prompts, self.pad, self.device, side="left")
        return {"decoder_input_ids": ids, "decoder_attention_mask": mask}

    def has_prefix(self, job: Job) -> bool:
        """Whether the translation has a longer prefix than the first token that `generate` forces, as the family does.

        A token that ends translations cannot be forced: they would end with it.
        """
        is_forced = job.prefix == self.format.target_before[:1] and not set(job.prefix).intersection(self.ends)
        return bool(job.prefix) and not is_forced

    def generate(self, inputs: dict, jobs: Sequence[Job], stop_at_sep: bool = False, **settings) -> list[Output]:
        """Outputs of one batch of `generate` inputs, a row for each job."""
        ends = self.ends_of(stop_at_sep)
        prompt = inputs["decoder_input_ids"].shape[1] if "decoder_input_ids" in inputs else 1
        config = copy.copy(self.settings)  # whose values are replaced, not changed
        forced = [] if "decoder_input_ids" in inputs else self.format.target_before
        if forced:
            config.forced_bos_token_id = forced[0]
        before = prompt + len(forced)
        limits = self.token_limits([job.length for job in jobs], before)
        # one token more than any row gets: an end that settings force at the last one would hide what is cut off
        config.update(eos_token_id=ends, max_new_tokens=len(forced) + max(limits) + 1, max_length=None, **settings)
        candidates = self.settings.num_beams if self.keeps_candidates else 1
        config.num_return_sequences = candidates
        others = dict(self.generate_kwargs)
        criteria = StoppingCriteriaList([*(others.pop("stopping_criteria", None) or []), RowLimits(limits, before)])
        finite = FiniteScores(model_name(self.model), before, [job.current for job in jobs])
        processors = LogitsProcessorList([*(others.pop("logits_processor", None) or []), finite])
        beginnings = [self.beginning_of(job, stop_at_sep) for job in jobs]
        if any(beginnings):
            processors.append(ForcedBeginnings(beginnings, before, ends))
        inputs = dict.fromkeys(getattr(self.model, "context_arguments", ())) | inputs  # none, on purpose
        others |= {"return_log_probabilities": True} if self.keeps_scores else {}
        sequences = self.model.generate(
            **inputs, **others, generation_config=config, stopping_criteria=criteria, logits_processor=processors
        )
        sequences, sums = sequences if isinstance(sequences, tuple) else (sequences, None)
        sums = None if sums is None else sums[:, before - 1 :].tolist()
        if len(sequences) != candidates * len(jobs):
            raise ValueError(f"{candidates} translations were requested, but this model returns one: request one.")
        outputs = []
        for row, ids in enumerate(sequences[:, before:].tolist()):
            ids = ids[: limits[row // candidates]]  # after it is padding, which beam search may fill with an end token
            end = next((index for index, token in enumerate(ids) if token in ends), None)
            outputs.append(Output(ids[:end], end is not None, sums[row][: len(ids) + 1] if sums else ()))
        if self.keeps_candidates:
            for number, job in enumerate(jobs):
                self.keep_candidates(job, outputs[number * candidates :][:candidates], stop_at_sep)
        return outputs[::candidates]

    @property
    def device(self) -> torch.device:
        """The device of inputs: the model's, or the one where accelerate runs an offloaded model."""
        device = torch.device(self.model.device)
        if device.type != "meta":
            return device
        place = getattr(getattr(self.model, "_hf_hook", None), "execution_device", None)  # 0 is a GPU
        return torch.device("cpu" if place is None else place)
