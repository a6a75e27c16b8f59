"""What commands import: the way of a text file, and files that are refused before anything heavy is imported."""

import subprocess
import sys

import pytest

CODE = """
import sys
if "first" in sys.argv[1]:
    import torch
    from transformers import PreTrainedModel  # which imports scipy and accelerate itself
before = set(sys.modules)
sys.argv[:2] = ["docmt"]
try:
    from hf_docmt.cli import main
    main()
finally:
    print(*sorted({name.split(".")[0] for name in set(sys.modules) - before}), file=sys.stderr)
"""
HEAVY = {"torch", "transformers", "datasets", "pandas", "scipy", "accelerate", "sacrebleu", "evaluate", "peft"}
HEAVY |= {"pyarrow", "fsspec", "matplotlib", "lxml", "starlette", "ray", "ctranslate2", "huggingface_hub"}


def imports(*arguments, first=False):
    """Exit code, standard error without its last line, and the packages that were imported."""
    command = [sys.executable, "-c", CODE, "first" if first else "-", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *lines, last = done.stderr.strip().split("\n")
    return done.returncode, "\n".join(lines), set(last.split())


def test_imports_of_a_text_file(model, write):
    code, err, names = imports("translate", model, write("in.txt", "One.\nTwo.\n"), first=True)
    assert code == 0 and "2 sentences" in err, err
    assert names & HEAVY == {"transformers"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt"], "the file does not exist"),
        (["in.txt", "-o", "in.txt"], "is the input"),
        (["in.txt", "-o", "missing/out.txt"], "no folder"),
        (["in.txt", "--format", "lins"], "did you mean 'lines'?"),
        (["missing.docx", "-o", "out.docx"], "the file does not exist"),
    ],
)
def test_wrong_files_are_refused_at_once(model, write, monkeypatch, arguments, message):
    monkeypatch.chdir(write("in.txt", "One.\n").parent)
    code, err, names = imports("translate", model, *arguments)
    assert code == 1 and message in err, err
    assert names & HEAVY == set()
