"""The weights of a sentence-level model in a document model: by name, with rows for new tokens and positions."""

import torch
from torch import nn
from transformers import PreTrainedModel

from hf_docmt.modeling.configuration_docmt import DocMTConfig, SegmentConfig
from hf_docmt.modeling.sequence_format import TOKENS, format_tokens, token_ids
from hf_docmt.modeling.training import start_neutral
from hf_docmt.registry import backbone

VOCABULARY = ("shared.weight", "embed_tokens.weight", "lm_head.weight", "final_logits_bias")
UNUSED = ("embed_positions.weight", "model.shared.weight")  # sinusoidal tables; the common table of untied ones
UNWRITTEN = -100.0  # what is added to the logits of new tokens that a target never holds


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
            dim = 1 if name == "final_logits_bias" else 0  # (1, tokens), else (tokens, D)
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
    """Start what `model` has besides the backbone of `origin` neutral, and separators that `origin` has never seen.

    Raises `ValueError` where `origin` has a mechanism already.
    """
    if trained := sorted(mechanism_parameters(origin)):
        raise ValueError(
            f"training.neutral_start: init_from is no sentence-level model but one with a mechanism ({trained[0]}), "
            "which a neutral start would undo; leave it out, or begin from a sentence-level model"
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
    """Give `<sep>` the mean of the two tokens in whose places it stands: the end, and what comes before the first word.

    So the sentences of a segment begin and end nearly as single ones do.
    """
    config, tables = model.config, model.state_dict()
    before = [name for name in format_tokens(config.target_format)[0] if name in TOKENS or config.target_lang]
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
