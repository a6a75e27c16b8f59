"""The versions of torch and transformers that these files were tested with, and the check on newer ones."""

from copy import copy
from weakref import WeakSet

import torch
from transformers import GenerationConfig, GenerationMixin, LogitsProcessorList, MinLengthLogitsProcessor, __version__
from transformers.utils import logging

from .search import DecoderState, SearchSettings, WithoutDropout, beam_search

logger = logging.get_logger(__name__)

TORCH = ("2.13", "2.14")  # the oldest and the newest one
TRANSFORMERS = ("5.23", "5.24")
VERSION = __version__  # the one that is here

_checked: WeakSet = WeakSet()  # models that were found to be right in this process


def check_untested_version(model) -> None:
    """On a version of transformers newer than the tested ones, before a model's first result: one warning.

    Raises `RuntimeError` where scores of a short input, token by token, are not those of the whole target at once.
    """
    if numbers(VERSION) <= numbers(TRANSFORMERS[1]) or model in _checked:
        return
    name = f"transformers {VERSION}"
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


def numbers(version: str) -> tuple[int, int]:
    """Major and minor number of a version."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


@torch.no_grad()
def decodes_as_it_computes(model) -> bool:
    """Whether both searches, transformers' and ours, see the scores that one pass over all they wrote has.

    Of greedy search those of every step, of beam search that of the best translation; the settings of generation are
    special tokens alone.
    """
    inputs = check_inputs(model)
    length = min(8, model.config.max_position_embeddings - 1)
    tokens = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
    asked = {"max_new_tokens": length, "min_new_tokens": length, "do_sample": False, "return_dict_in_generate": True}
    asked |= {"output_logits": True, "output_scores": True}
    own = model.generation_config
    model.generation_config = GenerationConfig(**{name: getattr(own, name) for name in tokens})
    try:
        with WithoutDropout():
            greedy, beams = (GenerationMixin.generate(model, **inputs, **asked, num_beams=number) for number in (1, 3))
            names = ["input_ids", *(name for name in model.model.encoder_input_names if name in inputs)]
            states = model.get_encoder()(**{name: inputs[name] for name in names}, return_dict=True)
            ids = greedy.sequences
            state = DecoderState(model, copy(states), model.new_cache())
            steps = [state.read(ids[:, :read]) for read in range(1, ids.shape[1])]
            ends = MinLengthLogitsProcessor(length + 1, model.generation_config.eos_token_id, device=ids.device)
            settings = SearchSettings(ids.shape[1], [], 0, num_beams=3, processors=LogitsProcessorList([ends]))
            best, score = beam_search(DecoderState(model, copy(states), model.new_cache()), ids[:, :1], settings)
            whole = model(**inputs, decoder_input_ids=ids[:, :-1]).logits.float()  # (1, T, V)
            pairs = [(torch.stack(logits[-length:], dim=1), whole[:, -length:]) for logits in (greedy.logits, steps)]
            for sequences, scores in ((beams.sequences[:1], beams.sequences_scores), (best[:1], score)):
                logits = model(**inputs, decoder_input_ids=sequences[:, :-1]).logits.float().log_softmax(-1)
                pairs.append((scores[:1], logits.gather(2, sequences[:, 1:, None])[..., 0].mean(dim=1)))
    finally:
        model.generation_config = own
    is_exact = {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    tolerance = (1e-4 if is_exact else 0.1) * whole.std()
    return all(bool((actual.to(expected) - expected).abs().mean() < tolerance) for actual, expected in pairs)


def check_inputs(model) -> dict:
    """A short source, and a sentence of context for a model that reads such, else none on purpose."""
    config = model.config
    special = {value for name, value in config.to_dict().items() if name.endswith("token_id")}
    words = [token for token in range(config.vocab_size) if token not in special][:7]
    inputs = dict.fromkeys(model.context_arguments) | {"input_ids": torch.tensor([words[:4]], device=model.device)}
    if "context_input_ids" in inputs and config.known_offsets:
        context = torch.tensor([[words[4:]]], device=model.device)  # (1, 1, L)
        inputs["context_input_ids"], inputs["context_attention_mask"] = context, torch.ones_like(context)
        inputs["context_offsets"] = torch.tensor([[config.known_offsets[0]]], device=model.device)
    return {name: value for name, value in inputs.items() if value is not None}
