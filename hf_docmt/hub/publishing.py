"""Upload of a finished folder to the Hub."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from huggingface_hub import CommitOperationAdd, HfApi, ModelCard
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import validate_repo_id
from yaml import YAMLError

from hf_docmt.hub.cards import UNKNOWN_LICENSE
from hf_docmt.hub.upload_files import UploadFile, is_adapter, upload_files
from hf_docmt.loading.model_card import HUB_NAME, PLACEHOLDER
from hf_docmt.messages import first_line

# what huggingface_hub raises where there is no network: of httpx up to its 1.x, of httpx2 from 2.0 on
CONNECTION_ERRORS = tuple(base for base in HfHubHTTPError.__bases__ if base is not OSError)


def push_model(
    folder: str | os.PathLike,
    repo_id: str,
    *,
    private: bool | None = None,
    revision: str | None = None,
    create_pr: bool = False,
    include: Sequence[str] = (),
    license: str | bool | None = None,
) -> str:
    """Upload a folder that `export_model` wrote to the Hub in one commit; returns the commit's or pull request's URL.

    A card that has a placeholder for the model's name gets `repo_id` there. The repository is created if needed;
    `private` None is the account's default. `revision` is a branch, created if needed. With `create_pr` the files
    become a pull request. The token is huggingface_hub's: `hf auth login`, or the variable HF_TOKEN. What goes up is
    what exports write, and what patterns of `include` name (see `upload_files`). `license` is written into the card;
    False: a card without one may go up, which else is refused.

    Raises ValueError before anything is sent for what `planned_upload` refuses, and for a private upload to a
    repository that is public; and for what the Hub refuses, such as a missing token.

    >>> push_model("runs/hub", "someone/concat", private=True)  # doctest: +SKIP
    'https://huggingface.co/someone/concat/commit/4b5f...'
    """
    files = planned_upload(folder, repo_id, revision=revision, create_pr=create_pr, include=include, license=license)
    api = HfApi(library_name="hf-docmt")
    with _refusals_in_one_line(repo_id):
        repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
        if private and not api.model_info(repo_id).private:
            raise ValueError(f"{repo_id} exists and is public; make it private on its page, or use another name")
        if revision is not None:
            api.create_branch(repo_id, branch=revision, exist_ok=True)
        operations = [CommitOperationAdd(file.path_in_repo, file.content) for file in files]
        commit = api.create_commit(
            repo_id, operations, commit_message="Upload model", revision=revision, create_pr=create_pr
        )
    return str(commit.pr_url or commit.commit_url)


def planned_upload(
    folder: str | os.PathLike,
    repo_id: str,
    *,
    revision: str | None = None,
    create_pr: bool = False,
    include: Sequence[str] = (),
    license: str | bool | None = None,
) -> list[UploadFile]:
    """The files that `push_model` would send; without network access.

    Raises ValueError for a folder or file that must not go up (see `upload_files`), a card whose header huggingface_hub
    cannot read or that is an empty template, an adapter of a model that is not on the Hub, a name that the Hub does not
    allow, and a branch together with a pull request.
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
