"""Training and translating where the system is as Windows is: some things are lacking, others are refused."""

import fcntl
import os
import sys
from pathlib import Path

from support.processes import FORKS
from support.tiny_run import recipe_mapping, write_corpus_files

from hf_docmt import cli, files
from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.run import train

LACKING = "fork register_at_fork killpg sched_getaffinity getuid geteuid setsid".split()


def be_windows() -> None:
    """In this process there are no locks, no folder can be opened, and no open file be moved or deleted."""
    files.IS_WINDOWS = True
    for name in LACKING:
        delattr(os, name)
    for name in ("open", "fsync", "unlink", "remove", "replace", "rename"):
        setattr(os, name, refusing(getattr(os, name)))


def refusing(function):
    def call(first, *others, **options):
        if function.__name__ == "fsync":
            is_refused = fcntl.fcntl(first, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
        elif function.__name__ == "open":
            is_refused = os.path.isdir(first) and "dir_fd" not in options  # as rmtree elsewhere opens them
        else:
            paths = {os.path.realpath(path) for path in (first, *others) if os.path.isfile(path)}
            paths = {path for path in paths if ".filelock-probe" not in path}  # filelock's own, on other systems alone
            is_refused = not paths.isdisjoint(map(os.path.realpath, Path("/proc/self/fd").iterdir()))
        if is_refused:
            raise PermissionError(13, f"refused by {function.__name__}", str(first))
        return function(first, *others, **options)

    return call


def work(folder: Path) -> None:
    """Train, also what fails before its first update, and translate what the trained model is to."""
    sys.stdout = sys.stderr = (folder / "log.txt").open("w", encoding="utf-8")
    be_windows()
    mapping = recipe_mapping(folder, folder / "run", max_steps=2)
    mapping["data"]["cache"] = str(folder / "cache")
    try:
        train(parse_recipe(mapping, ["init_from=nowhere", "tokenizer=null"]))
    except ValueError:
        assert not list((folder / "run").iterdir())
    train(parse_recipe(mapping))
    for name in ("validation.jsonl", "page.html"):
        arguments = [folder / "run", folder / name, "-o", folder / f"new_{name}"]
        cli.app(["translate", *map(str, arguments)], standalone_mode=False)


def test_training_and_translating(tmp_path):
    write_corpus_files(tmp_path)
    (tmp_path / "page.html").write_text("<p>See <b>it</b>.</p>")
    process = FORKS.Process(target=work, args=(tmp_path,))
    process.start()
    process.join(300)
    assert process.exitcode == 0, (tmp_path / "log.txt").read_text("utf-8")
    names = {path.name for path in tmp_path.iterdir()}
    assert {"new_validation.jsonl", "new_page.html"} <= names and not [name for name in names if "journal" in name]
    assert not list((tmp_path / "run").glob("*.lock")) and not list((tmp_path / "cache").glob(".*"))
