"""Attention weights of SCAT examples with forced references, and the words that they connect."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from hf_docmt.analysis.scat import MarkedText, ScatExample
from hf_docmt.analysis.word_attention import Word, attention_on_marked_words, segment_words
from hf_docmt.evaluation.systems.forced_decoding import ForcedDecoding, check_lengths
from hf_docmt.evaluation.systems.model_system import evaluation_mode, piece_ids

ATTENTIONS = {"encoder": "encoder_attentions", "cross": "cross_attentions", "decoder": "decoder_attentions"}
STEPS = ("writes", "reads")


@dataclass(frozen=True)
class ForcedExample:
    """Attention (layers, heads, queries, keys) of one example, and its words by their positions as queries and keys."""

    weights: np.ndarray
    queries: list[Word]
    keys: list[Word]
    length: int  # keys that are not padding

    def heads(self) -> tuple[str, ...]:
        """Labels of all heads, layer by layer."""
        layers, heads = self.weights.shape[:2]
        return tuple(f"layer={i} head={j}" for i in range(1, layers + 1) for j in range(1, heads + 1))

    def pronoun(self, number: int, attention: str, at: Sequence[int]) -> np.ndarray | None:
        """`attention_on_marked_words` of a query word over the keys that it sees; row 0 is that of averaged weights."""
        positions = list(self.queries[number].positions)
        weights = self.weights[:, :, positions].mean(axis=2)  # (layers, heads, keys)
        weights = np.vstack([weights.mean(axis=(0, 1)), weights.reshape(-1, weights.shape[-1])])
        seen = positions[-1] + 1 if attention == "decoder" else self.length
        others = [key for index, key in enumerate(self.keys) if attention == "cross" or index != number]
        return attention_on_marked_words(weights, [key for key in others if key.positions[-1] < seen], seen, at)


def forced_attention(
    system: ForcedDecoding, examples: Sequence[ScatExample], attention: str, step: str, batch_size: int
) -> Iterator[tuple[ScatExample, ForcedExample]]:
    """The examples with forced references; the decoder reads at position t + 1 what it writes at position t."""
    rows = [_row(system, example) for example in examples]
    check_lengths(system.model, system.collate, [[row] for row in rows])
    for start in range(0, len(examples), batch_size):
        batch = system.collate(rows[start : start + batch_size])
        labels, _ = batch.pop("labels"), batch.pop("label_weights", None)
        device = next(system.model.parameters()).device
        with evaluation_mode(system.model), torch.inference_mode():
            output = system.model(**{name: value.to(device) for name, value in batch.items()}, output_attentions=True)
        weights = torch.stack(getattr(output, ATTENTIONS[attention])).float().cpu().numpy()  # (layers, B, H, Q, K)
        for row, example in enumerate(examples[start : start + batch_size]):
            segment = batch["input_ids"][row][batch["attention_mask"][row] == 1].tolist()
            source = segment_words(segment, _texts(system, example, "source"), system.tokenizer, is_target=False)
            segment, length = labels[row][labels[row] != -100].tolist(), len(segment)
            target = segment_words(segment, _texts(system, example, "target"), system.tokenizer, is_target=True)
            read = [word.shifted(1) for word in target]
            queries = source if attention == "encoder" else read if step == "reads" else target
            keys = read if attention == "decoder" else source
            yield example, ForcedExample(weights[:, row], queries, keys, length)


def _row(system: ForcedDecoding, example: ScatExample) -> dict:
    """The example in the form of training examples; the current sentence does not begin its document."""
    context, missing = bool(system.past_context), [[]] * system.future_context
    sides = {}
    for side in ("source", "target"):
        texts = [getattr(example, f"{side}_context")] * context + [getattr(example, side)]
        sides[side] = [piece_ids(system.tokenizer, text.text, is_target=side == "target") for text in texts] + missing
    position = {"doc_id": example.example_id, "index": 1, "current": int(context), "document_start": False}
    return position | sides


def _texts(system: ForcedDecoding, example: ScatExample, side: str) -> list[MarkedText]:
    """The texts of a side that the model reads."""
    context = system.past_context and (side == "source" or system.collate.context_sides == "both")
    return [getattr(example, f"{side}_context")] * bool(context) + [getattr(example, side)]
