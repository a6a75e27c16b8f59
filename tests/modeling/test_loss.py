"""The loss, against sums written out token by token."""

import math

import pytest
import torch
from support.tiny_models import EOS, SEP, build, documents_of, random_text, word_tokenizer

from hf_docmt.engine.chunked_loss import chunked_loss
from hf_docmt.loading import registry
from hf_docmt.modeling.modeling_docmt import smoothing_target, weighted_cross_entropy

LABELS = torch.tensor([[3, 1, 4, 1], [5, 2, -100, -100]])


def by_hand(logits, labels, weights=None, smoothing=0.0, count=None) -> float:
    """Lupo et al. (2023), appendix A; label smoothing as a mixture with the uniform distribution."""
    total, tokens = 0.0, 0
    for row in range(len(labels)):
        for position, label in enumerate(labels[row].tolist()):
            if label == -100:
                continue
            scores = logits[row, position].tolist()
            normal = math.log(sum(math.exp(score) for score in scores))
            losses = [normal - score for score in scores]
            loss = (1 - smoothing) * losses[label] + smoothing * sum(losses) / len(losses)
            total += loss * (1 if weights is None else float(weights[row, position]))
            tokens += 1
    return total / (tokens if count is None else count)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("count", [None, 17])
def test_is_the_sum_by_hand(smoothing, weighted, count):
    logits = torch.randn(2, 4, 7) * 2
    weights = torch.tensor([[0.1, 0.1, 1, 1], [0, 1, 1, 1]]) if weighted else None
    found = weighted_cross_entropy(logits, LABELS, weights, smoothing, count)
    assert math.isclose(found, by_hand(logits, LABELS, weights, smoothing, count), rel_tol=1e-5)


def test_half_precision_logits_are_summed_in_fp32():
    logits = torch.randn(1, 4, 7)
    found = weighted_cross_entropy(logits.bfloat16(), LABELS[:1])
    assert found.dtype == torch.float32
    assert math.isclose(found, by_hand(logits.bfloat16().float(), LABELS[:1]), rel_tol=1e-5)


@pytest.fixture(scope="module")
def model():
    return build(past_context=2, label_smoothing=0.1)


def window_batch(model, context_discount):
    corpus = documents_of((random_text([3, 2, 1, 2], seed=1), random_text([2, 3, 2, 1], seed=2)))
    examples = registry.get("concat").examples(corpus, word_tokenizer(), model.config)
    collate = registry.get("concat").collator(model.config, word_tokenizer(), context_discount)
    return collate([examples[index] for index in range(4)])


@pytest.mark.parametrize("discount", [0.0, 0.01, 1.0])
def test_context_discount(model, discount):
    """CD times the loss of the context plus the loss of the current sentence, which follows the last separator."""
    batch = window_batch(model, discount)
    outputs = model.train()(**batch, skip_logits=False)
    model.eval()
    total, tokens = 0.0, 0
    for logits, labels in zip(outputs.logits, batch["labels"]):
        labels = labels[labels != -100]
        start = len(labels) - labels.tolist()[::-1].index(SEP) if SEP in labels else 0
        context = by_hand(logits[None, :start], labels[None, :start], smoothing=0.1, count=1)
        current = by_hand(logits[None, start : len(labels)], labels[None, start:], smoothing=0.1, count=1)
        total, tokens = total + discount * context + current, tokens + len(labels)
    assert tokens == (batch["labels"] != -100).sum() and int(batch["labels"].eq(EOS).sum()) == 4
    assert math.isclose(outputs.loss.detach(), total / tokens, rel_tol=1e-5)


def test_nothing_to_score():
    """A part of a larger batch may hold no target token."""
    logits = torch.randn(1, 2, 7, requires_grad=True)
    loss = weighted_cross_entropy(logits, torch.full((1, 2), -100), num_items_in_batch=5)
    loss.backward()
    assert loss == 0 and not logits.grad.any()


def test_smoothing_skips_tokens_that_are_never_written():
    """The loss of all tokens, some ruled out by their bias, is that of the vocabulary of the others."""
    logits, bias = torch.randn(2, 4, 9) * 2, torch.tensor([0.0] * 7 + [-100.0, -1000.0])
    target = smoothing_target(bias)
    torch.testing.assert_close(target, torch.tensor([1 / 7] * 7 + [0.0] * 2))
    weights = torch.tensor([[0.1, 0.1, 1, 1], [0, 1, 1, 1]])
    found = weighted_cross_entropy(logits + bias, LABELS, weights, 0.1, None, bias)
    assert math.isclose(found, by_hand(logits[..., :7], LABELS, weights, 0.1), rel_tol=1e-5)
    assert smoothing_target(torch.zeros(9)) is None
    torch.testing.assert_close(
        weighted_cross_entropy(logits, LABELS, weights, 0.1, None, torch.full((9,), 1 / 9)),
        weighted_cross_entropy(logits, LABELS, weights, 0.1),
    )


@pytest.mark.parametrize("skip_logits", [False, True])
def test_smoothed_loss_of_a_model_with_ruled_out_tokens(skip_logits):
    model = build("concat", label_smoothing=0.1).train()
    labels = torch.tensor([[7, 8, 3]])
    inputs = {"input_ids": torch.tensor([[6, 7, 3]]), "labels": labels, "skip_logits": skip_logits}
    model.final_logits_bias[0, 9:] = -100.0
    loss = model(**inputs).loss
    logits = model.eval()(input_ids=inputs["input_ids"], labels=labels).logits.detach()
    assert math.isclose(loss, by_hand(logits[..., :9], labels, smoothing=0.1), rel_tol=1e-4)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, torch.tensor([[0.1, 0.1, 1, 1], [0, 1, 1, 1]])], ids=["plain", "weighted"])
def test_loss_of_the_engine(smoothing, weights):
    model, states = build("concat"), torch.randn(2, 4, 16)
    model.final_logits_bias[0, 9:] = -100.0
    for count in (None, 17):
        arguments = (states, LABELS, weights, smoothing, count, False)
        torch.testing.assert_close(chunked_loss(model, *arguments[:-1]), model.loss(*arguments)[0])
