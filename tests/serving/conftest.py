"""A server around a tiny model."""

import pytest
from support.http_server import running
from support.tiny_models import build, word_tokenizer

from hf_docmt.systems import DocMTSystem

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="session")
def system():
    """A window model that reads the sentence before and its translation."""
    model = build("concat", seed=2, past_context=1)
    model.generation_config.max_new_tokens = 8
    return DocMTSystem(model, word_tokenizer(), strategy="sequential")


@pytest.fixture(scope="module")
def client(system):
    with running(system) as client:
        yield client
