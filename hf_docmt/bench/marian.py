"""The two sides of a comparison: a model of this package and a MarianMTModel of the same sizes and weights."""

from collections.abc import Mapping

import torch
from transformers import MarianConfig, MarianMTModel, PreTrainedModel

from hf_docmt import registry

# Sizes of Transformer-base (Vaswani et al. 2017, table 3).
TRANSFORMER_BASE = {
    "d_model": 512,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "decoder_ffn_dim": 2048,
}
SMALL = {
    "d_model": 256,
    "encoder_layers": 3,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 1024,
    "decoder_ffn_dim": 1024,
}
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
    Raises `ValueError` for unknown or missing sizes.
    """
    if sizes.keys() != TRANSFORMER_BASE.keys():
        raise ValueError(f"sizes: got {sorted(sizes)}, expected {sorted(TRANSFORMER_BASE)}")
    torch.manual_seed(seed)
    peer = MarianMTModel(MarianConfig(vocab_size=vocab_size, forced_eos_token_id=None, **sizes, **COMMON))
    architecture = registry.get("concat")
    ours = architecture.model_class(architecture.config_class(vocab_size=vocab_size, **sizes, **COMMON, **ours_fields))
    found = ours.load_state_dict(peer.state_dict(), strict=False)
    unexpected = [name for name in found.unexpected_keys if not name.endswith("embed_positions.weight")]
    if found.missing_keys or unexpected:
        raise RuntimeError(f"the models do not have the same weights: {found.missing_keys + unexpected}")
    return ours, peer
