"""Principal components of position encodings: figure 1 of Lupo et al. (2023), models, refusals."""

import json

import numpy as np
import pytest
import torch
from support.errors import refused
from typer.testing import CliRunner

from hf_docmt.analysis.position_components import model_positions, position_components, sinusoidal_positions
from hf_docmt.cli import app
from hf_docmt.modeling.configuration_concat import ConcatConfig
from hf_docmt.modeling.configuration_window import WindowConfig
from hf_docmt.modeling.modeling_concat import ConcatForConditionalGeneration
from hf_docmt.modeling.modeling_window import WindowForConditionalGeneration

TINY = {"vocab_size": 20, "d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8}
TINY |= {"decoder_ffn_dim": 8, "encoder_attention_heads": 2, "decoder_attention_heads": 2}


def test_equal_to_the_eigenvalues_of_the_covariance():
    encodings = sinusoidal_positions(60, 16)
    values = np.sort(np.linalg.eigvalsh(np.cov(encodings.numpy().astype(float), rowvar=False)))[::-1]
    expected = np.cumsum(values) / values.sum()
    np.testing.assert_allclose(position_components(encodings).cumulative, expected, atol=1e-12)


def test_the_paper(tmp_path):
    """1024 positions of 512 dimensions need less than half of the components."""
    picture = tmp_path / "components.png"
    done = CliRunner().invoke(app, ["analyze", "positions", "--json", "--picture", str(picture)])
    facts = json.loads(done.output)
    assert [row["components"] for row in facts["needed"]] == sorted(row["components"] for row in facts["needed"])
    assert 100 < facts["needed"][-1]["components"] < 256
    assert len(facts["cumulative"]) == 512 and facts["cumulative"][-1] == pytest.approx(1)
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_models():
    learned = ConcatForConditionalGeneration(ConcatConfig(**TINY, position_type="learned", max_position_embeddings=30))
    table = model_positions(learned, 30)
    assert torch.equal(table, learned.get_encoder().position_encoding(torch.arange(30)[None])[0])
    assert position_components(table).needed(1e-9) == 1
    refused("encodings of 30 positions, got 31", model_positions, learned, 31)
    sinusoids = ConcatForConditionalGeneration(ConcatConfig(**TINY))
    torch.testing.assert_close(model_positions(sinusoids, 50), sinusoidal_positions(50, 8))
    relative = WindowForConditionalGeneration(WindowConfig(**TINY))
    refused("no positions at its input", position_components, model_positions(relative, 9))


def test_bad_input():
    refused("at least 2", position_components, torch.ones(1, 4))
    refused("even number of dimensions, got 5", sinusoidal_positions, 9, 5)
