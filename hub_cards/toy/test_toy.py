"""The toy architecture: the battery, with its definition in slow, obvious code."""

import torch
from support.battery import Battery, segment_reach, tokens_of
from support.reference import reference_row
from support.tiny_models import SENTENCES, SEP, plain_model

from hf_docmt.modeling.modeling_docmt import start_neutral

WINDOW = {"past_context": 2}


class TestToy(Battery):
    """The tests that every architecture passes."""

    architecture = "toy"
    cases = {
        "window": WINDOW,
        "source": WINDOW | {"context_sides": "source"},
        "chunk": {"view": "chunk", "chunk_tokens": 12},
        "norm_before": WINDOW | {"normalize_before": True, "layernorm_embedding": True},
    }
    corners = tuple(cases)  # run by all tests; the other cases only by `definition`
    neutral_cases = corners

    def reach(self, config):
        """Self-attention reads the whole segment."""
        return segment_reach(config)

    def reference(self, model, batch):
        return [reference_logits(model, *row) for row in tokens_of(batch)]

    def plain_backbone(self, model):
        start_neutral(model)
        return plain_model(model), SENTENCES


def reference_logits(model, source: list[int], target: list[int]) -> torch.Tensor:
    """h_i + W mean(h_j of the sentence before), token by token."""
    sentence = [source[:position].count(SEP) for position in range(len(source))]  # s(i)

    def add_previous(side, number, states):
        if side == "decoder":
            return states
        projection = model.get_encoder().layers[number].previous_proj.weight
        rows = []
        for i, state in enumerate(states):
            previous = [states[j] for j in range(len(states)) if sentence[j] == sentence[i] - 1]
            rows.append(state + projection @ (sum(previous) / len(previous)) if previous else state)
        return torch.stack(rows)

    return reference_row(model, source, target, after_self_attention=add_previous)
