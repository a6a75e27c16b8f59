"""Model folders with wrong, broken or dangerous files: one line that names the folder or the field, no traceback."""

import json
import pickle
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer


def change(file, **fields):
    """Fields of a JSON file set to these values."""

    def apply(folder):
        (folder / file).write_text(json.dumps(json.loads((folder / file).read_text()) | fields))

    return apply


def overwrite(file, content):
    return lambda folder: (folder / file).write_bytes(content)


class Planted:
    """A pickle of it makes a file where it is loaded."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return open, (str(self.file), "w")


def dangerous_pickle(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Planted(folder / "marker")}))
    torch.save({"a": Planted(folder / "marker")}, folder / "pytorch_model.bin")


def set_weights(name, value):
    """One value of a tensor set, all where it is 0, or the tensor left out."""

    def apply(folder):
        weights = load_file(folder / "model.safetensors")
        if value is None:
            del weights[name]
        else:
            values = weights[name].view(-1)
            values[slice(None) if value == 0 else 1] = float(value)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    return apply


def truncated_weights(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


CONFIG, GENERATION = "config.json", "generation_config.json"
DAMAGES = {  # what a message must hold -> what was done to the folder
    "d_model must be of type int, got 'a'": change(CONFIG, d_model="a"),
    "d_model must be of type int, got 16.5": change(CONFIG, d_model=16.5),
    "encoder_layers must be of type int, got [1]": change(CONFIG, encoder_layers=[1]),
    "encoder_layers must be a whole number >= 1, got -1": change(CONFIG, encoder_layers=-1),
    "dropout must be of type float, got 'x'": change(CONFIG, dropout="x"),
    "use_bod must be of type bool, got 1": change(CONFIG, use_bod=1),
    "source_lang must be of type null or str, got 3": change(CONFIG, source_lang=3),
    "sep_token_id must be an id from 0 to 269, got 9999": change(CONFIG, sep_token_id=9999),
    "pad_token_id must be an id from 0 to 269, got -1": change(CONFIG, pad_token_id=-1),
    "activation_function must be one of": change(CONFIG, activation_function="none"),
    "attn_implementation is 'someone/kernel', expected one of eager": change(
        CONFIG, attn_implementation="someone/kernel"
    ),
    "_attn_implementation is 'a/b:c', expected": change(CONFIG, nested=[{"_attn_implementation": {"": "a/b:c"}}]),
    "not a valid JSON": overwrite(CONFIG, b"{"),
    "config.json: expected a JSON object, got list []": overwrite(CONFIG, b"[]"),
    "config.json: nested too deeply": overwrite(CONFIG, b'{"a":' * 900 + b"1" + b"}" * 900),
    "architectures is [1], expected a list of class names": change(CONFIG, architectures=[1]),
    "encoder_layers is 10000000, expected 1000 at most": change(CONFIG, encoder_layers=10**7),
    "hidden_size is 10000000.0, expected 262144 at most": change(CONFIG, text_config={"hidden_size": 1e7}),
    "num_hidden_layers is 1000000000000000000": change(CONFIG, nested=[{"text_config": {"num_hidden_layers": 10**18}}]),
    "decoder_ffn_dim is 10000000, expected 1048576 at most": change(CONFIG, decoder_ffn_dim=10**7),
    "quant_method is 'gptq', expected docmt-int8": change(CONFIG, quantization_config={"quant_method": "gptq"}),
    "model_type is ['docmt-concat'], expected a name": change(CONFIG, model_type=["docmt-concat"]),
    "a JSON file of the tokenizer is broken": overwrite("tokenizer.json", b"{"),
    "tokenizer_config.json: expected a JSON object, got list []": overwrite("tokenizer_config.json", b"[]"),
}


def index(files):
    return overwrite("model.safetensors.index.json", json.dumps({"weight_map": files}).encode())


DAMAGES_OF_TRANSLATION = {
    "model_max_length is 'a', expected a number": change("tokenizer_config.json", model_max_length="a"),
    "weight_map names '../x.safetensors', expected a file next to it": index({"a": "../x.safetensors"}),
    "weight_map names '/tmp/x', expected a file next to it": index({"a": "/tmp/x"}),
    "weight_map names '..\\\\x', expected a file next to it": index({"a": "..\\x"}),
    "weight_map must be an object, got ['a']": index(["a"]),
    "tokenizer.json: expected a JSON object, got list []": overwrite("tokenizer.json", b"[]"),
    "eos_token_id of generation_config.json is 'x'": change(GENERATION, eos_token_id="x"),
    "eos_token_id of generation_config.json is [3, 9999]": change(GENERATION, eos_token_id=[3, 9999]),
    "generation_config.json has no eos_token_id": change(GENERATION, eos_token_id=None),
    "generation_config.json: expected a JSON object, got list []": overwrite(GENERATION, b"[]"),
    "generation_config.json: nested too deeply": overwrite(GENERATION, b'{"a":' * 3000 + b"1" + b"}" * 3000),
    "eos_token_id of generation_config.json is nan": change(GENERATION, eos_token_id=float("nan")),
    "num_beams must be a whole number >= 1, got 0": change(GENERATION, num_beams=0),
    "length_penalty must be a number from -10 to 10, got nan": change(GENERATION, length_penalty=float("nan")),
    "length_penalty must be a number from -10 to 10, got 1e+300": change(GENERATION, length_penalty=1e300, num_beams=2),
    "header too small": overwrite("model.safetensors", b""),
    "Weights only load failed": dangerous_pickle,
    "model.decoder.layers.0.fc1.weight are not all finite": set_weights("model.decoder.layers.0.fc1.weight", "nan"),
    "model.decoder.layers.0.fc2.weight are all zero": set_weights("model.decoder.layers.0.fc2.weight", 0),
    "0.self_attn_layer_norm.weight are all zero": set_weights("model.encoder.layers.0.self_attn_layer_norm.weight", 0),
    "model.encoder.layers.0.self_attn.q_proj.bias are not all finite": set_weights(
        "model.encoder.layers.0.self_attn.q_proj.bias", "-inf"
    ),
    "scores of the next token are not finite (step 1 of sentence 0": set_weights("final_logits_bias", "inf"),
    "incomplete metadata": truncated_weights,
}


@pytest.fixture
def damaged(model, tmp_path):
    """A damaged copy of the folder, without fingerprints."""

    def make(damage):
        folder = tmp_path / "damaged"
        shutil.copytree(model, folder)
        change(CONFIG, fingerprints=None)(folder)
        damage(folder)
        return folder

    return make


@pytest.mark.parametrize("words", [*DAMAGES, *DAMAGES_OF_TRANSLATION])
def test_translate(run, damaged, documents, tmp_path, words):
    folder, output = damaged((DAMAGES | DAMAGES_OF_TRANSLATION)[words]), tmp_path / "translations.jsonl"
    code, out, err = run("translate", folder, documents, "-o", output)
    message = err.strip().splitlines()[-1]
    assert code == 1 and out == "" and message.startswith("docmt: ") and words in message
    assert "Traceback" not in err and not output.exists() and not (folder / "marker").exists()


@pytest.mark.parametrize("words", DAMAGES)
def test_info(run, damaged, words):
    folder = damaged(DAMAGES[words])
    code, out, err = run("info", folder)
    assert code == 1 and out == "" and err.count("\n") == 1 and words in err and str(folder) in err


@pytest.mark.parametrize(
    "damage",
    [
        set_weights("model.decoder.layers.0.encoder_attn.q_proj.weight", None),
        change(CONFIG, segment_encoding="learned"),
        change(CONFIG, d_model=32),
    ],
    ids=["a weight less", "a table more", "other sizes"],
)
def test_weights_of_another_configuration(run, damaged, documents, damage):
    code, out, err = run("translate", damaged(damage), documents)
    assert code == 1 and out == "" and "cannot load a model" in err and "train the checkpoint again" in err


def test_tokenizer_of_another_model(run, damaged, documents):
    """Its ids would be above the vocabulary."""

    def add_tokens(folder):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        tokenizer.add_tokens(["one", "more"])
        tokenizer.save_pretrained(folder)

    code, _, err = run("translate", damaged(add_tokens), documents)
    assert code == 1 and "the tokenizer has 272 tokens, the model's vocab_size is 270" in err


@pytest.mark.parametrize("penalty", ["nan", "inf", "-inf"])
def test_length_penalty(run, model, documents, penalty):
    code, _, err = run("translate", model, documents, "--length-penalty", penalty, "--beams", 2)
    assert code == 1 and err == f"docmt: length_penalty must be a number from -10 to 10, got {float(penalty)!r}.\n"
