"""The wheel: it holds all that the source holds, and works away from the source."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {  # folder of the source -> its folder in the wheel, and the endings of what belongs there
    "hf_docmt": ("hf_docmt", {".py", ".json", ".typed", ".html"}),
    "modeling": ("hf_docmt/modeling", {".py"}),
    "hub_cards": ("hf_docmt/hub_cards", {".py", ".bib", ".j2"}),
    "examples/recipes": ("hf_docmt/recipes", {".py", ".yaml"}),
}
LEFT_OUT = (".git", ".venv*", "build", "dist", "runs", "*.egg-info", "__pycache__", ".*_cache")

PROCESS = """
import sys
from importlib.resources import files
from pathlib import Path

import hf_docmt, hf_docmt.modeling
from hf_docmt.loading import registry
from hf_docmt.data.synthetic.corpus import make_corpus
from hf_docmt.evaluation import metrics

for module in (hf_docmt, hf_docmt.modeling):
    assert Path(module.__file__).is_relative_to(sys.argv[1]), module.__file__
concat = registry.get("concat")
model = concat.model_class(concat.config_class(vocab_size=20, d_model=16, encoder_layers=1, decoder_layers=1))
model.save_pretrained("saved")
assert Path("saved/modeling_concat.py").exists()
assert len(make_corpus(seed=0, train=2, validation=1, test=1)["train"]) == 2
print(hf_docmt.__version__)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The folder that the wheel is installed into; the source it was built from is gone."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("wheel")
    source, target = folder / "source", folder / "target"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*LEFT_OUT))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    wheels = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*pip, "wheel", *wheels, str(source)], check=True, capture_output=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    install = ["install", "--no-deps", "--no-index", "--target", str(target), str(wheel)]
    subprocess.run([*pip, *install], check=True, capture_output=True, timeout=300)
    shutil.rmtree(source)
    return target


@pytest.mark.slow
def test_contents(installed):
    """Every module, recipe (base folders, too), card, lexicon and type marker."""
    expected = set()
    for name, (packed, endings) in FOLDERS.items():
        files = [path for path in (ROOT / name).rglob("*") if path.suffix in endings or path.name == "py.typed"]
        expected |= {f"{packed}/{path.relative_to(ROOT / name)}" for path in files if "__pycache__" not in path.parts}
    there = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    assert expected - there == set()
    ours = {name for name in there if name.startswith("hf_docmt/") and not name.endswith((".pyc", ".md", ".so"))}
    assert ours - expected == set()


@pytest.mark.slow
def test_use(installed, tmp_path):
    """Configuration, model, data and metrics, in a process that sees the installed wheel only."""
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, str(installed)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_command(installed, tmp_path):
    """The entry point is installed and imports."""
    done = subprocess.run(
        [sys.executable, str(installed / "bin" / "docmt"), "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and done.stdout.startswith("docmt "), done.stderr[-3000:]
