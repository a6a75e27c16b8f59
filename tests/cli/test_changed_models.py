"""Model folders that load and translate, but are not as they were saved: none ends with a translation."""

import json
import shutil

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.loading.model_folders import load_model
from hf_docmt.modeling.fingerprints import add_tokenizer_fingerprint

WEIGHTS, CONFIG, GENERATION = "model.safetensors", "config.json", "generation_config.json"
FC1, FC2 = "model.decoder.layers.0.fc1.weight", "model.encoder.layers.0.fc1.weight"
NAMES = {"tokenizer": "tokenizer.json", "tokens": "tokenizer_config.json", "config": CONFIG, "search": GENERATION}


def swapped(values, first, second):
    return values | {first: values[second], second: values[first]}


def tokenizer_model(**fields):
    """Fields of the tokenizer's model, each a function of what it is."""
    return lambda values: (
        values | {"model": values["model"] | {name: change(values["model"][name]) for name, change in fields.items()}}
    )


def shifted(vocabulary, first=6):
    """The ids of words from the first one on, moved around."""
    words = sorted(vocabulary, key=vocabulary.get)[first:]
    return vocabulary | {word: vocabulary[words[(place + 1) % len(words)]] for place, word in enumerate(words)}


def told_twice(vocabulary):
    """Two words have changed places."""
    return swapped(vocabulary, *sorted(vocabulary, key=vocabulary.get)[100:102])


def field(**fields):
    return lambda values: values | fields


CHANGES = {  # (file, what was done to it) -> its values after that
    ("tokenizer", "shifted ids"): tokenizer_model(vocab=shifted),
    ("tokenizer", "two words swapped"): tokenizer_model(vocab=told_twice),
    ("tokenizer", "one merge less"): tokenizer_model(merges=lambda merges: merges[:-1]),
    ("tokenizer", "lower case"): field(normalizer={"type": "Lowercase"}),
    ("tokenizer", "no pre-tokenizer"): field(pre_tokenizer=None),
    ("tokenizer", "no decoder"): field(decoder=None),
    ("tokens", "another pad token"): field(pad_token="<unk>"),
    ("tokens", "swapped bos and eos"): lambda values: swapped(values, "bos_token", "eos_token"),
    ("config", "heads"): field(encoder_attention_heads=4, decoder_attention_heads=4),
    ("config", "swapped bos and eos"): lambda values: values | {"bos_token_id": 3, "eos_token_id": 2},
    ("config", "another pad token"): field(pad_token_id=1),
    ("config", "a <bod>"): field(use_bod=True),
    ("config", "activation"): field(activation_function="gelu"),
    ("config", "positions"): field(position_type="sinusoidal_t2t"),
    ("config", "scale of embeddings"): field(scale_embedding=False),
    ("config", "epsilon of norms"): field(layer_norm_eps=0.5),
    ("config", "past context"): field(past_context=0),
    ("config", "context of the source"): field(context_sides="source"),
    ("config", "chunks"): field(view="chunk", past_context=0),
    ("config", "sentences apart"): field(segment_encoding="one_hot"),
    ("config", "format of the source"): field(source_format="<s> X </s>"),
    ("config", "a field less"): lambda values: {k: v for k, v in values.items() if k != "past_context"},
    ("config", "another architecture"): field(model_type="docmt-lst"),
    ("search", "swapped bos and eos"): field(bos_token_id=3, eos_token_id=2),
    ("search", "another end"): field(eos_token_id=9),
    ("search", "another pad token"): field(pad_token_id=8),
    ("search", "a forced word"): field(forced_bos_token_id=20),
}


def flipped(bit):
    """One bit of one value in the middle of the file."""

    def change(folder):
        content = bytearray((folder / WEIGHTS).read_bytes())
        content[len(content) // 2 // 4 * 4 + bit // 8] ^= 1 << bit % 8
        (folder / WEIGHTS).write_bytes(content)

    return change


def tensors(change):
    """All tensors through a function."""

    def apply(folder):
        weights = change(load_file(folder / WEIGHTS))
        weights = {name: tensor.contiguous() for name, tensor in weights.items()}
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})

    return apply


def another_tokenizer(folder):
    texts = ["zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich"] * 3
    size = len(AutoTokenizer.from_pretrained(folder))
    train_tokenizer([*texts, *(chr(letter) for letter in range(161, 161 + size))], "bpe", size).save_pretrained(folder)


FILES = {
    "a bit of an exponent": flipped(30),
    "the lowest bit": flipped(0),
    "integers": tensors(lambda weights: {name: tensor.round().int() for name, tensor in weights.items()}),
    "half precision": tensors(lambda weights: {name: tensor.bfloat16() for name, tensor in weights.items()}),
    "two tensors swapped": tensors(lambda weights: swapped(weights, FC1, FC2)),
    "rows in another order": tensors(lambda weights: weights | {FC1: weights[FC1].flip(0)}),
    "no search": lambda folder: (folder / GENERATION).unlink(),
    "another tokenizer of the same size": another_tokenizer,
}


def edited(file, change):
    def apply(folder):
        path = folder / NAMES[file]
        path.write_text(json.dumps(change(json.loads(path.read_text()))))

    return apply


TABLE = {f"{file}: {name}": edited(file, change) for (file, name), change in CHANGES.items()} | FILES


@pytest.fixture(scope="module")
def known(model, tmp_path_factory):
    """The folder with all fingerprints."""
    folder = tmp_path_factory.mktemp("known") / "model"
    shutil.copytree(model, folder)
    add_tokenizer_fingerprint(folder, AutoTokenizer.from_pretrained(folder))
    load_model(folder)
    return folder


@pytest.mark.parametrize("name", TABLE)
def test_translate(run, known, documents, tmp_path, name):
    folder, output = tmp_path / "changed", tmp_path / "translations.jsonl"
    shutil.copytree(known, folder)
    TABLE[name](folder)
    code, out, err = run("translate", folder, documents, "-o", output)
    assert code == 1 and out == "" and not output.exists(), name
    assert "Traceback" not in err and err.strip().splitlines()[-1].startswith("docmt: ")
