"""The versions of torch and transformers that these files were tested with, and the check on newer ones."""

from weakref import WeakSet

import torch
from transformers import GenerationMixin, __version__
from transformers.utils import logging

from .decoder_state import DecoderState
from .inference import WithoutDropout

logger = logging.get_logger(__name__)

TORCH = ("2.13", "2.14")  # the oldest and the newest one
TRANSFORMERS = ("5.23", "5.24")
VERSION = __version__  # the one that is here

_checked: WeakSet = WeakSet()  # models that were found to be right in this process


def check_untested_version(model) -> None:
    """On a version of transformers newer than the tested ones: does this model decode as it computes?

    Called before the first translation or `generate` of a model; nothing happens where the version is known. Scores of
    a short input, token by token with the cache, must be those of the whole target at once: then there is one warning.
    Raises `RuntimeError` where they are not.
    """
    if numbers(VERSION) <= numbers(TRANSFORMERS[1]) or model in _checked:
        return
    name, problem = f"transformers {VERSION}", None
    try:
        problem = None if decodes_as_it_computes(model) else "scores with the cache are not those without"
    except Exception as error:  # whatever another version changes must not become a translation
        problem = f"{type(error).__name__}: {error}"
    if problem:
        raise RuntimeError(
            f"{type(model).__name__} does not work with {name} ({problem}). It works with transformers "
            f"{TRANSFORMERS[0]} to {TRANSFORMERS[1]}: pip install 'transformers~={TRANSFORMERS[1]}.0'."
        )
    _checked.add(model)
    logger.warning_once(
        f"{type(model).__name__} was tested with transformers {TRANSFORMERS[0]} to {TRANSFORMERS[1]}, not with {name}. "
        "Its scores of a short input are right."
    )


def version_ranges() -> str:
    """The tested versions in words: `torch 2.13 and transformers 5.23 to 5.24`."""
    ranges = (" to ".join(dict.fromkeys(versions)) for versions in (TORCH, TRANSFORMERS))
    return " and ".join(map(" ".join, zip(("torch", "transformers"), ranges)))


def numbers(version: str) -> tuple[int, int]:
    """Major and minor number of a version."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


@torch.no_grad()
def decodes_as_it_computes(model) -> bool:
    """Whether both searches, transformers' and ours, see the scores that one pass over all they wrote has."""
    config = model.config
    special = {value for name, value in config.to_dict().items() if name.endswith("token_id")}
    words = [token for token in range(config.vocab_size) if token not in special][:4]
    inputs = dict.fromkeys(model.context_arguments) | {"input_ids": torch.tensor([words], device=model.device)}
    length = min(8, config.max_position_embeddings - 1)
    search = {"max_new_tokens": length, "min_new_tokens": length, "num_beams": 1, "do_sample": False}
    recorded = {"return_dict_in_generate": True, "output_logits": True}
    with WithoutDropout():
        found = GenerationMixin.generate(model, **inputs, **search, **recorded)
        ids = found.sequences[:, :-1]  # (1, T)
        state = DecoderState(model, model.get_encoder()(input_ids=inputs["input_ids"]), model.new_cache())
        ours = [state.read(ids[:, :read]) for read in range(1, ids.shape[1] + 1)]
        expected = model(**inputs, decoder_input_ids=ids).logits[:, -length:].float()  # (1, length, V)
    is_exact = {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    tolerance = (1e-4 if is_exact else 0.1) * expected.std()
    written = (torch.stack(one[-length:], dim=1) for one in (found.logits, ours))
    return all(bool((one.to(expected) - expected).abs().mean() < tolerance) for one in written)
