"""Routing and the Document Transformer: the battery, the gate by hand, and what is special to both."""

import pytest
import torch
from support.battery import logits
from support.context_reference import (
    CONTEXT,
    DOCUMENTS,
    SeparateContext,
    layer_outputs,
    positions,
    selected,
    selected_states,
    sentences_of,
)
from support.reference import attention, norm, reference_logits, reference_stack, weights_of
from support.tiny_models import EOS, SEP, build, plain_model, word_tokenizer

from hf_docmt.modeling.context_cache import ContextLayersTranslator
from hf_docmt.modeling.context_strategies import ContextTranslator
from hf_docmt.training.initialization import build_model

SHORT = {"max_new_tokens": 6, "no_repeat_ngram_size": 2}


class ClosedContext(SeparateContext):
    def closed(self, model) -> None:
        """Nothing is read from the context."""
        raise NotImplementedError

    def plain_backbone(self, model):
        """Without context; the current sentence's segment embedding is closed, too."""
        self.closed(model)
        return plain_model(model), self.without_context(model)

    def test_closed_gates_with_context(self, model, batch):
        """Not where norms follow the sum: they change it with closed gates, too."""
        self.closed(model)
        plain = {name: value for name, value in batch.items() if name not in CONTEXT}
        torch.testing.assert_close(logits(model, batch), logits(plain_model(model), plain), atol=1e-5, rtol=0)


class TestRouting(ClosedContext):
    architecture = "routing"
    cases = {
        "offline": {},
        "online": {"future_context": 0, "use_bod": True},
        "several": {"past_context": 2, "future_context": 1},
        "norm_before": {"normalize_before": True, "layernorm_embedding": True},
        "learned_positions": {"position_type": "learned", "position_offset": 2},
        "states": {"selection_weighs": "states"},
        "states_online": {"selection_weighs": "states", "future_context": 0},
        "states_several": {"selection_weighs": "states", "past_context": 2, "normalize_before": True},
    }
    corners = ("offline", "online", "norm_before", "states", "states_several")
    neutral_cases = ("norm_before",)

    def closed(self, model):
        with torch.no_grad():
            for layer in model.get_encoder().layers:
                layer.context_attn.attn.out_proj.weight.zero_()
                layer.context_attn.attn.out_proj.bias.zero_()
            model.get_encoder().segment_embedding.weight[1] = 0

    def reference(self, model, batch):
        return [self.logits_of(model, row) for row in sentences_of(batch)]

    def logits_of(self, model, row: dict) -> torch.Tensor:
        """Layer by layer; what each layer reads of a context sentence is the output of the context layer beside it."""
        config, weights = model.config, weights_of(model)
        table = weights["model.encoder.segment_embedding.weight"]
        contexts = []
        for offset, _, ids in row["context"]:
            outputs = layer_outputs(model, ids, table[0 if offset < 0 else 2])
            index = offset + config.past_context - (offset > 0)
            contexts.append((index, "past" if offset < 0 else "future", outputs))

        def after_self_attention(side, number, states):
            if side == "decoder":
                return states
            name = f"model.encoder.layers.{number}"
            inputs = norm(weights, f"{name}.context_attn_layer_norm", states) if config.normalize_before else states
            of_layer = [(place, side, outputs[number]) for place, side, outputs in contexts]
            choose = selected if config.selection_weighs == "attention" else selected_states
            read = choose(model, f"{name}.context_attn", inputs, of_layer)
            if config.normalize_before:
                return states + read
            return norm(weights, f"{name}.context_attn_layer_norm", states + read)

        added = [positions(model, len(row["source"])) + table[1]]
        memory = reference_stack(model, "encoder", row["source"], added, after_self_attention=after_self_attention)
        return reference_logits(model, reference_stack(model, "decoder", row["target"], memory=memory))


class TestDocT(ClosedContext):
    architecture = "doct"
    cases = {
        "doct": {},
        "selection": {"selection": "routing"},
        "both_sides": {"past_context": 1, "future_context": 1, "selection": "routing", "context_layers": 2},
        "norm_before": {"normalize_before": True, "use_bod": True},
        "selection_norm_before": {"normalize_before": True, "selection": "routing", "layernorm_embedding": True},
        "learned_positions": {"position_type": "learned", "position_offset": 2},
    }
    corners = ("doct", "both_sides", "selection_norm_before")
    neutral_cases = ("norm_before", "selection_norm_before")

    def closed(self, model):
        """W_x x is far above zero for every x, so that g = 1."""
        for stack in (model.get_encoder(), model.get_decoder()):
            for layer in stack.layers:
                layer.context.state_gate.forward = lambda states: torch.full_like(states, 200.0)

    def reference(self, model, batch):
        return [self.logits_of(model, row) for row in sentences_of(batch)]

    def logits_of(self, model, row: dict) -> torch.Tensor:
        config, weights = model.config, weights_of(model)
        sentences = row["context"]
        if config.selection == "none" and sentences:
            tokens = [token for _, _, ids in sentences for token in (*ids[:-1], SEP)]
            sentences = [(-1, False, [*tokens[:-1], EOS])]
        contexts = []
        for offset, _, ids in sentences:
            states = reference_stack(model, "encoder", ids, layers="model.encoder.context_layers")
            index = offset + config.past_context - (offset > 0)
            contexts.append((index, "past" if offset < 0 else "future", states))

        def after_self_attention(side, number, states):
            name = f"model.{side}.layers.{number}.context"
            if contexts:
                x = norm(weights, f"{name}.layer_norm", states) if config.normalize_before else states
                if config.selection == "none":
                    heads = getattr(config, f"{side}_attention_heads")
                    read = attention(weights, f"{name}.attn.attn", x, contexts[0][2], heads)
                else:
                    read = selected(model, f"{name}.attn", x, contexts, side)
                gate = torch.sigmoid(
                    x @ weights[f"{name}.state_gate.weight"].T + read @ weights[f"{name}.context_gate.weight"].T
                )
                states = gate * states + (1 - gate) * read
            return states if config.normalize_before else norm(weights, f"{name}.layer_norm", states)

        memory = reference_stack(model, "encoder", row["source"], after_self_attention=after_self_attention)
        return reference_logits(
            model,
            reference_stack(model, "decoder", row["target"], memory=memory, after_self_attention=after_self_attention),
        )


@pytest.mark.parametrize(
    ("architecture", "fields"),
    [
        ("routing", {}),
        ("routing", {"past_context": 3, "future_context": 0}),
        ("routing", {"past_context": 2, "future_context": 2}),
        ("doct", {"selection": "routing", "past_context": 3, "use_bod": True}),
        ("doct", {"selection": "routing", "past_context": 1, "future_context": 2}),
    ],
)
def test_every_context_sentence_is_read_once(architecture, fields):
    """In routing once as previous and once as next one; translations are those of reading it anew every time."""
    model, read, translators = build(architecture, **fields), [], []

    class Recorded(ContextLayersTranslator):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            translators.append(self)

        def store(self, contexts, *inputs):
            read.extend(contexts)
            super().store(contexts, *inputs)

    model.translator_class = Recorded
    kept = model.translate_documents(DOCUMENTS, word_tokenizer(), "sequential", 2, **SHORT)
    model.translator_class = ContextTranslator
    assert model.translate_documents(DOCUMENTS, word_tokenizer(), "sequential", 2, **SHORT) == kept
    past, future = model.config.past_context, model.config.future_context
    needed = {
        (number, other, architecture == "routing" and other > index)
        for number, document in enumerate(DOCUMENTS)
        for index in range(len(document))
        for other in range(max(0, index - past), min(len(document), index + future + 1))
        if other != index
    }
    assert len(read) == len(set(read)) == len(needed)
    assert not translators[0].cache


# Starting from a model with other context


@pytest.mark.parametrize(
    ("architecture", "before", "now", "moved"),
    [
        ("routing", (2, 1), (1, 2), {0: 1}),
        ("routing", (1, 1), (2, 1), {1: 0}),
        ("routing", (3, 0), (1, 0), {0: 2}),
        ("routing", (1, 0), (1, 1), {0: 0}),
        ("routing", (1, 1), (1, 0), {0: 0}),
        ("doct", (2, 0), (1, 2), {0: 1}),
    ],
)
def test_rows_of_the_gate_go_with_their_sentence(architecture, before, now, moved):
    """`moved`: row of the new model -> row of the old one that scores the same sentence; others are new."""
    fields = {"selection": "routing"} if architecture == "doct" else {}
    old, new = ({"past_context": past, "future_context": future} for past, future in (before, now))
    origin, config = build(architecture, **fields | old), build(architecture, seed=1, **fields | new).config
    model, others = build_model(config, origin)
    name = next(name for name in origin.state_dict() if name.endswith("selection.fc2.weight"))
    there, here = origin.state_dict()[name], model.state_dict()[name]
    same = [(row, other) for row, one in enumerate(here) for other, two in enumerate(there) if torch.equal(one, two)]
    assert dict(same) == moved
    assert (name in others) == (len(moved) < len(here))


def test_choice_that_the_model_has_no_longer():
    with pytest.raises(ValueError, match=r"selection.*; selection 'routing' there, 'none' here: use the values"):
        build_model(build("doct").config, build("doct", selection="routing"))


def test_reentrant_checkpointing():
    with pytest.raises(ValueError, match="use use_reentrant=False, the default"):
        build("routing").activation_checkpointing_enable({"use_reentrant": True})
