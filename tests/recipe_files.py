"""The recipes of the package."""

from pathlib import Path

import yaml

from hf_docmt.registry import ARCHITECTURES

ALL = sorted((Path(__file__).resolve().parents[1] / "examples" / "recipes").glob("*.yaml"))
KNOWN = [path for path in ALL if yaml.safe_load(path.read_text(encoding="utf-8"))["architecture"] in ARCHITECTURES]
