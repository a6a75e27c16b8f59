"""Fetch the source distribution of the installed transformers; print the folder of its tests.

Called with a folder to keep it in, and options for pip.
"""

import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path


def fetched(folder: Path, options: list[str]) -> Path:
    """The tests of the version in use, downloaded where they are not there yet."""
    name = f"transformers-{version('transformers')}"
    tests = folder / name / "tests"
    if not tests.is_dir():
        requirement = name.replace("-", "==", 1)
        source_only = ["--no-deps", "--no-binary", "transformers", "--dest", str(folder)]
        command = [sys.executable, "-m", "pip", "download", "--quiet", *options, *source_only, requirement]
        subprocess.run(command, check=True)
        with tarfile.open(folder / f"{name}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return tests


if __name__ == "__main__":
    print(fetched(Path(sys.argv[1]), sys.argv[2:]))
