"""The command `docmt` as a whole: help, version, completion; clear errors with exit code 1."""

import os
import resource
import subprocess
import sys

import pytest
from typer import rich_utils

from hf_docmt import __version__, cli
from hf_docmt.cli import LARGE_PAGES, NO_BARS, PANELS


def test_help_answers_quickly():
    """`docmt --help` takes well under a second of processor time: heavy libraries stay out of it. It is in UTF-8."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    other = {"capture_output": True, "encoding": "utf-8", "env": os.environ | {"PYTHONIOENCODING": "cp1252"}}
    done = subprocess.run([sys.executable, "-m", "hf_docmt", "--help"], **other)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0 and "translate" in done.stdout and "╭─" in done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0


def test_commands_are_grouped_and_in_order(run, monkeypatch):
    monkeypatch.setenv("TERMINAL_WIDTH", "100")
    code, out, _ = run("--help")
    panels = ["Start", "Data", "Models", "Evaluation", "Publication", "Analysis"]
    found = [out.find(f" {panel} ──") for panel in panels]
    assert code == 0 and -1 not in found and found == sorted(found)
    assert "rerank" in out and "│ words" not in out and "--show-completion" in out


@pytest.mark.parametrize("command", sum(PANELS.values(), ()), ids=lambda command: command.__name__)
def test_help_fits_a_terminal(run, monkeypatch, command):
    """80 columns, at most 118 lines, and lines of examples stay whole."""
    monkeypatch.setattr(rich_utils, "MAX_WIDTH", 80)
    lines = run(command.__name__.replace("_", "-"), "--help")[1].splitlines()
    examples = [f" {line}" for line in command.__doc__.split("\n") if line.startswith("  ")]
    assert max(map(len, lines)) == 80 and len(lines) <= 118 and "<str>" not in str(lines)
    assert {line.ljust(80) for line in examples} <= set(lines)


def test_version(run):
    assert run("--version") == (0, f"docmt {__version__}\n", "")


@pytest.mark.parametrize("name", [LARGE_PAGES, NO_BARS])
def test_settings_of_libraries_unless_the_environment_says_otherwise(run, monkeypatch, name):
    """Before torch and datasets are imported, which read them once. Here, standard error is not a terminal."""
    for value in ("", "0"):
        monkeypatch.setenv(name, value)
        run("--version")
        assert os.environ[name] == value
    monkeypatch.delenv(name)
    run("--version")
    assert os.environ[name] == "1"


def test_what_is_loaded():
    """No torch with the command; with translation neither data sets nor tables, which take longer than a sentence."""
    program = (
        "import sys, hf_docmt.cli; print('torch' in sys.modules); "
        "import hf_docmt.translation.job, hf_docmt.translation.processes, hf_docmt.data.collators; "
        "print({'datasets', 'pandas'} & sys.modules.keys())"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\nset()\n"


def test_completion_offers_commands(monkeypatch):
    asked = {"_DOCMT_COMPLETE": "complete_bash", "COMP_WORDS": "docmt ev", "COMP_CWORD": "1"}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run([sys.executable, "-m", "hf_docmt"], capture_output=True, text=True)
    assert done.stdout.split() == ["evaluate"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("translate", "nowhere", "-"), ("nowhere",)),
        (("translate", "{model}", "{documents}", "--strategy", "slidng"), ("slidng", "sliding")),
        (("contrast", "{model}", "{documents}"), ("documents.jsonl: not a contrastive suite; give JSON or a folder",)),
        (("compare", "{documents}"), ("give a report, which docmt evaluate",)),
        (("translate", "{model}", "{table}", "-o", "o.csv"), ("add --columns with names or numbers of 1 'one'",)),
        (("corpus", "{model}"), ("not an empty folder",)),
        (("contrast", "{model}", "absent.json", "-o", "no/such/folder/out"), ("no/such/folder",)),
        (("evaluate", "{documents}", "{documents}", "-o", "no/such/folder/out"), ("no/such/folder",)),
    ],
)
def test_errors_are_one_line_and_exit_code_one(run, model, documents, write, arguments, words):
    table = write("table.csv", "one,two\n")
    filled = [str(argument).format(model=model, documents=documents, table=table) for argument in arguments]
    code, out, err = run(*filled)
    assert code == 1 and out == ""
    assert err.startswith("docmt: ") and "Traceback" not in err
    for word in words:
        assert word in err


@pytest.mark.parametrize("error", [Exception("disk full (os error 28)"), OSError(28, "disk full"), ValueError("full")])
def test_errors_of_the_system_have_no_type_in_libraries_of_rust(run, monkeypatch, error):
    monkeypatch.setattr(cli, "app", Raising(error))
    assert run("--version") == (1, "", f"docmt: {error}\n")


def test_other_errors_keep_their_traceback(run, monkeypatch):
    monkeypatch.setattr(cli, "app", Raising(Exception("os error")))
    with pytest.raises(Exception, match="^os error$"):
        run("--version")


class Raising:
    def __init__(self, error: Exception):
        self.error = error

    def __call__(self, **settings):
        raise self.error
