"""Folders of CTranslate2's own converter: translations and scores are those of transformers."""

import json

import pytest
from support.errors import refused
from support.language_models import sentence_model
from support.pretrained_models import saved
from support.systems import ITEMS

from hf_docmt.systems import kind_of, load_system

ctranslate2 = pytest.importorskip("ctranslate2")
CODES = {"marian": {}, "nllb": {"src_lang": "eng_Latn", "tgt_lang": "fra_Latn"}}
DOCUMENTS = [["der hund bellt laut .", "", "die katze hat ein haus"], ["sie lacht"]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A function that gives a folder of transformers and one of CTranslate2 with the same weights."""
    from ctranslate2.converters import TransformersConverter

    made = {}

    def pair(family):
        if family not in made:
            folder = tmp_path_factory.mktemp(family)
            model, tokenizer, *_ = sentence_model(family, folder, seed=3)
            if family == "marian":  # CTranslate2 starts from zeros, and leaves the token of padding out
                model.model.shared.weight.data[tokenizer.pad_token_id] = 0.0
                model.final_logits_bias[0, tokenizer.pad_token_id] = -1e4
            saved(folder / "model", model, tokenizer)
            names = [path.name for path in (folder / "model").iterdir() if path.suffix in (".json", ".spm", ".model")]
            names = [name for name in names if name not in ("config.json", "generation_config.json")]
            TransformersConverter(str(folder / "model"), copy_files=names).convert(str(folder / "converted"))
            made[family] = folder / "model", folder / "converted"
        return made[family]

    return pair


@pytest.mark.parametrize("family", CODES)
@pytest.mark.parametrize("context", [{}, {"past_context": 1, "separator": ".", "context_sides": "both"}])
def test_as_by_transformers(folders, family, context):
    ours, theirs = (load_system(folder, max_new_tokens=9, **CODES[family], **context) for folder in folders(family))
    assert theirs.kind == "ctranslate2" and kind_of(folders(family)[1]) == "ctranslate2"
    assert theirs.translate_with_repairs(DOCUMENTS) == ours.translate_with_repairs(DOCUMENTS)
    assert any(map(any, theirs.translate_with_repairs(DOCUMENTS)[0]))
    for rows, others in zip(theirs.token_log_probabilities(ITEMS), ours.token_log_probabilities(ITEMS), strict=True):
        for row, other in zip(rows, others, strict=True):
            assert row == pytest.approx(other, abs=3e-4)
    assert theirs.token_texts(ITEMS) == ours.token_texts(ITEMS)
    engine = {"engine": f"ctranslate2 {ctranslate2.__version__}, float32"}
    assert theirs.search == ours.search | engine and theirs.describe()["architecture"] == engine["engine"]


@pytest.mark.parametrize("search", [{}, {"num_beams": 3}, {"num_beams": 3, "length_penalty": 0.5}])
def test_scores(folders, search):
    """The mean log-probability of the tokens, its end included, as forced decoding gives it."""
    system, calls = load_system(folders("nllb")[1], max_new_tokens=5, **CODES["nllb"], **search), []
    translate, system.scores = system.model.translate, True
    system.model.translate = lambda *a, **options: calls.append((*a, translate(*a, **options))) or calls[-1][-1]
    ((line,),) = system.translate([DOCUMENTS[1]])
    (((source,), _, (([ids], _),)),) = calls
    names, end = system.model.token_names, [system.tokenizer.eos_token_id]
    tokens = names(ids[:-1] if ids[-1:] == end else ids)
    (forced,) = system.model.translator.score_batch([names(source)], [tokens])
    values = forced.log_probs[1 : len(ids)]  # after the code of the language
    assert line.score == pytest.approx(sum(values) / len(values), abs=1e-3)
    system.scores = False
    assert system.translate(DOCUMENTS)[0][0].score is None


def test_beams_and_ends(folders):
    """A beam is the better of what was finished; an answer that ends is no repair."""
    folder = folders("nllb")[1]
    greedy = load_system(folder, max_new_tokens=30, **CODES["nllb"])
    wide = load_system(folder, max_new_tokens=30, num_beams=4, **CODES["nllb"])
    translations, repairs = wide.translate_with_repairs(DOCUMENTS)
    assert wide.decoding["beams"] == 4 and greedy.decoding["beams"] == 1
    assert translations != greedy.translate_with_repairs(DOCUMENTS)[0]
    assert wide.fingerprint() != greedy.fingerprint()
    end = greedy.tokenizer.eos_token
    short = load_system(folder, max_new_tokens=3, **CODES["nllb"])

    class Ends:
        def translate_batch(self, sources, prefixes, **options):
            assert options["end_token"] == [end] and prefixes == [["fra_Latn"]] * len(sources)
            return [type("Result", (), {"hypotheses": [["fra_Latn", "s", end]], "scores": []})] * len(sources)

    short.model.translator = Ends()
    assert short.translate_with_repairs([["der", "hund"]]) == ([["s", "s"]], [[]])


def test_what_is_refused(folders, tmp_path):
    folder = folders("marian")[1]
    refused("top_k is not among the settings that CTranslate2 takes here", load_system, folder, top_k=3)
    refused("attn_implementation is for models of transformers", load_system, folder, attn_implementation="eager")
    refused("has language codes, but src_lang is not given", load_system, folders("nllb")[1])
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "model.bin").write_bytes(b"no model")
    refused("cannot load a model of CTranslate2 from", load_system, tmp_path)
    own = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({key: own[key] for key in own if key != "decoder_start_token"}))
    refused("a model of type None with no class named", load_system, tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(own))
    for path in tmp_path.glob("*"):
        if path.name not in ("config.json", "model.bin", "shared_vocabulary.json"):
            path.unlink()
    refused("no tokenizer is there|tokenizer cannot be loaded", load_system, tmp_path)
