"""Strategies of translating documents with models that read and write segments."""

from collections.abc import Sequence
from itertools import accumulate, takewhile

import torch

from .batch_decoding import Job, Output, PrefixState
from .document_state import CurrentSentence, DocumentState, all_sentences
from .strategies import Translator


class SegmentTranslator(Translator):
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

    def sliding(self, documents: list[DocumentState]) -> None:
        """Every window whole, its current sentence kept."""
        self.slide(all_sentences(documents))

    def slide(self, sentences: Sequence[CurrentSentence]) -> None:
        """Strategy `sliding` for these sentences; one alone where its window has another number of separators.

        Without repairs it is what stands behind the last separator, as in the released code of Lupo et al. (2023);
        where the window has future sentences, behind so many separators less.
        """
        jobs = [self.window_job(*sentence, self.past, self.future) for sentence in sentences]
        is_segment = self.sides != "source" and (self.past > 0 or self.future > 0)
        again = []
        for sentence, job, output in zip(sentences, jobs, self.decode(jobs)):
            if not is_segment:
                self.take_sentence(sentence, output)
                continue
            targets = split_at(output.ids, self.sep)
            if len(targets) == job.sentences:
                sentence.part.target = targets[min(self.past, sentence.index)]
                self.check_end(sentence, output)
            elif self.repairs == "none":
                sentence.part.target = targets[max(-1 - self.future, -len(targets))]
                sentence.document.report_misaligned(sentence.index, job.sentences, len(targets))
                self.check_end(sentence, output)
            else:
                remedy = "translated again by strategy sentence"
                sentence.document.report_separators(sentence.index, job.sentences, len(targets), remedy)
                again.append(sentence)
        self.translate_alone(again)

    def full(self, documents: list[DocumentState]) -> None:
        """FSD: segments that do not overlap, each at once; repaired where the number of separators is not the source's.

        A repair translates the segment again sentence by sentence (see `force_prefixes`).
        """
        segments = [(document, *ends) for document in documents for ends in self.segments(document)]
        outputs = self.decode([self.segment_job(*segment) for segment in segments])
        again = []
        for segment, output in zip(segments, outputs):
            document, first, end = segment
            targets = split_at(output.ids, self.sep)
            if len(targets) == end - first and output.finished:
                for part, target in zip(document.parts[first:end], targets):
                    part.target = target
            elif self.repairs == "none":
                self.leave_as_written(document, first, targets, end - first, output)
            else:
                remedy = "translated again sentence by sentence"
                for index in range(first, end):
                    if output.finished:
                        document.report_separators(index, end - first, len(targets), remedy)
                    self.check_end(CurrentSentence(document, index), output, remedy=remedy)
                again.append(segment)
        self.force_prefixes(again)

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

        The n-th sentences of `batch_size` documents are translated together. All of a window is read anew: a further
        source sentence changes the states of all others in the encoder, and so those of the prefix in the decoder.
        """
        documents = sorted(documents, key=lambda document: -len(document.parts))
        for start in range(0, len(documents), self.batch_size):
            group = documents[start : start + self.batch_size]
            for index in range(len(group[0].parts)):
                sentences = [CurrentSentence(document, index) for document in group if index < len(document.parts)]
                jobs = [self.prefixed_job(*sentence) for sentence in sentences]
                for sentence, output in zip(sentences, self.decode(jobs, stop_at_sep=True)):
                    sentence.part.target = output.ids
                    self.check_end(sentence, output)

    def prefixed_job(self, document: DocumentState, index: int) -> Job:
        """The window of the part at `index`, with the translations before it as prefix where the model writes them."""
        past = self.past_sentences(document, index)
        job = self.window_job(document, index, past, self.future)
        job.length = len(document.parts[index].ids)
        if self.sides == "both":
            for part in document.parts[index - past : index]:
                job.prefix += [*part.target, self.sep]
        return job

    def past_sentences(self, document: DocumentState, index: int) -> int:
        """k of the paper: sentences before the part at `index` that `sequential` reads.

        A model of chunks reads, unless asked otherwise, as many as fit into `chunk_tokens` source tokens together with
        the current one, a separator counted for each, as `chunks` counts.
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
        self.force_prefixes([(document, *ends) for document in documents for ends in self.segments(document)])

    def force_prefixes(self, segments: Sequence[tuple[DocumentState, int, int]]) -> None:
        """Sentence by sentence inside fixed segments: the source is encoded once, the prefix is read once."""
        segments = sorted(segments, key=lambda segment: segment[1] - segment[2])  # longest first
        for start in range(0, len(segments), self.batch_size):
            group = segments[start : start + self.batch_size]
            state = PrefixState(self, [self.segment_job(*segment) for segment in group])
            for step in range(group[0][2] - group[0][1]):
                rows = [row for row, (_, first, end) in enumerate(group) if first + step < end]
                state.select(rows)
                group = [group[row] for row in rows]
                sentences = [CurrentSentence(document, first + step) for document, first, _ in group]
                jobs = [Job([], [], 1, len(sentence.part.ids), sentence) for sentence in sentences]
                outputs = self.generate(state.inputs(), jobs, stop_at_sep=True, use_cache=True)  # state is a cache
                state.extend([[*output.ids, self.sep] for output in outputs])
                for sentence, output in zip(sentences, outputs):
                    sentence.part.target = output.ids
                    self.check_end(sentence, output)

    def segments(self, document: DocumentState) -> list[tuple[int, int]]:
        """First part and end of segments that do not overlap: windows side by side, or chunks of about equal length."""
        if getattr(self.config, "view", "window") == "chunk":
            return chunks([len(part.ids) + 1 for part in document.parts], self.config.chunk_tokens)
        size, step = len(document.parts), self.past + 1 + self.future
        return [(first, min(first + step, size)) for first in range(0, size, step)]


def chunks(lengths: list[int], limit: int) -> list[tuple[int, int]]:
    """Sentences of so many tokens in the fewest chunks of about equal length that keep to `limit` tokens each.

    A sentence that is longer raises the limit.
    """
    if not lengths:
        return []
    size, ends = len(lengths), torch.tensor(lengths).cumsum(0)
    limit = max(limit, *lengths)
    count = -(-int(ends[-1]) // limit)
    while True:
        cuts = sorted({int((ends <= ends[-1] * k / count).sum()) for k in range(1, count)} | {0, size})
        found = list(zip(cuts, cuts[1:]))
        if all(sum(lengths[first:end]) <= limit for first, end in found):
            return found
        count += 1


def split_at(ids: list[int], sep: int) -> list[list[int]]:
    """Generated ids as sentences, without the separators."""
    sentences: list[list[int]] = [[]]
    for token in ids:
        if token == sep:
            sentences.append([])
        else:
            sentences[-1].append(token)
    return sentences
