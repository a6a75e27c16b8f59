"""Language codes in every strategy: what a search writes is what forced decoding of training's batches prefers."""

import pytest
import torch
from support.errors import refused
from support.tiny_models import BOD, BOS, EOS, PAD, SEP, UNK, build, random_text, word_tokenizer

from hf_docmt.loading import registry

CODES = {"xx": 26, "yy": 27, "zz": 28}
FORMATS = {
    "m2m": {"source_format": "[source_lang] X </s>", "target_format": "<start> [target_lang] X </s>"},
    "mbart": {"source_format": "X </s> [source_lang]", "target_format": "[target_lang] X </s>"},
    "marian": {"source_format": "[target_lang] X </s>"},
    "bart": {"source_format": "<s> X </s>", "target_format": "<start> <s> X </s>", "decoder_start_token_id": 3},
}
LANGUAGES = {"source_lang": "xx", "target_lang": "yy"}
WINDOW = {"past_context": 2}
SOURCE = {"past_context": 2, "context_sides": "source"}
CHUNK = {"view": "chunk", "chunk_tokens": 200}


def model_of(architecture, format, **fields):
    """A model that writes words alone, in other languages by default than those that are asked for."""
    codes = {"language_ids": CODES, "source_lang": "zz", "target_lang": "zz"} if "lang" in str(FORMATS[format]) else {}
    model = build(architecture, **FORMATS[format], **codes, **fields)
    model.final_logits_bias[0, [PAD, UNK, BOS, SEP, BOD, *CODES.values()]] = -100
    model.final_logits_bias[0, EOS] -= 2  # few empty sentences
    return model


def languages_of(model):
    """The arguments for a model of this format."""
    return {name: LANGUAGES[name] for name in model.config.language_codes(*LANGUAGES.values())}


def preferred(model, collate, example, **inputs):
    """Whether every token of the current sentence is the most probable one."""
    batch = collate([example]) | inputs
    labels, weights = batch.pop("labels"), batch.pop("label_weights", None)
    scored = (labels != -100) & (labels != BOD)
    scored = scored if weights is None else scored & (weights != 0)
    with torch.no_grad():
        outputs = model(**batch)
    size = len(example["target"][example["current"]])
    best = outputs.logits.argmax(dim=-1)
    return best[scored].tolist()[:size] == labels[scored].tolist()[:size]


def examples(source, target, past):
    """Every sentence with its window, as the examples of training have it."""
    for index in range(len(source)):
        first = max(0, index - past)
        yield {
            "doc_id": "d",
            "source": source[first : index + 1],
            "target": target[first : index + 1],
            "current": index - first,
            "index": index,
            "document_start": first == 0,
        }


TRANSLATIONS = ("caching", SOURCE | {"context_sides": "target"}, "sequential", 2)
CASES = [
    ("concat", WINDOW, "sentence", 0),
    ("concat", WINDOW | {"use_bod": True}, "sequential", 2),
    ("concat", WINDOW, "sequential", 2),
    ("concat", SOURCE, "sliding", 2),
    ("concat", CHUNK, "sequential", 9),
    ("lst", WINDOW, "sequential", 2),
    ("window", WINDOW, "sequential", 2),
    ("multiencoder", SOURCE, "sliding", 2),
    ("doct", SOURCE, "sliding", 2),
    ("caching", SOURCE, "sliding", 2),
    TRANSLATIONS,
    ("routing", SOURCE | {"future_context": 0}, "sliding", 2),
]


@pytest.mark.parametrize(
    ("architecture", "fields", "strategy", "past", "format"),
    [
        *((*case, "m2m") for case in CASES),
        *((*case, "mbart") for case in (*CASES[1:4], TRANSLATIONS)),
        *((*case, format) for case in (CASES[1], CASES[-1]) for format in ("marian", "bart")),
    ],
)
def test_strategies_write_as_training_reads(architecture, fields, strategy, past, format):
    model, tokenizer = model_of(architecture, format, **fields), word_tokenizer()
    found = registry.get(architecture)
    languages = languages_of(model)
    document = random_text([3, 5, 2])
    codes = tuple(languages.get(name) for name in ("source_lang", "target_lang"))
    collate = found.collator(model.config, tokenizer, 0.0, codes)
    options = {"max_new_tokens": 5, **languages}
    (written,) = model.translate_documents([document], tokenizer, strategy, **options)
    ids = [tokenizer(side, add_special_tokens=False)["input_ids"] for side in (document, written)]
    assert any(ids[1])
    assert all(preferred(model, collate, example) for example in examples(*ids, past))


@pytest.mark.parametrize("format", ["m2m", "mbart"])
@pytest.mark.parametrize("strategy", ["full", "chunk_sequential"])
def test_forced_prefixes(strategy, format):
    """Chunks sentence by sentence, whose encoder reads the whole chunk."""
    model, tokenizer = model_of("concat", format, **CHUNK), word_tokenizer()
    document = random_text([3, 5, 2])
    (written,) = model.translate_documents([document], tokenizer, strategy, max_new_tokens=7, **LANGUAGES)
    source, target = (tokenizer(side, add_special_tokens=False)["input_ids"] for side in (document, written))
    collate = registry.get("concat").collator(model.config, tokenizer, 0.0, tuple(LANGUAGES.values()))
    whole = {"doc_id": "d", "source": source, "target": target, "index": 0, "document_start": True}
    assert all(preferred(model, collate, whole | {"current": index}) for index in range(len(source)))


@pytest.mark.parametrize("format", ["m2m", "mbart"])
def test_stream(format):
    model, tokenizer = model_of("memory", format, memory_size=3), word_tokenizer()
    document = random_text([3, 5, 2])
    (written,) = model.translate_documents([document], tokenizer, max_new_tokens=7, **LANGUAGES)
    assert [*model.translate_stream(document, tokenizer, max_new_tokens=7, **LANGUAGES)] == written
    source, target = (tokenizer(side, add_special_tokens=False)["input_ids"] for side in (document, written))
    collate = registry.get("memory").collator(model.config, tokenizer, 0.0, tuple(LANGUAGES.values()))
    memory = {}
    for example in examples(source, target, past=0):
        start = torch.tensor([example["index"] == 0])
        memory = model.memory_with_rows(memory, 1)
        assert preferred(model, collate, example, document_start=start, **memory)
        batch = collate([example]) | {"document_start": start} | memory
        inputs = {name: value for name, value in batch.items() if name not in ("labels", "label_weights")}
        with torch.no_grad():
            memory = model.memory_after(model.model(**inputs, use_cache=False))


def test_every_search_gets_the_languages():
    """Also where the configuration names others, and where none are named an error says so."""
    model, tokenizer = model_of("concat", "m2m", **WINDOW), word_tokenizer()
    document, calls, generate = random_text([3, 4]), [], model.generate

    def recorded(**inputs):
        calls.append((inputs["input_ids"][:, 0].tolist(), inputs["generation_config"].forced_bos_token_id))
        return generate(**inputs)

    model.generate = recorded
    model.translate_documents([document], tokenizer, "sentence", num_beams=2, max_new_tokens=3, **LANGUAGES)
    model.translate_documents([document], tokenizer, "sentence", max_new_tokens=3)
    assert calls == [([26, 26], 27), ([28, 28], 28)]
    for languages, message in (
        ({"source_lang": "xy"}, "source_lang='xy' is not one of the 3 language codes"),
        ({"target_lang": "yyy"}, "did you mean 'yy'"),
    ):
        refused(message, model.translate_documents, [document], tokenizer, **languages)
    model.config.target_lang = None
    refused("target_lang is missing", model.translate_documents, [document], tokenizer)
    memory = model_of("memory", "m2m", memory_size=3)
    refused("source_lang='xy'", memory.translate_stream, document, tokenizer, source_lang="xy")
    with pytest.raises(ValueError, match="target_lang='fr': this model has no codes for this side"):
        build("concat").translate_documents([document], tokenizer, target_lang="fr")


@pytest.mark.parametrize(
    ("format", "name", "own"), [("m2m", "forced_bos_token_id", 27), ("mbart", "decoder_start_token_id", 27)]
)
def test_language_as_a_setting_of_generate(format, name, own):
    """Not put aside without a word: what is written starts with the code of `target_lang`."""
    model, tokenizer = model_of("concat", format, **WINDOW), word_tokenizer()
    document = random_text([3, 4])
    options = {"max_new_tokens": 3, **LANGUAGES}
    expected = model.translate_documents([document], tokenizer, **options)
    assert model.translate_documents([document], tokenizer, **options, **{name: own}) == expected
    with pytest.raises(ValueError, match=f"{name} must be 27, .* got 28: choose the language by target_lang"):
        model.translate_documents([document], tokenizer, **options, **{name: 28})
