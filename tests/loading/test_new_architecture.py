"""`docmt new architecture`: what it writes works, in a checkout and in a package of its own."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.hidden_packages import HIDE
from support.tiny_models import build

from hf_docmt.hub.export import export_model
from hf_docmt.loading import registry

ROOT = Path(__file__).resolve().parents[2]
UNCOPIED = (".*", "build", "dist", "runs", "*.egg-info", "__pycache__", "reports", "studies", "frozen")
BATTERY = ["--cases", "1", "tests/modeling/test_means.py"]
OF_ALL = [  # tests of all architectures, where it is among them
    "tests/hub/test_saved_cards.py",
    "tests/hub/test_hub_folder.py",
    "tests/loading/test_neutral_starts.py",
    "tests/loading/test_registry.py",
    "tests/modeling/test_prefix_tuning.py",
    "tests/test_layout.py::test_modeling",
]


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A copy of the checkout, whose package is found in the folders of a wheel."""
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*UNCOPIED))
    for name in ("modeling", "hub_cards"):
        (copy / "hf_docmt" / name).symlink_to(copy / name)
    return copy


def python(folder: Path, *arguments, **variables) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": str(folder)} | variables
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


def passes(done: subprocess.CompletedProcess) -> None:
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("tests", [BATTERY, pytest.param(OF_ALL, marks=pytest.mark.slow)], ids=["battery", "all"])
def test_in_a_checkout(checkout, tests):
    """The battery passes, and it is registered in alphabetical order; slow: the tests of all architectures, too."""
    done = python(checkout, "hf_docmt", "new", "architecture", "means")
    passes(done)
    written = ["modeling/configuration_means.py", "modeling/modeling_means.py"]
    written += ["hub_cards/architectures/means.md.j2", "tests/modeling/test_means.py", "hf_docmt/loading/registry.py"]
    assert done.stdout.splitlines() == written and "pytest tests/modeling/test_means.py" in done.stderr
    found = re.findall(r'^        Architecture\("(\w+)"', (checkout / written[-1]).read_text(), re.MULTILINE)
    assert found == sorted([*registry.ARCHITECTURES, "means"])
    done = python(checkout, "pytest", "-q", *tests)
    passes(done)
    assert "passed" in done.stdout and "skipped" not in done.stdout
    again = python(checkout, "hf_docmt", "new", "architecture", "means")
    assert again.returncode == 1 and "architecture 'means' already exists; choose another name" in again.stderr


@pytest.mark.slow
def test_new_package(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("new", "architecture", "means", "toy_box")
    assert code == 0 and "toy_box/card_means.md.j2" in out and "HF_DOCMT_PLUGINS=toy_box docmt train" in err
    tests = ["-q", "-p", "conftest", "--cases", "1", "toy_box/test_means.py"]
    passes(python(tmp_path, "pytest", *tests, PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT / "tests")])))
    code = "from hf_docmt.loading.model_card import ModelCardText; import toy_box.configuration_means as module; "
    code += "print(ModelCardText(module.MeansConfig()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "reads the mean of the sentence before" in " ".join(done.stdout.split()) and "@misc{means," in done.stdout


LOADED = """
hide({"hf_docmt", "toy_box"})
from transformers import AutoModelForSeq2SeqLM

for name in sys.argv[1:]:
    loaded = AutoModelForSeq2SeqLM.from_pretrained(name, trust_remote_code=True)
    print(type(loaded).__name__, loaded.num_parameters())
"""


def test_a_new_package_is_exported_with_its_code(run, tmp_path, monkeypatch):
    """Folders by training and export load without both packages; code that needs others is refused."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert run("new", "architecture", "means", "toy_box")[0] == 0
    monkeypatch.setattr(registry, "ARCHITECTURES", dict(registry.ARCHITECTURES))
    importlib.import_module("toy_box")
    model = build("means")
    model.save_pretrained("saved")
    export_model(model, None, "exported")
    done = subprocess.run([sys.executable, "-c", HIDE + LOADED, "saved", "exported"], capture_output=True, text=True)
    assert done.stdout == f"MeansForConditionalGeneration {model.num_parameters()}\n" * 2, done.stderr
    assert "It needs torch and transformers, and" in " ".join(Path("exported/README.md").read_text().split())
    code = Path("toy_box/modeling_means.py")
    code.write_text(f"import numpy\n{code.read_text()}")
    with pytest.raises(ValueError, match="MeansForConditionalGeneration imports numpy, which the folder does not hold"):
        export_model(model, None, "refused")
    monkeypatch.setattr(type(model), "_auto_class", None)
    with pytest.raises(ValueError, match="is of toy_box.modeling_means, and its code does not go along: call Means"):
        export_model(model, None, "refused")
    assert not Path("refused").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Means"], "name 'Means': expected lower-case letters and digits"),
        (["lst"], "architecture 'lst' already exists"),
        (["means"], "is not a checkout of hf-docmt (it has no hf_docmt/loading/registry.py): change to one, or"),
        (["means", "my-package"], "my-package: expected a folder that can be imported"),
        (["means", "full"], "full"),
    ],
)
def test_refusals(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    code, out, err = run("new", "architecture", *arguments)
    assert code == 1 and not out and message in err


def test_the_readme_shows_the_toy():
    """`modeling/README.md` has the code of the toy as it is."""
    section = (
        (ROOT / "modeling/README.md").read_text().partition("## How to write an architecture")[2].partition("\n## ")[0]
    )
    blocks, toy = re.findall(r"```python\n(.*?)```", section, re.DOTALL), ROOT / "hub_cards/toy/modeling_toy.py"
    assert len(blocks) == 2 and all(block.strip() in toy.read_text() for block in blocks)
