"""Strategies decoded by an engine that takes sources and forced prompts, as lists of token ids."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from hf_docmt.modeling.strategies import Segment, SegmentStrategies, rest_of
from hf_docmt.modeling.translation_jobs import CurrentSentence, Job, Output


class PromptedTranslator(SegmentStrategies):
    """The strategies of models that read segments, decoded by `search` instead of `generate`.

    Limits of tokens, forced prefixes and repairs are those of `generate`.
    """

    def inference(self) -> AbstractContextManager:
        return nullcontext()

    def decode(self, jobs: list[Job], stop_at_sep: bool = False) -> list[Output]:
        """Outputs of independent jobs, in their order; longest together, in batches."""
        ends = self.ends_of(stop_at_sep)
        outputs: list[Output] = [Output([], True)] * len(jobs)
        for rows in self.batches(range(len(jobs)), lambda row: len(jobs[row].source), self.waiting_tokens(jobs)):
            at_once = self.rows_of_batch(len(jobs[rows[0]].source))
            for row, output in zip(rows, self.search([jobs[row] for row in rows], ends, at_once)):
                outputs[row] = output
        return outputs

    def search(self, jobs: Sequence[Job], ends: list[int], at_once: int) -> list[Output]:
        """Outputs of one batch; a step has at most `at_once` sources. Each row ends after its own number of tokens."""
        raise NotImplementedError

    def force_prefixes_together(self, group: Sequence[Segment]) -> list[Segment]:
        """As with `generate`, except that the source is encoded for every sentence."""
        jobs = [self.segment_job(*segment) for segment in group]
        for step in range(group[0].end - group[0].first):
            rows = [row for row, segment in enumerate(group) if segment.first + step < segment.end]
            group, jobs = [group[row] for row in rows], [jobs[row] for row in rows]
            for segment, job in zip(group, jobs):
                job.current = CurrentSentence(segment.document, segment.first + step)
                job.length = len(job.current.part.ids)
            if step and len(group) == 1 and not self.fits(0, len(jobs[0].prefix), jobs[0].length):
                return [rest_of(self, group[0], step)]
            known = jobs[0].current.part  # of the only row, if it is known
            outputs = [Output(known.target, True)] if known.is_known else self.decode(jobs, stop_at_sep=True)
            for job, output in zip(jobs, outputs):
                if not job.current.part.is_known:
                    job.current.part.take(output)
                job.prefix += [*output.ids, self.sep]
                self.check_end(job.current, output)
        return []
