"""What `docmt info` tells of models and recipes."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from support import recipe_files
from support.errors import refused
from support.tiny_run import recipe_mapping, write_corpus_files
from transformers import BertConfig

from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.modeling.configuration_concat import ConcatConfig
from hf_docmt.modeling.modeling_concat import ConcatForConditionalGeneration
from hf_docmt.training.info import describe, render

SIZES = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 32,
}
MECHANISM = {"past_context": 2, "future_context": 1, "segment_encoding": "learned"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Folder of a tiny model, and the model."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = train_tokenizer(["The lamp is old.", "Die Lampe ist alt."], "unigram", 280)
    config = ConcatConfig(vocab_size=len(tokenizer), source_lang="en", target_lang="de", **SIZES, **MECHANISM)
    model = ConcatForConditionalGeneration(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder, model


@pytest.fixture
def recipe(tmp_path):
    def write(changes=None, **tokenizer):
        mapping = recipe_mapping(tmp_path / "nowhere", tmp_path / "run", SIZES) | (changes or {})
        if tokenizer:
            mapping["tokenizer"] = tokenizer
        path = tmp_path / "recipe.yaml"
        path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
        return path

    return write


def test_model_folder(model):
    folder, loaded = model
    facts = describe(folder)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["kind"] == "model" and facts["name"] == str(folder) and facts["architecture"] == "concat"
    assert facts["context_reach"] == "2 past and 1 future sentences, source and target"
    assert (facts["source_lang"], facts["target_lang"], facts["strategy"]) == ("en", "de", "sliding")
    assert facts["sizes"] == SIZES | {"vocab_size": loaded.config.vocab_size}
    assert MECHANISM.items() <= facts["mechanism"].items() and "d_model" not in facts["mechanism"]
    assert facts["tokenizer"] == {"kind": "unigram", "size": loaded.config.vocab_size, "trained": True}


def test_parameters_by_part(model):
    folder, loaded = model
    counts = describe(folder)["parameters"]
    stacks = loaded.model.encoder.layers, loaded.model.decoder.layers
    encoder, decoder = (sum(parameter.numel() for parameter in stack.parameters()) for stack in stacks)
    assert counts == {
        "total": loaded.num_parameters(),
        "embeddings": 16 * loaded.config.vocab_size,  # one table for source, target and output
        "encoder": encoder,
        "decoder": decoder,
        "mechanism": 4 * 16,  # a learned embedding for each of four sentences
    }
    assert counts["total"] == sum(count for part, count in counts.items() if part != "total")


def test_untied_embeddings_and_norms(tmp_path, model):
    config = ConcatConfig(
        vocab_size=280, tie_word_embeddings=False, share_encoder_decoder_embeddings=False, normalize_before=True,
        position_type="learned", max_position_embeddings=50, **SIZES,
    )  # fmt: skip
    untied = ConcatForConditionalGeneration(config)
    config.save_pretrained(tmp_path)
    for file in model[0].glob("tokenizer*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert "not recorded to not recorded" in render(facts := describe(tmp_path))
    counts = facts["parameters"]
    assert counts["total"] == untied.num_parameters() == sum(counts.values()) - counts["total"]
    assert counts["embeddings"] == 16 * (3 * 280 + 2 * 50) and counts["mechanism"] == 0


def test_recipe_without_its_data(recipe):
    facts = describe(recipe())
    assert facts["kind"] == "recipe" and facts["context_reach"] == "none: sentence level"
    assert facts["sizes"] == SIZES | {"vocab_size": 300} and facts["strategy"] == "sentence"
    assert facts["tokenizer"] == {"kind": "bpe", "size": 300, "trained": False}
    assert facts["parameters"]["embeddings"] == 16 * 300
    assert "300 tokens at most, to be trained" in render(facts)


def test_strategy_is_the_one_of_the_recipe(recipe):
    """As training stores it; without one that of the architecture."""
    chunk = {"model": SIZES | {"view": "chunk", "chunk_tokens": 100}}
    assert describe(recipe(chunk))["strategy"] == "full"
    for strategy in ("sequential", "chunk_sequential"):
        assert describe(recipe(chunk | {"decoding": {"strategy": strategy}}))["strategy"] == strategy
    assert describe(*recipe_files.SYSTEMS["herold2023_news_window"])["strategy"] == "sequential"


def test_recipe_with_a_tokenizer_or_a_model(recipe, model):
    folder, loaded = model
    facts = describe(recipe(path=str(folder)))
    assert facts["tokenizer"] == {"kind": "unigram", "size": loaded.config.vocab_size, "trained": True}
    facts = describe(recipe({"tokenizer": None, "model": {}, "init_from": str(folder)}))
    assert facts["sizes"]["decoder_ffn_dim"] == 32 and facts["mechanism"]["past_context"] == 2
    assert facts["parameters"]["total"] == loaded.num_parameters()


FROZEN = json.loads(Path(__file__).parents[1].joinpath("frozen/info.json").read_text("utf-8"))


@pytest.mark.parametrize("name", [name for name in recipe_files.SYSTEMS if f"{name}.yaml" not in FROZEN])
def test_every_recipe_of_the_package(name):
    """Those of which version 0.1.0 knew are compared in tests/test_frozen.py.

    Those of a second stage need the model of the first one, which is not there.
    """
    try:
        facts = describe(*recipe_files.SYSTEMS[name])
    except ValueError as error:
        assert re.match(r"init_from: runs/\S+ has no config.json", str(error)), error
        return
    assert facts["parameters"]["total"] > 100_000 and facts["target_lang"] in render(facts)


def test_packaged_recipe_by_name(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    facts = describe("lupo2023_ende_s4to4")
    assert (facts["name"], facts["kind"]) == ("lupo2023_ende_s4to4", "recipe")
    assert facts == describe(recipe_files.FOLDER / "lupo2023_ende_s4to4.yaml") | {"name": "lupo2023_ende_s4to4"}
    assert facts["context_reach"] == "3 past and 0 future sentences, source and target"
    refused("a recipe .*; did you mean the packaged recipe 'demo_concat4'?", describe, "demo_concat")
    shutil.copytree(model[0], "demo_concat4")
    assert describe("demo_concat4")["kind"] == "model", "a folder of that name is what was meant"


def test_text(model):
    text = render(describe(model[0]))
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in text.splitlines()}
    assert lines["model"] == str(model[0]) and lines["languages"] == "en to de"
    assert lines["context"] == "2 past and 1 future sentences, source and target"
    total, parts = lines["parameters"].split(" ", 1)
    assert int(total.replace(",", "")) == model[1].num_parameters() and "mechanism 64" in parts


def test_targets_that_are_not_models(tmp_path, model):
    refused("holds no model: config.json is missing", describe, tmp_path)
    for name in (str(tmp_path / "missing"), "missing"):
        refused("missing cannot be read as a model of this package.*Give a model folder", describe, name)
    BertConfig().save_pretrained(tmp_path)
    refused("unknown architecture 'bert': expected one of caching, concat, doct", describe, tmp_path)
    (tmp_path / "config.json").write_text("{broken", encoding="utf-8")
    refused("cannot be read as a model", describe, tmp_path)
    (tmp_path / "config.json").write_bytes((model[0] / "config.json").read_bytes())
    with pytest.raises(ValueError, match="cannot be read as a model"):  # its tokenizer is missing
        describe(tmp_path)


def test_recipes_that_cannot_be_used(tmp_path, recipe):
    refused("missing.yaml: unknown recipe", describe, tmp_path / "missing.yaml")
    with pytest.raises(ValueError, match="unknown key; did you mean 'architecture'"):
        describe(recipe({"architectur": "concat"}))
    with pytest.raises(ValueError, match="tokenizer.path: no folder nowhere"):
        describe(recipe(path="nowhere"))
    with pytest.raises(ValueError, match="init_from: nowhere has no config.json"):
        describe(recipe({"tokenizer": None, "model": {}, "init_from": "nowhere"}))
    file = write_corpus_files(tmp_path) / "train.jsonl"
    refused("train.jsonl", describe, file)


def test_overrides_of_a_recipe(run):
    code, out, _ = run("info", "lupo2023_ende_s4to4", "model.past_context=1", "--json")
    assert code == 0 and json.loads(out)["context_reach"] == "1 past and 0 future sentences, source and target"
    code, _, err = run("info", "lupo2023_ende_s4to4", "model.past=1")
    assert code == 1 and "model.past: unknown key" in err


def test_overrides_of_a_model(run, model):
    code, _, err = run("info", model, "model.past_context=1")
    assert code == 1 and "model.past_context=1: overrides change recipes only, and this is a model" in err
