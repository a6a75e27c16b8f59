"""Checkpoints of fairseq: settings and weights, read without running what a pickle asks for."""

import argparse
import pickle
import re
from dataclasses import dataclass
from pathlib import Path

import torch

PARTS = "{'args': ..., 'model': ...}"
BUFFERS = ("_float_tensor", ".version", "embed_positions.weights")  # sinusoidal tables and version numbers
# torch's fused encoder layer: fairseq 0.12 saves its eight parameters beside those that it trains and reads
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
        raise ValueError(f"{path}: expected a checkpoint of fairseq, a .pt file; the file is not there")
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
