"""A whole run: from a recipe to a model folder, interrupted, resumed, on two processes."""

import json
import sys
from collections import Counter

import pytest
import torch
from support.errors import refused
from support.tiny_run import facts, recipe_mapping, same_course, train_until

from hf_docmt.loading import model_folders
from hf_docmt.training.checkpoints import average_weights, read_weights
from hf_docmt.training.recipe import load_recipe, parse_recipe
from hf_docmt.training.run import train

torch.set_num_threads(1)
WINDOW = {"past_context": 2, "segment_encoding": "shift", "persistent": True}


def test_model_folder(sentence_model):
    folder, recipe = sentence_model
    model, tokenizer = model_folders.load_model(folder)
    assert model.config.source_lang == "en" and model.config.target_lang == "de" and model.config.use_cache
    assert model.config.label_smoothing == 0.1 and model.generation_config.num_beams == 4
    assert load_recipe(folder / "recipe.yaml") == recipe
    assert tokenizer.sep_token_id == model.config.sep_token_id == 4

    reported = facts(folder)
    assert reported["steps"] == 12 and reported["processes"] == 1 and reported["parameters"] == model.num_parameters()
    assert reported["best_validation_loss"] == min(loss for _, loss in reported["validation_losses"])
    assert [step for step, _ in reported["losses"]] == list(range(1, 13))
    averaged = average_weights(folder / "checkpoints" / f"checkpoint-{step}" for step in reported["averaged_steps"])
    assert reported["averaged_steps"][0] == reported["best_step"]
    assert all(torch.equal(tensor, averaged[name]) for name, tensor in read_weights(folder).items())

    documents = [["Good morning.", "The key is here.", "It is new."], ["Hello."]]
    translations = model.translate_documents(documents, tokenizer, num_beams=1, max_new_tokens=5)
    assert [len(document) for document in translations] == [3, 1]


def test_segment_shift_is_found_and_kept(corpus, tmp_path):
    folder = train(parse_recipe(recipe_mapping(corpus, tmp_path / "run", WINDOW, max_steps=1)))
    model, tokenizer = model_folders.load_model(folder)
    rows = [json.loads(line) for line in (corpus / "train.jsonl").read_text().splitlines()]
    lengths = [
        len(tokenizer(pair["en"], add_special_tokens=False)["input_ids"]) for row in rows for pair in row["translation"]
    ]
    assert model.config.segment_shift == -(-(sum(lengths) + len(lengths)) // len(lengths))  # with separators, up


def test_length_ratio_is_found_and_kept(corpus, tmp_path):
    model = {"view": "chunk", "window": 2, "alignment": "linear"}
    recipe = recipe_mapping(corpus, tmp_path / "run", model, max_steps=1) | {"architecture": "window"}
    model, tokenizer = model_folders.load_model(train(parse_recipe(recipe)))
    ratios = []
    for line in (corpus / "train.jsonl").read_text().splitlines():  # every document fits into one chunk
        pairs = json.loads(line)["translation"]
        source, target = (
            sum(len(tokenizer(pair[side], add_special_tokens=False)["input_ids"]) + 1 for pair in pairs)
            for side in ("en", "de")
        )
        ratios.append(source / target)
    assert model.config.length_ratio == pytest.approx(sum(ratios) / len(ratios), abs=1e-4)
    assert model.translate_documents([["Hello.", "Good morning."]], tokenizer, "full", max_new_tokens=4)


def test_output_folder_in_use(corpus, tmp_path, sentence_model):
    folder, recipe = sentence_model
    before = sorted(path.name for path in folder.iterdir())
    refused("exists and is not an empty folder; choose another one", train, recipe)
    refused("is finished; choose another folder", train, recipe, resume=True)
    assert sorted(path.name for path in folder.iterdir()) == before
    with pytest.raises(ValueError, match=r"has no run to resume \(recipe.yaml is missing\)"):
        train(parse_recipe(recipe_mapping(corpus, tmp_path / "new")), resume=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="is not an empty folder"):
        train(parse_recipe(recipe_mapping(corpus, tmp_path / "file")))


def test_missing_data(corpus, tmp_path):
    mapping = recipe_mapping(corpus, tmp_path / "run")
    with pytest.raises(ValueError, match="nowhere.jsonl"):
        train(parse_recipe(mapping, [f"data.train.path={tmp_path}/nowhere.jsonl"]))
    with pytest.raises(ValueError, match="did you mean 'jsonl'"):
        train(parse_recipe(mapping, ["data.train.format=jsnl"]))


def test_runs_share_prepared_data(corpus, tmp_path, monkeypatch):
    """The second run, of another seed and mechanism, reads, trains and tokenizes nothing; a cache of its own does."""
    names = (("iterate_documents", 2), ("tokenize_table", 2))
    counts = {f"hf_docmt.data.tokenized_documents.{name}": number for name, number in names}
    counts["hf_docmt.training.initialization.train_tokenizer"] = 1
    calls = Counter()

    def counted(name, function):
        return lambda *args, **kwargs: (calls.update([name]), function(*args, **kwargs))[1]

    for name in counts:
        module, function = name.rsplit(".", 1)
        monkeypatch.setattr(name, counted(name, getattr(sys.modules[module], function)))
    first = train(parse_recipe(recipe_mapping(corpus, tmp_path / "one", max_steps=1)))
    assert calls == counts and (tmp_path / ".docmt_cache").is_dir()
    second = train(parse_recipe(recipe_mapping(corpus, tmp_path / "two", WINDOW, max_steps=1) | {"seed": 9}))
    assert calls == counts
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    mapping = recipe_mapping(corpus, tmp_path / "three", max_steps=1)
    train(parse_recipe(mapping, [f"data.cache={tmp_path}/own", "tokenizer.sample=5"]))
    assert calls == {name: 2 * number for name, number in counts.items()} and (tmp_path / "own").is_dir()
    assert (tmp_path / "three" / "tokenizer.json").read_bytes() != (first / "tokenizer.json").read_bytes()


def test_cache_that_cannot_be_written(corpus, tmp_path):
    (tmp_path / "file").write_text("x")
    mapping = recipe_mapping(corpus, tmp_path / "run")
    with pytest.raises(ValueError, match=r"data.cache: .*file/cache cannot be a folder: .*file is a file"):
        train(parse_recipe(mapping, [f"data.cache={tmp_path}/file/cache"]))


def test_trackers(corpus, tmp_path, monkeypatch):
    mapping = recipe_mapping(corpus, tmp_path / "run", max_steps=1, report_to="tensorboard")
    with monkeypatch.context() as patch:
        patch.setattr("hf_docmt.training.arguments.find_spec", lambda name: None)
        with pytest.raises(ValueError, match="training.report_to: tensorboard is not installed: pip install"):
            train(parse_recipe(mapping))
    pytest.importorskip("tensorboard")
    assert list((train(parse_recipe(mapping)) / "checkpoints").rglob("events.out.tfevents.*"))


def test_resume_after_an_interruption(corpus, tmp_path):
    straight = train(parse_recipe(recipe_mapping(corpus, tmp_path / "straight")))
    recipe = parse_recipe(recipe_mapping(corpus, tmp_path / "broken"))
    train_until(recipe, batches=7)
    with pytest.raises(ValueError, match="training.max_tokens is 1000 there, 900 here; resume with"):
        train(parse_recipe(recipe_mapping(corpus, tmp_path / "broken", max_tokens=900)), resume=True)
    resumed = train(recipe, resume=True)
    assert facts(resumed)["resumed_from_step"] == 6 and facts(straight)["resumed_from_step"] is None
    assert same_course(straight, resumed)

    (resumed / "training.json").unlink()  # as if killed after training, while the model was being saved
    (resumed / "model.safetensors").write_bytes(b"half a file")
    train(recipe, resume=True)
    assert same_course(straight, resumed)


@pytest.mark.parametrize(
    ("architecture", "model", "strategy", "message"),
    [
        ("caching", {}, "full", "this one writes the current sentence alone: use 'sliding' or 'sentence'"),
        ("routing", {}, "stream", "carries a state from sentence to sentence, which this model has not: use 'sliding'"),
        ("caching", {"context_sides": "both"}, "sliding", "use 'sequential' or 'sentence'"),
        ("concat", {}, "stream", "which this model has not: use 'sentence'"),
    ],
)
def test_strategy_of_another_model(corpus, tmp_path, architecture, model, strategy, message):
    """Said before training, not after it."""
    mapping = recipe_mapping(corpus, tmp_path / "run", model=model) | {"architecture": architecture}
    with pytest.raises(ValueError, match=f"decoding.strategy: strategy '{strategy}' .*{message}"):
        train(parse_recipe(mapping | {"decoding": {"strategy": strategy}}))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("architecture", "model"),
    [
        ("concat", {}),
        ("concat", {"view": "chunk", "chunk_tokens": 60}),
        ("caching", {"past_context": 1}),
        ("memory", {}),
    ],
)
def test_examples_that_are_longer_than_learned_positions(corpus, tmp_path, architecture, model):
    """Said before training, and not when their turn comes."""
    model = {"position_type": "learned", "max_position_embeddings": 8, **model}
    mapping = recipe_mapping(corpus, tmp_path / "run", model=model) | {"architecture": architecture}
    message = "data.train: document '.*' has an example of .* source tokens, .* learned positions for 8; use shorter"
    with pytest.raises(ValueError, match=message):
        train(parse_recipe(mapping))
    assert not (tmp_path / "run").exists()


def test_a_discount_of_context_that_the_first_model_does_not_write(corpus, tmp_path):
    first = train(parse_recipe(recipe_mapping(corpus, tmp_path / "one", {"view": "chunk"}, max_steps=1, eval_steps=1)))
    mapping = recipe_mapping(corpus, tmp_path / "two", {}) | {"init_from": str(first), "tokenizer": None}
    with pytest.raises(ValueError, match="training.context_discount: .* view 'chunk' .* does not write, expected 1"):
        train(parse_recipe(mapping, ["training.context_discount=0.5"]))
    assert not (tmp_path / "two").exists()


def test_past_context_of_decoding(corpus, tmp_path):
    """It is what the model searches with; said before training where it does not fit."""
    chunks = {"view": "chunk", "chunk_tokens": 200}
    mapping = recipe_mapping(corpus, tmp_path / "run", model=chunks, max_steps=1, eval_steps=1)
    decoding = {"decoding": {"strategy": "sequential", "past_context": 2}}
    train(parse_recipe(mapping | decoding))
    config = model_folders.load_model(tmp_path / "run")[0].config
    assert (config.strategy, config.decoding_past_context) == ("sequential", 2)
    with pytest.raises(ValueError, match="decoding.past_context: .* 'sequential' read, got 2 with strategy 'full'"):
        train(parse_recipe(mapping | {"output_dir": str(tmp_path / "other"), "decoding": {"past_context": 2}}))
    assert not (tmp_path / "other").exists()
