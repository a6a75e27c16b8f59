"""A double of the Hub, and the files of fairseq checkpoints."""

import pytest
from support import hub_double
from support.fairseq_cases import write_vocabularies


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with SentencePiece models, dictionaries and BPE codes."""
    folder = tmp_path_factory.mktemp("fairseq")
    write_vocabularies(pytest.importorskip("sentencepiece"), folder)
    return folder


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with hub_double.hub_double() as server:
        hub_double.use(server, tmp_path / "home", monkeypatch)
        yield server
