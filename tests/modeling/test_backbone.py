"""The backbone: the logits of MarianMT, every switch of sentence-level models, names, masks, initial values."""

import pytest
import torch
from support.battery import logits
from support.errors import refused
from support.tiny_models import EOS, PAD, SIZES, perturb
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
)
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from hf_docmt.modeling.configuration_docmt import DocMTConfig
from hf_docmt.modeling.layers import CACHE_NAME, dropout
from hf_docmt.modeling.modeling_docmt import DocMTForConditionalGeneration

TOKENS = {"pad_token_id": PAD, "bos_token_id": 2, "eos_token_id": EOS, "decoder_start_token_id": 2}
MARIAN = {name: value for name, value in SIZES.items() if "lang" not in name} | TOKENS | {"scale_embedding": True}
SOURCE = torch.tensor([[7, 8, 9, 10, EOS], [11, 12, EOS, PAD, PAD], [6, EOS, PAD, PAD, PAD]])
BATCH = {
    "input_ids": SOURCE,
    "attention_mask": (SOURCE != PAD).long(),
    "decoder_input_ids": torch.tensor([[2, 9, 8, 7, 20], [2, 14, 15, 16, 17], [2, 18, PAD, PAD, PAD]]),
}


def backbone(**fields):
    torch.manual_seed(0)
    return perturb(DocMTForConditionalGeneration(DocMTConfig(**MARIAN | fields)))


@pytest.fixture(scope="module")
def marian():
    """MarianMTModel, and the backbone with its weights."""
    torch.manual_seed(0)
    original = perturb(MarianMTModel(MarianConfig(**MARIAN, activation_function="swish", forced_eos_token_id=None)))
    model = backbone(activation_function="swish", init_std=1.0)
    left = model.load_state_dict(original.state_dict(), strict=False)
    assert not left.missing_keys and all(name.endswith("embed_positions.weight") for name in left.unexpected_keys)
    return original, model


def test_logits_of_marian(marian):
    original, model = marian
    assert original.final_logits_bias.abs().max() > 0.1
    torch.testing.assert_close(logits(model, BATCH), logits(original, BATCH), atol=1e-5, rtol=0)


def test_loss_and_gradients_of_marian(marian):
    original, model = marian
    batch = BATCH | {"labels": torch.tensor([[9, 8, 7, 20, 3], [14, 15, 16, 17, 3], [18, 3, -100, -100, -100]])}
    losses = [one(**batch).loss for one in (model, original)]
    torch.testing.assert_close(*losses)
    names = [name for name, _ in model.named_parameters()]
    theirs = dict(original.named_parameters())
    found = torch.autograd.grad(losses[0], list(model.parameters()))
    for name, one, other in zip(names, found, torch.autograd.grad(losses[1], [theirs[name] for name in names])):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize(
    "settings",
    [
        {"num_beams": 1},
        {"num_beams": 4, "num_return_sequences": 4},
        {"num_beams": 3, "length_penalty": 2.0, "early_stopping": "never", "use_cache": False},
        {"num_beams": 3, "num_return_sequences": 2, "min_new_tokens": 5, "repetition_penalty": 1.2},
        {"do_sample": True, "num_return_sequences": 3, "top_k": 5},
        {"num_beams": 2, "decoder_input_ids": torch.tensor([[2, 9, 8], [2, 14, 15], [2, 7, 7]])},
    ],
    ids=lambda settings: "-".join(f"{name}" for name in settings),
)
def test_generation_of_marian(marian, settings):
    inputs = {name: BATCH[name] for name in ("input_ids", "attention_mask")}
    settings = {"do_sample": False, "no_repeat_ngram_size": 2, "max_new_tokens": 9} | settings
    results = []
    for model in marian[::-1]:
        torch.manual_seed(3)
        results.append(model.generate(**inputs, **settings, return_dict_in_generate=True, output_scores=True))
    found, expected = results
    assert found.sequences.tolist() == expected.sequences.tolist()
    assert len(set(map(tuple, found.sequences.tolist()))) > 1
    torch.testing.assert_close(torch.stack(found.scores), torch.stack(expected.scores), atol=1e-4, rtol=1e-4)
    if settings.get("num_beams", 1) > 1:
        torch.testing.assert_close(found.sequences_scores, expected.sequences_scores, atol=1e-5, rtol=1e-5)


def test_embeddings_are_tied_as_asked():
    tables = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    for share, tie in ((True, True), (False, True), (False, False), (True, False)):
        model = backbone(share_encoder_decoder_embeddings=share, tie_word_embeddings=tie)
        encoder, decoder = (model.model.get_parameter(name) for name in tables)
        assert (encoder is decoder) == (share and tie)
        assert (model.lm_head.weight is decoder) == tie
        model.resize_token_embeddings(40)
        assert model(**BATCH).logits.shape[-1] == 40
        encoder, decoder = (model.model.get_parameter(name) for name in tables)
        assert len(encoder) == len(decoder) == 40 and (encoder is decoder) == (share and tie)
        assert (model.lm_head.weight is decoder) == tie


def test_more_tokens_than_learned_positions():
    model = backbone(position_type="learned", max_position_embeddings=8)
    ids = torch.tensor([[7] * 8 + [EOS]])
    with pytest.raises(ValueError, match="sequence of 9 tokens, but the model has learned positions for 8"):
        model(input_ids=ids, decoder_input_ids=torch.tensor([[2, 9]]))
    refused("sequence of 9 tokens", model, input_ids=torch.tensor([[7, EOS]]), decoder_input_ids=ids)
    padded = torch.tensor([[0, 0, *[7] * 7, EOS]])
    model(input_ids=padded, attention_mask=(padded != 0).long(), decoder_input_ids=torch.tensor([[2, 9]]))


def test_flash_attention_to_a_padded_source(monkeypatch):
    """Flash kernels take a mask of keys (B, S) for one of queries, too, so cross-attention must not hand them one."""
    model, found = backbone(), []

    def flash(module, query, key, value, attention_mask, **kwargs):
        if attention_mask is not None:
            assert query.shape[2] == key.shape[2] == attention_mask.shape[1]
            attention_mask = attention_mask[:, None, None, :].bool()
        return ALL_ATTENTION_FUNCTIONS["sdpa"](module, query, key, value, attention_mask, **kwargs)

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._local_mapping, "flash_attention_2", flash)
    inputs = {"input_ids": torch.tensor([[7, 8, 9, EOS], [6, EOS, 0, 0]])}
    inputs["attention_mask"] = (inputs["input_ids"] != 0).long()
    for implementation in ("sdpa", "flash_attention_2"):
        for module in model.modules():
            if hasattr(module, "config"):
                module.config._attn_implementation = implementation
        options = {"num_beams": 3, "max_new_tokens": 5, "no_repeat_ngram_size": 2, "do_sample": False}
        found.append(model.generate(**inputs, **options))
    assert torch.equal(*found)


@pytest.mark.parametrize("before", [False, True])
def test_names_of_the_bart_family(before):
    original = (
        MBartForConditionalGeneration(MBartConfig(**MARIAN))
        if before
        else BartForConditionalGeneration(BartConfig(**MARIAN))
    )
    model = backbone(normalize_before=before, layernorm_embedding=True, position_type="learned", position_offset=2)
    shapes, expected = ({name: w.shape for name, w in one.state_dict().items()} for one in (model, original))
    assert shapes == expected


def test_labels_are_shifted():
    model = backbone(pad_token_id=1)
    labels = torch.tensor([[9, 8, 7, 20, 3], [14, 15, 16, 17, 3], [18, 3, -100, -100, -100]])
    inputs = torch.tensor([[2, 9, 8, 7, 20], [2, 14, 15, 16, 17], [2, 18, 3, 1, 1]])
    source = {name: BATCH[name] for name in ("input_ids", "attention_mask")}
    implicit = model(**source, labels=labels)
    explicit = model(**source, labels=labels, decoder_input_ids=inputs)
    assert torch.equal(implicit.logits, explicit.logits) and torch.equal(implicit.loss, explicit.loss)
    assert CACHE_NAME not in implicit and CACHE_NAME in model(**source, decoder_input_ids=inputs)


def test_smoothing_in_training_only():
    model = backbone(label_smoothing=0.5)
    batch = BATCH | {"labels": BATCH["decoder_input_ids"]}
    smoothed, plain = model.train()(**batch).loss, model.eval()(**batch).loss
    model.config.label_smoothing = 0.0
    assert torch.equal(model(**batch).loss, plain) and (smoothed - plain).abs() > 0.01


def test_dropout_in_training_only():
    fields = ("dropout", "attention_dropout", "activation_dropout")
    for name in fields:
        model = backbone(**dict.fromkeys(fields, 0.0) | {name: 0.5})
        assert torch.equal(logits(model, BATCH), logits(model, BATCH))
        model.train()
        assert not torch.allclose(logits(model, BATCH), logits(model, BATCH), atol=1e-3)


def test_outputs_as_asked():
    model = backbone()
    model.set_attn_implementation("eager")
    outputs = model(**BATCH, output_attentions=True, output_hidden_states=True)
    assert [len(outputs[name]) for name in ("encoder_hidden_states", "decoder_hidden_states")] == [3, 3]
    assert [states.shape for states in outputs.cross_attentions] == [(3, 4, 5, 5)] * 2
    assert [states.shape for states in outputs.encoder_attentions] == [(3, 2, 5, 5)] * 2
    for weights in (*outputs.decoder_attentions, *outputs.cross_attentions):
        torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 5))
    assert outputs.cross_attentions[0][2, :, :, 2:].max() < 1e-6  # padding of the third source
    assert outputs.decoder_attentions[0].triu(1).max() < 1e-6
    assert torch.equal(model(**BATCH, return_dict=False)[0], outputs.logits)


def test_a_tuple_of_the_encoder_has_states_alone():
    model = backbone().eval()
    known = {name: BATCH[name] for name in ("input_ids", "attention_mask")}
    rest = {name: value for name, value in BATCH.items() if name not in ("input_ids", "labels")}
    states = model.get_encoder()(**known).last_hidden_state
    with torch.no_grad():
        torch.testing.assert_close(model(encoder_outputs=(states,), **rest).logits, model(**BATCH).logits)
    refused("encoder_outputs is a tuple, which names no fields", model, encoder_outputs=(states, states), **rest)


def test_logits_of_some_positions():
    model = backbone().eval()
    positions = torch.rand(BATCH["decoder_input_ids"].shape) < 0.5
    with torch.no_grad():
        torch.testing.assert_close(model.logits_at(positions, **BATCH), model(**BATCH).logits[positions])


def test_initial_values():
    model = DocMTForConditionalGeneration(DocMTConfig(**MARIAN | {"d_model": 64, "init_std": 0.05}))
    weight = model.model.decoder.layers[1].encoder_attn.v_proj.weight
    assert abs(weight.std() - 0.05) < 0.005 and abs(model.model.shared.weight[1:].std() - 0.05) < 0.005
    assert not model.model.shared.weight[PAD].any() and not model.final_logits_bias.any()
    assert (model.model.encoder.layers[0].final_layer_norm.weight == 1).all()


@pytest.mark.parametrize("init", ["fairseq", "fairseq_0.9"])
@pytest.mark.parametrize("tied", [True, False])
def test_initial_values_of_fairseq(init, tied):
    """Xavier-uniform is U(-b, b), b = gain sqrt(6 / (inputs + outputs)); its standard deviation b / sqrt(3)."""
    dim, inner = 64, 256
    sizes = {"d_model": dim, "encoder_ffn_dim": inner, "decoder_ffn_dim": inner, "vocab_size": 1000, "init": init}
    ties = {"share_encoder_decoder_embeddings": tied, "tie_word_embeddings": tied}
    torch.manual_seed(1)
    model = DocMTForConditionalGeneration(DocMTConfig(**MARIAN | sizes | ties | {"position_type": "learned"}))

    def is_uniform(tensor, bound):
        assert tensor.abs().max() <= bound and tensor.abs().max() > 0.75 * bound
        assert float(tensor.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.25)

    for layer in (*model.model.encoder.layers, *model.model.decoder.layers):
        for attention in (layer.self_attn, *([layer.encoder_attn] if hasattr(layer, "encoder_attn") else [])):
            for projection in (attention.q_proj, attention.k_proj, attention.v_proj):
                is_uniform(projection.weight, (6 / (2 * dim)) ** 0.5 / 2**0.5)
                is_uniform(projection.bias, dim**-0.5)
            is_uniform(attention.out_proj.weight, (6 / (2 * dim)) ** 0.5)
            assert not attention.out_proj.bias.any()
        for linear, inputs in ((layer.fc1, dim), (layer.fc2, inner)):
            if init == "fairseq":
                is_uniform(linear.weight, inputs**-0.5)
                is_uniform(linear.bias, inputs**-0.5)
            else:
                is_uniform(linear.weight, (6 / (dim + inner)) ** 0.5)
                assert not linear.bias.any()
        assert (layer.final_layer_norm.weight == 1).all()
    for stack in (model.model.encoder, model.model.decoder):
        for table in (stack.embed_tokens, stack.embed_positions):
            assert table.weight[1:].detach().std().item() == pytest.approx(dim**-0.5, rel=0.05)
        assert not stack.embed_tokens.weight[PAD].any()
    assert (model.lm_head.weight is model.model.decoder.embed_tokens.weight) == tied
    assert model.lm_head.weight.detach().std().item() == pytest.approx(dim**-0.5, rel=0.05)


@pytest.mark.parametrize(("p", "dtype"), [(0.1, torch.float32), (0.3, torch.bfloat16), (0.99, torch.float64)])
def test_dropout_keeps_a_share_and_the_mean(p, dtype):
    """Values are dropped one by one, as often as asked, and the others scaled; with the same mask for the gradient."""
    count, saved = 400_001, []
    states = torch.linspace(1, 2, count, dtype=dtype).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x.dtype) or x, lambda x: x):
        dropped = dropout(states, p, True)
    kept = dropped != 0
    assert saved == [torch.bool]
    scale = 1 / (1 - p)
    torch.testing.assert_close(dropped[kept], (states * scale)[kept], rtol=0.016, atol=0)  # 2^-16 of p, and bf16
    slack = 5 * (p * (1 - p) / count) ** 0.5
    assert abs(float(kept.double().mean()) - (1 - p)) < slack
    pairs = (kept[1:] & kept[:-1]).double().mean()  # neighbours are drawn apart: bits of one word
    assert abs(float(pairs) - (1 - p) ** 2) < 2 * slack
    (gradient,) = torch.autograd.grad(dropped.sum(), states)
    torch.testing.assert_close(gradient, (kept * scale).to(dtype), rtol=0.016, atol=0)
    first, second, again = (torch.manual_seed(seed) and dropout(states, p, True) for seed in (1, 2, 1))
    assert torch.equal(first, again) and not torch.equal(first, second)
    assert dropout(states, p, False) is states and dropout(states, 0.0, True) is states
