"""Attention on short rows of bf16, trained on a CPU, against sdpa in fp32 and the whole model in fp32."""

import subprocess
import sys

import pytest
import torch
from support.tiny_models import build
from torch.autograd import grad
from torch.nn.functional import scaled_dot_product_attention

from hf_docmt.modeling import cpu_inference
from hf_docmt.modeling.cpu_inference import batched_attention

BATCH = {
    "input_ids": torch.tensor([[6, 7, 4, 8, 3], [9, 6, 3, 0, 0]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
    "labels": torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 7, 8, 3]]),
}


@pytest.mark.parametrize("kind", ["all", "causal", "masked"])
def test_gradients_are_as_close_as_those_of_sdpa(kind):
    torch.manual_seed(1)
    states = [torch.randn(3, 6, 4, 8).bfloat16().transpose(1, 2).requires_grad_() for _ in range(3)]  # (B, H, T, Dh)
    direction, mask = torch.randn(3, 6, 4, 8), None
    if kind == "masked":
        mask = torch.ones(3, 1, 6, 6, dtype=torch.bool)
        mask[1, ..., 4:] = False

    def with_gradients(attend, inputs):
        output = attend(*inputs)
        return [output, *grad((output.float() * direction).sum(), inputs)]

    def sdpa(*inputs):
        return scaled_dot_product_attention(*inputs, mask, is_causal=kind == "causal", scale=0.3).transpose(1, 2)

    exact = with_gradients(sdpa, [one.detach().float().requires_grad_() for one in states])
    plain = with_gradients(sdpa, states)
    found = with_gradients(lambda *inputs: batched_attention(*inputs, mask, 0.3, kind == "causal"), states)
    for one, other, expected in zip(found, plain, exact):
        assert one.dtype is torch.bfloat16
        assert (one - expected).norm() <= 1.5 * (other - expected).norm() + 1e-6 < 0.02 * expected.norm()


@pytest.mark.parametrize("longest, calls", [(6, 6), (5, 2), (4, 0)])
def test_short_rows_of_bf16_are_trained_so(longest, calls, monkeypatch):
    """Rows of 5 source and 6 target tokens, three attentions in each of two layers; never in fp32."""
    model, lengths = build(dropout=0.0).train(), []
    monkeypatch.setattr(cpu_inference, "BF16", True)
    monkeypatch.setattr(cpu_inference, "MAX_BF16", longest)
    monkeypatch.setattr(
        cpu_inference, "batched_attention", lambda *a: lengths.append(a[0].shape[2]) or batched_attention(*a)
    )
    exact = model(**BATCH).loss
    assert not lengths
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(model(**BATCH).loss, exact, atol=0, rtol=0.01)
        assert len(lengths) == calls
        with torch.no_grad():
            model(**BATCH)
    assert len(lengths) == calls


def test_attention_is_left_to_kernels_that_need_no_plan_for_every_shape():
    program = "import torch, hf_docmt.modeling.modeling_docmt as _; print(torch.backends.cuda.cudnn_sdp_enabled())"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"
    assert torch.backends.cuda.flash_sdp_enabled() and torch.backends.cuda.mem_efficient_sdp_enabled()
