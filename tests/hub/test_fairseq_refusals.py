"""What of fairseq checkpoints is not converted, and why: pickles with code, other models, broken vocabularies."""

import argparse
import re

import pytest
import torch
from support.errors import refused
from support.fairseq_cases import (
    CACHING,
    CODES,
    GATED,
    LATENT,
    LUPO,
    MAKA,
    POOLING,
    SEGMENTS,
    SHIFT,
    SYMBOLS,
    TEXTS,
    converted,
    rows_of,
)
from support.fairseq_weights import lupo_weights, maka_weights, save_checkpoint, transformer_weights

from hf_docmt.hub.fairseq_conversion import convert_fairseq_checkpoint


class Planted:
    """Unpickled by plain pickle, it would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_no_code_of_a_pickle_runs(files, tmp_path):
    settings = CACHING
    content = {"args": argparse.Namespace(**settings), "model": {}, "extra_state": Planted(tmp_path / "planted")}
    torch.save(content, tmp_path / "model.pt")
    message = r"model.pt: holds \S*open, expected tensors, plain values and argparse.Namespace alone;.* with torch.save"
    refused(message, convert_fairseq_checkpoint, tmp_path / "model.pt", data=files, subwords=[files / "en.model"])
    assert not (tmp_path / "planted").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no checkpoint", "cannot be read|can be read safely"),
        ({"weights": {}}, "with its weights under 'model'"),
        ({"model": {"a": 1}}, "with its weights under 'model'"),
        ({"model": {}}, "the settings of the training under 'args' or 'cfg', found none"),
        ({"model": {}, "args": argparse.Namespace(arch="lstm")}, "arch is 'lstm', expected one of caching_contextual"),
        ({"model": {}, "args": argparse.Namespace(arch="transformer")}, "its settings have no 'encoder_embed_dim'"),
        ({"model": {}, "args": argparse.Namespace(arch="transformer", encoder_embed_dim=8)}, "names no languages"),
        ({"model": {}, "args": argparse.Namespace(**CACHING)}, "have no encoder.embed_tokens.weight"),
    ],
)
def test_bad_checkpoint(files, tmp_path, content, message):
    path = tmp_path / "model.pt"
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    refused(message, convert_fairseq_checkpoint, path, data=files, subwords=[files / "en.model"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (CACHING | {"source_context_size": 0}, "source_context_size is 0, expected a model that reads context"),
        (CACHING | {"target_context_size": 1}, "target_context_size is 1, expected 0"),
        (CACHING | {"separate_context_sentences": False}, "separate_context_sentences is False, expected True"),
        (CACHING | {"caching_use_current_context": True}, "caching_use_current_context is True, expected False"),
        (CACHING | {"context_use_gated_context_attention": True}, "context_use_gated_context_attention is True"),
        (CACHING | {"context_use_gated_attentions": True}, "context_use_gated_attentions is True, expected False"),
        (CACHING | {"decoder_embed_dim": 6}, "decoder_embed_dim is 6, expected 8; both sides have to agree"),
        (CACHING | {"encoder_learned_pos": True}, "decoder_learned_pos is False, expected True"),
        (CACHING | {"no_token_positional_embeddings": True}, "no_token_positional_embeddings is True"),
        (
            CACHING | GATED | {"encoder_normalize_before": True, "decoder_normalize_before": True},
            "encoder_normalize_before is True, expected False; with the norm before, parallel",
        ),
        (POOLING | {"shortening_pooling_type": "min"}, "shortening_pooling_type is 'min', expected 'mean' or 'max'"),
        (LATENT | {"shortening_ffn_hidden": None}, "shortening_ffn_hidden is None, expected a number of units"),
        (
            MAKA | {"arch": "contextual_transformer", "source_context_size": 0, "multi_encoder": True},
            "multi_encoder is True",
        ),
        (MAKA | {"arch": "contextual_transformer"}, "the single-encoder model reads a second start token"),
        (LUPO | {"mode": "block"}, "mode is 'block', expected 'slide_n2n' or 'slide_n2one'"),
        (LUPO | {"add_doc_markup": True}, "add_doc_markup is True, expected False"),
        (SHIFT | {"position_shift": -1}, "position_shift is -1, the average length of each example's sentences"),
        (SEGMENTS | {"segment_shifted_positions": True}, "use_segment_emb with it has no counterpart"),
        (SEGMENTS | {"pse_segment_dim": 4, "lrn_segment_emb": True}, "embeddings is not in a checkpoint; train"),
    ],
)
def test_models_that_this_package_has_not(files, tmp_path, settings, message):
    is_lupo = settings["task"] == "doc2doc_translation"
    rows = rows_of(files / "joint", extra=1) if is_lupo else rows_of(files)
    weights = transformer_weights(settings, rows)
    refused(re.escape(message), converted, files, tmp_path / "model.pt", settings, weights)


def test_unknown_parameters_are_listed(files, tmp_path):
    weights = maka_weights(CACHING, rows_of(files))
    weights["decoder.layers.0.attentions_gate.0.weight"] = torch.zeros(1, 16)
    del weights["encoder.layers.1.fc1.bias"]
    message = (
        'Missing key(s) in state_dict: "model.encoder.layers.1.fc1.bias". Unexpected key(s) in state_dict: '
        '"model.decoder.layers.0.attentions_gate.0.weight". Only models of the published code'
    )
    refused(re.escape(message), converted, files, tmp_path / "model.pt", CACHING, weights)


def test_parameters_of_other_sizes(files, tmp_path):
    weights = maka_weights(CACHING, rows_of(files))
    weights["encoder.layers.0.fc1.weight"] = torch.zeros(5, 8)
    with pytest.raises(ValueError, match=r"layers.0.fc1.weight: .*\(\[5, 8\]\) .*\(\[12, 8\]\)"):
        converted(files, tmp_path / "model.pt", CACHING, weights)


@pytest.mark.parametrize(
    ("dictionary", "codes", "message"),
    [
        (None, None, "dict.en.txt: 20 symbols with the special ones, but the encoder of"),
        ("the\n", None, "dict.en.txt, line 1: got 'the', expected 'symbol count' of a dictionary"),
        ("the 1\nthe 2\n", None, "dict.en.txt, line 2: 'the' appears twice"),
        ("SYMBOLS", "#version: 0.1\nt h\n", "BPE codes of 'version: 0.1', expected version 0.2"),
        ("SYMBOLS", "#version: 0.2\nth\n", "codes, line 2: got 'th', expected two pieces"),
    ],
)
def test_bad_dictionaries_and_codes(tmp_path, dictionary, codes, message):
    symbols = SYMBOLS[:-1] if dictionary is None else SYMBOLS
    text = dictionary if dictionary not in (None, "SYMBOLS") else "".join(f"{symbol} 1\n" for symbol in symbols)
    for lang in TEXTS:
        (tmp_path / f"dict.{lang}.txt").write_text(text)
    (tmp_path / "codes").write_text(codes or CODES)
    save_checkpoint(tmp_path / "model.pt", LUPO, lupo_weights(LUPO, (21, 21)))
    with pytest.raises(ValueError, match=re.escape(message)):
        convert_fairseq_checkpoint(tmp_path / "model.pt", data=tmp_path, subwords=[tmp_path / "codes"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "subwords: got 0 files, expected one for both languages or one for each"),
        (["en.model", "no.model"], "no.model: the file of subwords is missing"),
        (["en.model", "codes"], "got a SentencePiece model and BPE codes"),
        (["codes"], "got BPE codes for two dictionaries"),
    ],
)
def test_bad_subwords(files, tmp_path, names, message):
    save_checkpoint(tmp_path / "model.pt", CACHING, maka_weights(CACHING, rows_of(files)))
    with pytest.raises(ValueError, match=re.escape(message)):
        convert_fairseq_checkpoint(tmp_path / "model.pt", data=files, subwords=[files / name for name in names])


def test_end_symbols_with_two_ids(files, tmp_path):
    """Behind two dictionaries of different length `<END>` has two ids, but models here have one end token."""
    rows = rows_of(files, extra=1)
    assert rows[0] != rows[1]
    settings = LUPO | {"share_all_embeddings": False, "share_decoder_input_output_embed": False}
    save_checkpoint(tmp_path / "model.pt", settings, lupo_weights(settings, rows))
    subwords = [files / "en.model", files / "de.model"]
    with pytest.raises(ValueError, match=r"<END> has id \d+ in the dictionary of the source and \d+ in that of"):
        convert_fairseq_checkpoint(tmp_path / "model.pt", data=files, subwords=subwords)
