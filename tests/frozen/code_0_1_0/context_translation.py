"""Translation of documents sentence by sentence, with the sentences around each as separate context inputs."""

import torch

from .generation_docmt import Translator, Walk, pad_left, pad_right

RUN = 16  # batches whose sentences are sorted by length together


class ContextTranslation:
    """Adds the document strategies to a model whose context sentences are separate inputs.

    `sliding`: sentences with their context, in any order, where the context is of the source; `sequential`: the n-th
    sentences of `batch_size` documents together, for earlier translations as context; `sentence`: without context.
    Blank sentences are no context, nor are empty translations; a part of an over-long sentence counts as a sentence.
    """

    def own_strategy(self) -> str:
        if not self.config.past_context and not self.config.future_context:
            return "sentence"
        return "sliding" if self.config.context_sides == "source" else "sequential"

    def check_strategy(self, strategy: str) -> None:
        if strategy == "full":
            raise ValueError(
                "strategy 'full' needs a model that writes all sentences; this one writes the current sentence alone: "
                f"use {self.own_strategy()!r} or 'sentence'."
            )
        if strategy == "sliding" and self.config.context_sides != "source":
            raise ValueError(
                "strategy 'sliding' translates sentences in any order, but this model's context are the translations "
                f"before (context_sides={self.config.context_sides!r}): use 'sequential' or 'sentence'."
            )
        super().check_strategy(strategy)

    def translator(self, tokenizer, batch_size: int, generate_kwargs: dict) -> "ContextTranslator":
        return ContextTranslator(self, tokenizer, batch_size, generate_kwargs)


class ContextTranslator(Translator):
    """The strategies; a place is (walk, number of the unit)."""

    def sentence(self, walks: list[Walk]) -> None:
        self.past = self.future = 0
        self.sliding(walks)

    def sliding(self, walks: list[Walk]) -> None:
        self.in_runs([(walk, place) for walk in walks for place in range(len(walk.units))])

    def in_runs(self, places: list[tuple[Walk, int]]) -> None:
        """Translate sentences in order, so many at a time that sorting them by length pays."""
        size = RUN * self.batch_size
        for start in range(0, len(places), size):
            self.translate(places[start : start + size])

    def sequential(self, walks: list[Walk]) -> None:
        walks = sorted(walks, key=lambda walk: -len(walk.units))
        for start in range(0, len(walks), self.batch_size):
            group = walks[start : start + self.batch_size]
            for place in range(len(group[0].units)):
                self.translate([(walk, place) for walk in group if place < len(walk.units)])

    def translate(self, places: list[tuple[Walk, int]]) -> None:
        """Translate sentences whose context is known, longest together."""
        order = sorted(places, key=lambda place: -len(place[0].units[place[1]].ids))
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            jobs = [self.job(walk, place, place + 1) for walk, place in batch]
            inputs = self.inputs(batch, pad_right([job.source for job in jobs], self.pad, self.model.device))
            if any(job.prefix for job in jobs):
                inputs |= pad_left([[self.start, *job.prefix] for job in jobs], self.pad, self.model.device)
            for (walk, place), output in zip(batch, self.run(inputs, [job.length for job in jobs], stop_at_sep=False)):
                self.finish_unit(walk, place, output)

    @property
    def pad(self) -> int:
        return self.config.pad_token_id

    def around(self, walk: Walk, place: int) -> list[tuple[int, bool]]:
        """The context of a sentence: places, and whether it is the translation of the one there."""
        past = range(max(0, place - self.past), place)
        future = range(place + 1, min(len(walk.units), place + 1 + self.future))
        found = [(other, False) for other in (*past, *future)] if self.sides != "target" else []
        return found + [(other, True) for other in past if self.sides != "source" and walk.units[other].target]

    def context_ids(self, walk: Walk, place: int, is_target: bool) -> list[int]:
        """A sentence of the context, or its translation, as the encoder reads it."""
        job = self.job(walk, place, place + 1)
        return [*job.prefix, *walk.units[place].target, self.eos] if is_target else job.source

    def grid(self, batch: list[tuple[Walk, int]]) -> tuple[list[list], torch.Tensor, torch.Tensor]:
        """Context of each sentence, None where others have more; `context_offsets` and `context_is_target`, (B, C)."""
        around = [self.around(*place) for place in batch]
        width = max(1, max(map(len, around)))
        offsets = [[other - place for other, _ in context] for (_, place), context in zip(batch, around)]
        targets = [[is_target for _, is_target in context] for context in around]
        around, offsets, targets = (
            [row + [empty] * (width - len(row)) for row in rows]
            for rows, empty in ((around, None), (offsets, 0), (targets, False))
        )
        return around, torch.tensor(offsets, device=self.model.device), torch.tensor(targets, device=self.model.device)

    def inputs(self, batch: list[tuple[Walk, int]], source: dict) -> dict:
        """What `generate` takes for a batch of sentences, `source` and their context."""
        around, offsets, is_target = self.grid(batch)
        rows = [
            self.context_ids(walk, *other) if other else []
            for (walk, _), context in zip(batch, around)
            for other in context
        ]
        context = pad_right(rows, self.pad, self.model.device) if any(rows) else None
        if context is None:
            return source
        shape = (*offsets.shape, -1)
        return source | {
            "context_input_ids": context["input_ids"].view(shape),  # (B, C, L)
            "context_attention_mask": context["attention_mask"].view(shape),
            "context_offsets": offsets,
            "context_is_target": is_target,
        }
