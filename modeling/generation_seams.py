"""`generate` through what transformers documents for custom models; a plain call takes our search, any other theirs."""

from copy import copy
from functools import wraps
from inspect import signature

import torch
from transformers import GenerationConfig, GenerationMixin
from transformers.integrations import is_fsdp_managed_module

from .acceleration import prepacked_weights
from .cache import CACHE_NAME, DecodingCache, cached_length
from .search import DecoderState, beam_search, greedy_search
from .search_settings import full_config, has_plain_criteria, is_plain, search_settings
from .tested_versions import check_untested_version

FURTHER_ARGUMENTS = list(signature(GenerationMixin.generate).parameters)[5:]  # behind `stopping_criteria`


class GenerationSeams:
    """To be placed before `GenerationMixin`: `generate`, and the inputs of a step of decoding."""

    per_source_inputs = ("attention_mask",)  # arguments of `forward` with a row a source, which several rows share
    context_arguments: tuple[str, ...] = ()  # of `generate`, in which the context comes

    def new_cache(self) -> DecodingCache:
        """An empty cache of our search."""
        return self.get_decoder().new_cache()

    def prepacked_weights(self):
        """Scope in which the weights do not change, for faster inference on a CPU: see `cpu_inference`."""
        return prepacked_weights(self)

    @wraps(GenerationMixin.generate)
    def generate(
        self, inputs=None, generation_config=None, logits_processor=None, stopping_criteria=None, *others, **kwargs
    ):
        """As in transformers: a model in training mode uses dropout. It asks for no consent on standard input.

        Greedy and beam search that give out translations alone are ours (`search.py`), with the same results. Warns
        once where a model reads context by inputs of its own and gets none. Raises `ValueError` for what transformers
        would get wrong, and `RuntimeError` on a version of transformers with which the model does not work.
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
            if isinstance(arguments.get("cache"), DecodingCache):
                del arguments["cache"]  # of our search; theirs reads the prompt into one of its own
            if "cache" in arguments:
                arguments[CACHE_NAME] = arguments.pop("cache")
            if "encoder_outputs" in arguments:
                arguments["encoder_outputs"] = copy(arguments["encoder_outputs"])  # it repeats rows for beams in place
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
        allowed = {"input_ids", "encoder_outputs", "decoder_input_ids", *self.encoder_inputs, *self.state_inputs}
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
            and not any(module._forward_pre_hooks for module in self.modules())
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

    @property
    def state_inputs(self) -> tuple[str, ...]:
        """Arguments of `forward` that the decoder reads at every step, besides ids and encoder outputs."""
        return "attention_mask", "decoder_attention_mask", *self.model.decoder_input_names

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
        kept = {name: arguments[name] for name in self.state_inputs if name in arguments}
        mask = kept.pop("decoder_attention_mask", None)
        cache = None if config.use_cache is False else arguments.get("cache", self.new_cache())
        state = DecoderState(self, encoder_outputs, cache, mask, **kept)
        settings = search_settings(config, prompt, own["logits_processor"], own["stopping_criteria"])
        if settings.num_beams > 1:
            return beam_search(state, prompt, settings)[0]
        return greedy_search(state, prompt, settings)
