"""`generate` through what transformers documents for custom models; a plain call takes our search, any other theirs."""

import copy
from collections.abc import Sequence
from functools import partial, wraps
from inspect import signature

import torch
from transformers import (
    EosTokenCriteria,
    GenerationConfig,
    GenerationMixin,
    MaxLengthCriteria,
    PreTrainedConfig,
    StoppingCriteriaList,
)
from transformers.generation import logits_process
from transformers.integrations import is_fsdp_managed_module
from transformers.utils import logging

from .cache import CACHE_NAME, DecodingCache, cached_length
from .search import DecoderState, SearchSettings, beam_search, greedy_search, modules_of
from .tested_versions import check_untested_version

logger = logging.get_logger(__name__)

FURTHER_ARGUMENTS = list(signature(GenerationMixin.generate).parameters)[5:]  # behind `stopping_criteria`
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
ONE = (
    "repetition_penalty encoder_repetition_penalty guidance_scale num_beam_groups num_beams num_return_sequences "
    "length_penalty temperature top_p"
)
NEUTRAL = dict.fromkeys(ZERO.split(), 0) | dict.fromkeys(ONE.split(), 1)  # these change nothing, nor None and False
NEUTRAL |= {"top_k": 50, "cache_implementation": "dynamic"}
GENERATION_SETTINGS = {  # those that no configuration of a model has
    name for name in GenerationConfig().to_dict().keys() - PreTrainedConfig().to_dict().keys() if "token_id" not in name
} - {"use_cache"}
RECORDED = ("return_dict_in_generate", "output_attentions", "output_hidden_states", "output_scores", "output_logits")


class GenerationSeams:
    """To be placed before `GenerationMixin`: `generate`, and the inputs of a step of decoding."""

    per_source_inputs = ("attention_mask",)  # arguments of `forward` with a row a source, which several rows share
    context_arguments: tuple[str, ...] = ()  # of `generate`, in which the context comes

    def new_cache(self) -> DecodingCache:
        """An empty cache of our search."""
        return self.get_decoder().new_cache()

    @wraps(GenerationMixin.generate)
    def generate(
        self, inputs=None, generation_config=None, logits_processor=None, stopping_criteria=None, *others, **kwargs
    ):
        """As in transformers: a model in training mode uses dropout. It asks for no consent on standard input.

        Greedy and beam search that give out translations alone are ours (`search.py`), with the same results; a
        `shortlist` (`LexicalShortlist`) restricts them to words that translate those of the source. Warns once where a
        model reads context by inputs of its own and gets none. Raises `ValueError` for what transformers would get
        wrong, and `RuntimeError` on a version of transformers with which the model does not work.
        """
        check_untested_version(self)
        kwargs |= zip(FURTHER_ARGUMENTS, others)
        self.check_context(kwargs)
        config, arguments = full_config(self, generation_config, kwargs)
        self.check_call(config, inputs, arguments)
        own = {"logits_processor": logits_processor, "stopping_criteria": stopping_criteria}
        with self.prepacked_weights():
            is_ours = is_plain(config) and has_plain_criteria(stopping_criteria)
            if is_ours and self.is_plain_call(inputs, config, arguments):
                return self.search_translations(inputs, config, own, arguments)
            if arguments.get("shortlist") is not None:
                raise ValueError(
                    "shortlist is for greedy and beam search with plain settings, and these ask for another search: "
                    "leave it out."
                )
            if isinstance(arguments.get("cache"), DecodingCache):
                del arguments["cache"]  # of our search; theirs reads the prompt into one of its own
            if "cache" in arguments:
                arguments[CACHE_NAME] = arguments.pop("cache")
            if "encoder_outputs" in arguments:  # whose rows are repeated for beams in place
                arguments["encoder_outputs"] = copy.copy(arguments["encoder_outputs"])
            return super().generate(inputs, config, **own, **{"trust_remote_code": False} | arguments)

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
                f"the cache has {int(read)} tokens, got {input_ids.shape[1]} target ids: there must be one more, which "
                "is not read yet; give all ids so far, or an empty cache."
            )
        new = input_ids if next_sequence_length is None else input_ids[:, -next_sequence_length:]
        inputs = {name: value for name, value in kwargs.items() if value is not None and name != "labels"}
        inputs["decoder_input_ids"] = new.clone(memory_format=torch.contiguous_format)  # one stride: compiled once
        inputs |= self.decoder_inputs_for_generation(input_ids, inputs | {"cache": cache})
        return inputs | {"past_key_values" if self.is_prompted else CACHE_NAME: cache}  # as peft knows it

    def decoder_inputs_for_generation(self, input_ids: torch.Tensor, model_inputs: dict) -> dict[str, torch.Tensor]:
        """What `forward` needs for new target tokens besides their ids, computed from all ids so far.

        `input_ids` (B, T) are all target ids, `model_inputs` the arguments of `forward`, with the new ones as
        `decoder_input_ids`. To be overridden.
        """
        return {}

    # Calls of `generate`

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
                "(transformers would cut the mask of the source along with it); leave it out."
            )
        limit = self.config.max_position_embeddings
        is_learned = self.config.position_type == "learned"
        if config.cache_implementation == "static" and is_learned and config.max_length - 1 > limit:
            raise ValueError(
                f"cache_implementation='static': there are learned positions for {limit} tokens, got room for "
                f"{config.max_length - 1}: lower max_new_tokens."
            )

    def is_plain_call(self, inputs: torch.Tensor | None, config: GenerationConfig, arguments: dict) -> bool:
        """Whether all arguments besides settings are inputs of the model, and no adapter stands before its layers."""
        names = {name for name, value in arguments.items() if value is not False}
        if isinstance(arguments.get("cache"), DecodingCache):
            names.discard("cache")
        names.discard("shortlist")
        allowed = {"input_ids", "encoder_outputs", "decoder_input_ids", "decoder_attention_mask", *self.encoder_inputs}
        allowed |= set(self.model.decoder_input_names)
        sources = (inputs is not None) + ("input_ids" in names)
        prompt, start = arguments.get("decoder_input_ids"), config.decoder_start_token_id
        mask = arguments.get("decoder_attention_mask")
        return (
            names <= allowed
            and self.device.type != "meta"  # of an offloaded model, whose inputs say where it runs
            and (sources == 1 or sources == 0 and "encoder_outputs" in names)
            and isinstance(start, int)
            and (prompt is None or bool((prompt[:, 0] == start).any()))
            and (1 if prompt is None else prompt.shape[1]) < config.max_length
            and (mask is None or prompt is not None and mask.shape == prompt.shape)
            and not self.is_prompted
            and not any(module._forward_pre_hooks for module in modules_of(self))
            and not is_fsdp_managed_module(self)
        )

    @property
    def is_prompted(self) -> bool:
        """Whether an adapter stands before `prepare_inputs_for_generation`, to put a prefix into the cache."""
        return "prepare_inputs_for_generation" in vars(self)

    @property
    def encoder_inputs(self) -> tuple[str, ...]:
        """Arguments of `forward` that the encoder reads, besides ids."""
        return "attention_mask", *self.model.encoder_input_names

    def search_translations(
        self, inputs: torch.Tensor | None, config: GenerationConfig, own: dict, arguments: dict
    ) -> torch.Tensor:
        """Translations (B * returned, at most `max_length`) by our search; `own` processors and criteria."""
        tensors = {name: value.to(self.device) for name, value in arguments.items() if torch.is_tensor(value)}
        arguments = arguments | tensors
        encoder_outputs = arguments.get("encoder_outputs")
        if encoder_outputs is None:
            ids = arguments["input_ids"] if inputs is None else inputs.to(self.device)
            read = {name: arguments[name] for name in self.encoder_inputs if name in arguments}
            with torch.no_grad():
                encoder_outputs = self.get_encoder()(input_ids=ids, **read, return_dict=True)
        prompt = arguments.get("decoder_input_ids")
        if prompt is None:
            prompt = torch.full((len(encoder_outputs[0]), 1), config.decoder_start_token_id, device=self.device)
        prompt = prompt.long()  # as the kernels read it
        names = ("attention_mask", *self.model.decoder_input_names)  # of what the decoder reads at every step
        kept = {name: arguments[name] for name in names if name in arguments}
        cache = None if config.use_cache is False else arguments.get("cache", self.new_cache())
        make_state = partial(DecoderState, self)
        if (shortlist := arguments.get("shortlist")) is not None:
            make_state = partial(shortlist.decoder_state, self, arguments.get("input_ids", inputs))
        mask, is_given = arguments.get("decoder_attention_mask"), "cache" in arguments
        state = make_state(encoder_outputs, cache, mask, keeps_cache=is_given, **kept)
        settings = search_settings(config, prompt, own["logits_processor"], own["stopping_criteria"])
        if settings.num_beams > 1:
            return beam_search(state, prompt, settings)[0]
        return greedy_search(state, prompt, settings)


# Settings of `generate`


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
    merged = copy.copy(model.generation_config if config is None else config)
    for name, value in vars(model.generation_config).items():
        if getattr(merged, name, None) is None:
            setattr(merged, name, value)
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
    others = {name: value for name, value in vars(config).items() if name not in fields and name[0] != "_"}
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
    config: GenerationConfig, prompt: torch.Tensor, processors: Sequence | None, criteria: Sequence | None
) -> SearchSettings:
    """What plain settings mean behind prompts (B, T); `processors` and `criteria` are the caller's own."""
    ends, pad, own = end_tokens(config), config.pad_token_id, processors or ()
    classes = {type(processor): processor for processor in reversed(own)}  # in the place of those of their class
    merged = [classes.get(type(processor), processor) for processor in processors_of(config, prompt)]
    merged += [processor for processor in own if processor not in merged]
    merged += [logits_process.LogitNormalization()] if config.renormalize_logits else []
    names = ("max_length", "num_beams", "num_return_sequences", "length_penalty", "early_stopping")
    return SearchSettings(
        eos_token_id=ends,
        pad_token_id=pad if pad is not None else ends[0] if ends else 0,
        processors=logits_process.LogitsProcessorList(merged),
        criteria=StoppingCriteriaList(criteria or ()),
        **{name: getattr(config, name) for name in names if getattr(config, name) is not None},
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
