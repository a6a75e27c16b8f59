"""Beam search as in transformers and with the same results, but with fewer passes over the scores of the vocabulary.

In every step transformers copies the logits, adds the scores of the beams to all log-probabilities and selects among
all of them. Here the scores of the beams are added to the best tokens alone, which are found block by block.
"""

import torch
from transformers import GenerationConfig

BLOCK = 128  # neighbouring tokens, of which only the best is looked at first


def beam_search(
    model, input_ids: torch.Tensor, logits_processor, stopping_criteria, config: GenerationConfig, **model_kwargs
) -> torch.Tensor:
    """Prompts (B * beams, T) to translations (B * num_return_sequences, at most `max_length`).

    For a model of `GenerationMixin`, whose methods do all but the selection of tokens; no sampling, nothing recorded.
    """
    beams, prompt, device = config.num_beams, input_ids.shape[1], input_ids.device
    batch, max_length = input_ids.shape[0] // beams, config.max_length
    penalty, early_stopping = config.length_penalty, config.early_stopping
    ends = config._eos_token_tensor
    candidates = max(2, 1 + (0 if ends is None else len(ends))) * beams  # so many that `beams` of them go on
    is_top = torch.arange(candidates, device=device) < beams
    first_rows = torch.arange(0, batch * beams, beams, device=device)[:, None]  # (B, 1)
    padding = -1 if ends is None else config._pad_token_tensor or ends[0]

    running = torch.full((batch, beams, max_length), padding, dtype=torch.long, device=device)
    running[:, :, :prompt] = input_ids.view(batch, beams, prompt)
    scores = torch.zeros(batch, beams, device=device)
    scores[:, 1:] = -1e9  # the beams of a prompt are equal, so only the first is continued
    finished, finished_scores = running.clone(), torch.full_like(scores, -1e9)
    finished_lengths = torch.zeros(batch, beams, 1, dtype=torch.long, device=device)
    is_finished = torch.zeros_like(scores, dtype=torch.bool)
    improves = is_finished.new_ones(batch, 1)  # whether a translation that is still running may become the best

    outputs = model._prefill(input_ids, config, model_kwargs, is_first_iteration=not config.is_assistant)
    log_probs, are_kept = None, any(map(keeps_scores, logits_processor))
    for length in range(prompt, max_length):
        ids = running[:, :, :length].flatten(0, 1)  # (B * beams, T)
        if length > prompt:
            new = 1 if model_kwargs["use_cache"] else None
            inputs = model.prepare_inputs_for_generation(ids, next_sequence_length=new, **model_kwargs)
            outputs = model(**inputs, return_dict=True)
        model_kwargs = model._update_model_kwargs_for_generation(outputs, model_kwargs, is_encoder_decoder=True)
        logits = outputs.logits[:, -1].to(device, torch.float32)  # (B * beams, V)
        buffer = None if are_kept else log_probs  # of the last step
        log_probs = torch.log_softmax(logits, dim=-1, out=buffer)
        del outputs, logits

        best, indices = best_continuations(logits_processor(ids, log_probs), scores, candidates)  # (B, K)
        sources, tokens = indices // log_probs.shape[1], indices % log_probs.shape[1]
        continued = model._gather_beams(running, sources)  # (B, K, T)
        continued[:, :, length] = tokens
        ended = stopping_criteria(continued[:, :, : length + 1].flatten(0, 1), None).view(batch, candidates)
        running, scores, rows = model._get_running_beams_for_next_iteration(
            best, continued, (sources + first_rows)[..., None], ended, beams
        )
        lengths = torch.full_like(sources, length + 1 - prompt)[..., None]
        finished, finished_scores, finished_lengths, is_finished = model._update_finished_beams(
            *(finished, continued, finished_scores, best, finished_lengths, lengths),
            *(improves, is_finished, ended, is_top, beams, length, prompt, penalty, early_stopping),
        )
        if model_kwargs.get("past_key_values") is not None:
            model_kwargs["past_key_values"] = model._reorder_cache(model_kwargs["past_key_values"], rows.flatten())
        improves = model._check_early_stop_heuristic(
            *(improves, scores, finished_scores, is_finished),
            *(length + 1, max_length, prompt, early_stopping, penalty),
        )
        if not model._beam_search_has_unfinished_sequences(improves, is_finished, ended, early_stopping):
            break
    returned = config.num_return_sequences
    longest = int(finished_lengths[:, :returned].max())
    return finished[:, :returned, : prompt + longest].flatten(0, 1)


def keeps_scores(processor) -> bool:
    """Whether a processor may look at its scores after the step, as those of transformers do not."""
    return getattr(processor, "keeps_scores", not type(processor).__module__.startswith("transformers."))


def best_continuations(log_probs: torch.Tensor, scores: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`topk` of log-probabilities (B * beams, V) plus the scores of their beams (B, beams), over beams and tokens.

    Returns values and indices into (beams * V), (B, count) each. Where values are equal, their order is that of torch.
    """
    batch, beams = scores.shape
    vocab_size = log_probs.shape[1]
    log_probs = log_probs.reshape(batch, beams, vocab_size)
    if vocab_size // BLOCK <= count:
        return (log_probs + scores[..., None]).flatten(1).topk(count)
    values, tokens = best_tokens(log_probs.flatten(0, 1), count + 1)  # (B * beams, count + 1)
    values = values.view(batch, beams, -1) + scores[..., None]
    tokens = tokens.view(batch, beams, -1) + torch.arange(beams, device=scores.device)[:, None] * vocab_size
    values, order = values.flatten(1).topk(count + 1)
    indices = tokens.flatten(1).gather(1, order)
    tied = ~(values[:, :-1] > values[:, 1:]).all(dim=1)  # or no numbers
    values, indices = values[:, :-1], indices[:, :-1]
    if tied.any():
        values, indices = values.clone(), indices.clone()
        values[tied], indices[tied] = (log_probs[tied] + scores[tied][..., None]).flatten(1).topk(count)
    return values, indices


def best_tokens(scores: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`topk` of scores (R, V), but for the order of equal ones: values and indices, (R, count) each."""
    rows, whole = scores.shape[0], scores.shape[1] // BLOCK * BLOCK
    blocks = scores[:, :whole].unflatten(1, (-1, BLOCK))  # (R, V / BLOCK, BLOCK)
    best = blocks.amax(dim=2).topk(count, sorted=False).indices  # a better token is in one of the best blocks
    values = blocks[torch.arange(rows, device=best.device)[:, None], best].flatten(1)  # (R, count * BLOCK)
    indices = (best[..., None] * BLOCK + torch.arange(BLOCK, device=best.device)).flatten(1)
    if whole < scores.shape[1]:
        rest = torch.arange(whole, scores.shape[1], device=best.device)
        values, indices = torch.cat([values, scores[:, whole:]], 1), torch.cat([indices, rest.expand(rows, -1)], 1)
    values, order = values.topk(count)
    return values, indices.gather(1, order)
