"""Model files of Marian, `.npz` and `.bin`: parameters and options, and the Transformer that they are of."""

import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import yaml

from hf_docmt.files import check_file

OPTIONS = "special:model.yml"
MAX_OPTIONS = 1 << 16  # bytes of the options
VERSION = 1  # of the binary container; 2 is an encrypted one
MAX_RANK = 8
FLOATS = {0x404: np.dtype("<f4"), 0x402: np.dtype("<f2")}
INTGEMM8 = (0x4101, 0x10001)  # int8, not yet arranged for a processor; the number in Bergamot's Marian and in Marian's
TEXT = 0x101
MULTIPLIERS = "_QuantMultA"  # names of the multipliers of activations ("alphas") end so


@dataclass(frozen=True)
class MarianModel:
    """Options, texts or lists of texts, and parameters by Marian's names, matrices (in, out), in float32."""

    path: Path
    options: dict[str, str | list[str]]
    weights: dict[str, torch.Tensor]


def read_model_file(path: str | Path) -> MarianModel:
    """Read a `.npz` or `.bin` file of Marian, floats or intgemm's int8; multipliers of activations are skipped.

    int8 weights become floats, value over multiplier. ValueError for a file of another
    kind, a damaged one, and one arranged for a single kind of processor.
    """
    path = check_file(path)
    data = path.read_bytes()
    try:
        items = read_archive(data) if data[:2] == b"PK" else read_container(data)
        options = parse_options(items.pop(OPTIONS, None))
    except (ValueError, RuntimeError, struct.error, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path}: not a model file of Marian, or a damaged one ({error}); copy it again") from error
    weights = {}
    for name, values in items.items():
        if values.dtype.kind != "f" or not np.isfinite(values).all():
            raise ValueError(f"{path}: {name} has values that are not finite numbers; copy the file again")
        weights[name] = torch.from_numpy(values.astype(np.float32))
    return MarianModel(path, options, weights)


def parse_options(item: np.ndarray | None) -> dict[str, str | list[str]]:
    """The options, YAML in a text; only texts and lists of texts are kept."""
    if item is None:
        raise ValueError(f"it has no {OPTIONS}")
    text = item.tobytes().rstrip(b"\0")
    if len(text) > MAX_OPTIONS:
        raise ValueError(f"{OPTIONS} has {len(text)} bytes, expected at most {MAX_OPTIONS}")
    try:
        values = yaml.load(text.decode("utf-8"), yaml.BaseLoader)  # every value a text
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{OPTIONS} is not YAML") from error
    if not isinstance(values, dict):
        raise ValueError(f"{OPTIONS} holds no options")
    return {
        name: value
        for name, value in values.items()
        if isinstance(name, str)
        and (isinstance(value, str) or isinstance(value, list) and all(isinstance(one, str) for one in value))
    }


def read_container(data: bytes) -> dict[str, np.ndarray]:
    """The items of a `.bin` file by name: headers, names, shapes, padding, then the data one after the other."""
    file = io.BytesIO(data)

    def take(size: int) -> bytes:
        content = file.read(min(size, len(data)))
        if len(content) < size:
            raise ValueError(f"{size} bytes are announced, {len(content)} are left")
        return content

    version, count = struct.unpack("<2Q", take(16))
    if version != VERSION:
        raise ValueError(f"version {version} of the container, expected {VERSION}")
    headers = list(struct.iter_unpack("<4Q", take(32 * count)))
    names = [take(length).rstrip(b"\0").decode("utf-8") for length, *_ in headers]
    shapes = []
    for name, (_, _, rank, _) in zip(names, headers):
        if rank > MAX_RANK:
            raise ValueError(f"{name} has {rank} dimensions, expected at most {MAX_RANK}")
        shapes.append(struct.unpack(f"<{rank}i", take(4 * rank)))
    take(*struct.unpack("<Q", take(8)))  # padding
    items = {}
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers):
        content = take(size)
        if name in items:
            raise ValueError(f"{name} appears twice")
        if not name.endswith(MULTIPLIERS):
            items[name] = item_values(name, kind, shape, content)
    return items


def item_values(name: str, kind: int, shape: tuple[int, ...], content: bytes) -> np.ndarray:
    """The values of an item in its shape."""
    if any(size < 1 for size in shape):
        raise ValueError(f"{name} has the shape {shape}")
    count, dtype = math.prod(shape), FLOATS.get(kind)
    if kind == TEXT:
        return np.frombuffer(content, np.int8)
    if dtype is None and kind not in INTGEMM8:
        known = ", ".join(f"{number:#x}" for number in (*FLOATS, *INTGEMM8))
        raise ValueError(
            f"{name} is of type {kind:#x}, expected one of {known}; write the model again with marian-conv as float32 "
            "or intgemm8, which fit every processor"
        )
    needed = count * dtype.itemsize if dtype is not None else count + 4
    if needed > len(content):
        raise ValueError(f"{name} of shape {shape} needs {needed} bytes, it has {len(content)}")
    if dtype is not None:
        return np.frombuffer(content[:needed], dtype).reshape(shape)
    return int8_values(name, shape, np.frombuffer(content[:count], np.int8), content[count:needed])


def int8_values(name: str, shape: tuple[int, ...], values: np.ndarray, behind: bytes) -> np.ndarray:
    """int8 values over the multiplier after them; all matrices but embeddings are transposed in the file."""
    (multiplier,) = struct.unpack("<f", behind)
    if not (math.isfinite(multiplier) and multiplier > 0):
        raise ValueError(f"{name} has the multiplier {multiplier}")
    if name.endswith("Wemb") or len(shape) != 2:
        matrix = values.reshape(shape)
    else:
        matrix = values.reshape(shape[::-1]).T
    with np.errstate(over="ignore"):  # too large values are refused later
        return matrix.astype(np.float32) / np.float32(multiplier)


def read_archive(data: bytes) -> dict[str, np.ndarray]:
    """The items of a `.npz` file by name. Its members are not packed, as Marian writes them."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > len(data):
                raise ValueError(f"{member.filename} is packed or encrypted, expected an archive as Marian writes it")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return {name: np.ascontiguousarray(arrays[name]) for name in arrays.files}
    except (MemoryError, KeyError, TypeError, AttributeError, NotImplementedError) as error:  # of damaged headers
        raise ValueError(f"an array is damaged: {error}") from error


ACTIVATIONS = {"relu": "relu", "swish": "silu", "gelu": "quick_gelu"}  # Marian's: those of transformers
PLAIN = {  # options that change what is computed without a parameter of their own, with what they have to be
    "right-left": "false",
    "transformer-pool": "false",
    "transformer-disable-position-embeddings": "false",
    "transformer-attention-mask": "default",
}
NORMS = {  # preprocess, postprocess and postprocess-top, without dropout: whether the norm is before a sublayer
    ("", "an", ""): False,
    ("n", "a", "n"): True,
}
AUTOREGRESSION = {"self-attention": "self_attention", "rnn": "ssru"}
PROJECTIONS = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}


class MarianTransformer:
    """A Transformer of any depth, norms before or after, with a decoder of self-attention or SSRU (Kim et al. 2019).

    ValueError for options and parameters of other models. Guided alignment has no parameters; positions are learned
    where the file has some. Departure: with norms before, Marian's decoder reads keys and values of earlier steps
    without the norm while it decodes step by step; here they are read as in training.
    """

    def __init__(self, model: MarianModel):
        self.model = model
        self.require("type", ("transformer",), None, "of Marian only Transformers are converted")
        autoregression = self.require("transformer-decoder-autoreg", tuple(AUTOREGRESSION), "self-attention")
        self.autoregression = AUTOREGRESSION[autoregression]
        if self.autoregression == "ssru":
            self.require("dec-cell", ("ssru",), None, "of recurrent decoders only those of SSRU are converted")
        for name, value in PLAIN.items():
            self.require(name, (value,), value)
        self.activation = ACTIVATIONS[self.require("transformer-ffn-activation", tuple(ACTIVATIONS), "swish")]
        steps = ("preprocess", "postprocess", "postprocess-top")
        norms = tuple(self.text(f"transformer-{step}").replace("d", "") for step in steps)
        if norms not in NORMS:
            raise ValueError(
                f"{model.path}: transformer-preprocess, -postprocess and -postprocess-top are {norms} without dropout, "
                f"expected {' or '.join(map(str, NORMS))}; this package has no model of that kind"
            )
        self.normalize_before = NORMS[norms]
        emb = self.text("transformer-postprocess-emb").replace("d", "")
        if emb not in ("", "n"):
            raise ValueError(f"{model.path}: transformer-postprocess-emb is {emb!r}, expected '' or 'n'")
        self.layernorm_embedding = emb == "n"
        self.is_tied = "true" in (self.text("tied-embeddings"), self.text("tied-embeddings-all"))
        self.tables = {
            side: self.matrix("Wemb" if "Wemb" in model.weights else f"{side}_Wemb") for side in ("encoder", "decoder")
        }

    def text(self, name: str, default: str = "") -> str:
        """An option, of a list of one its value."""
        value = self.model.options.get(name, default)
        return value if isinstance(value, str) else " ".join(value)

    def require(self, name: str, allowed: tuple, default: str | None, remedy="this package has no model of that kind"):
        """An option that has to have one of these values."""
        value = self.text(name, default or "none")
        if value not in allowed:
            raise ValueError(f"{self.model.path}: {name} is {value!r:.40}, expected {' or '.join(allowed)}; {remedy}")
        return value

    def number(self, name: str) -> int:
        """An option that is a whole number, as many as there are parameters at most."""
        value = self.text(name)
        if not re.fullmatch("[0-9]{1,6}", value) or not int(value):
            raise ValueError(f"{self.model.path}: {name} is {value!r:.40}, expected a whole number from 1")
        return int(value)

    def fields(self) -> dict:
        """The fields of the configuration, without vocabulary and special tokens."""
        d_model, positions = self.tables["encoder"].shape[1], self.model.weights.get("Wpos")
        heads = self.number("transformer-heads")
        if d_model % heads:
            raise ValueError(f"{self.model.path}: transformer-heads is {heads}, expected a divisor of {d_model}")
        is_learned = positions is not None
        return {
            "d_model": d_model,
            "encoder_layers": self.depth("encoder"),
            "decoder_layers": self.depth("decoder"),
            **{f"{side}_attention_heads": heads for side in self.tables},
            **{f"{side}_ffn_dim": self.matrix(f"{side}_l1_ffn_W1").shape[1] for side in self.tables},
            "activation_function": self.activation,
            "dropout": 0.0,  # no file says it; int8 models, which learnt without, lose all they know with some
            "normalize_before": self.normalize_before,
            "layernorm_embedding": self.layernorm_embedding,
            "layer_norm_eps": 1e-6,
            "scale_embedding": not is_learned,
            "position_type": "learned" if is_learned else "sinusoidal_t2t",
            "decoder_autoregression": self.autoregression,
            "share_encoder_decoder_embeddings": self.is_shared,
            "tie_word_embeddings": self.is_tied,
            **({"max_position_embeddings": len(self.matrix("Wpos"))} if is_learned else {}),
        }

    @property
    def is_shared(self) -> bool:
        """Whether source and target have one table."""
        return "Wemb" in self.model.weights

    def depth(self, side: str) -> int:
        """The number of layers; ValueError if parameters are missing."""
        depth = self.number(f"{side[:3]}-depth")
        if depth > len(self.model.weights):
            raise ValueError(f"{self.model.path}: {side[:3]}-depth is {depth}, which the parameters are too few for")
        return depth

    def matrix(self, name: str) -> torch.Tensor:
        """A parameter of two dimensions; ValueError where the file has none."""
        values = self.model.weights.get(name)
        if values is None or values.dim() != 2:
            found = "none" if values is None else tuple(values.shape)
            raise ValueError(f"{self.model.path}: expected a matrix {name}, found {found}; the file is not whole")
        return values

    def named_weights(self, rows: int) -> dict[str, torch.Tensor]:
        """The parameters by the names of this package, tables of tokens padded with zeros to `rows` rows.

        ValueError for parameters that are missing or left over.
        """
        names = dict(self.names())
        tables = {"Wemb", "encoder_Wemb", "decoder_Wemb", "decoder_ff_logit_out_b"}
        tables |= {"decoder_ff_logit_out_W", "decoder_ff_logit_out_Wt", "Wpos"}
        if unknown := sorted(self.model.weights.keys() - names.values() - tables):
            raise ValueError(
                f"{self.model.path}: parameters of no model of this package: {', '.join(unknown[:4])}; only plain "
                "Transformers are converted"
            )
        weights = {}
        for name, marian in names.items():
            values = self.matrix(marian)
            weights[name] = values.T.contiguous() if "_proj." in name or ".fc" in name or "_gate." in name else values
            if name.endswith(".bias") or "norm" in name:
                weights[name] = values.flatten()
        if "Wpos" in self.model.weights:
            weights |= {f"model.{side}.embed_positions.weight": self.matrix("Wpos") for side in self.tables}
        weights |= {f"model.{side}.embed_tokens.weight": padded(table, rows) for side, table in self.tables.items()}
        weights["lm_head.weight"] = padded(self.output_matrix(), rows)
        if self.is_shared and self.is_tied:
            weights["model.shared.weight"] = weights["lm_head.weight"]
        return weights

    def output_matrix(self) -> torch.Tensor:
        """The matrix of the logits (V, D)."""
        if self.is_tied:
            return self.tables["decoder"]
        if "decoder_ff_logit_out_W" in self.model.weights:
            return self.matrix("decoder_ff_logit_out_W").T
        return self.matrix("decoder_ff_logit_out_Wt")

    def output_bias(self) -> torch.Tensor:
        """The bias of the logits (V,), zeros where the file has none."""
        if "decoder_ff_logit_out_b" in self.model.weights:
            return self.matrix("decoder_ff_logit_out_b").flatten()
        return torch.zeros(len(self.output_matrix()))

    def names(self) -> Iterator[tuple[str, str]]:
        """Names of this package and Marian's, one pair for each parameter of a layer or norm."""
        pre = "_pre" if self.normalize_before else ""
        for side in ("encoder", "decoder"):
            if self.layernorm_embedding:
                yield from norm_names(f"model.{side}.layernorm_embedding", f"{side}_emb", "_pre")
            if self.normalize_before:
                yield from norm_names(f"model.{side}.layer_norm", f"{side}_top", "")
            for number in range(self.depth(side)):
                ours, theirs = f"model.{side}.layers.{number}", f"{side}_l{number + 1}"
                if side == "decoder" and self.autoregression == "ssru":
                    yield f"{ours}.self_attn.input_proj.weight", f"{theirs}_rnn_W"
                    yield f"{ours}.self_attn.forget_gate.weight", f"{theirs}_rnn_Wf"
                    yield f"{ours}.self_attn.forget_gate.bias", f"{theirs}_rnn_bf"
                    norm = f"{theirs}_rnn" if pre else f"{theirs}_rnn_ffn"
                    yield from norm_names(f"{ours}.self_attn_layer_norm", norm, pre)
                else:
                    yield from attention_names(f"{ours}.self_attn", f"{theirs}_self", pre)
                if side == "decoder":
                    yield from attention_names(f"{ours}.encoder_attn", f"{theirs}_context", pre)
                for part in "12":
                    yield f"{ours}.fc{part}.weight", f"{theirs}_ffn_W{part}"
                    yield f"{ours}.fc{part}.bias", f"{theirs}_ffn_b{part}"
                yield from norm_names(f"{ours}.final_layer_norm", f"{theirs}_ffn_ffn", pre)


def attention_names(ours: str, theirs: str, suffix: str) -> Iterator[tuple[str, str]]:
    """Names of the parameters of attention and its norm."""
    for letter, projection in PROJECTIONS.items():
        yield f"{ours}.{projection}.weight", f"{theirs}_W{letter}"
        yield f"{ours}.{projection}.bias", f"{theirs}_b{letter}"
    yield from norm_names(f"{ours}_layer_norm", f"{theirs}_Wo", suffix)


def norm_names(ours: str, theirs: str, suffix: str) -> Iterator[tuple[str, str]]:
    """Names of the parameters of a norm, whose name ends so in Marian."""
    yield f"{ours}.weight", f"{theirs}_ln_scale{suffix}"
    yield f"{ours}.bias", f"{theirs}_ln_bias{suffix}"


def padded(table: torch.Tensor, rows: int) -> torch.Tensor:
    """A table (tokens, D) with zeros after it, (rows, D)."""
    return torch.cat([table, table.new_zeros(rows - len(table), table.shape[1])])
