"""Weights that belong to context sentences at an offset, for a model that goes on with other context."""

import torch
from torch import nn

from .context_selection import scored_offsets


def adapt_selection(
    model: nn.Module, state_dict: dict[str, torch.Tensor], new_names: set[str], source_config
) -> tuple[dict[str, torch.Tensor], set[str]]:
    """`adapt_state_dict` of a model with `SelectedAttention`, from one of the same architecture with other context.

    The gate's rows go with their sentences; the projection of a side of which this model reads nothing is left out.
    """
    config = model.config
    if source_config.model_type != config.model_type:
        return state_dict, new_names
    sides = {"past_proj.weight": config.past_context, "future_proj.weight": config.future_context}
    unneeded = tuple(name for name, sentences in sides.items() if not sentences)
    state_dict = {name: weight for name, weight in state_dict.items() if not name.endswith(unneeded)}
    before, now = scored_offsets(source_config), scored_offsets(config)
    for name in [name for name in state_dict if name.endswith("selection.fc2.weight")]:
        state_dict, new_names = move_rows(model, state_dict, new_names, name, before, now)
    return state_dict, new_names


def move_rows(
    model: nn.Module, state_dict: dict[str, torch.Tensor], new_names: set[str], name: str, before: list, now: list
) -> tuple[dict[str, torch.Tensor], set[str]]:
    """A table whose rows stand for sentences, `before` in `state_dict`, `now` in the model: each row to its sentence.

    Rows of sentences that `state_dict` has not are those of the model; the table is new where there are any.
    """
    parameters = dict(model.named_parameters())
    if before == now or name not in state_dict or name not in parameters:
        return state_dict, new_names
    table, theirs = parameters[name].detach().clone(), state_dict[name]  # (rows, D)
    if table.shape[1:] != theirs.shape[1:]:
        return state_dict, new_names
    for row, sentence in enumerate(now):
        if sentence in before:
            table[row] = theirs[before.index(sentence)]
    is_new = not set(now) <= set(before)
    return {**state_dict, name: table}, new_names | ({name} if is_new else set())
