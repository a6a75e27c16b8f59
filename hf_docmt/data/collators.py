"""Collators: examples of a view to a padded batch, of segments or of sentences with their context beside them."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedTokenizerBase

from hf_docmt.data.examples import CONTEXT_SIDES, check_choices

IGNORED = -100


class SegmentCollator:
    """Joins the sentences of each example to one segment a side, `<bod>? s1 <sep> ... <sep> sK </s>`, and pads right.

    Returns `input_ids`, `attention_mask` (B, S), `decoder_input_ids`, `decoder_attention_mask`, `labels` (B, T), masks
    with 1 = token, padding of labels -100. The decoder input is the labels shifted right behind
    `decoder_start_token_id`. `context_sides="source"` keeps only the current sentence on the target side. `<bod>`
    stands (with `use_bod`) where a side begins at the document's first sentence.

    `label_weights` (B, T) float, there when `context_discount` is not 1 and a row has target context: 1 from the
    current sentence's first token through the `</s>` or `<sep>` that ends it, `context_discount` on context, 0 on
    padding (Lupo et al. 2022, context discounting; the loss divides by the number of labels, undiscounted). The `<sep>`
    before the current sentence is context; `<bod>` has the weight of the sentence it opens.

    Holds numbers only, so it pickles for loader workers. In a `Trainer` set `remove_unused_columns=False`.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        decoder_start_token_id: int,
        context_sides: str = "both",
        context_discount: float = 1.0,
        use_bod: bool = False,
        pad_to_multiple_of: int | None = None,
    ):
        check_choices(context_sides=(context_sides, CONTEXT_SIDES))
        if not 0 <= context_discount <= 1:
            raise ValueError(f"context_discount={context_discount} must be from 0 to 1")
        self.pad = _required_id(tokenizer, "pad_token")
        self.eos = _required_id(tokenizer, "eos_token")
        self.sep = tokenizer.sep_token_id
        self.bod = tokenizer.convert_tokens_to_ids("<bod>") if use_bod else None
        if use_bod and self.bod in (None, tokenizer.unk_token_id):
            raise ValueError("use_bod=True, but the tokenizer has no '<bod>'; add it as a special token")
        self.decoder_start = decoder_start_token_id
        self.context_sides = context_sides
        self.context_discount = context_discount
        self.pad_to_multiple_of = pad_to_multiple_of

    def __call__(self, examples: Sequence[dict]) -> dict[str, torch.Tensor]:
        self._check(examples)
        sources = [self._segment(row["source"], row["document_start"]) for row in examples]
        targets = [self._target(row) for row in examples]
        batch = self._batch(sources, targets)
        if self.context_discount != 1 and self.context_sides == "both":
            if any(row["current"] is not None and len(row["target"]) > 1 for row in examples):
                weights = [self._weights(row, len(target)) for row, target in zip(examples, targets)]
                batch["label_weights"] = self._padded(weights, 0.0)
        return batch

    def _check(self, examples: Sequence[dict]) -> None:
        if "source" not in examples[0] or "target" not in examples[0]:
            raise ValueError(
                f"examples need 'source' and 'target', got {sorted(examples[0])}; in a Trainer set "
                "remove_unused_columns=False, which keeps the keys that the model does not take"
            )

    def _batch(self, sources: list[list[int]], targets: list[list[int]]) -> dict[str, torch.Tensor]:
        starts = [[self.decoder_start, *target[:-1]] for target in targets]
        return {
            "input_ids": self._padded(sources, self.pad),
            "attention_mask": self._padded([[1] * len(source) for source in sources], 0),
            "decoder_input_ids": self._padded(starts, self.pad),
            "decoder_attention_mask": self._padded([[1] * len(target) for target in targets], 0),
            "labels": self._padded(targets, IGNORED),
        }

    def _target(self, row: dict) -> list[int]:
        if self.context_sides == "both" or row["current"] is None:
            return self._segment(row["target"], row["document_start"])
        return self._segment([row["target"][row["current"]]], row["index"] == 0)

    def _segment(self, sentences: list[list[int]], document_start: bool) -> list[int]:
        if self.sep is None and len(sentences) > 1:
            raise ValueError("segments of several sentences need a tokenizer with sep_token; add '<sep>' as sep_token")
        segment = [self.bod] if self.bod is not None and document_start else []
        for sentence in sentences:
            segment += [*sentence, self.sep]
        segment[-1] = self.eos
        return segment

    def _weights(self, row: dict, length: int) -> list[float]:
        current, target = row["current"], row["target"]
        if current is None:
            return [1.0] * length
        bod = length - sum(len(sentence) + 1 for sentence in target)  # 1 if <bod> stands first
        start = bod + sum(len(sentence) + 1 for sentence in target[:current]) if current else 0
        stop = bod + sum(len(sentence) + 1 for sentence in target[: current + 1])
        discount = self.context_discount
        return [discount] * start + [1.0] * (stop - start) + [discount] * (length - stop)

    def _padded(self, rows: list[list], value: float) -> torch.Tensor:
        """(B, longest row), int64 or, where the padding value is one, float."""
        width = max(len(row) for row in rows)
        if self.pad_to_multiple_of:
            width = -(-width // self.pad_to_multiple_of) * self.pad_to_multiple_of
        return torch.tensor([row + [value] * (width - len(row)) for row in rows])


class ContextCollator(SegmentCollator):
    """The current sentence of each example alone, `<bod>? tokens </s>`, and its context as inputs of their own.

    Besides what `SegmentCollator` returns (there are no label weights: all labels are the current sentence's):
    `context_input_ids`, `context_attention_mask` (B, C, L), one context sentence a row, in order, those of the source
    before earlier translations; `context_offsets` (B, C), 0 in rows that are all masked, since there is no such
    sentence or it is empty; `context_is_target` (B, C) bool. `context_sides`: `source`, `target` (past ones
    only) or `both`. C is at least 1.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, context_sides: str = "source", **options):
        check_choices(context_sides=(context_sides, ("source", "target", "both")))
        super().__init__(tokenizer, **options)
        self.context_sides = context_sides

    def __call__(self, examples: Sequence[dict]) -> dict[str, torch.Tensor]:
        self._check(examples)
        sources, targets = ([self._sentence(row, side, 0) for row in examples] for side in ("source", "target"))
        context = [self._context(row) for row in examples]  # (offset, side)
        width = max(1, max(map(len, context)))
        context = [found + [(0, None)] * (width - len(found)) for found in context]
        ids = [
            self._sentence(row, side, offset) if side else []
            for row, found in zip(examples, context)
            for offset, side in found
        ]
        shape = (len(examples), width, -1)
        return self._batch(sources, targets) | {
            "context_input_ids": self._padded(ids if any(ids) else [[self.pad]] * len(ids), self.pad).view(shape),
            "context_attention_mask": self._padded([[1] * len(row) if row else [0] for row in ids], 0).view(shape),
            "context_offsets": self._padded([[offset for offset, _ in found] for found in context], 0).view(shape[:2]),
            "context_is_target": self._padded([[side == "target" for _, side in found] for found in context], False),
        }

    def _context(self, row: dict) -> list[tuple[int, str]]:
        """Offset and side of the context sentences that are there."""
        current, found = row["current"], []
        if self.context_sides != "target":
            found += [(place - current, "source") for place in range(len(row["source"])) if place != current]
        if self.context_sides != "source":
            found += [(place - current, "target") for place in range(current)]
        return [(offset, side) for offset, side in found if row[side][current + offset]]

    def _sentence(self, row: dict, side: str, offset: int) -> list[int]:
        place = row["current"] + offset
        return self._segment([row[side][place]], row["document_start"] and place == 0)


def _required_id(tokenizer: PreTrainedTokenizerBase, name: str) -> int:
    token_id = getattr(tokenizer, f"{name}_id")
    if token_id is None:
        raise ValueError(f"the tokenizer has no {name}; set it (tokenizer.{name} = ...) before making batches")
    return token_id
