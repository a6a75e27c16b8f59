"""What JSON files of a model folder may hold; names that nobody answers for."""

import os
import socket
import subprocess
import sys
import time

import pytest
from support.errors import refused

from hf_docmt.loading import hub_access, model_folders
from hf_docmt.loading.model_files import check_model_files, reading_model
from hf_docmt.systems import kind_of
from hf_docmt.training import info


def test_unusual_fields(tmp_path):
    """Null where a name may be missing, a length without a limit; one line where nothing can be made of a field."""
    (tmp_path / "config.json").write_text('{"model_type": null, "max_length": 1e30, "architectures": null}')
    check_model_files(tmp_path)
    (tmp_path / "config.json").write_text('{"max_length": 1e20}')
    refused("max_length is 1e.20, expected 16777216 at most", check_model_files, tmp_path)


def test_errors_of_libraries_are_one_line():
    for error in (
        Exception("data did not match\nany variant"),
        KeyError("a"),
        RecursionError("deep"),
        OSError("no\nx"),
    ):
        with pytest.raises(ValueError, match="cannot load a model from m: ") as told:
            with reading_model("m"):
                raise error
        assert "\n" not in str(told.value)
    with pytest.raises(KeyboardInterrupt):
        with reading_model("m"):
            raise KeyboardInterrupt


@pytest.fixture
def online(monkeypatch):
    """As without HF_HUB_OFFLINE, which tests have."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for name in hub_access.PROXIES:
        monkeypatch.delenv(name, raising=False)


def test_a_name_without_a_model(online, monkeypatch, tmp_path):
    """Within two seconds, where no address is found and where nobody answers; of a folder, and offline, not asked."""
    from huggingface_hub import constants

    asked = []

    def connect(address, seconds):
        asked.append(address)
        raise OSError("no network")

    monkeypatch.setattr(hub_access.socket, "create_connection", connect)
    monkeypatch.setattr(info, "check_model_files", lambda *_: pytest.fail("asks for nine files"))
    for load in (model_folders.load_model, kind_of, info.describe):
        refused("owner/mispelled: no such folder, no such model in the cache, and hug", load, "owner/mispelled")
    assert asked == [("huggingface.co", 443)] * 3
    monkeypatch.setattr(hub_access.socket, "create_connection", lambda *_: time.sleep(30))
    begin = time.monotonic()
    refused("cannot be reached", kind_of, "owner/mispelled")
    assert time.monotonic() - begin < 2
    hub_access.check_within_reach(tmp_path)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    hub_access.check_within_reach("owner/mispelled")
    monkeypatch.delenv("HTTPS_PROXY")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    hub_access.check_within_reach("owner/mispelled")


def test_a_mistyped_name_fails_before_heavy_imports(tmp_path):
    (tmp_path / "a.txt").write_text("A.\n")
    network = {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:1"} | dict.fromkeys(hub_access.PROXIES, "")
    shown = "print({'torch', 'transformers'} & {*sys.modules})"
    script = f"import sys; from hf_docmt.cli import main\ntry: main()\nfinally: {shown}"
    arguments = [sys.executable, "-c", script, "translate", "owner/mispelled", str(tmp_path / "a.txt")]
    done = subprocess.run(arguments, env=os.environ | network, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "set()\n") and "cannot be reached" in done.stderr


def test_a_name_that_somebody_answers_for(online, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert hub_access.is_reachable("127.0.0.1", server.getsockname()[1])
    assert not hub_access.is_reachable("127.0.0.1", 1, seconds=0.5)
