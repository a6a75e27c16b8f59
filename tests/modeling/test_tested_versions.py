"""On a version of transformers that nobody tested, a model checks itself before it gives out anything."""

from pathlib import Path

import pytest
import torch
from support.lower_bounds import lower_bounds
from support.tiny_models import build, word_tokenizer
from transformers.cache_utils import Cache, DynamicLayer

from hf_docmt.engine.cache import BeamLayer
from hf_docmt.loading import model_card
from hf_docmt.modeling import generation_mixin

ROOT = Path(__file__).resolve().parents[2]
CASES = [
    ("concat", {"past_context": 1}),
    ("window", {"past_context": 1, "window": 2, "alignment": "sentence"}),
    ("caching", {"past_context": 1}),
    ("memory", {}),
]
CALLS = {
    "generate": lambda model: model.generate(torch.tensor([[7, 8, 3]]), max_new_tokens=4),
    "translate_documents": lambda model: model.translate_documents([["w7 w8"]], word_tokenizer(), max_new_tokens=4),
}


CALLED = [(*case, call) for case in CASES for call in CALLS]


@pytest.fixture
def newer(monkeypatch):
    monkeypatch.setattr(generation_mixin, "VERSION", "99.1.0")


@pytest.fixture
def warnings(monkeypatch):
    found = []
    monkeypatch.setattr(generation_mixin.logger, "warning_once", found.append)
    return found


@pytest.mark.parametrize(("architecture", "fields", "call"), CALLED)
def test_a_model_that_works(architecture, fields, call, monkeypatch, warnings):
    """The same result, and one warning for the model."""
    model = build(architecture, **fields)
    expected = CALLS[call](model)
    assert not warnings
    monkeypatch.setattr(generation_mixin, "VERSION", "99.1.0")
    for _ in range(2):
        found = CALLS[call](model)
        assert torch.equal(found, expected) if call == "generate" else found == expected
    assert len(warnings) == 1 and "transformers 99.1.0" in warnings[0]


@pytest.mark.parametrize("kind", ["theirs", "ours"])
@pytest.mark.parametrize(("architecture", "fields", "call"), CALLED)
def test_a_broken_cache(architecture, fields, call, kind, newer, warnings, monkeypatch):
    """A cache that forgets what it is given, transformers' or ours: no result."""
    model = build(architecture, **fields)
    broken = {"theirs": DynamicLayer, "ours": BeamLayer}[kind]
    update = broken.update

    def forget(self, keys, values, *args, **kwargs):
        return (keys, values) if type(self) is broken and keys.shape[2] == 1 else update(self, keys, values, *args)

    monkeypatch.setattr(broken, "update", forget)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="does not work with transformers 99.1.0 .* It works with"):
            CALLS[call](model)
    assert not warnings


@pytest.mark.parametrize(("architecture", "fields"), CASES[:2])
def test_a_cache_that_beams_do_not_reorder(architecture, fields, newer, monkeypatch):
    """Beams that go on from another one's keys."""
    monkeypatch.setattr(Cache, "reorder_cache", lambda self, beam_idx: None)
    refused = 0
    for seed in range(4):  # beams of some models stay in their rows
        try:
            build(architecture, seed=seed, **fields).generate(torch.tensor([[7, 8, 3]]), num_beams=3, max_new_tokens=4)
        except RuntimeError as error:
            refused += "does not work with transformers 99.1.0" in str(error)
    assert refused


@pytest.mark.parametrize("settings", [{"num_return_sequences": 2, "num_beams": 4}, {"stop_strings": ["a"]}], ids=str)
def test_settings_of_the_model_do_not_matter(settings, newer, warnings):
    """The check has settings of its own, and leaves the model's as they are."""
    model = build()
    for name, value in settings.items():
        setattr(model.generation_config, name, value)
    own = model.generation_config
    generation_mixin.check_untested_version(model)
    assert len(warnings) == 1 and model.generation_config is own


@pytest.mark.parametrize("call", CALLS)
def test_an_error_of_the_newer_version(call, newer, monkeypatch):
    model = build()
    monkeypatch.setattr(type(model.model), "forward", lambda *args, **kwargs: {}["cache"])
    with pytest.raises(RuntimeError, match="KeyError: 'cache'"):
        CALLS[call](model)


def test_a_model_in_training_mode_and_half_precision(newer, warnings):
    """No dropout in the check, which leaves mode and random numbers as they are."""
    model = build(dropout=0.5).bfloat16().train()
    state = torch.get_rng_state()
    generation_mixin.check_untested_version(model)
    assert model.training and torch.equal(torch.get_rng_state(), state) and len(warnings) == 1


def test_streams(newer, monkeypatch):
    model = build("memory")
    monkeypatch.setattr(generation_mixin, "decodes_as_it_computes", lambda model: False)
    with pytest.raises(RuntimeError, match="scores with the cache are not those without"):
        next(model.translate_stream(["w7"], word_tokenizer()))


def test_known_versions():
    assert generation_mixin.numbers("5.23.0") == generation_mixin.numbers("5.23.1.dev0") == (5, 23)
    assert generation_mixin.numbers("5.9.0") < generation_mixin.numbers("5.10.0")


def test_tested_versions_in_words(monkeypatch):
    monkeypatch.setattr(model_card, "TORCH", ("2.13", "2.13"))
    monkeypatch.setattr(model_card, "TRANSFORMERS", ("5.23", "5.24"))
    assert model_card.version_ranges() == "torch 2.13 and transformers 5.23 to 5.24"


def test_tested_versions_are_those_of_the_package():
    """The lowest are its lower bounds, the pins lie within, and no transformers above the newest is installed."""
    bounds = dict(line.split("==") for line in lower_bounds(str(ROOT / "setup.cfg")))
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    for name, tested in (("torch", generation_mixin.TORCH), ("transformers", generation_mixin.TRANSFORMERS)):
        assert tested[0] == bounds[name]
        lowest, newest = map(generation_mixin.numbers, tested)
        assert lowest <= generation_mixin.numbers(pins[name]) <= newest
    major, minor = generation_mixin.numbers(generation_mixin.TRANSFORMERS[1])
    assert f"\n    transformers>={bounds['transformers']},<{major}.{minor + 1}\n" in (ROOT / "setup.cfg").read_text()
