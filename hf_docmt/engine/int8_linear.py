"""Linear layers with int8 weights, for inference on a CPU.

    y = s_x s_w (x / s_x) (w / s_w)^T + b, both quotients rounded to integers from -127 to 127

s_w is the largest magnitude in a row of the weights over 127, one number an output channel; s_x is that of a row of the
input, computed for every input ("dynamic"). A row of the output depends on its row of the input alone, not on the
batch. The product is FBGEMM's (`quantized::linear_with_input_q_dq_qweight_dq_output_fp32`), which rounds its input
inside. The package's own (`cpu_kernels.c`, with AVX-512 VNNI or on aarch64) is faster. Without both, and under
`torch.compile`, we use `torch._int_mm` and plain operations. All sum up the same integers; only rounding differs.
"""

import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import is_

import torch
from torch import nn

from hf_docmt.engine.cpu_kernels import BLOCK, LEVELS, most_rows
from hf_docmt.engine.tensor_kernels import kernel_product

ENGINE, KERNELS = "fbgemm", "cpu_kernels"  # what computes products; torch's name of the first
FBGEMM = ENGINE in torch.backends.quantized.supported_engines and hasattr(torch, "_make_per_channel_quantized_tensor")
TINY = torch.finfo(torch.float32).tiny  # the least scale of a row
# Levels of the input of FBGEMM: without VNNI, FBGEMM adds two products in 16 bits, which 7 bits do not fill
INPUT_LEVELS = 127 if torch.cpu._is_vnni_supported() else 63
ENGINE_LOCK = threading.Lock()  # the engine is one of the process
BLOCK_ELEMENTS = 2**21  # of the output, scaled together while in the processor's cache


class Int8Linear(nn.Module):
    """A linear layer with weights (D_out, D_in) int8 and their scales (D_out,) float32; bias in the model's type."""

    takes_bias = True

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: torch.dtype | None = None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        weight, scale = torch.empty(out_features, in_features, dtype=torch.int8), torch.empty(out_features)
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.weight_scale = nn.Parameter(scale.float(), requires_grad=False)
        bias = nn.Parameter(torch.empty(out_features, dtype=dtype), requires_grad=False) if bias else None
        self.register_parameter("bias", bias)
        self._packed: dict[tuple[int, str], PackedLayers] = {}  # by layers side by side, this one first, and engine

    @classmethod
    def like(cls, layer: nn.Linear) -> "Int8Linear":
        """A layer of the same sizes, whose weights are still to come."""
        return cls(layer.in_features, layer.out_features, layer.bias is not None)

    @classmethod
    def of(cls, layer: nn.Linear) -> "Int8Linear":
        """The weights of a layer as int8; ValueError for weights that are not finite."""
        weight = layer.weight.detach().float()  # (D_out, D_in)
        scale = weight.abs().amax(dim=1) / LEVELS
        if not scale.isfinite().all():
            raise ValueError("the weights are not all finite numbers: the file is damaged, or training diverged")
        scale[scale == 0] = 1
        with torch.device("meta"):
            int8 = cls.like(layer)
        int8.weight = nn.Parameter((weight / scale[:, None]).round().to(torch.int8), requires_grad=False)
        int8.weight_scale = nn.Parameter(scale, requires_grad=False)
        if layer.bias is not None:
            int8.bias = nn.Parameter(layer.bias.detach().clone(), requires_grad=False)
        return int8.train(layer.training)

    def forward(self, hidden_states: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """(..., D_in) -> (..., D_out); `bias` (D_out,) replaces the layer's own. ValueError where gradients flow."""
        return int8_product((self,), hidden_states, self.bias if bias is None else bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"

    def _apply(self, fn, recurse: bool = True) -> "Int8Linear":
        """As in torch, but the scales stay float32; ValueError for another device than the CPU."""
        if (device := fn(torch.empty(0)).device).type not in ("cpu", "meta"):
            raise ValueError(f"int8 weights are for the CPU, got the device {device}; keep the model on the CPU")
        scale = self.weight_scale.detach()
        super()._apply(fn, recurse)
        if self.weight_scale.dtype is not torch.float32:
            self.weight_scale = nn.Parameter(scale.to(self.weight_scale.device), requires_grad=False)
        return self

    def __getstate__(self) -> dict:
        """Copies and pickles have no packed weights."""
        return {**self.__dict__, "_packed": {}}


@dataclass
class PackedLayers:
    """Weights of layers side by side in an engine's own layout, and what they were made of."""

    engine: str
    matrix: torch.Tensor | torch.ScriptObject
    scale: torch.Tensor | None  # (sum of D_out,) of the weights; FBGEMM has it in the matrix
    parameters: list[torch.Tensor | None]
    versions: list[int | None]
    bias: torch.Tensor | None  # (sum of D_out,)
    out_features: int  # sum of D_out; `scale` and `bias` of kernels have whole blocks

    def is_of(self, layers: Sequence[Int8Linear]) -> bool:
        """Whether the weights, scales and biases of these layers are the ones that were packed."""
        parameters = parameters_of(layers)
        return all(map(is_, parameters, self.parameters)) and list(map(version, parameters)) == self.versions

    def whole_bias(self, bias: torch.Tensor | None) -> torch.Tensor:
        """A bias (D_out,), or none, as the kernels read it: float32 of whole blocks."""
        return torch.zeros_like(self.scale) if bias is None else whole_blocks(bias.detach().float())

    def product(self, states: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """(..., D_in) float32 -> (..., D_out), by FBGEMM in blocks of rows if that is large."""
        if self.engine == KERNELS:
            return kernel_product(states, self.matrix, self.scale, self.whole_bias(bias), self.out_features)
        rows = states.shape[:-1].numel()
        if rows * self.out_features <= BLOCK_ELEMENTS:
            return self.scaled_product(states, bias)
        outputs = states.new_empty(rows, self.out_features)
        count = max(1, BLOCK_ELEMENTS // self.out_features)
        for block, output in zip(states.reshape(rows, -1).split(count), outputs.split(count), strict=True):
            self.scaled_product(block, bias, output)
        return outputs.view(*states.shape[:-1], self.out_features)

    def scaled_product(
        self, states: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor | None = None
    ) -> torch.Tensor:
        """(..., D_in) -> (..., D_out) by FBGEMM: rows are divided by their largest magnitude, multiplied, scaled back.

        A row of zeros gives 0 / 0, which FBGEMM rounds to some integer; that times 0, the magnitude, is 0.
        """
        largest = states.abs().amax(dim=-1, keepdim=True)  # (..., 1)
        product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32
        outputs = product(states / largest, 1 / INPUT_LEVELS, INPUT_LEVELS + 1, self.matrix)
        out = outputs if out is None else out
        return torch.mul(outputs, largest, out=out) if bias is None else torch.addcmul(bias, outputs, largest, out=out)


def rounded(states: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    """Rows over their largest magnitudes (..., 1) as integers from -127 to 127, a row of zeros as zeros."""
    return (states / largest.clamp_min(TINY)).mul_(LEVELS).round_().to(torch.int8)


def parameters_of(layers: Sequence[Int8Linear]) -> list[torch.Tensor | None]:
    """Weights, scales and biases of layers."""
    return [parameter for layer in layers for parameter in layer._parameters.values()]


def version(parameter: torch.Tensor | None) -> int | None:
    """How often torch saw a parameter change; None for tensors of inference mode, of which it does not count that."""
    return None if parameter is None or parameter.is_inference() else parameter._version


def is_plain_int8(module: nn.Module) -> bool:
    """Whether a module is an `Int8Linear` without hooks that a call would run."""
    return type(module) is Int8Linear and not (module._forward_hooks or module._forward_pre_hooks)


def int8_product(
    layers: Sequence[Int8Linear], hidden_states: torch.Tensor, bias: torch.Tensor | None, own_bias: bool = False
) -> torch.Tensor:
    """(..., D_in) -> (..., sum of D_out) of layers side by side, with a bias or with their own ones."""
    if torch.is_grad_enabled() and hidden_states.requires_grad:
        raise ValueError(
            "int8 weights give no gradients: translate and score with this model, and train one that is not quantized."
        )
    if hidden_states.dim() == 1:
        return int8_product(layers, hidden_states[None], bias, own_bias)[0]
    engine = engine_for(hidden_states)
    if engine is None:
        return portable_product(layers, hidden_states, joint_bias(layers) if own_bias else bias)
    packed = packed_layers(layers, engine)
    dtype = hidden_states.dtype
    outputs = packed.product(hidden_states.float(), packed.bias if own_bias else bias)
    return outputs if dtype is torch.float32 else outputs.to(dtype)


def engine_for(hidden_states: torch.Tensor) -> str | None:
    """The engine for products with states (..., D_in); None for plain operations."""
    if torch.compiler.is_compiling():
        return None
    rows, size = hidden_states.shape[:-1].numel(), hidden_states.shape[-1]
    if rows <= most_rows(size) and not torch.jit.is_tracing():
        return KERNELS
    return ENGINE if FBGEMM else None


def packed_layers(layers: Sequence[Int8Linear], engine: str) -> PackedLayers:
    """Layers side by side as an engine reads them, packed again if they have changed."""
    packed = layers[0]._packed.get((len(layers), engine))
    if packed is None or not packed.is_of(layers):
        packed = layers[0]._packed[len(layers), engine] = pack(layers, engine)
    return packed


def portable_product(
    layers: Sequence[Int8Linear], hidden_states: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """The product of the kernels in plain operations."""
    rows = hidden_states.reshape(-1, hidden_states.shape[-1]).float()  # (rows, D_in)
    largest = rows.abs().amax(dim=-1, keepdim=True)  # (rows, 1)
    weight, weight_scale = (
        torch.cat([getattr(layer, name) for layer in layers]) for name in ("weight", "weight_scale")
    )
    outputs = torch._int_mm(rounded(rows, largest), weight.T) * (largest / LEVELS) * weight_scale  # (rows, D_out)
    if bias is not None:
        outputs = outputs + bias
    return outputs.to(hidden_states.dtype).view(*hidden_states.shape[:-1], len(weight))


def pack(layers: Sequence[Int8Linear], engine: str) -> PackedLayers:
    """The weights of layers side by side in the layout of an engine."""
    parameters = parameters_of(layers)
    integers = torch.cat([layer.weight.detach() for layer in layers])  # (sum of D_out, D_in)
    scale, bias = torch.cat([layer.weight_scale.detach() for layer in layers]), joint_bias(layers)
    bias = None if bias is None else bias.float()
    outputs = len(integers)
    if engine == KERNELS:
        blocks = whole_blocks(integers).view(-1, BLOCK, integers.shape[1] // 4, 4)
        matrix = blocks.transpose(1, 2).contiguous()  # (blocks, D_in / 4, 16, 4)
        scale, bias = whole_blocks(scale), None if bias is None else whole_blocks(bias)
    else:
        scale = scale.double()
        with warnings.catch_warnings(), fbgemm_engine():
            warnings.simplefilter("ignore")  # tensors of type qint8 are to go: then FBGEMM is False, see above
            matrix = torch._make_per_channel_quantized_tensor(integers, scale, torch.zeros_like(scale).long(), 0)
            matrix, scale = torch.ops.quantized.linear_prepack(matrix, None), None
    return PackedLayers(engine, matrix, scale, parameters, list(map(version, parameters)), bias, outputs)


def kernel_weights(layers: Sequence[Int8Linear]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Weights of layers side by side as `cpu_kernels.c` reads them, their scales and their biases.

    (blocks, D_in / 4, 16, 4) int8, and float32 of whole blocks, (16 * blocks,).
    """
    packed = packed_layers(layers, KERNELS)
    return packed.matrix, packed.scale, packed.whole_bias(packed.bias)


def whole_blocks(values: torch.Tensor) -> torch.Tensor:
    """Rows (N, ...) with zeros after them, up to a whole number of blocks."""
    missing = -len(values) % BLOCK
    return torch.cat([values, values.new_zeros(missing, *values.shape[1:])]) if missing else values


@contextmanager
def fbgemm_engine() -> Iterator[None]:
    """Within it, which one thread is at a time, this process packs weights for FBGEMM."""
    with ENGINE_LOCK:
        engine = torch.backends.quantized.engine
        torch.backends.quantized.engine = ENGINE
        try:
            yield
        finally:
            torch.backends.quantized.engine = engine


def joint_bias(layers: Sequence[nn.Module]) -> torch.Tensor | None:
    """The biases (D_out,) of layers as (sum of D_out,), zeros where one has none; None where none has one."""
    known = next((layer.bias for layer in layers if layer.bias is not None), None)
    if known is None:
        return None
    biases = (known.new_zeros(layer.out_features) if layer.bias is None else layer.bias for layer in layers)
    return torch.cat([bias.detach() for bias in biases])


if hasattr(os, "register_at_fork"):  # no forked process has the lock of a thread that it lacks
    os.register_at_fork(
        before=ENGINE_LOCK.acquire, after_in_parent=ENGINE_LOCK.release, after_in_child=ENGINE_LOCK.release
    )
