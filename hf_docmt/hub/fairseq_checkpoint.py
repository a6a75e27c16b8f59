"""Checkpoints of fairseq, read without running what a pickle asks for, and the Transformer in them."""

import argparse
import pickle
import re
from dataclasses import dataclass
from pathlib import Path

import torch

PARTS = "{'args': ..., 'model': ...}"
BUFFERS = ("_float_tensor", ".version", "embed_positions.weights")  # sinusoidal tables and version numbers
# torch's fused encoder layer: fairseq 0.12 saves its eight parameters in addition to those that it trains and reads
FAST_PATH = re.compile(r"encoder\.(context_)?layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)")
REQUIRED = object()


@dataclass(frozen=True)
class FairseqCheckpoint:
    """The arguments of a training, those of task and model in one, and parameters by fairseq's names, in float32."""

    path: Path
    settings: dict[str, object]
    weights: dict[str, torch.Tensor]

    def get(self, name: str, default=REQUIRED):
        """The setting of that name; `ValueError` where it is missing and has no default."""
        value = self.settings.get(name, default)
        if value is REQUIRED:
            raise ValueError(f"{self.path}: its settings have no {name!r}, expected those of a training with fairseq")
        return value

    def flag(self, name: str) -> bool:
        """Whether a setting is there and on."""
        return bool(self.get(name, False))

    def require(self, name: str, allowed, default, remedy: str) -> None:
        """Raise `ValueError` unless a setting has an allowed value."""
        if (value := self.get(name, default)) not in allowed:
            expected = " or ".join(map(repr, allowed))
            raise ValueError(f"{self.path}: {name} is {value!r}, expected {expected}; {remedy}")


def read_checkpoint(path: str | Path) -> FairseqCheckpoint:
    """Read a `.pt` file of fairseq 0.9 to 0.12.

    A `.pt` file is a pickle, which can run code: only tensors, plain values and `argparse.Namespace` are loaded, and a
    file with anything else is refused. Raises ValueError.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: expected a checkpoint of fairseq, a .pt file; the file does not exist")
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError(_refusal(path, str(error))) from error
    except (RuntimeError, EOFError, OSError, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read as a checkpoint ({error}); copy or download it again") from error
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict) or not all(isinstance(weight, torch.Tensor) for weight in model.values()):
        raise ValueError(f"{path}: expected a checkpoint of fairseq with its weights under 'model'; give another file")
    weights = {
        name: weight.float()
        for name, weight in model.items()
        if not (name.endswith(BUFFERS) or FAST_PATH.fullmatch(name))
    }
    return FairseqCheckpoint(path, _settings(path, content), weights)


def _settings(path: Path, content: dict) -> dict[str, object]:
    """`args` of fairseq 0.9, or task and model of the `cfg` of later versions."""
    cfg = content.get("cfg") or {}
    parts = [content.get("args")] if content.get("args") is not None else [cfg.get("task"), cfg.get("model")]
    settings: dict[str, object] = {}
    if not all(part is None or isinstance(part, argparse.Namespace | dict) for part in parts):
        raise ValueError(f"{path}: expected the settings of the training as a Namespace or dict, got {parts!r:.80}")
    for part in parts:
        settings |= vars(part) if isinstance(part, argparse.Namespace) else dict(part or {})
    if not settings:
        raise ValueError(f"{path}: expected the settings of the training under 'args' or 'cfg', found none")
    return settings


def _refusal(path: Path, message: str) -> str:
    match = re.search(r"GLOBAL (\S+)", message)
    what = f"holds {match[1]}" if match else "is not a checkpoint that can be read safely"
    return (
        f"{path}: {what}, expected tensors, plain values and argparse.Namespace alone; what else a pickle holds could "
        f"run code and is not loaded. In the environment that wrote the file save {PARTS} of it, the settings as an "
        "argparse.Namespace of plain values, with torch.save, and convert that."
    )


BOS, PAD, EOS, UNK = range(4)  # the first ids of every dictionary
PLAIN = {  # settings that the backbone has no switch for, with what they have to be
    "no_cross_attention": False,
    "cross_self_attention": False,
    "no_token_positional_embeddings": False,
    "adaptive_softmax_cutoff": None,
    "adaptive_input": False,
    "no_decoder_final_norm": False,
}


class FairseqTransformer:
    """A sentence-level Transformer, `--arch transformer...`.

    Names of parameters are those of fairseq, after `model.`; `renames` are regular expressions with what they become.
    `end`, `separator`: the symbols that end a sequence and separate sentences; `<sep>` is not a symbol of fairseq; its
    row is a copy of that of `separator_row`.
    """

    architecture = "concat"
    renames: tuple[tuple[str, str], ...] = ()
    end, separator = "</s>", "<sep>"
    separator_row = "</s>"
    task_symbols: tuple[str, ...] = ()  # symbols that the task adds to both dictionaries
    search: dict[str, float] = {"num_beams": 5, "early_stopping": True, "min_new_tokens": 1}  # of fairseq-generate

    def __init__(self, checkpoint: FairseqCheckpoint):
        self.checkpoint = checkpoint
        for name, value in PLAIN.items():
            checkpoint.require(name, (value, None), value, "this package has no model of that kind")
        for name in ("embed_dim", "normalize_before", "learned_pos"):
            default = False if name != "embed_dim" else checkpoint.get("encoder_embed_dim")
            expected = checkpoint.get(f"encoder_{name}", default)
            checkpoint.require(f"decoder_{name}", (expected,), default, "both sides have to agree")

    def fields(self) -> dict:
        """The fields of the configuration, without vocabulary and special tokens."""
        get, flag, sides = self.checkpoint.get, self.checkpoint.flag, ("encoder", "decoder")
        shared = flag("share_all_embeddings")
        source, target = (get(f"max_{side}_positions", None) or 1024 for side in ("source", "target"))
        if source != target and flag("encoder_learned_pos"):
            raise ValueError(
                f"{self.checkpoint.path}: learned positions for {source} source and {target} target tokens, expected "
                "one number; this package has no model of that kind"
            )
        return {
            "d_model": get("encoder_embed_dim"),
            **{f"{side}_{name}": get(f"{side}_{name}") for side in sides for name in ("layers", "attention_heads")},
            **{f"{side}_ffn_dim": get(f"{side}_ffn_embed_dim") for side in sides},
            "dropout": get("dropout", 0.1),
            "attention_dropout": get("attention_dropout", 0.0),
            "activation_dropout": get("activation_dropout", None) or get("relu_dropout", 0.0) or 0.0,
            "activation_function": get("activation_fn", "relu"),
            "normalize_before": flag("encoder_normalize_before"),
            "layernorm_embedding": flag("layernorm_embedding"),
            "scale_embedding": not flag("no_scale_embedding"),
            "position_type": "learned" if flag("encoder_learned_pos") else "sinusoidal_t2t",
            "position_offset": PAD + 1,
            "max_position_embeddings": max(source, target),
            "share_encoder_decoder_embeddings": shared,
            "tie_word_embeddings": shared or flag("share_decoder_input_output_embed"),
        }

    def named_weights(self, config) -> dict[str, torch.Tensor]:
        """The parameters by the names of this package, token embeddings unchanged.

        It has both names of a tied table.
        """
        weights = {}
        for name, weight in self.checkpoint.weights.items():
            for pattern, replacement in self.renames:
                name = re.sub(f"^{pattern}", replacement, name)
            weights[f"model.{name}"] = weight
        for old in ("model.decoder.output_projection.weight", "model.decoder.embed_out"):
            if old in weights:
                weights["lm_head.weight"] = weights.pop(old)
        if config.tie_word_embeddings:
            weights["lm_head.weight"] = weights["model.decoder.embed_tokens.weight"]
        if config.has_shared_table:
            weights["model.shared.weight"] = weights["model.encoder.embed_tokens.weight"]
        return weights

    def rows_of(self, side: str) -> int:
        """Rows of the embedding table of a side, `encoder` or `decoder`."""
        name = f"{side}.embed_tokens.weight"
        if name not in self.checkpoint.weights:
            raise ValueError(f"{self.checkpoint.path}: the weights have no {name}, expected those of a Transformer")
        return len(self.checkpoint.weights[name])
