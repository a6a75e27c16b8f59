"""Concatenation in every encoding, and the sentence-level baseline: the battery and what is special to them."""

import pytest
import torch
from support.battery import ONE_SENTENCE, Battery, logits, segment_reach, tokens_of
from support.errors import refused
from support.reference import position_vector, reference_row, sine_vector, weights_of
from support.tiny_models import EOS, SEP, build, plain_model

from hf_docmt.modeling.layers import CACHE_NAME

WINDOW = {"past_context": 2}
EMBEDDINGS = ("onehot", "sinusoidal", "learned")
WINDOW_CASES = {
    "none": WINDOW,
    "shift": WINDOW | {"segment_encoding": "shift", "segment_shift": 5},
    "shift_persistent": WINDOW | {"segment_encoding": "shift", "segment_shift": 5, "persistent": True},
    **{
        "_".join([encoding] + ["persistent"] * persistent + ["pse"] * bool(pse)): WINDOW
        | {"segment_encoding": encoding, "persistent": persistent, "pse_dim": pse}
        for encoding in EMBEDDINGS
        for persistent in (False, True)
        for pse in (0, 4)
    },
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
    neutral_cases = tuple(name for name, fields in cases.items() if not fields.get("persistent"))

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
    return weights_of(model)[f"model.{side}.segment_encoding.embedding.weight"][number - 1]


# What is special to concatenation


def test_one_learned_table():
    """Encoder and decoder share it, it has a row for every sentence of the window, and it is saved once."""
    model = build(**FUTURE_CASES["future_learned"])
    tables = [stack.segment_encoding.embedding.weight for stack in (model.get_encoder(), model.get_decoder())]
    assert tables[0] is tables[1] and tables[0].shape == (4, 16)
    assert sum("segment_encoding" in name for name, _ in model.named_parameters()) == 1


@pytest.mark.parametrize("pse_dim", [0, 4])
def test_learned_table_learns(pse_dim):
    """Also in position-segment embeddings, where the published code has a table that gets gradients and no effect."""
    model = build(**WINDOW, segment_encoding="learned", pse_dim=pse_dim)
    batch = {
        "input_ids": torch.tensor([[7, SEP, 8, 9, SEP, 10, EOS]]),
        "labels": torch.tensor([[9, 11, SEP, 12, SEP, 13, EOS]]),
    }
    table = model.get_encoder().segment_encoding.embedding.weight
    before = model(**batch).loss
    before.backward()
    assert (table.grad.abs().sum(dim=1) > 1e-4).all()  # three sentences, three rows
    with torch.no_grad():
        table -= 0.05 * table.grad / table.grad.norm()
    assert model(**batch).loss < before - 1e-4


def test_zero_table_is_the_plain_model():
    model, plain = build(**WINDOW, segment_encoding="learned", persistent=True), build(**WINDOW)
    table = model.get_encoder().segment_encoding.embedding.weight
    torch.nn.init.zeros_(table)
    plain.load_state_dict({name: w for name, w in model.state_dict().items() if "segment_encoding" not in name})
    batch = {
        "input_ids": torch.tensor([[7, SEP, 8, 9, SEP, 10, EOS]]),
        "decoder_input_ids": torch.tensor([[2, 9, 11, SEP, 12, SEP, 13]]),
    }
    torch.testing.assert_close(logits(model, batch), logits(plain, batch), atol=1e-6, rtol=0)


def test_separator_that_comes_later_does_not_number_what_is_there():
    """Target sentences are counted in the source, so generating one more does not renumber those before it."""
    model = build(**WINDOW, segment_encoding="onehot", persistent=True)
    source = torch.tensor([[7, SEP, 8, 9, SEP, 10, EOS]])
    short, long = ([[2, 9, 11, SEP]], [[2, 9, 11, SEP, 12, SEP, 13]])
    found = [logits(model, {"input_ids": source, "decoder_input_ids": torch.tensor(ids)}) for ids in (short, long)]
    torch.testing.assert_close(found[0], found[1][:, :4], atol=1e-6, rtol=0)


@pytest.mark.parametrize("encoding", ["onehot", "learned"])
def test_more_sentences_than_the_table_has(encoding):
    model = build(past_context=1, segment_encoding=encoding)
    with pytest.raises(ValueError, match=f"segment has 3 sentences, but {encoding} segment embeddings number 2"):
        model(input_ids=torch.tensor([[7, SEP, 8, SEP, 9, EOS]]), decoder_input_ids=torch.tensor([[2, 7]]))


def test_shift_that_was_not_set():
    model = build(**WINDOW, segment_encoding="shift")
    with pytest.raises(ValueError, match="segment_shift is not set: .*mean_source_length"):
        model(input_ids=torch.tensor([[7, SEP, 8, EOS]]), decoder_input_ids=torch.tensor([[2, 7]]))


def test_cache_without_sentences():
    model = build(**WINDOW, segment_encoding="sinusoidal")
    inputs = {"input_ids": torch.tensor([[7, SEP, 8, EOS]])}
    cache = model(**inputs, decoder_input_ids=torch.tensor([[2, 9]]), use_cache=True)[CACHE_NAME]
    refused("pass decoder_sentence_index", model, **inputs, decoder_input_ids=torch.tensor([[SEP]]), cache=cache)


def test_states_without_the_number_of_sentences():
    model = build(**WINDOW, segment_encoding="sinusoidal")
    states = model.get_encoder()(input_ids=torch.tensor([[7, SEP, 8, EOS]])).last_hidden_state
    refused("sentence_count is missing", model, encoder_outputs=(states,), decoder_input_ids=torch.tensor([[2, 9]]))
    plain = build(**WINDOW)
    plain(encoder_outputs=(states,), decoder_input_ids=torch.tensor([[2, 9]]))


def test_initial_segment_embedding_of_fairseq():
    """N(0, 1), not N(0, 1 / D) as of tokens; one table on both sides."""
    fields = {"past_context": 40, "segment_encoding": "learned", "d_model": 64}
    model = build("concat", init="fairseq_0.9", **fields)
    table = model.model.encoder.segment_encoding.embedding.weight
    assert table is model.model.decoder.segment_encoding.embedding.weight
    assert table.detach().std().item() == pytest.approx(1, rel=0.1)
    assert build("concat", init_std=0.1, **fields).model.encoder.segment_encoding.embedding.weight.std() < 0.2
