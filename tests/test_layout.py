"""The rooms of the package and who may import whom, read from the syntax trees; what setup.cfg lists."""

import ast
import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.imports import import_cycle, import_graph, imported_names
from support.prose import PATTERN

ROOT = Path(__file__).resolve().parent.parent
MODELING = sorted((ROOT / "modeling").glob("*.py"))
PACKAGE = sorted((ROOT / "hf_docmt").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
BASE = {"files", "journal", "modeling", "options"}  # what every other room may import
ROOMS = {  # room -> rooms that it may import, besides itself
    "files": set(),
    "journal": {"files"},
    "engine": {"modeling"},
    "messages": set(),
    "options": set(),
    "reports": BASE,
    "data": BASE,
    "loading": BASE | {"engine", "data", "reports"},
    "training": BASE | {"data", "loading", "reports"},
    "systems": BASE | {"engine", "data", "loading"},
    "formats": BASE | {"data", "systems"},
    "translation": BASE | {"data", "formats", "loading", "systems"},
    "evaluation": BASE | {"data", "reports", "systems"},
    "analysis": BASE | {"data", "evaluation", "loading", "reports", "systems"},
    "hub": BASE | {"data", "evaluation", "loading", "reports", "systems", "training", "translation"},
}
ROOMS["serving"] = BASE | {"analysis", "data", "formats", "reports", "systems", "translation"}
ROOMS["cli"] = {"modeling", *ROOMS}  # and nobody but __main__ imports cli
ROOMS["__main__"] = {"cli"}
# the Python API, lazily; nobody imports it
ROOMS["__init__"] = {"modeling", *ROOMS} - {"__main__", "cli"}
CLI = sorted((ROOT / "hf_docmt" / "cli").glob("*.py"))
LIGHT = [
    *(ROOT / "hf_docmt" / f"{name}.py" for name in ("__init__", "__main__", "options", "loading/registry")),
    *CLI,
]  # import late
HEAVY = {"torch", "transformers", "datasets", "evaluate", "accelerate", "sacrebleu", "tokenizers", "numpy", "pyarrow"}
HEAVY |= {"pandas", "scipy", "matplotlib", "jinja2", "huggingface_hub", "yaml"}


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
    others = {
        f"{kind}_{architecture}" for kind in ("modeling", "configuration", "card") for architecture in architectures
    }
    if name.startswith("modeling_"):
        others -= {name, *(name.replace("modeling", kind, 1) for kind in ("configuration", "card"))}
    faults += [f"imports the architecture file {module}" for module in sorted(relative & others)]
    return faults


STANDARD = set(sys.stdlib_module_names)
ARCHITECTURES = {path.stem.removeprefix("modeling_") for path in MODELING if path.stem.startswith("modeling_")} - {
    "docmt"
}


def test_modeling():
    faults = {path.name: modeling_faults(path.stem, path.read_text(), ARCHITECTURES) for path in MODELING}
    assert not {name: found for name, found in faults.items() if found}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("modeling_docmt", "from . import segments"),
        ("modeling_docmt", "from ..data import views"),
        ("modeling_docmt", "from .data.views import Examples"),
        ("modeling_docmt", "import numpy"),
        ("modeling_docmt", "from hf_docmt.data import views"),
        ("modeling_docmt", "def f():\n    import math"),
        ("modeling_docmt", "try:\n    from .loss import x\nexcept ImportError:\n    pass"),
        ("loss", '"""Used thus:\n\n    from .segments import sinusoid\n"""'),
        ("modeling_docmt", "from .modeling_lst import Gate"),
        ("configuration_docmt", "from .configuration_lst import LstConfig"),
        ("configuration_concat", "from .configuration_lst import LstConfig"),
        ("modeling_concat", "from .modeling_lst import Gate"),
        ("modeling_concat", "from .configuration_lst import LstConfig"),
        ("modeling_concat", "from .card_lst import LstCard"),
        ("card_concat", "from .card_lst import LstCard"),
    ],
)
def test_modeling_rules_find(name, text):
    assert modeling_faults(name, text, {"concat", "lst"})


# Rules of hf_docmt/


def room_faults(module: str, text: str, is_package: bool = False) -> list[str]:
    """What a file of hf_docmt/ imports and may not."""
    room = (module.removeprefix("hf_docmt").strip(".") or "__init__").split(".")[0]
    allowed = ROOMS[room] | {room, "messages"}
    faults = []
    for name in sorted(imported_names(ast.parse(text), module, is_package)):
        if name.startswith("hf_docmt."):
            target = name.removeprefix("hf_docmt.")
            if not any(target == other or target.startswith(f"{other}.") for other in allowed):
                faults.append(f"{module} imports {name}")
        if room == "data" and name.startswith("transformers.") and "Tokenizer" not in name:
            faults.append(f"{module} imports {name}")
    return faults


def module_name(path: Path) -> str:
    """The module of a file; those of modeling/ are in the package hf_docmt.modeling."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = ("hf_docmt", *parts) if parts[0] == "modeling" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_rooms():
    faults = (room_faults(module_name(path), path.read_text(), path.name == "__init__.py") for path in PACKAGE)
    assert not [fault for found in faults for fault in found]


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("hf_docmt.files", "from hf_docmt.data.documents import sentences"),
        ("hf_docmt.reports.report", "from hf_docmt.loading.registry import load"),
        ("hf_docmt.data.examples", "from hf_docmt.loading import registry"),
        ("hf_docmt.data.examples", "from transformers import AutoModel"),
        ("hf_docmt.data.examples", "def f():\n    from hf_docmt.training import run"),
        ("hf_docmt.loading.registry", "from ..training import trainer"),
        ("hf_docmt.loading.pretrained", "from hf_docmt.hub.export import export_model"),
        ("hf_docmt.training.run", "from hf_docmt.evaluation import metrics"),
        ("hf_docmt.training.run", "import hf_docmt.hub.cards"),
        ("hf_docmt.systems.docmt", "from hf_docmt.evaluation.suites import read_suite"),
        ("hf_docmt.systems.docmt", "from hf_docmt.translation import corpus"),
        ("hf_docmt.translation.corpus", "from hf_docmt.cli import main"),
        ("hf_docmt.translation.corpus", "from hf_docmt import load_model"),
        ("hf_docmt.evaluation.metrics", "from hf_docmt.analysis import rationales"),
        ("hf_docmt.analysis.memory", "from hf_docmt.training import run"),
        ("hf_docmt.hub.cards", "from hf_docmt.serving import server"),
        ("hf_docmt.hub.demo", "from hf_docmt.cli import main"),
        ("hf_docmt.training.info", "from hf_docmt.evaluation import suites"),
        ("hf_docmt", "from hf_docmt.cli import main"),
    ],
)
def test_room_rules_find(module, text):
    assert room_faults(module, text)


def test_every_room_has_its_rule():
    """A new room has to say what it imports."""
    names = {module_name(path).split(".")[1] for path in PACKAGE if module_name(path) != "hf_docmt"}
    assert names == ROOMS.keys() - {"__init__"}


def test_imports_have_no_circle():
    """Every file of hf_docmt/ and modeling/, imports inside functions included."""
    sources = {module_name(path): path.read_text() for path in (*PACKAGE, *MODELING)}
    packages = {module_name(path) for path in (*PACKAGE, *MODELING) if path.name == "__init__.py"}
    assert import_cycle(import_graph(sources, packages)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("import hf_docmt.two", "from hf_docmt.one import x"),
        ("from . import two", "from .one import x"),
        ("def f():\n    from hf_docmt import two", "from hf_docmt.one import x"),
        ('x = "hf_docmt.two:y"', "from hf_docmt.one import x"),
        ("from .package.inner import x", "from hf_docmt.one import y"),
    ],
)
def test_circles_are_found(one, other):
    sources = {"hf_docmt.one": one, "hf_docmt.two": other, "hf_docmt.package": "", "hf_docmt.package.inner": ""}
    sources["hf_docmt.package.inner"] = "from ..two import z"
    cycle = import_cycle(import_graph(sources, {"hf_docmt.package"}))
    assert cycle[0] == cycle[-1] and {"hf_docmt.one", "hf_docmt.two"} <= set(cycle)


def late_faults(module: str, text: str, is_package: bool = False) -> list[str]:
    """What a light module imports at module level and may not: heavy libraries, rooms other than cli."""
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    tree.body = [node for node in tree.body if not ast.unparse(node).startswith("if TYPE_CHECKING:")]
    names = set(imported_names(tree, module, is_package))
    rooms = {f"hf_docmt.{name}" for name in ("cli", "files", "messages", "options")}
    heavy = [name for name in sorted(names) if name.split(".")[0] in HEAVY]
    return heavy + [name for name in names if name[:9] == "hf_docmt." and ".".join(name.split(".")[:2]) not in rooms]


@pytest.mark.parametrize("path", LIGHT, ids=module_name)
def test_heavy_libraries_are_imported_late(path):
    assert late_faults(module_name(path), path.read_text(), path.name == "__init__.py") == []


@pytest.mark.parametrize("text", ["import torch", "from transformers import AutoModel", "from hf_docmt import hub"])
def test_early_imports_are_found(text):
    assert late_faults("hf_docmt.cli.hub", text)


def test_the_command_starts_light():
    """`docmt --help` answers at once, since importing the command imports no heavy library."""
    code = f"import sys, hf_docmt.cli; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# How large the rooms may be: raised only with a reason in CHANGELOG.md. A budget holds with 2 % of slack.


SLACK = 1.02
PACKAGE_LINES = {
    "analysis": 1443,
    "cli": 1976,
    "data": 6745,
    "engine": 3884,
    "evaluation": 5743,
    "formats": 5845,
    "hub": 2139,
    "loading": 1540,
    "modeling": 8992,
    "reports": 2207,
    "serving": 1922,
    "systems": 4088,
    "training": 2628,
    "translation": 1863,
    "top-level files": 1055,
}
TEST_LINES = {
    "analysis": 1269,
    "cli": 3090,
    "data": 4551,
    "engine": 2426,
    "evaluation": 5044,
    "formats": 3518,
    "hub": 2233,
    "loading": 1098,
    "modeling": 6465,
    "reports": 1759,
    "serving": 1589,
    "support": 5291,
    "systems": 2164,
    "training": 2469,
    "transformers_contract": 451,
    "translation": 1406,
    "top-level files": 3199,
}
MOST_LINES = {"package": 52070, "tests": 48022}


def lines_by_room(folder: Path) -> dict[str, int]:
    """Lines of the Python files of every room in a folder, and of those that are in none."""
    lines: dict[str, int] = {}
    for path in folder.rglob("*.py"):
        room, *files = path.relative_to(folder).parts
        room = room if files else "top-level files"
        lines[room] = lines.get(room, 0) + len(path.read_text("utf-8").splitlines())
    return lines


@pytest.mark.parametrize(("kind", "budget"), [("package", PACKAGE_LINES), ("tests", TEST_LINES)])
def test_lines_of_a_room(kind, budget):
    lines = lines_by_room(ROOT / ("hf_docmt" if kind == "package" else "tests"))
    if kind == "package":
        lines["modeling"] = sum(lines_by_room(ROOT / "modeling").values())
    assert lines.keys() == budget.keys()
    assert over_budget(lines, budget) == {}
    assert over_budget({kind: sum(lines.values())}, MOST_LINES) == {}


def over_budget(lines: dict[str, int], budget: dict[str, int]) -> dict[str, int]:
    """The rooms with more lines than their budget and its slack, and how many they have."""
    return {room: count for room, count in lines.items() if count > budget[room] * SLACK}


def test_slack_of_a_budget():
    assert over_budget({"one": 102, "two": 103}, {"one": 100, "two": 100}) == {"two": 103}


@pytest.mark.parametrize(
    "text",
    ["a file that is no\nimage", "leave the flag out", "What is read", "so many tokens", "done. Of two", "b, else"],
)
def test_hard_words_are_found(text):
    assert PATTERN.search(text) and not PATTERN.search("There is no file; the batch has as many rows as the source.")


# Tests share what is in tests/support/, and import no other test


def imports_of_tests(text: str) -> list[str]:
    """The test files that a text imports."""
    names = {part for name in imported_names(ast.parse(text), "") for part in name.split(".")}
    return sorted(name for name in names if name == "conftest" or name.startswith("test_"))


def test_names_of_tests_are_unique():
    """pytest imports them by their names alone."""
    names = [path.name for path in TESTS if path.name.startswith("test_")]
    assert len(names) == len(set(names)), [name for name in names if names.count(name) > 1]


def test_no_test_imports_another():
    found = {path: imports_of_tests(path.read_text()) for path in TESTS}
    assert not {path: names for path, names in found.items() if names}


@pytest.mark.parametrize(
    "text", ["from test_caching import LATENT", "import tests.data.test_readers", "import conftest"]
)
def test_imports_of_tests_are_found(text):
    assert imports_of_tests(text)


# What setup.cfg lists


def setup_cfg() -> configparser.ConfigParser:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    return setup


def package_folders() -> dict[str, Path]:
    """The packages of setup.cfg and their folders."""
    options = setup_cfg()["options"]
    elsewhere = dict(line.split(" = ") for line in options["package_dir"].strip().splitlines())
    return {name: ROOT / elsewhere.get(name, name.replace(".", "/")) for name in options["packages"].split()}


def test_every_package_is_listed():
    """What setup.cfg does not list is missing from the wheel."""
    there = {module_name(path) for path in PACKAGE if path.name == "__init__.py"}
    assert package_folders().keys() == there | {"hf_docmt.modeling", "hf_docmt.hub_cards", "hf_docmt.recipes"}
    folders = {path.parent for path in PACKAGE}
    assert all((folder / "__init__.py").exists() for folder in folders)


def test_every_data_file_is_listed():
    patterns = dict(setup_cfg()["options.package_data"])
    folders = package_folders()
    for name, folder in folders.items():
        there = {path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
        inner = [other for other in folders.values() if other != folder and other.is_relative_to(folder)]
        there = {path for path in there if not any(path.is_relative_to(other) for other in inner)}
        there = {path for path in there if path.suffix not in (".py", ".c", ".h", ".so") and path.name != "README.md"}
        listed = {path for one in re.split(r"[,\n]", patterns.get(name, "")) for path in glob(folder, one.strip())}
        assert there == {path for path in listed if path.name != "README.md" and path.suffix != ".py"}, name


def glob(folder: Path, pattern: str) -> list[Path]:
    return list(folder.glob(pattern)) if pattern else []
