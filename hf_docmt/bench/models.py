"""Models, documents and sentences of benchmarks: pairs with Marian's weights, random weights, random tokens."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import torch
from datasets import Dataset
from torch import nn
from transformers import MarianConfig, MarianMTModel, PreTrainedModel

from hf_docmt import registry
from hf_docmt.data.documents import make_documents
from hf_docmt.data.readers import read_documents
from hf_docmt.data.synthetic.corpus import make_corpus
from hf_docmt.modeling.document_state import DocumentState, SentencePart

SPECIAL_TOKENS = 6  # number of special tokens; their ids are the first ones
EOS, SEP = 3, 4  # token ids
SENTENCE_TOKENS = 25  # of a sentence in random documents
NEVER = -1e9  # logit bias of a token that is never chosen


def layer_sizes(d_model: int, **sizes: int) -> dict[str, int]:
    """The fields of a configuration whose encoder and decoder have the same sizes."""
    sides = ("encoder", "decoder")
    return {"d_model": d_model} | {f"{side}_{name}": size for name, size in sizes.items() for side in sides}


TRANSFORMER_BASE = layer_sizes(512, layers=6, attention_heads=8, ffn_dim=2048)  # Vaswani et al. 2017, table 3
SMALL = layer_sizes(256, layers=3, attention_heads=4, ffn_dim=1024)
TINY = layer_sizes(32, layers=1, attention_heads=2, ffn_dim=64)
# Post-norm layers and scaled embeddings with sinusoidal positions, as in the paper; token ids of our tokenizers.
COMMON = {
    "activation_function": "relu",
    "scale_embedding": True,
    "dropout": 0.1,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "decoder_start_token_id": 2,
}


def build_pair(
    sizes: Mapping[str, int], vocab_size: int, seed: int, **ours_fields
) -> tuple[PreTrainedModel, MarianMTModel]:
    """Our concatenation model without sentence encodings and Marian's, with the same random weights, copied by name.

    `sizes` has the keys of `TRANSFORMER_BASE`; `ours_fields` are fields of our configuration only. Both are in training
    mode.
    """
    torch.manual_seed(seed)
    peer = MarianMTModel(MarianConfig(vocab_size=vocab_size, forced_eos_token_id=None, **sizes, **COMMON))
    architecture = registry.get("concat")
    ours = architecture.model_class(architecture.config_class(vocab_size=vocab_size, **sizes, **COMMON, **ours_fields))
    loaded = ours.load_state_dict(peer.state_dict(), strict=False)
    unexpected = [name for name in loaded.unexpected_keys if not name.endswith("embed_positions.weight")]
    if loaded.missing_keys or unexpected:
        raise RuntimeError(f"the models do not have the same weights: {loaded.missing_keys + unexpected}")
    return ours, peer


def random_model(architecture: str, fields: Mapping, sizes: Mapping, vocab_size: int) -> PreTrainedModel:
    """A model for evaluation that never chooses a special token; weights of equal names are equal in all of them."""
    entry = registry.get(architecture)
    model = entry.model_class(entry.config_class(vocab_size=vocab_size, **sizes, **fields)).eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            generator = torch.Generator().manual_seed(crc32(name.encode()))
            nn.init.normal_(parameter, std=model.config.init_std, generator=generator)
    model.final_logits_bias[:, :SPECIAL_TOKENS] = NEVER
    return model


def random_units(units: int, size: int, vocab_size: int) -> DocumentState:
    """A document of so many units of `size` random tokens each, without special tokens."""
    ids = torch.randint(SPECIAL_TOKENS, vocab_size, (units, size)).tolist()
    return DocumentState(units, [SentencePart(number, unit) for number, unit in enumerate(ids)])


def written_ids(units: Sequence[SentencePart], size: int) -> list[list[int]]:
    """The ids that were written for each of these units; RuntimeError for other numbers of tokens than `size`."""
    targets = [unit.target for unit in units]
    wrong = {len(ids) for ids in targets} - {size}
    if wrong:
        raise RuntimeError(f"expected {size} target tokens a unit, got {sorted(wrong)}")
    return targets


def random_document(tokens: int, vocab_size: int) -> torch.Tensor:
    """A document of random sentences of `SENTENCE_TOKENS` tokens with their separators, (1, tokens)."""
    ids = torch.randint(SPECIAL_TOKENS, vocab_size, (1, tokens))
    ids[:, SENTENCE_TOKENS - 1 :: SENTENCE_TOKENS] = SEP
    ids[:, -1] = EOS
    return ids


def load_documents(documents: str | Path | int, source_lang: str, target_lang: str) -> Dataset:
    """The documents of a JSON-lines file, or that number of documents of the built-in corpus (English to German)."""
    if isinstance(documents, str | Path):
        return read_documents("jsonl", path=documents, source_lang=source_lang, target_lang=target_lang)
    if (source_lang, target_lang) != ("en", "de"):
        raise ValueError(
            f"the built-in corpus is en to de, got {source_lang} to {target_lang}; give a file as documents"
        )
    return make_documents(make_corpus(train=documents, validation=0, test=0)["train"], "en", "de")
