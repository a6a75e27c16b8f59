"""The compiled primitives of decoding against plain operations of torch, and what runs without them."""

import ctypes
import gc
import os
import platform
import shutil
import signal
import subprocess
import weakref
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from support.battery import KeptScores
from support.tiny_models import EOS, PAD, build
from transformers import MaxLengthCriteria, StoppingCriteria

from hf_docmt.engine import (
    cpu_kernels,
    decoding_step,
    encoder,
    int8_linear,
    quantization,
    scope as engine_scope,
    search,
    tensor_kernels,
)
from hf_docmt.engine.cache import DecodingCache
from hf_docmt.engine.decoding_step import DecodingStep
from hf_docmt.engine.int8_linear import Int8Linear, kernel_weights, portable_product, whole_blocks
from hf_docmt.engine.scope import in_blocks, unchanged_weights
from hf_docmt.engine.search import DecoderState
from hf_docmt.modeling.generation_mixin import inference

ROOT = Path(__file__).parents[2]
SIZES = {"d_model": 32, "encoder_ffn_dim": 40, "decoder_ffn_dim": 24, "decoder_attention_heads": 4}
SOURCE = torch.tensor([[7, 9, 8, 12, EOS], [6, EOS, PAD, PAD, PAD], [14, 7, 21, EOS, PAD]])
PROMPT = torch.tensor([[2, 9, 11], [PAD, 2, 7], [PAD, PAD, 2]])
is_aarch64 = platform.machine().lower() in ("aarch64", "arm64")
FIRST, LAST = ("NEON", "DOTS") if is_aarch64 else ("AVX2", "AMX")
LEVELS = range(getattr(cpu_kernels, FIRST), getattr(cpu_kernels, LAST) + 1)  # of this kind of processor
needs_kernels = pytest.mark.skipif(cpu_kernels.kernels() is None, reason="the kernels were not built, or need AVX2")
ARM_GCC, ARM = "aarch64-linux-gnu-gcc", "qemu-aarch64"


@pytest.fixture
def int8_model(monkeypatch):
    """Makes models with int8 weights whose products are those of plain operations, with 8 bits of the input."""
    monkeypatch.setattr(quantization, "MIN_ELEMENTS", 0)
    monkeypatch.setattr(int8_linear, "FBGEMM", False)
    return lambda *names, **fields: build(*names, **SIZES | fields).quantize("int8")


def scores(model, monkeypatch, kernels: bool = True, **settings) -> list[torch.Tensor]:
    """Scores of all steps of a search, on the kernels or by `forward`; RuntimeError where these were not used."""
    built, kept, build_step = [], KeptScores(), DecodingStep.build
    with monkeypatch.context() as patch:
        patch.setenv("DOCMT_KERNELS", "1" if kernels else "0")
        patch.setattr(DecodingStep, "build", lambda *arguments: built.append(build_step(*arguments)))
        context = dict.fromkeys(model.context_arguments)
        model.generate(SOURCE, attention_mask=(SOURCE != PAD).long(), logits_processor=[kept], **context, **settings)
    if bool(built) != kernels:
        raise RuntimeError("kernels were not used")
    return kept.copies


@needs_kernels
def test_kernels_of_another_version_are_named(monkeypatch):
    monkeypatch.setattr(cpu_kernels, "ABI", cpu_kernels.ABI + 1)
    with pytest.warns(RuntimeWarning, match="another version .* Install hf_docmt again"):
        assert cpu_kernels.kernels.__wrapped__() is None


@needs_kernels
@pytest.mark.parametrize(("platform", "most"), [("linux", 2**63), ("darwin", cpu_kernels.FEW_ROWS)])
def test_rows_of_floats(monkeypatch, platform, most):
    """On macOS torch is faster for many rows."""
    monkeypatch.setattr(cpu_kernels, "lone_threads", lambda: 1)
    monkeypatch.setattr(cpu_kernels.sys, "platform", platform)
    assert cpu_kernels.most_rows(8, is_float=True) == most


@needs_kernels
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("with_prompt", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize(
    "architecture, fields",
    [
        ("concat", {}),
        ("concat", {"normalize_before": True, "layernorm_embedding": True}),
        ("concat", {"activation_function": "gelu", "position_type": "learned", "position_offset": 2}),
        ("concat", {"past_context": 1, "segment_encoding": "sinusoidal", "persistent": True}),
        ("concat", {"decoder_autoregression": "ssru"}),
        ("concat", {"decoder_autoregression": "ssru", "normalize_before": True}),
        ("caching", {"decoder_autoregression": "ssru"}),
        ("gtransformer", {}),
        ("han", {"context_sides": "both"}),
        ("lst", {}),
        ("memory", {}),
        ("routing", {}),
        ("caching", {}),
        ("doct", {"normalize_before": True}),
    ],
)
def test_scores_are_those_of_plain_operations(
    int8_model, monkeypatch, architecture, fields, precision, with_prompt, beams
):
    model = int8_model(architecture, **fields) if precision == "int8" else build(architecture, **SIZES | fields)
    settings = {"num_beams": beams, "max_new_tokens": 7, "min_new_tokens": 7}
    if with_prompt:
        settings |= {"decoder_input_ids": PROMPT, "decoder_attention_mask": (PROMPT != PAD).long()}
    ours = scores(model, monkeypatch, **settings)
    plain = scores(model, monkeypatch, kernels=False, **settings)
    assert len(ours) == len(plain) == 7
    difference = torch.stack(ours[-7:]) - torch.stack(plain[-7:])
    seen = torch.stack(plain).isfinite()  # the end is ruled out
    if precision == "fp32":
        assert difference[seen].abs().max() < 1e-5
        return
    # where rounding of float32 makes a state another integer, all that follows differs by some steps of int8
    assert difference[seen].abs().median() < 1e-5 and difference[seen].abs().mean() < 2e-2


PROMPT_MASK = (PROMPT != PAD).long()
HOLES = torch.tensor([[1, 1, 1], [1, 0, 1], [0, 1, 1]])


@needs_kernels
@pytest.mark.parametrize(
    ("fields", "length", "mask", "is_read"),
    [
        ({}, 3, PROMPT_MASK, True),
        ({}, 3, None, True),
        ({"decoder_autoregression": "ssru"}, 3, PROMPT_MASK, True),
        ({"position_type": "learned", "normalize_before": True}, 3, PROMPT_MASK, True),
        ({}, 3, HOLES, False),
        ({}, encoder.MOST_PLACES, None, True),
        ({}, encoder.MOST_PLACES + 1, None, False),
        ({"activation_function": "gelu"}, 3, PROMPT_MASK, False),  # a block of torch
    ],
)
@pytest.mark.parametrize("beams", [1, 2])
def test_prompts_that_the_program_reads(int8_model, monkeypatch, fields, length, mask, is_read, beams):
    """With padding in front, without `forward`; the steps behind them have positions of their tokens alone."""
    monkeypatch.setattr(decoding_step, "most_rows", lambda size, is_float: 1024)  # on any processor
    model = int8_model(**fields)
    prompt = torch.cat([PROMPT, torch.randint(8, 20, (3, length - 3))], dim=1)
    prompt = prompt.masked_fill(prompt == PAD, 2) if mask is None else prompt
    ids = {"decoder_input_ids": prompt, "decoder_attention_mask": mask, "attention_mask": (SOURCE != PAD).long()}
    settings = {"num_beams": beams, "max_new_tokens": 9}
    model.final_logits_bias[0, EOS] = -1e9
    forward, called = type(model).forward, []
    monkeypatch.setattr(type(model), "forward", lambda self, **rest: called.append(1) or forward(self, **rest))
    ours = model.generate(SOURCE, **ids, **settings)
    assert bool(called) != is_read
    monkeypatch.setenv("DOCMT_KERNELS", "0")
    assert torch.equal(ours, model.generate(SOURCE, **ids, **settings))


@needs_kernels
@pytest.mark.parametrize("change", ["far", "negative", "rows", "int32"])
def test_wrong_prompts_end_as_without_kernels(int8_model, monkeypatch, change):
    model, prompt = int8_model(), PROMPT.clone()
    if change == "rows":
        prompt = prompt[:2]
    elif change == "int32":
        prompt = prompt.int()
    else:
        prompt[0, 1] = 10**8 if change == "far" else -100
    ends = []
    for kernels in "10":
        monkeypatch.setenv("DOCMT_KERNELS", kernels)
        try:
            mask = (prompt != PAD).long()
            settings = {"decoder_input_ids": prompt, "decoder_attention_mask": mask, "max_new_tokens": 5}
            ends.append(model.generate(SOURCE, attention_mask=(SOURCE != PAD).long(), **settings).tolist())
        except (IndexError, RuntimeError) as error:
            ends.append(type(error))
    assert ends[0] == ends[1] and isinstance(ends[0], list) == (change == "int32")


@needs_kernels
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("rows", [*range(1, 10), 16, 35])
@pytest.mark.parametrize("sizes", [(8, 1), (24, 15), (40, 16), (64, 33), (16, 100), (192, 40)])
def test_product_is_the_portable_one(rows, sizes, level, instructions):
    """All sum up the same integers, and scale them in float32, whatever rows stand beside a row."""
    instructions(level)
    layers = [Int8Linear.of(torch.nn.Linear(*sizes)) for _ in range(2)]
    states = torch.randn(rows, sizes[0]) * torch.tensor([1.0, 50.0]).repeat(sizes[0] // 2)
    states[0] = 0
    output = tensor_kernels.kernel_product(states, *kernel_weights(layers), 2 * sizes[1])
    expected = portable_product(layers, states, int8_linear.joint_bias(layers))
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-6)
    assert torch.equal(tensor_kernels.kernel_product(states[-1:], *kernel_weights(layers), 2 * sizes[1]), output[-1:])


@needs_kernels
@pytest.mark.parametrize("level", LEVELS[:-1])
@pytest.mark.parametrize("sizes", [(8, 1), (24, 15), (40, 16), (64, 33), (16, 100), (192, 40)])
def test_float_product_is_that_of_torch(sizes, level, instructions):
    """And that of a row is the same whatever rows stand beside it."""
    instructions(level)
    layer, states = torch.nn.Linear(*sizes), torch.randn(35, sizes[0])
    weights = in_blocks(layer.weight.detach()), None, whole_blocks(layer.bias.detach())
    output = tensor_kernels.kernel_product(states, *weights, sizes[1])
    torch.testing.assert_close(output, layer(states).detach(), atol=1e-5, rtol=1e-5)
    for rows in range(1, 35):
        assert torch.equal(tensor_kernels.kernel_product(states[:rows], *weights, sizes[1]), output[:rows])


@needs_kernels
@pytest.mark.parametrize("architecture", ["concat", "caching", "lst"])
def test_changes_between_scopes_are_seen_in_fp32(monkeypatch, architecture):
    """Also those that torch does not count, of weights and biases of encoder and decoder."""
    model, before = build(architecture, **SIZES), None
    for side, name in [("encoder", "weight"), ("decoder", "weight"), ("encoder", "bias"), ("decoder", "bias")]:
        parameter = getattr(getattr(model.model, side).layers[1].fc1, name)
        parameter.data.normal_(generator=torch.Generator().manual_seed(1))
        ours, plain = (scores(model, monkeypatch, kernels, max_new_tokens=1) for kernels in (True, False))
        torch.testing.assert_close(ours, plain, atol=1e-5, rtol=0)
        assert before is None or not torch.allclose(ours[0], before[0], atol=1e-4)
        before = ours


def shared_projection(model):
    for first, second in zip(*(stack.layers for stack in (model.get_encoder(), model.get_decoder()))):
        second.self_attn.q_proj = first.self_attn.q_proj
    model.get_encoder().layers[1].self_attn.q_proj = model.get_encoder().layers[0].self_attn.q_proj


def layers_of(model, name: str) -> list:
    """One module of that name in the encoder, one in the decoder."""
    return [stack.layers[0].get_submodule(name) for stack in (model.get_encoder(), model.get_decoder())]


def doubled_forward(model):
    for layer in layers_of(model, "fc1"):
        layer.forward = lambda states, forward=layer.forward: 2 * forward(states)


def doubled_activation(model):
    for layer in layers_of(model, "activation_fn"):
        layer.register_forward_hook(lambda module, states, output: 2 * output)


def norm_without_bias(model):
    for layer in layers_of(model, "final_layer_norm"):
        layer.bias = None


def norm_of_strides(model):
    for layer in layers_of(model, "final_layer_norm"):
        layer.weight.data = torch.rand(64)[::2]


def norm_of_one_number(model):
    for layer in layers_of(model, "self_attn_layer_norm"):
        layer.weight = torch.nn.Parameter(torch.tensor(1.5).expand(32))


def other_scaling(model):
    for attention in layers_of(model, "self_attn"):
        attention.scaling = 2.0


def wrapped_layer(model):
    for stack in (model.get_encoder(), model.get_decoder()):
        stack.layers[1].fc2 = Wrapper(stack.layers[1].fc2)


def wide_layers(model):
    for stack in (model.get_encoder(), model.get_decoder()):
        layer = stack.layers[1]
        layer.fc1, layer.fc2 = torch.nn.Linear(32, 1000), torch.nn.Linear(1000, 32)
    model.eval()


@needs_kernels
@pytest.mark.parametrize(
    "change",
    [
        shared_projection,
        doubled_forward,
        doubled_activation,
        norm_without_bias,
        norm_of_strides,
        norm_of_one_number,
        other_scaling,
        wrapped_layer,
        wide_layers,
    ],
)
def test_fp32_steps_of_modules(monkeypatch, change):
    """Beside `forward`, by a model that has translated before."""
    model, all_scores = build(**SIZES), []
    model.generate(SOURCE, max_new_tokens=4)
    change(model)
    for kernels in "10":
        kept = KeptScores()
        monkeypatch.setenv("DOCMT_KERNELS", kernels)
        model.generate(SOURCE, attention_mask=(SOURCE != PAD).long(), logits_processor=[kept], max_new_tokens=4)
        all_scores.append(kept.copies)
    torch.testing.assert_close(*all_scores, atol=2e-5, rtol=0)


@needs_kernels
def test_hooks_of_all_modules_are_called():
    model, called = build(**SIZES), []
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *arguments: called.append(1))
    try:
        model.generate(SOURCE, max_new_tokens=2)
    finally:
        handle.remove()
    assert len(called) > 30


@needs_kernels
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("default", [torch.bfloat16, torch.float16, torch.float64, torch.device("meta")])
def test_defaults_of_torch_change_nothing(int8_model, default, beams, precision):
    sizes = SIZES | {"init_std": 0.5}  # scores far apart, whose sums decide
    model = int8_model(**sizes) if precision == "int8" else build(**sizes)
    model.final_logits_bias[0, EOS] = -1e9  # many steps in one call
    sources = SOURCE.repeat(20, 9), SOURCE
    expected = [model.generate(source, max_new_tokens=9, num_beams=beams) for source in sources]
    before = torch.get_default_dtype()
    try:
        if isinstance(default, torch.dtype):
            torch.set_default_dtype(default)
        with default if isinstance(default, torch.device) else nullcontext():
            for source, ids in zip(sources, expected):
                assert torch.equal(model.generate(source, max_new_tokens=9, num_beams=beams), ids)
    finally:
        torch.set_default_dtype(before)


@needs_kernels
def test_weights_stay_as_long_as_a_step():
    """A scope that was copied, as into another thread, may end before."""
    model = build(**SIZES)
    with inference(model), torch.no_grad():
        encoded = model.get_encoder()(input_ids=SOURCE)
        step = decoding_step.decoding_step(DecoderState(model, encoded, DecodingCache()))
    kept = [weakref.ref(one) for one in step.program.kept if isinstance(one, engine_scope.PackedLayers)]
    engine_scope.forget(model)
    gc.collect()
    assert kept and all(one() is not None for one in kept)
    del step
    gc.collect()
    assert all(one() is None for one in kept)


@needs_kernels
@pytest.mark.parametrize("beams", [1, 3])
def test_translations_in_fp32_do_not_depend_on_the_batch(beams):
    model, settings = build(**SIZES), {"max_new_tokens": 8, "min_new_tokens": 8, "num_beams": beams}
    together, alone = KeptScores(), KeptScores()
    model.generate(SOURCE, attention_mask=(SOURCE != PAD).long(), logits_processor=[together], **settings)
    model.generate(SOURCE[1:2, :2], logits_processor=[alone], **settings)
    for rows, row in zip(together.copies, alone.copies, strict=True):
        assert torch.equal(rows.view(3, beams, -1)[1], row)


@needs_kernels
@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({}, "decoder.layers.1.fc1"),
        ({}, "decoder.layers.0.self_attn.k_proj"),
        ({}, "decoder.layers.0.encoder_attn.q_proj"),
        ({}, "decoder.layers.0.encoder_attn.k_proj"),
        ({}, "encoder.layers.0.self_attn.q_proj"),
        ({}, "encoder.layers.0.self_attn.k_proj"),
        ({"decoder_autoregression": "ssru"}, "decoder.layers.0.self_attn.forget_gate"),
    ],
)
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("level", [cpu_kernels.AVX2, cpu_kernels.DOTS])
@torch.no_grad()
def test_nan_passes(int8_model, instructions, level, precision, fields, place):
    """A search has to see them, to say so: they do not end in an activation, in weights of attention or in a gate."""
    cpu_kernels.kernels().docmt_level(level)
    model = int8_model(**fields) if precision == "int8" else build(**SIZES | fields)
    model.model.get_submodule(place).bias.fill_(float("nan"))
    kept = KeptScores()
    model.generate(SOURCE, logits_processor=[kept], max_new_tokens=3)
    assert kept.copies[-1].isnan().all()


@pytest.fixture
def instructions():
    """Lets products have instructions up to a level; skips where the processor has fewer."""

    def take(level: int) -> None:
        if cpu_kernels.kernels().docmt_level(level) != level:
            pytest.skip("this processor has no such instructions")

    yield take
    cpu_kernels.kernels().docmt_level(cpu_kernels.DOTS)


class Wrapper(torch.nn.Module):
    """What an adapter puts around a module."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, states):
        return 2 * self.inner(states)


def test_embeddings_in_a_wrapper_are_called(monkeypatch):
    """An adapter that trains tokens stands around the table."""
    model = build(**SIZES)
    table, kernels = model.get_decoder().embed_tokens, cpu_kernels.are_used()
    plain = scores(model, monkeypatch, kernels, max_new_tokens=3)
    model.get_decoder().embed_tokens = Wrapper(table)
    changed = scores(model, monkeypatch, kernels, max_new_tokens=3)
    with torch.no_grad():
        model.get_decoder().embed_tokens = torch.nn.Embedding.from_pretrained(2 * table.weight)
    expected = scores(model, monkeypatch, kernels, max_new_tokens=3)
    torch.testing.assert_close(changed, expected)
    assert not torch.allclose(plain[0], changed[0])


@pytest.mark.parametrize("room", [1, 3, 5])
@pytest.mark.parametrize("kernels", ["0", pytest.param("1", marks=needs_kernels)])
def test_greedy_search_takes_room_as_it_needs_it(int8_model, monkeypatch, kernels, room):
    """Also where the limit is beyond all memory."""
    monkeypatch.setenv("DOCMT_KERNELS", kernels)
    model = int8_model(init_std=0.5)
    settings = {"attention_mask": (SOURCE != PAD).long(), "eos_token_id": 9, "pad_token_id": PAD}
    model.final_logits_bias[0, EOS] = -1e9
    expected = model.generate(SOURCE, max_new_tokens=12, **settings)
    monkeypatch.setattr(search, "ROOM", room)
    assert torch.equal(model.generate(SOURCE, max_new_tokens=12, **settings), expected)
    stop = MaxLengthCriteria(13)
    assert torch.equal(model.generate(SOURCE, max_new_tokens=10**12, stopping_criteria=[stop], **settings), expected)


@needs_kernels
@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.bfloat16(),
        lambda model: model.lm_head.register_forward_hook(lambda *arguments: None),
        lambda model: model.get_decoder().layers[1].final_layer_norm.register_forward_hook(lambda *arguments: None),
        lambda model: setattr(model.get_decoder().layers[0], "self_attn_layer_norm", Wrapper(torch.nn.LayerNorm(32))),
    ],
)
def test_unknown_layers_run_without_kernels(change, monkeypatch, int8_model):
    model = build(**SIZES) if "bfloat16" in change.__code__.co_names else int8_model()
    change(model)
    with pytest.raises(RuntimeError, match="kernels were not used"):
        scores(model, monkeypatch, max_new_tokens=3)


def test_without_a_library(monkeypatch, int8_model):
    monkeypatch.setattr(cpu_kernels, "kernels", lambda: None)
    assert not cpu_kernels.are_used()
    scores(int8_model(), monkeypatch, kernels=False, max_new_tokens=3)


@needs_kernels
def test_a_long_translation_gets_more_room(int8_model, monkeypatch):
    model = int8_model(max_position_embeddings=400)
    settings = {"max_new_tokens": 200, "min_new_tokens": 200, "num_beams": 2}
    ours, plain = (scores(model, monkeypatch, kernels, **settings) for kernels in (True, False))
    difference = torch.stack(ours) - torch.stack(plain)
    assert difference[torch.stack(plain).isfinite()].abs().median() < 1e-4


class NoEnd(StoppingCriteria):
    """Ends nothing; unless it says so, every step is decided in Python."""

    calls = 0

    def __call__(self, input_ids, scores, **kwargs):
        self.calls += 1
        return torch.zeros(len(input_ids), dtype=torch.bool)


@needs_kernels
@pytest.mark.parametrize("beams, damage", [(1, None), (3, None), (1, 9)])
@pytest.mark.parametrize("place", [None, 2, 4, 9])
def test_several_steps_at_once(int8_model, monkeypatch, place, damage, beams):
    """Ends, at the token that is written at some place, and scores that are no numbers: as step by step in Python."""
    model = int8_model(position_type="learned", init_std=0.5)
    settings = {"max_new_tokens": 12, "num_beams": beams, "num_return_sequences": beams}
    settings |= {"attention_mask": (SOURCE != PAD).long()}
    model.final_logits_bias[0, EOS] = -1e9
    if place is not None:
        settings["eos_token_id"] = model.generate(SOURCE, **settings)[0, place].item()
    if damage is not None:
        model.final_logits_bias[0, damage] = float("nan")
    expected = model.generate(SOURCE, stopping_criteria=[NoEnd()], **settings)
    steps, run = [], DecodingStep.run
    monkeypatch.setattr(DecodingStep, "run", lambda step, states: steps.append(1) or run(step, states))
    monkeypatch.setattr(decoding_step, "STEPS", 2)
    callback = NoEnd()
    callback.ends_nothing = True
    for criteria in [], [callback]:
        assert torch.equal(model.generate(SOURCE, stopping_criteria=criteria, **settings), expected)
        assert bool(steps) == (damage is not None)
    assert callback.calls


@needs_kernels
@pytest.mark.parametrize(("is_recorded", "most", "count"), [(False, 256, 1), (True, 256, 0), (False, 1, 3)])
def test_encoders_without_their_layers(int8_model, monkeypatch, is_recorded, most, count):
    """Few calls in place of the layers in a scope, unless these have hooks, or what they give out is recorded."""
    monkeypatch.setattr(encoder, "CACHED_ROWS", most)
    stack, calls, run = int8_model().get_encoder(), [], encoder.run
    monkeypatch.setattr(encoder, "run", lambda *arguments: calls.append(run(*arguments)))
    inputs = {"input_ids": SOURCE, "attention_mask": (SOURCE != PAD).long()}
    with torch.no_grad():
        hook = stack.layers[0].register_forward_hook(lambda *arguments: None)
        with unchanged_weights(stack):
            expected = stack(**inputs).last_hidden_state
        hook.remove()
        stack(**inputs)
        assert not calls
        with unchanged_weights(stack):
            output = stack(**inputs, output_hidden_states=is_recorded)
    assert len(calls) == count and (output.hidden_states is None) == (not is_recorded)
    seen = inputs["attention_mask"].bool()
    torch.testing.assert_close(output.last_hidden_state[seen], expected[seen], atol=2e-2, rtol=1e-2)


needs_openmp = pytest.mark.skipif(not cpu_kernels.openmp_functions(), reason="torch has no OpenMP that GCC could call")


@pytest.fixture
def shared_work():
    """How many threads each piece of work was shared by, of those that were shared."""
    library, counts = cpu_kernels.kernels(), []
    functions = cpu_kernels.openmp_functions()
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    parallel = kind(functions[0])
    counted = kind(lambda work, context, count, flags: (counts.append(count), parallel(work, context, count, flags)))
    library.docmt_openmp((ctypes.c_void_p * 4)(ctypes.cast(counted, ctypes.c_void_p).value, *functions[1:]))
    before = torch.get_num_threads()
    yield counts
    torch.set_num_threads(before)
    library.docmt_openmp((ctypes.c_void_p * 4)(*functions))


LARGE = {"vocab_size": 12_000, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096}  # enough for three threads to share


@needs_kernels
@needs_openmp
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize(
    "architecture, fields",
    [
        ("concat", LARGE),
        ("concat", LARGE | {"decoder_autoregression": "ssru"}),
        ("caching", LARGE),
        ("gtransformer", LARGE),
        ("lst", LARGE),
    ],
)
def test_any_number_of_threads_gives_the_same_scores(int8_model, shared_work, architecture, fields, precision, beams):
    """Bit for bit, in encoder, prompts, steps and the choice of the best tokens."""
    model = int8_model(architecture, **fields) if precision == "int8" else build(architecture, **SIZES | fields)
    source = torch.randint(6, 12_000, (21, 3))
    if source.numel() > cpu_kernels.most_rows(32, precision == "fp32"):
        pytest.skip("torch computes these products, of which threads change the rounding")
    source[1::2, -2:] = torch.tensor([EOS, PAD])
    prompt = torch.randint(6, 12_000, (21, 3)).index_fill(1, torch.tensor([0]), model.config.decoder_start_token_id)
    inputs = {"attention_mask": (source != PAD).long(), "decoder_input_ids": prompt}
    found = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        kept = KeptScores()
        kept.passes_finite = True  # so that one call does several steps
        output = model.generate(source, num_beams=beams, max_new_tokens=6, logits_processor=[kept], **inputs)
        found.append((output, *kept.copies))
        assert {*shared_work} == {*range(2, threads + 1)}
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert torch.equal(one, other)


@needs_kernels
@needs_openmp
@pytest.mark.filterwarnings("ignore:This process")  # fork beside threads
def test_a_forked_process_works_alone(shared_work):
    """It has none of the threads that OpenMP had, and would wait for them."""
    layer, states = torch.nn.Linear(256, 256), torch.randn(40, 256)
    weights = in_blocks(layer.weight.detach()), None, whole_blocks(layer.bias.detach())
    torch.set_num_threads(2)
    expected = tensor_kernels.kernel_product(states, *weights, 256)
    assert shared_work == [2]
    if not (child := os.fork()):
        signal.alarm(30)
        os._exit(0 if torch.equal(tensor_kernels.kernel_product(states, *weights, 256), expected) else 1)
    assert os.waitpid(child, 0) == (child, 0)


FUZZ = ["-I", str(ROOT / "hf_docmt" / "engine"), str(Path(__file__).with_name("kernel_fuzz.c")), "-pthread"]


@pytest.mark.skipif(not all(map(shutil.which, ("gcc", ARM_GCC, ARM))), reason="needs a cross compiler and qemu")
def test_aarch64_computes_the_same(tmp_path):
    """Under an emulator, with and without dot products: sums of int8 exactly, the rest as float32 rounds."""
    outputs = []
    for compiler, *emulator in [("gcc",), (ARM_GCC, ARM, "-cpu", "max"), (ARM_GCC, ARM, "-cpu", "cortex-a53")]:
        program, file = tmp_path / compiler, tmp_path / str(len(outputs))
        if not program.exists():
            subprocess.run([compiler, "-O3", "-static", *FUZZ, "-o", program, "-lm"], check=True)
        ran = subprocess.run([*emulator, program, "30", file], capture_output=True, text=True)
        assert ran.stdout.strip() == "done", ran
        outputs.append(torch.from_file(str(file), size=file.stat().st_size // 4))
        torch.testing.assert_close(outputs[-1], outputs[0], atol=1e-4, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
@pytest.mark.parametrize(("sanitizers", "rounds"), [("address,undefined", 10_000), ("thread", 1000)])
def test_no_address_is_wrong(tmp_path, sanitizers, rounds):
    """Random shapes in buffers of exact sizes, and as by one thread by several, of which no two write to one place."""
    program = tmp_path / "fuzz"
    checks = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-g"]
    built = subprocess.run(["gcc", *checks, *FUZZ, "-o", str(program), "-lm"], capture_output=True, text=True)
    if "cannot find" in built.stderr:
        pytest.skip("gcc has no sanitizers here")
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([str(program), str(rounds)], capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stdout.strip() in ("done", "unsupported"), ran.stderr


@pytest.mark.parametrize(("asked", "threads"), [("3", 3), ("2,1", 2), (None, os.cpu_count())])
def test_threads_without_torch(monkeypatch, asked, threads):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert cpu_kernels.threads() == torch.get_num_threads()
    monkeypatch.delitem(cpu_kernels.sys.modules, "torch")
    found = cpu_kernels.threads()
    assert found == threads if asked else 1 <= found <= threads
