"""Strategies for models that read context sentences as inputs of their own and write the current sentence alone."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from .decoding import Translator
from .row_processors import pad_rows
from .translation_jobs import CurrentSentence, DocumentState, all_sentences

SORTED_BATCHES = 16  # batches whose sentences are sorted by length together


class ContextSentence(NamedTuple):
    """A part of a document as context: its source, or its translation; read as a sentence before or after."""

    document: DocumentState
    index: int
    is_target: bool = False
    is_next: bool = False


class ContextTranslator(Translator):
    """`sliding` where the context is of the source, `sequential` for context of the target, `sentence` without context.

    Blank sentences and empty translations are not context; a part of an over-long sentence counts as a sentence.
    """

    @classmethod
    def default_strategy(cls, config) -> str:
        if not config.past_context and not config.future_context:
            return "sentence"
        return "sliding" if config.context_sides == "source" else "sequential"

    @classmethod
    def refusals(cls, config) -> dict[str, str]:
        alone = "needs a model that writes all sentences; this one writes the current sentence alone"
        refusals = {"full": f"{alone}: use {cls.default_strategy(config)!r} or 'sentence'"}
        if config.context_sides != "source":
            refusals["sliding"] = (
                "translates sentences in any order, but this model's context are the translations before "
                f"(context_sides={config.context_sides!r}): use 'sequential' or 'sentence'"
            )
        return super().refusals(config) | refusals

    def sentence(self, documents: list[DocumentState]) -> None:
        """Every sentence without context."""
        self.past = self.future = 0
        self.sliding(documents)

    def sliding(self, documents: list[DocumentState]) -> None:
        """Every sentence with its context, which is of the source alone."""
        self.slide(all_sentences(documents))

    def slide(self, sentences: Sequence[CurrentSentence]) -> None:
        """Strategy `sliding` for these sentences, enough at a time for sorting by length to pay."""
        size = SORTED_BATCHES * self.batch_size
        for start in range(0, len(sentences), size):
            self.translate_known(sentences[start : start + size])

    def sequential(self, documents: list[DocumentState]) -> None:
        """The n-th sentences of `batch_size` documents together."""
        documents = sorted(documents, key=lambda document: -len(document.parts))
        for start in range(0, len(documents), self.batch_size):
            group = documents[start : start + self.batch_size]
            for index in range(len(group[0].parts)):
                sentences = [CurrentSentence(document, index) for document in group if index < len(document.parts)]
                self.translate_known([sentence for sentence in sentences if not sentence.part.is_known])

    strategies = {"sentence": sentence, "sliding": sliding, "sequential": sequential}

    def translate_known(self, sentences: Sequence[CurrentSentence]) -> None:
        """Translate sentences whose context is known, longest together."""
        for batch in self.batches(sentences, lambda sentence: len(sentence.part.ids)):
            jobs = [self.segment_job(*sentence, sentence.index + 1) for sentence in batch]
            inputs = self.context_inputs(batch, self.source_inputs(jobs)) | self.prefix_inputs(jobs)
            for sentence in batch:
                self.report_context(sentence)
            for sentence, output in zip(batch, self.generate(inputs, jobs)):
                self.take_sentence(sentence, output)

    def all_context(self, sentence: CurrentSentence) -> list[ContextSentence]:
        """The context that there is for a sentence: sources before and after it, then translations before it."""
        document, index = sentence
        past = range(max(0, index - self.past), index)
        future = range(index + 1, min(len(document.parts), index + 1 + self.future))
        sources = (*past, *future) if self.sides != "target" else ()
        targets = [other for other in past if self.sides != "source" and document.parts[other].target]
        return [ContextSentence(document, other) for other in sources] + [
            ContextSentence(document, other, is_target=True) for other in targets
        ]

    def context_of(self, sentence: CurrentSentence) -> list[ContextSentence]:
        """The context of a sentence, without translations for which positions do not reach."""
        return [
            context
            for context in self.all_context(sentence)
            if not context.is_target or len(self.context_ids(context)) <= self.sentence_positions
        ]

    def report_context(self, sentence: CurrentSentence) -> None:
        """Report context that is dropped because the model has too few positions."""
        got, expected = (1 + len(reader(sentence)) for reader in (self.context_of, self.all_context))
        if got < expected:
            document, index = sentence
            document.report_positions(range(index, index + 1), got, expected, self.sentence_positions)

    def context_ids(self, context: ContextSentence) -> list[int]:
        """A context sentence as the encoder reads it."""
        document, index = context.document, context.index
        if context.is_target:
            return self.format.translation([*self.opening(index == 0), *document.parts[index].target])
        return self.segment_job(document, index, index + 1).source

    def context_grid(
        self, batch: Sequence[CurrentSentence]
    ) -> tuple[list[ContextSentence | None], torch.Tensor, torch.Tensor]:
        """B times C context sentences, None where others have more; `context_offsets`, `context_is_target` (B, C)."""
        contexts = [self.context_of(sentence) for sentence in batch]
        width = max(1, *map(len, contexts))
        grid = [context + [None] * (width - len(context)) for context in contexts]
        offsets = [
            [other.index - sentence.index if other else 0 for other in context]
            for sentence, context in zip(batch, grid)
        ]
        is_target = [[other.is_target if other else False for other in context] for context in grid]
        device = self.device
        flat = [other for context in grid for other in context]
        return flat, torch.tensor(offsets, device=device), torch.tensor(is_target, device=device)

    def context_inputs(self, batch: Sequence[CurrentSentence], source: dict) -> dict:
        """Arguments of `generate` for a batch of sentences: `source`, and their context if any has one."""
        grid, offsets, is_target = self.context_grid(batch)
        rows = [self.context_ids(context) if context else [] for context in grid]
        if not any(rows):
            return source
        ids, mask = pad_rows(rows, self.pad, self.device)  # (B*C, L)
        return source | {
            "context_input_ids": ids.unflatten(0, offsets.shape),  # (B, C, L)
            "context_attention_mask": mask.unflatten(0, offsets.shape),
            "context_offsets": offsets,
            "context_is_target": is_target,
        }


class JoinedContextTranslator(ContextTranslator):
    """For a model that reads the context of a sentence as one sequence."""

    def context_of(self, sentence: CurrentSentence) -> list[ContextSentence]:
        """As in the base class, without the farthest sentences for which learned positions do not reach."""
        contexts = super().context_of(sentence)
        context = sorted(contexts, key=lambda other: abs(other.index - sentence.index))  # nearest first
        while context and sum(len(self.context_ids(other)) for other in context) > self.positions:
            context.pop()
        return [other for other in contexts if other in context]
