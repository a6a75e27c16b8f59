"""Concatenation in every encoding, and the sentence-level baseline: the battery and what is special to them."""

import pytest
import torch
from support.battery import ONE_SENTENCE, Battery, segment_reach, tokens_of
from support.reference import position_vector, reference_row, sine_vector, weights_of
from support.tiny_models import EOS, SEP, build, plain_model

WINDOW = {"past_context": 2}
WINDOW_CASES = {
    "none": WINDOW,
    "shift": WINDOW | {"segment_encoding": "shift", "segment_shift": 5},
    "shift_persistent": WINDOW | {"segment_encoding": "shift", "segment_shift": 5, "persistent": True},
    "onehot": WINDOW | {"segment_encoding": "onehot"},
    "onehot_persistent": WINDOW | {"segment_encoding": "onehot", "persistent": True, "pse_dim": 4},
    "sinusoidal": WINDOW | {"segment_encoding": "sinusoidal", "persistent": True},
    "sinusoidal_pse": WINDOW | {"segment_encoding": "sinusoidal", "pse_dim": 4},
    "learned": WINDOW | {"segment_encoding": "learned"},
    "learned_pse": WINDOW | {"segment_encoding": "learned", "pse_dim": 4, "persistent": True},
}
FUTURE_CASES = {
    "future": {"past_context": 1, "future_context": 1},
    "future_shift": {"past_context": 1, "future_context": 1, "segment_encoding": "shift", "segment_shift": 4},
    "future_learned": {"past_context": 1, "future_context": 2, "segment_encoding": "learned", "persistent": True},
    "future_sinusoidal": {"future_context": 1, "segment_encoding": "sinusoidal", "pse_dim": 4},
}
SOURCE_CASES = {
    "source": WINDOW | {"context_sides": "source"},
    "source_shift": WINDOW | {"context_sides": "source", "segment_encoding": "shift", "segment_shift": 5},
    "source_learned": {
        "past_context": 1,
        "future_context": 1,
        "context_sides": "source",
        "segment_encoding": "learned",
    },
}
CHUNK_CASES = {
    "chunk": {"view": "chunk", "chunk_tokens": 12},
    "chunk_shift": {"view": "chunk", "chunk_tokens": 12, "segment_encoding": "shift", "segment_shift": 5},
    "chunk_sinusoidal": {"view": "chunk", "chunk_tokens": 12, "segment_encoding": "sinusoidal", "persistent": True},
    "chunk_pse": {"view": "chunk", "chunk_tokens": 12, "segment_encoding": "sinusoidal", "pse_dim": 4},
}
OTHER_CASES = {
    "sentence": {},
    "untied": {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False, "scale_embedding": False},
    "sizes": {"encoder_layers": 1, "decoder_layers": 3, "encoder_attention_heads": 8, "decoder_attention_heads": 1},
    "gelu": {"layernorm_embedding": True, "activation_function": "gelu", "position_offset": 2},
    "bod": WINDOW | {"use_bod": True, "segment_encoding": "learned"},
    "source_bod": WINDOW | {"use_bod": True, "context_sides": "source"},
    "learned_positions": WINDOW | {"position_type": "learned", "position_offset": 2, "segment_encoding": "learned"},
    "norm_before": WINDOW
    | {"normalize_before": True, "layernorm_embedding": True, "segment_encoding": "sinusoidal", "persistent": True},
    "t2t": WINDOW
    | {"position_type": "sinusoidal_t2t", "position_offset": 2, "segment_encoding": "onehot", "pse_dim": 4},
    "t2t_segments": WINDOW
    | {"position_type": "sinusoidal_t2t", "segment_encoding": "sinusoidal", "start_sentence": "current"},
}


class TestConcat(Battery):
    architecture = "concat"
    cases = WINDOW_CASES | FUTURE_CASES | SOURCE_CASES | CHUNK_CASES | OTHER_CASES
    corners = ("shift_persistent", "future_learned", "source_shift", "chunk_sinusoidal", "norm_before", "t2t")
    neutral_cases = ("none", "shift", "learned", "sinusoidal_pse", "source", "sizes", "untied")

    def reach(self, config):
        return segment_reach(config)

    def reference(self, model, batch):
        rows = []
        for source, target in tokens_of(batch):
            count = source.count(SEP) + 1
            source_added = added_vectors(model, source, count, "encoder")
            alone = model.config.context_sides == "source"
            target_added = added_vectors(model, target, 1 if alone else count, "decoder", alone)
            rows.append(reference_row(model, source, target, source_added, target_added))
        return rows

    def plain_backbone(self, model):
        """With a single sentence all tokens have the same encoding, which the plain model gets as learned positions."""
        if model.config.segment_encoding == "none":
            return plain_model(model), ONE_SENTENCE
        plain = plain_model(model, position_type="learned", position_offset=0)
        for stack in (plain.get_encoder(), plain.get_decoder()):
            stack.embed_positions.weight.data = added_vectors(model, [7] * 64, 1, stack.side)[0].detach()
        return plain, ONE_SENTENCE


def added_vectors(model, ids: list[int], count: int, side: str, alone: bool = False) -> list[torch.Tensor | None]:
    """Lupo et al. (2023), section 2, token by token: what every layer's input gets; `count` sentences in the window."""
    config = model.config
    future = 0 if alone else config.future_context
    first, again, sentence = [], [], 0
    for position, token in enumerate(ids):
        current = max(count - 1 - future, 0)
        if sentence <= current:
            number = current - sentence + 1  # k: 1 is the current sentence, counted from right to left
        else:
            number = config.past_context + 1 + sentence - current
        if config.start_sentence == "current" and side == "decoder" and position == 0:
            number = 1
        number = max(1, number)
        if config.segment_encoding == "none":
            first.append(position_vector(model, position, side))
        elif config.segment_encoding == "shift":
            again.append(position_vector(model, position + sentence * (config.segment_shift or 0), side))
            first.append(again[-1])
        elif config.pse_dim:
            encoding = sine_vector(
                position + config.position_offset, config.d_model - config.pse_dim, config.position_type
            )
            again.append(torch.cat([encoding, segment_vector(model, number, config.pse_dim, side)]))
            first.append(again[-1])
        else:
            again.append(segment_vector(model, number, config.d_model, side))
            first.append(position_vector(model, position, side) + again[-1])
        if token == SEP:
            sentence += 1
    later = torch.stack(again) if config.persistent else 0
    return [torch.stack(first)] + [later] * (config.encoder_layers - 1)


def segment_vector(model, number: int, dim: int, side: str) -> torch.Tensor:
    """SE_k of section 2.1."""
    if model.config.segment_encoding == "sinusoidal":
        is_t2t = model.config.position_type == "sinusoidal_t2t"
        return sine_vector(number, dim, "sinusoidal_t2t" if is_t2t else "sinusoidal")
    if model.config.segment_encoding == "onehot":
        return torch.eye(dim)[number - 1]
    return weights_of(model)["model.encoder.segment_encoding.embedding.weight"][number - 1]


# What is special to concatenation


@pytest.mark.parametrize("encoding", ["onehot", "learned"])
def test_more_sentences_than_the_table_has(encoding):
    model = build(past_context=1, segment_encoding=encoding)
    with pytest.raises(ValueError, match=f"segment has 3 sentences, but {encoding} segment embeddings number 2"):
        model(input_ids=torch.tensor([[7, SEP, 8, SEP, 9, EOS]]), decoder_input_ids=torch.tensor([[2, 7]]))


def test_shift_that_was_not_set():
    model = build(**WINDOW, segment_encoding="shift")
    with pytest.raises(ValueError, match="segment_shift is not set: .*mean_source_length"):
        model(input_ids=torch.tensor([[7, SEP, 8, EOS]]), decoder_input_ids=torch.tensor([[2, 7]]))


def test_initial_segment_embedding_of_fairseq():
    """N(0, 1), not N(0, 1 / D) as of tokens; one table on both sides."""
    fields = {"past_context": 40, "segment_encoding": "learned", "d_model": 64}
    model = build("concat", init="fairseq_0.9", **fields)
    table = model.model.encoder.segment_encoding.embedding.weight
    assert "model.decoder.segment_encoding.embedding.weight" not in model.state_dict()
    assert table.detach().std().item() == pytest.approx(1, rel=0.1)
    assert build("concat", init_std=0.1, **fields).model.encoder.segment_encoding.embedding.weight.std() < 0.2


@pytest.mark.parametrize("fields", [{}, {"pse_dim": 4}, {"persistent": True}])
def test_a_device_map_for_little_memory(fields, tmp_path):
    """One table on both sides is on the device of its owner; a state of before, with two names, is read."""
    model = build(**WINDOW, segment_encoding="learned", **fields)
    model.save_pretrained(tmp_path)
    memory = {"cpu": int(0.85 * 4 * model.num_parameters()), "disk": 10**9}
    loaded = type(model).from_pretrained(tmp_path, device_map="auto", max_memory=memory, offload_folder=tmp_path)
    assert set(loaded.hf_device_map.values()) == {"cpu", "disk"}
    ids = {"input_ids": torch.tensor([[7, SEP, 8, EOS]]), "decoder_input_ids": torch.tensor([[2, 7, SEP, 9]])}
    with torch.no_grad():
        torch.testing.assert_close(loaded(**ids).logits, model(**ids).logits)
    state = model.state_dict()
    name = "model.encoder.segment_encoding.embedding.weight"
    model.load_state_dict(state | {name.replace("encoder", "decoder", 1): state[name]})
