"""Upload of a finished folder to the Hub."""

import json
import os
from pathlib import Path

from huggingface_hub import CommitOperationAdd, HfApi, ModelCard
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import validate_repo_id
from yaml import YAMLError

from hf_docmt.hub.upload_files import UploadFile, is_adapter, upload_files
from hf_docmt.messages import first_line
from hf_docmt.model_card import HUB_NAME, PLACEHOLDER

# what huggingface_hub raises where there is no network: of httpx up to its 1.x, of httpx2 from 2.0 on
CONNECTION_ERRORS = tuple(base for base in HfHubHTTPError.__bases__ if base is not OSError)


def push_model(
    folder: str | os.PathLike,
    repo_id: str,
    *,
    private: bool | None = None,
    revision: str | None = None,
    create_pr: bool = False,
) -> str:
    """Upload a folder that `export_model` wrote to the Hub in one commit; returns the commit's or pull request's URL.

    A card that has a placeholder for the model's name gets `repo_id` there. The repository is created if needed;
    `private` None is the account's default. `revision` is a branch, created if needed. With `create_pr` the files
    become a pull request. The token is huggingface_hub's: `hf auth login`, or the variable HF_TOKEN. Files that were
    not checked (see `upload_files`) are never sent.

    Raises ValueError before anything is sent for what `planned_upload` refuses, and for a private upload to a
    repository that is public; and for what the Hub refuses, such as a missing token.

    >>> push_model("runs/hub", "someone/concat", private=True)  # doctest: +SKIP
    'https://huggingface.co/someone/concat/commit/4b5f...'
    """
    files = planned_upload(folder, repo_id, revision=revision, create_pr=create_pr)
    api = HfApi(library_name="hf-docmt")
    try:
        repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
        if private and not api.model_info(repo_id).private:
            raise ValueError(
                f"{repo_id} is there already and public; make it private on its page, or take another name"
            )
        if revision is not None:
            api.create_branch(repo_id, branch=revision, exist_ok=True)
        commit = api.create_commit(
            repo_id,
            [CommitOperationAdd(file.path_in_repo, _content(file, repo_id)) for file in files],
            commit_message="Upload model",
            revision=revision,
            create_pr=create_pr,
        )
    except (HfHubHTTPError, *CONNECTION_ERRORS) as error:
        raise ValueError(
            f"the Hub did not take {repo_id}: {first_line(error)}. Check the name, and your token: hf auth whoami"
        ) from error
    return commit.pr_url or commit.commit_url


def planned_upload(
    folder: str | os.PathLike, repo_id: str, *, revision: str | None = None, create_pr: bool = False
) -> list[UploadFile]:
    """The files that `push_model` would send; asks nothing of the network.

    Raises ValueError for a folder or file that must not go up (see `upload_files`), a card whose header huggingface_hub
    cannot read or that is an empty template, an adapter of a model that is not on the Hub, a name that the Hub does not
    allow, and a branch together with a pull request.
    """
    validate_repo_id(repo_id)
    if create_pr and revision is not None:
        raise ValueError(
            f"a pull request goes to the main branch, got revision {revision!r}, too: leave one of them out"
        )
    files = upload_files(folder)
    card = next(file.path for file in files if file.path_in_repo == "README.md")
    try:
        ModelCard(card.read_text("utf-8"))
    except (ValueError, TypeError, YAMLError) as error:
        raise ValueError(f"{card}: the header cannot be read: {first_line(error)}") from error
    if "[More Information Needed]" in card.read_text("utf-8"):
        raise ValueError(f"{card} is an empty template; write what the model is, or a folder with docmt export")
    if is_adapter(folder):
        _check_base_model(Path(folder))
    return files


def _content(file: UploadFile, repo_id: str) -> Path | bytes:
    """What goes up of a file: the file, or the text of the card with the model's name in place of the placeholder."""
    if file.path_in_repo != "README.md":
        return file.path
    return file.path.read_bytes().replace(PLACEHOLDER.encode(), repo_id.encode())


def _check_base_model(folder: Path) -> None:
    """ValueError for an adapter of a model that others cannot load."""
    base = json.loads((folder / "adapter_config.json").read_text("utf-8")).get("base_model_name_or_path") or ""
    if not HUB_NAME.fullmatch(base) or Path(base).exists():
        raise ValueError(
            f"{folder}: the adapter is of {base!r}, expected a model on the Hub: push it first and write its name "
            "into base_model_name_or_path of adapter_config.json, or merge both with docmt export"
        )
