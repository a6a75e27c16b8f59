"""Processors and criteria of `generate` for rows of a batch with their own sentence, beginning and limit of tokens."""

import math
from collections.abc import Sequence

import torch
from transformers import LogitsProcessor, StoppingCriteria

from .translation_jobs import CurrentSentence


class NonFiniteScoresError(ValueError):
    """Scores of the next token that are NaN or infinite: `document` and `sentence` (from 0), `step` (from 1) say where.

    In a stream `document` is None and `sentence` is 0.
    """

    def __init__(self, model: str, document: int | None, sentence: int, step: int):
        super().__init__(model, document, sentence, step)
        self.model, self.document, self.sentence, self.step = model, document, sentence, step

    def __str__(self) -> str:
        where = "" if self.document is None else f" of sentence {self.sentence} of document {self.document} of the call"
        return (
            f"{self.model}: scores of the next token are not finite (step {self.step}{where}): weights are damaged or "
            "too large for their dtype, or the generation config forbids every token; check them, or use float32"
        )


class FiniteScores(LogitsProcessor):
    """Raises `NonFiniteScoresError`, with the `name` of the model, for scores of the rows' `sentences` like nan."""

    keeps_scores, passes_finite = False, True  # it keeps no scores, and does not change finite ones

    def __init__(self, name: str, prompt: int, sentences: Sequence[CurrentSentence]):
        self.name, self.prompt, self.sentences = name, prompt, sentences

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        best = scores.amax(dim=-1)  # (rows * beams,); nan where any score is
        if not math.isfinite(best.sum()) and not (finite := torch.isfinite(best)).all():
            beams = len(best) // len(self.sentences)
            sentence = self.sentences[int(finite.logical_not().nonzero()[0]) // beams]
            step = input_ids.shape[1] - self.prompt + 1
            raise NonFiniteScoresError(self.name, sentence.document.number, sentence.part.sentence, step)
        return scores

    def of_rows(self, rows: torch.Tensor) -> "FiniteScores":
        return FiniteScores(self.name, self.prompt, [self.sentences[row] for row in rows.tolist()])


class ForcedBeginnings(LogitsProcessor):
    """Rows whose first tokens after the prompt are given; a row without any is free."""

    keeps_scores = False

    def __init__(self, beginnings: Sequence[list[int]], prompt: int, ends: list[int]):
        self.beginnings, self.prompt, self.ends, self.longest = beginnings, prompt, ends, max(map(len, beginnings))

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        step = input_ids.shape[1] - self.prompt
        if step >= self.longest:
            return scores
        beams = len(scores) // len(self.beginnings)
        never = max(-1e9, torch.finfo(scores.dtype).min / 4)  # finite: beams that are not translations must not end
        forced = scores.clone()
        for row, tokens in enumerate(self.beginnings):
            if step < len(tokens):
                rows, token = slice(row * beams, (row + 1) * beams), tokens[step]
                forced[rows] = never
                forced[rows, self.ends] = -math.inf
                forced[rows, token] = scores[rows, token]
        return forced

    def of_rows(self, rows: torch.Tensor) -> "ForcedBeginnings":
        return ForcedBeginnings([self.beginnings[row] for row in rows.tolist()], self.prompt, self.ends)


class RowLimits(StoppingCriteria):
    """Ends each row, and all its beams, after its own number of new tokens, so that no other row changes it."""

    def __init__(self, limits: list[int], prompt: int):
        self.row_ends, self.earliest_end = torch.tensor(limits) + prompt, min(limits) + prompt

    def __call__(self, input_ids: torch.Tensor, scores, **kwargs) -> torch.Tensor:
        if input_ids.shape[1] < self.earliest_end:
            return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)
        ends = self.row_ends.to(input_ids.device).repeat_interleave(input_ids.shape[0] // len(self.row_ends))
        return input_ids.shape[1] >= ends

    def of_rows(self, rows: torch.Tensor) -> "RowLimits":
        return RowLimits(self.row_ends[rows.cpu()].tolist(), 0)


def pad_rows(rows: list[list[int]], pad: int, device, side: str = "right") -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids of each row -> ids (B, longest), padded on the `right` or `left`, and their mask, 1 = token."""
    width, ids, mask = max(map(len, rows)), [], []
    for row in rows:
        padding, absent = [pad] * (width - len(row)), [0] * (width - len(row))
        present = [1] * len(row)
        ids.append([*row, *padding] if side == "right" else [*padding, *row])
        mask.append([*present, *absent] if side == "right" else [*absent, *present])
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)
