"""One repository on the Hub with the code of all architectures, for models whose folders hold no Python files."""

import hashlib
import json
from pathlib import Path
from sys import modules

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, ModelCard
from transformers.dynamic_module_utils import get_relative_import_files

from hf_docmt import __version__, registry
from hf_docmt.hub.upload_files import HANDLER
from hf_docmt.model_card import render
from hf_docmt.modeling.model_support import ACCELERATION, PLAIN_CODE

TAG = "hf-docmt-code"  # in the header of the card of such a repository
UNKNOWN_REVISION = "0" * 40
CODE_SECTION = """
## Code

The Python code of this model is in the repository `{repo}`, at the revision `{revision}`. It is loaded with
`trust_remote_code=True, code_revision="{revision}"`.
"""


def code_files(repo_id: str) -> dict[str, bytes]:
    """Names and contents of the files of the repository: its card, and what the package's architectures are made of."""
    paths = set()
    for architecture in registry.ARCHITECTURES.values():
        if architecture.package == "hf_docmt.modeling":
            for part in (architecture.config_class, architecture.model_class):
                file = modules[part.__module__].__file__
                paths |= {Path(file), *map(Path, get_relative_import_files(file))}
    code = {path.name: path for path in sorted(paths) if path.stem not in ACCELERATION} | {
        "acceleration.py": PLAIN_CODE
    }
    card = render("code_card.md.j2", repo_id=repo_id, version=__version__)
    return {"README.md": card.encode()} | {name: path.read_bytes() for name, path in code.items()}


def push_code(api: HfApi, repo_id: str, private: bool | None = None) -> str:
    """The revision of the repository that has this version's code; it is created or brought up to date in one commit.

    Raises ValueError for a repository that holds something else.
    """
    repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
    current = {file.path: file.blob_id for file in api.list_repo_tree(repo_id, recursive=True) if hasattr(file, "size")}
    current.pop(".gitattributes", None)
    if current and not ("README.md" in current and TAG in (ModelCard.load(repo_id).data.tags or ())):
        raise ValueError(
            f"{repo_id} is there already and holds something else ({min(current)}); give a repository for the code of "
            "hf-docmt alone, or a new name"
        )
    files = code_files(repo_id)
    blob_ids = {  # the names that git gives contents
        name: hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        for name, content in files.items()
    }
    changed = [name for name, blob_id in blob_ids.items() if current.get(name) != blob_id]
    operations = [
        *(CommitOperationAdd(name, files[name]) for name in changed),
        *(CommitOperationDelete(name) for name in sorted(current.keys() - files.keys())),
    ]
    if not operations:
        return api.model_info(repo_id).sha
    return api.create_commit(repo_id, operations, commit_message=f"Code of hf-docmt {__version__}").oid


def config_with_code_repository(path: Path, repo_id: str) -> bytes:
    """The text of a `config.json` whose classes are those of the repository.

    Raises ValueError for a model without code, and for one whose folder has other code than the repository gets.
    """
    config = json.loads(path.read_text("utf-8"))
    if not config.get("auto_map"):
        raise ValueError(f"{path}: the model has no code of its own (auto_map is missing); push it without --code-repo")
    files = code_files(repo_id)
    python = [file for file in path.parent.glob("*.py") if file.name != HANDLER]
    other = [file.name for file in python if files.get(file.name) != file.read_bytes()]
    if other:
        raise ValueError(
            f"{path.parent}: {min(other)} is not the code of this version of hf-docmt, which {repo_id} gets; write the "
            "folder again with docmt export, or push it without --code-repo"
        )
    pipelines = config.get("custom_pipelines", {}).values()
    for classes, name in [(config["auto_map"], name) for name in config["auto_map"]] + [(p, "impl") for p in pipelines]:
        classes[name] = f"{repo_id}--{classes[name].rpartition('--')[2]}"  # as transformers writes other repositories
    return (json.dumps(config, indent=2, ensure_ascii=False) + "\n").encode()


def card_with_code_repository(card: str, repo_id: str, revision: str = UNKNOWN_REVISION) -> str:
    """A model's card whose calls load the code at a revision of the repository."""
    pinned = card.replace("name, trust_remote_code=True", f'name, trust_remote_code=True, code_revision="{revision}"')
    return f"{pinned.rstrip()}\n{CODE_SECTION.format(repo=repo_id, revision=revision)}"
