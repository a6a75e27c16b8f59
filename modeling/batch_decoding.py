"""Decoding of translation jobs in batches: padding, limits of tokens for each row, a target prefix that grows."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

from .document_state import CurrentSentence, DocumentState


@dataclass
class Job:
    """Source segment, forced target prefix, sentences in the source, source tokens of what is to be generated.

    `current` is the sentence that it is for, the first one of a segment that is translated whole.
    """

    source: list[int]
    prefix: list[int]
    sentences: int
    length: int
    current: CurrentSentence


@dataclass
class Output:
    """Generated ids without the end token, and whether one was generated."""

    ids: list[int]
    finished: bool


class BatchDecoder:
    """Runs `model.generate` on jobs, with generation settings as `generate` takes them.

    `generate_kwargs` may hold a `generation_config`; other settings in it come before those of the configuration.
    """

    def __init__(self, model, batch_size: int, generate_kwargs: dict):
        self.model, self.config, self.batch_size = model, model.config, batch_size
        generate_kwargs = dict(generate_kwargs)
        self.settings = copy.deepcopy(generate_kwargs.pop("generation_config", None) or model.generation_config)
        self.generate_kwargs = self.settings.update(**generate_kwargs)  # what no configuration holds
        self.settings.update(return_dict_in_generate=False, num_return_sequences=1)
        check_settings(self.settings)
        self.sep, self.pad = getattr(self.config, "sep_token_id", None), self.config.pad_token_id
        eos, start = model.generation_config.eos_token_id, self.settings.decoder_start_token_id
        self.eos = eos[0] if isinstance(eos, list) else eos
        self.start = self.config.decoder_start_token_id if start is None else start

    def segment_job(self, document: DocumentState, first: int, end: int, padding: int = 0) -> Job:
        """Source segment of the parts first..end, and behind it `padding` empty sentences."""
        source: list[int] = []
        for part in document.parts[first:end]:
            source += [*part.ids, self.sep]
        source = source[:-1] + [self.sep] * padding + [self.eos]
        prefix = [self.config.bod_token_id] if getattr(self.config, "use_bod", False) and first == 0 else []
        return Job(prefix + source, list(prefix), end - first + padding, len(source), CurrentSentence(document, first))

    def decode(self, jobs: list[Job], stop_at_sep: bool = False) -> list[Output]:
        """Outputs of independent jobs, in their order; longest together, in batches."""
        outputs: list[Output] = [Output([], True)] * len(jobs)
        order = sorted(range(len(jobs)), key=lambda row: -len(jobs[row].source))
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            batch = [jobs[row] for row in rows]
            inputs = self.source_inputs(batch) | self.prefix_inputs(batch)
            for row, output in zip(rows, self.generate(inputs, batch, stop_at_sep)):
                outputs[row] = output
        return outputs

    def source_inputs(self, jobs: list[Job]) -> dict[str, torch.Tensor]:
        """`input_ids` and `attention_mask` (B, S) of the jobs' sources."""
        ids, mask = pad_rows([job.source for job in jobs], self.pad, self.model.device)
        return {"input_ids": ids, "attention_mask": mask}

    def prefix_inputs(self, jobs: list[Job]) -> dict[str, torch.Tensor]:
        """`decoder_input_ids` and `decoder_attention_mask` (B, T) of the jobs' prefixes, padded on the left, if any."""
        if not any(job.prefix for job in jobs):
            return {}
        prompts = [[self.start, *job.prefix] for job in jobs]
        ids, mask = pad_rows(prompts, self.pad, self.model.device, side="left")
        return {"decoder_input_ids": ids, "decoder_attention_mask": mask}

    def generate(self, inputs: dict, jobs: Sequence[Job], stop_at_sep: bool = False, **settings) -> list[Output]:
        """Outputs of one batch of `generate` inputs, a row for each job."""
        ends = [self.eos, self.sep] if stop_at_sep else [self.eos]
        prompt = inputs["decoder_input_ids"].shape[1] if "decoder_input_ids" in inputs else 1
        limits = self.token_limits([job.length for job in jobs], prompt)
        config = copy.deepcopy(self.settings)
        # one token more than any row gets: an end that settings force at the last one would hide what is cut off
        config.update(eos_token_id=ends, max_new_tokens=max(limits) + 1, **settings)
        others = dict(self.generate_kwargs)
        criteria = StoppingCriteriaList([*(others.pop("stopping_criteria", None) or []), RowLimits(limits, prompt)])
        name = self.config.name_or_path or type(self.model).__name__
        finite = FiniteScores(name, prompt, [job.current for job in jobs])
        processors = LogitsProcessorList([*(others.pop("logits_processor", None) or []), finite])
        sequences = self.model.generate(
            **inputs, **others, generation_config=config, stopping_criteria=criteria, logits_processor=processors
        )
        outputs = []
        for ids, limit in zip(sequences[:, prompt:].tolist(), limits):
            ids = ids[:limit]  # behind it is padding, for which beam search may take the end token
            end = next((index for index, token in enumerate(ids) if token in ends), None)
            outputs.append(Output(ids[:end], end is not None))
        return outputs

    def token_limits(self, lengths: list[int], prompt: int) -> list[int]:
        """New tokens that each row may get: `max_new_tokens`, or twice its source tokens and 32 more."""
        asked = self.settings.max_new_tokens
        limits = [2 * length + 32 if asked is None else asked for length in lengths]
        if getattr(self.config, "position_type", None) == "learned":
            limits = [max(1, min(limit, self.config.max_position_embeddings - prompt)) for limit in limits]
        return limits


def check_settings(settings) -> None:
    """ValueError for generation settings with which there is no search."""
    for name in ("num_beams", "max_new_tokens"):
        value = getattr(settings, name)
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ValueError(f"{name} must be a whole number >= 1, got {value!r}.")
    penalty = settings.length_penalty
    if penalty is not None and (not isinstance(penalty, int | float) or not math.isfinite(penalty)):
        raise ValueError(f"length_penalty must be a finite number, got {penalty!r}.")


class NonFiniteScoresError(ValueError):
    """Scores of the next token that are no numbers, which ends the call: `document`, `sentence` and `step` say where.

    `document` and `sentence` are counted from 0 in `translate_documents`; of a stream they are None and 0. `step` is
    counted from 1.
    """

    def __init__(self, model: str, document: int | None, sentence: int, step: int):
        super().__init__(model, document, sentence, step)
        self.model, self.document, self.sentence, self.step = model, document, sentence, step

    def __str__(self) -> str:
        where = "" if self.document is None else f"document {self.document}, sentence {self.sentence}: "
        return (
            f"{self.model}: {where}scores of the next token are not finite (step {self.step}): weights are damaged or "
            "too large for their dtype, or settings of generation forbid every token; check them, or use float32"
        )


class FiniteScores(LogitsProcessor):
    """Ends a search whose scores are no numbers, which else is an empty or meaningless translation.

    `name` is that of the model, `sentences` are those of the rows. Raises `NonFiniteScoresError`.
    """

    def __init__(self, name: str, prompt: int, sentences: Sequence[CurrentSentence]):
        self.name, self.prompt, self.sentences = name, prompt, sentences

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        best = scores.amax(dim=-1)  # (rows * beams,); nan where any score is
        finite = torch.isfinite(best)
        if not finite.all():
            beams = len(best) // len(self.sentences)
            sentence = self.sentences[int(finite.logical_not().nonzero()[0]) // beams]
            step = input_ids.shape[1] - self.prompt + 1
            raise NonFiniteScoresError(self.name, sentence.document.number, sentence.part.sentence, step)
        return scores


class RowLimits(StoppingCriteria):
    """Ends each row (and all its beams) after its own number of new tokens, so that no other row changes it."""

    def __init__(self, limits: list[int], prompt: int):
        self.ends = torch.tensor(limits) + prompt

    def __call__(self, input_ids: torch.Tensor, scores, **kwargs) -> torch.Tensor:
        ends = self.ends.to(input_ids.device).repeat_interleave(input_ids.shape[0] // len(self.ends))
        return input_ids.shape[1] >= ends


class PrefixState:
    """Encoder states and the decoder's cache of a growing target prefix, rows = parts of documents.

    New prefix tokens are appended as columns, padded on the left inside their columns; the mask leaves the holes out,
    and positions count tokens only, so rows of different length keep their cache without being moved.
    """

    def __init__(self, decoder: BatchDecoder, jobs: list[Job]):
        self.model, self.pad = decoder.model, decoder.pad
        source = decoder.source_inputs(jobs)
        with torch.no_grad():
            self.encoder_outputs = self.model.get_encoder()(**source, return_dict=True)
        self.source_mask = source["attention_mask"]
        prompts = [[decoder.start, *job.prefix] for job in jobs]
        # padded by the start token, or generate puts one more in front
        self.ids, self.mask = pad_rows(prompts, decoder.start, self.model.device, side="left")
        self.cache = None

    def inputs(self) -> dict:
        """What `generate` takes to go on."""
        self.cache = self.cache if self.cache is not None else self.model.new_cache()
        return {
            "encoder_outputs": self.encoder_outputs,
            "attention_mask": self.source_mask,
            "decoder_input_ids": self.ids,
            "decoder_attention_mask": self.mask,
            "past_key_values": self.cache,
        }

    def extend(self, tokens: list[list[int]]) -> None:
        """Append the chosen sentences; of the cache only the prompt stays, which all beams of a row share."""
        self.cache.keep(self.ids.shape[0], self.ids.shape[1])
        ids, mask = pad_rows(tokens, self.pad, self.ids.device, side="left")
        self.ids, self.mask = torch.cat([self.ids, ids], dim=1), torch.cat([self.mask, mask], dim=1)

    def select(self, rows: list[int]) -> None:
        """Keep these rows."""
        if len(rows) == self.ids.shape[0]:
            return
        index = torch.tensor(rows, device=self.ids.device)
        self.ids, self.mask, self.source_mask = self.ids[index], self.mask[index], self.source_mask[index]
        for name, value in self.encoder_outputs.items():
            if torch.is_tensor(value):
                self.encoder_outputs[name] = value[index]
        self.cache.batch_select_indices(index)


def pad_rows(rows: list[list[int]], pad: int, device, side: str = "right") -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids of each row -> ids (B, longest), padded on the `right` or `left`, and their mask, 1 = token."""
    width, ids, mask = max(map(len, rows)), [], []
    for row in rows:
        padding, absent = [pad] * (width - len(row)), [0] * (width - len(row))
        present = [1] * len(row)
        ids.append([*row, *padding] if side == "right" else [*padding, *row])
        mask.append([*present, *absent] if side == "right" else [*absent, *present])
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)
