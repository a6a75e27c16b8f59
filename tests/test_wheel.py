"""The release: the source archive and the wheel built from it have all files and work away from the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from hf_docmt import __version__

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {  # folder of the source -> its folder in the wheel, and the endings of what belongs there
    "hf_docmt": ("hf_docmt", {".py", ".json", ".typed", ".html", ".css", ".js"}),
    "modeling": ("hf_docmt/modeling", {".py"}),
    "hub_cards": ("hf_docmt/hub_cards", {".py", ".bib", ".j2"}),
    "examples/recipes": ("hf_docmt/recipes", {".py", ".yaml"}),
}
ROOMS = ("examples", "hf_docmt", "hub_cards", "modeling", "tests")
AT_THE_TOP = {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "constraints.txt"}
AT_THE_TOP |= {"MANIFEST.in", "pyproject.toml", "setup.cfg", "setup.py"}
LEFT_OUT = (".*", "build", "dist", "runs", "*.egg-info", "__pycache__", "*.so")

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


def build(source: Path, *kinds: str, **variables: str) -> list[Path]:
    """What `python -m build` makes of a source: its archive and, from that, a wheel; or these kinds."""
    command = [sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", f"{source}-dist", str(source)]
    subprocess.run(command, env=os.environ | variables, check=True, capture_output=True, timeout=300)
    return sorted(Path(f"{source}-dist").iterdir(), reverse=True)


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> list[Path]:
    """The source archive and the wheel of a checkout without git, which is gone."""
    pytest.importorskip("build")
    pytest.importorskip("setuptools", minversion="80")
    source = tmp_path_factory.mktemp("release") / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*LEFT_OUT))
    archives = build(source)
    shutil.rmtree(source)
    return archives


@pytest.fixture(scope="module")
def installed(release, tmp_path_factory) -> Path:
    """The folder that the wheel is installed into."""
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    install = ["install", "--no-deps", "--no-index", "--target", str(target), str(release[1])]
    subprocess.run([*pip, *install], check=True, capture_output=True, timeout=300)
    return target


def test_version_of_the_citation():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert str(cited["version"]) == __version__ and f"\n## {__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.slow
def test_source_archive(release):
    """It has every file of the checkout but those whose names begin with a dot, and nothing that was compiled."""
    with tarfile.open(release[0]) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    skipped, expected = shutil.ignore_patterns(*LEFT_OUT), AT_THE_TOP | {"PKG-INFO"}
    for folder, folders, files in (step for room in ROOMS for step in os.walk(ROOT / room)):
        folders[:] = set(folders) - skipped(folder, folders)
        expected |= {str((Path(folder) / name).relative_to(ROOT)) for name in set(files) - skipped(folder, files)}
    assert {name for name in names if not name.startswith("hf_docmt.egg-info/")} == expected


@pytest.mark.slow
def test_tags(release, tmp_path):
    """A wheel of one platform serves every Python 3; HF_DOCMT_PURE makes one for every platform."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert [path.name for path in release] == [
        f"hf_docmt-{__version__}.tar.gz",
        f"hf_docmt-{__version__}-py3-none-{platform}.whl",
    ]
    with tarfile.open(release[0]) as archive:
        archive.extractall(tmp_path, filter="data")
    (pure,) = build(tmp_path / f"hf_docmt-{__version__}", "--wheel", HF_DOCMT_PURE="1")
    assert pure.name == f"hf_docmt-{__version__}-py3-none-any.whl"
    kernels = [any(name.endswith(".so") for name in ZipFile(path).namelist()) for path in (release[1], pure)]
    assert kernels == [True, False]


@pytest.mark.slow
def test_files_of_the_image(release, tmp_path):
    """The files that the Dockerfile of `docmt serve` copies make the same wheel."""
    source = tmp_path / "source"
    for line in (ROOT / "examples/serve/Dockerfile").read_text("utf-8").splitlines():
        command, *names = line.split()[:-1] or [""]
        for name in names if command == "COPY" and not names[0].startswith("--") else ():
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            copy(ROOT / name, source / name)
    (wheel,) = build(source, "--wheel")
    assert ZipFile(wheel).namelist() == ZipFile(release[1]).namelist()


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
