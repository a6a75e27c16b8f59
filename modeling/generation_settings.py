"""Settings of a search, of a `GenerationConfig` or what has its fields."""

import copy

ZERO = "no_repeat_ngram_size encoder_no_repeat_ngram_size min_length min_new_tokens diversity_penalty penalty_alpha"
ONE = (
    "repetition_penalty encoder_repetition_penalty guidance_scale num_beam_groups num_beams num_return_sequences "
    "length_penalty temperature top_p"
)
NEUTRAL = dict.fromkeys(ZERO.split(), 0) | dict.fromkeys(ONE.split(), 1)  # these change nothing, nor None and False
NEUTRAL |= {"top_k": 50, "cache_implementation": "dynamic"}


def merged_config(model, config, arguments: dict) -> tuple:
    """Arguments before those of `config`, before the model's own, as a new configuration; and other arguments."""
    merged = copy.copy(model.generation_config if config is None else config)
    for name, value in vars(model.generation_config).items():
        if value is not None and getattr(merged, name, None) is None:
            setattr(merged, name, value)
    return merged, merged.update(**arguments)


def is_neutral(name: str, value) -> bool:
    """Whether a setting asks for nothing."""
    is_default = name in NEUTRAL and isinstance(value, int | float | str) and value == NEUTRAL[name]
    return value is None or value is False or is_default


def end_tokens(config) -> list[int]:
    """The tokens that a translation ends at."""
    ends = config.eos_token_id
    return [] if ends is None else list(ends) if isinstance(ends, list | tuple) else [ends]
