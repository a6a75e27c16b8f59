"""Pretrained sentence-level models as document models of any architecture, which start neutral."""

import copy
from inspect import get_annotations
from pathlib import Path

import torch
from torch import nn
from transformers import (
    AutoModelForSeq2SeqLM,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from hf_docmt.data.special_tokens import sequence_format_fields
from hf_docmt.data.tokenizers import BOD, adapt_tokenizer
from hf_docmt.files import HUB_NAME
from hf_docmt.loading import model_folders, registry
from hf_docmt.loading.model_files import check_model_files, reading_model
from hf_docmt.loading.model_folders import backbone
from hf_docmt.loading.remote_code import load_tokenizer
from hf_docmt.messages import check_known, closest_hint
from hf_docmt.modeling.configuration_docmt import DocMTConfig, SegmentConfig
from hf_docmt.modeling.modeling_docmt import DocMTForConditionalGeneration, start_neutral
from hf_docmt.modeling.sequence_format import (
    LANGUAGES,
    TOKENS as FORMAT_TOKENS,
    checked_language,
    format_tokens,
    token_ids,
    uses_language,
)

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
FIXED += ("layer_norm_eps", "decoder_autoregression")


def from_sentence_model(
    source: str | Path | PreTrainedModel,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    architecture: str = "concat",
    interpolate_positions: bool = False,
    **overrides,
) -> tuple[DocMTForConditionalGeneration, PreTrainedTokenizerBase | None]:
    """A Marian, BART, mBART or M2M-100 (NLLB) model as a document model with the same weights, in float32.

    `source` is a folder, a Hub name or a model. The tokenizer (that of the folder, or the one given) gets `<sep>` and
    `<bod>`; their embeddings start as the mean of all others, or as the spare rows that a table with more rows than
    tokens has for them (NLLB). `architecture` is a name of the registry, `overrides` are fields of its configuration:
    the mechanism, the languages, dropout, other start tokens. Returns the model in evaluation mode and the tokenizer,
    None for a model that was given without one.

    New parts start neutral: single sentences get the logits of the source model, and so do sentences with context
    wherever the mechanism can add nothing: `caching`, `memory`, `routing`, `doct` (with the norm before nearly),
    `multiencoder` with another `integration` than `concatenate`. Exceptions are settings of which the definition says
    otherwise: fixed sentence encodings of `concat`, `concatenate`, relative positions and windows shorter than the
    sentence in `window` (whose `position` is `absolute` here by default). The generation config is taken over whole.

    `max_position_embeddings` may be any number where positions are sinusoidal. Learned ones are as many as the source
    has; with `interpolate_positions` their table is stretched to more or fewer, and logits are no longer the same.

    Where the family has language codes, `source_lang` and `target_lang` are codes of the family; without them every
    translation has to name them. Their ids are the tokenizer's: a model without one is converted without codes.

    Departures: there is no layer drop, and translations of BART begin with `<s>`, as its targets do, whether or not its
    generation config forces that. Raises ValueError for another model type or architecture, unknown overrides,
    overrides of what the weights fix, unknown languages, broken weight files.
    """
    target = registry.get(architecture)
    original = source if isinstance(source, PreTrainedModel) else _load_model(source)
    if tokenizer is None and not isinstance(source, PreTrainedModel):
        tokenizer = load_tokenizer(source)
    fields = config_from_pretrained(original.config) | target.config_class.neutral_fields
    if HUB_NAME.fullmatch(original.name_or_path) and not Path(original.name_or_path).exists():
        fields["base_model"] = original.name_or_path
    if tokenizer is None:  # the new tokens get the ids after the vocabulary
        asked = [name for name in LANGUAGES if overrides.get(name) is not None]
        if asked and original.config.model_type in WITH_CODES:
            raise ValueError(
                f"{asked[0]}: got {overrides[asked[0]]!r}, but the ids of language codes come from the tokenizer, "
                "which is missing: give tokenizer= as well"
            )
        size = fields["vocab_size"]
        fields |= {"sep_token_id": size, "bod_token_id": size + 1, "vocab_size": size + 2}
    else:
        tokenizer, rows = adapt_tokenizer(tokenizer)
        fields |= {"sep_token_id": tokenizer.sep_token_id, "bod_token_id": tokenizer.convert_tokens_to_ids(BOD)}
        fields |= {"unk_token_id": tokenizer.unk_token_id, "vocab_size": max(rows, fields["vocab_size"])}
        fields |= sequence_format_fields(original.config.model_type or "marian", tokenizer)
        if fields["bos_token_id"] is None and "<s>" in fields.get("source_format", ""):
            fields["bos_token_id"] = tokenizer.bos_token_id
    _check_overrides(overrides, fields, target.config_class, interpolate_positions)

    model = target.model_class(target.config_class(**fields | overrides)).eval()
    copy_weights(original, model, writes_separators=target.reads_segments)
    model.generation_config = settings = copy.deepcopy(original.generation_config)
    for name in TOKENS:  # those that the source's search has not, or that are others now
        token = getattr(model.config, name)
        if getattr(settings, name) is None or token != getattr(original.config, name, None):
            setattr(settings, name, token)
    set_search_languages(model)
    used = [name for name in LANGUAGES if uses_language(model.config, name)]
    set_tokenizer_languages(tokenizer, {name: getattr(model.config, name) for name in used})
    if not isinstance(source, PreTrainedModel):
        model_folders.check_token_ids(model, tokenizer, source)
    return model, tokenizer


def config_from_pretrained(config: PreTrainedConfig) -> dict:
    """The `DocMTConfig` fields of a sentence-level model: sizes, switches and special tokens.

    Two vocabularies (Marian) have tables of the larger one's size. The backbone itself, as files of Marian are read,
    has all of its fields. Raises ValueError for another model type.
    """
    if type(config) is DocMTConfig:
        return {name: getattr(config, name) for name in get_annotations(DocMTConfig)}
    check_known(config.model_type, FAMILIES, "model_type", "expected one of")
    for name in ("pad_token_id", "eos_token_id"):
        if not isinstance(getattr(config, name), int):
            raise ValueError(f"{name}: got {getattr(config, name)!r}, expected a token id; add it to config.json")
    fields = {name: getattr(config, name) for name in SIZES + SETTINGS + TOKENS} | FAMILIES[config.model_type]
    fields["position_offset"] = position_offset(fields["position_type"], config.pad_token_id)
    # Marian ties its two embedding tables by a switch of their own, the others tie all tables or none.
    fields["share_encoder_decoder_embeddings"] = getattr(
        config, "share_encoder_decoder_embeddings", config.tie_word_embeddings
    )
    fields["vocab_size"] = max(config.vocab_size, getattr(config, "decoder_vocab_size", 0))
    return fields


def position_offset(position_type: str, pad_token_id: int | None) -> int:
    """The first token's position: 2 for BART and mBART, the one after the padding for M2M-100, 0 for others."""
    return {"learned": 2, "sinusoidal_t2t": (pad_token_id or 0) + 1}.get(position_type, 0)


def is_sentence_model(source: str | Path) -> bool:
    """Whether a folder or Hub name holds a model that `from_sentence_model` takes."""
    return model_folders.read_config(source).get("model_type") in FAMILIES


def _load_model(source: str | Path) -> PreTrainedModel:
    model_type = model_folders.read_config(source).get("model_type")
    if model_type not in FAMILIES:
        raise ValueError(f"{source}: got model type {model_type!r}, expected one of {', '.join(FAMILIES)}")
    check_model_files(source)
    with reading_model(source):
        return model_folders.load_weights(AutoModelForSeq2SeqLM, source, dtype=torch.float32)


def _check_overrides(overrides: dict, fields: dict, config_class: type, interpolate_positions: bool) -> None:
    allowed = vars(config_class())
    learned, asked = fields["position_type"] == "learned", "max_position_embeddings" in overrides
    if interpolate_positions and not (learned and asked):
        problem = "no max_position_embeddings: give it"
        if not learned:
            problem = "sinusoidal positions, which have no limit: omit it"
        raise ValueError(f"interpolate_positions stretches learned positions to max_position_embeddings; got {problem}")
    for name, value in overrides.items():
        if name not in allowed:
            raise ValueError(f"{name}: not a field of {config_class.__name__}{closest_hint(name, allowed)}")
        if name in FIXED and value != fields[name]:
            raise ValueError(f"{name}: got {value!r}, but the pretrained weights need {fields[name]!r}; omit it")
    positions = overrides.get("max_position_embeddings", fields["max_position_embeddings"])
    if learned and positions != fields["max_position_embeddings"] and not interpolate_positions:
        raise ValueError(
            f"max_position_embeddings: got {positions!r}, but the pretrained weights have learned positions for "
            f"{fields['max_position_embeddings']}; omit it, or give interpolate_positions as well"
        )
    if config_class(**fields | overrides).decoder_start_token_id is None:
        raise ValueError(
            "decoder_start_token_id: got none, expected the token that decoding starts with; give it, or target_lang "
            "where the model's tokenizer has language codes"
        )


def set_search_languages(model: PreTrainedModel) -> None:
    """Make plain `generate` write the default language; ValueError for a language that is unknown."""
    config, settings = model.config, model.generation_config
    used = [name for name in LANGUAGES if uses_language(config, name)]
    named = [name for name in used if getattr(config, name) is not None]
    for name in named:
        checked_language(config, name, None)
    if not used or named != used:
        return
    languages = config.sequence_format()
    if languages.target_before:
        settings.forced_bos_token_id = languages.target_before[0]
    elif config.target_format.startswith("[target_lang]"):
        settings.decoder_start_token_id = languages.start


def set_tokenizer_languages(tokenizer: PreTrainedTokenizerBase | None, codes: dict[str, str | None]) -> None:
    """Make a tokenizer of the family write these codes by default, known ones, see `config.language_codes`."""
    for name, own in zip(LANGUAGES, ("src_lang", "tgt_lang")):
        if codes.get(name) is not None and hasattr(tokenizer, own):
            setattr(tokenizer, own, codes[name])


# Weights, by name, with rows for new tokens and positions

VOCABULARY = ("shared.weight", "embed_tokens.weight", "lm_head.weight", "final_logits_bias")
UNUSED = ("embed_positions.weight", "model.shared.weight")  # sinusoidal tables; the common table of untied ones
UNWRITTEN = -100.0  # added to the logits of new tokens that a target never contains


def copy_weights(original: PreTrainedModel, model: PreTrainedModel, writes_separators: bool) -> None:
    """Give the backbone of `model` the weights of `original`, by name, and start the rest neutral.

    New rows of the vocabulary are the mean of the others (Hewitt 2021), that of `<sep>` see `start_separator`; where
    the target never holds them, as `<sep>` and `<bod>` unless `writes_separators`, their logits are so low that they
    change no probability. Positions that `original` has not are interpolated. Raises ValueError for weights that do not
    fit.
    """
    plain, weights = backbone(model.config).state_dict(), original.state_dict()
    unexpected = [name for name in weights if name not in plain and not name.endswith(UNUSED)]
    missing = [name for name in plain if name not in weights and name != "final_logits_bias"]
    if unexpected or missing:
        raise ValueError(
            f"{type(original).__name__}: weights do not fit the backbone; unexpected: {unexpected[:5]}, "
            f"missing: {missing[:5]}"
        )
    adapted = {}
    for name in plain.keys() & weights.keys():
        weight, shape = weights[name], plain[name].shape
        if name.endswith(VOCABULARY):
            dim = 1 if name == "final_logits_bias" else 0  # (1, tokens) or (tokens, D)
            mean = weight.mean(dim, keepdim=True)
            weight = torch.cat([weight] + [mean] * (shape[dim] - weight.shape[dim]), dim)
        elif name.endswith("embed_positions.weight"):
            weight = with_positions(weight, shape[0], model.config.position_offset)
        adapted[name] = weight
    bias = adapted.setdefault("final_logits_bias", torch.zeros(plain["final_logits_bias"].shape))
    separators = (model.config.sep_token_id, model.config.bod_token_id) if writes_separators else ()
    new = range(len(weights["lm_head.weight"]), bias.shape[1])
    bias[:, [token for token in new if token not in separators]] += UNWRITTEN
    model.load_state_dict(adapted, strict=False)
    start_neutral(model)
    if reads_segments(model.config) and model.config.sep_token_id in new:
        start_separator(model)


def mechanism_parameters(model: PreTrainedModel) -> frozenset[str]:
    """Names of the parameters that the architecture adds to the backbone."""
    names = {name for name, _ in model.named_parameters()}
    return frozenset(names - {name for name, _ in backbone(model.config).named_parameters()})


def add_neutral_mechanism(model: PreTrainedModel, origin: PreTrainedModel) -> None:
    """Start the parts of `model` outside the backbone of `origin` neutral, and separators that `origin` has never seen.

    Raises `ValueError` where `origin` has a mechanism already.
    """
    if trained := sorted(mechanism_parameters(origin)):
        raise ValueError(
            f"training.neutral_start: init_from is not a sentence-level model but one with a mechanism ({trained[0]}), "
            "which a neutral start would undo; omit it, or begin from a sentence-level model"
        )
    start_neutral(model)
    if has_new_separators(model.config, origin.config):
        start_separator(model)


def has_new_separators(config: DocMTConfig, origin: DocMTConfig) -> bool:
    """Whether a model reads several sentences in a sequence, and the one that it goes on from read one at a time."""
    return reads_segments(config) and not reads_segments(origin)


def reads_segments(config: DocMTConfig) -> bool:
    """Whether a sequence has several sentences, with separators between them."""
    return isinstance(config, SegmentConfig) and (config.view == "chunk" or config.window_size > 1)


@torch.no_grad()
def start_separator(model: PreTrainedModel) -> None:
    """Give `<sep>` the mean of the two tokens that it replaces: the end, and the one before the first word.

    So the sentences of a segment begin and end nearly as single ones do.
    """
    config, tables = model.config, model.state_dict()
    before = [name for name in format_tokens(config.target_format)[0] if name in FORMAT_TOKENS or config.target_lang]
    end, first = token_ids(config, ["</s>", (before or ["<start>"])[-1]], {"target_lang": config.target_lang})
    for name, table in tables.items():
        if name == "final_logits_bias":
            table[:, config.sep_token_id] = table[:, end]
        elif name.endswith(VOCABULARY):
            table[config.sep_token_id] = (table[end] + table[first]) / 2  # (D,)


def with_positions(table: torch.Tensor, rows: int, offset: int) -> torch.Tensor:
    """A table (offset + positions, D) for `rows` rows, positions interpolated linearly from the first to the last."""
    if table.shape[0] == rows:
        return table
    positions = table[offset:].T[None]  # (1, D, positions)
    positions = nn.functional.interpolate(positions, size=rows - offset, mode="linear", align_corners=True)
    return torch.cat([table[:offset], positions[0].T])
