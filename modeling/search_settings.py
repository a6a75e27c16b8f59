"""Which calls of `generate` are plain greedy or beam search, and what such a call asks for."""

import copy
from collections.abc import Sequence

import torch
from transformers import EosTokenCriteria, GenerationConfig, MaxLengthCriteria, PreTrainedConfig, StoppingCriteriaList
from transformers.generation import logits_process
from transformers.utils import logging

from .search import SearchSettings

logger = logging.get_logger(__name__)

PROCESSED = (  # settings for which there are processors of scores, besides `forced_eos_token_id`
    "no_repeat_ngram_size bad_words_ids min_length min_new_tokens forced_bos_token_id suppress_tokens "
    "renormalize_logits"
).split()
READ = (  # settings that our search reads, besides these
    "num_beams num_return_sequences max_new_tokens max_length early_stopping length_penalty use_cache pad_token_id "
    "eos_token_id decoder_start_token_id forced_eos_token_id"
).split()
HARMLESS = (  # settings that change nothing in greedy and beam search, whatever they are
    "temperature top_k top_p min_p top_h typical_p epsilon_cutoff eta_cutoff bos_token_id transformers_version "
    "num_assistant_tokens num_assistant_tokens_schedule assistant_confidence_threshold assistant_lookbehind "
    "target_lookbehind"
).split()
ZERO = "no_repeat_ngram_size encoder_no_repeat_ngram_size min_length min_new_tokens diversity_penalty penalty_alpha"
NEUTRAL = dict.fromkeys(ZERO.split(), 0) | {  # values that change nothing, besides None and False
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "guidance_scale": 1.0,
    "num_beam_groups": 1,
    "num_beams": 1,
    "num_return_sequences": 1,
    "length_penalty": 1.0,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
    "cache_implementation": "dynamic",
}
GENERATION_SETTINGS = {  # those that no configuration of a model has
    name for name in GenerationConfig().to_dict().keys() - PreTrainedConfig().to_dict().keys() if "token_id" not in name
} - {"use_cache"}
RECORDED = ("return_dict_in_generate", "output_attentions", "output_hidden_states", "output_scores", "output_logits")


def full_config(model, config: GenerationConfig | None, arguments: dict) -> tuple[GenerationConfig, dict]:
    """The settings of a call of `generate`, as transformers puts them together, and its other arguments.

    The longest translation is `max_length`, which counts the prompt: without it and `max_new_tokens`, as in folders of
    0.1.0, the model's limit. A cache is named `cache` among the rest, whichever of its names it came under.
    """
    own = model.generation_config
    if config is None:
        check_model_config(model.config)
    config, others = merged_config(model, config, arguments)
    others = {name: value for name, value in others.items() if value is not None}
    if "past_key_values" in others:
        others["cache"] = others.pop("past_key_values")
    if config.max_new_tokens is not None:
        if arguments.get("max_length") is not None:
            lengths = f"max_new_tokens={config.max_new_tokens} and max_length={config.max_length}"
            logger.warning(f"{lengths} were given: the first counts.")
        config.max_length = prompt_length(config, others.get("decoder_input_ids")) + config.max_new_tokens
        config.max_new_tokens = own.max_new_tokens and config.max_new_tokens  # else transformers takes the model's own
    elif config.max_length is None:
        config.max_length = model.config.longest_translation
    return config, others


def merged_config(model, config: GenerationConfig | None, arguments: dict) -> tuple[GenerationConfig, dict]:
    """Arguments before those of `config`, before the model's own, as a new configuration; and other arguments."""
    merged = copy.deepcopy(model.generation_config if config is None else config)
    merged.update(**model.generation_config.to_dict(), defaults_only=True, allow_custom_entries=True)
    return merged, merged.update(**arguments)


def check_model_config(config: PreTrainedConfig) -> None:
    """ValueError for settings of generation in a model's configuration, which nothing reads there."""
    settings = {name: value for name, value in vars(config).items() if name in GENERATION_SETTINGS}
    if misplaced := {name: value for name, value in settings.items() if not is_neutral(name, value)}:
        raise ValueError(
            f"settings of generation in model.config are not read, got {misplaced}: set them in "
            "model.generation_config, or give them to generate."
        )


def prompt_length(config: GenerationConfig, prompt: torch.Tensor | None) -> int:
    """Tokens of a prompt (B, T), before which transformers puts the start token where no row begins with it."""
    if prompt is None:
        return 1
    start = config.bos_token_id if config.decoder_start_token_id is None else config.decoder_start_token_id
    return prompt.shape[1] + int(start is None or not (prompt[:, 0] == torch.as_tensor(start).to(prompt.device)).any())


def is_plain(config: GenerationConfig) -> bool:
    """Whether settings ask for greedy or beam search, for translations alone, and for nothing that is not read here."""
    has_beams = (config.num_return_sequences or 1) <= (config.num_beams or 1)
    return has_beams and not effective_settings(config, {*READ, *PROCESSED, *HARMLESS})


def effective_settings(config: GenerationConfig, fields: set[str]) -> dict:
    """The settings besides these fields that change what is written, with their values."""
    others = {name: value for name, value in config.to_dict().items() if name not in fields and name[0] != "_"}
    return {name: value for name, value in others.items() if not is_neutral(name, value)}


def is_neutral(name: str, value) -> bool:
    """Whether a setting asks for nothing."""
    is_default = name in NEUTRAL and isinstance(value, int | float | str) and value == NEUTRAL[name]
    return value is None or value is False or is_default


def has_plain_criteria(criteria: Sequence | None) -> bool:
    """Whether criteria of the caller take the place of none that settings ask for, as in transformers."""
    return not any(type(criterion) in (MaxLengthCriteria, EosTokenCriteria) for criterion in criteria or ())


def end_tokens(config: GenerationConfig | PreTrainedConfig) -> list[int]:
    """The tokens that a translation ends at."""
    ends = config.eos_token_id
    return [] if ends is None else list(ends) if isinstance(ends, list | tuple) else [ends]


def search_settings(
    config: GenerationConfig,
    prompt: torch.Tensor,
    processors: Sequence | None = None,
    criteria: Sequence | None = None,
) -> SearchSettings:
    """What plain settings mean behind prompts (B, T); `processors` and `criteria` are the caller's own."""
    ends, pad, own = end_tokens(config), config.pad_token_id, processors or ()
    classes = {type(processor): processor for processor in reversed(own)}  # in the place of those of their class
    merged = [classes.get(type(processor), processor) for processor in processors_of(config, prompt)]
    merged += [processor for processor in own if processor not in merged]
    merged += [logits_process.LogitNormalization()] if config.renormalize_logits else []
    return SearchSettings(
        max_length=config.max_length,
        eos_token_id=ends,
        pad_token_id=pad if pad is not None else ends[0] if ends else 0,
        num_beams=config.num_beams or 1,
        num_return_sequences=config.num_return_sequences or 1,
        length_penalty=1.0 if config.length_penalty is None else config.length_penalty,
        early_stopping=config.early_stopping or False,
        processors=logits_process.LogitsProcessorList(merged),
        criteria=StoppingCriteriaList(criteria or ()),
    )


def processors_of(config: GenerationConfig, prompt: torch.Tensor) -> list:
    """Processors of scores that settings ask for behind prompts (B, T), in the order of transformers."""
    ends, length, device = end_tokens(config), prompt.shape[1], prompt.device
    processors: list = []
    if config.no_repeat_ngram_size:
        processors.append(logits_process.NoRepeatNGramLogitsProcessor(config.no_repeat_ngram_size))
    if (words := config.bad_words_ids) is not None:
        processors.append(logits_process.NoBadWordsLogitsProcessor(words, torch.tensor(ends, device=device)))
    if (fewest := config.min_length) and ends and config.min_new_tokens is None:
        processors.append(logits_process.MinLengthLogitsProcessor(fewest, ends, device=device))
    if (fewest := config.min_new_tokens) and ends:
        processors.append(logits_process.MinNewTokensLengthLogitsProcessor(length, fewest, ends, device=device))
    if (token := config.forced_bos_token_id) is not None:
        processors.append(logits_process.ForcedBOSTokenLogitsProcessor(token))
    if (token := config.forced_eos_token_id) is not None:
        processors.append(logits_process.ForcedEOSTokenLogitsProcessor(config.max_length, token, device=device))
    if (tokens := config.suppress_tokens) is not None:
        processors.append(logits_process.SuppressTokensLogitsProcessor(tokens, device=device))
    return processors
