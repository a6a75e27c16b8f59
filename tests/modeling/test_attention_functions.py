"""Attention on short rows of bf16, trained on a CPU, against sdpa in fp32 and the whole model in fp32."""

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from support.tiny_models import build
from torch.autograd import grad
from torch.backends import cuda
from torch.nn.functional import scaled_dot_product_attention

from hf_docmt.modeling import layers
from hf_docmt.modeling.layers import batched_attention, without_cudnn

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
    monkeypatch.setattr(layers, "BF16", True)
    monkeypatch.setattr(layers, "MAX_BF16", longest)
    monkeypatch.setattr(layers, "batched_attention", lambda *a: lengths.append(a[0].shape[2]) or batched_attention(*a))
    exact = model(**BATCH).loss
    assert not lengths
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(model(**BATCH).loss, exact, atol=0, rtol=0.01)
        assert len(lengths) == calls
        with torch.no_grad():
            model(**BATCH)
    assert len(lengths) == calls


def test_a_gpu_attends_without_cudnn_and_the_process_keeps_its_switches():
    """Nothing is switched off for the whole process, and kernels that a user has switched off stay off."""
    states = SimpleNamespace(is_cuda=True)
    with without_cudnn(states):
        assert not cuda.cudnn_sdp_enabled() and cuda.flash_sdp_enabled() and cuda.mem_efficient_sdp_enabled()
    assert cuda.cudnn_sdp_enabled()
    cuda.enable_flash_sdp(False)
    try:
        with without_cudnn(states):
            assert not cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    finally:
        cuda.enable_flash_sdp(True)


def test_no_file_asks_for_attention_outside_of_such_a_scope():
    """Each call of torch's attention, and of those of transformers, is inside a `with without_cudnn(...)`."""
    calls = {}
    for path in Path(layers.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        scopes = [node for node in ast.walk(tree) if isinstance(node, ast.With) and "without_cudnn" in ast.dump(node)]
        inside = {id(node) for scope in scopes for node in ast.walk(scope)}
        names = {"scaled_dot_product_attention", "function"}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in names:
                calls.setdefault(path.stem, []).append(id(node) in inside)
    assert {name: all(found) for name, found in calls.items()} == {"layers": True, "modeling_han": True}
