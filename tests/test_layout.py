"""The rooms of the package and who may import whom, read from the syntax tree; the wheel, away from the source."""

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODELING = sorted((ROOT / "modeling").glob("*.py"))
PACKAGE = sorted((ROOT / "hf_docmt").rglob("*.py"))
ROOMS = {  # room -> rooms that it may import, besides itself
    "__init__": set(),
    "files": set(),
    "reports": {"files"},
    "data": {"files"},
    "registry": {"data", "modeling"},
    "training": {"data", "files", "registry", "reports"},
    "translation": {"data", "files", "registry", "reports"},
    "evaluation": {"data", "files", "registry", "reports"},
    "analysis": {"data", "evaluation", "files", "registry", "reports"},
    "hub": {"data.tokenizers", "files", "registry", "reports"},
}
COMMANDS = {"cli", "demo", "info", "bench", "__main__"}  # parts of the command line import everything
CLI = sorted(path for path in (ROOT / "hf_docmt" / "cli").glob("*.py"))
LIGHT = [*(ROOT / "hf_docmt" / f"{name}.py" for name in ("__init__", "__main__", "registry")), *CLI]  # import late
HEAVY = {"torch", "transformers", "datasets", "evaluate", "accelerate", "sacrebleu", "tokenizers", "numpy", "pyarrow"}


# Rules of modeling/: the files are copied to the Hub by transformers, which reads them as text


def modeling_faults(name: str, text: str, architectures: set[str]) -> list[str]:
    """What breaks the rules in a file of modeling/."""
    tree = ast.parse(text)
    top = {id(node) for node in tree.body}
    faults, relative = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in top:
            faults.append(f"line {node.lineno}: import that is not at the top level")
        if isinstance(node, ast.Import):
            roots = {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            if node.level > 1 or node.module is None or "." in node.module:
                faults.append(f"line {node.lineno}: only 'from .x import y' is followed")
            relative.add(node.module)
            roots = set()
        elif isinstance(node, ast.ImportFrom):
            roots = {node.module.split(".")[0]}
        else:
            continue
        faults += [f"line {node.lineno}: imports {root}" for root in roots - {"torch", "transformers"} - STANDARD]
    seen = re.findall(r"^\s*from\s+\.(\S+)\s+import", text, flags=re.MULTILINE)
    seen += re.findall(r"^\s*import\s+\.(\S+)\s*$", text, flags=re.MULTILINE)
    faults += [f"text that looks like an import of {module}" for module in set(seen) - relative]
    others = {f"{kind}_{architecture}" for kind in ("modeling", "configuration") for architecture in architectures}
    if name.startswith("modeling_"):
        others -= {name, name.replace("modeling", "configuration", 1)}
    faults += [f"imports the architecture file {module}" for module in sorted(relative & others)]
    return faults


STANDARD = set(sys.stdlib_module_names)
ARCHITECTURES = {path.stem.removeprefix("modeling_") for path in MODELING if path.stem.startswith("modeling_")}


@pytest.mark.parametrize("path", MODELING, ids=lambda path: path.name)
def test_modeling(path):
    assert modeling_faults(path.stem, path.read_text(), ARCHITECTURES) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("backbone", "from . import segments"),
        ("backbone", "from ..data import views"),
        ("backbone", "from .data.views import Examples"),
        ("backbone", "import numpy"),
        ("backbone", "from hf_docmt.data import views"),
        ("backbone", "def f():\n    import math"),
        ("backbone", "try:\n    from .loss import x\nexcept ImportError:\n    pass"),
        ("loss", '"""Used thus:\n\n    from .segments import sinusoid\n"""'),
        ("backbone", "from .modeling_lst import Gate"),
        ("configuration_docmt", "from .configuration_lst import LstConfig"),
        ("configuration_concat", "from .configuration_lst import LstConfig"),
        ("modeling_concat", "from .modeling_lst import Gate"),
        ("modeling_concat", "from .configuration_lst import LstConfig"),
    ],
)
def test_modeling_rules_find(name, text):
    assert modeling_faults(name, text, {"concat", "lst"})


# Rules of hf_docmt/


def imported_modules(tree: ast.AST, module: str, is_package: bool = False) -> set[str]:
    """Full names of what is imported; `from x import y` counts as x.y."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join(parts + ([node.module] if node.module else []))
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return found


def room_faults(module: str, text: str, is_package: bool = False) -> list[str]:
    """What a file of hf_docmt/ imports and may not."""
    own = module.removeprefix("hf_docmt").strip(".") or "__init__"
    room = own.split(".")[0]
    if room in COMMANDS:
        return []
    faults = []
    for name in sorted(imported_modules(ast.parse(text), module, is_package)):
        if name.startswith("hf_docmt."):
            target = name.removeprefix("hf_docmt.")
            allowed = ROOMS[room] | {room, "__version__"}
            if not any(target == other or target.startswith(f"{other}.") for other in allowed):
                faults.append(f"{module} imports {name}")
        if room == "data" and name.startswith("transformers.") and "Tokenizer" not in name:
            faults.append(f"{module} imports {name}")
    return faults


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", PACKAGE, ids=module_name)
def test_rooms(path):
    assert room_faults(module_name(path), path.read_text(), path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("hf_docmt.data.examples", "from hf_docmt import registry"),
        ("hf_docmt.data.examples", "from ..modeling.backbone import Encoder"),
        ("hf_docmt.data.examples", "from transformers import AutoModel"),
        ("hf_docmt.data.examples", "def f():\n    from hf_docmt.training import run"),
        ("hf_docmt.training.run", "from hf_docmt.evaluation import report"),
        ("hf_docmt.training.run", "import hf_docmt.hub.cards"),
        ("hf_docmt.evaluation.systems.log_probabilities", "from hf_docmt.modeling.loss import weighted_cross_entropy"),
        ("hf_docmt.hub.cards", "from hf_docmt.evaluation import scorer"),
        ("hf_docmt.hub.cards", "from hf_docmt.data.documents import sentences"),
        ("hf_docmt.translation.corpus", "from hf_docmt.cli import main"),
        ("hf_docmt.registry", "from .training import trainer"),
    ],
)
def test_room_rules_find(module, text):
    assert room_faults(module, text)


def test_heavy_libraries_are_imported_late():
    for path in LIGHT:
        tree, module = ast.parse(path.read_text()), module_name(path)
        tree.body = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
        found = imported_modules(tree, module, path.name == "__init__.py")
        assert not {name.split(".")[0] for name in found} & HEAVY, module
        assert {name.split(".")[1] for name in found if name.startswith("hf_docmt.")} <= {"cli"}, module


def test_every_package_is_listed():
    """What setup.cfg does not list is missing from the wheel."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    listed = set(setup["options"]["packages"].split())
    there = {module_name(path) for path in PACKAGE if path.name == "__init__.py"}
    assert listed == there | {"hf_docmt.modeling", "hf_docmt.hub_cards", "hf_docmt.recipes"}
    folders = {path.parent for path in PACKAGE}
    assert all((folder / "__init__.py").exists() for folder in folders)


def test_every_data_file_is_listed():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    places = dict(line.split(" = ") for line in setup["options"]["package_dir"].strip().splitlines())
    for name, patterns in setup["options.package_data"].items():
        folder = ROOT / places.get(name, name.replace(".", "/"))
        there = {path.name for path in folder.iterdir() if path.is_file() and path.suffix != ".py"}
        listed = {path.name for pattern in re.split(r"[,\n]", patterns) for path in folder.glob(pattern.strip())}
        assert there == listed, name


# The wheel

PROCESS = """
import sys
from importlib.resources import files
from pathlib import Path

import hf_docmt, hf_docmt.modeling
from hf_docmt import registry
from hf_docmt.data.synthetic.corpus import make_corpus
from hf_docmt.evaluation import metrics

for module in (hf_docmt, hf_docmt.modeling):
    assert Path(module.__file__).is_relative_to(sys.argv[1]), module.__file__
assert list(files("hf_docmt.recipes").glob("*.yaml"))
assert list(files("hf_docmt.hub_cards").glob("*.j2"))
concat = registry.get("concat")
model = concat.model_class(concat.config_class(vocab_size=20, d_model=16, encoder_layers=1, decoder_layers=1))
model.save_pretrained("saved")
assert Path("saved/backbone.py").exists()
assert len(make_corpus(seed=0, train=2, validation=1, test=1)["train"]) == 2
print(hf_docmt.__version__)
"""


@pytest.mark.slow
def test_wheel(tmp_path):
    pytest.importorskip("setuptools")
    source, target, elsewhere = tmp_path / "source", tmp_path / "target", tmp_path / "elsewhere"
    elsewhere.mkdir()
    left_out = shutil.ignore_patterns(
        ".git", ".venv*", "build", "dist", "runs", "*.egg-info", "__pycache__", ".*_cache"
    )
    shutil.copytree(ROOT, source, ignore=left_out)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    wheels = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    subprocess.run([*pip, "wheel", *wheels, str(source)], check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    install = ["install", "--no-deps", "--no-index", "--target", str(target), str(wheel)]
    subprocess.run([*pip, *install], check=True, capture_output=True, timeout=300)
    shutil.rmtree(source)
    result = subprocess.run(
        [sys.executable, "-c", PROCESS, str(target)],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    there = {str(path.relative_to(target)) for path in target.rglob("*.py")}
    expected = {str(path.relative_to(ROOT)) for path in PACKAGE} | {
        f"hf_docmt/modeling/{path.name}" for path in MODELING
    }
    assert expected <= there
