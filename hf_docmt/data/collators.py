"""Collators: from examples to padded batches, of segments, or of current sentences with context sentences as inputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from hf_docmt.data.examples import CONTEXT_SIDES
from hf_docmt.messages import check_known

IGNORE_INDEX = -100  # labels that are not scored, as in torch's cross_entropy


class SegmentCollator:
    """Joins the sentences of each example to one segment a side, `<bod>? s1 <sep> ... <sep> sK </s>`, and pads right.

    Called with a list of B examples (see `Examples`), it returns, all int64, with S source and T target tokens of the
    longest row: `input_ids`, `attention_mask` (B, S), `decoder_input_ids`, `decoder_attention_mask`, `labels` (B, T).
    Masks have 1 for tokens, 0 for padding; padding of labels is -100. The decoder input is the labels shifted right
    after `decoder_start_token_id`. `context_sides="source"` keeps only the current sentence on the target side. With
    `use_bod`, `<bod>` opens a side that begins at the document's first sentence.

    `sequence_format`, the one of `config.sequence_format()`, has the tokens around the sentences of a family of models
    with language codes; then the start token is its own. What the decoder is given before the sentences has label -100.

    `label_weights` (B, T) float, there when `context_discount` is not 1 and a row has target context: 1 from the
    current sentence's first token through the `</s>` or `<sep>` that ends it, `context_discount` on context, 0 on
    padding (Lupo et al. 2022, context discounting; the loss divides by the number of labels, undiscounted). The `<sep>`
    before the current sentence is context; `<bod>` has the weight of the sentence it opens.

    ValueError: no start token, a tokenizer without padding, end, separator or `<bod>` token where it is needed,
    examples without `source` and `target` (in a `Trainer` set
    `remove_unused_columns=False`). It holds numbers only, so it pickles for loader workers.

        collate = SegmentCollator(tokenizer, decoder_start_token_id=model.config.decoder_start_token_id)
        batch = collate([examples[0], examples[1]])
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        decoder_start_token_id: int | None = None,
        sequence_format: Any = None,
        context_sides: str = "both",
        context_discount: float = 1.0,
        use_bod: bool = False,
    ):
        check_known(context_sides, CONTEXT_SIDES, "context_sides", "expected one of")
        self.pad = _required_id(tokenizer, "pad_token")
        eos = [_required_id(tokenizer, "eos_token")]
        if sequence_format is None and decoder_start_token_id is None:
            raise ValueError("decoder_start_token_id is missing; give it, or the sequence_format of a configuration")
        self.sep = tokenizer.sep_token_id
        self.bod = tokenizer.convert_tokens_to_ids("<bod>") if use_bod else None
        if use_bod and self.bod in (None, tokenizer.unk_token_id):
            raise ValueError("use_bod=True, but the tokenizer has no '<bod>'; add it as a special token")
        # tokens before and after the sentences as encoder and decoder read them
        self.around_source = self.around_translation = self.around_target = ([], eos)
        self.decoder_start = decoder_start_token_id
        if sequence_format is not None:
            self.around_source = (sequence_format.source_before, sequence_format.source_after)
            self.around_translation = (sequence_format.translation_before, sequence_format.translation_after)
            self.around_target, self.decoder_start = (sequence_format.target_before, eos), sequence_format.start
        self.context_sides = context_sides
        self.context_discount = context_discount

    def __call__(self, examples: Sequence[dict]) -> dict[str, torch.Tensor]:
        _check_examples(examples)
        sources = [self._segment(row["source"], row["document_start"], self.around_source) for row in examples]
        targets = [self._target(row) for row in examples]
        changed = any("read_target" in row for row in examples)
        read = [self._target(as_read(row)) for row in examples] if changed else targets
        batch = self._batch(sources, targets, read)
        if self.context_discount != 1 and self.context_sides == "both":
            if any(row["current"] is not None and len(row["target"]) > 1 for row in examples):
                weights = [self._weights(row, len(target)) for row, target in zip(examples, targets)]
                batch["label_weights"] = pad_rows(weights, 0.0)
        return batch

    def _batch(self, sources: list[list[int]], targets: list[list[int]], read: list[list[int]]) -> dict:
        """`targets` are learned, after what is `read` of them."""
        starts = [[self.decoder_start, *target[:-1]] for target in read]
        prompt = len(self.around_target[0])
        return {
            "input_ids": pad_rows(sources, self.pad),
            "attention_mask": pad_rows([[1] * len(source) for source in sources], 0),
            "decoder_input_ids": pad_rows(starts, self.pad),
            "decoder_attention_mask": pad_rows([[1] * len(target) for target in targets], 0),
            "labels": pad_rows([[IGNORE_INDEX] * prompt + target[prompt:] for target in targets], IGNORE_INDEX),
        }

    def _target(self, row: dict) -> list[int]:
        if self.context_sides == "both" or row["current"] is None:
            return self._segment(row["target"], row["document_start"], self.around_target)
        return self._segment([row["target"][row["current"]]], row["index"] == 0, self.around_target)

    def _segment(self, sentences: list[list[int]], document_start: bool, around: tuple[list[int], list[int]]) -> list:
        if self.sep is None and len(sentences) > 1:
            raise ValueError("segments of several sentences need a tokenizer with sep_token; add '<sep>' as sep_token")
        before, after = around
        segment = [*before, self.bod] if self.bod is not None and document_start else [*before]
        for sentence in sentences:
            segment += [*sentence, self.sep]
        return segment[:-1] + after

    def _weights(self, row: dict, length: int) -> list[float]:
        current, target = row["current"], row["target"]
        if current is None:
            return [1.0] * length
        opening = length - sum(len(sentence) + 1 for sentence in target)  # language code, <bod>
        start = opening + sum(len(sentence) + 1 for sentence in target[:current]) if current else 0
        stop = opening + sum(len(sentence) + 1 for sentence in target[: current + 1])
        discount = self.context_discount
        return [discount] * start + [1.0] * (stop - start) + [discount] * (length - stop)


class ContextCollator(SegmentCollator):
    """The current sentence of each example alone, `<bod>? tokens </s>`, and its context as inputs of their own.

    In addition to the output of `SegmentCollator` (without label weights: all labels are the current sentence's):
    `context_input_ids`, `context_attention_mask` (B, C, L) int64, one context sentence per row, in document order,
    those of the source before those of the target; `context_offsets` (B, C) int64, in sentences from the current one, 0
    in rows that are fully masked, because the sentence is missing or empty; `context_is_target` (B, C) bool.
    `context_sides`: `source`, `target` (past sentences only) or `both`. C is at least 1. Further options and errors are
    those of `SegmentCollator`.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, context_sides: str = "source", **options):
        check_known(context_sides, ("source", "target", "both"), "context_sides", "expected one of")
        super().__init__(tokenizer, **options)
        self.context_sides = context_sides

    def __call__(self, examples: Sequence[dict]) -> dict[str, torch.Tensor]:
        _check_examples(examples)
        sources = [self._sentence(row, "source", 0, self.around_source) for row in examples]
        targets = [self._sentence(row, "target", 0, self.around_target) for row in examples]
        around = {"source": self.around_source, "target": self.around_translation}
        context = [self._context(row) for row in examples]  # (offset, side)
        count = max(1, max(map(len, context)))  # C
        context = [row + [(0, None)] * (count - len(row)) for row in context]
        ids = [
            self._sentence(row, side, offset, around[side]) if side else []
            for row, inputs in zip(map(as_read, examples), context)
            for offset, side in inputs
        ]
        shape = (len(examples), count, -1)  # (B, C, L)
        return self._batch(sources, targets, targets) | {
            "context_input_ids": pad_rows(ids if any(ids) else [[self.pad]] * len(ids), self.pad).view(shape),
            "context_attention_mask": pad_rows([[1] * len(row) if row else [0] for row in ids], 0).view(shape),
            "context_offsets": pad_rows([[offset for offset, _ in row] for row in context], 0).view(shape[:2]),
            "context_is_target": pad_rows([[side == "target" for _, side in row] for row in context], False),
        }

    def _context(self, row: dict) -> list[tuple[int, str]]:
        """Offset and side of the existing context sentences."""
        current, context = row["current"], []
        if self.context_sides != "target":
            context += [(index - current, "source") for index in range(len(row["source"])) if index != current]
        if self.context_sides != "source":
            context += [(index - current, "target") for index in range(current)]
        return [(offset, side) for offset, side in context if row[side][current + offset]]

    def _sentence(self, row: dict, side: str, offset: int, around: tuple[list[int], list[int]]) -> list[int]:
        index = row["current"] + offset
        return self._segment([row[side][index]], row["document_start"] and index == 0, around)


def as_read(row: dict) -> dict:
    """An example whose target sentences are as the model reads them, see `AugmentedExamples`."""
    return row | {"target": row["read_target"]} if "read_target" in row else row


def pad_rows(rows: Sequence[list], value: float) -> torch.Tensor:
    """Lists of numbers as one tensor (rows, longest row), filled up with `value` on the right.

    The type is that of the value: int64, float32 or bool.
    """
    width = max(len(row) for row in rows)
    padded = np.full((len(rows), width), value, dtype={bool: bool, int: np.int64, float: np.float32}[type(value)])
    for target, row in zip(padded, rows):
        target[: len(row)] = row
    return torch.from_numpy(padded)


def _check_examples(examples: Sequence[dict]) -> None:
    if "source" not in examples[0] or "target" not in examples[0]:
        raise ValueError(
            f"examples need 'source' and 'target', got {sorted(examples[0])}; in a Trainer set "
            "remove_unused_columns=False, which keeps the keys that the model does not take"
        )


def _required_id(tokenizer: PreTrainedTokenizerBase, name: str) -> int:
    token_id = getattr(tokenizer, f"{name}_id")
    if token_id is None:
        raise ValueError(f"the tokenizer has no {name}; set it (tokenizer.{name} = ...) before making batches")
    return token_id
