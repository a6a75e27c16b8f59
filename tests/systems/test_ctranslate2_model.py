"""Documents translated by CTranslate2: the strategies give what they give with `generate`."""

import pytest
import torch
from support.errors import refused
from support.language_models import sentence_model
from support.systems import ITEMS
from support.tiny_models import SEP, build, random_text, word_tokenizer

from hf_docmt.hub.export import convert_sentence_model, export_model
from hf_docmt.systems import load_system
from hf_docmt.systems.ctranslate2_model import CTranslate2Model

pytest.importorskip("ctranslate2")


CHUNKS = {"view": "chunk", "chunk_tokens": 14, "use_bod": True}
LEARNED = {"position_type": "learned", "layernorm_embedding": True, "position_offset": 2, "max_position_embeddings": 30}
DOCUMENTS = [random_text(lengths, seed=sum(lengths)) for lengths in ([3], [3, 5, 2, 6])]
FLOAT32 = {"form": "ctranslate2", "quantization": "float32"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A function that gives a model, and the same one for CTranslate2, by fields of its configuration."""
    pairs = {}

    def models(**fields):
        if repr(fields) not in pairs:
            model = build(**fields)
            model.final_logits_bias[0, SEP] += 1.0  # windows of several sentences
            folder = export_model(model, word_tokenizer(), tmp_path_factory.mktemp("models") / "int", **FLOAT32)
            pairs[repr(fields)] = model, CTranslate2Model(folder)
        return pairs[repr(fields)]

    return models


def both(models, documents=DOCUMENTS, **settings):
    """Translations and repairs of both models; the second ones are CTranslate2's."""
    arguments = {"return_report": True, "batch_size": 3, "max_new_tokens": 8} | settings
    return [model.translate_documents(documents, word_tokenizer(), **arguments) for model in models]


@pytest.mark.parametrize(
    ("fields", "strategies"),
    [
        ({"past_context": 2}, ("sentence", "sliding", "sequential")),
        (CHUNKS, ("chunk_sequential", "full")),
        ({"past_context": 1, "context_sides": "source", "normalize_before": True}, ("sliding",)),
        (LEARNED | {"past_context": 3}, ("sequential",)),
    ],
)
def test_greedy_strategies(pair, fields, strategies):
    for strategy in strategies:
        ours, theirs = both(pair(**fields), strategy=strategy)
        assert ours == theirs, strategy
        assert any(sentence for document in ours[0] for sentence in document)
    assert any(repairs for repairs in both(pair(**fields), strategy=strategies[-1], max_new_tokens=3)[1][1])


def test_beams(pair):
    """Without a forced prefix, where CTranslate2 ends as transformers does with `early_stopping`."""
    settings = {"strategy": "sliding", "early_stopping": True, "num_beams": 3, "length_penalty": 0.6}
    ours, theirs = both(pair(past_context=2), **settings)
    assert ours == theirs


def test_scores_behind_a_prefix(pair):
    """Finished translations are compared by the scores of forced decoding, over the length behind the prefix."""
    model, peer = pair(past_context=2)
    source, prompt = [8, 9, SEP, 11, 3], [2, 7, 9, SEP]
    arguments = {"end_ids": [3], "beam_size": 4, "num_hypotheses": 4, "return_scores": True, "max_decoding_length": 11}
    ((hypotheses, scores),) = peer.translate([source], [prompt], **arguments)
    for score, ids in zip(scores, hypotheses):
        target = torch.tensor([[prompt[0], *ids]])
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([source]), decoder_input_ids=target[:, :-1]).logits
        expected = logits.log_softmax(dim=-1)[0].gather(1, target[0, 1:, None])[3:].mean()
        assert score * len(ids) / (len(ids) - 3) == pytest.approx(expected.item(), abs=1e-4)


def test_language_codes(tmp_path):
    """Codes in front of the source, and in front of the translation, which begins behind it."""
    source, tokenizer, *languages = sentence_model("nllb", tmp_path)
    fields = dict(zip(("source_lang", "target_lang"), languages), past_context=1)
    model, tokenizer = convert_sentence_model(source, tokenizer=tokenizer, **fields)
    peer = CTranslate2Model(export_model(model, tokenizer, tmp_path / "int", **FLOAT32))
    for settings in ({}, {"source_lang": languages[1], "target_lang": languages[0], "strategy": "sequential"}):
        arguments = ([["abc de", "fgh"], ["ij"]], tokenizer)
        texts = [engine.translate_documents(*arguments, max_new_tokens=6, **settings) for engine in (model, peer)]
        assert texts[0] == texts[1]


def test_further_settings(pair):
    settings = {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "bad_words_ids": [[7], [9, 10]]}
    ours, theirs = both(pair(past_context=2), strategy="sentence", **settings)
    assert ours == theirs


@pytest.mark.parametrize("settings", [{}, {"num_beams": 3}, {"num_beams": 3, "length_penalty": 0.5}])
@pytest.mark.parametrize("strategy", ["sentence", "sequential", "sliding"])
def test_scores(pair, strategy, settings):
    """Those of our search, which has scores of sentences in a window, too."""
    settings = {"strategy": strategy, "early_stopping": True, "return_scores": True, "max_new_tokens": None} | settings
    ours, theirs = ([line for own in made[0] for line in own] for made in both(pair(past_context=2), **settings))
    same = [pair for pair in zip(ours, theirs) if pair[0] == pair[1] and getattr(pair[1], "score", None) is not None]
    assert len(same) > 2 or strategy == "sliding"
    for one, other in same:
        assert other.score == pytest.approx(one.score, abs=1e-3)


def test_fewest_tokens(pair):
    """Behind a prefix, too, and behind prefixes of several lengths, which CTranslate2 counts."""
    for strategy in ("sentence", "sequential"):
        ours, theirs = both(pair(past_context=2), strategy=strategy, min_new_tokens=6)
        assert ours == theirs != both(pair(past_context=2), strategy=strategy)[1]


def test_rows_do_not_change_each_other(pair):
    """A row that gets fewer tokens than its batch ends as it does alone."""
    _, peer = pair(past_context=2)
    document = random_text([1, 6, 2, 5])
    for beams in (1, 3):
        settings = {"strategy": "sentence", "num_beams": beams, "max_new_tokens": None}
        together = both((peer,), [document], batch_size=4, **settings)
        assert together == both((peer,), [document], batch_size=1, **settings)


def test_refusals(pair, tmp_path):
    model, peer = pair(past_context=2)
    for settings, message in (
        ({"do_sample": True}, "do_sample=True is a setting of generation that engine ctranslate2 does not have"),
        ({"num_beam_groups": 2}, "num_beam_groups=2 is a setting"),
        ({"logits_processor": []}, "logits_processor='list' is a setting"),
        ({"strategy": "stream"}, "strategy 'stream' carries a state"),
        ({"alignment": "linear"}, "alignment='linear' is for window models"),
    ):
        with pytest.raises(ValueError, match=message):
            peer.translate_documents(DOCUMENTS, word_tokenizer(), **settings)
    model.save_pretrained(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="holds no weights of CTranslate2; write such a folder with docmt export"):
        CTranslate2Model(tmp_path)
    folder = export_model(model, word_tokenizer(), tmp_path / "int", **FLOAT32)
    with pytest.raises(ValueError, match="fp8"):
        CTranslate2Model(folder, dtype="fp8")
    assert load_system(folder, engine="ctranslate2", dtype="int8").model.engine_name.endswith(", int8_float32")
    for option in ({"consistent": True}, {"glossary": [("w6", "w20")]}):
        refused("are for the search by torch: omit the engine", load_system, folder, engine="ctranslate2", **option)
    system = load_system(folder, engine="ctranslate2")
    assert system.word_fits("w6 w7", "w8") is None
    refused("CTranslate2 translates with this model alone", system.token_log_probabilities, ITEMS)


def test_changed_weights_and_another_tokenizer(pair, tmp_path):
    """Neither translates."""
    model, _ = pair()
    folder = export_model(model, word_tokenizer(), tmp_path / "int", **FLOAT32)
    other = word_tokenizer()
    other.pad_token = "<unk>"
    refused("the ids of the tokenizer have changed", CTranslate2Model(folder).translate_documents, DOCUMENTS, other)
    file = folder / "ctranslate2" / "model.bin"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 64
    file.write_bytes(content)
    refused("the weights have changed since they were saved", CTranslate2Model, folder)
