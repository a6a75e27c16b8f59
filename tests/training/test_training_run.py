"""A whole run: from a recipe to a model folder, interrupted, resumed, on two processes, from a trained model."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml
from support.tiny_run import SIZES, recipe_mapping, write_corpus_files
from transformers import BertConfig, BertModel, MarianConfig, MarianMTModel, Seq2SeqTrainer

from hf_docmt import registry
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.training.checkpoints import average_weights, checkpoint_steps, read_weights
from hf_docmt.training.initialization import model_config
from hf_docmt.training.recipe import load_recipe, parse_recipe
from hf_docmt.training.run import train

torch.set_num_threads(1)
WINDOW = {"past_context": 2, "segment_encoding": "shift", "persistent": True}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus_files(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def sentence_model(corpus, tmp_path_factory):
    """Folder of a trained sentence-level model, and its recipe."""
    recipe = parse_recipe(recipe_mapping(corpus, tmp_path_factory.mktemp("runs") / "sentence", average=2))
    return train(recipe), recipe


def second_stage(corpus, output, origin, *overrides):
    mapping = recipe_mapping(corpus, output, {"past_context": 2, "segment_encoding": "learned"}, max_steps=3)
    mapping |= {
        "init_from": str(origin),
        "tokenizer": None,
        "model": {"past_context": 2, "segment_encoding": "learned"},
    }
    return parse_recipe(mapping, overrides)


def facts(folder):
    return json.loads((Path(folder) / "training.json").read_text())


def test_model_folder(sentence_model):
    folder, recipe = sentence_model
    model, tokenizer = registry.load_model(folder)
    assert model.config.source_lang == "en" and model.config.target_lang == "de" and model.config.use_cache
    assert model.config.label_smoothing == 0.1 and model.generation_config.num_beams == 4
    assert load_recipe(folder / "recipe.yaml") == recipe
    assert tokenizer.sep_token_id == model.config.sep_token_id == 4

    told = facts(folder)
    assert told["steps"] == 12 and told["processes"] == 1 and told["parameters"] == model.num_parameters()
    assert told["best_validation_loss"] == min(loss for _, loss in told["validation_losses"])
    assert [step for step, _ in told["losses"]] == list(range(1, 13))
    averaged = average_weights(folder / "checkpoints" / f"checkpoint-{step}" for step in told["averaged_steps"])
    assert told["averaged_steps"][0] == told["best_step"]
    assert all(torch.equal(tensor, averaged[name]) for name, tensor in read_weights(folder).items())

    documents = [["Good morning.", "The key is here.", "It is new."], ["Hello."]]
    translations = model.translate_documents(documents, tokenizer, num_beams=1, max_new_tokens=5)
    assert [len(document) for document in translations] == [3, 1]


def test_segment_shift_is_found_and_kept(corpus, tmp_path):
    folder = train(parse_recipe(recipe_mapping(corpus, tmp_path / "run", WINDOW, max_steps=1)))
    model, tokenizer = registry.load_model(folder)
    rows = [json.loads(line) for line in (corpus / "train.jsonl").read_text().splitlines()]
    lengths = [
        len(tokenizer(pair["en"], add_special_tokens=False)["input_ids"]) for row in rows for pair in row["translation"]
    ]
    assert model.config.segment_shift == -(-(sum(lengths) + len(lengths)) // len(lengths))  # with separators, up


def test_length_ratio_is_found_and_kept(corpus, tmp_path):
    model = {"view": "chunk", "window": 2, "alignment": "linear"}
    recipe = recipe_mapping(corpus, tmp_path / "run", model, max_steps=1) | {"architecture": "window"}
    model, tokenizer = registry.load_model(train(parse_recipe(recipe)))
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
    with pytest.raises(ValueError, match="exists and is not an empty folder; choose another one"):
        train(recipe)
    with pytest.raises(ValueError, match="is finished; choose another folder"):
        train(recipe, resume=True)
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


def test_trackers(corpus, tmp_path, monkeypatch):
    mapping = recipe_mapping(corpus, tmp_path / "run", max_steps=1, report_to="tensorboard")
    with monkeypatch.context() as patch:
        patch.setattr("hf_docmt.training.arguments.find_spec", lambda name: None)
        with pytest.raises(ValueError, match="training.report_to: tensorboard is not installed; install it with"):
            train(parse_recipe(mapping))
    pytest.importorskip("tensorboard")
    assert list((train(parse_recipe(mapping)) / "checkpoints").rglob("events.out.tfevents.*"))


def test_resume_after_an_interruption(corpus, tmp_path, monkeypatch):
    straight = train(parse_recipe(recipe_mapping(corpus, tmp_path / "straight")))
    recipe = parse_recipe(recipe_mapping(corpus, tmp_path / "broken"))
    with monkeypatch.context() as patch:
        patch.setattr(Seq2SeqTrainer, "training_step", fail_after(7, Seq2SeqTrainer.training_step))
        with pytest.raises(InterruptedError):
            train(recipe)
    with pytest.raises(ValueError, match="training.max_tokens is 1000 there, 900 here; resume with"):
        train(parse_recipe(recipe_mapping(corpus, tmp_path / "broken", max_tokens=900)), resume=True)
    mark = tmp_path / "broken" / "checkpoints" / "checkpoint-6" / ".complete"
    assert mark.read_text() == "1"
    mark.write_text("2")
    with pytest.raises(ValueError, match="written by a run of 2 processes, this one has 1; resume with 2"):
        train(recipe, resume=True)
    mark.write_text("1")
    resumed = train(recipe, resume=True)
    assert facts(resumed)["resumed_from_step"] == 6 and facts(straight)["resumed_from_step"] is None
    assert same_course(straight, resumed)

    (resumed / "training.json").unlink()  # as if killed after training, while the model was being saved
    (resumed / "model.safetensors").write_bytes(b"half a file")
    train(recipe, resume=True)
    assert same_course(straight, resumed)


def fail_after(calls, step):
    def training_step(*args, **kwargs):
        nonlocal calls
        calls -= 1
        if calls < 0:
            raise InterruptedError
        return step(*args, **kwargs)

    return training_step


def same_course(one, other):
    names = ("steps", "losses", "validation_losses", "best_step", "averaged_steps")
    same_facts = all(facts(one)[name] == facts(other)[name] for name in names)
    theirs = read_weights(other)
    return same_facts and all(torch.equal(tensor, theirs[name]) for name, tensor in read_weights(one).items())


def test_two_stages(corpus, tmp_path, sentence_model):
    origin = sentence_model[0]
    recipe = second_stage(
        corpus, tmp_path / "run", origin, "training.new_learning_rate=0.1", "training.learning_rate=1e-9"
    )
    folder = train(recipe)
    model, _ = registry.load_model(folder)
    old = read_weights(origin)
    now = {name: tensor for name, tensor in read_weights(folder).items()}
    assert model.config.past_context == 2 and model.config.d_model == SIZES["d_model"]
    assert (folder / "tokenizer.json").read_text() == (origin / "tokenizer.json").read_text()
    assert {name for name in now if name not in old} == {"model.encoder.segment_encoding.embedding.weight"}
    for name, tensor in old.items():  # the old parameters hardly move with their own learning rate
        torch.testing.assert_close(now[name], tensor, atol=1e-6, rtol=0)
    with pytest.raises(ValueError, match="training.new_learning_rate: the checkpoint of init_from has all parameters"):
        train(second_stage(corpus, tmp_path / "none", folder, "training.new_learning_rate=0.1"))
    with pytest.raises(ValueError, match="training.freeze: the checkpoint of init_from has all parameters"):
        train(second_stage(corpus, tmp_path / "none", folder, "training.freeze=true"))


def of_architecture(corpus, output, origin, architecture, **training):
    """The recipe of a second stage that adds an architecture's mechanism and trains it alone, if not told otherwise."""
    mapping = recipe_mapping(corpus, output, **{"freeze": True, "learning_rate": 0.1} | training)
    mapping |= {"architecture": architecture, "init_from": str(origin), "tokenizer": None, "model": {}}
    return parse_recipe(mapping)


@pytest.mark.parametrize("architecture", ["doct", "routing", "memory"])
def test_frozen_first_stage(corpus, tmp_path, sentence_model, architecture):
    """After averaging, and with weight decay, what is old is the same bit for bit, and what is new is not."""
    origin = sentence_model[0]
    options = {"max_steps": 4, "eval_steps": 1, "average": 3, "weight_decay": 0.1}
    options |= {"stream": {"documents": 4}} if architecture == "memory" else {}
    folder = train(of_architecture(corpus, tmp_path / "run", origin, architecture, **options))
    assert len(facts(folder)["averaged_steps"]) > 1 or facts(folder)["best_step"] == 4
    model, _ = registry.load_model(folder)
    old, now = read_weights(origin), read_weights(folder)
    assert all(torch.equal(now.pop(name), tensor) for name, tensor in old.items()) and now
    assert all(parameter.requires_grad for parameter in model.parameters()), "free again when it is loaded"
    told = facts(folder)
    assert told["trained_parameters"] == sum(tensor.numel() for tensor in now.values()) < told["parameters"]
    torch.manual_seed(3)  # of the recipe
    start = registry.get(architecture).model_class(model.config).state_dict()
    assert not any(torch.equal(start[name], tensor) for name, tensor in now.items())


def test_frozen_first_stage_resumed(corpus, tmp_path, sentence_model, monkeypatch):
    origin = sentence_model[0]
    straight = train(of_architecture(corpus, tmp_path / "straight", origin, "doct", max_steps=4, eval_steps=2))
    recipe = of_architecture(corpus, tmp_path / "broken", origin, "doct", max_steps=4, eval_steps=2)
    with monkeypatch.context() as patch:
        patch.setattr(Seq2SeqTrainer, "training_step", fail_after(3, Seq2SeqTrainer.training_step))
        with pytest.raises(InterruptedError):
            train(recipe)
    assert same_course(straight, train(recipe, resume=True))
    free = of_architecture(corpus, tmp_path / "free", straight, "doct", max_steps=2, eval_steps=2, freeze=False)
    before, after = read_weights(straight), read_weights(train(free))
    assert not any(torch.equal(after[name], tensor) for name, tensor in before.items() if name.endswith("fc1.weight"))


def test_context_of_a_first_stage(corpus, tmp_path, sentence_model):
    """A sentence-level model's own lack of context is not that of a model that reads context sentences apart."""
    model, tokenizer = registry.load_model(sentence_model[0])
    assert (model.config.past_context, model.config.context_sides) == (0, "both")
    for architecture, context in {"doct": (2, 0), "routing": (1, 1), "multiencoder": (1, 0)}.items():
        recipe = of_architecture(corpus, tmp_path, sentence_model[0], architecture)
        config = model_config(recipe, tokenizer, model.config)
        assert (config.past_context, config.future_context) == context and config.d_model == model.config.d_model


def test_settings_that_follow_from_another(corpus, tmp_path, sentence_model):
    """With another shortening than the first stage had, what is left open takes the value of the new one."""
    _, tokenizer = registry.load_model(sentence_model[0])
    origin = registry.get("caching").config_class(**SIZES, shortening="grouping", shortening_size=4)
    recipe = of_architecture(corpus, tmp_path, sentence_model[0], "caching")
    assert model_config(recipe, tokenizer, origin).shortening_size == 4
    recipe.model = {"shortening": "none"}
    plain = model_config(recipe, tokenizer, origin)
    assert (plain.shortening_size, plain.include_current, plain.encoder_gradient) == (None, False, False)
    recipe.model = {"shortening": "selecting"}
    other = model_config(recipe, tokenizer, origin)
    assert (other.shortening_size, other.include_current, other.shortening_gradient) == (10, True, 1)


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
    """Told before training, not after it."""
    mapping = recipe_mapping(corpus, tmp_path / "run", model=model) | {"architecture": architecture}
    with pytest.raises(ValueError, match=f"decoding.strategy: strategy '{strategy}' .*{message}"):
        train(parse_recipe(mapping | {"decoding": {"strategy": strategy}}))
    assert not (tmp_path / "run").exists()


def test_start_from_marian(corpus, tmp_path):
    texts = (corpus / "train.jsonl").read_text().splitlines()
    tokenizer = train_tokenizer(texts, vocab_size=300)
    config = MarianConfig(
        **SIZES, vocab_size=len(tokenizer), pad_token_id=0, eos_token_id=3, decoder_start_token_id=0, num_beams=2
    )
    torch.manual_seed(0)
    MarianMTModel(config).save_pretrained(tmp_path / "marian")
    tokenizer.save_pretrained(tmp_path / "marian")
    folder = train(second_stage(corpus, tmp_path / "run", tmp_path / "marian", "training.new_learning_rate=0.1"))
    model, _ = registry.load_model(folder)
    assert model.config.decoder_start_token_id == 0 and model.config.segment_encoding == "learned"
    assert facts(folder)["steps"] == 3


def test_unusable_checkpoints(corpus, tmp_path, sentence_model):
    def start(folder, *overrides):
        train(second_stage(corpus, tmp_path / "run", folder, *overrides))

    with pytest.raises(ValueError, match="init_from: .*nowhere has no config.json; give the folder of a trained model"):
        start(tmp_path / "nowhere")
    bert = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, vocab_size=30)
    BertModel(bert).save_pretrained(tmp_path / "bert")
    with pytest.raises(ValueError, match=r"init_from: .*'bert'.*marian.*docmt-concat"):
        start(tmp_path / "bert")
    with pytest.raises(ValueError, match="weights of other sizes .*d_model 16 there, 8 here.*: leave sizes out"):
        start(sentence_model[0], "model.d_model=8")

    broken = shutil.copytree(sentence_model[0], tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match="init_from: .*broken"):
        start(broken)
    (broken / "config.json").write_text("{")
    with pytest.raises(ValueError, match="init_from: .*config.json does not describe a model"):
        start(broken)

    learned = train(second_stage(corpus, tmp_path / "learned", sentence_model[0]))
    with pytest.raises(
        ValueError, match="weights that this model has not .*segment_encoding 'learned' there, 'sinusoidal' here"
    ):
        start(learned, "model.segment_encoding=sinusoidal")
    assert not (tmp_path / "run").exists(), "nothing is left of a run that could not start"


def launch(folder, mapping, *launcher, resume=False):
    """Start a run in a process of its own."""
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(mapping))
    code = folder / "launch.py"
    code.write_text(
        "import sys, torch\ntorch.set_num_threads(1)\n"
        "from hf_docmt.training.recipe import load_recipe\nfrom hf_docmt.training.run import train\n"
        "train(load_recipe(sys.argv[1]), resume=sys.argv[2] == 'True')\n"
    )
    command = [*(launcher or [sys.executable]), str(code), str(path), str(resume)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return output


@pytest.mark.slow
def test_kill_and_resume(corpus, tmp_path):
    options = {"max_steps": 120, "eval_steps": 10, "average": 2}
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert finish(launch(tmp_path / "a", recipe_mapping(corpus, tmp_path / "straight", WINDOW, **options))) == ""
    mapping = recipe_mapping(corpus, tmp_path / "killed", WINDOW, **options)
    for steps in (20, 60):  # killed twice, wherever it is after these checkpoints
        process = launch(tmp_path / "b", mapping, resume=steps > 20)
        while steps not in checkpoint_steps(tmp_path / "killed" / "checkpoints"):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        time.sleep(0.15)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert checkpoint_steps(tmp_path / "killed" / "checkpoints")[-1] < 120
    finish(launch(tmp_path / "b", mapping, resume=True))
    assert same_course(tmp_path / "straight", tmp_path / "killed")


@pytest.mark.slow
def test_two_processes(corpus, tmp_path):
    """Two processes with one batch each are one process with the same two batches accumulated."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "29531"]
    mapping = recipe_mapping(corpus, tmp_path / "two", {**WINDOW, "dropout": 0.0})
    assert finish(launch(tmp_path, mapping, *launcher)) == ""
    two = facts(tmp_path / "two")

    recipe = parse_recipe(mapping, [f"output_dir={tmp_path}/one", "training.accumulation=2"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hf_docmt.training.trainer.TokenBudgetBatchSampler", BothShares)
        one = facts(train(recipe))
    assert two["processes"] == 2 and one["processes"] == 1
    for name in ("steps", "epochs", "tokens_per_update"):
        assert one[name] == two[name]
    for name in ("losses", "validation_losses"):
        assert [step for step, _ in one[name]] == [step for step, _ in two[name]]
        assert [loss for _, loss in one[name]] == pytest.approx([loss for _, loss in two[name]], abs=1e-5)


class BothShares:
    """The batches of two processes in turn."""

    def __init__(self, lengths, max_tokens, shuffle=True, world_size=1, rank=0, **options):
        from hf_docmt.data.samplers import TokenBudgetBatchSampler

        size = 2 if shuffle else 1
        self.shares = [
            TokenBudgetBatchSampler(lengths, max_tokens, shuffle=shuffle, rank=rank, world_size=size, **options)
            for rank in range(size)
        ]

    def __len__(self):
        return sum(map(len, self.shares))

    def __iter__(self):
        for batches in zip(*self.shares, strict=True):
            yield from batches

    def set_epoch(self, epoch):
        for share in self.shares:
            share.set_epoch(epoch)
