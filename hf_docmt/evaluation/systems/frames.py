"""Batches for encoder-decoder models of transformers: what their tokenizers put around a text, and joined sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.examples import CONTEXT_SIDES, check_choices

IGNORED = -100


@dataclass(frozen=True)
class Frame:
    """Special tokens before and after a text, as the tokenizer sets them: language codes, end marks."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def frame_of(tokenizer: PreTrainedTokenizerBase, *, is_target: bool) -> Frame:
    """The frame of a source text, or of a target text (`text_target`), found by tokenizing one letter."""
    side = {"text_target" if is_target else "text": "a"}
    whole, plain = tokenizer(**side)["input_ids"], tokenizer(**side, add_special_tokens=False)["input_ids"]
    for start in range(len(whole) - len(plain) + 1):
        if plain and whole[start : start + len(plain)] == plain:
            return Frame(tuple(whole[:start]), tuple(whole[start + len(plain) :]))
    raise ValueError(
        f"{type(tokenizer).__name__}: the tokens {plain} of a text are not among those with special tokens, {whole}; "
        "it cannot be used for joined sentences"
    )


class JoinedCollator:
    """Joins the sentences of each example by a separator, inside the tokenizer's frame, and pads on the right.

    Source: frame, `prefix`, sentences; target: the context sentences, too (`context_sides="both"`), or the current one
    alone (`"source"`). A context sentence that is blank on every side in use is left out. The decoder input is the
    labels shifted right behind the decoder's start token: where the target frame ends in a language code behind the end
    mark (mBART-25) that code, else the model's `decoder_start_token_id`. `label_weights` are 1 on the current sentence
    and the end mark or separator after it, 0 elsewhere. ValueError: no start token, no end mark, more tokens than
    the model has positions.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        separator: Sequence[int],
        prefix: Sequence[int] = (),
        context_sides: str = "source",
    ):
        check_choices(context_sides=(context_sides, CONTEXT_SIDES))
        self.separator, self.prefix, self.context_sides = list(separator), list(prefix), context_sides
        self.source_frame = frame_of(tokenizer, is_target=False)
        self.target_frame = self._ended(frame_of(tokenizer, is_target=True), tokenizer)
        self.pad = tokenizer.pad_token_id
        self.limit = getattr(model.config, "max_position_embeddings", None)
        self.start = _start(model, self.target_frame)
        if self.pad is None:
            raise ValueError(f"{type(tokenizer).__name__} has no pad_token; set it before making batches")

    def __call__(self, examples: Sequence[dict]) -> dict[str, torch.Tensor]:
        sources = [self.source(row) for row in examples]
        targets, places = zip(*(self.target(row) for row in examples))
        weights = [[float(start <= i < stop) for i in range(len(ids))] for ids, (start, stop) in zip(targets, places)]
        inputs = [[self.start, *ids[:-1]] for ids in targets]
        return {
            "input_ids": padded(sources, self.pad),
            "attention_mask": padded([[1] * len(source) for source in sources], 0),
            "decoder_input_ids": padded(inputs, self.pad),
            "decoder_attention_mask": padded([[1] * len(target) for target in targets], 0),
            "labels": padded(targets, IGNORED),
            "label_weights": padded(weights, 0.0),
        }

    def source(self, row: dict) -> list[int]:
        """Encoder tokens of an example."""
        joined, _, _ = self._joined(row["source"], self._kept(row), row["current"])
        ids = [*self.source_frame.before, *self.prefix, *joined, *self.source_frame.after]
        return self._checked(ids, row, "source")

    def target(self, row: dict) -> tuple[list[int], tuple[int, int]]:
        """Labels of an example, and the place (start, stop) of what is scored among them."""
        kept = self._kept(row) if self.context_sides == "both" else [row["current"]]
        joined, start, stop = self._joined(row["target"], kept, row["current"])
        before = len(self.target_frame.before)
        end_mark = 1 if stop == len(joined) else len(self.separator)
        ids = [*self.target_frame.before, *joined, *self.target_frame.after]
        return self._checked(ids, row, "target"), (before + start, before + stop + end_mark)

    def decoder_prefix(self, row: dict) -> list[int]:
        """What the decoder is given before the current sentence: start token, language code, target context."""
        ids, (start, _) = self.target(row)
        return [self.start, *ids[:start]]

    def _kept(self, row: dict) -> list[int]:
        sides = [row["source"], row["target"]] if self.context_sides == "both" else [row["source"]]
        return [i for i in range(len(row["source"])) if i == row["current"] or any(side[i] for side in sides)]

    def _joined(self, sentences: list[list[int]], kept: list[int], current: int) -> tuple[list[int], int, int]:
        """The kept sentences as one, and where in it the current one starts and stops."""
        joined, start, stop = [], 0, 0
        for number, place in enumerate(kept):
            joined += self.separator if number else []
            if place == current:
                start, stop = len(joined), len(joined) + len(sentences[place])
            joined += sentences[place]
        return joined, start, stop

    def _checked(self, ids: list[int], row: dict, side: str) -> list[int]:
        if self.limit is not None and len(ids) > self.limit:
            raise ValueError(
                f"{row['doc_id']}: {len(ids)} {side} tokens with their context, but the model has positions for "
                f"{self.limit}; give less context or shorter sentences"
            )
        return ids

    @staticmethod
    def _ended(frame: Frame, tokenizer: PreTrainedTokenizerBase) -> Frame:
        if frame.after:
            return frame
        if tokenizer.eos_token_id is None:
            raise ValueError(f"{type(tokenizer).__name__} has no eos_token, with which a translation ends; set it")
        return Frame(frame.before, (tokenizer.eos_token_id,))


def padded(rows: Sequence[list], value: float, side: str = "right") -> torch.Tensor:
    """Rows of numbers as a tensor (B, longest row)."""
    width = max(map(len, rows))
    fill = [[value] * (width - len(row)) for row in rows]
    return torch.tensor([row + rest if side == "right" else rest + row for row, rest in zip(rows, fill)])


def _start(model: PreTrainedModel, frame: Frame) -> int:
    if len(frame.after) > 1:
        return frame.after[-1]
    for config in (model.generation_config, model.config):
        start = getattr(config, "decoder_start_token_id", None)
        if start is not None:
            return start
    raise ValueError(
        "the model has no decoder_start_token_id, with which its decoder starts; set "
        "model.generation_config.decoder_start_token_id"
    )
