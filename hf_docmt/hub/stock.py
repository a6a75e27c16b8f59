"""Concatenation models without sentence encodings as models of transformers' own classes: no remote code, same logits.

Such a model is the plain Transformer on longer input. Which class it is follows from the fields of its configuration.
"""

import copy

from transformers import (
    BartForConditionalGeneration,
    M2M100ForConditionalGeneration,
    MarianMTModel,
    MBartForConditionalGeneration,
    PegasusForConditionalGeneration,
    PreTrainedConfig,
    PreTrainedModel,
)

from hf_docmt.loading.pretrained import FAMILIES, SETTINGS, SIZES, TOKENS, position_offset

CLASSES: dict[str, type[PreTrainedModel]] = {
    "marian": MarianMTModel,
    "bart": BartForConditionalGeneration,
    "mbart": MBartForConditionalGeneration,
    "m2m_100": M2M100ForConditionalGeneration,
    "pegasus": PegasusForConditionalGeneration,
}
PEGASUS = {"position_type": "sinusoidal", "normalize_before": True, "layernorm_embedding": False}
PLAIN = {  # fields with the value that all classes have
    "model_type": "docmt-concat",
    "segment_encoding": "none",
    "decoder_autoregression": "self_attention",
    "layer_norm_eps": 1e-5,
}
COMPUTED = ("embed_positions.weight",)  # tables of sines, which the classes make themselves


def stock_class(config: PreTrainedConfig) -> type[PreTrainedModel]:
    """The class of transformers that computes the same as a model of this configuration.

    Raises ValueError with the field that prevents it.
    """
    own = {name: getattr(config, name) for name in PEGASUS}
    layouts = {CLASSES[name]: layout for name, layout in (FAMILIES | {"pegasus": PEGASUS}).items()}
    stock = next((stock for stock, layout in layouts.items() if layout == own), None)
    different = next((name for name, value in PLAIN.items() if getattr(config, name) != value), None)
    problem = None
    if different is not None:
        problem = f"{different} is {getattr(config, different)!r}, expected {PLAIN[different]!r}"
    elif stock is None:
        expected = "; ".join(f"{stock.__name__}: {_fields(layout)}" for stock, layout in layouts.items())
        problem = f"got {_fields(own)}, expected {expected}"
    elif config.position_offset != (offset := position_offset(config.position_type, config.pad_token_id)):
        problem = f"position_offset is {config.position_offset}, {stock.__name__} has {offset}"
    elif stock is M2M100ForConditionalGeneration and config.decoder_start_token_id == config.pad_token_id:
        problem = f"decoder_start_token_id is the padding, which has no position in {stock.__name__}"
    if stock is None or problem is not None:
        raise ValueError(f"no class of transformers computes this model: {problem}; export it without stock")
    return stock


def to_stock(model: PreTrainedModel) -> PreTrainedModel:
    """The model as one of `CLASSES`, with the same weights and generation settings, in evaluation mode.

    Raises ValueError as `stock_class`, and for weights that are quantized or that the class does not have.

    >>> to_stock(model).config.model_type
    'marian'
    """
    stock = stock_class(model.config)
    check_not_quantized(model)
    config = stock.config_class(**_config_fields(model.config, stock))
    weights = model.state_dict()
    if "model.shared.weight" not in weights:  # untied: the class has the common table, too, and does not use it
        weights["model.shared.weight"] = weights["model.encoder.embed_tokens.weight"]
    if stock is M2M100ForConditionalGeneration and weights.pop("final_logits_bias").any():
        raise ValueError("final_logits_bias: got values other than 0, which M2M100ForConditionalGeneration cannot hold")
    result = stock(config).to(model.dtype)
    keys = result.load_state_dict(weights, strict=False)
    own = {name for name in keys.missing_keys if not name.endswith(COMPUTED)}
    if own or (unknown := set(keys.unexpected_keys) - {"model.shared.weight"}):
        raise RuntimeError(f"the weights do not fit {stock.__name__}: {sorted(own or unknown)}")
    result.generation_config = copy.deepcopy(model.generation_config)
    return result.eval()


def check_not_quantized(model: PreTrainedModel) -> None:
    """ValueError for int8 weights, which other classes and engines do not have."""
    if getattr(model, "is_quantized", False):
        raise ValueError("the weights are int8, expected those of training: give the model before it was quantized")


def _config_fields(config: PreTrainedConfig, stock: type[PreTrainedModel]) -> dict:
    """The fields of the class's configuration; one table for all, or for target and output, or separate ones."""
    fields = {name: getattr(config, name) for name in SIZES + SETTINGS + TOKENS} | {"forced_eos_token_id": None}
    if config.position_type != "learned" and config.view == "chunk":  # sines reach as far as a translation may
        fields["max_position_embeddings"] = max(config.max_position_embeddings, 2 * config.chunk_tokens + 32)
    if stock is MarianMTModel:
        tied = {"tie_word_embeddings": config.tie_word_embeddings}
        return fields | tied | {"share_encoder_decoder_embeddings": config.has_shared_table}
    return fields | {"tie_word_embeddings": config.has_shared_table}


def _fields(layout: dict) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in layout.items())
