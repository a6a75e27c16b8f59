"""Recipes: strict keys and types, hints, overrides, and what is written can be read."""

import warnings
from itertools import accumulate
from pathlib import Path

import pytest
import torch
import yaml
from support.tiny_run import recipe_mapping

from hf_docmt.cli.training import as_overrides
from hf_docmt.training.arguments import bf16_speed, training_arguments
from hf_docmt.training.recipe import load_recipe, parse_recipe
from hf_docmt.training.recipe_schema import RecipeError


@pytest.fixture
def mapping(tmp_path):
    return recipe_mapping(tmp_path, tmp_path / "run")


def write(tmp_path, mapping):
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return path


def test_round_trip(tmp_path, mapping):
    recipe = load_recipe(write(tmp_path, mapping))
    recipe.save(tmp_path / "saved.yaml")
    assert load_recipe(tmp_path / "saved.yaml") == recipe
    assert recipe.training.max_steps == 12 and recipe.decoding.num_beams == 4
    assert not list(tmp_path.glob("*.partial"))


def test_options_of_other_trainers_as_overrides():
    given = ["--max-steps", "3", "--seed=4", "model.past_context=-1", "--resum"]
    assert as_overrides(given) == ["max_steps=3", "seed=4", "model.past_context=-1", "--resum"]


def test_overrides(mapping):
    overrides = ["training.max_steps=7", "model.past_context=3", "decoding.num_beams=2", "training.learning_rate=1e-4"]
    overrides += ["data.train.path=a=b.jsonl", "data.test={format: jsonl, path: t.jsonl}", "training.clip=null"]
    recipe = parse_recipe(mapping, overrides)
    assert recipe.training.max_steps == 7 and recipe.training.learning_rate == 1e-4
    assert recipe.model["past_context"] == 3 and recipe.decoding.num_beams == 2
    assert recipe.data.train["path"] == "a=b.jsonl" and recipe.data.test["path"] == "t.jsonl"
    assert "past_context" not in mapping["model"], "overrides must not change the mapping that was given"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.max_step=3", "training.max_step: unknown key; did you mean 'max_steps'?"),
        ("trainin.max_steps=3", "trainin: unknown key; did you mean 'training'?"),
        ("max_steps=3", r"max_steps: unknown key; did you mean training.max_steps=3\?"),
        ("past_context=2", r"past_context: unknown key; did you mean model.past_context=2\?"),
        ("data.train=x.jsonl", r"expected a mapping, got 'x.jsonl'; did you mean data.train.path=x.jsonl\?"),
        ("model.past_contxt=3", "model.past_contxt: unknown key; did you mean 'past_context'?"),
        ("model.vocab_size=3", "model.vocab_size: follows from tokenizer.vocab_size"),
        ("architecture=concta", "did you mean 'concat'?"),
        ("training.scheduler=inverse", "did you mean 'inverse_sqrt'?"),
        ("training.max_steps=many", r"training.max_steps: expected a whole number, got 'many' \(str\)"),
        ("training.max_steps=1.5", "training.max_steps: expected a whole number, got 1.5"),
        ("training.max_steps=0", "training.max_steps: expected at least 1, got 0"),
        ("training.max_steps=true", r"training.max_steps: expected a whole number, got True \(bool\)"),
        ("training.bf16=1", "training.bf16: expected auto or true or false, got 1"),
        ("training.learning_rate=fast", "training.learning_rate: expected a number, got 'fast'"),
        ("training.learning_rate=-1", "training.learning_rate: expected more than 0, got -1"),
        ("training.clip=.nan", "training.clip: expected a finite number, got nan"),
        (f"training.clip=1{'0' * 400}", "training.clip: expected a number, got 1000"),
        ("model.dropout=1.5", r"model: dropout must be in \[0, 1\), got 1.5"),
        ("seed=4294967296", "seed: expected 0 to 4294967295, got 4294967296"),
        ("training.adam_betas=[0.9, x]", r"training.adam_betas\[1\]: expected a number, got 'x'"),
        ("training.adam_betas=[2, 3]", r"training.adam_betas: expected two numbers in \[0, 1\), got \[2.0, 3.0\]"),
        ("model.decoding_past_context=1", "follows from decoding.past_context"),
        ("decoding={num_beams: 1, length_penalty: 0.6}", "decoding.length_penalty: it weighs beams"),
        ("data.train.path=3", "data.train.path: expected a text or a list of texts, got 3"),
        ("data.train.source_lang=en", "data.train.source_lang: the languages are the same for all parts"),
        ("data.cache=' '", "data.cache: expected a folder, got ' '; remove it"),
        ("model.d_model=big", "model.d_model: expected a whole number, got 'big'"),
        ("model.encoder_attention_heads=3", "model: encoder_attention_heads must divide d_model=16, got 3"),
        ("output_dir=null", r"output_dir: expected a text, got nothing \(null\)"),
        ("output_dir=' '", "output_dir: expected a folder, got ' '"),
        ("training=3", "training: expected a mapping of keys to values, got 3"),
        ("training.context_discount=2", r"training.context_discount: expected in \[0, 1\], got 2"),
        ("training.stop_on=loss", r"training.stop_on: got 'loss' \(str\)"),
        ("training.coword_dropout=1", r"training.coword_dropout: expected in \[0, 1\), got 1"),
        (
            "training.dynamic_context=true",
            "expected a window or chunk with context to draw from, got the view 'sentence'",
        ),
        ("training.resolutions=4", r"training.resolutions: expected a list, got 4 \(int\)"),
        ("training.resolutions=[]", "training.resolutions: expected numbers of sentences from 1, .* got 'none'; for"),
        ("training.resolutions=[1, 0]", "expected numbers of sentences from 1, and document, got 0; for example"),
        ("training.resolutions=[1, 2, 1]", r"training.resolutions: expected each once, got \[1, 2, 1\]"),
        ("training.resolutions=[1]", "the model reads single sentences, expected .*; set model.view to chunk"),
        ("training.epochs=3", "max_steps and epochs, got .* set training.max_steps=null or training.epochs=null"),
        ("training.max_steps=null", "expected one of max_steps and epochs"),
        ("training.new_learning_rate=0.1", "training.new_learning_rate: needs init_from"),
        ("init_from=somewhere", "tokenizer: must be null with init_from"),
        ("training.stream={documents: 0}", "training.stream.documents: expected at least 1, got 0"),
        ("training.stream={window: document}", "stream.window: expected a whole number or full, got 'document'"),
        ("training.stream={window: true}", "training.stream.window: expected a whole number or a text, got True"),
        ("training.stream={documents: 3}", "training.stream: architecture 'concat' carries no state"),
        ("peft={}", "peft: needs init_from"),
        ("peft={rank: 0}", "peft.rank: expected at least 1, got 0"),
        ("peft={target_modules: q_proj}", "peft.target_modules: expected a list, got 'q_proj'"),
        ("peft={target_modules: []}", r"peft.target_modules: expected names of .*, such as q_proj, got \[\]"),
        ("training.max_steps", "expected key=value"),
        ("output_dir.name=x", "'name' is inside"),
    ],
)
def test_bad_values(mapping, override, message):
    with pytest.raises(RecipeError, match=message):
        parse_recipe(mapping, [override])


def test_missing_key_and_file(tmp_path, mapping):
    del mapping["data"]["train"]
    with pytest.raises(RecipeError, match="recipe.yaml: data.train: missing, and there is no default"):
        load_recipe(write(tmp_path, mapping))
    with pytest.raises(RecipeError, match="nowhere.yaml: unknown recipe"):
        load_recipe(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"seed: 1\nseed: 2\n", "key 'seed' is given twice"),
        (b"seed: [1\n", "not a YAML file"),
        (b"- 1\n", r"recipe: expected a mapping of keys to values, got \[1\]"),
        (b"", "recipe: expected a mapping"),
        (b"seed: \xff\n", "not a YAML file in UTF-8"),
    ],
)
def test_broken_files(tmp_path, text, message):
    (tmp_path / "broken.yaml").write_bytes(text)
    with pytest.raises(RecipeError, match=message):
        load_recipe(tmp_path / "broken.yaml")


@pytest.mark.parametrize(("speed", "faster"), [(0.4, False), (2.0, True)])
def test_bf16_where_it_is_faster(mapping, monkeypatch, speed, faster):
    monkeypatch.setattr("hf_docmt.training.arguments.bf16_speed", lambda device: speed)
    assert training_arguments(parse_recipe(mapping, ["training.bf16=auto"])).bf16 is faster
    assert training_arguments(parse_recipe(mapping, ["training.bf16=true"])).bf16 is True


def test_speed_of_bf16_is_the_least_of_alternating_rounds(monkeypatch):
    seconds = [(3.0, 2.0), (1.5, 0.5), (3.0, 0.6), (1.8, 2.0)]  # in fp32, in bf16
    clock = accumulate(step for both in seconds for time in both for step in (1.0, time))
    bf16_speed.cache_clear()
    threads = torch.get_num_threads()
    with monkeypatch.context() as patch:
        patch.setattr("time.thread_time", lambda: next(clock))
        assert bf16_speed(torch.device("cpu")) == pytest.approx(3.0)
    assert torch.get_num_threads() == threads
    bf16_speed.cache_clear()
    assert bf16_speed(torch.device("cpu")) > 0


def test_training_arguments(mapping):
    recipe = parse_recipe(mapping, ["training.scheduler=linear", "training.accumulation=3", "training.clip=0.5"])
    arguments = training_arguments(recipe)
    assert arguments.lr_scheduler_type == "linear" and arguments.gradient_accumulation_steps == 3
    assert (arguments.max_grad_norm, arguments.learning_rate, arguments.max_tokens) == (0.5, 2e-3, 1000)
    assert (arguments.stream_documents, arguments.stream_window, arguments.memory_gradient) == (16, 10, 2)
    assert arguments.label_smoothing_factor == 0, "the model's own loss smooths"
    assert Path(arguments.output_dir) == Path(recipe.output_dir) / "checkpoints"
    by_epoch = training_arguments(parse_recipe(mapping, ["training.eval_steps=null"]))
    assert not arguments.activation_checkpointing
    recipe = parse_recipe(mapping, ["training.gradient_checkpointing=true"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)  # a name that transformers will give up
        assert training_arguments(recipe).activation_checkpointing
    assert by_epoch.eval_strategy == by_epoch.save_strategy == "epoch"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("tokenizer={path: x, vocab_size: 7}",), "tokenizer: with path its vocabulary is used unchanged"),
        (("model.context_sides=source", "decoding.strategy=full"), "'full' writes all sentences"),
        (
            ("init_from=any", "tokenizer=null", "peft={}", "training.freeze=true"),
            "training.freeze: with peft the weights of init_from are frozen anyway",
        ),
        (
            ("training.freeze=true", "training.new_learning_rate=0.1"),
            "only new parameters are trained, at learning_rate",
        ),
        (("model.view=chunk", "training.context_discount=0.5"), "which a model .* view 'chunk' .* does not write"),
        (("model.context_sides=source", "training.context_discount=0.5"), "context_sides 'source' does not write"),
        (("model.past_context=1", "training.resolutions=[1, 4]"), "reads windows of 2 sentences, got 4; remove it"),
        (
            ("model.past_context=1", "training.resolutions=[1]", "model.context_sides=source"),
            "a segment is translated whole, but model.context_sides is 'source'",
        ),
        (
            ("model.past_context=1", "training.resolutions=[1]", "training.context_discount=0.5"),
            "training.context_discount: with training.resolutions every sentence of a segment is learned",
        ),
        (("architecture=caching", "training.resolutions=[1]"), "'caching' reads one sentence with its context, no"),
        (("architecture=memory", "training.resolutions=[1]"), "reads documents in order with a state, expected null"),
        (
            ("architecture=caching", "training.context_discount=0.5"),
            "'caching', .* does not write, expected 1, got",
        ),
        (("architecture=routing", "training.target_noise=0.1"), "reads no earlier translations .context of source"),
        (("model.past_context=0", "training.target_noise=0.1"), "reads no earlier translations .* past_context=0"),
        (("architecture=memory", "training.dynamic_context=true"), "reads .* expected False, got True; remove it"),
    ],
)
def test_values_that_contradict(mapping, overrides, message):
    with pytest.raises(RecipeError, match=message):
        parse_recipe(mapping, overrides)
