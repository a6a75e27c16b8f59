"""Upload of a finished folder to the Hub, its code with it or in one repository for the models of all architectures."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from sys import modules
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, ModelCard
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import validate_repo_id
from transformers.dynamic_module_utils import get_relative_import_files
from yaml import YAMLError

from hf_docmt.hub.cards import UNKNOWN_LICENSE
from hf_docmt.hub.upload_files import HANDLER, UploadFile, is_adapter, upload_files
from hf_docmt.loading import registry
from hf_docmt.loading.model_card import HUB_NAME, PLACEHOLDER, render
from hf_docmt.messages import __version__, first_line

# what huggingface_hub raises where there is no network: of httpx up to its 1.x, of httpx2 from 2.0 on
CONNECTION_ERRORS = tuple(base for base in HfHubHTTPError.__bases__ if base is not OSError)

TAG = "hf-docmt-code"  # in the header of the card of such a repository
UNKNOWN_REVISION = "0" * 40
CODE_SECTION = """
## Code

The Python code of this model is in the repository `{repo}`, at the revision `{revision}`. It is loaded with
`trust_remote_code=True, code_revision="{revision}"`.
"""


class UploadUrl(str):
    """The URL of a commit or pull request, and where the code is in a repository of its own, its revision there."""

    code_revision: str | None = None


def push_model(
    folder: str | os.PathLike,
    repo_id: str,
    *,
    private: bool | None = None,
    revision: str | None = None,
    create_pr: bool = False,
    code_repo: str | None = None,
    include: Sequence[str] = (),
    license: str | bool | None = None,
) -> UploadUrl:
    """Upload a folder that `export_model` wrote to the Hub in one commit; returns the commit's or pull request's URL.

    A card that has a placeholder for the model's name gets `repo_id` there. The repository is created if needed;
    `private` None is the account's default. `revision` is a branch, created if needed. With `create_pr` the files
    become a pull request. The token is huggingface_hub's: `hf auth login`, or the variable HF_TOKEN. What goes up is
    what exports write, and what patterns of `include` name (see `upload_files`). `license` is written into the card;
    False: a card without one may go up, which else is refused.

    With `code_repo`, a name on the Hub, no Python files go up: `config.json` points at this repository, which gets the
    code of all architectures first, unless it has it. The card says at which revision (`code_revision`) to load it.

    Raises ValueError before anything is sent for what `planned_upload` refuses, and for a private upload to a
    repository that is public; and for what the Hub refuses, such as a missing token.

    >>> push_model("runs/hub", "someone/concat", private=True)  # doctest: +SKIP
    'https://huggingface.co/someone/concat/commit/4b5f...'
    """
    options: dict[str, Any] = {"revision": revision, "create_pr": create_pr, "code_repo": code_repo}
    files = planned_upload(folder, repo_id, **options, include=include, license=license)
    api, code_revision = HfApi(library_name="hf-docmt"), None
    if code_repo is not None:
        with _refusals_in_one_line(code_repo):
            code_revision = push_code(api, code_repo, private)
        for number, file in enumerate(files):
            if isinstance(file.content, bytes):  # a file that differs from the folder: the card
                content = file.content.replace(UNKNOWN_REVISION.encode(), code_revision.encode())
                files[number] = replace(file, content=content)
    with _refusals_in_one_line(repo_id):
        repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
        if private and not api.model_info(repo_id).private:
            raise ValueError(
                f"{repo_id} already exists and is public; make it private on its page, or use another name"
            )
        if revision is not None:
            api.create_branch(repo_id, branch=revision, exist_ok=True)
        operations = [CommitOperationAdd(file.path_in_repo, file.content) for file in files]
        commit = api.create_commit(
            repo_id, operations, commit_message="Upload model", revision=revision, create_pr=create_pr
        )
    url = UploadUrl(commit.pr_url or commit.commit_url)
    url.code_revision = code_revision
    return url


def planned_upload(
    folder: str | os.PathLike,
    repo_id: str,
    *,
    revision: str | None = None,
    create_pr: bool = False,
    code_repo: str | None = None,
    include: Sequence[str] = (),
    license: str | bool | None = None,
) -> list[UploadFile]:
    """The files that `push_model` would send; without network access.

    Raises ValueError for a folder or file that must not go up (see `upload_files`), a card whose header huggingface_hub
    cannot read or that is an empty template, an adapter of a model that is not on the Hub, a name that the Hub does not
    allow, and a branch together with a pull request; with `code_repo` for a model whose code is not the package's.
    """
    validate_repo_id(repo_id)
    if create_pr and revision is not None:
        raise ValueError(f"a pull request goes to the main branch, got revision {revision!r}, too: omit one of them")
    files = {file.path_in_repo: file for file in upload_files(folder, include)}
    path = Path(folder, "README.md")
    card = path.read_text("utf-8")
    try:
        parsed = ModelCard(card)
    except (ValueError, TypeError, YAMLError) as error:
        raise ValueError(f"{path}: the header cannot be read: {first_line(error)}") from error
    if "[More Information Needed]" in card:
        raise ValueError(f"{path} is an empty template; describe the model, or write a folder with docmt export")
    if is_adapter(folder):
        base = json.loads(Path(folder, "adapter_config.json").read_text("utf-8")).get("base_model_name_or_path") or ""
        if not HUB_NAME.fullmatch(base) or Path(base).exists():
            raise ValueError(
                f"{folder}: the adapter is of {base!r}, expected a model on the Hub: push it first and write its name "
                "into base_model_name_or_path of adapter_config.json, or merge both with docmt export"
            )
    if license == "":
        raise ValueError("license: got an empty name, expected one of the Hub's, such as apache-2.0")
    if license:
        parsed.data["license"] = license
        row, text = f"| license | {license} |", re.sub(r"^\| license \|.*\n", "", str(parsed), flags=re.MULTILINE)
        card = re.sub(r"^(?=\| layers of encoder)", lambda _: f"{row}\n", text, flags=re.MULTILINE)
    elif license is None and parsed.data.get("license", UNKNOWN_LICENSE) == UNKNOWN_LICENSE:
        raise ValueError(
            f"{path} states no licence, so users have no right to use the model: give --license NAME (that of a model "
            "it was made from binds it, too), or --no-license to push it without"
        )
    card = card.replace(PLACEHOLDER, repo_id)
    if code_repo is not None:
        _check_code_repository(code_repo, repo_id, folder)
        config = config_with_code_repository(Path(folder, "config.json"), code_repo)
        files["config.json"] = replace(files["config.json"], content=config)
        files = {name: file for name, file in files.items() if "/" in name or not name.endswith(".py")}
        call, section = "name, trust_remote_code=True", CODE_SECTION.format(repo=code_repo, revision=UNKNOWN_REVISION)
        card = card.rstrip().replace(call, f'{call}, code_revision="{UNKNOWN_REVISION}"') + f"\n{section}"
    files["README.md"] = replace(files["README.md"], content=card.encode())
    return list(files.values())


@contextmanager
def _refusals_in_one_line(repo_id: str) -> Iterator[None]:
    try:
        yield
    except (HfHubHTTPError, *CONNECTION_ERRORS) as error:
        raise ValueError(
            f"the Hub refused {repo_id}: {first_line(error)}. Check the name, and your token: hf auth whoami"
        ) from error


def _check_code_repository(code_repo: str, repo_id: str, folder: str | os.PathLike) -> None:
    """ValueError for a name that no repository can have, for that of the model, and for a folder without code."""
    if not HUB_NAME.fullmatch(code_repo) or "--" in code_repo:
        raise ValueError(f"--code-repo: got {code_repo!r}, expected the name of a repository on the Hub, owner/name")
    validate_repo_id(code_repo)
    if code_repo == repo_id:
        raise ValueError(f"--code-repo: got the name of the model, {repo_id}; give a repository for code alone")
    if not any(Path(folder).glob("model*.safetensors")):
        kind = "an adapter" if is_adapter(folder) else "an export to another engine"
        raise ValueError(f"{folder}: {kind} has no code; push it without --code-repo")


# Code in a repository of its own


def code_files(repo_id: str) -> dict[str, bytes]:
    """Names and contents of the files of the repository: its card, and what the package's architectures are made of."""
    paths = set()
    for architecture in registry.ARCHITECTURES.values():
        if architecture.package == "hf_docmt.modeling":
            for part in (architecture.config_class, architecture.model_class):
                file = modules[part.__module__].__file__
                paths |= {Path(file), *map(Path, get_relative_import_files(file))}
    card = render("code_card.md.j2", repo_id=repo_id, version=__version__)
    return {"README.md": card.encode()} | {path.name: path.read_bytes() for path in sorted(paths)}


def push_code(api: HfApi, repo_id: str, private: bool | None = None) -> str:
    """The revision of the repository that has this version's code; it is created or brought up to date in one commit.

    Raises ValueError for a repository that holds something else.
    """
    repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
    current = {file.path: file.blob_id for file in api.list_repo_tree(repo_id, recursive=True) if hasattr(file, "size")}
    current.pop(".gitattributes", None)
    if current and not ("README.md" in current and TAG in (ModelCard.load(repo_id).data.tags or ())):
        raise ValueError(
            f"{repo_id} already exists and has other content ({min(current)}); give a repository for the code of "
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
