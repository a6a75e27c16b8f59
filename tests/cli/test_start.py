"""What commands import: the way of a text file, and files that are refused before anything heavy is imported."""

import subprocess
import sys

import pytest

CODE = """
import sys
if "first" in sys.argv[1]:
    import torch
    from transformers import PreTrainedModel  # which imports scipy and accelerate itself
if sys.argv[1] == "no-splitter":
    sys.modules["sentencex"] = None
before = set(sys.modules)
sys.argv[:2] = ["docmt"]
try:
    from hf_docmt.cli import main
    main()
finally:
    names = (name.split(".") for name in set(sys.modules) - before)
    print(*sorted({".".join(name[: 1 + (name[0] == "hf_docmt")]) for name in names}), file=sys.stderr)
"""
HEAVY = {"torch", "transformers", "datasets", "pandas", "scipy", "accelerate", "sacrebleu", "evaluate", "peft"}
COMMON = {"cli", "data", "files", "messages", "modeling", "options", "reports"}  # parts of our package
HEAVY |= {"pyarrow", "fsspec", "matplotlib", "lxml", "starlette", "ray", "ctranslate2", "huggingface_hub"}


def imports(*arguments, first="-"):
    """Exit code, standard error without its last line, and the packages that were imported, of ours those inside."""
    command = [sys.executable, "-c", CODE, first, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *lines, last = done.stderr.strip().split("\n")
    return done.returncode, "\n".join(lines), set(last.split())


def own(names):
    """Parts of our package among these."""
    return {name.removeprefix("hf_docmt.") for name in names if name.startswith("hf_docmt.")}


@pytest.mark.parametrize(
    ("options", "first", "heavy"), [([], "-", set()), (["--dtype", "bf16"], "first", {"transformers"})]
)
def test_imports_of_a_text_file(model, write, options, first, heavy):
    code, err, names = imports("translate", model, write("in.txt", "One.\nTwo.\n"), *options, first=first)
    assert code == 0 and "2 sentences" in err, err
    assert names & HEAVY == heavy
    assert own(names) <= COMMON | {"engine", "formats", "journal", "loading", "systems", "translation"}


END = """
import sys
from hf_docmt.cli import run

class Kept:
    def __del__(self):
        print("freed")

kept = Kept()
run()
"""


@pytest.mark.parametrize(("argument", "code"), [("--version", 0), ("--unknown", 2), ("corpus", 2)])
def test_a_command_ends_at_once(write, monkeypatch, argument, code):
    monkeypatch.setenv("HF_DOCMT_PLUGINS", str(write("plugin.py", "import atexit; atexit.register(print, 'handler')")))
    done = subprocess.run([sys.executable, "-c", END, argument], capture_output=True, text=True, check=False)
    assert done.returncode == code and done.stdout.endswith("handler\n")


@pytest.mark.parametrize("kind", ["txt", "jsonl"])
def test_imports_of_bleu(write, kind):
    row = '{"doc_id": "a", "translation": %s, "search": {}}\n'
    translations, references = "Ein Hund.\n", "Der Hund.\n"
    if kind == "jsonl":
        translations, references = row % '["Ein Hund."]', row % '[{"en": "A dog.", "de": "Der Hund."}]'
    files = write(f"out.{kind}", translations), write(f"ref.{kind}", references)
    code, err, names = imports("evaluate", *files, "-l", "en-de", "-m", "bleu")
    assert code == 0, err
    assert names & {*HEAVY, "numpy", "regex", "filelock"} <= {"sacrebleu", "lxml"}  # which sacrebleu imports
    assert own(names) <= COMMON | {"evaluation"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt"], "the file does not exist"),
        (["in.txt", "-o", "in.txt"], "is the input"),
        (["in.txt", "-o", "missing/out.txt"], "not a writable folder"),
        (["in.txt", "--format", "lins"], "did you mean 'lines'?"),
        (["missing.docx", "-o", "out.docx"], "the file does not exist"),
        (["in.txt", "-o", "out.docx"], "lines is written as plain text, not as .docx; give another extension"),
        (["in.jsonl", "-o", "out.srt"], "jsonl is written as JSON lines, not as .srt; give a name that ends in .jsonl"),
    ],
)
def test_wrong_files_are_refused_at_once(model, write, monkeypatch, arguments, message):
    monkeypatch.chdir(write("in.txt", "One.\n").parent)
    write("in.jsonl", '{"text": "One."}\n')
    code, err, names = imports("translate", model, *arguments)
    assert code == 1 and message in err, err
    assert names & HEAVY == set()


def test_a_missing_extra_is_named_at_once(model, write):
    code, err, names = imports("translate", model, write("a.md", "One.\n"), "-o", "b.md", first="no-splitter")
    assert code == 1 and "needs the sentence splitter sentencex: pip install" in err and names & HEAVY == set()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("contrast MODEL missing.json", "missing.json: the file does not exist"),
        ("cxmi MODEL missing.jsonl", "missing.jsonl: the file does not exist"),
        ("analyze why MODEL missing.txt --sentence 1", "missing.txt: the file does not exist"),
        ("rerank missing.jsonl", "missing.jsonl: the file does not exist"),
        ("export MODEL out --report missing.json", "missing.json: the file does not exist"),
        ("export MODEL MODEL", "is not an empty folder"),
        ("convert MODEL MODEL", "is not an empty folder"),
        ("convert missing.bin out --vocab v.spm", "missing.bin: the file does not exist"),
        ("convert in.txt out", "in.txt: expected a model folder, or a file of Marian (.npz, .bin) or fairseq (.pt)"),
        ("train demo_concat4 --resum", "override '--resum': expected key=value"),
        ("push missing owner/name", "missing: the file does not exist"),
        ("demo MODEL", "is not an empty folder"),
        ("info missing.yaml", "missing.yaml: unknown recipe"),
        ("info concat", "concat: unknown recipe; did you mean the packaged recipe 'demo_concat4'?"),
        ("train demo_concat", "did you mean the packaged recipe 'demo_concat4'?"),
        ("train demo_concat4", "train.jsonl does not exist; docmt corpus runs/demo/corpus writes it"),
        ("train demo_concat4 data.train.path=mine.jsonl", "the file mine.jsonl does not exist; check the path"),
        ("translate in.txt", "in.txt is a file, expected a model folder or a name on the Hub"),
    ],
)
def test_all_commands_refuse_wrong_arguments_at_once(model, write, monkeypatch, command, message):
    monkeypatch.chdir(write("in.txt", "One.\n").parent)
    code, err, names = imports(*(str(model) if word == "MODEL" else word for word in command.split()))
    assert code == 1 and message in err, err
    assert names & {"torch", "transformers"} == set()
