"""A new architecture in a few lines: what modeling/README.md promises of the seams."""

import pytest
import torch
from support.battery import GREEDY, logits
from support.tiny_models import EOS, PAD, SEP, SIZES, perturb, plain_model
from torch import nn
from transformers import GenerationMixin

from hf_docmt.modeling.configuration_docmt import DocMTConfig, SegmentConfig
from hf_docmt.modeling.layers import EncoderLayer
from hf_docmt.modeling.modeling_docmt import DocMTForConditionalGeneration, DocMTModel, Encoder
from hf_docmt.modeling.segments import sentence_index

# The architecture: every source token also reads the mean state of the sentence before its own


class ToyConfig(DocMTConfig):
    model_type = "docmt-toy"


class ToyEncoderLayer(EncoderLayer):
    def __init__(self, config, layer_idx):
        super().__init__(config, layer_idx)
        self.previous_proj = nn.Linear(config.d_model, config.d_model, bias=False)

    def self_attention_block(self, hidden_states, *args, previous_weights=None, **layer_inputs):
        hidden_states = super().self_attention_block(hidden_states, *args, **layer_inputs)
        return hidden_states + self.previous_proj(previous_weights @ hidden_states)  # (B, S, S) @ (B, S, D)


class ToyEncoder(Encoder):
    layer_class = ToyEncoderLayer

    def layer_inputs(self, input_ids, positions, attention_mask=None, **kwargs):
        index = sentence_index(input_ids, self.config.sep_token_id)  # (B, S)
        is_previous = (index[:, None] == index[:, :, None] - 1).float()
        if attention_mask is not None:
            is_previous = is_previous * attention_mask[:, None]
        return {"previous_weights": is_previous / is_previous.sum(dim=2, keepdim=True).clamp(min=1)}  # (B, S, S)


class ToyModel(DocMTModel):
    config_class = ToyConfig
    encoder_class = ToyEncoder


class ToyForConditionalGeneration(DocMTForConditionalGeneration, GenerationMixin):
    config_class = ToyConfig
    model_class = ToyModel


# What it can do


SOURCE = torch.tensor([[7, 8, SEP, 10, 11, EOS], [12, SEP, 9, EOS, PAD, PAD]])
INPUTS = {"input_ids": SOURCE, "attention_mask": (SOURCE != PAD).long()}


@pytest.fixture
def model():
    torch.manual_seed(0)
    return perturb(ToyForConditionalGeneration(ToyConfig(**SIZES)))


def test_it_reads_the_sentence_before_and_no_other(model):
    changed = {**INPUTS, "input_ids": SOURCE.clone(), "decoder_input_ids": torch.tensor([[2, 9], [2, 9]])}
    changed["input_ids"][0, 0] = 20
    found, before = (
        model.get_encoder()(**{**INPUTS, "input_ids": ids}).last_hidden_state[0]
        for ids in (SOURCE, changed["input_ids"])
    )
    assert (found[3:] - before[3:]).abs().max() > 1e-3
    for layer in model.get_encoder().layers:
        nn.init.zeros_(layer.previous_proj.weight)
    torch.testing.assert_close(logits(model, changed), logits(plain_model(model), changed))


@pytest.mark.parametrize("beams", [1, 3])
def test_it_translates_with_and_without_a_cache(model, beams):
    settings = GREEDY | {"num_beams": beams}
    found = [model.generate(**INPUTS, **settings, use_cache=use_cache) for use_cache in (True, False)]
    assert torch.equal(*found) and found[0].shape[1] > 2
    with pytest.raises(ValueError, match=r"strategy 'sliding' is none of this model's \(sentence\)"):
        model.check_strategy("sliding")
    with pytest.raises(ValueError, match="set translator_class = SegmentTranslator in its class"):
        model.translator_class.default_strategy(SegmentConfig())


def test_it_is_saved_and_loaded(model, tmp_path):
    model.save_pretrained(tmp_path)
    loaded = ToyForConditionalGeneration.from_pretrained(tmp_path)
    batch = INPUTS | {"decoder_input_ids": torch.tensor([[2, 9], [2, 9]])}
    assert loaded.config.model_type == "docmt-toy" and torch.equal(logits(loaded, batch), logits(model, batch))
