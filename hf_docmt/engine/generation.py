"""The `engine` of the package's models: plain calls of `generate` use our search, all others that of transformers."""

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

import torch
from transformers import (
    EosTokenCriteria,
    GenerationConfig,
    MaxLengthCriteria,
    StoppingCriteriaList,
)
from transformers.generation import logits_process
from transformers.integrations import is_fsdp_managed_module

from hf_docmt.engine.cache import DecodingCache
from hf_docmt.engine.chunked_loss import chunked_loss
from hf_docmt.engine.cpu_kernels import are_used
from hf_docmt.engine.decoding_step import MOST_WAITING, waiting_tokens
from hf_docmt.engine.encoder import MOST_PLACES, encoder_states
from hf_docmt.engine.generation_fields import HARMLESS, PLAIN, READ, effective_settings
from hf_docmt.engine.lone_search import LoneSearch, lone_search
from hf_docmt.engine.quantization import quantize, replace_linear
from hf_docmt.engine.scope import forget, has_hooks, packed_products, unchanged_weights
from hf_docmt.engine.search import DecoderState, SearchSettings, best_translations
from hf_docmt.modeling.generation_settings import end_tokens
from hf_docmt.modeling.modeling_docmt import DocMTPreTrainedModel


class Engine:
    """Searches, encodes and computes losses in the place of transformers and the layers, where it knows how.

    It holds nothing: what is made of weights is kept with them.
    """

    scope = staticmethod(unchanged_weights)
    encode = staticmethod(encoder_states)
    loss = staticmethod(chunked_loss)
    forget = staticmethod(forget)

    def generate(self, model, inputs: torch.Tensor | None, config: GenerationConfig, own: dict, arguments: dict):
        """Greedy and beam search that return only translations (B * returned, at most `max_length`); or transformers'.

        `own` are processors and criteria of the caller. A `shortlist` (`LexicalShortlist`) restricts the search to
        words that translate those of the source; ValueError where transformers has to search.
        """
        at_once = arguments.pop("sources_at_once", None)
        is_ours = is_plain(config) and has_plain_criteria(own["stopping_criteria"])
        if is_ours and is_plain_call(model, inputs, config, arguments):
            return search_translations(model, inputs, config, own, arguments, at_once)
        if arguments.get("shortlist") is not None:
            raise ValueError(
                "shortlist is for greedy and beam search with plain settings, and these ask for another search: "
                "omit it."
            )
        if isinstance(arguments.get("cache"), DecodingCache):
            del arguments["cache"]  # theirs reads the prompt into one of its own
        may_be_compiled = config.compile_config is not None or model.device.type != "cpu"  # modes of torch break it
        with nullcontext() if may_be_compiled else packed_products(model):
            return model.search_by_transformers(inputs, config, own, arguments)

    def waiting_tokens(self, model, config: GenerationConfig, arguments: dict) -> int:
        """The most tokens of sources, padding included, of calls of `generate` with `sources_at_once`; 0: none wait.

        Not beams over a shortlist: the more sources wait, the more words are scored for each of them.
        """
        known = {"stopping_criteria"} | (set() if (config.num_beams or 1) > 1 else {"shortlist"})
        criteria = arguments.get("stopping_criteria") or ()
        is_known = arguments.keys() <= known and all(getattr(one, "ends_nothing", False) for one in criteria)
        is_known = is_known and not effective_settings(config, {*READ, *HARMLESS}) and is_plain(config)
        return waiting_tokens(model) if is_known and not model.is_prompted and not has_hooks(model) else 0

    def lone_search(self, model, config: GenerationConfig, arguments: dict, has_sums: bool) -> LoneSearch | None:
        """The search of plain calls of `generate` with these settings, for one source after the other; None: that."""
        if arguments or self.waiting_tokens(model, config, arguments) < MOST_WAITING:  # it has no limits
            return None
        config = copy.copy(config)
        config.max_length = 2**31  # each search has its own limit
        settings = search_settings(config, torch.empty(1, 1), None, None)
        settings.has_sums = has_sums
        return lone_search(model, settings)

    def prompt_cache(self, model) -> DecodingCache | None:
        """An empty cache; None for a recurrent decoder, whose state cannot go back to the end of a prompt."""
        return None if model.config.decoder_autoregression == "ssru" else DecodingCache()


def install() -> None:
    """Give all models of the package the engine, and `quantize`; `model.engine = None` takes it from one of them."""
    DocMTPreTrainedModel.engine = Engine()
    DocMTPreTrainedModel.quantize, DocMTPreTrainedModel.replace_linear = quantize, replace_linear


def is_plain_call(model, inputs: torch.Tensor | None, config: GenerationConfig, arguments: dict) -> bool:
    """Whether all arguments other than settings are inputs of the model, and no adapter precedes its layers."""
    names = {name for name, value in arguments.items() if value is not False}
    if isinstance(arguments.get("cache"), DecodingCache):
        names.discard("cache")
    names -= {"shortlist", "return_log_probabilities"}
    allowed = {"input_ids", "encoder_outputs", "decoder_input_ids", "decoder_attention_mask", *encoder_inputs(model)}
    allowed |= set(model.model.decoder_input_names)
    sources = (inputs is not None) + ("input_ids" in names)
    prompt, start = arguments.get("decoder_input_ids"), config.decoder_start_token_id
    mask = arguments.get("decoder_attention_mask")
    return (
        names <= allowed
        and model.device.type != "meta"  # of an offloaded model, whose inputs say where it runs
        and (sources == 1 or sources == 0 and "encoder_outputs" in names)
        and isinstance(start, int)
        and (prompt is None or bool((prompt[:, 0] == start).any()))
        and (1 if prompt is None else prompt.shape[1]) < config.max_length
        and (mask is None or prompt is not None and mask.shape == prompt.shape)
        and not model.is_prompted
        and not has_hooks(model)
        and not is_fsdp_managed_module(model)
    )


def encoder_inputs(model) -> tuple[str, ...]:
    """Arguments of `forward` that the encoder reads, other than ids."""
    return "attention_mask", *model.model.encoder_input_names


def search_translations(
    model, inputs: torch.Tensor | None, config: GenerationConfig, own: dict, arguments: dict, at_once: int | None
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Translations (B * returned, at most `max_length`) by our search; `own` processors and criteria.

    With `return_log_probabilities` the sums of these up to each token are the second result.
    """
    device = model.device
    tensors = {name: value.to(device) for name, value in arguments.items() if torch.is_tensor(value)}
    arguments = arguments | tensors
    encoder_outputs = arguments.get("encoder_outputs")
    if encoder_outputs is None:
        ids = arguments["input_ids"] if inputs is None else inputs.to(device)
        read = {name: arguments[name] for name in encoder_inputs(model) if name in arguments}
        is_short = are_used() and (ids is None or ids.shape[1] <= MOST_PLACES)  # for the primitives
        with torch.no_grad(), nullcontext() if is_short else packed_products(model):
            encoder_outputs = model.get_encoder()(input_ids=ids, **read, return_dict=True)
    prompt = arguments.get("decoder_input_ids")
    if prompt is None:
        prompt = torch.full((len(encoder_outputs[0]), 1), config.decoder_start_token_id, device=device)
    prompt = prompt.long()  # as the kernels read it
    names = ("attention_mask", *model.model.decoder_input_names)  # of what the decoder reads at every step
    kept = {name: arguments[name] for name in names if name in arguments}
    cache = None if config.use_cache is False else arguments.get("cache", DecodingCache())
    make_state = partial(DecoderState, model)
    if (shortlist := arguments.get("shortlist")) is not None:
        make_state = partial(shortlist.decoder_state, model, arguments.get("input_ids", inputs))
    mask, is_given = arguments.get("decoder_attention_mask"), "cache" in arguments
    state = make_state(encoder_outputs, cache, mask, keeps_cache=is_given, **kept)
    settings = search_settings(config, prompt, own["logits_processor"], own["stopping_criteria"])
    settings.has_sums = arguments.get("return_log_probabilities", False)
    ids, sums = best_translations(state, prompt, settings, at_once)
    return (ids, sums) if settings.has_sums else ids


def is_plain(config: GenerationConfig) -> bool:
    """Whether settings ask for greedy or beam search, for translations alone, and for nothing that is not read here."""
    has_beams = (config.num_return_sequences or 1) <= (config.num_beams or 1)
    return has_beams and not effective_settings(config, PLAIN)


def has_plain_criteria(criteria: Sequence | None) -> bool:
    """Whether criteria of the caller take the place of none that settings ask for, as in transformers."""
    return not any(type(criterion) in (MaxLengthCriteria, EosTokenCriteria) for criterion in criteria or ())


def search_settings(
    config: GenerationConfig, prompt: torch.Tensor, processors: Sequence | None, criteria: Sequence | None
) -> SearchSettings:
    """The settings of our search after prompts (B, T); `processors` and `criteria` are the caller's own."""
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
        is_by_row=all(hasattr(one, "of_rows") for one in (*own, *(criteria or ()))),
        **{name: getattr(config, name) for name in names if getattr(config, name) is not None},
    )


def processors_of(config: GenerationConfig, prompt: torch.Tensor) -> list:
    """Processors of scores that settings ask for after prompts (B, T), in the order of transformers."""
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
