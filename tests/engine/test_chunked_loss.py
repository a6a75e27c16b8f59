"""The loss over chunks of rows against that of all logits at once."""

from functools import partial

import pytest
import torch
from support.tiny_models import build
from torch.autograd import grad

from hf_docmt.engine import chunked_loss
from hf_docmt.modeling.layers import OutputProjection
from hf_docmt.modeling.modeling_docmt import weighted_cross_entropy

LABELS = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, -100, -100, 3]])
WEIGHTS = torch.tensor([[0.1, 0.1, 1, 1, 0, 1], [1, 1, 1, 1, 1, 0.5]])
BATCH = {
    "input_ids": torch.tensor([[6, 7, 4, 8, 3], [9, 6, 3, 0, 0]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
    "labels": LABELS,
    "label_weights": WEIGHTS,
}


@pytest.fixture(params=["one chunk", "chunks of four rows"])
def chunk(request, monkeypatch):
    """Chunks of four rows are the least for states of four dimensions; the softmax is computed row by row."""
    if request.param != "one chunk":
        monkeypatch.setattr(chunked_loss, "CHUNK", 1)
        monkeypatch.setattr(chunked_loss, "CACHED", 1)


def projection_and_states(dim=4):
    torch.manual_seed(1)
    projection = OutputProjection(dim, 11, bias=False)
    return projection, torch.randn(2, 6, dim, requires_grad=True), torch.randn(11)


def loss_of(projection, states, bias, labels, weights=None, smoothing=0.0):
    """The sum of losses, computed by the projection."""
    return projection(states, bias, partial(chunked_loss.summed_loss, (labels.flatten(), weights, smoothing)))


def both(projection, states, bias, labels, weights, smoothing):
    """The loss in chunks and the plain one, each with gradients of states and weight, scaled as a loss scaler does."""
    parameters = [states, projection.weight]
    for loss in (
        loss_of(projection, states, bias, labels, weights, smoothing) / 7,
        weighted_cross_entropy(projection(states, bias), labels, weights, smoothing, 7),
    ):
        yield [loss, *grad(loss * 8, parameters)]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("labels", [LABELS, LABELS.clamp(min=0)], ids=["padded", "full"])
def test_is_the_plain_loss(chunk, labels, weights, smoothing):
    for found, expected in zip(*both(*projection_and_states(), labels, weights, smoothing)):
        torch.testing.assert_close(found, expected)


def test_is_the_plain_loss_where_tokens_are_ruled_out(chunk):
    projection, states, bias = projection_and_states()
    bias[-3:] = -100.0
    parameters = [states, projection.weight]
    found = loss_of(projection, states, bias, LABELS.clamp(max=7), WEIGHTS, 0.1) / 7
    logits = projection(states, bias)
    expected = weighted_cross_entropy(logits, LABELS.clamp(max=7), WEIGHTS, 0.1, 7, bias)
    assert float(expected.detach()) < 10, "no mass on what is never written"
    for one, other in zip((found, *grad(found, parameters)), (expected, *grad(expected, parameters))):
        torch.testing.assert_close(one, other)


def test_products_in_bf16(chunk):
    """In autocast loss and sums are fp32 and gradients of the parameters' type; each is as close as the plain one."""
    exact = list(both(*projection_and_states(), LABELS, WEIGHTS, 0.1))[1]
    with torch.autocast("cpu", torch.bfloat16):
        found, plain = both(*projection_and_states(), LABELS, WEIGHTS, 0.1)
    assert [one.dtype for one in found] == [torch.float32] * 3
    torch.testing.assert_close(found[0], plain[0])
    for one, other, truth in zip(found[1:], plain[1:], exact[1:]):
        assert not torch.equal(one, truth)
        assert (one - truth).norm() < 1.5 * (other - truth).norm() + 1e-3 * truth.norm()


def test_scaled_loss_in_fp16(chunk):
    """The scale of a loss scaler is beyond fp16, the gradient of the fp32 weight is not."""
    projection, states, bias = projection_and_states()
    expected = grad(loss_of(projection, states, bias, LABELS, WEIGHTS, 0.1) * 2.0**16, [states, projection.weight])
    with torch.autocast("cpu", torch.float16):
        loss = loss_of(projection, states, bias, LABELS, WEIGHTS, 0.1)
    for found, exact in zip(grad(loss * 2.0**16, [states, projection.weight]), expected):
        assert found.dtype == torch.float
        torch.testing.assert_close(found, exact, atol=0.01 * exact.abs().max().item(), rtol=0)


def test_forbidden_tokens(chunk):
    """A bias of minus infinity takes a token out of the softmax, as long as nothing is smoothed over it."""
    projection, states, bias = projection_and_states()
    bias[7] = -float("inf")
    found, expected = both(projection, states, bias, LABELS, None, 0.0)
    assert found[0].isfinite()
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other)


def test_nothing_to_score(chunk):
    projection, states, bias = projection_and_states()
    loss = loss_of(projection, states, bias, torch.full_like(LABELS, -100))
    assert loss == 0 and not any(one.any() for one in grad(loss, [states, projection.weight]))


@pytest.mark.parametrize("trained", ["states", "weight"])
def test_frozen_parameters_get_no_gradient(chunk, trained):
    projection, states, bias = projection_and_states()
    expected = list(both(projection, states, bias, LABELS, None, 0.1))[1]
    (states if trained == "weight" else projection.weight).requires_grad_(False)
    loss_of(projection, states, bias, LABELS, None, 0.1).div(7).mul(8).backward()
    found = {"states": states.grad, "weight": projection.weight.grad}
    torch.testing.assert_close(found.pop(trained), expected[1 if trained == "states" else 2])
    assert found.popitem()[1] is None


def test_second_derivatives_are_refused(chunk):
    projection, states, bias = projection_and_states()
    with pytest.raises(RuntimeError, match="no second derivatives: call the model with skip_logits=False"):
        grad(loss_of(projection, states, bias, LABELS), [states], create_graph=True)


def test_a_bias_is_not_trained(chunk):
    projection, states, bias = projection_and_states()
    with pytest.raises(ValueError, match="bias of the output projection is not trained"):
        loss_of(projection, states, bias.requires_grad_(), LABELS)


@pytest.mark.slow
def test_compiled_without_a_break(chunk):
    projection, states, bias = projection_and_states()
    compiled = torch.compile(loss_of, fullgraph=True, backend="aot_eager")
    expected = list(both(projection, states, bias, LABELS, WEIGHTS, 0.1))[1]
    loss = compiled(projection, states, bias, LABELS, WEIGHTS, 0.1) / 7
    for found, other in zip([loss, *grad(loss * 8, [states, projection.weight])], expected):
        torch.testing.assert_close(found, other)


def gradients_of(model, **options):
    outputs = model(**BATCH, **options)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return outputs, [outputs.loss.detach(), *grad(outputs.loss, parameters, allow_unused=True)]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_training_step_without_logits(chunk, tied):
    model = build(label_smoothing=0.1, share_encoder_decoder_embeddings=tied, tie_word_embeddings=tied).train()
    plain, expected = gradients_of(model, skip_logits=False)
    skipped, found = gradients_of(model)
    assert skipped.logits is None and plain.logits.shape == (2, 6, 30)
    assert_same(found, expected)


def test_logits_are_there_in_evaluation():
    model = build()
    outputs, skipped = model(**BATCH), model(**BATCH, skip_logits=True)
    assert outputs.logits.shape == (2, 6, 30) and skipped.logits is None
    torch.testing.assert_close(skipped.loss, outputs.loss)
    with torch.no_grad():
        torch.testing.assert_close(model(**BATCH, skip_logits=True).loss, outputs.loss)


def test_no_labels_no_logits_is_refused():
    inputs = {name: BATCH[name] for name in ("input_ids", "attention_mask")}
    with pytest.raises(ValueError, match="skip_logits=True .* give labels"):
        build()(**inputs, decoder_input_ids=LABELS.clamp(min=0), skip_logits=True)


def test_hooks_of_the_projection_see_logits():
    model = build().train()
    _, expected = gradients_of(model)
    seen = []
    model.lm_head.register_forward_hook(lambda module, inputs, logits: seen.append(logits.shape))
    outputs, found = gradients_of(model)
    assert seen == [(2, 6, 30)] and outputs.logits is None
    assert_same(found, expected)


def test_int8_weights_of_a_projection_that_gave_losses():
    model = build(vocab_size=2**14, d_model=16).train()
    gradients_of(model)
    exact, rounded = model.eval()(**BATCH), model.quantize("int8")(**BATCH, skip_logits=True)
    assert not isinstance(model.lm_head, OutputProjection) and rounded.logits is None
    torch.testing.assert_close(rounded.loss, exact.loss, atol=0, rtol=0.02)


def test_an_adapter_around_the_projection():
    """Its logits are not those of the projection alone."""

    class Adapter(torch.nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base

        def forward(self, hidden_states, *args):
            return self.base(hidden_states, *args) + hidden_states.sum(-1, keepdim=True) * torch.arange(30)

    model = build().train()
    model.lm_head = Adapter(model.lm_head)
    outputs, found = gradients_of(model)
    plain, expected = gradients_of(model, skip_logits=False)
    assert outputs.logits is None and plain.logits is not None
    assert_same(found, expected)
