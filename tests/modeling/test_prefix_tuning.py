"""Adapters of peft that stand between `generate` and the model: a prefix in the cache, an adapter for each row."""

import pytest
import torch
from peft import LoraConfig, PrefixTuningConfig, get_peft_model
from support.tiny_models import EOS, PAD, build, context_fields

from hf_docmt.loading import registry

FIELDS = context_fields(
    concat={"segment_encoding": "learned"},
    gtransformer={"restarts_positions": True},
    han={"context_sides": "both"},
    window={"window": 2, "alignment": "sentence"},
)
IDS = torch.tensor([[7, 4, 9, EOS], [10, 11, EOS, PAD]])
SOURCE = {"input_ids": IDS, "attention_mask": (IDS != PAD).long()}
SEARCHES = [{"num_beams": 1}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 2}]


def prefixed(architecture: str):
    """A model with a prefix of three vectors that matters to what it writes."""
    model = build(architecture, decoder_attention_heads=2, **FIELDS[architecture])
    model.final_logits_bias[0, EOS] = -100.0
    adapted = get_peft_model(model, PrefixTuningConfig(task_type="SEQ_2_SEQ_LM", num_virtual_tokens=3)).eval()
    for parameter in adapted.prompt_encoder.parameters():
        parameter.data.mul_(2)
    return adapted


@pytest.mark.parametrize("settings", SEARCHES, ids=str)
@pytest.mark.parametrize("architecture", registry.ARCHITECTURES)
def test_prefix(architecture, settings):
    """Every step of a search sees the scores of forced decoding behind the prefix, which are others without it."""
    model = prefixed(architecture)
    recorded = {"return_dict_in_generate": True, "output_scores": True, "max_new_tokens": 5}
    torch.manual_seed(1)
    found = model.generate(**SOURCE, **settings, **recorded)
    rows = len(found.sequences) // 2
    forced = {name: value.repeat_interleave(rows, 0) for name, value in SOURCE.items()}
    forced["decoder_input_ids"] = found.sequences[:, :-1]
    with torch.no_grad():
        expected = model(**forced).logits.log_softmax(-1)
        alone = model.get_base_model()(**forced).logits.log_softmax(-1)
    assert (expected - alone).abs().max() > 1e-3
    if "num_beams" in settings and settings["num_beams"] > 1:
        total = expected.gather(2, found.sequences[:, 1:, None])[..., 0].mean(dim=1)
        torch.testing.assert_close(found.sequences_scores, total, atol=1e-4, rtol=1e-4)
    elif "do_sample" not in settings:
        scores = torch.stack(found.scores, dim=1).log_softmax(-1)
        torch.testing.assert_close(scores, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("architecture", registry.ARCHITECTURES)
def test_prefix_learns(architecture):
    """A step of training: the loss reaches the prefix, and nothing else."""
    model = prefixed(architecture).train()
    if architecture == "memory":
        loss = model(**SOURCE, labels=IDS, document_start=torch.ones(2, dtype=torch.bool)).loss
    else:
        loss = model(**SOURCE, labels=IDS).loss
    loss.backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in model.prompt_encoder.parameters())


@pytest.mark.parametrize("settings", SEARCHES[:2], ids=str)
@pytest.mark.parametrize("architecture", [name for name in registry.ARCHITECTURES if name != "routing"])
def test_an_adapter_for_each_row(architecture, settings):
    """As each row has it with its own adapter. Routing's layers read the neighbours of all rows, which peft counts."""
    config = LoraConfig(task_type="SEQ_2_SEQ_LM", target_modules=["q_proj", "fc1"], init_lora_weights=False)
    model = get_peft_model(build(architecture, **FIELDS[architecture]), config)
    model.add_adapter("other", config)
    model.eval()
    together = model.generate(**SOURCE, **settings, max_new_tokens=6, adapter_names=["default", "other"])
    for row, name in enumerate(("default", "other")):
        model.set_adapter(name)
        alone = model.generate(**{key: value[[row]] for key, value in SOURCE.items()}, **settings, max_new_tokens=6)
        assert together[row, : alone.shape[1]].tolist() == alone[0].tolist()
