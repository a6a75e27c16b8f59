"""The tests that transformers has for all of its models, as modules: of the folder `TRANSFORMERS_TESTS`.

A source distribution holds those of forward, saving, embeddings and configurations, but not the folders of tests that
they stand on; what is missing there is empty here. With the `tests` of a checkout nothing is missing.
"""

import importlib
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

PACKAGE = "transformers_tests"
CONFIG_FIELDS = {  # of any configuration; transformers tests that they are taken
    "return_dict": False,
    "output_hidden_states": True,
    "dtype": "float16",
    "chunk_size_feed_forward": 5,
    "architectures": ["BertModel"],
    "id2label": {0: "label"},
    "label2id": {"label": 0},
    "problem_type": "regression",
}
MISSING = {  # module -> what is imported from it, as far as it can be empty
    "exporters.test_export": {"ExportTesterMixin": type("ExportTesterMixin", (), {})},
    "generation.test_utils": {"GenerationTesterMixin": type("GenerationTesterMixin", (), {})},
    "utils.test_configuration_utils": {"config_common_kwargs": CONFIG_FIELDS},
}


def has_generation(folder: Path) -> bool:
    """Whether the tests of `generate` are there: not in a source distribution."""
    return (folder / "generation" / "test_utils.py").is_file()


def added_module(name: str, path: list[str], **contents) -> None:
    """A module without a file of its own; `path` are the folders of those inside it."""
    module = ModuleType(f"{PACKAGE}{name}")
    module.__path__ = path
    vars(module).update(contents)
    sys.modules[module.__name__] = module


def imported(name: str) -> ModuleType:
    """The module of this name inside the folder of tests."""
    return importlib.import_module(f"{PACKAGE}.{name}")


if "TRANSFORMERS_TESTS" not in os.environ:
    raise ValueError("TRANSFORMERS_TESTS names no folder: run `make test-transformers`, which sets it")
FOLDER = Path(os.environ["TRANSFORMERS_TESTS"])
(FOLDER / "__init__.py").touch()  # which is read to find transformers
added_module("", [str(FOLDER)])
for name, contents in MISSING.items():
    folder = name.split(".")[0]
    if PathFinder.find_spec(name.split(".")[1], [str(FOLDER / folder)]) is None:
        added_module(f".{folder}", [])
        added_module(f".{name}", [], **contents)

ConfigTester = imported("test_configuration_common").ConfigTester
ModelTesterMixin = imported("test_modeling_common").ModelTesterMixin
GenerationTesterMixin = sys.modules[f"{PACKAGE}.generation.test_utils"].GenerationTesterMixin
