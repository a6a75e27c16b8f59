"""Strategies of translating documents with models that read and write segments."""

from collections.abc import Callable
from itertools import accumulate, islice, takewhile

from .batch_decoding import Job, Output
from .document_state import CurrentSentence, DocumentState
from .draft_verification import DraftRow
from .forced_prefixes import ForcedPrefixTranslator, Segment
from .segments import chunk_cuts
from .sliding_windows import SlidingTranslator, split_at

READY_BATCHES = 16  # batches of documents whose next sentences are put together by length


class SegmentTranslator(SlidingTranslator, ForcedPrefixTranslator):
    """`sliding`, `sequential`, `chunk_sequential` and `full` for a model that reads segments.

    It writes them whole (`context_sides="both"`), or the current sentence alone (`"source"`). `sliding` is that of Lupo
    et al. (2023), section 2; `full` (FSD) and `sequential` (SD) are those of Herold and Ney (2023), section 3.4.
    """

    @classmethod
    def default_strategy(cls, config) -> str:
        if getattr(config, "view", "window") == "chunk":
            return "full"
        has_context = getattr(config, "past_context", 0) or getattr(config, "future_context", 0)
        return "sliding" if has_context else "sentence"

    @classmethod
    def repaired_strategies(cls, config) -> tuple[str, ...]:
        return () if getattr(config, "context_sides", "both") == "source" else ("sliding", "full")

    @classmethod
    def check_strategy(cls, config, strategy: str) -> None:
        if strategy == "full" and getattr(config, "context_sides", "both") == "source":
            raise ValueError(
                "strategy 'full' needs a model that writes all sentences; this one has context_sides='source': use "
                "'sliding' or 'sentence'."
            )
        if strategy != "chunk_sequential" or getattr(config, "view", "window") != "chunk":
            super().check_strategy(config, strategy)

    def full(self, documents: list[DocumentState]) -> None:
        """FSD: segments that do not overlap, each at once; repaired where the number of separators is not the source's.

        A repair translates the segment again sentence by sentence (see `force_prefixes`).
        """
        waiting = [segment for document in documents for segment in self.segments_that_fit(document)]
        again = []
        while waiting:
            segments, waiting = waiting, []
            jobs = [self.segment_job(*segment) for segment in segments]
            for segment, job, output in zip(segments, jobs, self.decode(jobs)):
                document, first, end = segment
                targets = split_at(output.ids, self.sep)
                if len(targets) == end - first and output.finished:
                    for part, target in zip(document.parts[first:end], targets):
                        part.target = target
                elif self.repairs == "none":
                    self.leave_as_written(document, first, targets, end - first, output)
                elif end - first > 1 and self.is_cut_off(job, output):
                    waiting += self.halves(segment)
                else:
                    remedy = "translated again sentence by sentence"
                    for index in range(first, end):
                        if output.finished:
                            document.report_separators(index, end - first, len(targets), remedy)
                        self.check_end(CurrentSentence(document, index), output, remedy=remedy)
                    again.append(segment)
        self.force_prefixes(again)

    def segments_that_fit(self, document: DocumentState) -> list[Segment]:
        """The segments of a document, those whose source is longer than learned positions reach in halves."""
        waiting = [Segment(document, *ends) for ends in self.segments(document)]
        found = []
        while waiting:
            segment = waiting.pop(0)
            source = len(self.segment_job(*segment).source)
            if segment.end - segment.first == 1 or self.fits(source, 0, source):
                found.append(segment)
            else:
                waiting = self.halves(segment) + waiting
        return found

    def halves(self, segment: Segment) -> list[Segment]:
        """A segment as two, which is reported for all of its sentences."""
        document, first, end = segment
        middle = (first + end) // 2
        pair = [Segment(document, first, middle), Segment(document, middle, end)]
        for half in pair:
            for index in range(half.first, half.end):
                document.report_positions(index, half.end - half.first, end - first, self.positions)
        return pair

    def leave_as_written(
        self, document: DocumentState, first: int, targets: list[list[int]], size: int, output: Output
    ) -> None:
        """Give `size` parts the sentences written for them, in order: too few leave some without, the last has more."""
        for number, part in enumerate(document.parts[first : first + size]):
            part.lines = targets[number:] if number == size - 1 else targets[number : number + 1]
            if len(targets) != size:
                document.report_misaligned(first + number, size, len(targets))
        self.check_end(CurrentSentence(document, first + size - 1), output, remedy="left as written")

    def sequential(self, documents: list[DocumentState]) -> None:
        """SD: argmax p(E_i | E^_{i-k}^{i-1}, F_{i-k}^i), sentence by sentence, earlier translations as forced prefix.

        The next sentences of `batch_size` documents are translated together, see `sentences_together`; in greedy search
        one comes in as soon as others have ended. All of a window is read anew: a further source sentence changes the
        states of all others in the encoder, and so those of the prefix in the decoder.
        """
        waiting = iter(sorted(documents, key=lambda document: -len(document.parts)))
        ready: list[Job] = []  # the next sentence of each document

        def next_jobs(size: int) -> list[Job]:
            nonlocal ready
            new = islice(waiting, READY_BATCHES * self.batch_size - len(ready))
            ready += [self.current_job(CurrentSentence(document, 0)) for document in new if document.parts]
            batch, ready = self.sentences_together(ready, size)
            return batch

        def take(job: Job, output: Output) -> None:
            document, index = job.current
            job.current.part.target = output.ids
            self.check_end(job.current, output)
            if index + 1 < len(document.parts):
                ready.append(self.current_job(CurrentSentence(document, index + 1)))

        is_plain = self.drafts and self.is_plain_greedy_search()
        if is_plain and self.batch_tokens is None:
            return self.write_jobs(next_jobs, take)
        while batch := next_jobs(self.batch_size):
            drafts = [[]] * len(batch) if is_plain else None
            for job, output in zip(batch, self.decode(batch, stop_at_sep=True, drafts=drafts)):
                take(job, output)

    def write_jobs(self, next_jobs: Callable[[int], list[Job]], take: Callable[[Job, Output], None]) -> None:
        """Greedy search, in which a job takes the place of one that has ended, and is for `take`."""
        rows: list[DraftRow] = []

        def more(places: int) -> list[DraftRow]:
            nonlocal rows
            for row in rows:
                if row.is_finished:
                    take(row.job, row.output())
            new = [self.draft_row(job, stop_at_sep=True) for job in next_jobs(places)]
            rows = [row for row in rows if not row.is_finished] + new
            return new

        self.write(more, self.batch_size)

    def sentences_together(self, ready: list[Job], size: int) -> tuple[list[Job], list[Job]]:
        """A batch of the next sentences of documents, and the others.

        With that of the document that has most left, so that no document is left alone at the end, come those of about
        its length, since a batch takes as long as its longest sentence. Windows count half: they are read in one pass.
        """
        if not ready:
            return [], []
        first = max(ready, key=lambda job: len(job.current.document.parts) - job.current.index)

        def distance(job: Job) -> int:
            return 2 * abs(job.length - first.length) + abs(len(job.source) - len(first.source))

        ready = sorted(ready, key=distance)
        return ready[:size], ready[size:]

    def current_job(self, sentence: CurrentSentence) -> Job:
        """What `sequential` translates: the largest window that learned positions reach for, prefix included."""
        past, future = self.past_sentences(*sentence), self.future
        *window, job = self.largest_window(sentence, past, future, self.prefixed_job)
        self.report_fewer(*window, past, future)
        return job

    def prefixed_job(self, document: DocumentState, index: int, past: int, future: int) -> Job:
        """The window of the part at `index`, with the translations before it as prefix where the model writes them."""
        job = self.window_job(document, index, past, future)
        job.length = len(document.parts[index].ids)
        if self.sides == "both":
            for part in document.parts[index - past : index]:
                job.prefix += [*part.target, self.sep]
        return job

    def past_sentences(self, document: DocumentState, index: int) -> int:
        """k of the paper: sentences before the part at `index` that `sequential` reads.

        A model of chunks reads, unless asked otherwise, as many as fit into `chunk_tokens` source tokens together with
        the current one, a separator counted for each, as `chunk_cuts` counts.
        """
        if self.past_context is not None or getattr(self.config, "view", "window") != "chunk":
            return min(index, self.past)
        tokens = accumulate(len(part.ids) + 1 for part in document.parts[index::-1])  # current sentence, one more, ...
        fitting = sum(1 for _ in takewhile(lambda count: count <= self.config.chunk_tokens, tokens))
        return max(0, fitting - 1)

    def chunk_sequential(self, documents: list[DocumentState]) -> None:
        """Sentence by sentence inside the chunks of `full`, whose source, future sentences included, is encoded once.

        A departure from SD of Herold and Ney (2023), which it is cheaper than.
        """
        self.force_prefixes([segment for document in documents for segment in self.segments_that_fit(document)])

    def segments(self, document: DocumentState) -> list[tuple[int, int]]:
        """First part and end of segments that do not overlap: windows side by side, or chunks of about equal length."""
        if getattr(self.config, "view", "window") == "chunk":
            cuts = chunk_cuts([len(part.ids) + 1 for part in document.parts], self.config.chunk_tokens)
            return list(zip(cuts, cuts[1:]))
        size, step = len(document.parts), self.past + 1 + self.future
        return [(first, min(first + step, size)) for first in range(0, size, step)]
