"""Which source words the words of a translation translate, from the cross-attention of the model that wrote it."""

from collections.abc import Sequence

import numpy as np
import regex
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.systems.attention_weights import (
    CROSS_ATTENTION,
    attention_weights,
    eager_attention,
    kept_outputs,
    modules_named,
)
from hf_docmt.systems.model_system import piece_spans, word_spans

POWER = 3  # of attention, which makes the words that it means stand out from those that it glances at
COPIED = 2.0  # times the attention to a source word that is the same as the target word
LEAST = 0.05  # of a fit that is kept
SCRIPTS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"  # without blanks between words
UNSPACED = regex.compile(rf"(?V1){SCRIPTS}")
WORD = regex.compile(  # of such scripts each character is a word
    rf"(?V1){SCRIPTS}\p{{M}}*|"
    r"[\p{L}\p{N}\p{M}]+(?:['’][\p{L}\p{M}]+)*|[^\s]"
)
Fit = list[list[float]]  # [target word, source word, fit of 0 to 1], those that are not small


def words_of(text: str) -> list[tuple[int, int]]:
    """(start, end) characters of the words of a text; other signs are words of one character."""
    return word_spans(text, WORD)


def attention_fit(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, example: dict, batch: dict, source: str, target: str
) -> Fit:
    """How well the words of a sentence and its translation fit together, by the model that wrote it.

    `example` and `batch` are the pair alone, as for training. A pass over it, with the translation forced, gives the
    attention (T, S) of the step that writes target word t to source word s, mean of layers and heads. The fit is high
    where both choose each other: a^3 as a share of its row times a^3 as a share of its column, over the best of the
    column. Words that are the same have twice the attention. On 836 names and numbers that a model copied, a span from
    fits of at least one half was exactly theirs for 95.6 % by attention alone and 98.9 % so.
    """
    return _fit(_attention(model, tokenizer, example, batch, source, target), source, target)


def position_fit(source: str, target: str) -> Fit:
    """The same from relative positions alone, for models whose attention is not known."""
    rows, columns = len(words_of(target)), len(words_of(source))
    expected = (np.arange(rows)[:, None] + 0.5) / max(rows, 1) * columns - 0.5
    return _fit(1 / (1 + (expected - np.arange(columns)) ** 2), source, target, copied=1e3)


def _attention(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, example: dict, batch: dict, source: str, target: str
) -> np.ndarray:
    """Weights (T words, S words); zero where the tokens of the sentence are not found in what the model reads."""
    batch = {name: value.to(model.device) for name, value in batch.items()}
    labels, keys = batch.pop("labels")[0].tolist(), batch["input_ids"].shape[1]
    batch.pop("label_weights", None)
    ids = (example["source"][example["current"]], example["target"][example["current"]])
    sides = (batch["input_ids"][0].tolist(), labels)
    starts = [_position(part, whole) for part, whole in zip(ids, sides)]
    spans = [piece_spans(tokenizer, text, is_target=i == 1) for i, text in enumerate((source, target))]
    rows, columns = _words_by_token(target, spans[1]), _words_by_token(source, spans[0])  # (words, tokens)
    if None in starts or len(spans[0]) != len(ids[0]) or len(spans[1]) != len(ids[1]):
        return np.zeros((len(rows), len(columns)))
    modules = modules_named(model.get_decoder(), CROSS_ATTENTION)
    with torch.inference_mode(), eager_attention(model):
        with kept_outputs(modules, lambda output: _source_weights(output, keys)) as layers:
            model(**batch, use_cache=False)
    weights = torch.stack(layers).mean(dim=(0, 2), dtype=torch.double)[0].cpu().numpy()  # (T, S)
    weights = weights[starts[1] : starts[1] + len(ids[1]), starts[0] : starts[0] + len(ids[0])]
    return rows / np.maximum(rows.sum(axis=1, keepdims=True), 1) @ weights @ columns.T


def _source_weights(output: Sequence, keys: int) -> torch.Tensor:
    """The weights (B, H, T, S) for the source of what a module of cross-attention gives; context stands before it."""
    _, weights, *positions = output
    has_context = weights is not None and not positions and weights.shape[-1] > keys
    return weights[..., -keys:] if has_context else attention_weights(output, keys)


def _position(part: list[int], whole: list[int]) -> int | None:
    """Where the last run of these ids begins in others."""
    starts = range(len(whole) - len(part), -1, -1)
    return next((start for start in starts if whole[start : start + len(part)] == part), None)


def _words_by_token(text: str, spans: list[tuple[int, int]]) -> np.ndarray:
    """(words, tokens) 1 where a token has characters of a word."""
    words = words_of(text)
    table = np.zeros((len(words), len(spans)))
    for token, (start, end) in enumerate(spans):
        start = end - len(text[start:end].lstrip())
        for word, (first, stop) in enumerate(words):
            table[word, token] = start < stop and end > first
    return table


def _fit(weights: np.ndarray, source: str, target: str, copied: float = COPIED) -> Fit:
    texts = [[text[start:end] for start, end in words_of(text)] for text in (source, target)]
    same = np.array([[word == other for word in texts[0]] for other in texts[1]], dtype=bool)
    if not weights.any():
        return []
    weights = (weights * np.where(same, copied, 1)) ** POWER
    shares = [weights / np.maximum(weights.sum(axis=axis, keepdims=True), 1e-30) for axis in (0, 1)]
    fit = shares[0] * shares[1]
    fit = fit / np.maximum(fit.max(axis=0, keepdims=True), 1e-30)
    return [[int(row), int(column), round(float(fit[row, column]), 2)] for row, column in np.argwhere(fit >= LEAST)]
