"""Beam search gives what transformers' own gives, token by token."""

import pytest
import torch
from support.tiny_models import EOS, PAD, SEP, build
from transformers import GenerationMixin, LogitsProcessor

from hf_docmt.modeling import beam_search
from hf_docmt.modeling.beam_search import best_continuations, best_tokens
from hf_docmt.modeling.shared_source_generation import SharedSourceGeneration

VOCABULARY = 2100  # not a multiple of the size of a block


@pytest.fixture(scope="module")
def model():
    model = build(vocab_size=VOCABULARY)
    for parameter in model.parameters():
        parameter.data.mul_(3)  # so that translations differ from each other
    return model


# The search


class Keep(LogitsProcessor):
    """Keeps the scores of every step, and copies of them."""

    def __init__(self):
        self.scores, self.copies = [], []

    def __call__(self, input_ids, scores):
        self.scores.append(scores)
        self.copies.append(scores.clone())
        return scores


def test_scores_that_a_processor_keeps(model):
    keep = Keep()
    model.generate(torch.full((1, 4), 9), num_beams=2, max_new_tokens=4, logits_processor=[keep])
    assert len(keep.scores) > 1
    assert all(map(torch.equal, keep.scores, keep.copies))


def test_low_memory_is_refused(model):
    with pytest.raises(ValueError, match="low_memory=True"):
        model.generate(torch.full((1, 4), 9), num_beams=2, max_new_tokens=4, low_memory=True)


@pytest.mark.parametrize(
    "settings",
    [
        {"num_beams": 3},
        {"num_beams": 2, "num_return_sequences": 2, "length_penalty": 2.0},
        {"num_beams": 3, "early_stopping": True, "no_repeat_ngram_size": 2},
        {"num_beams": 3, "early_stopping": "never", "length_penalty": -1.0},
        {"num_beams": 2, "use_cache": False, "repetition_penalty": 1.3},
        {"num_beams": 3, "prefix_allowed_tokens_fn": lambda row, ids: [9, 11] if len(ids) < 3 else [12, 13, 14]},
    ],
    ids=", ".join,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_as_transformers(model, settings, dtype, monkeypatch):
    """A row with padding, a prompt; in bf16 logits are equal now and then."""
    source = torch.randint(SEP, VOCABULARY, (5, 7), generator=torch.Generator().manual_seed(2))
    mask = torch.ones_like(source)
    mask[3, 4:] = 0
    prompt = torch.cat([torch.full((5, 1), 2), source[:, 1:3]], dim=1)
    settings = {"max_new_tokens": 9, "do_sample": False, "eos_token_id": [EOS, 268, 960], **settings}
    inputs = {"input_ids": source, "attention_mask": mask, "decoder_input_ids": prompt}
    steps = []
    monkeypatch.setattr(beam_search, "best_tokens", lambda *a: steps.append(a) or best_tokens(*a))
    model = model.to(dtype)
    found = model.generate(**inputs, **settings)
    monkeypatch.setattr(SharedSourceGeneration, "_beam_search", GenerationMixin._beam_search)
    assert steps
    assert torch.equal(found, model.generate(**inputs, **settings))
    model.to(torch.float32)


@pytest.mark.parametrize("settings", [{"do_sample": True}, {"return_dict_in_generate": True, "output_scores": True}])
def test_left_to_transformers(model, settings, monkeypatch):
    """Sampling, and outputs besides the translations."""
    monkeypatch.setattr(beam_search, "best_continuations", None)
    torch.manual_seed(3)
    found = model.generate(torch.tensor([[7, 8, EOS]]), num_beams=2, max_new_tokens=3, pad_token_id=PAD, **settings)
    assert "do_sample" in settings or len(found.scores) == 3


# The selection


@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("special", ["none", "ties", "few", "nan", "infinite"])
def test_best_continuations(count, special):
    """Values and indices of torch.topk over all, equal values and what is no number included."""
    log_probs = torch.randn(6, VOCABULARY).log_softmax(-1)
    if special == "ties":
        log_probs = (log_probs * 4).round() / 4
    if special == "few":
        log_probs[1:4, 3:] = -torch.inf
    if special == "nan":
        log_probs[2] = torch.nan
        log_probs[5, 2090] = torch.nan
    if special == "infinite":
        log_probs[:] = -torch.inf
    scores = torch.randn(3, 2)
    expected = (log_probs.view(3, 2, -1) + scores[..., None]).flatten(1).topk(count)
    values, indices = best_continuations(log_probs, scores, count)
    torch.testing.assert_close(values, expected.values, atol=0, rtol=0, equal_nan=True)
    assert torch.equal(indices, expected.indices)


def test_values_that_the_sum_makes_equal():
    """Different log-probabilities, equal with the score of their beam."""
    log_probs = -torch.rand(4, VOCABULARY) / 1e3
    scores = torch.tensor([[-1000.0, -1000.0], [0.0, -1e9]])
    expected = (log_probs.view(2, 2, -1) + scores[..., None]).flatten(1).topk(4)
    values, indices = best_continuations(log_probs, scores, 4)
    assert torch.equal(values, expected.values) and torch.equal(indices, expected.indices)


@pytest.mark.parametrize("size", [1290, 2100, 2560])
def test_best_tokens(size):
    scores = torch.randn(3, size)
    scores[0, -1] = scores[1, 0] = 9
    values, indices = best_tokens(scores, 5)
    assert torch.equal(values, scores.topk(5).values) and torch.equal(indices, scores.topk(5).indices)
