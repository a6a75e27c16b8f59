"""The recipes of the package."""

from pathlib import Path

ALL = sorted((Path(__file__).resolve().parents[1] / "examples" / "recipes").glob("*.yaml"))
