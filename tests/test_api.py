"""The Python API: light to import, every name there, every example in its docstrings runs."""

import ast
import doctest
import inspect
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from support.tiny_models import SIZES

import hf_docmt
from hf_docmt.loading import registry

NAMES = [name for name in hf_docmt.__all__ if name != "__version__"]
HEAVY = ("torch", "transformers", "datasets", "numpy")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the examples find in their folder: `runs/corpus` and the tiny model `runs/concat`."""
    folder = tmp_path_factory.mktemp("api")
    corpus = hf_docmt.write_corpus(folder / "runs" / "corpus", train=6, validation=2, test=2, suite_items=2)
    documents = hf_docmt.read_documents(path=corpus / "train.jsonl", source_lang="en", target_lang="de")
    texts = [text for row in documents for pair in row["translation"] for text in pair.values()]
    tokenizer = hf_docmt.train_tokenizer(texts, vocab_size=320)
    concat = registry.get("concat")
    config = concat.config_class(
        **SIZES | {"vocab_size": len(tokenizer), "max_position_embeddings": 512}, past_context=1
    )
    model = concat.model_class(config)
    model.generation_config.max_new_tokens = 8
    for part in (model, tokenizer):
        part.save_pretrained(folder / "runs" / "concat")
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name, folder, tmp_path, monkeypatch):
    """Functions have an example; `model`, `tokenizer`, `documents` and what the package gives are there."""
    found = getattr(hf_docmt, name)
    (test,) = doctest.DocTestFinder(recurse=False).find(found, name, globs=dict(vars(sys.modules[found.__module__])))
    if inspect.isfunction(found):
        assert test.examples, f"{name} has no example"
    (tmp_path / "runs").mkdir()
    for part in (folder / "runs").iterdir():
        (tmp_path / "runs" / part.name).symlink_to(part)
    monkeypatch.chdir(tmp_path)
    if test.examples:
        documents = hf_docmt.read_documents(path="runs/corpus/test.jsonl", source_lang="en", target_lang="de")
        model, tokenizer = hf_docmt.load_model("runs/concat")
        given = {one: getattr(hf_docmt, one) for one in NAMES} | {"hf_docmt": hf_docmt, "replace": replace}
        test.globs = given | test.globs | {"model": model, "tokenizer": tokenizer, "documents": documents}
    output = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=output.append)
    assert not runner.failures, "".join(output)


@pytest.mark.parametrize("name", NAMES)
def test_documented(name):
    assert len(inspect.getdoc(getattr(hf_docmt, name)).splitlines()[0]) < 120
    assert f"`{name}`" in hf_docmt.__doc__


def test_names_for_type_checkers():
    """What type checkers read is what there is at run time."""
    tree = ast.parse(Path(hf_docmt.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    *imports, assignment = block.body
    exec(ast.unparse(ast.Module(block.body, [])), found := {})
    names = [alias.asname for node in imports for alias in node.names if alias.asname == alias.name]
    names += [target.id for target in assignment.targets[0].elts]
    assert sorted(names) == sorted(NAMES) and set(NAMES) <= set(dir(hf_docmt))
    assert all(found[name] is getattr(hf_docmt, name) for name in NAMES)


def test_type_checkers_know_the_methods_of_models():
    """By the class of models that the API returns; on transformers' own they take any name for a tensor."""
    for function in (hf_docmt.load_model, hf_docmt.convert_sentence_model):
        model_class, _ = get_args(get_type_hints(function)["return"])
        assert callable(model_class.translate_documents)


def test_import_is_light():
    program = f"import sys, hf_docmt; hf_docmt.__version__; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "[]"


def test_unknown_name():
    with pytest.raises(AttributeError, match="has no attribute 'translate'"):
        hf_docmt.translate  # noqa: B018
