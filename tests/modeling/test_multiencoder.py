"""Multi-encoder: the battery, the joined context, and the size of the published model."""

import torch
from support.context_reference import SeparateContext, plain_size, sentences_of
from support.reference import attention, norm, reference_logits, reference_stack, weights_of
from support.tiny_models import EOS, PAD, SEP, plain_model

from hf_docmt.loading import registry
from hf_docmt.modeling.configuration_multiencoder import MultiEncoderConfig
from hf_docmt.modeling.context_inputs import joined


class TestMultiEncoder(SeparateContext):
    architecture = "multiencoder"
    cases = {
        "concatenate": {"past_context": 2},
        "future": {"past_context": 1, "future_context": 1, "context_layers": 1, "use_bod": True},
        "sequential": {"past_context": 2, "integration": "sequential", "context_gate": True},
        "parallel": {"past_context": 1, "integration": "parallel", "normalize_before": True},
        "missing_eos": {"past_context": 2, "missing_context": "eos"},
        "missing_eos_sequential": {"missing_context": "eos", "integration": "sequential", "context_gate": True},
        "learned_positions": {"past_context": 2, "position_type": "learned", "layernorm_embedding": True},
    }
    corners = ("concatenate", "future", "sequential", "parallel", "missing_eos")
    neutral_cases = ("concatenate", "future", "parallel")

    def reference(self, model, batch):
        return [reference_logits_of(model, sentence) for sentence in sentences_of(batch)]

    def plain_backbone(self, model):
        return plain_model(model), self.without_context(model)


def reference_logits_of(model, row: dict) -> torch.Tensor:
    config, weights = model.config, weights_of(model)
    memory, context = reference_stack(model, "encoder", row["source"]), None
    if row["context"] or config.missing_context == "eos":
        joined = [token for _, _, ids in row["context"] for token in (*ids[:-1], SEP)]
        context = reference_stack(model, "encoder", [*joined[:-1], EOS], layers="model.encoder.context_layers")

    def after_cross_attention(number, before, after):
        name = f"model.decoder.layers.{number}.context"
        states = after if config.integration == "sequential" else before
        read = torch.zeros_like(states)
        if context is not None:
            inputs = norm(weights, f"{name}.layer_norm", states) if config.normalize_before else states
            read = attention(weights, f"{name}.attn", inputs, context, config.decoder_attention_heads)
        if config.integration == "parallel":
            return after + read
        gate = torch.sigmoid(read @ weights[f"{name}.gate.weight"].T + weights[f"{name}.gate.bias"])
        return norm(weights, f"{name}.layer_norm", states + gate * read)

    if config.integration == "concatenate":
        memory = memory if context is None else torch.cat([context, memory])
        after_cross_attention = None
    return reference_logits(
        model,
        reference_stack(model, "decoder", row["target"], memory=memory, after_cross_attention=after_cross_attention),
    )


def test_joined():
    """In the document's order whatever the order of rows, without holes, one end at the end; a row without context."""
    ids = torch.tensor([[[20, 21, EOS], [PAD] * 3, [10, EOS, PAD]], [[PAD] * 3] * 3])
    config = MultiEncoderConfig(past_context=2, future_context=1)
    found, mask = joined(config, ids, ids != PAD, torch.tensor([[1, 0, -2], [0, 0, 0]]))
    assert found.tolist() == [[10, SEP, 20, 21, EOS], [PAD] * 5]
    assert mask.tolist() == [[True] * 5, [False] * 5]


def test_size_of_the_paper():
    """Maka et al. (2024), Table 5, in millions; the sentence-level model has 64.42."""
    with torch.device("meta"):
        config = MultiEncoderConfig(vocab_size=39608)
        model = registry.get("multiencoder").model_class(config)
        assert round(plain_size(config) / 1e6, 2) == 64.42
        assert round(model.num_parameters() / 1e6, 2) == 83.33
