"""Runs that train an adapter: what is in the folder, resuming, loading, export, and what is refused."""

import json
import re
import shutil
import sys
from types import SimpleNamespace

import pytest
import torch
from support.errors import refused
from support.tiny_run import facts, recipe_mapping, same_course, train_in_two_processes, train_until

from hf_docmt.hub.export import export_model
from hf_docmt.loading import model_folders
from hf_docmt.loading.adapters import adapted_model
from hf_docmt.messages import install_command
from hf_docmt.training.checkpoints import read_weights
from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.run import train
from hf_docmt.translation.job import model_checksums

peft = pytest.importorskip("peft")
torch.set_num_threads(1)

LORA = {"rank": 2, "target_modules": ["q_proj", "fc1"]}


def adapter_recipe(corpus, output, origin, *overrides, architecture="concat", model=None, **training):
    """The recipe of an adapter on the model in `origin`."""
    mapping = recipe_mapping(corpus, output, **{"max_steps": 4, "eval_steps": 2} | training)
    model = {"past_context": 2, "segment_encoding": "learned"} if model is None else model
    mapping |= {"init_from": str(origin), "tokenizer": None, "architecture": architecture, "model": model}
    return parse_recipe(mapping | {"peft": LORA}, overrides)


@pytest.fixture(scope="module")
def adapter(corpus, sentence_model, tmp_path_factory):
    """Folder of an adapter that adds context to the sentence-level model; not to be changed."""
    folder = tmp_path_factory.mktemp("adapter") / "run"
    return train(adapter_recipe(corpus, folder, sentence_model[0], "training.new_learning_rate=0.1"))


def test_folder(adapter, sentence_model):
    assert not (adapter / "model.safetensors").exists() and not (adapter / "README.md").exists()
    described = json.loads((adapter / "adapter_config.json").read_text())
    assert described["base_model_name_or_path"] == str(adapter / "base") == adapted_model(adapter)
    weights = read_weights(adapter)
    reported = facts(adapter)
    assert reported["trained_parameters"] < reported["parameters"] / 4
    whole = [name for name in weights if "lora_" not in name]
    assert sorted(name.removeprefix("base_model.model.model.") for name in whole) == [
        "encoder.embed_tokens.token_adapter.trainable_tokens_delta",
        "encoder.segment_encoding.embedding.weight",
    ]
    files = {"adapter_config.json", "adapter_model.safetensors", "base/model.safetensors"}
    checksums = model_checksums(str(adapter))
    assert files <= checksums.keys() and not any("adapted" in name for name in checksums), (
        "what translations follow from"
    )
    base, old = read_weights(adapter / "base"), read_weights(sentence_model[0])
    assert all(torch.equal(base[name], tensor) for name, tensor in old.items())


@pytest.mark.slow
def test_two_processes(corpus, sentence_model, tmp_path):
    """Both adapt the model that the first of them has written."""
    recipe = adapter_recipe(corpus, tmp_path / "run", sentence_model[0], max_steps=2)
    assert train_in_two_processes(recipe, port=29537)["processes"] == 2
    assert (tmp_path / "run" / "base" / "model.safetensors").exists()
    assert model_folders.load_model(tmp_path / "run")[0].config.past_context == 2


def test_loaded_and_exported(adapter, tmp_path):
    model, tokenizer = model_folders.load_model(adapter)
    assert model.config.past_context == 2 and model.generation_config.num_beams == 4
    base, _ = model_folders.load_model(adapter / "base")
    row = model.model.shared.weight - base.model.shared.weight
    assert set(row.abs().sum(dim=1).nonzero().flatten().tolist()) == {model.config.sep_token_id}
    export_model(model, tokenizer, tmp_path / "hub")
    exported, _ = model_folders.load_model(tmp_path / "hub")
    documents = [["Here is a lamp.", "It is old."]]
    texts = [
        copy.translate_documents(documents, tokenizer, num_beams=1, max_new_tokens=5) for copy in (model, exported)
    ]
    assert texts[0] == texts[1] and len(texts[0][0]) == 2


def test_resumed(corpus, sentence_model, tmp_path):
    straight = train(adapter_recipe(corpus, tmp_path / "straight", sentence_model[0]))
    recipe = adapter_recipe(corpus, tmp_path / "broken", sentence_model[0])
    train_until(recipe, batches=3)
    resumed = train(recipe, resume=True)
    assert facts(resumed)["resumed_from_step"] == 2 and same_course(straight, resumed)


def test_init_from_is_the_base(corpus, adapter, tmp_path):
    """A model of the same settings is not written again, one of others is, and so is what came from an adapter."""
    for number, (origin, model, written) in enumerate(
        [(adapter / "base", {}, False), (adapter / "base", {"use_bod": True}, True), (adapter, {}, True)]
    ):
        folder = train(adapter_recipe(corpus, tmp_path / str(number), origin, model=model, max_steps=1, eval_steps=1))
        assert (folder / "base").exists() == written
        assert adapted_model(folder) == str(folder / "base" if written else origin)
        model_folders.load_model(folder)


def test_memory(corpus, sentence_model, tmp_path):
    """Of a mechanism all is trained, by the trainer that reads documents in order, too."""
    options = {"architecture": "memory", "model": {}, "stream": {"documents": 4}}
    folder = train(adapter_recipe(corpus, tmp_path / "run", sentence_model[0], **options))
    model, _ = model_folders.load_model(folder)
    base, _ = model_folders.load_model(folder / "base")
    before, now = base.state_dict(), model.state_dict()
    unit = [name for name in now if "memory" in name]
    assert unit and not any(torch.equal(before[name], now[name]) for name in unit if name.endswith("weight"))
    assert torch.equal(before["model.shared.weight"], now["model.shared.weight"])


def test_refused_before_training(corpus, sentence_model, tmp_path, monkeypatch):
    def start(*overrides, **options):
        train(adapter_recipe(corpus, tmp_path / "run", sentence_model[0], *overrides, **options))

    with pytest.raises(ValueError, match="peft.target_modules: no linear layer 'q_pro'; did you mean 'q_proj'.*fc1"):
        start("peft.target_modules=[q_pro]")
    with pytest.raises(ValueError, match="training.new_learning_rate: no module is fully trained next to the adapter"):
        start("training.new_learning_rate=0.1", model={})
    with monkeypatch.context() as patch:
        patch.setattr("hf_docmt.training.run.make_trainer", lambda *_, **__: SimpleNamespace(is_fsdp_enabled=True))
        refused("peft: adapters are not trained with sharded parameters; launch without", start)
    monkeypatch.setitem(sys.modules, "peft", None)
    message = f"adapters need peft, which is not installed: {install_command('peft')}"
    refused(re.escape(message), start)
    assert not (tmp_path / "run").exists()


def test_damaged_folders(adapter, sentence_model, tmp_path, monkeypatch):
    folder = tmp_path / "copy"
    shutil.copytree(adapter, folder, ignore=shutil.ignore_patterns("checkpoints", "base"))
    described = json.loads((folder / "adapter_config.json").read_text())

    def load(**fields):
        (folder / "adapter_config.json").write_text(json.dumps(described | fields))
        return model_folders.load_model(folder)

    load()  # the base of the first folder
    checksums = model_checksums(str(folder))
    of_base = {f"adapted model: {name}": digest for name, digest in model_checksums(str(adapter / "base")).items()}
    assert "adapted model: model.safetensors" in of_base and of_base.items() <= checksums.items()
    refused(f"cannot load a model from {folder}.*nowhere", load, base_model_name_or_path=str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="base_model_name_or_path is None, expected the folder or name of a model"):
        load(base_model_name_or_path=None)
    refused(r"copy: 1\d weights of the adapter do not fit .*base.*lora_A", load, r=3)
    with pytest.raises(ValueError, match=f"from {sentence_model[0]}: 1 weights are missing .*segment_enc"):
        load(base_model_name_or_path=str(sentence_model[0]))
    (folder / "adapter_config.json").write_text("{")
    refused("adapter_config.json does not describe an adapter", model_folders.load_model, folder)
    shutil.copy(adapter / "adapter_config.json", folder)
    (folder / "adapter_model.safetensors").write_bytes(b"half")
    refused(f"cannot load a model from {folder}", model_folders.load_model, folder)
    shutil.copy(adapter / "adapter_model.safetensors", folder)
    (folder / "config.json").unlink()  # as peft alone saves it
    assert model_folders.load_model(folder)[0].config.past_context == 2
    monkeypatch.setitem(sys.modules, "peft", None)
    refused("adapters need peft", model_folders.load_model, folder)
