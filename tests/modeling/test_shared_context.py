"""Sentences that are context of several rows of a batch are read once, with the results of rows one by one."""

import pytest
import torch
from support.tiny_models import EOS, PAD, build

from hf_docmt.modeling import context_inputs
from hf_docmt.modeling.context_inputs import equal_rows

DOCUMENT = [[7, 9, 8, EOS], [12, EOS], [14, 7, EOS], [12, EOS], [21, 6, 9, 11, EOS], [8, EOS], [9, 9, EOS], [10, EOS]]
PAST = 2


def padded(sentences):
    width = max(map(len, sentences))
    return torch.tensor([sentence + [PAD] * (width - len(sentence)) for sentence in sentences])


def batch_of(indices):
    """Inputs of sentences of the document with those before them."""
    source = padded([DOCUMENT[index] for index in indices])
    before = [[DOCUMENT[i] if (i := index - offset) >= 0 else [] for offset in (2, 1)] for index in indices]
    width = max(1, *(len(sentence) for row in before for sentence in row))
    context = torch.tensor([[sentence + [PAD] * (width - len(sentence)) for sentence in row] for row in before])
    return {
        "input_ids": source,
        "attention_mask": (source != PAD).long(),
        "context_input_ids": context,
        "context_attention_mask": (context != PAD).long(),
        "context_offsets": torch.tensor([[-2, -1]] * len(indices)),
        "labels": source.masked_fill(source == PAD, -100),
    }


CASES = [
    ("caching", {}),
    ("caching", {"shortening": "grouping", "include_current": True}),
    ("caching", {"shortening": "none", "encoder_gradient": False}),
    ("routing", {"future_context": 0}),
    ("doct", {"selection": "routing", "future_context": 0}),
    ("han", {}),
]


@pytest.mark.parametrize(("architecture", "fields"), CASES)
def test_a_batch_of_neighbours_is_as_its_rows(architecture, fields):
    model = build(architecture, past_context=PAST, **fields)
    indices = range(len(DOCUMENT))
    together = model(**batch_of(indices)).logits
    for index in indices:
        alone = batch_of([index])
        expected = model(**alone).logits[0]
        torch.testing.assert_close(together[index, : len(DOCUMENT[index])], expected[: len(DOCUMENT[index])])


@pytest.mark.parametrize(("architecture", "fields"), CASES)
def test_gradients_are_those_of_all_sentences(monkeypatch, architecture, fields):
    model = build(architecture, past_context=PAST, **fields)
    found = {}
    for case in ("once", "each"):
        if case == "each":
            monkeypatch.setattr(context_inputs, "equal_rows", all_differ)
        model.zero_grad()
        model(**batch_of(range(len(DOCUMENT)))).loss.backward()
        found[case] = {name: parameter.grad for name, parameter in model.named_parameters()}
    for name, gradient in found["each"].items():
        torch.testing.assert_close(found["once"][name], gradient, atol=1e-6, rtol=1e-4)


def all_differ(*contents):
    every = torch.arange(len(contents[0]))
    return every, every


@pytest.mark.parametrize(
    ("architecture", "method", "fields"),
    [("caching", "encode", {}), ("routing", "read_context", {"future_context": 0}), ("han", "run_layers", {})],
)
def test_sentences_that_are_read(monkeypatch, architecture, method, fields):
    """Of 8 sentences with 2 before each 13 are there and 6 differ; in training each has dropout of its own."""
    model, read = build(architecture, past_context=PAST, **fields), []
    kind = type(model.get_encoder())
    own = getattr(kind, method)
    monkeypatch.setattr(
        kind, method, lambda self, first, *rest, **more: read.append(len(first)) or own(self, first, *rest, **more)
    )
    model(**batch_of(range(8)))
    assert 6 in read and 13 not in read
    read.clear()
    model.train()(**batch_of(range(8)))
    assert 13 in read and 6 not in read


def test_rows_of_one_key_that_differ(monkeypatch):
    """Keys may be the same by chance: then all rows count."""
    monkeypatch.setattr(torch.Tensor, "cumprod", lambda factors, dim: torch.zeros_like(factors))
    first, places = equal_rows(torch.tensor([[1, 2], [3, 4], [1, 2]]))
    assert first.tolist() == places.tolist() == [0, 1, 2]
