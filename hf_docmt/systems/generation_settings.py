"""Generation settings of a model's folder in jobs: sampling is off, and settings that change the search are named."""

import logging
from typing import Any

from transformers import GenerationConfig
from transformers.utils import GENERATION_CONFIG_NAME

from hf_docmt.engine.generation_fields import HARMLESS, READ, RECORDED, effective_settings
from hf_docmt.engine.shortlist import LexicalShortlist
from hf_docmt.modeling.generation_settings import is_neutral, merged_config

REPEATABLE = {"do_sample": False, "max_time": None}  # values with which two runs give the same
CHANGING = {"length_penalty", "early_stopping", "forced_eos_token_id"}  # of those that our search reads
UNREPORTED = {*READ, *HARMLESS, *RECORDED} - CHANGING
UNREPORTED |= {"cache_implementation", "cache_config", "compile_config", "disable_compile", "low_memory"}

_logger = logging.getLogger(__name__)


def make_repeatable(config: GenerationConfig | None, name: str | None = None) -> None:
    """Switch off settings that make two runs differ: sampling and time limits.

    With the `name` of the folder a warning names them.
    """
    asked = {key: getattr(config, key, None) for key in REPEATABLE}
    asked = {key: value for key, value in asked.items() if not is_neutral(key, value)}
    if asked and name is not None:
        settings = ", ".join(f"{key}={value!r}" for key, value in asked.items())
        _logger.warning(f"{name}: {GENERATION_CONFIG_NAME} has {settings}, which makes runs differ; switched off")
    for key in asked:
        setattr(config, key, REPEATABLE[key])


def reported_settings(model, arguments: dict) -> dict[str, Any]:
    """Settings other than beams that change the result of a search with these arguments, for rows and reports.

    Penalties, suppressed and forced tokens and similar ones, from `arguments` or the model's own configuration.
    Language codes that the model forces are given by name.
    """
    arguments = dict(arguments)
    config, _ = merged_config(model, arguments.pop("generation_config", None), arguments)
    named = {"forced_bos_token_id"} if "[target_lang]" in getattr(model.config, "target_format", "") else set()
    settings = effective_settings(config, UNREPORTED | named)
    return {
        key: value if isinstance(value, int | float | str | list) else getattr(value, "to_dict", value.__str__)()
        for key, value in settings.items()
    }


def with_shortlist(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `generate` in which a `shortlist` that is a path has been read; ValueError for a bad file."""
    path = arguments.get("shortlist")
    return arguments | {"shortlist": LexicalShortlist.read(path)} if isinstance(path, str) else arguments
