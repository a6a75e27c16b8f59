"""The fields of a `GenerationConfig` that our searches read."""

from hf_docmt.modeling.generation_settings import is_neutral

PROCESSED = (  # settings with a processor of scores, other than `forced_eos_token_id`
    "no_repeat_ngram_size bad_words_ids min_length min_new_tokens forced_bos_token_id suppress_tokens "
    "renormalize_logits"
).split()
READ = (  # settings that our search reads, in addition to these
    "num_beams num_return_sequences max_new_tokens max_length early_stopping length_penalty use_cache pad_token_id "
    "eos_token_id decoder_start_token_id forced_eos_token_id"
).split()
HARMLESS = (  # settings that change nothing in greedy and beam search, whatever they are
    "temperature top_k top_p min_p top_h typical_p epsilon_cutoff eta_cutoff bos_token_id transformers_version "
    "num_assistant_tokens num_assistant_tokens_schedule assistant_confidence_threshold assistant_lookbehind "
    "target_lookbehind"
).split()
PLAIN = {*READ, *PROCESSED, *HARMLESS}
RECORDED = ("return_dict_in_generate", "output_attentions", "output_hidden_states", "output_scores", "output_logits")


def effective_settings(config, fields: set[str]) -> dict:
    """The settings other than these fields that change the output, with their values."""
    others = {name: value for name, value in vars(config).items() if name not in fields and name[0] != "_"}
    return {name: value for name, value in others.items() if not is_neutral(name, value)}
