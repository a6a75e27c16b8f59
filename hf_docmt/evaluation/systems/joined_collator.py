"""Batches for encoder-decoder models of transformers: sentences joined by a separator, inside the special tokens."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.collators import IGNORE_INDEX, pad_rows
from hf_docmt.data.examples import CONTEXT_SIDES, check_choices
from hf_docmt.data.special_tokens import SpecialTokens, special_tokens_of


class JoinedCollator:
    """Joins the sentences of each example by a separator, inside the tokenizer's special tokens, and pads on the right.

    Source: special tokens, `prefix`, sentences; target: the context sentences, too (`context_sides="both"`), or the
    current one alone (`"source"`). A context sentence that is blank on every side in use is left out. The decoder input
    is the labels shifted right behind the decoder's start token: where the target ends in a language code behind the
    end token (mBART-25) that code, else the model's `decoder_start_token_id`. `label_weights` are 1 on the current
    sentence and the end token or separator after it, 0 elsewhere. ValueError: no start token, no end token, more tokens
    than the model has positions.
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
        self.source_tokens = special_tokens_of(tokenizer, is_target=False)
        self.target_tokens = self._ended(special_tokens_of(tokenizer, is_target=True), tokenizer)
        self.pad = tokenizer.pad_token_id
        self.limit = getattr(model.config, "max_position_embeddings", None)
        self.start = _start(model, self.target_tokens)
        if self.pad is None:
            raise ValueError(f"{type(tokenizer).__name__} has no pad_token; set it before making batches")

    def __call__(self, examples: Sequence[dict]) -> dict[str, torch.Tensor]:
        sources = [self.source(row) for row in examples]
        targets, spans = zip(*(self.target(row) for row in examples))
        weights = [[float(start <= i < stop) for i in range(len(ids))] for ids, (start, stop) in zip(targets, spans)]
        inputs = [[self.start, *ids[:-1]] for ids in targets]
        return {
            "input_ids": pad_rows(sources, self.pad),
            "attention_mask": pad_rows([[1] * len(source) for source in sources], 0),
            "decoder_input_ids": pad_rows(inputs, self.pad),
            "decoder_attention_mask": pad_rows([[1] * len(target) for target in targets], 0),
            "labels": pad_rows(targets, IGNORE_INDEX),
            "label_weights": pad_rows(weights, 0.0),
        }

    def source(self, row: dict) -> list[int]:
        """Encoder tokens of an example."""
        joined, _, _ = self._joined(row["source"], self._kept(row), row["current"])
        ids = [*self.source_tokens.before, *self.prefix, *joined, *self.source_tokens.after]
        return self._checked(ids, row, "source")

    def target(self, row: dict) -> tuple[list[int], tuple[int, int]]:
        """Labels of an example, and where (start, stop) the scored ones are among them."""
        kept = self._kept(row) if self.context_sides == "both" else [row["current"]]
        joined, start, stop = self._joined(row["target"], kept, row["current"])
        before = len(self.target_tokens.before)
        end_length = 1 if stop == len(joined) else len(self.separator)
        ids = [*self.target_tokens.before, *joined, *self.target_tokens.after]
        return self._checked(ids, row, "target"), (before + start, before + stop + end_length)

    def decoder_prefix(self, row: dict) -> list[int]:
        """The tokens before the current sentence: start token, language code, target context."""
        ids, (start, _) = self.target(row)
        return [self.start, *ids[:start]]

    def _kept(self, row: dict) -> list[int]:
        sides = [row["source"], row["target"]] if self.context_sides == "both" else [row["source"]]
        return [i for i in range(len(row["source"])) if i == row["current"] or any(side[i] for side in sides)]

    def _joined(self, sentences: list[list[int]], kept: list[int], current: int) -> tuple[list[int], int, int]:
        """The kept sentences as one, and where in it the current one starts and stops."""
        joined, start, stop = [], 0, 0
        for number, sentence in enumerate(kept):
            joined += self.separator if number else []
            if sentence == current:
                start, stop = len(joined), len(joined) + len(sentences[sentence])
            joined += sentences[sentence]
        return joined, start, stop

    def _checked(self, ids: list[int], row: dict, side: str) -> list[int]:
        if self.limit is not None and len(ids) > self.limit:
            raise ValueError(
                f"{row['doc_id']}: {len(ids)} {side} tokens with their context, but the model has positions for "
                f"{self.limit}; give less context or shorter sentences"
            )
        return ids

    @staticmethod
    def _ended(around: SpecialTokens, tokenizer: PreTrainedTokenizerBase) -> SpecialTokens:
        if around.after:
            return around
        if tokenizer.eos_token_id is None:
            raise ValueError(f"{type(tokenizer).__name__} has no eos_token, with which a translation ends; set it")
        return SpecialTokens(around.before, (tokenizer.eos_token_id,))


def _start(model: PreTrainedModel, around: SpecialTokens) -> int:
    if len(around.after) > 1:
        return around.after[-1]
    for config in (model.generation_config, model.config):
        start = getattr(config, "decoder_start_token_id", None)
        if start is not None:
            return start
    raise ValueError(
        "the model has no decoder_start_token_id, with which its decoder starts; set "
        "model.generation_config.decoder_start_token_id"
    )
