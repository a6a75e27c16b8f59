"""Strategies of translating documents with models that read and write segments."""

from collections.abc import Sequence

import torch

from .batch_decoding import BatchDecoder, Job, Output, PrefixState, inference
from .document_state import CurrentSentence, DocumentState, all_sentences

STRATEGIES = ("sentence", "sliding", "sequential", "full", "stream")


class Translator(BatchDecoder):
    """Base class: strategy `sentence`, and which strategies a model of this configuration has."""

    def __init__(self, model, batch_size: int, generate_kwargs: dict):
        super().__init__(model, batch_size, generate_kwargs)
        self.past, self.future = (getattr(self.config, f"{side}_context", 0) for side in ("past", "future"))
        self.sides = getattr(self.config, "context_sides", "both")

    @classmethod
    def default_strategy(cls, config) -> str:
        """The strategy that fits how a model of this configuration was trained."""
        return "sentence"

    @classmethod
    def check_strategy(cls, config, strategy: str) -> None:
        """Raise `ValueError` for a strategy that a model of this configuration does not have."""
        if strategy == "stream":
            raise ValueError(
                "strategy 'stream' carries a state from sentence to sentence, which this model has not: use "
                f"{cls.default_strategy(config)!r}."
            )

    def translate(self, documents: list[DocumentState], strategy: str) -> None:
        """Translate documents by a strategy that the model has; the targets of their parts are filled in."""
        with inference(self.model):
            getattr(self, strategy)(documents)

    def sentence(self, documents: list[DocumentState]) -> None:
        """Every sentence alone."""
        self.translate_alone(all_sentences(documents))

    def translate_alone(self, sentences: Sequence[CurrentSentence]) -> None:
        for sentence, output in zip(sentences, self.decode([self.window_job(*sentence) for sentence in sentences])):
            self.take_sentence(sentence, output)

    def window_job(self, document: DocumentState, index: int, past: int = 0, future: int = 0) -> Job:
        """The window of the part at `index`; future sentences that the document does not have are empty ones."""
        first, end = max(0, index - past), index + 1 + future
        missing = max(0, end - len(document.parts))
        job = self.segment_job(document, first, end - missing, padding=missing)
        if self.sides == "source":
            job.length = len(document.parts[index].ids)
            if index > 0:
                job.prefix = []  # the target is the current sentence, which does not start the document
        return job

    def take_sentence(self, sentence: CurrentSentence, output: Output) -> None:
        """Take over the translation of one sentence, without separators."""
        document, index = sentence
        sentence.part.target = [token for token in output.ids if token != self.sep]
        found = len(output.ids) - len(sentence.part.target) + 1
        if found > 1:
            document.report_separators(index, 1, found, "separators taken out")
        self.check_end(sentence, output)

    def check_end(self, sentence: CurrentSentence, output: Output, **remedy: str) -> None:
        """Report a translation that was stopped before its end."""
        if not output.finished:
            sentence.document.report_length(sentence.index, len(output.ids), **remedy)


class SegmentTranslator(Translator):
    """`sliding`, `sequential` and `full` for a model that reads segments.

    It writes them whole (`context_sides="both"`), or the current sentence alone (`"source"`). Strategies are those of
    Lupo et al. (2023), section 2, and Herold and Ney (2023), section 3.4.
    """

    @classmethod
    def default_strategy(cls, config) -> str:
        if getattr(config, "view", "window") == "chunk":
            return "full"
        has_context = getattr(config, "past_context", 0) or getattr(config, "future_context", 0)
        return "sliding" if has_context else "sentence"

    @classmethod
    def check_strategy(cls, config, strategy: str) -> None:
        if strategy == "full" and getattr(config, "context_sides", "both") == "source":
            raise ValueError(
                "strategy 'full' needs a model that writes all sentences; this one has context_sides='source': use "
                "'sliding' or 'sentence'."
            )
        super().check_strategy(config, strategy)

    def sliding(self, documents: list[DocumentState]) -> None:
        """Every window whole, its current sentence kept."""
        self.slide(all_sentences(documents))

    def slide(self, sentences: Sequence[CurrentSentence]) -> None:
        """Strategy `sliding` for these sentences; one alone where its window has another number of separators."""
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
            else:
                remedy = "translated again by strategy sentence"
                sentence.document.report_separators(sentence.index, job.sentences, len(targets), remedy)
                again.append(sentence)
        self.translate_alone(again)

    def full(self, documents: list[DocumentState]) -> None:
        """Segments that do not overlap, each at once; in order where the number of separators is not the source's."""
        segments = [(document, *ends) for document in documents for ends in self.segments(document)]
        outputs = self.decode([self.segment_job(*segment) for segment in segments])
        again = []
        for segment, output in zip(segments, outputs):
            document, first, end = segment
            targets = split_at(output.ids, self.sep)
            if len(targets) == end - first and output.finished:
                for part, target in zip(document.parts[first:end], targets):
                    part.target = target
                continue
            remedy = "translated again by strategy sequential"
            for index in range(first, end):
                if output.finished:
                    document.report_separators(index, end - first, len(targets), remedy)
                self.check_end(CurrentSentence(document, index), output, remedy=remedy)
            again.append(segment)
        self.force_prefixes(again)

    def sequential(self, documents: list[DocumentState]) -> None:
        """Sentence by sentence, earlier translations as forced target prefix."""
        if getattr(self.config, "view", "window") == "chunk":
            self.force_prefixes([(document, *ends) for document in documents for ends in self.segments(document)])
            return
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
        job = self.window_job(document, index, self.past, self.future)
        job.length = len(document.parts[index].ids)
        if self.sides == "both":
            for part in document.parts[max(0, index - self.past) : index]:
                job.prefix += [*part.target, self.sep]
        return job

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
                lengths = [len(sentence.part.ids) for sentence in sentences]
                outputs = self.generate(state.inputs(), lengths, stop_at_sep=True, use_cache=True)  # state is a cache
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
