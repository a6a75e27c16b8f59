"""Files of a folder that go to the Hub, and those that must not: secrets, pickles, training states, half a model."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from huggingface_hub import constants, get_token
from huggingface_hub.utils import DEFAULT_IGNORE_PATTERNS, filter_repo_objects
from transformers.dynamic_module_utils import get_relative_import_files

HANDLER = "handler.py"  # of Inference Endpoints
MODEL_FILES = ("README.md", "config.json", "tokenizer_config.json")
ADAPTER_FILES = ("README.md", "adapter_config.json", "adapter_model.safetensors")
CTRANSLATE2_FILES = ("ctranslate2/config.json", "ctranslate2/model.bin", "ctranslate2/shared_vocabulary.json")
WRITTEN_FILES = (  # by docmt export, save_pretrained and peft, and by hand for a Hub page
    *MODEL_FILES, *ADAPTER_FILES, *CTRANSLATE2_FILES, "ctranslate2/*_vocabulary.json", "ctranslate2/*_vocabulary.txt",
    "LICENSE", "LICENSE.txt", "LICENSE.md", "NOTICE", ".gitattributes", "generation_config.json", HANDLER,
    "model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json",
    "tokenizer.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "vocab.json",
    "target_vocab.json", "vocab.txt", "merges.txt", "*.spm", "*.bpe.model", "spiece.model", "tokenizer.model",
)  # fmt: skip
PICKLES = (".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".distcp")
STATES = ("optimizer", "scheduler", "rng_state", "scaler", "training_args")
SECRET_FILES = re.compile(  # in addition to all whose name, or folder's, begins with a dot
    r".*\.env(\..*)?|env\.(local|dev|development|prod|production|test)|_netrc|id_(rsa|dsa|ecdsa|ed25519)(\..*)?|"
    r".*\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc|gpg|tfstate)|(.*[_-])?service[_-]?account.*\.json|"
    r"(.*[_.-])?(credentials?|secrets?|passwords?|token|auth|api[_-]?keys?|htpasswd|kubeconfig|rclone)(\.[a-z]+)?"
)
SECRETS = {  # name -> pattern
    "a token of the Hub": rb"\bhf_[A-Za-z0-9]{30,}|\bapi_org_[A-Za-z0-9]{30,}",
    "an AWS key": rb"\b(AKIA|ASIA)[0-9A-Z]{16}\b",
    "a GitHub token": rb"\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_[A-Za-z0-9_]{40,}",
    "an API key": rb"(?<![\w-])sk-(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{32,}|\bAIza[0-9A-Za-z_-]{35}",
    "a Slack token": rb"\bxox[abprs]-[A-Za-z0-9-]{20,}",
    "a private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a URL with a password": rb"\b[a-z][a-z0-9+]{1,9}://[^\s/:@\"'<>]+:[^\s/:@\"'<>]+@",
}
SECRET_VARIABLES = re.compile(r"(?i)(.*[_-])?(token|secret|password|api_key)s?([_-]?\d+)?")
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


def upload_files(folder: str | os.PathLike, include: Sequence[str] = ()) -> list[UploadFile]:
    """The files of a complete model or adapter folder that go to the Hub, sorted.

    They are those that `docmt export`, `save_pretrained` and peft write, with the Python files that `auto_map` needs,
    and what the patterns of `include` name (`*` stands for folders, too). All others stay; see `left_files`.

    Raises ValueError, with all that is wrong, for a folder that is not complete (card, configuration, weights with all
    their shards, tokenizer), for a pattern that no file has, and for files that must not go there: secrets (by name, by
    what they look like, and what tokens and passwords of the environment they hold), pickles, states of optimizers and
    trainers, links.

    >>> [file.path_in_repo for file in upload_files("runs/hub")][:2]
    ['README.md', 'acceleration.py']
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder; give one that docmt export wrote")
    missing = _missing(folder)
    if missing:
        raise ValueError(f"{folder}: {', '.join(missing)} missing; write the folder with docmt export first")
    everything = _file_names(folder)
    for pattern in include:
        if not list(filter_repo_objects(everything, allow_patterns=pattern)):
            raise ValueError(f"--include {pattern!r}: no file of {folder} has this name; omit it, or correct it")
    names = _upload_names(folder, everything, include)
    refused = [f"{name} ({reason})" for name in names if (reason := _reason_against(folder, name))]
    if refused:
        raise ValueError(
            f"{folder}: not to be published: {'; '.join(refused)}. Take these files out, or write a clean folder with "
            "docmt export"
        )
    return [UploadFile(name, folder / name) for name in names]


def left_files(folder: str | os.PathLike, include: Sequence[str] = ()) -> list[str]:
    """Names of the files that `upload_files` leaves where they are, without those of git and the Hub's cache."""
    everything = _file_names(Path(folder))
    return sorted(set(everything) - set(_upload_names(Path(folder), everything, include)))


def is_adapter(folder: str | os.PathLike) -> bool:
    """Whether a folder holds an adapter (such as LoRA) instead of a model."""
    return (Path(folder) / "adapter_config.json").is_file() and not any(Path(folder).glob("model*.safetensors"))


def _file_names(folder: Path) -> list[str]:
    """The files of a folder, sorted; `.git` and the Hub's cache are not looked at."""
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    return sorted(filter_repo_objects(paths, ignore_patterns=DEFAULT_IGNORE_PATTERNS))


def _upload_names(folder: Path, everything: list[str], include: Sequence[str]) -> list[str]:
    patterns = [*WRITTEN_FILES, *_code_names(folder)]
    names = {
        name
        for name in everything
        for pattern in patterns  # whose `*` stands for characters, but not for folders
        if name.count("/") == pattern.count("/") and PurePath(name).match(pattern)
    }
    if include:
        names.update(filter_repo_objects(everything, allow_patterns=list(include)))
    return sorted(names)


def _code_names(folder: Path) -> set[str]:
    """The Python files that a folder's classes are loaded from: what its configurations name, and what that imports."""
    references = ""
    for path in (folder / "config.json", folder / "tokenizer_config.json"):
        if path.is_file():
            config = json.loads(path.read_text("utf-8"))
            references += json.dumps([config.get(name) for name in ("auto_map", "custom_pipelines")])
    modules = {folder / f"{name}.py" for name in re.findall(r'"(\w+)\.\w+"', references)}  # module.Class
    files = [file for file in modules if file.is_file()]
    return {Path(path).name for file in files for path in (file, *get_relative_import_files(file))}


def _missing(folder: Path) -> list[str]:
    """Names of files that a complete folder has and this one has not."""
    missing = [name for name in (ADAPTER_FILES if is_adapter(folder) else MODEL_FILES) if not (folder / name).is_file()]
    index, whole = folder / constants.SAFETENSORS_INDEX_FILE, folder / constants.SAFETENSORS_SINGLE_FILE
    if is_adapter(folder) or whole.is_file():
        return missing
    weights: Sequence[str] = [whole.name]
    if index.is_file():
        weights = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    elif (folder / "ctranslate2").is_dir():
        weights = CTRANSLATE2_FILES
    return missing + [name for name in weights if not (folder / name).is_file()]


def _reason_against(folder: Path, name_in_folder: str) -> str | None:
    """Why a file must not be published; None where it may."""
    path = folder / name_in_folder
    if path.is_symlink():
        return f"a link to {path.readlink()}"
    name = path.name.lower()
    is_hidden = any(part.startswith(".") for part in name_in_folder.split("/")) and name != ".gitattributes"
    if is_hidden or SECRET_FILES.fullmatch(name):
        return "a file of secrets by its name"
    if name.startswith(STATES):
        return "a state of training"
    if name.endswith(PICKLES) or _is_pickle(path):
        return "a pickle, which can run code where it is loaded"
    for secret, pattern in _secrets().items():
        if any(re.search(pattern, text) for part in _parts(path) for text in {part, part.replace(b"\0", b"")}):
            return f"holds {secret}"
    return None


def _is_pickle(path: Path) -> bool:
    """By its content: a pickle of protocol 2 or later, the zip archive of torch.save, or NumPy's array of objects."""
    with path.open("rb") as file:
        start = file.read(256)
        archive = start[:4] == b"PK\x03\x04" and b"data.pkl" in start
        objects = start[:6] == b"\x93NUMPY" and b"'|O'" in start
    return archive or objects or re.match(rb"\x80[\x02-\x05]", start) is not None


def _secrets() -> dict[str, bytes]:
    """The patterns of secrets, those of this process among them: what is in the environment, and the Hub's token."""
    values = {
        name: value for name, value in os.environ.items() if SECRET_VARIABLES.fullmatch(name) and len(value) >= 12
    }
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
