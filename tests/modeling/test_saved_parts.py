"""What users of transformers expect of a model's parts: saved, loaded, resized, drawn, called by themselves."""

import inspect
import json

import pytest
import torch
from support.errors import refused
from support.tiny_models import EOS, PAD, SIZES, build, context_fields
from transformers import AutoModel

from hf_docmt.loading import registry
from hf_docmt.modeling.layers import CACHE_NAME

IDS = torch.tensor([[7, 8, 9, EOS], [6, 10, EOS, PAD]])
UNTIED = {"tie_word_embeddings": False}
FIELDS = context_fields(1)


def model_of(architecture: str, **fields):
    return build(architecture, **FIELDS[architecture], **fields)


@pytest.mark.parametrize("fields", [{}, UNTIED, UNTIED | {"share_encoder_decoder_embeddings": False}])
def test_new_size_keeps_old_weights(fields):
    model = build(**fields)
    model.resize_token_embeddings(40)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.init_weights()
    after = model.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_untied_saved_and_loaded(tmp_path):
    """Three tables, none of them twice."""
    model = build(**UNTIED)
    model.save_pretrained(tmp_path)
    loaded, report = type(model).from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    tables = [name for name, value in loaded.named_parameters() if len(value) == SIZES["vocab_size"]]
    assert tables == ["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"]
    assert all(torch.equal(loaded.state_dict()[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("architecture", registry.ARCHITECTURES)
def test_encoder_and_decoder_by_themselves(architecture, tmp_path):
    model = model_of(architecture)
    states = torch.randn(2, 4, SIZES["d_model"])
    for stack, inputs in ((model.get_encoder(), ()), (model.get_decoder(), (None, states))):
        stack.save_pretrained(tmp_path)
        loaded, report = type(stack).from_pretrained(tmp_path, output_loading_info=True)
        assert not report["missing_keys"] and not report["unexpected_keys"]
        assert loaded.config.to_dict().keys() == model.config.to_dict().keys()
        if not (
            inputs and architecture in ("doct", "gtransformer", "lst", "window")
        ):  # these read what the encoder hands over
            found, expected = (one.eval()(IDS, *inputs).last_hidden_state for one in (loaded, stack))
            assert torch.equal(found, expected)
    with pytest.raises(ValueError, match=r"the decoder reads encoder_hidden_states \(B, S, D\), got none"):
        model.get_decoder()(IDS)
    with pytest.raises(ValueError, match=r"the decoder reads input_ids \(B, T\), got none"):
        model.get_decoder()(encoder_hidden_states=states)


FOREIGN = {  # architecture -> fields, and what a model says of states that its encoder did not make
    "concat": ({"segment_encoding": "sinusoidal"}, "sentence_count is missing"),
    "gtransformer": ({}, "must come from this model's encoder: source_groups is missing"),
    "window": ({}, "source_borders is missing"),
    "caching": ({}, "must come from this model's encoder: context_states is missing"),
    "doct": ({}, "context_mask of these 1 sentences are missing, or are of other ones"),
    "han": ({"hierarchical_attention": "decoder"}, "must come from this model's encoder: context_states"),
}


@pytest.mark.parametrize("architecture", FOREIGN)
def test_states_of_another_encoder(architecture):
    """States alone; those of a batch of another size."""
    fields, message = FOREIGN[architecture]
    model, ids = model_of(architecture, **fields), torch.tensor([[7, 4, 8, EOS]])
    context = {"context_input_ids": ids[None], "context_attention_mask": (ids > 0)[None].long()}
    context |= {"context_offsets": torch.tensor([[-1]])} if architecture in ("caching", "doct", "han") else {}
    outputs = model.get_encoder()(input_ids=ids, **context if "context_offsets" in context else {})
    states = (outputs.last_hidden_state,)
    refused(message, model, encoder_outputs=states, decoder_input_ids=ids)
    if "context_states" in outputs:
        outputs["context_states"] = outputs.context_states.repeat_interleave(2, dim=0)
        refused("context_states", model, encoder_outputs=outputs, decoder_input_ids=ids)


@pytest.mark.parametrize(
    ("architecture", "fields", "message"),
    [
        ("concat", {"segment_encoding": "sinusoidal"}, "pass decoder_sentence_index"),
        ("lst", {}, r"all 3 tokens, 2 of them cached, as \(1, 3\); got \(1, 1\)"),
    ],
)
def test_cache_without_sentences(architecture, fields, message):
    model, inputs = model_of(architecture, **fields), {"input_ids": torch.tensor([[7, 4, 8, EOS]])}
    cache = model(**inputs, decoder_input_ids=torch.tensor([[2, 9]]), use_cache=True)[CACHE_NAME]
    refused(message, model, **inputs, decoder_input_ids=torch.tensor([[4]]), cache=cache)


@pytest.mark.parametrize("architecture", registry.ARCHITECTURES)
def test_auto_model(architecture, tmp_path):
    """The folders of a model and of its base have one entry for either class."""
    model = model_of(architecture)
    for part in (model, model.model):
        part.save_pretrained(tmp_path / type(part).__name__)
        folder = tmp_path / type(part).__name__
        names = json.loads((folder / "config.json").read_text())["auto_map"]
        assert names["AutoModel"] == f"modeling_{architecture}.{type(model.model).__name__}"
        found = AutoModel.from_pretrained(folder, trust_remote_code=True)
        assert type(found).__name__ == type(model.model).__name__
        inputs = {"input_ids": IDS, "decoder_input_ids": IDS}
        assert torch.equal(found(**inputs).last_hidden_state, model.model(**inputs).last_hidden_state)


@pytest.mark.parametrize("architecture", registry.ARCHITECTURES)
def test_arguments_of_transformers_are_named(architecture):
    """None of them leaves the choice to the configuration."""
    model = model_of(architecture, attn_implementation="eager")
    names = ("inputs_embeds", "output_attentions", "output_hidden_states")
    assert set(names) <= inspect.signature(model.forward).parameters.keys()
    inputs = {"input_ids": IDS, "decoder_input_ids": IDS}
    assert model(**inputs, output_attentions=True).cross_attentions is not None
    assert model(**inputs).cross_attentions is None
    model.config.output_attentions = True
    assert model(**inputs).cross_attentions is not None
    assert model(**inputs, output_attentions=False).cross_attentions is None
