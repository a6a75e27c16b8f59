"""Concatenation models as transformers' own classes: the same logits and beams, loaded without code."""

import re

import pytest
import torch
from support.tiny_models import SEP, build, random_text, word_tokenizer
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_docmt.hub.export import export_model
from hf_docmt.hub.stock import stock_class, to_stock

LEARNED = {"position_type": "learned", "layernorm_embedding": True, "position_offset": 2}
LAYOUTS = {
    "MarianMTModel": {},
    "PegasusForConditionalGeneration": {"normalize_before": True},
    "BartForConditionalGeneration": LEARNED,
    "MBartForConditionalGeneration": LEARNED | {"normalize_before": True},
    "M2M100ForConditionalGeneration": {
        "position_type": "sinusoidal_t2t",
        "normalize_before": True,
        "position_offset": 1,
    },
}
TWO_TABLES = {"share_encoder_decoder_embeddings": False}
UNTIED = TWO_TABLES | {"tie_word_embeddings": False}
CASES = [(name, {}) for name in LAYOUTS] + [("MarianMTModel", TWO_TABLES), ("MarianMTModel", UNTIED)]
CASES += [("PegasusForConditionalGeneration", TWO_TABLES), ("M2M100ForConditionalGeneration", UNTIED)]


def plain(name, **fields):
    """A model of the layout of this class, reading windows of two sentences."""
    model = build(**LAYOUTS[name] | {"past_context": 1} | fields)
    if name.startswith("M2M100"):
        model.final_logits_bias.zero_()
    return model


@torch.no_grad()
def largest_difference(model, other, inputs):
    """Of the logits of target tokens that follow a source with padding."""
    sides = [one(**inputs, decoder_input_ids=inputs["input_ids"]).logits for one in (model, other)]
    return (sides[0] - sides[1])[inputs["attention_mask"].bool()].abs().max().item()


def windows():
    ids = torch.randint(6, 30, (6, 12), generator=torch.Generator().manual_seed(1))
    ids[:, 5], ids[:, 11] = SEP, 3
    ids[0, 8:], ids[0, 7] = 0, 3
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


@pytest.mark.parametrize(("name", "tables"), CASES)
def test_same_logits_and_beams(name, tables, tmp_path):
    model, inputs = plain(name, scale_embedding=not tables, activation_function="gelu", **tables), windows()
    model.generation_config.update(num_beams=3, length_penalty=0.6, max_new_tokens=14)
    stock = to_stock(model)
    stock.save_pretrained(tmp_path)
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert type(loaded).__name__ == name and type(loaded).__module__.startswith("transformers.models.")
    assert largest_difference(model, loaded, inputs) < 1e-5
    assert torch.equal(loaded.generate(**inputs), model.generate(**inputs))


def test_exported_folder(tmp_path):
    """No code in it; what its card shows gives what the model gives."""
    model, tokenizer = plain("MarianMTModel", use_bod=True), word_tokenizer()
    folder = export_model(model, tokenizer, tmp_path / "stock", form="stock")
    names = {path.name for path in folder.iterdir()}
    assert {"README.md", "config.json", "model.safetensors", "generation_config.json", "tokenizer.json"} <= names
    assert not any(name.endswith(".py") for name in names)
    card = (folder / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    assert "MarianMTModel" in card and "trust_remote_code" not in card
    sentences = random_text([4, 3])
    code = code.replace('"ORGANISATION/MODEL"', repr(str(folder)))
    code = code.replace('["First sentence.", "Second sentence."]', repr(sentences)).replace("print", "found.append")
    known = {"found": []}
    exec(code, known)
    assert AutoTokenizer.from_pretrained(folder).get_vocab() == tokenizer.get_vocab()
    ours = model.generate(**known["inputs"], max_new_tokens=2 * len(known["ids"]) + 32)
    assert known["ids"][0] == model.config.bod_token_id and known["found"] == [tokenizer.batch_decode(ours)]


def test_long_chunks_have_positions(tmp_path):
    """The classes have tables of sines of a fixed size, the backbone has none."""
    model = plain("MarianMTModel", view="chunk", past_context=0, chunk_tokens=50, max_position_embeddings=20)
    assert to_stock(model).config.max_position_embeddings == 132
    ids = torch.randint(6, 30, (1, 130))
    assert largest_difference(model, to_stock(model), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}) < 1e-5


@pytest.mark.parametrize(
    ("architecture", "fields", "message"),
    [
        ("lst", {}, "model_type is 'docmt-lst', expected 'docmt-concat'"),
        ("concat", {"segment_encoding": "sinusoidal"}, "segment_encoding is 'sinusoidal', expected 'none'"),
        ("concat", {"layernorm_embedding": True}, "layernorm_embedding=True, expected MarianMTModel: position_type="),
        ("concat", {"decoder_autoregression": "ssru"}, "decoder_autoregression is 'ssru', expected 'self_attention'"),
        ("concat", {"layer_norm_eps": 1e-6}, "layer_norm_eps is 1e-06, expected 1e-05"),
        ("concat", {"position_offset": 1}, "position_offset is 1, MarianMTModel has 0"),
        ("concat", LEARNED | {"position_offset": 0}, "position_offset is 0, BartForConditionalGeneration has 2"),
        (
            "concat",
            LAYOUTS["M2M100ForConditionalGeneration"] | {"decoder_start_token_id": 0},
            "decoder_start_token_id is the padding",
        ),
    ],
)
def test_other_models_are_refused(architecture, fields, message):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        stock_class(build(architecture, **fields).config)
    assert str(error.value).startswith("no class of transformers computes this model: ")


def test_other_weights_are_refused(tmp_path):
    model = build(**LAYOUTS["M2M100ForConditionalGeneration"])
    with pytest.raises(ValueError, match="final_logits_bias: got values other than 0"):
        to_stock(model)
    with pytest.raises(ValueError, match="the weights are int8"):
        to_stock(plain("MarianMTModel").quantize("int8"))
    with pytest.raises(ValueError, match="is not an empty folder"):
        export_model(plain("MarianMTModel"), None, export_model(model, None, tmp_path / "there"), form="stock")
