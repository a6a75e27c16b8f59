"""Settings of every test: no network, one thread, quiet libraries."""

import gc
import io
import os
import shutil
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"  # else bars depend on the commands before
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["COLUMNS"] = "100"  # also where tests run in parallel, which says 80

import pytest
import torch
from support import pretended_device
from support.deprecations import logged_deprecations

from hf_docmt import cli
from hf_docmt.engine import quantization, saved_layers, scope

pytest.register_assert_rewrite("support.battery", "support.scripted_model")
torch.set_num_threads(1)
scope.MIN_ELEMENTS = scope.MIN_MULTIPLICATIONS = 0  # tiny models of the tests are packed, too
quantization.MIN_ELEMENTS = saved_layers.MIN_ELEMENTS = 0  # and quantized
if not torch.cuda.is_available():  # seeds for devices to come are kept with a traceback each
    torch.cuda.manual_seed_all = torch.xpu.manual_seed_all = lambda seed: None


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="cuda: only tests that a device matters to, on this one")
    parser.addoption("--cases", type=int, help="of each architecture only so many configurations")


def pytest_make_parametrize_id(val, argname):
    """Bytes are named by their argument: an archive holds the time it was made, and all workers need the same names."""
    return argname if isinstance(val, bytes) else None


def pytest_collection_modifyitems(config, items):
    """On another device than the CPU only what is asked for it, which is skipped where there is none."""
    device = config.getoption("device")
    if device == "cpu":
        return
    unable = pretended_device.UNABLE if device == pretended_device.NAME else ()
    asked = [item for item in items if "device" in item.fixturenames or item.get_closest_marker("gpu")]
    chosen = [item for item in asked if item.originalname not in unable]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen
    if device == "cuda" and not torch.cuda.is_available():
        for item in items:
            item.add_marker(pytest.mark.skip(reason="no CUDA device here"))


@pytest.fixture
def device(request):
    """Where models of a test are: the CPU, or what `--device` says."""
    name = request.config.getoption("device")
    if name != pretended_device.NAME:
        yield torch.device(name)
        return
    with pretended_device.pretended():
        yield pretended_device.set_up()


@pytest.fixture(autouse=True)
def no_logged_deprecation():
    """A test fails in which transformers logs that something is deprecated; its warnings do so by setup.cfg."""
    with logged_deprecations() as found:
        yield
    assert not found, f"transformers says, use what it names in the place of it: {found}"


@pytest.fixture(scope="module", autouse=True)
def no_garbage():
    """What is there between two files stays: the collector, which accelerate calls behind every run, leaves it out."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def write(tmp_path):
    """A file of this name and content (text or bytes)."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def run(monkeypatch, capsys):
    """Call the command; returns (exit code, standard output, standard error)."""

    def call(*arguments, stdin=None):
        monkeypatch.setattr(sys, "argv", ["docmt", *map(str, arguments)])
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin.encode()))))
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        return code, *capsys.readouterr()

    return call


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium here")
    api = pytest.importorskip("playwright.sync_api")
    quiet = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, headless=True, args=quiet)
        yield found
        found.close()
