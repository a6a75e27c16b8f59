"""What modeling/ overrides of transformers' generation: the signatures that it relies on, and that one file has all."""

import ast
import inspect
from pathlib import Path

import pytest
import torch
from support.tiny_models import build
from transformers import GenerationMixin
from transformers.cache_utils import DynamicLayer, EncoderDecoderCache

from hf_docmt.modeling.cache import BeamLayer, DecodingCache
from hf_docmt.modeling.shared_source_generation import SharedSourceGeneration

MODELING = Path(__file__).resolve().parents[2] / "modeling"
SIGNATURES = {  # of transformers 5.23
    "prepare_inputs_for_generation": [
        "input_ids",
        "next_sequence_length",
        "past_key_values",
        "attention_mask",
        "inputs_embeds",
        "is_first_iteration",
        "kwargs",
    ],
    "_expand_inputs_for_generation": ["expand_size", "is_encoder_decoder", "input_ids", "model_kwargs"],
    "_prepare_cache_for_generation": [
        "generation_config",
        "model_kwargs",
        "generation_mode",
        "batch_size",
        "max_cache_length",
    ],
    "_prepare_generated_length": [
        "generation_config",
        "has_default_max_length",
        "has_default_min_length",
        "model_input_name",
        "input_ids_length",
        "inputs_tensor",
    ],
    "_prefill": ["input_ids", "generation_config", "model_kwargs", "is_first_iteration"],
    "_sample": [
        "input_ids",
        "logits_processor",
        "stopping_criteria",
        "generation_config",
        "synced_gpus",
        "streamer",
        "model_kwargs",
    ],
    "_beam_search": [
        "input_ids",
        "logits_processor",
        "stopping_criteria",
        "generation_config",
        "synced_gpus",
        "model_kwargs",
    ],
}
CALLED = {  # by modeling/beam_search.py and modeling/greedy_search.py
    "_gather_beams": ["tensor", "beam_indices"],
    "_get_running_beams_for_next_iteration": [
        "topk_log_probs",
        "topk_running_sequences",
        "topk_running_beam_indices",
        "next_token_hits_stopping_criteria",
        "num_beams",
    ],
    "_update_finished_beams": [
        "sequences",
        "topk_running_sequences",
        "beam_scores",
        "topk_log_probs",
        "beam_indices",
        "topk_running_beam_indices",
        "is_early_stop_heuristic_unsatisfied",
        "is_sent_finished",
        "next_token_hits_stopping_criteria",
        "top_num_beam_mask",
        "num_beams",
        "cur_len",
        "decoder_prompt_len",
        "length_penalty",
        "early_stopping",
    ],
    "_check_early_stop_heuristic": [
        "is_early_stop_heuristic_unsatisfied",
        "running_beam_scores",
        "beam_scores",
        "is_sent_finished",
        "cur_len",
        "max_length",
        "decoder_prompt_len",
        "early_stopping",
        "length_penalty",
    ],
    "_beam_search_has_unfinished_sequences": [
        "is_early_stop_heuristic_unsatisfied",
        "is_sent_finished",
        "next_token_hits_stopping_criteria",
        "early_stopping",
    ],
    "_update_model_kwargs_for_generation": ["outputs", "model_kwargs", "is_encoder_decoder", "num_new_tokens"],
}


def parameters(function) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.mark.parametrize("name", SIGNATURES | CALLED)
def test_signatures_of_transformers(name):
    assert parameters(getattr(GenerationMixin, name)) == (SIGNATURES | CALLED)[name]


@pytest.mark.parametrize("name", SIGNATURES)
def test_overrides_take_what_transformers_gives(name):
    """Every parameter of the original has one of the same name or is collected by * or **."""
    own = inspect.signature(getattr(SharedSourceGeneration, name)).parameters
    kinds = {parameter.kind for parameter in own.values()}
    collects = kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    assert collects or set(SIGNATURES[name]) <= own.keys()


def test_the_reordering_hook_is_called():
    """It has no definition in GenerationMixin; beam search asks whether the model has it."""
    assert "self._reorder_cache(" in inspect.getsource(GenerationMixin) or hasattr(GenerationMixin, "_reorder_cache")
    assert parameters(SharedSourceGeneration._reorder_cache) == ["past_key_values", "beam_idx"]


@pytest.mark.parametrize(
    ("own", "original", "names"),
    [
        (
            BeamLayer,
            DynamicLayer,
            ("update", "reorder_cache", "crop", "batch_repeat_interleave", "lazy_initialization"),
        ),
        (DecodingCache, EncoderDecoderCache, ("reorder_cache", "batch_repeat_interleave", "batch_select_indices")),
    ],
)
def test_signatures_of_caches(own, original, names):
    for name in names:
        assert parameters(getattr(own, name)) == parameters(getattr(original, name)), name


def test_no_other_file_overrides_generation():
    """But `generate` itself, which is public."""
    mixin = {name for name, _ in inspect.getmembers(GenerationMixin, inspect.isfunction)} | {"_reorder_cache"}
    for path in MODELING.glob("*.py"):
        if path.stem == "shared_source_generation":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
                found = methods & mixin - {"generate"}
                is_cache = any(
                    "Layer" in getattr(base, "id", "") or "Cache" in getattr(base, "id", "") for base in node.bases
                )
                assert is_cache or not found, (path.name, node.name, found)


@torch.no_grad()
def test_logits_of_the_last_token_alone():
    """`generate` asks for no others, however long the prompt is; forward gives them all unless asked."""
    model, source, prompt = build(), torch.tensor([[7, 8, 9, 3]]), torch.tensor([[2, 10, 11, 12]])
    every = model(input_ids=source, decoder_input_ids=prompt).logits
    torch.testing.assert_close(
        model(input_ids=source, decoder_input_ids=prompt, logits_to_keep=2).logits, every[:, -2:], atol=1e-6, rtol=1e-5
    )
    assert model(input_ids=source, labels=prompt, logits_to_keep=2).logits.shape[1] == 4  # the loss needs them all
    computed = []
    model.lm_head.register_forward_pre_hook(lambda _, inputs: computed.append(inputs[0].shape[1]))
    for settings in ({"num_beams": 1}, {"num_beams": 3}, {"num_beams": 1, "use_cache": False}):
        model.generate(input_ids=source, decoder_input_ids=prompt, max_new_tokens=3, **settings)
    assert set(computed) == {1}
