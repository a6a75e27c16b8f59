"""The strategies of models that read segments: functions of a translator and of documents, which get their targets.

`sliding` is of Lupo et al. (2023), section 2; `sequential` (SD) and `full` (FSD) of Herold and Ney (2023), section 3.4.
"""

from collections.abc import Sequence
from itertools import accumulate, islice, pairwise, takewhile, zip_longest
from typing import NamedTuple

from .sequence_format import chunk_cuts
from .translation_jobs import (
    BaseTranslator,
    CurrentSentence,
    DocumentState,
    Job,
    Output,
    SentencePart,
    all_sentences,
    is_of_chunks,
    split_at,
)

READY_BATCHES = 16  # batches of documents whose next sentences are put together by length


class Segment(NamedTuple):
    """Parts of a document that are read together, from `first` to before `end`."""

    document: DocumentState
    first: int
    end: int

    @property
    def parts(self) -> list[SentencePart]:
        return self.document.parts[self.first : self.end]

    @property
    def has_islands(self) -> bool:
        """Whether known sentences follow one to translate."""
        known = [part.is_known for part in self.parts]
        return any(known[known.index(False) :])

    def behind_pairs(self) -> "Segment":
        """With the pairs of the context of its sentences, each once, as its first parts."""
        pairs: list[SentencePart] = []
        for pair in (pair for part in self.parts for pair in part.context):
            pairs += [pair] if all((pair.ids, pair.target) != (other.ids, other.target) for other in pairs) else []
        if not pairs:
            return self
        document, parts = self.document, [*pairs, *self.parts]
        shown = DocumentState(document.size, parts, document.repairs, document.number, is_opened=self.first == 0)
        return Segment(shown, 0, len(parts))


# Strategy `sliding`


def sliding(translator: "SegmentStrategies", documents: list[DocumentState]) -> None:
    """Every window whole, of which the current sentence is kept; what is known from its start on is forced."""
    translator.slide(all_sentences(documents))


def slide(translator: "SegmentStrategies", sentences: Sequence[CurrentSentence]) -> None:
    """Strategy `sliding` for these sentences; one alone where its window has another number of separators."""
    is_repaired, again = writes_context(translator) and translator.repairs == "all", []

    def make_job(document: DocumentState, index: int, past: int, future: int) -> Job:
        job = translator.window_job(document, index, past, future)
        force_known(translator, job, document.parts[index - past : index])
        return job

    shown = [behind_pairs(translator, sentence) for sentence in sentences]
    waiting = [(sentence, min(translator.past, sentence.index), translator.future) for sentence in shown]
    while waiting:
        jobs = [largest_window(translator, *window, make_job) for window in waiting]
        waiting = []
        for job, output in zip(jobs, translator.decode(jobs)):
            if is_repaired and job.past + job.future and translator.is_cut_off(job, output):
                waiting.append((job.current, *fewer(job.past, job.future)))
                continue
            report_fewer(translator, job, min(translator.past, job.current.index), translator.future)
            if not take_current(translator, job, output):
                again.append(job.current)
    translator.translate_alone(again)


def force_known(translator: "SegmentStrategies", job: Job, parts: Sequence[SentencePart]) -> None:
    """Put the translations of the first of these sentences that are known into the prefix of a job."""
    for part in takewhile(lambda part: part.is_known, parts if translator.sides == "both" else ()):
        job.prefix += [*part.target, translator.sep]
        job.length -= len(part.ids) + 1
        job.forced += 1


def behind_pairs(translator: "SegmentStrategies", sentence: CurrentSentence) -> CurrentSentence:
    """A sentence in a document where the pairs of its context replace the farthest previous sentences."""
    document, index = sentence
    if not (pairs := sentence.part.context):
        return sentence
    start = index - past_sentences(translator, *sentence)
    near = [*document.parts[start:index], *pairs, sentence.part]
    reach = past_sentences(translator, DocumentState(0, near), len(near) - 1)
    start = max(start, index - max(0, reach - len(pairs)))
    parts = [*pairs[max(0, len(pairs) - reach) :], *document.parts[start:index]]
    rest = document.parts[index : index + 1 + translator.future]
    shown = DocumentState(document.size, [*parts, *rest], document.repairs, document.number, is_opened=start == 0)
    return CurrentSentence(shown, len(parts))


def writes_context(translator: "SegmentStrategies") -> bool:
    """Whether a window's translation has other sentences than the current one."""
    return translator.sides != "source" and (translator.past > 0 or translator.future > 0)


def take_current(translator: "SegmentStrategies", job: Job, output: Output) -> bool:
    """Take the current sentence of a window's translation; False where it has to be translated again.

    Without repairs it is the text after the last separator, as in the released code of Lupo et al. (2023), or
    after an earlier one if there are future sentences.
    """
    sentence = job.current
    if not writes_context(translator):
        translator.take_sentence(sentence, output)
        return True
    targets = split_at(output.ids, translator.sep)
    if len(targets) == job.sentences - job.forced:
        sentence.part.take(output, targets, job.past - job.forced)
    else:
        remedy = "translated again by strategy sentence" if translator.repairs == "all" else None
        sentence.document.report_count(sentence.index, job.sentences - job.forced, len(targets), remedy)
        if remedy:
            return False
        sentence.part.take(output, targets, max(-1 - job.future, -len(targets)))
    translator.check_end(sentence, output)
    return True


def largest_window(translator: BaseTranslator, sentence: CurrentSentence, past: int, future: int, make_job) -> Job:
    """The longest window up to this number of sentences that learned positions allow."""
    past = min(past, sentence.index)
    job = make_job(*sentence, past, future)
    while (past or future) and not translator.fits(len(job.source), len(job.prefix), job.length):
        past, future = fewer(past, future)
        job = make_job(*sentence, past, future)
    return job


def fewer(past: int, future: int) -> tuple[int, int]:
    """Without the farthest sentence before, while there is any (`sentence_numbers` counts from the end), or after."""
    return (past - 1, future) if past else (past, future - 1)


def report_fewer(translator: BaseTranslator, job: Job, past: int, future: int) -> None:
    """Report a window that was shortened because the model has too few positions."""
    document, index = job.current
    if job.past + job.future < past + future:
        sizes = 1 + job.past + job.future, 1 + past + future
        document.report_positions(range(index, index + 1), *sizes, translator.positions)


# Strategy `sequential`


def sequential(translator: "SegmentStrategies", documents: list[DocumentState]) -> None:
    """argmax p(E_i | E^_{i-k}^{i-1}, F_{i-k}^i), sentence by sentence, with earlier translations as forced prefix.

    The next sentences of `batch_size` documents are translated together, of more where sources wait. The whole window
    is read again: a further source sentence changes the states of all others.
    """
    unknown = (document for document in documents if document.next_unknown(0))
    waiting = iter(sorted(unknown, key=lambda document: -len(document.parts)))
    ready: list[Job] = []  # the next sentence of each document

    while True:
        new = islice(waiting, READY_BATCHES * translator.batch_size - len(ready))
        ready += [current_job(translator, document.next_unknown(0)) for document in new]
        size = len(ready) if translator.waiting_tokens(ready) else translator.batch_size
        batch, ready = sentences_together(ready, size)
        if not batch:
            return
        for job, output in zip(batch, translator.decode(batch, stop_at_sep=True)):
            document, index = job.current
            job.current.part.take(output)
            translator.check_end(job.current, output)
            if following := document.next_unknown(index + 1):
                ready.append(current_job(translator, following))


def sentences_together(ready: list[Job], size: int) -> tuple[list[Job], list[Job]]:
    """A batch of the next sentences of documents, and the others.

    It holds the sentence of the document with most sentences left, so that no document is alone at the end, and similar
    lengths. Windows count half: they are read in one pass.
    """
    if not ready:
        return [], []
    first = max(ready, key=lambda job: len(job.current.document.parts) - job.current.index)
    source, length = len(first.source), first.length
    ready = sorted(ready, key=lambda job: 2 * abs(job.length - length) + abs(len(job.source) - source))
    return ready[:size], ready[size:]


def current_job(translator: "SegmentStrategies", sentence: CurrentSentence) -> Job:
    """The largest window that learned positions reach for, the forced prefix of earlier translations included."""

    def prefixed_job(document: DocumentState, index: int, past: int, future: int) -> Job:
        job = translator.window_job(document, index, past, future)
        job.length = len(document.parts[index].ids)
        if translator.sides == "both":
            for part in document.parts[index - past : index]:
                job.prefix += [*part.target, translator.sep]
        return job

    shown = behind_pairs(translator, sentence)
    past, future = past_sentences(translator, *shown), translator.future
    job = largest_window(translator, shown, past, future, prefixed_job)
    report_fewer(translator, job, past, future)
    job.current = sentence
    return job


def past_sentences(translator: "SegmentStrategies", document: DocumentState, index: int) -> int:
    """k of the paper: sentences before the part at `index` that `sequential` reads.

    A model of chunks reads, unless asked otherwise, as many as fit into `chunk_tokens` source tokens with the current
    one and a separator for each.
    """
    if translator.past_context is not None or not is_of_chunks(translator.config):
        return min(index, translator.past)
    tokens = accumulate(len(part.ids) + 1 for part in document.parts[index::-1])  # current sentence, one more, ...
    fitting = sum(1 for _ in takewhile(lambda count: count <= translator.config.chunk_tokens, tokens))
    return max(0, fitting - 1)


# Strategy `full`


def full(translator: "SegmentStrategies", documents: list[DocumentState]) -> None:
    """Segments that do not overlap, each at once; `force_prefixes` where it has not the separators of the source.

    Sentences that are known from the start of a segment on are forced; where others are, too, it is `force_prefixes`.
    """
    waiting = [segment for document in documents for segment in segments_that_fit(translator, document)]
    again = [segment for segment in waiting if segment.has_islands]
    waiting = [segment for segment in waiting if not segment.has_islands]
    while waiting:
        segments, waiting = waiting, []
        jobs = [translator.segment_job(*segment) for segment in segments]
        for segment, job in zip(segments, jobs):
            force_known(translator, job, segment.parts)
            job.current = CurrentSentence(segment.document, segment.first + job.forced)
        for whole, job, output in zip(segments, jobs, translator.decode(jobs)):
            document, first, end = segment = whole._replace(first=whole.first + job.forced)
            targets = split_at(output.ids, translator.sep)
            if len(targets) == end - first and output.finished:
                for number, part in enumerate(segment.parts):
                    part.take(output, targets, number)
            elif translator.repairs == "none":
                leave_as_written(translator, segment, targets, output)
            elif end - first > 1 and not job.forced and translator.is_cut_off(job, output):
                waiting += halves(translator, segment)
            else:
                remedy = "translated again sentence by sentence"
                for index in range(first, end):
                    if output.finished:
                        document.report_count(index, end - first, len(targets), remedy)
                    translator.check_end(CurrentSentence(document, index), output, remedy=remedy)
                again.append(whole)
    force_prefixes(translator, again)


def segments_that_fit(translator: "SegmentStrategies", document: DocumentState) -> list[Segment]:
    """Windows side by side, or chunks, that have something to translate, after the pairs of their context.

    Those whose source is longer than learned positions reach are in halves.
    """
    if is_of_chunks(translator.config):
        cuts = chunk_cuts([len(part.ids) + 1 for part in document.parts], translator.config.chunk_tokens)
    else:
        cuts = [*range(0, len(document.parts), translator.past + 1 + translator.future), len(document.parts)]
    waiting, fitting = [Segment(document, *ends) for ends in pairwise(cuts)], []
    while waiting:
        segment = waiting.pop(0)
        if all(part.is_known for part in segment.parts):
            continue
        shown = segment.behind_pairs()
        source = len(translator.segment_job(*shown).source)
        if segment.end - segment.first == 1 or translator.fits(source, 0, source):
            fitting.append(shown)
        else:
            waiting = halves(translator, segment) + waiting
    return fitting


def halves(translator: "SegmentStrategies", segment: Segment) -> list[Segment]:
    """A segment as two, which is reported for all of its sentences."""
    document, first, end = segment
    middle = (first + end) // 2
    pair = [Segment(document, first, middle), Segment(document, middle, end)]
    for _, *ends in pair:
        document.report_positions(range(*ends), len(range(*ends)), end - first, translator.positions)
    return pair


def leave_as_written(translator: "SegmentStrategies", segment: Segment, targets: list, output: Output) -> None:
    """Give the parts the sentences written for them, in order: too few leave some without, the last has more."""
    document, first, end = segment
    for number, part in enumerate(segment.parts):
        part.lines = targets[number:] if first + number == end - 1 else targets[number : number + 1]
        if len(targets) != end - first:
            document.report_count(first + number, end - first, len(targets))
    translator.check_end(CurrentSentence(document, end - 1), output, remedy="left as written")


# Strategy `chunk_sequential`, and the repairs of `full`


def chunk_sequential(translator: "SegmentStrategies", documents: list[DocumentState]) -> None:
    """Sentence by sentence inside the chunks of `full`: cheaper than `sequential`, and not in Herold and Ney (2023)."""
    segments = [segment for document in documents for segment in segments_that_fit(translator, document)]
    force_prefixes(translator, segments)


def force_prefixes(translator: "SegmentStrategies", segments: Sequence[Segment]) -> None:
    """Sentence by sentence inside segments: source, future sentences included, and prefix are read once.

    Where the prefix leaves too few learned positions, the rest of the segment becomes one of its own.
    """
    segments = sorted(segments, key=lambda segment: segment.first - segment.end)  # longest first
    rest: list[Segment] = []
    is_alone = [any(part.is_known for part in segment.parts) for segment in segments]  # which has steps of its own
    others = [segment for segment, alone in zip(segments, is_alone) if not alone]
    groups = [[segment] for segment, alone in zip(segments, is_alone) if alone]
    groups += [others[start : start + translator.batch_size] for start in range(0, len(others), translator.batch_size)]
    for group in groups:
        for together in [group] if has_room(translator, group) else [[segment] for segment in group]:
            rest += translator.force_prefixes_together(together)
    if rest:
        force_prefixes(translator, rest)


def has_room(translator: "SegmentStrategies", group: Sequence[Segment]) -> bool:
    """Whether learned positions reach for segments side by side, whatever is written."""
    lengths = [[len(part.ids) for part in segment.parts] for segment in group]
    longest = sum(1 + translator.wanted(max(column)) for column in zip_longest(*lengths, fillvalue=0))
    return 1 + translator.marks + longest <= translator.positions


def rest_of(translator: "SegmentStrategies", segment: Segment, step: int) -> Segment:
    """The rest of a segment after some sentences; it is reported for all of the rest."""
    document, first, end = segment
    document.report_positions(range(first + step, end), end - first - step, end - first, translator.positions)
    return Segment(document, first + step, end)


class SegmentStrategies(BaseTranslator):
    """For a model that reads segments, and writes them whole or the current sentence alone (`context_sides`)."""

    strategies = BaseTranslator.strategies | {
        "sliding": sliding,
        "sequential": sequential,
        "chunk_sequential": chunk_sequential,
        "full": full,
    }
    slide = slide

    def force_prefixes_together(self, group: Sequence[Segment]) -> list[Segment]:
        """One batch of `force_prefixes`, longest first; returns the rest of a segment without room."""
        raise NotImplementedError

    @classmethod
    def default_strategy(cls, config) -> str:
        if is_of_chunks(config):
            return "full"
        has_context = getattr(config, "past_context", 0) or getattr(config, "future_context", 0)
        return "sliding" if has_context else "sentence"

    @classmethod
    def reads_pairs(cls, config, strategy: str) -> bool:
        has_past = is_of_chunks(config) or getattr(config, "past_context", 0) > 0
        return strategy != "sentence" and has_past and getattr(config, "context_sides", "both") == "both"

    @classmethod
    def repaired_strategies(cls, config) -> tuple[str, ...]:
        return () if getattr(config, "context_sides", "both") == "source" else ("sliding", "full")

    @classmethod
    def refusals(cls, config) -> dict[str, str]:
        refusals = super().refusals(config)
        if is_of_chunks(config):
            del refusals["chunk_sequential"]
        if getattr(config, "context_sides", "both") == "source":
            writes = "needs a model that writes all sentences; this one has context_sides='source'"
            refusals["full"] = f"{writes}: use 'sliding' or 'sentence'"
        return refusals
