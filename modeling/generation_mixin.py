"""`generate` with the hooks that transformers documents for custom models, and the prefix of its first result."""

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial, wraps
from inspect import signature
from weakref import WeakSet

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from transformers import GenerationConfig, GenerationMixin, LogitsProcessor, PreTrainedConfig, __version__
from transformers.utils import logging

from .generation_settings import is_neutral, merged_config
from .layers import CACHE_NAME, cached_length

logger = logging.get_logger(__name__)

TORCH = ("2.13", "2.14")  # the oldest and the newest version that all of this was tested with
TRANSFORMERS = ("5.23", "5.24")
VERSION = __version__  # the one that is here
FURTHER_ARGUMENTS = list(signature(GenerationMixin.generate).parameters)[5:]  # after `stopping_criteria`
GENERATION_SETTINGS = {  # those that no configuration of a model has
    name for name in GenerationConfig().to_dict().keys() - PreTrainedConfig().to_dict().keys() if "token_id" not in name
} - {"use_cache"}


class DocMTGenerationMixin:
    """Mixin that precedes `GenerationMixin`: `generate`, and the inputs of a decoding step."""

    per_source_inputs = ("attention_mask",)  # arguments of `forward` with a row per source, which several rows share
    context_arguments: tuple[str, ...] = ()  # of `generate`, in which the context comes

    @wraps(GenerationMixin.generate)
    def generate(
        self, inputs=None, generation_config=None, logits_processor=None, stopping_criteria=None, *others, **kwargs
    ):
        """As in transformers: a model in training mode uses dropout. It asks for no consent on standard input.

        If the model has an `engine` that searches instead, if it can, with the same results. With
        `return_log_probabilities` returns ids (B, T) and the sums of the log-probabilities of the new tokens up to
        each (B, T). Warns once where a model reads context by inputs of its own and gets none. Raises `ValueError` for
        what transformers would get wrong, and `RuntimeError` on a version of transformers with which the model does not
        work.
        """
        check_untested_version(self)
        kwargs |= zip(FURTHER_ARGUMENTS, others)
        self.check_context(kwargs)
        config, arguments = full_config(self, generation_config, kwargs)
        self.check_call(config, inputs, arguments)
        own = {"logits_processor": logits_processor, "stopping_criteria": stopping_criteria}
        search = self.search_by_transformers if self.engine is None else partial(self.engine.generate, self)
        with self.unchanged_weights():
            return search(inputs, config, own, arguments)

    def search_by_transformers(self, inputs, config: GenerationConfig, own: dict, arguments: dict):
        """`generate` of transformers with full settings, the caller's `own` processors and criteria, the rest."""
        if "cache" in arguments:
            arguments[CACHE_NAME] = arguments.pop("cache")
        if "encoder_outputs" in arguments:  # whose rows are repeated for beams in place
            arguments["encoder_outputs"] = copy.copy(arguments["encoder_outputs"])
        is_scored = arguments.pop("return_log_probabilities", False)
        if is_scored:
            config.update(return_dict_in_generate=True, output_scores=True)
        output = super().generate(inputs, config, **own, **{"trust_remote_code": False} | arguments)
        if not is_scored:
            return output
        steps = self.compute_transition_scores(
            output.sequences, output.scores, getattr(output, "beam_indices", None), normalize_logits=True
        )  # (B, new tokens)
        prompt = output.sequences.shape[1] - steps.shape[1]
        return output.sequences, nn.functional.pad(steps.cumsum(1), (prompt, 0))

    def unchanged_weights(self) -> AbstractContextManager:
        """Scope in which nothing changes weights and modules: an engine looks at them once for all calls in it."""
        return nullcontext() if self.engine is None else self.engine.scope(self)

    def prompt_cache(self):
        """An empty cache in which calls of `generate` keep a prompt that grows; None = each call reads it again."""
        return None if self.engine is None else self.engine.prompt_cache(self)

    def prepare_inputs_for_generation(
        self,
        input_ids: torch.Tensor,
        next_sequence_length: int | None = None,
        past_key_values=None,
        cache=None,
        inputs_embeds: torch.Tensor | None = None,
        is_first_iteration: bool = False,
        **kwargs,
    ) -> dict:
        """The arguments of `forward` for the target ids (B, T) of which the cache has not read the last ones.

        The cache may have either name; `inputs_embeds` are those of the source. Where `next_sequence_length` does not
        say how many ids are new, the cache does, unless the mask says that the ids are the new ones alone.
        """
        cache = past_key_values if cache is None else cache
        read, mask = cached_length(cache), kwargs.get("decoder_attention_mask")
        if next_sequence_length is None and cache is not None and (mask is None or mask.shape[1] == input_ids.shape[1]):
            next_sequence_length = input_ids.shape[1] - int(read)
        if next_sequence_length is not None and next_sequence_length < 1:
            raise ValueError(
                f"the cache has {int(read)} tokens, got {input_ids.shape[1]} target ids, expected one more than "
                "the cache: pass all ids so far, or an empty cache."
            )
        new = input_ids if next_sequence_length is None else input_ids[:, -next_sequence_length:]
        inputs = {name: value for name, value in kwargs.items() if value is not None and name != "labels"}
        inputs["decoder_input_ids"] = new.clone(memory_format=torch.contiguous_format)  # one stride: compiled once
        inputs |= self.decoder_inputs_for_generation(input_ids, inputs | {"cache": cache})
        return inputs | {"past_key_values" if self.is_prompted else CACHE_NAME: cache}  # as peft knows it

    def decoder_inputs_for_generation(self, input_ids: torch.Tensor, model_inputs: dict) -> dict[str, torch.Tensor]:
        """Further inputs that `forward` needs for new target tokens, computed from all ids so far.

        `input_ids` (B, T) are all target ids, `model_inputs` the arguments of `forward`, with the new ones as
        `decoder_input_ids`. Subclasses override it.
        """
        return {}

    def check_context(self, arguments: dict) -> None:
        """Called with the arguments of `generate`; to be overridden, to warn where context is missing."""

    def check_call(self, config: GenerationConfig, inputs: torch.Tensor | None, arguments: dict) -> None:
        """ValueError for what a search of transformers would fail at later, or get wrong."""
        has_ids = inputs is not None or "input_ids" in arguments
        if "assistant_model" in arguments and "encoder_outputs" in arguments and not has_ids:
            raise ValueError(
                "assistant_model reads the source itself, got encoder_outputs without input_ids: give both, or use "
                "prompt_lookup_num_tokens."
            )
        if config.prefill_chunk_size:
            raise ValueError(
                f"prefill_chunk_size must be None, got {config.prefill_chunk_size}: a prompt is read whole "
                "(transformers would cut the mask of the source along with it); omit it."
            )
        limit = self.config.max_position_embeddings
        is_learned = self.config.position_type == "learned"
        if config.cache_implementation == "static" and is_learned and config.max_length - 1 > limit:
            raise ValueError(
                f"cache_implementation='static': there are learned positions for {limit} tokens, got room for "
                f"{config.max_length - 1}: lower max_new_tokens."
            )

    @property
    def is_prompted(self) -> bool:
        """Whether an adapter wraps `prepare_inputs_for_generation`, to put a prefix into the cache."""
        return "prepare_inputs_for_generation" in vars(self)


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
            logger.warning(f"{lengths} were given; max_new_tokens takes precedence.")
        config.max_length = prompt_length(config, others.get("decoder_input_ids")) + config.max_new_tokens
        config.max_new_tokens = own.max_new_tokens and config.max_new_tokens  # else transformers takes the model's own
    elif config.max_length is None:
        config.max_length = model.config.longest_translation
    return config, others


def check_model_config(config: PreTrainedConfig) -> None:
    """ValueError for generation settings in a model's configuration, which nothing reads there."""
    settings = {name: value for name, value in vars(config).items() if name in GENERATION_SETTINGS}
    if misplaced := {name: value for name, value in settings.items() if not is_neutral(name, value)}:
        raise ValueError(
            f"generation settings in model.config are not read, got {misplaced}: set them in "
            "model.generation_config, or give them to generate."
        )


def prompt_length(config: GenerationConfig, prompt: torch.Tensor | None) -> int:
    """Tokens of a prompt (B, T), before which transformers puts the start token where no row begins with it."""
    if prompt is None:
        return 1
    start = config.bos_token_id if config.decoder_start_token_id is None else config.decoder_start_token_id
    return prompt.shape[1] + int(start is None or not (prompt[:, 0] == torch.as_tensor(start).to(prompt.device)).any())


DROPOUTS = {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"}


@contextmanager
def inference(model) -> Iterator[None]:
    """Scope of a translation: weights that do not change, and no dropout.

    A model in training mode is not put into evaluation mode, which other threads would see: dropout is switched off for
    what this thread calls. Not reached is attention dropout inside the kernels of flash-attention.
    """
    is_training = any(module.training for module in model.modules())
    with model.unchanged_weights(), WithoutDropout() if is_training else nullcontext():
        yield


class WithoutDropout(TorchFunctionMode):
    """Within it functions that drop values, called from this thread, give all of them, in any mode."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(func, "__name__", None) in DROPOUTS:
            return args[0] if args else kwargs["input"]
        if func is nn.functional.scaled_dot_product_attention:  # (query, key, value, attn_mask, dropout_p, ...)
            args = (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args
            kwargs = {**kwargs, "dropout_p": 0.0} if "dropout_p" in kwargs else kwargs
        return func(*args, **kwargs)


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
    """Whether transformers' search, and that of an engine, see the scores that one pass over all they wrote has.

    In greedy search the scores of every step, in beam search that of the best translation; the generation settings
    are only special tokens.
    """
    inputs = check_inputs(model)
    length = min(8, model.config.max_position_embeddings - 1)
    tokens = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
    asked = {"max_new_tokens": length, "min_new_tokens": length, "do_sample": False}
    recorded = {"return_dict_in_generate": True, "output_logits": True, "output_scores": True}
    own = model.generation_config
    _checked.add(model)  # so that `generate` does not ask again
    model.generation_config = GenerationConfig(**{name: getattr(own, name) for name in tokens})
    try:
        with WithoutDropout():
            search = partial(GenerationMixin.generate, model, **inputs, **asked)
            greedy, beams = (search(**recorded, num_beams=number) for number in (1, 3))
            whole = model(**inputs, decoder_input_ids=greedy.sequences[:, :-1]).logits.float()  # (1, T, V)
            pairs = [(torch.stack(greedy.logits[-length:], dim=1), whole[:, -length:])]
            kept = KeptScores()
            ids = model.generate(**inputs, **asked, num_beams=1, logits_processor=[kept])
            steps = torch.stack(kept.steps, dim=1).float()  # (1, T, V), -inf where ends are ruled out
            whole_steps = model(**inputs, decoder_input_ids=ids[:, :-1]).logits.float()[:, -length:].to(steps.device)
            pairs.append((steps[steps.isfinite()], whole_steps[steps.isfinite()]))
            for sequences in (beams.sequences[:1], model.generate(**inputs, **asked, num_beams=3)):
                logits = model(**inputs, decoder_input_ids=sequences[:, :-1]).logits.float().log_softmax(-1)
                score = logits.gather(2, sequences[:, 1:, None])[..., 0].mean(dim=1)
                pairs.append((beams.sequences_scores[:1], score))
    finally:
        model.generation_config = own
        _checked.discard(model)
    is_exact = {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    tolerance = (1e-4 if is_exact else 0.1) * whole.std()
    return all(bool((actual.to(expected) - expected).abs().mean() < tolerance) for actual, expected in pairs)


class KeptScores(LogitsProcessor):
    """Keeps the scores of every step."""

    def __init__(self):
        self.steps: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        self.steps.append(scores.clone())
        return scores


def check_inputs(model) -> dict:
    """A short source, and a sentence of context for a model that reads such, otherwise none on purpose."""
    config = model.config
    special = {value for name, value in config.to_dict().items() if name.endswith("token_id")}
    words = [token for token in range(config.vocab_size) if token not in special][:7]
    inputs = dict.fromkeys(model.context_arguments) | {"input_ids": torch.tensor([words[:4]], device=model.device)}
    if "context_input_ids" in inputs and config.known_offsets:
        context = torch.tensor([[words[4:]]], device=model.device)  # (1, 1, L)
        inputs["context_input_ids"], inputs["context_attention_mask"] = context, torch.ones_like(context)
        inputs["context_offsets"] = torch.tensor([[config.known_offsets[0]]], device=model.device)
    return {name: value for name, value in inputs.items() if value is not None}
