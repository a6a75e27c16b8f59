"""Everything that overrides `GenerationMixin`: source states stay one row a source, architectures add decoder inputs.

Most of these methods are private in transformers: tests/modeling/test_shared_source_generation.py pins the signatures
that they rely on.
"""

from functools import wraps

import torch
from transformers import GenerationMixin

from .beam_search import beam_search
from .cache import DecodingCache, is_static
from .cpu_inference import prepacked_weights
from .greedy_search import greedy_search
from .missing_context import warn_without_context
from .tested_versions import check_untested_version


class SharedSourceGeneration:
    """To be placed before `GenerationMixin`, which repeats encoder states for every beam; here they stay once a source.

    So do cross-attention keys and values, and a prompt is read once, as its beams are still the same.
    """

    per_source_inputs = ("attention_mask",)  # generation inputs with one row a source, shared by its beams
    context_arguments: tuple[str, ...] = ()  # of `generate`, in which the context comes; see missing_context.py

    def new_cache(self) -> DecodingCache:
        """An empty cache for `past_key_values`."""
        return self.get_decoder().new_cache()

    def prepacked_weights(self):
        """Scope in which the weights do not change, for faster inference on a CPU: see `cpu_inference`."""
        return prepacked_weights(self)

    @wraps(GenerationMixin.generate)
    def generate(self, *args, **kwargs):
        """As in transformers: a model in training mode uses dropout. It asks for no consent on standard input.

        Warns once where a model whose context are inputs of its own, or a memory, gets none of them. Raises
        `ValueError` for an `assistant_model` where the source is given by `encoder_outputs` alone, and `RuntimeError`
        on a version of transformers with which the model does not work.
        """
        check_untested_version(self)
        warn_without_context(self, kwargs)
        has_ids = bool(args) or any(kwargs.get(name) is not None for name in ("inputs", "input_ids"))
        if kwargs.get("assistant_model") is not None and kwargs.get("encoder_outputs") is not None and not has_ids:
            raise ValueError(
                "assistant_model reads the source itself, got encoder_outputs without input_ids: give both, or use "
                "prompt_lookup_num_tokens."
            )
        with self.prepacked_weights():
            return super().generate(*args, **{"trust_remote_code": False} | kwargs)

    def decoder_inputs_for_generation(self, input_ids: torch.Tensor, model_inputs: dict) -> dict[str, torch.Tensor]:
        """What `forward` needs for new target tokens besides their ids, computed from all ids so far.

        `input_ids` (B, T) are all target ids, `model_inputs` the arguments of `forward`, with the new ones as
        `decoder_input_ids`. To be overridden; the plain Transformer needs nothing.
        """
        return {}

    def prepare_inputs_for_generation(self, input_ids, next_sequence_length=None, inputs_embeds=None, **kwargs):
        """As in transformers; `inputs_embeds` are those of the source, which the encoder has read.

        Of a prompt that goes on from a cache only what is not in there is read, in assisted search, too, which leaves
        that out only from its second pass on.
        """
        cache, mask = kwargs.get("past_key_values"), kwargs.get("decoder_attention_mask")
        if next_sequence_length is None and cache is not None and mask is not None:
            if mask.shape[1] == input_ids.shape[1]:  # else the ids are the new ones alone
                next_sequence_length = input_ids.shape[1] - int(cache.get_seq_length())
        inputs = super().prepare_inputs_for_generation(input_ids, next_sequence_length, **kwargs)
        if is_static(kwargs.get("past_key_values")):  # the decoder makes its masks itself, also of such a cache
            inputs["decoder_attention_mask"] = kwargs.get("decoder_attention_mask")
        return inputs | self.decoder_inputs_for_generation(input_ids, inputs)

    def _expand_inputs_for_generation(self, expand_size=1, is_encoder_decoder=True, input_ids=None, **model_kwargs):
        """Repeat rows for beams, but for the encoder's output and the inputs of a source."""
        names = ("encoder_outputs", *self.per_source_inputs)
        shared = {name: model_kwargs.pop(name) for name in names if name in model_kwargs}
        input_ids, model_kwargs = super()._expand_inputs_for_generation(expand_size, False, input_ids, **model_kwargs)
        return input_ids, {**model_kwargs, **shared}

    def _prepare_cache_for_generation(
        self, generation_config, model_kwargs, generation_mode, batch_size, max_cache_length
    ):
        """Give a `DecodingCache` where none was given, or a static one."""
        asked = generation_config.cache_implementation
        if asked not in (None, "dynamic", "static"):
            raise ValueError(
                f"cache_implementation must be 'dynamic', 'static' or None, got {asked!r}: other caches cannot hold "
                "one row of source keys for several beams."
            )
        if asked == "static":
            self.check_static_cache(generation_config, max_cache_length)
        given = model_kwargs.get("past_key_values")
        if asked == "dynamic" and isinstance(given, DecodingCache):
            generation_config.cache_implementation = None  # it is one
        if given is not None or not generation_config.use_cache:
            arguments = (model_kwargs, generation_mode, batch_size, max_cache_length)
            super()._prepare_cache_for_generation(generation_config, *arguments)
        elif asked == "static":
            model_kwargs["past_key_values"] = self.get_decoder().new_static_cache(max_cache_length)
        else:
            model_kwargs["past_key_values"] = self.new_cache()
            if generation_config.is_assistant:  # what the assisted model does not take is taken back
                model_kwargs["past_key_values"].activate_past_recording()

    def _prepare_generated_length(self, generation_config, has_default_max_length, *args, **kwargs):
        """`max_new_tokens` comes before the model's own `max_length` without a warning at every call.

        Where neither is set, as in folders of 0.1.0, the model's limit takes the place of 20 tokens.
        """
        is_own = generation_config.max_length == self.generation_config.max_length
        if generation_config.max_new_tokens is not None:
            has_default_max_length = has_default_max_length or is_own
        elif has_default_max_length:
            generation_config.max_length, has_default_max_length = self.config.longest_translation, False
        return super()._prepare_generated_length(generation_config, has_default_max_length, *args, **kwargs)

    def check_static_cache(self, generation_config, length: int) -> None:
        """ValueError where a static cache of so many tokens cannot serve the search or the model."""
        problem = None
        if generation_config.num_beams > 1:
            problem = f"num_beams is {generation_config.num_beams}, and it is not reordered: use 1, or 'dynamic'"
        elif self.config.position_type == "learned" and length > self.config.max_position_embeddings:
            limit = self.config.max_position_embeddings
            problem = f"there are learned positions for {limit} tokens, got room for {length}: lower max_new_tokens"
        if problem:
            raise ValueError(f"cache_implementation='static': {problem}.")

    def _reorder_cache(self, past_key_values, beam_idx: torch.Tensor):
        past_key_values.self_attention_cache.reorder_cache(beam_idx)
        return past_key_values

    def _sample(
        self,
        input_ids,
        logits_processor,
        stopping_criteria,
        generation_config,
        synced_gpus=False,
        streamer=None,
        **model_kwargs,
    ):
        """Greedy on a CPU with a faster choice of the best token; else, and where it is to be compiled, as it is."""
        arguments = (input_ids, logits_processor, stopping_criteria, generation_config)
        is_plain = is_plain_search(input_ids, generation_config, synced_gpus)
        if is_plain and streamer is None and generation_config.compile_config is None:
            return greedy_search(self, *arguments, **model_kwargs)
        return super()._sample(*arguments, synced_gpus=synced_gpus, streamer=streamer, **model_kwargs)

    def _beam_search(
        self, input_ids, logits_processor, stopping_criteria, generation_config, synced_gpus=False, **model_kwargs
    ):
        """On a CPU with fewer passes over the vocabulary; else as it is."""
        arguments = (input_ids, logits_processor, stopping_criteria, generation_config)
        if is_plain_search(input_ids, generation_config, synced_gpus):
            return beam_search(self, *arguments, **model_kwargs)
        return super()._beam_search(*arguments, synced_gpus=synced_gpus, **model_kwargs)

    def _prefill(self, input_ids, generation_config, model_kwargs, is_first_iteration=True):
        """Read the prompt once a source: its beams are still the same."""
        if generation_config.prefill_chunk_size:
            raise ValueError(
                f"prefill_chunk_size must be None, got {generation_config.prefill_chunk_size}: a prompt is read whole "
                "(transformers would cut the mask of the source along with it); leave it out."
            )
        if generation_config.is_assistant and model_kwargs.get("decoder_attention_mask") is None:
            generation_config._mask_length = input_ids.shape[1]  # ids are all so far: those in the cache are left out
        beams = input_ids.shape[0] // model_kwargs["encoder_outputs"].last_hidden_state.shape[0]
        own_cache = isinstance(model_kwargs.get("past_key_values"), DecodingCache)
        recorded = generation_config.output_attentions or generation_config.output_hidden_states
        if beams == 1 or not own_cache or recorded:
            outputs = super()._prefill(input_ids, generation_config, model_kwargs, is_first_iteration)
        else:
            once = {
                name: value[::beams] if self._is_repeated(name, value, input_ids) else value
                for name, value in model_kwargs.items()
            }
            outputs = super()._prefill(input_ids[::beams], generation_config, once, is_first_iteration)
            outputs.logits = outputs.logits[:, -1:].repeat_interleave(beams, dim=0)  # (B, 1, V)
            outputs.past_key_values.batch_repeat_interleave(beams)
        if isinstance(outputs.past_key_values, DecodingCache):
            outputs.past_key_values.prompt_was_read()
        return outputs

    def _is_repeated(self, name: str, value, input_ids: torch.Tensor) -> bool:
        """Whether an input has a row for every beam."""
        if not torch.is_tensor(value) or name in self.per_source_inputs:
            return False
        return value.shape[:1] == input_ids.shape[:1]


def is_plain_search(input_ids: torch.Tensor, generation_config, synced_gpus: bool) -> bool:
    """Whether a search on one CPU samples nothing and gives out translations alone; `low_memory` is not known here."""
    more = generation_config.do_sample or generation_config.return_dict_in_generate or generation_config.low_memory
    return input_ids.device.type == "cpu" and not (more or synced_gpus)
