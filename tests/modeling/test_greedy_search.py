"""Greedy search gives what transformers' own gives, token by token."""

import pytest
import torch
from support.tiny_models import EOS, SEP, build
from transformers import GenerationMixin

from hf_docmt.modeling import shared_source_generation
from hf_docmt.modeling.greedy_search import best_token, greedy_search
from hf_docmt.modeling.shared_source_generation import SharedSourceGeneration


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"eos_token_id": [EOS, *range(20, 60)]},
        {"use_cache": False, "no_repeat_ngram_size": 1},
        {"max_new_tokens": 1},
    ],
    ids=str,
)
def test_as_transformers(settings, monkeypatch):
    """Rows that end at different steps, padding, a prompt."""
    model = build(vocab_size=300)
    source = torch.randint(SEP, 300, (5, 7), generator=torch.Generator().manual_seed(2))
    mask = torch.ones_like(source)
    mask[3, 4:] = 0
    prompt = torch.cat([torch.full((5, 1), 2), source[:, 1:3]], dim=1)
    inputs = {"input_ids": source, "attention_mask": mask, "decoder_input_ids": prompt}
    settings = {"max_new_tokens": 9, "no_repeat_ngram_size": 2, "do_sample": False, **settings}
    calls = []
    monkeypatch.setattr(
        shared_source_generation, "greedy_search", lambda *a, **k: calls.append(a) or greedy_search(*a, **k)
    )
    found = model.generate(**inputs, **settings)
    monkeypatch.setattr(SharedSourceGeneration, "_sample", GenerationMixin._sample)
    assert calls and torch.equal(found, model.generate(**inputs, **settings))


@pytest.mark.parametrize("size", [100, 256, 300, 383])
def test_best_token(size):
    """The first of equal ones and of what is no number, wherever it stands."""
    scores = torch.randint(0, 50, (200, size)).float()
    scores[:5] = -torch.inf
    scores[torch.arange(20, 40), torch.randint(0, size, (20,))] = torch.nan
    scores[30:40, -1] = torch.nan
    scores[40, -1] = scores[41, 0] = 99
    assert torch.equal(best_token(scores), scores.argmax(dim=1))
