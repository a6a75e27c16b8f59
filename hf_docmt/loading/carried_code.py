"""The code of an architecture of another package in a saved folder, which has to load without both packages."""

import os
import re
import sys
from importlib.resources import files
from pathlib import Path

PACKAGE = "hf_docmt.modeling"
OWN = re.compile(rf"^from {re.escape(PACKAGE)}\.(\w+) import", re.MULTILINE)
RELATIVE = re.compile(r"^from \.(\w+) import", re.MULTILINE)
ABSOLUTE = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)
THERE = {"torch", "transformers", *sys.stdlib_module_names}  # where a folder is loaded


def carry_code(folder: str | os.PathLike) -> list[str]:
    """Copy the modules of this package that the Python files of a folder import, which import them from there then.

    Returns the other packages that the files import, and the names of own modules that the folder has otherwise.
    """
    folder, missing = Path(folder), set()
    waiting = [path for path in folder.glob("*.py") if path.name != "handler.py"]
    while waiting:
        file = waiting.pop()
        text = file.read_text("utf-8")
        own = OWN.findall(text)
        text = OWN.sub(r"from .\1 import", text)
        file.write_text(text, "utf-8")
        for name in {*own, *RELATIVE.findall(text)}:
            path, module = folder / f"{name}.py", files(PACKAGE).joinpath(f"{name}.py")
            if not path.exists():
                path.write_text(module.read_text("utf-8"), "utf-8")
                waiting.append(path)
            elif name in own and path.read_text("utf-8") != module.read_text("utf-8"):
                missing.add(f"{PACKAGE}.{name}")
        missing |= set(ABSOLUTE.findall(text)) - THERE
    return sorted(missing)
