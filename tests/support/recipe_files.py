"""The recipes of the package, and the bases that they share."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "recipes"
ALL = sorted(FOLDER.glob("*.yaml"))  # those that can be trained
BASES = sorted(FOLDER.glob("base/*.yaml"))
