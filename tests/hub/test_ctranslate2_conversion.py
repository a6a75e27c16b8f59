"""Models in CTranslate2's format: the same scores, the same translations."""

import json

import pytest
import torch
from support.tiny_models import EOS, SEP, build, word_tokenizer

from hf_docmt.engine import int8_linear
from hf_docmt.hub.export import export_model

ctranslate2 = pytest.importorskip("ctranslate2")
LEARNED = {"position_type": "learned", "layernorm_embedding": True, "position_offset": 2}
LAYOUTS = (
    {"use_bod": True},
    {"normalize_before": True, "share_encoder_decoder_embeddings": False, "scale_embedding": False},
    LEARNED,
    LEARNED | {"normalize_before": True, "activation_function": "gelu"},
    {"position_type": "sinusoidal_t2t", "normalize_before": True, "position_offset": 1},
)


def exported(folder, fields, quantization="float32"):
    """A model, CTranslate2's translator of it, and the names of all ids."""
    model = build(**fields, vocab_size=32)  # two rows without a token
    path = export_model(model, word_tokenizer(), folder / "model", form="ctranslate2", quantization=quantization)
    names = json.loads((path / "ctranslate2" / "shared_vocabulary.json").read_text(encoding="utf-8"))
    return model, ctranslate2.Translator(str(path / "ctranslate2"), intra_threads=1), names


def segments(rows, width):
    ids = torch.randint(6, 30, (rows, width), generator=torch.Generator().manual_seed(2))
    ids[:, width // 2], ids[:, -1] = SEP, EOS
    return ids


@pytest.mark.parametrize("fields", LAYOUTS)
def test_same_scores_and_translations(fields, tmp_path):
    model, translator, names = exported(tmp_path, fields)
    assert names[:2] == ["<pad>", "<unk>"] and names[29:] == ["w29", "<row 30>", "<row 31>"]
    source, target = segments(8, 12), segments(8, 15)
    sources, targets = ([[names[token] for token in row] for row in ids.tolist()] for ids in (source, target))
    start = torch.full((8, 1), model.config.decoder_start_token_id)
    with torch.no_grad():
        logits = model(input_ids=source, decoder_input_ids=torch.cat([start, target[:, :-1]], dim=1)).logits
    expected = logits.log_softmax(dim=-1).gather(2, target[..., None])[..., 0]  # (B, T)
    found = translator.score_batch(sources, [["<s>", *row[:-1]] for row in targets])
    torch.testing.assert_close(torch.tensor([one.log_probs for one in found]), expected, atol=1e-4, rtol=0)
    ours = model.generate(source, max_new_tokens=20, do_sample=False, suppress_tokens=[EOS])[:, 1:]
    blocked = {"suppress_sequences": [[names[EOS]]], "max_decoding_length": 20}
    found = translator.translate_batch(sources, [["<s>"]] * 8, beam_size=1, **blocked)
    assert [[names.index(token) for token in one.hypotheses[0]] for one in found] == ours.tolist()


@pytest.mark.skipif(
    int8_linear.INPUT_LEVELS < int8_linear.LEVELS,
    reason="oneDNN, in which CTranslate2 computes, saturates on this processor, which has no VNNI",
)
def test_int8_is_close(tmp_path):
    model, translator, names = exported(tmp_path, {}, "int8")
    assert translator.compute_type.startswith("int8")
    source = [[names[token] for token in row] for row in segments(16, 12).tolist()]
    targets = [["<s>", *row[:-1]] for row in source]
    scores = translator.score_batch(source, targets)
    exact = exported(tmp_path / "exact", {})[1].score_batch(source, targets)
    differences = [abs(a - b) for one, other in zip(scores, exact) for a, b in zip(one.log_probs, other.log_probs)]
    assert 0 < sum(differences) / len(differences) < 0.1


def test_the_folder(tmp_path):
    exported(tmp_path, {"past_context": 2})
    folder = tmp_path / "model"
    config = json.loads((folder / "config.json").read_text())
    assert config["model_type"] == "docmt-concat" and config["past_context"] == 2 and "auto_map" not in config
    assert config["max_position_embeddings"] == 4096  # rows of the table that was written
    known = json.loads((folder / "ctranslate2" / "config.json").read_text())
    assert (known["decoder_start_token"], known["eos_token"], known["unk_token"]) == (None, "</s>", "<unk>")
    card = (folder / "README.md").read_text()
    assert "library_name: ctranslate2" in card and "--engine ctranslate2" in card
    assert not list(folder.glob("*.py")) and not list(folder.glob("*.safetensors"))


def test_refusals(tmp_path):
    with pytest.raises(ValueError, match="model_type is 'docmt-window'"):
        export_model(build("window", window=3), word_tokenizer(), tmp_path / "no", form="ctranslate2")
    with pytest.raises(ValueError, match="activation_function: got 'tanh', CTranslate2 computes relu, gelu"):
        export_model(build(activation_function="tanh"), word_tokenizer(), tmp_path / "no", form="ctranslate2")
    with pytest.raises(ValueError, match="the weights are int8, expected those of training"):
        export_model(build().quantize("int8"), word_tokenizer(), tmp_path / "no", form="ctranslate2")
    assert not list(tmp_path.iterdir())
