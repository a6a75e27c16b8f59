"""What the tests of converted fairseq checkpoints share."""

import pytest
from support.fairseq_cases import write_vocabularies


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with SentencePiece models, dictionaries and BPE codes."""
    folder = tmp_path_factory.mktemp("fairseq")
    write_vocabularies(pytest.importorskip("sentencepiece"), folder)
    return folder
