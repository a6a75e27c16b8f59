"""Log-probabilities of answers to prompts: every prompt is read once for all of its answers."""

import inspect
from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import nn
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from hf_docmt.data.collators import IGNORE_INDEX
from hf_docmt.modeling.row_processors import pad_rows

CACHE_NAMES = ("cache", "past_key_values")  # of the argument and the output, since transformers 5.24 and before
Prompts = Sequence[tuple[int, ...]]


@torch.inference_mode()
def answer_scores(
    model: PreTrainedModel, groups: Sequence[tuple[tuple[int, ...], Prompts]], pad: int
) -> dict[tuple[tuple, tuple], list[float]]:
    """Log-probabilities in fp32 of the tokens of all answers, by (prompt, answer); `groups` are prompts with answers.

    Each row goes on from the keys and values of its prompt. A model that gives none, or takes no positions, reads the
    prompt in every row. Logits are computed where answers are scored.
    """
    device, parameters = model.device, set(inspect.signature(model.forward).parameters)
    pairs = [(number, answer) for number, (_, answers) in enumerate(groups) for answer in answers]
    cache, prompt_mask = _read(model, [prompt[:-1] for prompt, _ in groups], pad, parameters)
    before = [0 if cache is not None else len(groups[number][0]) - 1 for number, _ in pairs]  # tokens without a label
    rows = [[*groups[number][0][-1 - skip :], *answer[:-1]] for skip, (number, answer) in zip(before, pairs)]
    labels = [[IGNORE_INDEX] * skip + list(answer) for skip, (_, answer) in zip(before, pairs)]
    ids, mask = pad_rows(rows, pad, device)  # (B, T)
    targets, _ = pad_rows(labels, IGNORE_INDEX, device)  # (B, T)
    inputs: dict[str, Any] = {}
    if cache is not None:
        owners = torch.tensor([number for number, _ in pairs], device=device)
        cache.batch_select_indices(owners)
        mask = torch.cat([prompt_mask[owners], mask], dim=1)  # (B, P + T)
        inputs = {_cache_name(parameters): cache, **_positions(mask, targets.shape[1])}
    scored = (targets != IGNORE_INDEX).any(dim=0).nonzero()[:, 0]  # positions
    if "logits_to_keep" in parameters:
        inputs["logits_to_keep"] = scored
    logits = model(input_ids=ids, attention_mask=mask, use_cache=cache is not None, **inputs).logits
    logits = logits if "logits_to_keep" in parameters else logits[:, scored]  # (B, scored, V)
    targets = targets[:, scored]
    is_label = targets != IGNORE_INDEX
    values = -nn.functional.cross_entropy(logits[is_label].float(), targets[is_label], reduction="none")
    split = values.cpu().split([len(answer) for _, answer in pairs])
    return {(groups[number][0], answer): part.tolist() for (number, answer), part in zip(pairs, split)}


def _read(
    model: PreTrainedModel, prompts: Prompts, pad: int, parameters: Collection[str]
) -> tuple[DynamicCache | None, torch.Tensor | None]:
    """Keys and values of prompts, padded on the left, and their mask; None where it gives none."""
    name = _cache_name(parameters)
    if name is None or "position_ids" not in parameters or not all(prompts):
        return None, None
    ids, mask = pad_rows(prompts, pad, model.device, side="left")
    kept = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}
    output = model(input_ids=ids, attention_mask=mask, use_cache=True, **_positions(mask, mask.shape[1]), **kept)
    cache = getattr(output, name, None)
    has_rows = isinstance(cache, DynamicCache) and all(isinstance(layer, DynamicLayer) for layer in cache.layers)
    return (cache, mask) if has_rows else (None, None)


def _cache_name(parameters: Collection[str]) -> str | None:
    return next((name for name in CACHE_NAMES if name in parameters), None)


def _positions(mask: torch.Tensor, size: int) -> dict[str, torch.Tensor]:
    """The positions of the last `size` tokens, counted from the first that is not padding."""
    return {"position_ids": (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -size:]}
