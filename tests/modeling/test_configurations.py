"""Configurations with a wrong value: refused when they are made, and when they are saved after a change."""

import re

import pytest
from support.errors import refused
from support.tiny_models import SIZES, build

from hf_docmt.loading import registry

ODD = {"encoder_attention_heads": 3, "decoder_attention_heads": 5}
UNTIED = {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}
# architecture -> fields, and what the error says of them
WRONG = {
    "concat": [
        ({"init": "xavier"}, "init must be one of normal, fairseq, fairseq_0.9, got 'xavier'"),
        ({"encoder_attention_heads": 3}, "encoder_attention_heads must divide d_model=16, got 3"),
        ({"decoder_attention_heads": 0}, "decoder_attention_heads must divide"),
        ({"decoder_autoregression": "gru"}, "must be one of self_attention, ssru, got 'gru'"),
        ({"position_type": "rotary"}, "position_type must be one of sinusoidal, sinusoidal_t2t, learned, got 'rotary'"),
        ({"dropout": 1.0}, "dropout must be in [0, 1), got 1.0"),
        ({"label_smoothing": -0.1}, "label_smoothing must be in"),
        ({"attention_dropout": float("nan")}, "attention_dropout must be a finite number, got nan"),
        ({"init_std": float("inf")}, "init_std must be a finite number, got inf"),
        ({"init_std": -0.1}, "init_std must be >= 0, got -0.1"),
        ({"d_model": 15} | ODD, "position_type='sinusoidal' needs an even d_model, got 15: choose an even one, or"),
        ({"d_model": 15, "position_type": "sinusoidal_t2t"} | ODD, "position_type='sinusoidal_t2t' needs an even"),
        ({"encoder_ffn_dim": 0}, "encoder_ffn_dim must be a whole number >= 1, got 0"),
        ({"position_offset": -1}, "position_offset must be a whole number >= 0, got -1"),
        ({"is_encoder_decoder": False}, "is_encoder_decoder must be one of True, got False"),
        ({"sep_token_id": -1}, "sep_token_id must be an id from 0 to 29, got -1"),
        ({"decoder_start_token_id": 30}, "decoder_start_token_id must be an id from 0 to 29, got 30"),
        ({"pad_token_id": None}, "pad_token_id must be an id from 0 to 29, got None"),
        ({"eos_token_id": []}, "eos_token_id must be an id from 0 to 29, got []"),
        ({"eos_token_id": [3, 30]}, "eos_token_id must be an id from 0 to 29, got [3, 30]"),
        ({"strategy": "fast"}, "strategy must be one of"),
        ({"target_format": "X"}, "target_format must begin with"),
        ({"view": "paragraph"}, "view must be one of window, chunk, got 'paragraph'"),
        ({"context_sides": "target"}, "context_sides must be one of both, source"),
        ({"segment_encoding": "rotary"}, "segment_encoding must be one of none, shift"),
        ({"past_context": -1}, "past_context must be a whole number >= 0, got -1"),
        ({"future_context": 1.5}, "future_context must be of type int, got 1.5"),
        ({"chunk_tokens": 0}, "chunk_tokens must be a whole number >= 1, got 0"),
        ({"segment_encoding": "shift", "segment_shift": -3}, "segment_shift must be a whole number >= 0, got -3"),
        ({"view": "chunk", "past_context": 3}, "set both to 0 or use view='window'"),
        ({"view": "chunk", "context_sides": "source"}, "use context_sides='both'"),
        ({"view": "chunk", "segment_encoding": "learned"}, "use 'shift', 'sinusoidal' or 'none'"),
        ({"start_sentence": "last"}, "start_sentence must be one of first, current, got 'last'"),
        ({"pse_dim": 4}, "segment_encoding is 'none': use 'onehot', 'sinusoidal' or 'learned'"),
        ({"pse_dim": 3, "segment_encoding": "learned"}, "pse_dim must be even and below d_model=16, got 3"),
        ({"segment_encoding": "shift", "position_type": "learned"}, "defined for sinusoidal positions"),
        ({"segment_encoding": "learned", "pse_dim": 4, "position_type": "learned"}, "defined for sinusoidal positions"),
        ({"segment_encoding": "onehot", "pse_dim": 2, "past_context": 3}, "2 dimensions cannot number 4 sentences"),
        ({"segment_encoding": "learned"} | UNTIED, "use 'sinusoidal' or 'onehot'"),
        (
            {"d_model": 15, "segment_encoding": "sinusoidal", "position_type": "learned"} | ODD,
            "segment_encoding='sinusoidal' needs an even d_model, got 15",
        ),
        ({"persistent": True}, "persistent=True needs a segment_encoding other than 'none'"),
    ],
    "gtransformer": [
        ({"global_layers": 3}, "global_layers must be a number from 0 to 2, got 3"),
        ({"context_sides": "source"}, "use context_sides='both'"),
        ({"decoder_autoregression": "ssru"}, "leaves no self-attention in the decoder"),
    ],
    "han": [
        (
            {"hierarchical_attention": "both"},
            "hierarchical_attention must be one of encoder, decoder, joint, got 'both'",
        ),
        ({"context_sides": "target"}, "context_sides must be one of source, both, got 'target'"),
        ({"hierarchical_attention": "joint", "context_sides": "source"}, "reads context_sides='both', got 'source'"),
        (
            {"hierarchical_attention": "decoder", "context_sides": "both", "future_context": 1},
            "got hierarchical_attention='decoder' with future_context=1",
        ),
    ],
    "caching": [
        (
            {"shortening": "mean"},
            "shortening must be one of none, sentence, avg, max, linear, grouping, selecting, got",
        ),
        ({"shortening": "avg", "shortening_size": 0}, "shortening_size must be a whole number >= 1, got 0"),
        ({"shortening_size": 2}, "shortening='none' has no size, got shortening_size=2"),
        ({"include_current": True}, "would read twice with shortening='none'"),
        ({"context_sides": "left"}, "context_sides must be one of source, target, both, got 'left'"),
        ({"missing_context": "</s>"}, "missing_context must be one of none, eos, got '</s>'"),
        ({"missing_context": "eos", "context_sides": "both"}, "missing_context='eos' is defined for context of the"),
        ({"context_sides": "target", "future_context": 1}, "got context_sides='target' with future_context=1"),
        (
            {"context_sides": "both", "share_encoder_decoder_embeddings": False},
            "set share_encoder_decoder_embeddings=True or context_sides='source'",
        ),
        ({"integration": "beside"}, "integration must be one of sequential, parallel, concatenate, got 'beside'"),
        ({"integration": "concatenate", "context_gate": True}, "use 'sequential' or 'parallel', or context_gate=False"),
        ({"pooling_padding": "none"}, "pooling_padding must be one of ignored, zeros, got 'none'"),
        ({"shortening_gradient": -1}, "shortening_gradient must be a whole number >= 0, got -1"),
        ({"shortening": "grouping", "categorizer": "entmax"}, "categorizer must be one of softmax, sparsemax"),
    ],
    "multiencoder": [
        ({"context_layers": 0}, "context_layers must be a whole number >= 1, got 0"),
        ({"context_sides": "both"}, "context_sides must be one of source, got 'both'"),
        ({"context_gate": True}, "which integration='concatenate' has not"),
    ],
    "routing": [
        ({"past_context": 0, "future_context": 0}, "got past_context=0 and future_context=0, set one"),
        ({"context_sides": "both"}, "context_sides must be one of source, got 'both'"),
        ({"selection_weighs": "words"}, "selection_weighs must be one of attention, states, got 'words'"),
    ],
    "doct": [
        ({"past_context": 0}, "got past_context=0 and future_context=0, set one"),
        ({"context_layers": 0}, "context_layers must be a whole number >= 1, got 0"),
        ({"selection": "gate"}, "selection must be one of none, routing, got 'gate'"),
    ],
    "window": [
        ({"window": 0}, "window must be a whole number >= 1, got 0"),
        ({"position": "rotary"}, "position must be one of relative, absolute, got 'rotary'"),
        ({"alignment": "diagonal"}, "alignment must be one of one_to_one, linear, sentence, got 'diagonal'"),
        ({"length_ratio": 0.0}, "length_ratio must be above 0 or null, got 0.0"),
        ({"d_model": 15, "position": "absolute"} | ODD, "position_type='sinusoidal' needs an even d_model, got 15"),
        ({"context_sides": "source"}, "use context_sides='both'"),
        ({"position_type": "learned"}, "use position='absolute'"),
    ],
    "memory": [
        ({"memory_size": 0}, "memory_size must be a whole number >= 1, got 0"),
        ({"memory_sides": "left"}, "memory_sides must be one of both, source, target, got 'left'"),
        ({"memory_residual": "gate"}, "memory_residual must be one of add, none, got 'gate'"),
        ({"memory_layers": []}, "at least one; got []"),
        ({"memory_layers": [6]}, "different layers of the encoder, from 0 to 1 or from -2 to -1"),
        ({"memory_layers": [1, -1]}, "different layers of the encoder"),
        ({"memory_layers": 1}, "memory_layers must be of type list or null, got 1"),
        ({"memory_layers": [3], "encoder_layers": 4}, "different layers of the decoder, from 0 to 1"),
        ({"past_context": 2}, "its memory is the context"),
        ({"view": "chunk"}, "got view='chunk'"),
    ],
}
CASES = [(architecture, *case) for architecture, cases in WRONG.items() for case in cases]


@pytest.mark.parametrize(("architecture", "fields", "message"), CASES)
def test_wrong_fields(architecture, fields, message, tmp_path):
    config_class = registry.get(architecture).config_class
    refused(re.escape(message), config_class, **SIZES | fields)
    config = config_class(**SIZES)
    config.save_pretrained(tmp_path)
    for name, value in fields.items():
        setattr(config, name, value)
    refused(re.escape(message), config.save_pretrained, tmp_path)


def test_model_with_a_wrong_field_is_not_saved(tmp_path):
    model = build()
    model.config.dropout = 1.5
    refused("dropout must be in", model.save_pretrained, tmp_path)
