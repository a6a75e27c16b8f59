"""Suites in temporary folders, tiny models for systems."""

from functools import partial

import pytest
import torch
from support.pretrained_models import SIZES, randomised
from support.suite_files import write_json_suite, write_lopes
from support.systems import TOKENS, WORDS
from transformers import LlamaConfig, LlamaForCausalLM, MarianConfig, MarianMTModel

from hf_docmt.data.tokenizers import train_tokenizer


@pytest.fixture
def write_suite(tmp_path):
    """Writes a suite of JSON items, with the documents beside it; see `write_json_suite`."""
    return partial(write_json_suite, tmp_path)


@pytest.fixture
def lopes(tmp_path):
    """Writes the files of Lopes; see `write_lopes`."""
    return partial(write_lopes, tmp_path / "lopes")


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer([" ".join(WORDS), "English German Translate from to : \n"] * 3, vocab_size=340)


@pytest.fixture(scope="module")
def marian(tokenizer):
    """Random weights with which translations are pieces that are cut into the same pieces again."""
    torch.manual_seed(0)
    config = MarianConfig(**SIZES, **TOKENS, vocab_size=len(tokenizer), decoder_vocab_size=len(tokenizer))
    return randomised(MarianMTModel(config))


@pytest.fixture(scope="module")
def llama(tokenizer):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    ends = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "max_position_embeddings": 256}
    return randomised(LlamaForCausalLM(LlamaConfig(**sizes, **ends, vocab_size=len(tokenizer))))
