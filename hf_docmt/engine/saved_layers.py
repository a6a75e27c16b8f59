"""The layers of a saved plain Transformer as programs of the compiled primitives: what a search needs without torch."""

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from hf_docmt.engine.cpu_kernels import BLOCK, EMBEDDING, LEVELS, MIN_ELEMENTS, Operation
from hf_docmt.engine.program_maker import SCORES, STATES, ProgramMaker, array

Weights = Callable[[str], np.ndarray]  # by name


@dataclass
class SavedLinear:
    """Weights (D_out, D_in) int8 with scales (D_out,), or float32, and a bias, if any."""

    weight: np.ndarray
    scale: np.ndarray | None = None
    bias: np.ndarray | None = None

    @property
    def in_features(self) -> int:
        return self.weight.shape[1]

    @property
    def out_features(self) -> int:
        return len(self.weight)

    def as_int8(self) -> "SavedLinear":
        """As `Int8Linear.of`."""
        scale = np.abs(self.weight).max(axis=1) / np.float32(LEVELS)
        scale[scale == 0] = 1
        return SavedLinear(np.rint(self.weight / scale[:, None]).astype(np.int8), scale, self.bias)


@dataclass
class SavedLayers:
    """Layers of a configuration with the names that they have in a file; with `is_int8` large floats become int8."""

    config: SimpleNamespace
    weights: Weights
    names: set[str]
    is_int8: bool
    has_int8: bool = False  # of those that were made

    def __post_init__(self):
        names = {side: f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")}
        offset = self.config.position_offset
        self.positions = {side: self.weights(name)[offset:] for side, name in names.items() if name in self.names}

    def linear(self, name: str, tied: np.ndarray | None = None) -> SavedLinear:
        """A linear layer; without weights of its own in the file it has `tied` ones."""
        names = [f"{name}.{each}" for each in ("weight", "weight_scale", "bias")]
        weight, *rest = [self.weights(each) if each in self.names else None for each in names]
        layer = SavedLinear(tied if weight is None else weight, *rest)
        layer = layer.as_int8() if self.is_int8 and layer.scale is None and layer.weight.size >= MIN_ELEMENTS else layer
        self.has_int8 |= layer.scale is not None
        return layer

    def norm(self, name: str) -> SimpleNamespace:
        weight, bias = (self.weights(f"{name}.{each}") for each in ("weight", "bias"))
        return SimpleNamespace(weight=weight, bias=bias, eps=self.config.layer_norm_eps)

    def attention(self, name: str, heads: int) -> SimpleNamespace:
        if f"{name}.forget_gate.weight" in self.names:
            return SimpleNamespace(**{each: self.linear(f"{name}.{each}") for each in ("input_proj", "forget_gate")})
        size = self.config.d_model // heads
        projections = {each: self.linear(f"{name}.{each}") for each in ("q_proj", "k_proj", "v_proj", "out_proj")}
        return SimpleNamespace(head_dim=size, scaling=size**-0.5, **projections)

    def layer(self, side: str, number: int) -> SimpleNamespace:
        """A layer with the attributes of the module."""
        name, heads = f"model.{side}.layers.{number}", getattr(self.config, f"{side}_attention_heads")
        attentions = ["self_attn"] + (["encoder_attn"] if side == "decoder" else [])
        parts = {each: self.attention(f"{name}.{each}", heads) for each in attentions}
        norms = [f"{each}_layer_norm" for each in (*attentions, "final")]
        parts |= {each: self.norm(f"{name}.{each}") for each in norms}
        parts |= {each: self.linear(f"{name}.{each}") for each in ("fc1", "fc2")}
        before = self.config.normalize_before
        return SimpleNamespace(side=side, normalize_before=before, activation_fn="relu", **parts)

    def table(self, side: str) -> np.ndarray:
        """The embeddings of tokens (V, D)."""
        names = (f"model.{side}.embed_tokens.weight", "model.shared.weight")
        return self.weights(next(name for name in names if name in self.names))

    def encodings(self, side: str, count: int) -> np.ndarray:
        """The encodings of this number of positions, (count, D) float32, learned or as `segments.sinusoid`."""
        config, known = self.config, self.positions.get(side, ())
        if config.position_type != "learned" and len(known) < count:
            half = config.d_model // 2
            steps = half if config.position_type == "sinusoidal" else max(half - 1, 1)
            frequencies = np.exp(np.arange(half, dtype=np.float64) * (-math.log(10000.0) / steps))
            angles = (np.arange(2 * count) + config.position_offset)[:, None] * frequencies  # (positions, half)
            known = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
            self.positions[side] = known
        return known[:count]


@dataclass
class ArrayProgramMaker(ProgramMaker):
    """Makes primitives of `SavedLayers`, all of which are known."""

    address = staticmethod(lambda values: values.ctypes.data)
    are_products = staticmethod(lambda layers: True)
    what_heads_read = staticmethod(lambda attention: "whole")
    is_recurrence = staticmethod(lambda attention: hasattr(attention, "forget_gate"))
    is_relu = staticmethod(lambda function: function == "relu")

    def product_weights(self, layers: Sequence[SavedLinear], has_bias: bool) -> tuple[int | None, ...]:
        weights, is_int8 = whole_blocks([layer.weight for layer in layers]), layers[0].scale is not None
        inner = (4,) if is_int8 else ()  # (blocks, D_in / 4, 16, 4), or (blocks, D_in, 16)
        blocks = weights.reshape(-1, BLOCK, weights.shape[1] // (4 if is_int8 else 1), *inner)
        packed = [np.ascontiguousarray(blocks.swapaxes(1, 2))]
        packed.append(whole_blocks([layer.scale for layer in layers]) if is_int8 else None)
        biases = [np.zeros(layer.out_features, np.float32) if layer.bias is None else layer.bias for layer in layers]
        packed += [whole_blocks(biases)] if has_bias else []
        self.kept += packed
        return tuple(None if each is None else each.ctypes.data for each in packed)


def whole_blocks(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays one after the other, with zeros after them up to a whole number of blocks."""
    joined = np.concatenate(arrays)
    return np.pad(joined, [(0, -len(joined) % BLOCK)] + [(0, 0)] * (joined.ndim - 1))


@dataclass
class SavedPrograms:
    """The programs of encoder and decoder, and the bias of scores, of whole blocks."""

    layers: SavedLayers
    encoder: ctypes.Array = field(init=False)
    decoder: ctypes.Array = field(init=False)
    sources: ctypes.Array = field(init=False)  # give keys and values of a source to `readers` attentions
    kept: list = field(init=False)

    def __post_init__(self):
        config, layers, make = self.layers.config, self.layers, ArrayProgramMaker()
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.source_table, self.table = layers.table("encoder"), layers.table("decoder")
        operations: list[Operation] = self.before("encoder", make)
        for number in range(config.encoder_layers):
            layer, make.inner = layers.layer("encoder", number), config.encoder_ffn_dim
            operations += [*make.self_attention(layer), *make.feed_forward(layer)]
        self.encoder = array(operations + self.after("encoder", make))
        sizes, make.inner = (config.d_model, False), config.decoder_ffn_dim
        operations = [make.operation(EMBEDDING, STATES, STATES, sizes, (self.table,), self.scale)]
        operations += self.before("decoder", make)
        for number in range(config.decoder_layers):
            layer = layers.layer("decoder", number)
            operations += [*make.self_attention(layer), *make.source_attention(layer), *make.feed_forward(layer)]
        head = layers.linear("lm_head", tied=self.table)
        operations += [*self.after("decoder", make), make.product((head,), STATES, SCORES, has_bias=False)]
        self.decoder, self.sources, self.kept = array(operations), array(make.sources), make.kept
        self.writers, self.readers = len(make.writers), len(make.readers)
        self.bias = whole_blocks([layers.weights("final_logits_bias")[0].astype(np.float32)])

    def before(self, side: str, make: ArrayProgramMaker) -> list[Operation]:
        has_norm = self.layers.config.layernorm_embedding
        return [make.norm(self.layers.norm(f"model.{side}.layernorm_embedding"), STATES)] if has_norm else []

    def after(self, side: str, make: ArrayProgramMaker) -> list[Operation]:
        has_norm = self.layers.config.normalize_before
        return [make.norm(self.layers.norm(f"model.{side}.layer_norm"), STATES)] if has_norm else []
