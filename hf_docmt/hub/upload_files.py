"""What of a folder goes to the Hub, and what must not: secrets, pickles, states of training, half a model."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import constants, get_token
from huggingface_hub.utils import DEFAULT_IGNORE_PATTERNS, filter_repo_objects

MODEL_FILES = ("README.md", "config.json", "tokenizer_config.json")
ADAPTER_FILES = ("README.md", "adapter_config.json", "adapter_model.safetensors")
CTRANSLATE2_FILES = ("ctranslate2/config.json", "ctranslate2/model.bin", "ctranslate2/shared_vocabulary.json")
PICKLES = (".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".distcp")
STATES = ("optimizer", "scheduler", "rng_state", "scaler", "training_args")
SECRET_FILES = re.compile(
    r"\.env(\..*)?|\.netrc|\.git-credentials|\.pypirc|id_(rsa|dsa|ecdsa|ed25519)|.*\.(pem|key|p12|pfx)"
)
SECRETS = {  # what it is -> what it looks like
    "a token of the Hub": rb"\bhf_[A-Za-z0-9]{30,}|\bapi_org_[A-Za-z0-9]{30,}",
    "an AWS key": rb"\b(AKIA|ASIA)[0-9A-Z]{16}\b",
    "a GitHub token": rb"\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_[A-Za-z0-9_]{40,}",
    "an API key": rb"\bsk-[A-Za-z0-9_-]{32,}|\bAIza[0-9A-Za-z_-]{35}",
    "a Slack token": rb"\bxox[abprs]-[A-Za-z0-9-]{20,}",
    "a private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "an address with a password": rb"\b[a-z][a-z0-9+]{1,9}://[^\s/:@\"'<>]+:[^\s/:@\"'<>]+@",
}
SECRET_VARIABLES = re.compile(r"(?i).*(token|secret|password|api_key)")
CHUNK, OVERLAP, MAX_HEADER = 1 << 20, 1 << 10, 100_000_000  # bytes; the last is the format's own limit


@dataclass(frozen=True)
class UploadFile:
    """A file that goes up: its path in the repository, and where it is or what it holds."""

    path_in_repo: str
    content: Path | bytes

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size


def upload_files(folder: str | os.PathLike) -> list[UploadFile]:
    """The files of a complete model or adapter folder that go to the Hub, sorted; `.git` and the Hub's cache stay.

    Raises ValueError, with all that is wrong, for a folder that is not complete (card, configuration, weights with all
    their shards, tokenizer), and for files that must not go there: secrets (by name, by what they look like, and what
    tokens and passwords of the environment they hold), pickles, states of optimizers and trainers, links.

    >>> [file.path_in_repo for file in upload_files("runs/hub")][:2]
    ['README.md', 'decoding.py']
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder; give one that docmt export wrote")
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    names = sorted(filter_repo_objects(found, ignore_patterns=DEFAULT_IGNORE_PATTERNS))
    missing = _missing(folder)
    if missing:
        raise ValueError(f"{folder}: {', '.join(missing)} missing; write the folder with docmt export first")
    refused = [f"{name} ({reason})" for name in names if (reason := _reason_against(folder / name))]
    if refused:
        raise ValueError(
            f"{folder}: not to be published: {'; '.join(refused)}. Take these files out, or write a clean folder with "
            "docmt export"
        )
    return [UploadFile(name, folder / name) for name in names]


def is_adapter(folder: str | os.PathLike) -> bool:
    """Whether a folder holds an adapter (LoRA and the like) in place of a model."""
    return (Path(folder) / "adapter_config.json").is_file() and not any(Path(folder).glob("model*.safetensors"))


def _missing(folder: Path) -> list[str]:
    """Names of files that a complete folder has and this one has not."""
    missing = [name for name in (ADAPTER_FILES if is_adapter(folder) else MODEL_FILES) if not (folder / name).is_file()]
    index, whole = folder / constants.SAFETENSORS_INDEX_FILE, folder / constants.SAFETENSORS_SINGLE_FILE
    if is_adapter(folder) or whole.is_file():
        return missing
    if not index.is_file():
        weights = CTRANSLATE2_FILES if (folder / "ctranslate2").is_dir() else [whole.name]
        return missing + [name for name in weights if not (folder / name).is_file()]
    shards = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
    return missing + sorted(name for name in shards if not (folder / name).is_file())


def _reason_against(path: Path) -> str | None:
    """Why a file must not be published; None where it may."""
    if path.is_symlink():
        return f"a link to {path.readlink()}"
    name = path.name.lower()
    if SECRET_FILES.fullmatch(name):
        return "a file of secrets by its name"
    if name.startswith(STATES):
        return "a state of training"
    if name.endswith(PICKLES) or _is_pickle(path):
        return "a pickle, which can run code where it is loaded"
    for secret, pattern in _secrets().items():
        if any(re.search(pattern, part) for part in _parts(path)):
            return f"holds {secret}"
    return None


def _is_pickle(path: Path) -> bool:
    """By its first bytes: a pickle of protocol 2 to 5, the zip archive of torch.save, or NumPy's array of objects."""
    with path.open("rb") as file:
        start = file.read(256)
    archive = start[:4] == b"PK\x03\x04" and b"data.pkl" in start
    objects = start[:6] == b"\x93NUMPY" and b"'descr': '|O'" in start
    return re.match(rb"\x80[\x02-\x05]", start) is not None or archive or objects


def _secrets() -> dict[str, bytes]:
    """The patterns of secrets, those of this process among them: what is in the environment, and the Hub's token."""
    values = {name: value for name, value in os.environ.items() if SECRET_VARIABLES.match(name) and len(value) >= 12}
    own = {f"the value of {name}": re.escape(value.encode()) for name, value in values.items()}
    token = get_token()
    return SECRETS | own | ({"your token of the Hub": re.escape(token.encode())} if token else {})


def _parts(path: Path) -> Iterator[bytes]:
    """The text of a file in parts that overlap; of safetensors the header alone, the rest are numbers."""
    with path.open("rb") as file:
        if path.suffix == ".safetensors":
            yield file.read(min(int.from_bytes(file.read(8), "little"), MAX_HEADER))
            return
        end = b""
        while part := file.read(CHUNK):
            yield end + part
            end = part[-OVERLAP:]
