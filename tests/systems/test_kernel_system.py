"""Translation without torch: what it gives is what the usual system of the same job gives, and what it leaves to it."""

import json

import pytest
import torch
from support.language_models import sentence_model
from support.tiny_models import EOS, SEP, build, random_text, word_tokenizer

from hf_docmt.engine import cpu_kernels, quantization, saved_layers
from hf_docmt.hub.export import convert_sentence_model
from hf_docmt.modeling.fingerprints import add_tokenizer_fingerprint
from hf_docmt.modeling.text_splitting import Sentence
from hf_docmt.systems.kernel_system import KernelSystem
from hf_docmt.translation.group_translation import TranslationSettings

pytestmark = pytest.mark.skipif(
    cpu_kernels.most_rows(8) != 2**63, reason="the kernels were not built, or the processor lacks VNNI"
)
SIZES = {"d_model": 32, "encoder_attention_heads": 4, "decoder_attention_heads": 2}
SIZES |= {"encoder_ffn_dim": 40, "decoder_ffn_dim": 24}
LEARNED = {"position_type": "learned", "layernorm_embedding": True, "position_offset": 2, "max_position_embeddings": 40}
CHUNKS = {"view": "chunk", "chunk_tokens": 14, "use_bod": True}
UNTIED = {"tie_word_embeddings": False, "share_encoder_decoder_embeddings": False, "position_type": "sinusoidal_t2t"}
UNTIED["position_offset"] = 3
DOCUMENTS = [random_text(lengths, seed=sum(lengths)) for lengths in ([3], [3, 5, 2, 6], [12, 1, 4], [9])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A function that saves a model of fields of its configuration; with large matrices some become int8."""

    def save(int8=False, **fields):
        model, path = build(**SIZES | fields), tmp_path_factory.mktemp("models") / "model"
        model.final_logits_bias[0, [SEP, EOS]] += torch.tensor([1.0, -1.0])  # windows of several sentences
        (model.quantize("int8") if int8 else model).save_pretrained(path)
        word_tokenizer().save_pretrained(path)
        add_tokenizer_fingerprint(path, word_tokenizer())
        return path

    return save


def both(folder, documents=DOCUMENTS, dtype=None, strategy=None, **search):
    """Translations, scores and repairs by the usual system and without torch, and what both report of the search."""
    search = {"max_new_tokens": 8} | search
    settings = TranslationSettings(str(folder), strategy=strategy, batch_size=3, search=search, dtype=dtype)
    systems = settings.load(), KernelSystem.of_job(settings)
    for system in systems:
        system.scores = True
    assert list(systems[0].search.items()) == list(systems[1].search.items())  # as rows of outputs have them
    assert systems[0].languages == systems[1].languages
    assert systems[0].context == systems[1].context and systems[0].reads_pairs == systems[1].reads_pairs
    results = [system.translate_with_repairs(documents) for system in systems]
    scores = [[getattr(line, "score", None) for document in lines for line in document] for lines, _ in results]
    assert scores[1] == pytest.approx(scores[0], abs=1e-5)
    return results


@pytest.mark.parametrize(
    ("fields", "strategies"),
    [
        ({"past_context": 2}, ("sentence", "sliding", "sequential")),
        (CHUNKS, ("chunk_sequential", "full", "sequential")),
        ({"past_context": 1, "context_sides": "source", "normalize_before": True}, ("sliding",)),
        (LEARNED | {"past_context": 3, "future_context": 1}, ("sliding", "sequential", "full")),
        (UNTIED | {"past_context": 1, "decoder_ffn_dim": 48}, ("sequential",)),
        ({"decoder_autoregression": "ssru", "past_context": 1, "scale_embedding": False}, ("sequential",)),
    ],
)
@pytest.mark.parametrize("beams", [1, 3])
def test_strategies(folder, fields, strategies, beams):
    path = folder(**fields)
    for strategy in strategies:
        usual, ours = both(path, strategy=strategy, num_beams=beams)
        assert ours == usual, strategy
        assert any(sentence for document in ours[0] for sentence in document)


@pytest.mark.parametrize(
    "search", [{"length_penalty": 0.4}, {"length_penalty": 0.4, "early_stopping": True}, {"max_new_tokens": 2}]
)
def test_settings(folder, search):
    usual, ours = both(folder(past_context=1), num_beams=4, **search)
    assert ours == usual


def test_known_targets(folder):
    """Also inside a segment that is translated sentence by sentence."""
    known = [Sentence(text, "w9 w10") if n % 3 == 1 else text for n, text in enumerate(random_text([3] * 9, seed=1))]
    for fields in ({"past_context": 3}, CHUNKS):
        usual, ours = both(folder(**fields), [known, known[1:]], strategy="full")
        assert ours == usual and usual[1] != [[], []]


@pytest.mark.parametrize(("int8", "dtype"), [(True, None), (True, "int8"), (False, "int8")])
def test_int8(folder, monkeypatch, int8, dtype):
    """Saved or made while loading: layers of 2^16 weights, among smaller ones that stay floats."""
    for module in (quantization, saved_layers):
        monkeypatch.setattr(module, "MIN_ELEMENTS", cpu_kernels.MIN_ELEMENTS)
    sizes = {"d_model": 256, "encoder_ffn_dim": 256, "decoder_ffn_dim": 64}
    usual, ours = both(folder(int8, past_context=1, **sizes), dtype=dtype, num_beams=2)
    assert ours == usual


def test_language_codes(tmp_path):
    source, tokenizer, *languages = sentence_model("nllb", tmp_path)
    fields = dict(zip(("source_lang", "target_lang"), languages), past_context=1)
    model, tokenizer = convert_sentence_model(source, tokenizer=tokenizer, **fields)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    settings = TranslationSettings(str(tmp_path / "model"), search={"max_new_tokens": 6})
    assert KernelSystem.of_job(settings) is None  # its tokenizer puts codes around texts


@pytest.mark.parametrize("beams", [1, 3])
def test_searches_that_are_left_to_torch(folder, beams):
    """As those with ties are: without numbers among the scores there is no best token."""
    settings = TranslationSettings(str(folder(past_context=1)), search={"num_beams": beams}, batch_size=2)
    system = KernelSystem.of_job(settings)
    expected = system.translate(DOCUMENTS)
    system.model.programs.bias[:] = float("nan")
    assert system.translate(DOCUMENTS) == expected == settings.load().translate(DOCUMENTS)


def changed(path, file, **values):
    """A folder whose JSON file has other values; `...` = none."""
    content = json.loads((path / file).read_text("utf-8")) | values
    (path / file).write_text(json.dumps({name: value for name, value in content.items() if value is not ...}), "utf-8")


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("config.json", [{"layer_norm_eps": 0.1}, {"model_type": "docmt-memory"}, {"strategy": "no"}, {"dropout": 1}]),
        ("config.json", [{"source_lang": 5}, {"decoding_past_context": -1}, {"use_cache": 1}, {"dtype": "bfloat16"}]),
        ("config.json", [{"strategy": ...}, {"source_lang": ...}, {"architectures": None}]),
        ("config.json", [{"auto_map": {"AutoTokenizer": []}}, {"quantization_config": {"quant_method": "docmt-int8"}}]),
        ("generation_config.json", [{"do_sample": True}, {"repetition_penalty": 1.3}, {"early_stopping": "never"}]),
        ("generation_config.json", [{"num_beams": 33}, {"max_new_tokens": 0}, {"early_stopping": 1}]),
        ("tokenizer_config.json", [{"tokenizer_class": "MarianTokenizer"}, {"unk_token": "w6"}]),
        ("tokenizer_config.json", [{"extra_special_tokens": ["<bod>", "<new>"]}, {"eos_token": {"content": "</s>"}}]),
        ("tokenizer_config.json", [{"added_tokens_decoder": {}}, {"model_max_length": "long"}]),
    ],
)
def test_values_that_are_left_to_torch(folder, file, changes):
    for change in changes:
        changed(path := folder(), file, **change)
        assert KernelSystem.of_job(TranslationSettings(str(path))) is None, change


FILES = ["adapter_config.json", "special_tokens_map.json", "model.safetensors.index.json"]
FILES += ["tokenizer.json", "tokenizer_config.json", "model.safetensors"]


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_left_to_torch(folder, name):
    """Others than those of a model that was just saved, broken ones, and weights with other bytes."""
    path = folder()
    assert KernelSystem.of_job(TranslationSettings(str(path)))
    whole = (path / name).read_bytes() if (path / name).exists() else b""
    for content in (b"", b"[]", whole[:-8] + bytes(8)):
        (path / name).write_bytes(content)
        assert KernelSystem.of_job(TranslationSettings(str(path))) is None, content
    (path / name).unlink()
    assert (KernelSystem.of_job(TranslationSettings(str(path))) is None) == bool(whole)


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_damaged_weights_are_left_to_torch(tmp_path, value):
    """Saved so, as after a training that diverged, with a fingerprint that fits."""
    model = build(**SIZES)
    model.model.encoder.layers[0].fc1.weight.data.fill_(value)
    model.save_pretrained(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)
    assert KernelSystem.of_job(TranslationSettings(str(tmp_path))) is None


def test_unknown_tokens_are_left_to_torch(tmp_path):
    model = build(**SIZES)
    model.generation_config.eos_token_id = model.config.vocab_size
    model.save_pretrained(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)
    assert KernelSystem.of_job(TranslationSettings(str(tmp_path))) is None


def test_small_layers_in_int8_are_left_to_torch(folder, monkeypatch):
    """Which says that no layer is large enough."""
    monkeypatch.setattr(saved_layers, "MIN_ELEMENTS", cpu_kernels.MIN_ELEMENTS)
    assert KernelSystem.of_job(TranslationSettings(str(folder()), dtype="int8")) is None


def test_beginnings_are_left_to_torch(folder):
    usual, ours = both(folder(), [[Sentence("w6 w7 w8", beginning="w9 w10")]], num_beams=2)
    assert ours == usual and ours[0][0][0].startswith("w9 w10")


@pytest.mark.parametrize(
    "fields",
    [{"d_model": 20}, {"target_format": "<start> <s> X </s>"}, {"segment_encoding": "learned", "past_context": 1}],
)
def test_architectures_that_are_left_to_torch(folder, fields):
    assert KernelSystem.of_job(TranslationSettings(str(folder(**fields)))) is None
