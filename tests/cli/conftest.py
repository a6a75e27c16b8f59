"""A tiny model and documents for the tests of the commands."""

import pytest
import torch
from support.language_models import multilingual
from support.pretrained_models import saved
from support.reader_checks import DOCUMENTS, jsonl
from transformers.utils.logging import disable_progress_bar

from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.modeling.configuration_concat import ConcatConfig
from hf_docmt.modeling.modeling_concat import ConcatForConditionalGeneration


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a tiny random concatenation model and its tokenizer."""
    folder = tmp_path_factory.mktemp("model")
    texts = [text for document in DOCUMENTS for pair in document["translation"] for text in pair.values()]
    tokenizer = train_tokenizer(texts, "bpe", 270)
    torch.manual_seed(0)
    config = ConcatConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, past_context=1, source_lang="en",
        target_lang="de", init_std=0.3,
    )  # fmt: skip
    model = ConcatForConditionalGeneration(config)
    model.generation_config.max_new_tokens = 12
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def nllb(tmp_path_factory):
    """A folder with a tiny random NLLB and its tokenizer; not to be changed."""
    model, tokenizer, _ = multilingual("nllb")
    return saved(tmp_path_factory.mktemp("nllb"), model, tokenizer)


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "documents.jsonl"
    path.write_text(jsonl(DOCUMENTS), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def no_progress_bars_of_tests():
    """What a test saves writes no bars, so that standard error is the command's."""
    disable_progress_bar()
