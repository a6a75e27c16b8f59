"""What modeling/ and the engine take of transformers beneath its surface, and the inputs of a step of decoding."""

import ast
import os
from pathlib import Path

import pytest
import torch
from sacrebleu.metrics import BLEU, CHRF
from support.tiny_models import build
from torch import nn
from transformers import (
    GenerationConfig,
    GenerationMixin,
    Pipeline,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Seq2SeqTrainer,
)
from transformers.cache_utils import Cache, CacheLayerMixin
from transformers.modeling_layers import GradientCheckpointingLayer

from hf_docmt.engine.cache import DecodingCache
from hf_docmt.modeling.translation_jobs import CurrentSentence

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*(ROOT / "modeling").glob("*.py"), *(ROOT / "hf_docmt").rglob("*.py")])
CLASSES = (
    PreTrainedModel,
    GenerationMixin,
    PreTrainedConfig,
    GenerationConfig,
    Pipeline,
    Cache,
    CacheLayerMixin,
    GradientCheckpointingLayer,
    Seq2SeqTrainer,
    PreTrainedTokenizerBase,
)
# Private names of transformers that these use: why, and the test that sees to it
ALLOWED = {
    "_auto_class": "what register_for_auto_class sets: whether its code goes along (test_new_architecture)",
    "_attn_implementation": "of the configuration: which attention; models of transformers read it (eager is sdpa)",
    "_can_compile_fullgraph": "documented for models: a step of a search is one graph (test_compiled_training)",
    "_can_record_outputs": "documented for models: which layers give out states (attentions in rows of beams)",
    "_check_overlapping_tokens": "of peft: what its own layer of trained tokens does first (test_low_rank_adaptation)",
    "_commit_hash": "of the configuration: whether a model came from the Hub, for its card (test_saved_cards)",
    "_forward": "documented for pipelines of one's own (test_pipeline)",
    "_batch_size": "of a pipeline: documented argument, kept there (test_pipeline)",
    "_forward_params": "of a pipeline: arguments of its making, kept there (test_pipeline)",
    "_fields_": "of ctypes: structures of the kernels (test_cpu_kernels)",
    "_get_resized_embeddings": "the second table of a model with two vocabularies (test_backbone: resized)",
    "_has_any_global_hook": "of torch: whether hooks of all modules are there (test_cpu_kernels: called)",
    "_hf_hook": "whether accelerate offloads a layer (battery: offloaded)",
    "_hf_peft_config_loaded": "a model with an adapter inside has no card of ours (test_saved_cards)",
    "_issue_warnings_after_load": "resuming is silent about names of tied weights alone (test_plain_trainer)",
    "_init_weights": "documented for models: initial values (test_backbone)",
    "_keys_to_ignore_on_load_missing": "documented for models (battery: saved and loaded)",
    "_keys_to_ignore_on_load_unexpected": "documented for models (battery: base model of a saved model)",
    "_is_hf_initialized": "a head that is put in place has its weights (test_saved_parts)",
    "_load_feature_extractor": "documented for pipelines of one's own (test_pipeline)",
    "_load_image_processor": "documented for pipelines of one's own (test_pipeline)",
    "_load_processor": "documented for pipelines of one's own (test_pipeline)",
    "_load_rng_state": "of the trainer: states by process, of other numbers of processes (test_process_counts)",
    "_load_tokenizer": "documented for pipelines of one's own (test_pipeline)",
    "_load_video_processor": "documented for pipelines of one's own (test_pipeline)",
    "_no_split_modules": "documented for models: what device maps leave whole (battery: offloaded)",
    "_prepare_for_training": "of the trainer: tied embeddings stay in the root of sharded models (test_process_counts)",
    "_prepare_inputs": "of the trainer: a batch on its device (test_trainer)",
    "_push_from_checkpoint": "of the trainer: a checkpoint goes up once it is whole (test_round_trips)",
    "_ref_cache": "of sacrebleu: references are read once for all resamples (test_metrics)",
    "_sanitize_parameters": "documented for pipelines of one's own (test_pipeline)",
    "_save": "of the trainer: one tensor for tied weights, fingerprints (test_plain_trainer)",
    "_save_checkpoint": "of the trainer: a checkpoint is whole or not there (test_training_kills)",
    "_save_rng_state": "of the trainer: with the state of a stream (test_stream_trainer)",
    "_set_gradient_checkpointing": "refuses reentrant checkpointing, which loses gradients (test_backbone)",
    "_skip_keys_device_placement": "documented for models: the cache stays where it is (battery: offloaded)",
    "_supports_flash_attn": "documented for models (test_lst: attention without masks)",
    "_supports_flex_attn": "documented for models (test_flex_attention)",
    "_supports_sdpa": "documented for models (battery: eager is sdpa)",
    "_tied_weights_keys": "documented for models (battery: saved and loaded)",
    "_upload_modified_files": "card and fingerprints go up with the files (test_publishing)",
}


def private_names() -> dict[str, list[str]]:
    """Names with one leading underscore that are no one's there or of torch, and where they stand."""
    used, own = {}, set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.Attribute):
                names = [node.attr]
                if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
                    own.add(node.attr)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [node.name]
                own.add(node.name)
            elif isinstance(node, ast.ClassDef):
                targets = [target for item in node.body for target in getattr(item, "targets", ())]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr", "setattr"):
                names = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            for name in names:
                if isinstance(name, str) and name.startswith("_") and not name.startswith("__"):
                    used.setdefault(name, []).append(f"{path.name}:{getattr(node, 'lineno', 0)}")
    others = (nn.Linear(1, 1), torch.empty(0), torch.ops.mkldnn, torch, torch.cpu, CurrentSentence, os, BLEU, CHRF)
    theirs = {name for name in used if any(hasattr(cls, name) for cls in CLASSES)}
    known = {name for name in used if any(hasattr(one, name) for one in others)}
    return {name: used[name] for name in used if name not in known and (name in theirs or name not in own)}


def test_private_names_of_transformers():
    """Overriding or calling what transformers does not document breaks with a release: each use has its reason."""
    found = private_names()
    unknown = {name: found[name] for name in found.keys() - ALLOWED}
    assert not unknown, f"private names of transformers: use a public seam, or give a reason and a test: {unknown}"
    assert not ALLOWED.keys() - found.keys(), "no longer used: take it off the list"


def test_generation_has_public_overrides_alone():
    """`generate` and `prepare_inputs_for_generation` are what transformers documents."""
    mixin = set(vars(GenerationMixin))
    model = build()
    classes = [cls for cls in type(model).__mro__ if cls.__module__.startswith("hf_docmt")]
    found = {name for cls in classes for name in vars(cls) if name in mixin and not name.startswith("__")}
    assert found == {"generate", "prepare_inputs_for_generation"}


SOURCE, PROMPT = torch.tensor([[7, 8, 9, 3]]), torch.tensor([[2, 10, 11, 12]])


@torch.no_grad()
def test_logits_of_the_last_token_alone():
    """`generate` asks for no others, however long the prompt is; forward gives them all unless asked."""
    model = build()
    every = model(input_ids=SOURCE, decoder_input_ids=PROMPT).logits
    torch.testing.assert_close(
        model(input_ids=SOURCE, decoder_input_ids=PROMPT, logits_to_keep=2).logits, every[:, -2:], atol=1e-6, rtol=1e-5
    )
    assert model(input_ids=SOURCE, labels=PROMPT, logits_to_keep=2).logits.shape[1] == 4  # the loss needs them all
    computed = []
    model.lm_head.register_forward_hook(lambda _, inputs, __: computed.append(inputs[0].shape[1]))
    for settings in ({"num_beams": 1}, {"num_beams": 3}, {"use_cache": False}, {"do_sample": True}):
        model.generate(input_ids=SOURCE, decoder_input_ids=PROMPT, max_new_tokens=3, **settings)
    assert set(computed) == {1}


@pytest.mark.parametrize("read", [0, 1, 3])
@pytest.mark.parametrize("told", [True, False], ids=["told", "counted"])
def test_new_ids_of_a_step(read, told):
    """Told by transformers, or counted: all ids so far without those that the cache has, or new ones alone."""
    model, cache = build(past_context=1, segment_encoding="learned"), None
    if read:
        cache = DecodingCache()
        names = model.prepare_inputs_for_generation(PROMPT[:, :read], encoder_outputs=model.get_encoder()(SOURCE))
        model(**names | {"cache": cache, "past_key_values": None})
    new = 4 - read if told else None
    found = model.prepare_inputs_for_generation(PROMPT, new, cache=cache)
    assert found["decoder_input_ids"].tolist() == PROMPT[:, read:].tolist()
    assert found["decoder_sentence_index"].shape == (1, 4 - read)
    mask = torch.ones(1, 4, dtype=torch.long)
    alone = model.prepare_inputs_for_generation(PROMPT[:, read:], past_key_values=cache, decoder_attention_mask=mask)
    assert alone["decoder_input_ids"].tolist() == PROMPT[:, read:].tolist()
