"""Document models from pretrained sentence-level ones: Marian, BART, mBART, M2M-100 (NLLB)."""

import os

import torch
from safetensors import SafetensorError
from transformers import (
    AutoModelForSeq2SeqLM,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from hf_docmt import registry
from hf_docmt.data.tokenizers import BOD, adapt_tokenizer
from hf_docmt.files import check_hub_name
from hf_docmt.messages import closest_hint
from hf_docmt.remote_code import load_tokenizer

FAMILIES = {
    "marian": {"position_type": "sinusoidal", "normalize_before": False, "layernorm_embedding": False},
    "bart": {"position_type": "learned", "normalize_before": False, "layernorm_embedding": True},
    "mbart": {"position_type": "learned", "normalize_before": True, "layernorm_embedding": True},
    "m2m_100": {"position_type": "sinusoidal_t2t", "normalize_before": True, "layernorm_embedding": False},
}
SIZES = ("vocab_size", "d_model", "activation_function", "scale_embedding", "tie_word_embeddings") + tuple(
    f"{side}_{size}" for side in ("encoder", "decoder") for size in ("layers", "attention_heads", "ffn_dim")
)
TOKENS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
SETTINGS = ("max_position_embeddings", "dropout", "attention_dropout", "activation_dropout", "init_std")
VOCABULARY = ("shared.weight", "embed_tokens.weight", "lm_head.weight", "final_logits_bias")
UNUSED = ("embed_positions.weight", "model.shared.weight")  # sinusoidal tables; the common table of untied ones
DECODING = ("num_beams", "length_penalty", "bad_words_ids")


def from_sentence_model(
    source: str | os.PathLike | PreTrainedModel,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    **overrides,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase | None]:
    """A Marian, BART, mBART or M2M-100 (NLLB) model as a concatenation model with the same weights, in float32.

    `source` is a folder, a Hub name or a model. The tokenizer (that of the folder, or the one given) gets `<sep>` and
    `<bod>`; their embeddings start as the mean of all others. `overrides` are `ConcatConfig` fields: the mechanism, the
    languages, dropout, other start tokens. Returns the model in evaluation mode and the tokenizer, None for a model
    that was given without one.

    Departures: layer drop is left out, and no language token is put in front of a sentence: for mBART and M2M-100 give
    the target language's token as `decoder_start_token_id`.
    Raises ValueError for another model type, unknown overrides, overrides of what the weights fix, broken weight files.
    """
    original = source if isinstance(source, PreTrainedModel) else _load_model(source)
    if tokenizer is None and not isinstance(source, PreTrainedModel):
        tokenizer = load_tokenizer(source)
    fields = config_from_pretrained(original.config)
    if tokenizer is None:  # the new tokens get the ids behind the vocabulary
        size = fields["vocab_size"]
        fields |= {"sep_token_id": size, "bod_token_id": size + 1, "vocab_size": size + 2}
    else:
        tokenizer, rows = adapt_tokenizer(tokenizer)
        fields |= {"sep_token_id": tokenizer.sep_token_id, "bod_token_id": tokenizer.convert_tokens_to_ids(BOD)}
        fields |= {"unk_token_id": tokenizer.unk_token_id, "vocab_size": max(rows, fields["vocab_size"])}
    architecture = registry.get("concat")
    _check_overrides(overrides, fields, architecture.config_class)

    model = architecture.model_class(architecture.config_class(**fields | overrides)).eval()
    with torch.device("meta"):
        plain = architecture.model_class(architecture.config_class(**fields))
    _copy_weights(original, model, plain.state_dict())
    for name in DECODING:
        setattr(model.generation_config, name, getattr(original.generation_config, name, None))
    return model, tokenizer


def config_from_pretrained(config: PreTrainedConfig) -> dict:
    """The `ConcatConfig` fields of a sentence-level model without context: sizes, switches and special tokens.

    The first token's position is 0 in Marian, 2 in the tables of BART and mBART, and the one after the padding index
    in M2M-100. Raises ValueError for another model type and for two vocabularies, for which the backbone has no switch.
    """
    if config.model_type not in FAMILIES:
        raise ValueError(f"model_type: got {config.model_type!r}, expected one of {', '.join(FAMILIES)}")
    fields = {name: getattr(config, name) for name in SIZES + SETTINGS + TOKENS} | FAMILIES[config.model_type]
    fields["position_offset"] = {"marian": 0, "m2m_100": config.pad_token_id + 1}.get(config.model_type, 2)
    # Marian ties its two embedding tables by a switch of their own, the others tie all tables or none.
    fields["share_encoder_decoder_embeddings"] = getattr(
        config, "share_encoder_decoder_embeddings", config.tie_word_embeddings
    )
    if getattr(config, "decoder_vocab_size", config.vocab_size) != config.vocab_size:
        raise ValueError(
            f"decoder_vocab_size: got {config.decoder_vocab_size} beside vocab_size {config.vocab_size}, expected one "
            "joint vocabulary; models with two vocabularies cannot be converted"
        )
    return fields


def _load_model(source: str | os.PathLike) -> PreTrainedModel:
    check_hub_name(source, "model")
    model_type = PreTrainedConfig.get_config_dict(source)[0].get("model_type")
    if model_type not in FAMILIES:
        raise ValueError(f"{source}: got model type {model_type!r}, expected one of {', '.join(FAMILIES)}")
    try:
        return AutoModelForSeq2SeqLM.from_pretrained(source, dtype=torch.float32, trust_remote_code=False)
    except SafetensorError as error:
        raise ValueError(f"{source}: weights cannot be read ({error}); copy or download the folder again") from error


def _check_overrides(overrides: dict, fields: dict, config_class: type) -> None:
    known = vars(config_class(**fields))
    fixed = (*SIZES, *FAMILIES["marian"], "position_offset", "share_encoder_decoder_embeddings")
    fixed += ("max_position_embeddings",) if fields["position_type"] == "learned" else ()
    for name, value in overrides.items():
        if name not in known:
            raise ValueError(f"{name}: not a field of {config_class.__name__}{closest_hint(name, known)}")
        if name in fixed and value != fields[name]:
            raise ValueError(f"{name}: got {value!r}, but the pretrained weights need {fields[name]!r}; leave it out")
    if (fields | overrides)["decoder_start_token_id"] is None:
        raise ValueError(
            "decoder_start_token_id: got none, expected the token that decoding starts with; give the id of the target "
            "language's token"
        )


def _copy_weights(original: PreTrainedModel, model: PreTrainedModel, plain: dict[str, torch.Tensor]) -> None:
    """Copy by name; `plain` is the state of the model without a mechanism, the rest keeps its initial values.

    New rows of the vocabulary are the mean of the others (Hewitt 2021).
    """
    weights = original.state_dict()
    unexpected = [name for name in weights if name not in plain and not name.endswith(UNUSED)]
    missing = [name for name in plain if name not in weights and name != "final_logits_bias"]
    if unexpected or missing:
        raise ValueError(
            f"{type(original).__name__}: weights do not fit the backbone; unexpected: {unexpected[:5]}, "
            f"missing: {missing[:5]}"
        )
    for name in plain.keys() & weights.keys():
        weight, dim = weights[name], 1 if name == "final_logits_bias" else 0
        if name.endswith(VOCABULARY) and weight.shape[dim] < plain[name].shape[dim]:
            mean = weight.mean(dim, keepdim=True)
            weight = torch.cat([weight] + [mean] * (plain[name].shape[dim] - weight.shape[dim]), dim)
        plain[name] = weight
    model.load_state_dict({name: weight for name, weight in plain.items() if not weight.is_meta}, strict=False)
