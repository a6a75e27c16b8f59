"""Writes what `tests/test_frozen.py` compares with. Made by version 0.1.0; never run again for existing releases.

    python tests/frozen/make.py models commands info training surface

It is kept to show where the data come from, with the modules of 0.1.0 that it imports, and does not follow them.
"""

import copy
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast
from typer.testing import CliRunner

from hf_docmt import registry
from hf_docmt.cli import app

torch.set_num_threads(1)
HERE = Path(__file__).resolve().parent
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>", "<sep>", "<bod>")
WORDS = (
    "The It She He Anna lamp key cup house is was old new red here . ? and but because Where "
    "Die Der Das Sie Er Es Lampe Schlüssel Tasse Haus ist war alt neu rot hier und aber weil Wo "
    "La Le Elle Il lampe maison est vieille rouge où"
).split()
SIZES = {
    "vocab_size": len(SPECIAL) + len(WORDS),
    "d_model": 8,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 8,
    "decoder_ffn_dim": 8,
    "max_position_embeddings": 40,
    "dropout": 0.0,
    "init_std": 0.5,
    "source_lang": "en",
    "target_lang": "de",
}
GREEDY = {"num_beams": 1, "do_sample": False, "max_new_tokens": 6, "no_repeat_ngram_size": 2}
BEAMS = GREEDY | {"num_beams": 3}
DOCUMENTS = [
    ["The lamp is old .", "", "It was red and new but here .", "Where is Anna ?"],
    ["She is here .", "He was old because it is new and red here and old but new and Anna is here ."],
    ["The key ."],
]
TRANSLATION = {"num_beams": 2, "max_new_tokens": 6, "no_repeat_ngram_size": 2, "max_sentence_tokens": 8}
TARGET_SIDE = ("labels", "decoder_input_ids", "decoder_attention_mask", "label_weights")
STRATEGIES = ("sentence", "sliding", "sequential", "full", "stream")


def write(path: Path, value, indent=None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    separators = (",", ":") if indent is None else None
    path.write_text(json.dumps(value, ensure_ascii=False, indent=indent, separators=separators) + "\n", "utf-8")


# Models


def word_tokenizer() -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.WordLevel({token: i for i, token in enumerate((*SPECIAL, *WORDS))}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 3)])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        sep_token="<sep>",
        extra_special_tokens=["<bod>"],
        split_special_tokens=True,
        clean_up_tokenization_spaces=False,
    )


@torch.no_grad()
def build(name: str, fields: dict, seed: int):
    architecture = registry.get(name.split("-")[0])
    torch.manual_seed(seed)
    model = architecture.model_class(architecture.config_class(**SIZES | fields))
    for key, parameter in model.named_parameters():
        if "norm" in key or key.endswith("bias"):
            parameter.add_(torch.randn_like(parameter) * 0.2)
        if key.endswith(("shared.weight", "embed_tokens.weight")):
            parameter.mul_(1.5 / parameter.norm(dim=1, keepdim=True).clamp(min=0.1))
    model.final_logits_bias.normal_(std=0.2)
    model.final_logits_bias[0, [0, 1, 2, 5]] -= 5
    model.final_logits_bias[0, 3] += 3
    model.final_logits_bias[0, 4] += 1.5
    return model.eval()


def batches(name: str, config, tokenizer) -> list[dict]:
    """Two batches of examples of documents; the second one of a memory model goes on with the memory of the first."""
    architecture = registry.get(name.split("-")[0])
    languages = [config.source_lang, config.target_lang]
    from hf_docmt.data.documents import make_documents

    german = [
        ["Die Lampe ist alt .", "Er ist hier .", "Sie war rot und neu .", "Wo ist Anna ?", "Das Haus ."],
        ["Sie ist hier .", "Es ist neu weil es alt war .", "Der Schlüssel ."],
    ]
    english = [
        ["The lamp is old .", "He is here .", "It was red and new .", "Where is Anna ?", "The house ."],
        ["She is here .", "It is new because it was old .", "The key ."],
    ]
    rows = [
        {"doc_id": f"d{i}", "translation": [dict(zip(languages, pair)) for pair in zip(*sides)]}
        for i, sides in enumerate(zip(english, german))
    ]
    examples = architecture.examples(make_documents(rows, *languages), tokenizer, config)
    examples = [examples[i] for i in range(len(examples))]
    collate = architecture.collator(config, tokenizer)
    if architecture.carries_state:
        firsts = [i for i, example in enumerate(examples) if example["index"] == 0]
        parts = [[examples[i] for i in firsts], [examples[i + 1] for i in firsts]]
    else:
        half = (len(examples) + 1) // 2
        parts = [examples[:half][-2:], examples[half:][:2]]
    return [{key: value for key, value in collate(part).items() if key != "labels"} for part in parts]


@torch.no_grad()
def answers(model, tokenizer, inputs: list[dict]) -> dict:
    """What the model says; `logits` is of tensors, all else of JSON."""
    found = {"logits": [], "greedy": [], "beams": []}
    state = {}
    for batch in inputs:
        outputs = model(**batch, **state)
        found["logits"].append(outputs.logits)
        given = {key: value for key, value in batch.items() if key not in TARGET_SIDE} | state
        found["greedy"].append(model.generate(**given, **GREEDY).tolist())
        found["beams"].append(model.generate(**given, **BEAMS).tolist())
        memory = {key: outputs.get(key) for key in ("encoder_memory", "decoder_memory")}
        state = {key: value for key, value in memory.items() if value is not None}
    found["translations"], found["refused"] = {}, []
    for strategy in STRATEGIES:
        try:
            texts, repairs = model.translate_documents(
                DOCUMENTS, tokenizer, strategy, return_report=True, **TRANSLATION
            )
        except ValueError:
            found["refused"].append(strategy)
        else:
            repairs = [[[one["sentence"], one["kind"], one["detail"]] for one in document] for document in repairs]
            found["translations"][strategy] = [texts, repairs]
    found["default_strategy"] = model.default_strategy()
    if hasattr(model, "translate_stream"):
        found["stream"] = list(model.translate_stream(DOCUMENTS[0], tokenizer, num_beams=1, max_new_tokens=6))
    return found


@torch.no_grad()
def stable(model, tokenizer, inputs, found: dict) -> bool:
    """No near-tie: what is written stays the same when the weights change a little, and it is not all the same."""
    for seed in range(2):
        torch.manual_seed(seed)
        other = copy.deepcopy(model)
        for parameter in other.parameters():
            parameter.mul_(1 + 1e-4 * torch.randn_like(parameter))
        again = answers(other, tokenizer, inputs)
        if any(again[key] != found[key] for key in found if key != "logits"):
            return False
    texts = {text for strategy in found["translations"].values() for document in strategy[0] for text in document}
    cut = [one for _, repairs in found["translations"].values() for one in sum(repairs, []) if one[1] == "length"]
    return len(texts - {""}) > 4 and len(cut) < 5 * len(found["translations"])


def make_models() -> None:
    tokenizer = word_tokenizer()
    tokenizer.save_pretrained(HERE / "tokenizer")
    write(HERE / "inputs.json", {"documents": DOCUMENTS, "translation": TRANSLATION, "greedy": GREEDY, "beams": BEAMS})
    logits = {}
    shutil.rmtree(HERE / "models", ignore_errors=True)
    shutil.rmtree(HERE / "code_0_1_0", ignore_errors=True)
    (HERE / "code_0_1_0").mkdir()
    for name, fields in json.loads((HERE / "settings.json").read_text()).items():
        for seed in range(20):
            model = build(name, fields, seed)
            inputs = batches(name, model.config, tokenizer)
            found = answers(model, tokenizer, inputs)
            if stable(model, tokenizer, inputs, found):
                break
        else:
            raise SystemExit(f"{name}: near-ties with every seed")
        folder = HERE / "models" / name
        model.save_pretrained(folder)
        for path in folder.glob("*.py"):
            path.replace(HERE / "code_0_1_0" / path.name)
        for path in folder.glob("*.json"):
            write(path, json.loads(path.read_text()))
        for number, tensor in enumerate(found.pop("logits")):
            logits[f"{name}.{number}"] = tensor[:, :, ::4].contiguous()
        inputs = [{key: value.tolist() for key, value in batch.items()} for batch in inputs]
        tied = sorted(model.state_dict().keys() - load_file(folder / "model.safetensors").keys())
        expected = {"inputs": inputs, **found, "not_saved": tied}
        write(folder / "expected.json", expected)
        print(name, seed, {key: len(value[0]) for key, value in found["translations"].items()}, found["refused"])
    save_file(logits, HERE / "logits.safetensors")


# Commands


def invoke(*arguments) -> str:
    """Standard output of the command; a ValueError is what `docmt` prints in one line."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, ValueError | OSError):
        return f"error: {result.exception}"
    if result.exit_code:
        raise SystemExit(f"{arguments}: {result.output} {result.exception!r}")
    return result.stdout


def assembled(folder: Path) -> Path:
    """A copy of the frozen folder in which every model has its tokenizer."""
    shutil.copytree(HERE, folder, dirs_exist_ok=True)
    for model in (folder / "models").iterdir():
        shutil.copytree(HERE / "tokenizer", model, dirs_exist_ok=True)
    return folder


def make_commands() -> None:
    shutil.rmtree(HERE / "reports", ignore_errors=True)
    (HERE / "reports").mkdir()
    commands = json.loads((HERE / "commands.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(assembled(Path(folder)))
        for name, arguments in commands.items():
            out = invoke(*arguments)
            if out.startswith("error: "):
                raise SystemExit(f"{name}: {out}")
            if name.endswith(".json"):
                value = json.loads(out)
                for report in value if isinstance(value, list) else [value]:
                    if "commit" in report:
                        report["commit"] = None
                write(HERE / "reports" / name, value)
            else:
                (HERE / "reports" / name).write_text(out, "utf-8")
            shutil.copy(HERE / "reports" / name, Path(folder) / "reports" / name)
            print(name, out[:150].replace("\n", " | "))
        os.chdir(HERE)


def make_info() -> None:
    os.chdir(HERE.parents[1])
    found = {}
    for path in sorted(Path("examples/recipes").glob("*.yaml")):
        out = invoke("info", path, "--json")
        found[path.name] = out if out.startswith("error: ") else json.loads(out)
        if isinstance(found[path.name], dict):
            found[path.name].pop("name")
    write(HERE / "info.json", found)
    print(len(found), "recipes,", sum(isinstance(value, str) for value in found.values()), "errors")


def make_training() -> None:
    """A run that stopped after a checkpoint, and the losses of one that did not stop. All paths are relative."""
    from transformers import Seq2SeqTrainer

    room = HERE / "training"
    shutil.rmtree(room / "run", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(room, folder, dirs_exist_ok=True)
        os.chdir(folder)
        invoke("train", "recipe.yaml", "output_dir=straight")
        facts = json.loads(Path("straight/training.json").read_text())
        names = ("steps", "losses", "validation_losses", "best_step", "averaged_steps", "parameters")
        write(room / "expected.json", {name: facts[name] for name in names})
        for number, factor in enumerate((1, 2)):  # what `docmt analyze losses` reads
            run = HERE / "data" / f"run-{number}"
            changed = facts | {"losses": [[step, loss / factor] for step, loss in facts["losses"]]}
            run.mkdir(parents=True, exist_ok=True)
            write(run / "training.json", changed)
            shutil.copy("straight/recipe.yaml", run / "recipe.yaml")
        step, calls = Seq2SeqTrainer.training_step, []

        def training_step(*args, **kwargs):
            calls.append(1)
            if len(calls) > 6:
                raise InterruptedError
            return step(*args, **kwargs)

        Seq2SeqTrainer.training_step = training_step
        invoke("train", "recipe.yaml")
        Seq2SeqTrainer.training_step = step
        shutil.copytree("run", room / "run")
        os.chdir(HERE)
    for path in (room / "run").rglob("*.py"):  # those of code_0_1_0, of no use to a resumed run
        path.unlink()
    for path in sorted((room / "run").rglob("*")):
        print(path.relative_to(room), path.stat().st_size)


def make_surface() -> None:
    """Commands with their parameters, and sums of the files of the built-in corpus."""
    import hashlib

    import typer

    def parameters(command, path=()):
        if hasattr(command, "commands"):
            for name, one in command.commands.items():
                yield from parameters(one, (*path, name))
        names = []
        for one in command.params:
            flags = [*one.opts, *one.secondary_opts]
            names.append(" ".join(sorted(flags)) if one.param_type_name == "option" else f"{one.name} (argument)")
        yield " ".join(path), names

    write(HERE / "commands_and_flags.json", dict(sorted(parameters(typer.main.get_command(app)))), indent=0)
    sums = {}
    for share in ("0.0", "0.5"):
        options = ["--seed", "5", "--train", "6", "--validation", "2", "--test", "3", "--suite-items", "2"]
        options += ["--shortest", "4", "--longest", "7", "--cataphora", share]
        with tempfile.TemporaryDirectory() as folder:
            invoke("corpus", Path(folder) / "corpus", *options)
            files = sorted((Path(folder) / "corpus").iterdir())
            sums[" ".join(options)] = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    write(HERE / "corpus.json", sums, indent=0)


def check_no_paths() -> None:
    """Nothing of the machine is in the data."""
    words = [str(HERE.parents[1]), "/tmp/", "/root", "/work", "/home"]
    for path in HERE.rglob("*"):
        if path.is_file() and path.name != "make.py":
            found = [word for word in words if re.search(re.escape(word).encode(), path.read_bytes())]
            if found:
                print(f"{path.relative_to(HERE)} holds {found}")


if __name__ == "__main__":
    for part in sys.argv[1:]:
        globals()[f"make_{part}"]()
    check_no_paths()
