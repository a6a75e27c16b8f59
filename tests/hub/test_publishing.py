"""Upload of a folder to a double of the Hub: what goes up, what is refused, and where the token is not."""

import json
import logging
import pickle
import re
import shutil

import huggingface_hub
import numpy
import pytest
import torch
from huggingface_hub import HfApi
from support import hub_double
from support.errors import refused
from support.tiny_models import build, word_tokenizer

from hf_docmt.hub.cards import license_of
from hf_docmt.hub.export import export_model
from hf_docmt.hub.publishing import planned_upload, push_model
from hf_docmt.hub.upload_files import left_files

LOOKS_LIKE_A_TOKEN = "hf_" + "a1B2" * 9


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub") / "model"
    return export_model(
        build("concat", past_context=1), word_tokenizer(), folder, repo_id="someone/model", license="mit"
    )


@pytest.fixture
def folder(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "model")


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def uploaded(hub, name="someone/model", revision="main"):
    return {path: text for path, text in hub.repositories[name].files(revision).items() if path != ".gitattributes"}


def test_everything_goes_up_in_one_commit(hub, folder):
    url = push_model(folder, "someone/model", private=True)
    repository = hub.repositories["someone/model"]
    assert uploaded(hub) == contents(folder) and repository.private
    assert url == f"{hub.endpoint}/someone/model/commit/{repository.oid('main')}"
    assert len(repository.commits) == 2  # the Hub's own first one, and this


def test_card_without_a_name_gets_that_of_the_repository(hub, tmp_path):
    """The folder stays as it is."""
    folder = export_model(build("concat", past_context=1), word_tokenizer(), tmp_path / "model", license="mit")
    before = contents(folder)
    push_model(folder, "someone/model")
    assert b'name = "ORGANISATION/MODEL"' in before["README.md"] and contents(folder) == before
    assert b'name = "someone/model"' in uploaded(hub)["README.md"] and b"ORGANISATION" not in uploaded(hub)["README.md"]
    assert uploaded(hub) | {"README.md": b""} == before | {"README.md": b""}


def test_no_commit_without_changes(hub, folder):
    assert push_model(folder, "someone/model") == push_model(folder, "someone/model")
    assert len(hub.repositories["someone/model"].commits) == 2


def test_shards_go_up(hub, folder):
    (folder / "model.safetensors").unlink()
    build("concat", past_context=1).save_pretrained(folder, max_shard_size="4KB")
    shards = sorted(path.name for path in folder.glob("*.safetensors"))
    assert len(shards) > 1
    push_model(folder, "someone/model")
    assert uploaded(hub) == contents(folder) and set(shards) < uploaded(hub).keys()
    (folder / shards[1]).unlink()
    refused(rf"{shards[1]} missing; write the folder with docmt export", planned_upload, folder, "someone/model")


def test_branch_and_pull_request(hub, folder):
    push_model(folder, "someone/model")
    (folder / "README.md").write_text("---\nlicense: mit\n---\n\n# New\n")
    push_model(folder, "someone/model", revision="next")
    url = push_model(folder, "someone/model", create_pr=True)
    assert url == f"{hub.endpoint}/someone/model/discussions/1"
    assert b"# New" not in uploaded(hub)["README.md"]
    assert b"# New" in uploaded(hub, revision="next")["README.md"]
    assert b"# New" in uploaded(hub, revision="refs/pr/1")["README.md"]
    with pytest.raises(ValueError, match="a pull request goes to the main branch, got revision 'next'"):
        push_model(folder, "someone/model", revision="next", create_pr=True)


def test_private_upload_to_a_public_repository_is_refused(hub, folder):
    HfApi(endpoint=hub.endpoint).create_repo("someone/model", private=False)
    with pytest.raises(ValueError, match="someone/model exists and is public; make it private"):
        push_model(folder, "someone/model", private=True)
    assert uploaded(hub) == {}


def test_hub_that_refuses_is_one_line(hub, folder, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(ValueError, match="the Hub refused someone/model: .*401.*hf auth whoami") as refusal:
        push_model(folder, "someone/model")
    assert "\n" not in str(refusal.value)
    assert hub.repositories == {}


def test_no_connection_is_one_line(hub, folder, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    refused("the Hub refused someone/model", push_model, folder, "someone/model")


def write_pickle(path):
    path.write_bytes(pickle.dumps({"a": 1}))


def write_torch(path):
    torch.save({"a": torch.ones(2)}, path)


def write_text(text):
    return lambda path: path.write_text(text)


def write_far_token(path):
    path.write_text("x" * ((1 << 20) - 10) + " " + LOOKS_LIKE_A_TOKEN)


def write_header(path):
    header = json.dumps({"__metadata__": {"note": LOOKS_LIKE_A_TOKEN}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)


REFUSED = {
    "pytorch_model.bin": (write_torch, "a pickle"),
    "vocabulary.pkl": (write_text("(dp0\n."), "a pickle"),
    "extra.dat": (write_pickle, "a pickle"),
    "WEIGHTS.PT": (write_text("x"), "a pickle"),
    "objects.npy": (lambda path: numpy.save(path, numpy.array([{}])), "a pickle"),
    "checkpoint-10/optimizer.pt": (write_torch, "a state of training"),
    "rng_state_0.pth": (write_torch, "a state of training"),
    "training_args.bin": (write_torch, "a state of training"),
    "optimizer.safetensors": (write_header, "a state of training"),
    ".env": (write_text("A=1"), "a file of secrets"),
    ".ENV": (write_text("A=1"), "a file of secrets"),
    "keys/server.pem": (write_text("A"), "a file of secrets"),
    "notes.txt": (write_text(f"token: {LOOKS_LIKE_A_TOKEN}"), "a token of the Hub"),
    "long.txt": (write_far_token, "a token of the Hub"),
    "header.safetensors": (write_header, "a token of the Hub"),
    "recipe.yaml": (write_text("path: https://me:" + "geheim@example.org/data"), "a URL with a password"),
    "aws.txt": (write_text("AKIA" + "A1B2" * 4), "an AWS key"),
    "key.txt": (write_text("-----BEGIN RSA " + "PRIVATE KEY-----"), "a private key"),
    "events.out.tfevents.1": (write_text("\0\1 " + hub_double.TOKEN), "token"),
    "run.json": (write_text('{"key": "0123456789abcdef0123"}'), "the value of TRACKER_API_KEY"),
    "fields.npy": (lambda path: numpy.save(path, numpy.zeros(2, [("a", "O")])), "a pickle"),
    "utf16.txt": (lambda path: path.write_text(f"token: {LOOKS_LIKE_A_TOKEN}", "utf-16"), "a token of the Hub"),
    **dict.fromkeys(
        (".aws/credentials", "credentials", "prod.env", ".npmrc", ".ssh/config", "client_secret.json", "a.kdbx"),
        (write_text("A"), "a file of secrets"),
    ),
    **dict.fromkeys(
        ("env.production", "service-account.json", "id_rsa.bak", "token.txt", "hub_token", "api-key.txt", "auth.json"),
        (write_text("A"), "a file of secrets"),
    ),
}


def test_files_that_must_not_be_uploaded(hub, folder, monkeypatch):
    """It stays unasked, and is refused where it is asked for."""
    monkeypatch.setenv("TRACKER_API_KEY", "0123456789abcdef0123")
    before = set(contents(folder))
    for name, (write, _) in REFUSED.items():
        (folder / name).parent.mkdir(exist_ok=True)
        write(folder / name)
    assert {file.path_in_repo for file in planned_upload(folder, "someone/model")} == before
    assert left_files(folder) == sorted(REFUSED)
    for name, (_, reason) in REFUSED.items():
        with pytest.raises(ValueError, match=rf"not to be published: {name} \(.*{reason}") as refusal:
            push_model(folder, "someone/model", include=[name])
        assert not any(secret in str(refusal.value) for secret in (LOOKS_LIKE_A_TOKEN, hub_double.TOKEN, "0123456789"))
    assert hub.requests == []


def test_a_licence_is_stated_or_given_up(hub, tmp_path, run):
    """A later export of the folder states what its card does."""
    folder = export_model(build("concat", past_context=1), word_tokenizer(), tmp_path / "model")
    arguments = ("push", folder, "someone/model")
    for options, message in (
        ((), "README.md states no licence.*--license NAME.*or --no-license"),
        (("--license", "mit", "--no-license"), "--license and --no-license; give one"),
    ):
        code, _, err = run(*arguments, *options)
        assert code == 1 and re.search(message, err) and hub.requests == []
    assert run(*arguments, "--no-license")[0] == 0 and b"license: unknown" in uploaded(hub)["README.md"]
    assert run(*arguments, "--license", "cc-by-nc-4.0")[0] == 0
    card = uploaded(hub)["README.md"]
    assert (
        b"license: cc-by-nc-4.0" in card
        and b"| license | cc-by-nc-4.0 |" in card
        and license_of(folder) is None
        and license_of(tmp_path) is None
    )
    (folder / "README.md").write_bytes(card)
    assert license_of(folder) == "cc-by-nc-4.0"
    assert run("export", folder, tmp_path / "again")[0] == 0 and license_of(tmp_path / "again") == "cc-by-nc-4.0"


def test_all_refusals_are_named_at_once(folder):
    (folder / "a.pkl").write_text("")
    (folder / ".netrc").write_text("")
    (folder / "weights").symlink_to("/etc/hostname")
    with pytest.raises(ValueError, match=r"\.netrc \(.*a\.pkl \(.*weights \(a link to /etc/hostname\)"):
        planned_upload(folder, "someone/model", include=["*"])


def test_secrets_in_uploaded_files(folder):
    with (folder / "README.md").open("a") as card:
        card.write(LOOKS_LIKE_A_TOKEN)
    refused(r"not to be published: README.md \(holds a token of the Hub\)", planned_upload, folder, "someone/model")


def test_code_that_the_model_does_not_need_stays(folder):
    (folder / "train.py").write_text("import torch\n")
    assert left_files(folder) == ["train.py"]


def test_harmless_lookalikes_of_secrets(folder, monkeypatch):
    """Names of Slovak models, and of a tokenizer in the environment; raw numbers are no pickle."""
    monkeypatch.setenv("TOKENIZER_NAME", "Helsinki-NLP/opus-mt-sk-cs")
    with (folder / "README.md").open("a") as card:
        card.write("Made of Helsinki-NLP/opus-mt-sk-cs-concat-4-sentences-past-context-v2.\n")
    (folder / "numbers.dat").write_bytes(b"\x8e" + b"\x01" * 8 + b"x")
    assert planned_upload(folder, "someone/model", include=["numbers.dat"])


def test_a_folder_of_another_engine_goes_up(hub, folder):
    """As docmt export writes it, whole, without other weights."""
    (folder / "model.safetensors").unlink()
    *names, last = [f"ctranslate2/{name}" for name in ("config.json", "model.bin", "shared_vocabulary.json")]
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"{}")
    refused(rf": {last} missing; write the folder with docmt", planned_upload, folder, "someone/model")
    (folder / last).write_bytes(b"[]")
    push_model(folder, "someone/model")
    assert uploaded(hub) == contents(folder) and last in uploaded(hub) and left_files(folder) == []


def test_folder_of_git_stays_here(hub, folder):
    before = contents(folder)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text(LOOKS_LIKE_A_TOKEN)
    push_model(folder, "someone/model")
    assert uploaded(hub) == before


def test_unfinished_folders(folder, tmp_path):
    refused("nowhere: no such folder", planned_upload, tmp_path / "nowhere", "someone/model")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="README.md, config.json, tokenizer_config.json, model.safetensors missing"):
        planned_upload(tmp_path / "empty", "someone/model")
    refused("bad name", planned_upload, folder, "bad name/with/parts")
    (folder / "README.md").write_text("---\nlanguage: [en\n---\n")
    refused("README.md: the header cannot be read", planned_upload, folder, "someone/model")


def test_command(hub, folder, run):
    code, out, _ = run("push", folder, "someone/model", "--dry-run")
    assert code == 0 and hub.requests == []
    lines = out.splitlines()
    assert [line.split()[-1] for line in lines[:-1]] == sorted(contents(folder))
    total = sum(map(len, contents(folder).values()))
    assert lines[-1].split()[0] == f"{total:,}" and lines[-1].endswith("to someone/model; nothing was sent")
    code, out, _ = run("push", folder, "someone/model", "--revision", "v2")
    assert code == 0 and out == f"{hub.endpoint}/someone/model/commit/{hub.repositories['someone/model'].oid('v2')}\n"
    (folder / "optimizer.pt").write_text("")
    code, out, err = run("push", folder, "someone/model", "--include", "*.pt")
    assert (code, out) == (1, "") and "optimizer.pt (a state of training)" in err and len(err.splitlines()) == 1


def test_included_files(hub, folder, run):
    """The dry run lists what goes up, and names what does not."""
    for name in ("pictures/a.png", "pictures/b.svg", "notes.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("A")
    arguments = ("push", folder, "someone/model", "--include", "pictures/*.png")
    code, out, err = run(*arguments, "--dry-run")
    assert code == 0 and hub.requests == []
    assert err == "not uploaded: notes.txt, pictures/b.svg; add files of the model with --include\n"
    planned = [line.split()[-1] for line in out.splitlines()[:-1]]
    assert run(*arguments)[2] == err and sorted(uploaded(hub)) == planned and "pictures/a.png" in planned
    code, _, err = run("push", folder, "someone/model", "--include", "*.jpg")
    assert code == 1 and "--include '*.jpg': no file of" in err


def test_the_token_is_nowhere(hub, folder, tmp_path, caplog, capfd):
    with caplog.at_level(logging.DEBUG):
        push_model(folder, "someone/model")
    assert any(authorized for *_, authorized in hub.requests)
    out, err = capfd.readouterr()
    assert hub_double.TOKEN not in caplog.text + out + err
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()] + list(uploaded(hub).values())
    assert not any(hub_double.TOKEN.encode() in text for text in kept)
