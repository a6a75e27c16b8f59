"""Attention to context and to a memory on the compiled primitives, against the modules."""

import pytest
import torch
from support.battery import KeptScores
from support.int8_models import Written, plain_int8_model
from support.tiny_models import EOS, PAD

from hf_docmt.engine import cpu_kernels
from hf_docmt.engine.decoding_step import DecodingStep, known_program

SOURCE = torch.tensor([[7, 9, 8, 12, EOS], [6, EOS, PAD, PAD, PAD], [14, 7, 21, EOS, PAD]])
MASK = (SOURCE != PAD).long()
IDS = torch.tensor(
    [
        [[8, 9, 10, EOS], [11, EOS, PAD, PAD]],
        [[PAD] * 4, [PAD] * 4],  # nothing before
        [[PAD] * 4, [13, 22, EOS, PAD]],
    ]
)
CONTEXT = {
    "context_input_ids": IDS,
    "context_attention_mask": (IDS != PAD).long(),
    "context_offsets": torch.tensor([[-2, -1]] * 3),
}
PROMPT = torch.tensor([[2, 9, 11], [PAD, 2, 7], [PAD, PAD, 2]])
TARGET = torch.tensor([[8, 7, 9, 10, 22, 13, 9], [6, 6, 8, 9, 11, 12, 13], [6, 9, 8, 7, 20, 19, 18]])
FIELDS = {"past_context": 2}
MODELS = {
    "caching": ("caching", FIELDS),
    "caching, norm before": ("caching", FIELDS | {"normalize_before": True}),
    "caching, averages": ("caching", FIELDS | {"shortening": "avg"}),
    "caching, concatenate": ("caching", FIELDS | {"integration": "concatenate"}),
    "multiencoder": ("multiencoder", FIELDS | {"integration": "sequential"}),
    "multiencoder, concatenate": ("multiencoder", FIELDS | {"integration": "concatenate"}),
    "routing": ("routing", {"past_context": 2, "future_context": 0}),
    "doct": ("doct", FIELDS),
    "doct, norm before": ("doct", FIELDS | {"normalize_before": True}),
    "memory": ("memory", {}),
    "memory, norm before": ("memory", {"normalize_before": True}),
}
CALLED = {  # some blocks of these are
    "gate": ("caching", FIELDS | {"context_gate": True}),
    "gelu": ("caching", FIELDS | {"activation_function": "gelu"}),
    "parallel": ("caching", FIELDS | {"integration": "parallel"}),
    "doct, selection": ("doct", FIELDS | {"selection": "routing"}),
    "no residual": ("memory", {"memory_residual": "none"}),
}
needs_kernels = pytest.mark.skipif(cpu_kernels.kernels() is None, reason="the kernels were not built, or need AVX2")


@pytest.fixture
def int8_model(monkeypatch):
    """Makes models by their names."""
    return lambda name: plain_int8_model(monkeypatch, *(MODELS | CALLED)[name])


def given_to(model) -> dict:
    """Context of three sentences, or a memory of two of them, while the third begins a document."""
    if model.config.model_type != "docmt-memory":
        return CONTEXT
    stacks = {"encoder_memory": model.get_encoder(), "decoder_memory": model.get_decoder()}
    generator = torch.Generator().manual_seed(3)
    memory = {
        name: torch.randn(3, *stack.initial_memory.weight.shape, generator=generator) for name, stack in stacks.items()
    }
    return memory | {"document_start": torch.tensor([False, False, True])}


def scores_of(model, with_prompt: bool, beams: int, given: dict) -> torch.Tensor:
    """Scores of every step in which the target is written, (steps, rows, V)."""
    kept, prompt = KeptScores(), {}
    if with_prompt:
        prompt = {"decoder_input_ids": PROMPT, "decoder_attention_mask": (PROMPT != PAD).long()}
    settings = {"num_beams": beams, "max_new_tokens": TARGET.shape[1], "attention_mask": MASK} | prompt | given
    model.generate(SOURCE, logits_processor=[kept, Written(TARGET, PROMPT.shape[1] if with_prompt else 1)], **settings)
    return torch.stack(kept.copies)


@needs_kernels
@pytest.mark.parametrize("beams", [1, 2])
@pytest.mark.parametrize("with_prompt", [False, True])
@pytest.mark.parametrize("name", MODELS | CALLED)
def test_scores_are_those_of_the_modules(int8_model, monkeypatch, name, with_prompt, beams):
    model = int8_model(name)
    given = given_to(model)
    is_whole = len(known_program(model).parts) == 1
    assert is_whole == (name in MODELS)
    ours = scores_of(model, with_prompt, beams, given)
    monkeypatch.setenv("DOCMT_KERNELS", "0")
    plain = scores_of(model, with_prompt, beams, given)
    difference = (ours - plain).abs()
    # where rounding of float32 makes a state another integer, all that follows differs by some steps of int8
    assert difference.median() < 1e-5 and difference.mean() < 2e-2 * plain.std()
    without = dict.fromkeys(model.context_arguments)
    plain_without = scores_of(model, with_prompt, beams, without)
    assert (plain_without - plain)[:, 0].abs().mean() > 2e-2 * plain.std()  # the context matters
    monkeypatch.setenv("DOCMT_KERNELS", "1")
    assert (scores_of(model, with_prompt, beams, without) - plain_without).abs().median() < 1e-5


@needs_kernels
@pytest.mark.parametrize("name", ["caching", "multiencoder", "doct", "a large memory"])
def test_more_context_than_source_and_target(int8_model, monkeypatch, name):
    """There is room for it, too."""
    monkeypatch.setitem(MODELS, "a large memory", ("memory", {"memory_size": 300}))
    model = int8_model(name)
    ids = IDS.repeat(1, 1, 100)
    given = {"context_input_ids": ids, "context_attention_mask": (ids != PAD).long()}
    given = CONTEXT | given if "memory" not in name else given_to(model)
    ours = scores_of(model, False, 1, given)
    monkeypatch.setenv("DOCMT_KERNELS", "0")
    assert (ours - scores_of(model, False, 1, given)).abs().median() < 1e-5


@needs_kernels
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_many_steps_in_one_call_are_single_steps(int8_model, monkeypatch, name, beams):
    """Without a look at context inputs in between."""
    model, steps, run = int8_model(name), [], DecodingStep.run
    model.final_logits_bias[0, [EOS, PAD]] = -1e9
    monkeypatch.setattr(DecodingStep, "run", lambda self, states: steps.append(1) or run(self, states))
    settings = {"attention_mask": MASK, "num_beams": beams, "max_new_tokens": 12} | given_to(model)
    at_once = model.generate(SOURCE, **settings)
    assert len(steps) == (beams > 1)  # the first one of beams
    assert torch.equal(at_once, model.generate(SOURCE, logits_processor=[KeptScores()], **settings))
    assert len(steps) == (beams > 1) + 12


@needs_kernels
def test_a_later_class_is_called(int8_model):
    """A block, or attention inside of it, with a method of its own."""
    model = int8_model("caching")
    context = model.get_decoder().layers[0].context
    for module, name in ((context, "forward"), (context.attn, "heads_output")):
        old, own = type(module), {}
        own[name] = lambda self, *args, old=old, name=name, **kwargs: getattr(old, name)(self, *args, **kwargs)
        module.__class__ = type("Later", (old,), own)
        assert len(known_program(model).parts) > 1
        module.__class__ = old
    assert len(known_program(model).parts) == 1
