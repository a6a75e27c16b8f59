"""Greedy search as in transformers and with the same results; the best token is found block by block."""

import torch
from transformers import GenerationConfig

BLOCK = 128  # neighbouring tokens, of which only the best is looked at first


def greedy_search(
    model, input_ids: torch.Tensor, logits_processor, stopping_criteria, config: GenerationConfig, **model_kwargs
) -> torch.Tensor:
    """Prompts (B, T) to translations (B, at most `max_length`), for a model of `GenerationMixin`; nothing recorded."""
    pads_finished = any(hasattr(criterion, "eos_token_id") for criterion in stopping_criteria)
    unfinished = torch.ones(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)
    outputs = model._prefill(input_ids, config, model_kwargs, is_first_iteration=not config.is_assistant)
    while True:
        model_kwargs = model._update_model_kwargs_for_generation(outputs, model_kwargs, is_encoder_decoder=True)
        logits = outputs.logits[:, -1].to(input_ids.device, torch.float32, copy=True)  # (B, V), free for processors
        tokens = best_token(logits_processor(input_ids, logits))  # (B,)
        if pads_finished:
            tokens = torch.where(unfinished, tokens, config._pad_token_tensor)
        input_ids = torch.cat([input_ids, tokens[:, None]], dim=1)
        unfinished = unfinished & ~stopping_criteria(input_ids, None)
        if not unfinished.any():
            return input_ids
        new = 1 if model_kwargs["use_cache"] else None
        inputs = model.prepare_inputs_for_generation(input_ids, next_sequence_length=new, **model_kwargs)
        outputs = model(**inputs, return_dict=True)


def best_token(scores: torch.Tensor) -> torch.Tensor:
    """`argmax` of scores (R, V): the first of the largest, or of those that are no numbers, (R,)."""
    size = scores.shape[1]
    if size < 2 * BLOCK:
        return scores.argmax(dim=1)
    blocks = scores[:, : size // BLOCK * BLOCK].unflatten(1, (-1, BLOCK))
    rest = scores[:, -BLOCK:].amax(dim=1, keepdim=True)  # what is behind the last block, and some of it again
    block = torch.cat([blocks.amax(dim=2), rest], dim=1).argmax(dim=1)  # (R,)
    start = (block * BLOCK).clamp(max=size - BLOCK)[:, None]
    return start[:, 0] + scores.gather(1, start + torch.arange(BLOCK, device=scores.device)).argmax(dim=1)
