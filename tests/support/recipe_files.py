"""The recipes of the package."""

from pathlib import Path

ALL = sorted((Path(__file__).resolve().parents[2] / "examples" / "recipes").glob("*.yaml"))
