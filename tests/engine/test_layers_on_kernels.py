"""Attention to the own sentence, to groups, windows, context and a memory on the primitives, against modules."""

import pytest
import torch
from support.battery import KeptScores
from support.int8_models import Written, plain_int8_model
from support.tiny_models import EOS, PAD, SEP
from transformers.modeling_outputs import BaseModelOutput

from hf_docmt.engine import cpu_kernels, encoder
from hf_docmt.engine.decoding_step import DecodingStep, known_program

SOURCE = torch.tensor(
    [
        [7, 9, SEP, 8, 12, 19, SEP, 6, 6, 11, EOS],
        [6, 13, 22, 9, SEP, 8, EOS, PAD, PAD, PAD, PAD],
        [14, 7, 21, 7, 10, 9, 8, EOS, PAD, PAD, PAD],
    ]
)
MASK = (SOURCE != PAD).long()
PROMPT = torch.tensor([[2, 9, SEP, 11], [PAD, 2, 7, SEP], [PAD, PAD, 2, 9]])
TARGET = torch.tensor(
    [[8, 7, SEP, 9, 10, 22, SEP, 13, 9], [SEP, 6, 6, 8, 9, 11, 12, 13, 14], [6, 9, 8, SEP, SEP, 7, 20, 19, 18]]
)
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
SHORT_SOURCE = torch.tensor([[7, 9, 8, 12, EOS], [6, EOS, PAD, PAD, PAD], [14, 7, 21, EOS, PAD]])
SHORT = {  # where the context matters more
    "SOURCE": SHORT_SOURCE,
    "MASK": (SHORT_SOURCE != PAD).long(),
    "PROMPT": torch.tensor([[2, 9, 11], [PAD, 2, 7], [PAD, PAD, 2]]),
    "TARGET": torch.tensor([[8, 7, 9, 10, 22, 13, 9], [6, 6, 8, 9, 11, 12, 13], [6, 9, 8, 7, 20, 19, 18]]),
}
FIELDS = {"past_context": 2}
WINDOW = FIELDS | {"window": 2}
WITH_LIMITS = {
    "lst": ("lst", FIELDS),
    "lst, norm before": ("lst", FIELDS | {"normalize_before": True}),
    "gtransformer": ("gtransformer", FIELDS | {"global_layers": 1}),
    "gtransformer, positions, norm before": (
        "gtransformer",
        FIELDS | {"global_layers": 1, "restarts_positions": True, "normalize_before": True},
    ),
    "gtransformer, all layers": ("gtransformer", FIELDS | {"global_layers": 2}),
    "gtransformer, apart": ("gtransformer", FIELDS | {"global_layers_decoder": 0, "global_layers_cross": 1}),
    "groups alone": ("gtransformer", FIELDS | {"global_layers": 0}),
    "window": ("window", WINDOW),
    "window, at the input": ("window", WINDOW | {"position": "absolute", "alignment": "one_to_one"}),
    "window, linear": ("window", WINDOW | {"alignment": "linear", "length_ratio": 1.4, "normalize_before": True}),
}
WITH_CONTEXT = {
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
    """Makes models by their names; of those with context the texts are short."""

    def make(name):
        for text in () if name in WITH_LIMITS else SHORT:
            monkeypatch.setitem(globals(), text, SHORT[text])
        return plain_int8_model(monkeypatch, *(WITH_LIMITS | WITH_CONTEXT | CALLED)[name])

    return make


def given_to(model) -> dict:
    """Context of three sentences, or a memory of two of them, while the third begins a document."""
    if model.config.model_type != "docmt-memory":
        return CONTEXT if "context_input_ids" in model.context_arguments else {}
    stacks = {"encoder_memory": model.get_encoder(), "decoder_memory": model.get_decoder()}
    generator = torch.Generator().manual_seed(3)
    memory = {
        name: torch.randn(3, *stack.initial_memory.weight.shape, generator=generator) for name, stack in stacks.items()
    }
    return memory | {"document_start": torch.tensor([False, False, True])}


def scores_of(model, with_prompt: bool = False, beams: int = 1, given: dict | None = None) -> torch.Tensor:
    """Scores of every step in which the target is written, (steps, rows, V)."""
    kept, prompt = KeptScores(), {}
    if with_prompt:
        prompt = {"decoder_input_ids": PROMPT, "decoder_attention_mask": (PROMPT != PAD).long()}
    settings = {"num_beams": beams, "max_new_tokens": TARGET.shape[1], "attention_mask": MASK} | prompt | (given or {})
    model.generate(SOURCE, logits_processor=[kept, Written(TARGET, PROMPT.shape[1] if with_prompt else 1)], **settings)
    return torch.stack(kept.copies)


@needs_kernels
@pytest.mark.parametrize(("beams", "with_prompt"), [(1, True), (2, False), (2, True)])
@pytest.mark.parametrize("name", WITH_LIMITS | WITH_CONTEXT | CALLED)
def test_scores_are_those_of_the_modules(int8_model, monkeypatch, name, with_prompt, beams):
    model = int8_model(name)
    given, without, program = given_to(model), dict.fromkeys(model.context_arguments), known_program(model)
    assert program.has_limits == (name in WITH_LIMITS)
    assert name in WITH_LIMITS or (len(program.parts) == 1) == (name in WITH_CONTEXT)
    found = {}
    for kernels in "10":
        monkeypatch.setenv("DOCMT_KERNELS", kernels)
        for case, inputs in (("given", given), ("without", without)) if given else (("given", given),):
            found[case, kernels] = scores_of(model, with_prompt, beams, inputs)
    ours, plain = found["given", "1"], found["given", "0"]
    # where rounding of float32 makes a state another integer, all that follows differs by some steps of int8
    assert (ours - plain).abs().median() < 1e-5 and (ours - plain).abs().mean() < 2e-2 * plain.std()
    if given:
        assert (found["without", "0"] - plain)[:, 0].abs().mean() > 2e-2 * plain.std()  # the context matters
        assert (found["without", "1"] - found["without", "0"]).abs().median() < 1e-5


@needs_kernels
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", WITH_LIMITS | WITH_CONTEXT)
def test_many_steps_in_one_call_are_single_steps(int8_model, monkeypatch, name, beams):
    """Behind separators in the prompt and written ones, where other beams go on, and without a look at the context."""
    model, steps, run, written = int8_model(name), [], DecodingStep.run, set()
    model.final_logits_bias[0, [EOS, PAD]] = -1e9
    monkeypatch.setattr(DecodingStep, "run", lambda self, states: steps.append(1) or run(self, states))
    count = 24 if name in WITH_LIMITS else 8
    settings = {"attention_mask": MASK, "num_beams": beams, "max_new_tokens": count} | given_to(model)
    settings |= {"decoder_input_ids": PROMPT, "decoder_attention_mask": (PROMPT != PAD).long()}
    for bias in range(0, 24, 3) if name in WITH_LIMITS else (0,):
        model.final_logits_bias[0, SEP] = bias
        steps.clear()
        at_once = model.generate(SOURCE, **settings)
        assert not steps or beams > 1  # which may tie: then it is single steps, too
        assert torch.equal(at_once, model.generate(SOURCE, logits_processor=[KeptScores()], **settings))
        assert len(steps) >= count  # `forward` does not read the prompt, either
        written.update((at_once[:, PROMPT.shape[1] :] == SEP).sum(dim=1).tolist())
    assert name in WITH_CONTEXT or len(written) > 1


@needs_kernels
@pytest.mark.parametrize("name", ["caching", "multiencoder", "doct", "a large memory"])
def test_more_context_than_source_and_target(int8_model, monkeypatch, name):
    """There is room for it, too."""
    monkeypatch.setitem(WITH_CONTEXT, "a large memory", ("memory", {"memory_size": 300}))
    model = int8_model(name)
    ids = IDS.repeat(1, 1, 100)
    given = {"context_input_ids": ids, "context_attention_mask": (ids != PAD).long()}
    given = CONTEXT | given if "memory" not in name else given_to(model)
    ours = scores_of(model, False, 1, given)
    monkeypatch.setenv("DOCMT_KERNELS", "0")
    assert (ours - scores_of(model, False, 1, given)).abs().median() < 1e-5


@needs_kernels
@pytest.mark.parametrize(
    "change", ["attention", "heads", "layer inputs", "positions", "sentences", "generation", "hook", "relative"]
)
def test_overridden_methods_are_called(int8_model, monkeypatch, change):
    """Attention, a decoder or a model with methods of its own, of which `step_limits` say nothing."""
    model = int8_model("window" if change == "relative" else "gtransformer")
    decoder, attention = model.get_decoder(), model.get_decoder().layers[1].self_attn
    module, name = {
        "attention": (attention, "forward"),
        "heads": (attention, "read_self"),
        "layer inputs": (decoder, "layer_inputs"),
        "positions": (decoder, "position_encoding"),
        "sentences": (model.model, "target_sentences"),
        "generation": (model, "decoder_inputs_for_generation"),
        "hook": (attention, None),
        "relative": (getattr(attention, "relative", None), None),
    }[change]
    if name is None:
        module.register_forward_hook(lambda *arguments: None)
    else:
        old = type(module)
        own = {name: lambda self, *args, **kwargs: getattr(old, name)(self, *args, **kwargs)}
        module.__class__ = type("Later", (old,), own)
    program = known_program(model)
    assert program is None or not program.has_limits
    assert len(model.generate(SOURCE, attention_mask=MASK, max_new_tokens=3)) == 3


@needs_kernels
def test_outputs_of_another_encoder_and_a_missing_ratio_are_refused(int8_model):
    """As by the modules, and before anything is written."""
    for name, missing in (("window", "source_borders"), ("gtransformer", "source_groups")):
        model = int8_model(name)
        outputs = BaseModelOutput(model.get_encoder()(SOURCE, attention_mask=MASK).last_hidden_state)
        with pytest.raises(ValueError, match=f"must come from this model's encoder: {missing} is missing"):
            model.generate(encoder_outputs=outputs, attention_mask=MASK, max_new_tokens=3)
    model = int8_model("window, linear")
    model.config.length_ratio = None
    with pytest.raises(ValueError, match="length_ratio is not set"):
        model.generate(SOURCE, attention_mask=MASK, max_new_tokens=3)


@needs_kernels
def test_sources_without_a_group_are_read_whole(int8_model, monkeypatch):
    """Behind more separators than the source has, and of no separator at all."""
    model, source = int8_model("gtransformer"), SOURCE[2:, :8]
    monkeypatch.setitem(globals(), "SOURCE", source.expand(3, -1))
    monkeypatch.setitem(globals(), "MASK", torch.ones(3, 8, dtype=torch.long))
    ours = scores_of(model, False)
    monkeypatch.setenv("DOCMT_KERNELS", "0")
    assert (ours - scores_of(model, False)).abs().median() < 1e-5


@needs_kernels
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", WITH_LIMITS)
def test_encoders_without_their_layers(int8_model, monkeypatch, name, side):
    """But those with relative positions; states of padding are whatever they are."""
    model, calls, run = int8_model(name), [], encoder.run
    monkeypatch.setattr(encoder, "run", lambda *arguments: calls.append(run(*arguments)))
    ids = SOURCE if side == "right" else torch.stack([row.roll(int((row == PAD).sum())) for row in SOURCE])
    mask = (ids != PAD).long()
    with torch.no_grad(), model.unchanged_weights():
        ours = model.get_encoder()(ids, attention_mask=mask).last_hidden_state
        assert len(calls) == (name not in ("window", "window, linear"))
        monkeypatch.setenv("DOCMT_KERNELS", "0")
        plain = model.get_encoder()(ids, attention_mask=mask).last_hidden_state
    difference = (ours - plain)[mask.bool()].abs()
    assert difference.median() < 1e-5 and difference.mean() < 2e-2 * plain.std()


@needs_kernels
@pytest.mark.parametrize("normalize_before", [False, True])
@pytest.mark.parametrize("name", ["caching", "routing"])
def test_context_is_encoded_without_its_layers(monkeypatch, name, normalize_before):
    """Of caching with those of the sentence, of routing one after the other."""
    model, calls = plain_int8_model(monkeypatch, name, FIELDS | {"normalize_before": normalize_before}), []
    run, inputs = encoder.run, CONTEXT | {"attention_mask": MASK}
    monkeypatch.setattr(encoder, "run", lambda *arguments: calls.append(run(*arguments)))
    with torch.no_grad(), model.unchanged_weights():
        ours = model.get_encoder()(SOURCE, **inputs)
        assert len(calls) == 2
        monkeypatch.setenv("DOCMT_KERNELS", "0")
        plain = model.get_encoder()(SOURCE, **inputs)
    states = (
        each.last_hidden_state[MASK.bool()] if name == "routing" else each.context_states for each in (ours, plain)
    )
    difference = torch.sub(*states).abs()
    assert difference.median() < 1e-5 and difference.mean() < 2e-2


@needs_kernels
@pytest.mark.parametrize("name", ["gtransformer", "window"])
def test_the_mask_of_other_tokens_than_the_encoder_saw(int8_model, monkeypatch, name):
    """Borders are then those of the modules, not of what the mask shows."""
    model = int8_model(name)
    outputs = model.get_encoder()(SOURCE.repeat(1, 30)).copy()  # of which most are hidden behind it
    mask = torch.nn.functional.pad(MASK, (0, 29 * SOURCE.shape[1]))
    settings = {"attention_mask": mask, "max_new_tokens": 5, "num_beams": 2}
    ours = model.generate(encoder_outputs=outputs.copy(), **settings)
    monkeypatch.setenv("DOCMT_KERNELS", "0")
    assert torch.equal(ours, model.generate(encoder_outputs=outputs.copy(), **settings))


@needs_kernels
def test_windows_without_separators(int8_model, monkeypatch):
    """Which only windows by position can be."""
    model = int8_model("window, at the input")
    model.config.sep_token_id = None
    ours = scores_of(model, False)
    monkeypatch.setenv("DOCMT_KERNELS", "0")
    assert (ours - scores_of(model, False)).abs().median() < 1e-5


@needs_kernels
@pytest.mark.parametrize("name", ["lst", "gtransformer", "window"])
def test_separators_in_front_of_a_prompt(int8_model, monkeypatch, name):
    """They count where they are masked, too."""
    monkeypatch.setitem(globals(), "PROMPT", PROMPT.masked_fill(PROMPT == PAD, SEP))
    hidden = torch.tensor([[1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]])
    model, found = int8_model(name), []
    for kernels in ("1", "0"):
        monkeypatch.setenv("DOCMT_KERNELS", kernels)
        kept = KeptScores()
        settings = {"decoder_input_ids": PROMPT, "decoder_attention_mask": hidden, "attention_mask": MASK}
        written = [kept, Written(TARGET, PROMPT.shape[1])]
        model.generate(SOURCE, logits_processor=written, max_new_tokens=TARGET.shape[1], **settings)
        found.append(torch.stack(kept.copies))
    assert (found[0] - found[1]).abs().median() < 1e-5


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
