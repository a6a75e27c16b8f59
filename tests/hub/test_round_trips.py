"""From a trainer or an adapter to the double of the Hub, and back at one revision where this package is not there."""

import pytest
import torch
from huggingface_hub import ModelCard
from support import hub_double
from support.language_models import FAMILIES, TEXT, sentence_model
from support.tiny_models import build, context_fields, documents_of, random_text, word_tokenizer
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

from hf_docmt.hub.export import convert_sentence_model, export_model
from hf_docmt.hub.publishing import planned_upload, push_model
from hf_docmt.loading import model_folders, registry
from hf_docmt.training.arguments import DocMTTrainingArguments
from hf_docmt.training.trainer import DocMTTrainer

ALL = tuple(registry.ARCHITECTURES)
DOCUMENT = ["w7 w8 w9", "w10 w11"]
PROCESS = """
import importlib.metadata as metadata, json, re, sys

def needed(name, found):
    try:
        requires = metadata.requires(name) or ()
    except metadata.PackageNotFoundError:
        return found
    found.add(name.lower().replace("_", "-"))
    for line in requires:
        other = re.match(r"[\\w.-]+", line)[0]
        if "extra ==" not in line and other.lower().replace("_", "-") not in found:
            needed(other, found)
    return found

kept = needed("torch", needed("transformers", {tokenizers}))
names = metadata.packages_distributions()
blocked = {top for top, of in names.items() if not {one.lower().replace("_", "-") for one in of} & kept}
blocked |= {"hf_docmt"}

hide(blocked)
assert {"datasets", "peft", "sentencepiece", "accelerate"} & kept == {tokenizers}, kept
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
for task in json.loads(sys.argv[1]):
    name, revision = task["name"], task["revision"]
    options = {"revision": revision, "code_revision": revision, "trust_remote_code": True}
    tokenizer = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=True)
    model = AutoModelForSeq2SeqLM.from_pretrained(name, **options)
    assert model.translate_documents([task["document"]], tokenizer, max_new_tokens=9) == task["expected"], name
    logits = model(torch.tensor([[7, 8, 3]]), decoder_input_ids=torch.tensor([[2, 9]])).logits
    torch.testing.assert_close(logits, torch.tensor(task["logits"]), atol=1e-5, rtol=1e-5)
    model.save_pretrained(task["again"])
    again = AutoModelForSeq2SeqLM.from_pretrained(task["again"], trust_remote_code=True)
    assert type(again) is not type(model) and again.config.auto_map.keys() == model.config.auto_map.keys(), name
    assert not any("--" in class_name for class_name in again.config.auto_map.values()), again.config.auto_map
    for block in task["card"]:
        exec(block)
assert not any(name.split(".")[0] in blocked for name in sys.modules)
print("loaded", len(json.loads(sys.argv[1])))
"""


def code_blocks(card):
    return [part.partition("```")[0] for part in card.split("```python\n")[1:]]


def files_of(hub, name):
    return hub.repositories[name].files()


@pytest.mark.parametrize("architectures", [("caching", "concat"), pytest.param(ALL, marks=pytest.mark.slow)], ids=len)
def test_pushed_models_work_elsewhere(hub, tmp_path, run_elsewhere, architectures):
    """At the revision of its push, after which another model is there; and the code of its card."""
    tasks = []
    for architecture in architectures:
        fields = context_fields(1)[architecture]
        model, name = build(architecture, **fields), f"someone/{architecture}"
        model.generation_config.max_new_tokens = 9
        folder = export_model(model, word_tokenizer(), tmp_path / architecture, repo_id=name, license="mit")
        revision = push_model(folder, name).rpartition("/")[2]
        expected = model.translate_documents([DOCUMENT], word_tokenizer(), max_new_tokens=9)
        logits = model(torch.tensor([[7, 8, 3]]), decoder_input_ids=torch.tensor([[2, 9]])).logits.tolist()
        card = code_blocks(hub.repositories[name].files()["README.md"].decode())
        task = {"name": name, "revision": revision, "document": DOCUMENT, "expected": expected, "card": card}
        tasks.append(task | {"logits": logits, "again": f"again-{architecture}"})
        build(architecture, seed=1, **fields).push_to_hub(name)
        assert hub.repositories[name].oid("main") != revision
    code = PROCESS.replace("{tokenizers}", "set()")
    printed = run_elsewhere(code, tasks, tmp_path, hub_double.environment(hub, tmp_path / "elsewhere"))
    assert f"loaded {len(tasks)}\n" in printed and hub_double.TOKEN not in printed


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_converted_models_work_elsewhere(hub, tmp_path, run_elsewhere, family):
    """A sentence-level model as every architecture: the same translations where it was saved, pushed, loaded."""
    tasks, source = [], sentence_model(family, tmp_path)
    source.model.save_pretrained(tmp_path / family)
    source.tokenizer.save_pretrained(tmp_path / family)
    languages = {name: code for name in ("source_lang", "target_lang") if (code := getattr(source, name))}
    for architecture in ALL:
        name, folder = f"someone/{family}-{architecture}", tmp_path / architecture
        convert_sentence_model(str(tmp_path / family), folder, architecture=architecture, **languages)
        model, tokenizer = model_folders.load_model(folder)
        revision = push_model(folder, name, license="mit").rpartition("/")[2]
        expected = model.translate_documents([TEXT], tokenizer, max_new_tokens=9)
        logits = model(torch.tensor([[7, 8, 3]]), decoder_input_ids=torch.tensor([[2, 9]])).logits.tolist()
        task = {"name": name, "revision": revision, "document": TEXT, "expected": expected, "card": []}
        tasks.append(task | {"logits": logits, "again": f"again-{architecture}"})
    code = PROCESS.replace("{tokenizers}", "{'sentencepiece'}")
    printed = run_elsewhere(code, tasks, tmp_path, hub_double.environment(hub, tmp_path / "elsewhere"))
    assert f"loaded {len(ALL)}\n" in printed


def examples_and_collator(model, tokenizer):
    architecture = registry.for_config(model.config)
    documents = documents_of(*[(random_text([3, 4], seed), random_text([4, 3], seed + 9)) for seed in range(4)])
    return architecture.examples(documents, tokenizer, model.config), architecture.collator(model.config, tokenizer)


def trained(trainer_class, arguments_class, hub, tmp_path, **options):
    model, tokenizer = build("concat", past_context=1), word_tokenizer()
    examples, collator = examples_and_collator(model, tokenizer)
    arguments = arguments_class(
        str(tmp_path / "run"), push_to_hub=True, hub_model_id="someone/trained", hub_strategy="end", max_steps=1,
        report_to="none", save_strategy="no", remove_unused_columns=False, use_cpu=True, **options,
    )  # fmt: skip
    trainer = trainer_class(
        model, arguments, train_dataset=examples, data_collator=collator, processing_class=tokenizer
    )
    trainer.train()
    trainer.push_to_hub(dataset_tags="someone/talks", license="mit")
    return model


def test_trainer_of_this_package(hub, tmp_path):
    """The real card, with the data, the licence and the procedure that the trainer knows."""
    trained(DocMTTrainer, DocMTTrainingArguments, hub, tmp_path, max_tokens=50)
    card = files_of(hub, "someone/trained")["README.md"].decode()
    data = ModelCard(card).data
    assert data.datasets == ["someone/talks"] and data.license == "mit" and "docmt-concat" in data.tags
    assert 'name = "someone/trained"' in card and "## Limits" in card and "- learning_rate:" in card
    assert "More information needed" not in card


def test_unmodified_trainer(hub, tmp_path):
    """Its draft goes up; `push_to_hub` of the model replaces it by the real card."""
    model = trained(Seq2SeqTrainer, Seq2SeqTrainingArguments, hub, tmp_path, per_device_train_batch_size=2)
    files = files_of(hub, "someone/trained")
    assert {"model.safetensors", "modeling_concat.py", "tokenizer.json"} <= files.keys()
    model.push_to_hub("someone/trained")
    card = files_of(hub, "someone/trained")["README.md"].decode()
    assert "More information needed" not in card and 'name = "someone/trained"' in card


def test_adapter(hub, tmp_path):
    peft = pytest.importorskip("peft")
    base = export_model(build("concat", past_context=1), word_tokenizer(), tmp_path / "base", license="mit")
    push_model(base, "someone/base")
    model = build("concat", past_context=1)
    wrapped = peft.get_peft_model(model, peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=False))
    wrapped.save_pretrained(tmp_path / "adapter")
    word_tokenizer().save_pretrained(tmp_path / "adapter")
    with pytest.raises(ValueError, match="README.md is an empty template"):
        planned_upload(tmp_path / "adapter", "someone/adapter")
    (tmp_path / "adapter" / "README.md").write_text(
        "---\nlibrary_name: peft\nlicense: mit\nbase_model: someone/base\n---\n# Mine\n"
    )
    with pytest.raises(ValueError, match="the adapter is of .*, expected a model on the Hub: push it first"):
        planned_upload(tmp_path / "adapter", "someone/adapter")
    wrapped.peft_config["default"].base_model_name_or_path = "someone/base"
    wrapped.peft_config["default"].save_pretrained(tmp_path / "adapter")
    push_model(tmp_path / "adapter", "someone/adapter")
    loaded, tokenizer = model_folders.load_model("someone/adapter")
    torch.testing.assert_close(
        loaded.lm_head.weight, model.get_output_embeddings().weight, msg="the base is the one that was pushed"
    )
    expected = wrapped.merge_and_unload().eval().translate_documents([DOCUMENT], tokenizer, max_new_tokens=9)
    assert loaded.translate_documents([DOCUMENT], tokenizer, max_new_tokens=9) == expected
