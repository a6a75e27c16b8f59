"""A saved folder holds all that is needed: it loads, translates and is saved again where the package is not there."""

import json

import pytest
import torch
from support.battery import logits
from support.tiny_models import build, context_fields

from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.loading import registry

MODELS = {name: {"context": fields} for name, fields in context_fields().items()} | {
    "concat": {"sentence": {}, "ssru": {"past_context": 1, "decoder_autoregression": "ssru"}},
    "caching": {
        "grouping": {"past_context": 2, "shortening": "grouping", "future_context": 1, "use_bod": True},
    },
    "memory": {"both": {"memory_size": 4}},
    "multiencoder": {"gate": {"integration": "parallel", "context_gate": True}},
    "doct": {"selection": {"selection": "routing", "past_context": 1, "future_context": 1}},
    "routing": {"online": {"past_context": 2, "future_context": 0, "normalize_before": True}},
    "han": {"joint": {"context_sides": "both"}},
    "lst": {"chunk": {"view": "chunk", "use_bod": True}},
    "window": {
        "linear": {"past_context": 1, "window": 2, "position": "absolute", "alignment": "linear", "length_ratio": 0.9},
    },
}
OTHER_MODELS = {  # of the same files
    "concat": {
        "shift": {"past_context": 2, "segment_encoding": "shift", "segment_shift": 4, "persistent": True},
        "pse": {"past_context": 1, "future_context": 1, "segment_encoding": "learned", "pse_dim": 4, "use_bod": True},
        "source": {"past_context": 1, "context_sides": "source", "share_encoder_decoder_embeddings": False},
        "chunk": {"view": "chunk", "segment_encoding": "sinusoidal", "persistent": True, "normalize_before": True},
    },
    "caching": {"tokens": {}, "target": {"context_sides": "both", "shortening": "linear"}},
    "memory": {
        "source": {"memory_size": 2, "memory_sides": "source", "memory_layers": [0, -1], "use_bod": True},
    },
    "multiencoder": {"concatenate": {}},
    "doct": {"joined": {}},
    "routing": {"offline": {}},
    "lst": {"window": {"past_context": 2}},
    "window": {"chunk": {"view": "chunk", "window": 3}},
}
DOCUMENTS = [["The cat sleeps.", "", "It is 7 years old!"], ["Émile, 猫 🐈", "So did Anna. She too."]]
SETTINGS = {"max_new_tokens": 12, "num_beams": 2, "no_repeat_ngram_size": 2}
BATCH = {
    "input_ids": torch.tensor([[70, 80, 4, 90, 3], [71, 3, 0, 0, 0]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]),
    "decoder_input_ids": torch.tensor([[2, 60, 61, 4, 62], [2, 64, 65, 66, 67]]),
}
PROCESS = """
hide({"hf_docmt"})
import json, pickle
from pathlib import Path

try:
    import hf_docmt
except ModuleNotFoundError:
    pass
else:
    raise SystemExit("hf_docmt can be imported")

import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, pipeline

torch.set_num_threads(1)
classes = set()


def notices_changes(folder, tokenizer, expected):
    # another tokenizer, and one bit of an exponent
    loaded = AutoModelForSeq2SeqLM.from_pretrained(folder, trust_remote_code=True)
    loaded.tokenizer_fingerprint = "another"
    file = Path(folder, "model.safetensors")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 64]))
    for call in (
        lambda: loaded.translate_documents(expected["documents"], tokenizer),
        lambda: AutoModelForSeq2SeqLM.from_pretrained(folder, trust_remote_code=True),
    ):
        try:
            call()
        except ValueError as error:
            assert "changed since they were saved" in str(error)
        else:
            raise SystemExit("a changed folder translates")
    file.write_bytes(whole)


for task in json.loads(sys.argv[1]):
    model = AutoModelForSeq2SeqLM.from_pretrained(task["folder"], trust_remote_code=True, **task["options"])
    tokenizer = AutoTokenizer.from_pretrained(task["folder"], trust_remote_code=True)
    expected = torch.load(task["expected"])
    assert type(model).__module__.startswith("transformers_modules."), type(model)
    assert type(model) not in classes  # each folder is run by its own code
    classes.add(type(model))
    assert type(pickle.loads(pickle.dumps(model))) is type(model)
    with torch.no_grad():
        torch.testing.assert_close(model(**expected["batch"]).logits, expected["logits"], atol=1e-5, rtol=1e-5)
    for strategy in task["strategies"]:
        translations = expected["translations"][strategy]
        found = model.translate_documents(expected["documents"], tokenizer, strategy, **expected["settings"])
        assert found == translations, (task["folder"], strategy, found, translations)
    if task["pipeline"]:
        pipe = pipeline("document-translation", model=task["folder"], trust_remote_code=True, **expected["settings"])
        assert type(pipe).__module__.startswith("transformers_modules."), type(pipe)
        plain, signs = pipe(expected["documents"])
        assert plain == expected["translations"][model.default_strategy()][0]
        assert signs[0].count("🐈") == 1, signs  # which a pipeline carries
        if hasattr(torch.ao, "quantization"):  # which torch wants to drop
            small = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear})
            layers = {name for name, layer in small.named_modules() if isinstance(layer, torch.nn.Linear)}
            assert layers <= {"lm_head"}, layers
            small.translate_documents(expected["documents"], tokenizer, **expected["settings"])
        model = pipe.model
    model.save_pretrained(task["again"])
    tokenizer.save_pretrained(task["again"])
    if task["pipeline"]:  # of what this code has saved
        notices_changes(task["again"], tokenizer, expected)
    assert not Path(task["again"], "README.md").exists()  # texts of cards do not travel
    if "-int8" not in task["folder"]:  # the class is whole: a vocabulary grows, and fairseq's initial values are drawn
        size = model.config.vocab_size
        assert model.resize_token_embeddings(size + 8).num_embeddings == size + 8
        with torch.no_grad():
            grown = model(**expected["batch"]).logits
        torch.testing.assert_close(grown[..., :size], expected["logits"], atol=1e-5, rtol=1e-5)
        assert grown.shape[-1] == size + 8
        model.config.init = "fairseq"
        drawn = type(model)(model.config).get_input_embeddings().weight
        assert 0.9 < drawn.std() * model.config.d_model**0.5 < 1.1
assert not any(name.split(".")[0] == "hf_docmt" for name in sys.modules)
print("checked", len(json.loads(sys.argv[1])))
"""


@pytest.fixture(
    scope="module", params=[MODELS, pytest.param(OTHER_MODELS, marks=pytest.mark.slow)], ids=["models", "others"]
)
def saved(request, tmp_path_factory):
    """A folder for every model, and beside it what the model answers."""
    root = tmp_path_factory.mktemp("saved")
    tokenizer = train_tokenizer(["The cat sleeps.", "It is old.", "So did Anna."], vocab_size=300)
    tasks = []
    for architecture, models in request.param.items():
        for name, fields in models.items():
            model = build(architecture, vocab_size=len(tokenizer), **fields)
            folder = root / f"{architecture}-{name}"
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            strategies = [s for s in ("sentence", "sliding", "sequential", "full", "stream") if is_possible(model, s)]
            expected = {
                "batch": BATCH,
                "logits": logits(model, BATCH),
                "documents": DOCUMENTS,
                "settings": SETTINGS,
                "translations": {s: model.translate_documents(DOCUMENTS, tokenizer, s, **SETTINGS) for s in strategies},
            }
            torch.save(expected, root / f"{folder.name}.pt")
            again = root / f"{folder.name}-again"
            tasks.append({"folder": str(folder), "expected": str(root / f"{folder.name}.pt"), "again": str(again)})
            tasks[-1] |= {"options": {}, "pipeline": name == next(iter(models)), "strategies": strategies}
    return root, tasks


def is_possible(model, strategy: str) -> bool:
    try:
        model.check_strategy(strategy)
    except ValueError:
        return False
    return True


def test_loads_without_the_package_and_again(saved, run_elsewhere):
    """With every strategy and the pipeline; then what was saved there, by its own code, with one strategy."""
    root, tasks = saved
    (root / "elsewhere").mkdir()
    caches = {"HF_HOME": str(root / "elsewhere"), "HF_MODULES_CACHE": str(root / "elsewhere"), "HF_HUB_OFFLINE": "1"}
    printed = run_elsewhere(PROCESS, [*tasks, *map(saved_again, tasks)], root / "elsewhere", caches)
    assert f"checked {2 * len(tasks)}\n" in printed


def saved_again(task: dict) -> dict:
    """The task of reading what this one saved."""
    simple = {"options": {}, "pipeline": False, "strategies": task["strategies"][:1]}
    return task | simple | {"folder": task["again"], "again": f"{task['again']}-again"}


def test_contents_of_the_folder(saved):
    """Code by the architecture's own files only, weights that cannot run code, no path of this machine."""
    root, tasks = saved
    for task in tasks:
        folder = root / task["folder"]
        names = {path.name for path in folder.iterdir()}
        assert {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"} <= names
        name = folder.name.split("-")[0]
        architecture = registry.get(name)
        assert {f"modeling_{name}.py", f"configuration_{name}.py", "modeling_docmt.py", "generation_docmt.py"} <= names
        assert not {f"modeling_{other}.py" for other in MODELS.keys() - {name}} & names
        config = json.loads((folder / "config.json").read_text())
        model_class, config_class = architecture.model_class.__name__, architecture.config_class.__name__
        assert config["auto_map"]["AutoModelForSeq2SeqLM"] == f"modeling_{name}.{model_class}"
        assert config["auto_map"]["AutoConfig"] == f"configuration_{name}.{config_class}"
        assert config["model_type"] == f"docmt-{name}" and "_name_or_path" not in config
        assert str(root) not in (folder / "config.json").read_text()
