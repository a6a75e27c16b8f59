"""What several tests of training start from."""

import pytest
from support.tiny_run import recipe_mapping, write_corpus_files
from support.tiny_trainer import make_training_data

from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.run import train


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Folder with the files of the built-in corpus."""
    return write_corpus_files(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Examples of training and validation, and their tokenizer."""
    return make_training_data(tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="session")
def sentence_model(corpus, tmp_path_factory):
    """Folder of a trained sentence-level model, and its recipe; not to be changed."""
    recipe = parse_recipe(recipe_mapping(corpus, tmp_path_factory.mktemp("runs") / "sentence", average=2))
    return train(recipe), recipe
