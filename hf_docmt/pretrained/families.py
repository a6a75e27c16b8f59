"""Which sentence-level models are known, and their settings as those of the backbone."""

from transformers import PreTrainedConfig

FAMILIES = {
    "marian": {"position_type": "sinusoidal", "normalize_before": False, "layernorm_embedding": False},
    "bart": {"position_type": "learned", "normalize_before": False, "layernorm_embedding": True},
    "mbart": {"position_type": "learned", "normalize_before": True, "layernorm_embedding": True},
    "m2m_100": {"position_type": "sinusoidal_t2t", "normalize_before": True, "layernorm_embedding": False},
}
WITH_CODES = ("mbart", "m2m_100")  # families with language codes in every sequence
SIZES = ("vocab_size", "d_model", "activation_function", "scale_embedding", "tie_word_embeddings") + tuple(
    f"{side}_{size}" for side in ("encoder", "decoder") for size in ("layers", "attention_heads", "ffn_dim")
)
TOKENS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
SETTINGS = ("max_position_embeddings", "dropout", "attention_dropout", "activation_dropout", "init_std")
FIXED = (*SIZES, *FAMILIES["marian"], "position_offset", "share_encoder_decoder_embeddings")  # by the weights


def config_from_pretrained(config: PreTrainedConfig) -> dict:
    """The `DocMTConfig` fields of a sentence-level model: sizes, switches and special tokens.

    Two vocabularies (Marian) have tables of the larger one's size. Raises ValueError for another model type.
    """
    if config.model_type not in FAMILIES:
        raise ValueError(f"model_type: got {config.model_type!r}, expected one of {', '.join(FAMILIES)}")
    fields = {name: getattr(config, name) for name in SIZES + SETTINGS + TOKENS} | FAMILIES[config.model_type]
    fields["position_offset"] = position_offset(fields["position_type"], config.pad_token_id)
    # Marian ties its two embedding tables by a switch of their own, the others tie all tables or none.
    fields["share_encoder_decoder_embeddings"] = getattr(
        config, "share_encoder_decoder_embeddings", config.tie_word_embeddings
    )
    fields["vocab_size"] = max(config.vocab_size, getattr(config, "decoder_vocab_size", 0))
    return fields


def position_offset(position_type: str, pad_token_id: int | None) -> int:
    """The first token's position: 2 in the tables of BART and mBART, the one after the padding in M2M-100, else 0."""
    return {"learned": 2, "sinusoidal_t2t": (pad_token_id or 0) + 1}.get(position_type, 0)
