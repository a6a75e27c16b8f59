"""Concatenation models without sentence encodings as models of transformers' own classes: no remote code, same logits.

Such a model is the plain Transformer on longer input. Which class it is follows from the fields of its configuration.
"""

import copy
from typing import NamedTuple

from transformers import (
    BartForConditionalGeneration,
    M2M100ForConditionalGeneration,
    MarianMTModel,
    MBartForConditionalGeneration,
    PegasusForConditionalGeneration,
    PreTrainedConfig,
    PreTrainedModel,
)

from hf_docmt.pretrained.families import SETTINGS, SIZES, TOKENS


class Layout(NamedTuple):
    """The fields of a configuration that tell the classes apart."""

    position_type: str
    normalize_before: bool
    layernorm_embedding: bool


CLASSES: dict[Layout, type[PreTrainedModel]] = {
    Layout("sinusoidal", False, False): MarianMTModel,
    Layout("sinusoidal", True, False): PegasusForConditionalGeneration,
    Layout("learned", False, True): BartForConditionalGeneration,
    Layout("learned", True, True): MBartForConditionalGeneration,
    Layout("sinusoidal_t2t", True, False): M2M100ForConditionalGeneration,
}
LEARNED_OFFSET = 2  # of the first position in the tables of BART and mBART
COMPUTED = ("embed_positions.weight",)  # tables of sines, which the classes make themselves


def stock_class(config: PreTrainedConfig) -> type[PreTrainedModel]:
    """The class of transformers that computes what a model of this configuration does.

    Raises ValueError, with the field that is in the way, where there is none.
    """
    problem = _other_mechanism(config)
    if problem is None:
        layout = Layout(*(getattr(config, name) for name in Layout._fields))
        if layout not in CLASSES:
            layouts = "; ".join(f"{stock.__name__}: {_fields(layout)}" for layout, stock in CLASSES.items())
            problem = f"got {_fields(layout)}, expected {layouts}"
        elif (problem := _other_tables(config, CLASSES[layout])) is None:
            return CLASSES[layout]
    raise ValueError(f"no class of transformers computes this model: {problem}; export it with its code, without stock")


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


def _other_mechanism(config: PreTrainedConfig) -> str | None:
    """What a model of this configuration has that the plain Transformer has not."""
    if config.model_type != "docmt-concat":
        return f"model_type is {config.model_type!r}, expected 'docmt-concat'"
    if config.segment_encoding != "none":
        return f"segment_encoding is {config.segment_encoding!r}, expected 'none'"
    return None


def _other_tables(config: PreTrainedConfig, stock: type[PreTrainedModel]) -> str | None:
    """In what positions or embeddings differ from those of the class."""
    offset = {"learned": LEARNED_OFFSET, "sinusoidal_t2t": (config.pad_token_id or 0) + 1}.get(config.position_type, 0)
    if config.position_offset != offset:
        return f"position_offset is {config.position_offset}, {stock.__name__} has {offset}"
    if stock is M2M100ForConditionalGeneration and config.decoder_start_token_id == config.pad_token_id:
        return f"decoder_start_token_id is the padding, which has no position in {stock.__name__}"
    return None


def _config_fields(config: PreTrainedConfig, stock: type[PreTrainedModel]) -> dict:
    """The fields of the class's configuration; one table for all, or for target and output, or none is shared."""
    fields = {name: getattr(config, name) for name in SIZES + SETTINGS + TOKENS} | {"forced_eos_token_id": None}
    if config.position_type != "learned" and config.view == "chunk":  # sines reach as far as a translation may
        fields["max_position_embeddings"] = max(config.max_position_embeddings, 2 * config.chunk_tokens + 32)
    if stock is MarianMTModel:
        tied = {"tie_word_embeddings": config.tie_word_embeddings}
        return fields | tied | {"share_encoder_decoder_embeddings": config.has_shared_table}
    return fields | {"tie_word_embeddings": config.has_shared_table}


def _fields(layout: Layout) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in layout._asdict().items())
