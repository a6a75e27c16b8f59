"""The strategies of models that read segments, with CTranslate2 in the place of `generate`."""

from collections.abc import Sequence
from typing import Any

from transformers import GenerationConfig

from hf_docmt.modeling.decoding import Job, Output
from hf_docmt.modeling.document_state import CurrentSentence
from hf_docmt.modeling.search_settings import HARMLESS, READ, RECORDED, effective_settings
from hf_docmt.modeling.strategies import Segment, SegmentTranslator, rest_of

SUPPORTED = {"repetition_penalty": 1.0, "no_repeat_ngram_size": 0, "bad_words_ids": None}  # values that ask for nothing
WITHOUT_EFFECT = ("use_cache", "cache_implementation", "renormalize_logits")  # scores are renormalized always


class CTranslate2Translator(SegmentTranslator):
    """Decodes jobs with a `CTranslate2Model`: limits of tokens, forced prefixes and repairs are those of `generate`.

    Departures of CTranslate2: beam search ends when as many translations as beams are finished (`early_stopping=True`
    in transformers), and behind a forced prefix only its first beam may end at once; the prefix is read token by token,
    in `chunk_sequential` for every sentence anew. Greedy search gives what `generate` gives.
    """

    drafts = False  # CTranslate2 has no search with drafts

    def __init__(self, *arguments):
        super().__init__(*arguments)
        check_search(self.settings, self.generate_kwargs)
        self.positions = self.config.max_position_embeddings  # of either side, sines included

    def decode(self, jobs: list[Job], stop_at_sep: bool = False, drafts: object = None) -> list[Output]:
        """Outputs of independent jobs, in their order; longest together, in batches."""
        ends = self.ends_of(stop_at_sep)
        outputs: list[Output] = [Output([], True)] * len(jobs)
        for rows in self.batches(range(len(jobs)), lambda row: len(jobs[row].source)):
            for row, output in zip(rows, self.search([jobs[row] for row in rows], ends)):
                outputs[row] = output
        return outputs

    def search(self, jobs: Sequence[Job], ends: list[int]) -> list[Output]:
        """Outputs of one batch. Each row ends after its own number of tokens, so that no other row changes it."""
        prompts = [[self.start, *job.prefix] for job in jobs]
        limits = [self.token_limits([job.length], len(prompt))[0] for job, prompt in zip(jobs, prompts)]
        longest = max(len(prompt) - 1 + limit for prompt, limit in zip(prompts, limits))
        found = self.best(jobs, prompts, ends, longest)
        outputs = []
        for job, prompt, limit, ids in zip(jobs, prompts, limits, found):
            if len(ids) > limit and self.beams > 1:  # it took more than it gets
                (ids,) = self.best([job], [prompt], ends, len(prompt) - 1 + limit)
            is_finished = bool(ids) and ids[-1] in ends and len(ids) <= limit
            outputs.append(Output(ids[:-1] if is_finished else ids[:limit], is_finished))
        return outputs

    @property
    def beams(self) -> int:
        return self.settings.num_beams or 1

    @property
    def length_penalty(self) -> float:
        return 1.0 if self.settings.length_penalty is None else self.settings.length_penalty

    def best(self, jobs: Sequence[Job], prompts: list[list[int]], ends: list[int], length: int) -> list[list[int]]:
        """The best translation of each job behind its prompt, with its end token where it has one.

        CTranslate2 divides the score of a translation by its length with the prompt; as in transformers it is the
        length without it here, by which the finished translations are compared again.
        """
        has_prompt = any(len(prompt) > 1 for prompt in prompts)
        compared = self.beams > 1 and has_prompt and self.length_penalty != 0
        found = self.model.translate(
            [job.source for job in jobs],
            prompts,
            end_ids=ends,
            max_decoding_length=length,
            beam_size=self.beams,
            length_penalty=self.length_penalty,
            num_hypotheses=self.beams if compared else 1,
            return_scores=compared,
            **self.own_settings(),
        )
        best = []
        for prompt, result in zip(prompts, found):
            forced = len(prompt) - 1
            ids = result.ids[0]
            if compared:
                scores = [self.score(score, one, forced) for score, one in zip(result.scores, result.ids)]
                ids = result.ids[scores.index(max(scores))]
            best.append(ids[forced:])
        return best

    def score(self, score: float, ids: Sequence[int], forced: int) -> float:
        """A score divided by the length of ids behind so many forced ones, from one divided by their whole length."""
        return score * len(ids) ** self.length_penalty / (len(ids) - forced) ** self.length_penalty

    def own_settings(self) -> dict[str, Any]:
        """Arguments of CTranslate2 for further settings of generation."""
        given = {name: getattr(self.settings, name) for name in SUPPORTED}
        arguments = {name: value for name, value in given.items() if value not in (None, SUPPORTED[name])}
        if "bad_words_ids" in arguments:
            arguments["suppressed_ids"] = arguments.pop("bad_words_ids")
        return arguments

    def force_prefixes_together(self, group: Sequence[Segment]) -> list[Segment]:
        """As in the base class, but that the source is encoded for every sentence."""
        jobs = [self.segment_job(*segment) for segment in group]
        for step in range(group[0].end - group[0].first):
            rows = [row for row, segment in enumerate(group) if segment.first + step < segment.end]
            group, jobs = [group[row] for row in rows], [jobs[row] for row in rows]
            for segment, job in zip(group, jobs):
                job.current = CurrentSentence(segment.document, segment.first + step)
                job.length = len(job.current.part.ids)
            if step and len(group) == 1 and not self.fits(0, len(jobs[0].prefix), jobs[0].length):
                return [rest_of(self, group[0], step)]
            for job, output in zip(jobs, self.decode(jobs, stop_at_sep=True)):
                job.current.part.target = output.ids
                job.prefix += [*output.ids, self.sep]
                self.check_end(job.current, output)
        return []


def check_search(settings: GenerationConfig, arguments: dict) -> None:
    """ValueError for settings of generation that CTranslate2 does not have, and for arguments that are objects."""
    others = effective_settings(settings, {*READ, *HARMLESS, *RECORDED, *SUPPORTED, *WITHOUT_EFFECT})
    for name in [*others, *arguments]:
        value = others[name] if name in others else type(arguments[name]).__name__
        raise ValueError(
            f"{name}={value!r} is a setting of generation that engine ctranslate2 does not have; leave it out, or "
            "translate without this engine"
        )
