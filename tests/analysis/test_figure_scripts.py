"""The scripts of examples/analysis: each runs on a tiny model, and its table has what can be known without it."""

import copy
import json
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sacrebleu
import torch
from support.tiny_models import build, documents_of, random_text, word_tokenizer

from hf_docmt.analysis.memory import document_batches, empty_memory, forward_step, memory_stacks

SCRIPTS = Path(__file__).resolve().parents[2] / "examples" / "analysis"
SENTENCES = random_text([3, 2, 4], seed=1)
LANGUAGES = ["--source-lang", "en", "--target-lang", "de"]
OURS, THEIRS = ["w1 and w2 w3 w4", "so w5 w6 w7 w8", "w1 w2"], ["w1 w2 w3 w9", "and so w5 w6 w2", "w2 w1"]
REFERENCE = ["w1 and w2 w3 w4", "and w5 w6 w7 w8", "w1 w2 but w3"]


def heads(table):
    assert table.filter(like="to ").sum(axis=1).to_numpy() == pytest.approx(100, abs=0.1)
    assert table["tokens"].tolist() == [6 + 6 + 6, 6 + 5]  # first in their windows, second


def groups(table):
    assert table.filter(like="group ").sum(axis=1).to_numpy() == pytest.approx(1)
    assert table["token"].tolist() == [word for text in SENTENCES for word in (*text.split(), "</s>")]


def gates(table):
    assert table[["-1", "+1", "nothing"]].sum(axis=1).to_numpy() == pytest.approx(1, abs=2e-3)
    assert table["layer"].astype(str).unique().tolist() == ["mean", "1", "2"]


def windows(table):
    assert table["offset"].tolist() == [-1, 0] and table["tokens"].tolist() == [6 + 6, 6 + 6 + 5]


def positions(table):
    encodings = build("concat").get_encoder().position_encoding(torch.arange(60)[None])[0].numpy().astype(float)
    values = np.sort(np.linalg.eigvalsh(np.cov(encodings, rowvar=False)))[::-1]
    shares = 100 * np.cumsum(values) / values.sum()
    assert table["components"].tolist() == [1 + int((shares < share).sum()) for share in table["variance (%)"]]


def gain(table):
    assert (table["gain"] == table["random"] - table["trained"]).all()
    assert table["queries"].tolist() == [12, 17, 12, 12]  # source and target tokens; slots of three sentences


def distances(table):
    assert table["distance"].tolist() == ["0", "1", "2"] and table["pairs"].tolist() == [3, 2, 1]
    assert (table[["source", "target"]] > 0).all(axis=None)


def maps(table):
    parts = table[["side", "attention", "sentence"]].drop_duplicates()
    assert sorted(map(tuple, parts.to_numpy())) == [
        (side, *part) for side in ("source", "target") for part in (("output", 2), ("update", 1))
    ]
    assert table["weight"].between(0, 1).all() and table["slot"].between(1, 4).all()


def losses(table):
    assert table.loc[0].tolist()[1:] == [8, round((8 / 7 + 1) / 2, 4), round((8 / 7 - 1) / 2, 4), 2.25]


def by_index(table):
    assert table["index"].tolist() == ["1-2", "3-3"] and table["sentences"].tolist() == [2, 1]
    for column, side in (("system", OURS), ("baseline", THEIRS)):
        scores = [sacrebleu.corpus_bleu([one], [[reference]]).score for one, reference in zip(side, REFERENCE)]
        assert table[column].tolist() == pytest.approx([np.mean(scores[:2]), scores[2]], abs=0.01)


def connectives(table):
    assert table.set_index("connective").loc["and"].tolist() == [2, 1, 1]
    assert table.set_index("connective").loc["(differences)"].tolist() == [0, 3, 3]


MEMORY = ("memory", {"memory_size": 4})
CASES = {  # script: architecture and fields, arguments, what its table has to be
    "attention_share": (("concat", {"past_context": 1}), ["{model}", "{documents}"], heads),
    "groups": (("caching", {"past_context": 1, "shortening": "grouping"}), ["{model}", *SENTENCES], groups),
    "gates": (("routing", {"past_context": 1}), ["{model}", *SENTENCES], gates),
    "segment_losses": (("concat", {"past_context": 1}), ["{model}", "{documents}"], windows),
    "positions": (("concat", {}), ["--model", "{model}", "--count", "60"], positions),
    "information_gain": (MEMORY, ["{model}", "{documents}"], gain),
    "attribution": (MEMORY, ["{model}", "{documents}", "--reach", "5", "--step", "1"], distances),
    "memory_maps": (MEMORY, ["{model}", "{documents}", "--document", "a"], maps),
    "losses": (None, ["{run}", "{run}/../other"], losses),
    "by_index": (None, ["{ours}", "{theirs}", "{documents}", "--every", "2", "--samples", "9", *LANGUAGES], by_index),
    "connectives": (None, ["{documents}", "{ours}", "{theirs}", *LANGUAGES[:2], "--target-lang", "de", "--words"]
                    + ["and,so,but"], connectives),
}  # fmt: skip


@pytest.fixture
def script(monkeypatch, capsys):
    """The names of a script, or what it prints when it runs with these arguments."""
    monkeypatch.syspath_prepend(str(SCRIPTS))

    def run(name, *arguments):
        monkeypatch.setattr("sys.argv", [name, *map(str, arguments)])
        names = runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__" if arguments else name)
        return capsys.readouterr().out if arguments else names

    return run


@pytest.fixture
def files(tmp_path):
    """Paths of documents, translations and a run, by their names in `CASES`."""
    rows = [{"en": source, "de": target} for source, target in zip(SENTENCES, REFERENCE)]
    (tmp_path / "talks.jsonl").write_text(json.dumps({"doc_id": "a", "translation": rows}) + "\n")
    for name, side in (("ours", OURS), ("theirs", THEIRS)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"doc_id": "a", "translation": side}) + "\n")
    for name in ("run", "other"):
        (tmp_path / name).mkdir()
        found = {"losses": [[step, 8 / step] for step in range(1, 9)], "validation_losses": [[4, 2.5], [8, 2.25]]}
        (tmp_path / name / "training.json").write_text(json.dumps(found))
    paths = {name: tmp_path / f"{name}.jsonl" for name in ("ours", "theirs")}
    return paths | {"documents": tmp_path / "talks.jsonl", "run": tmp_path / "run", "model": tmp_path / "model"}


def test_every_script_is_tested_and_short():
    paths = [path for path in SCRIPTS.glob("*.py") if path.stem not in ("inputs", "recorded_search")]
    assert {path.stem for path in paths} == set(CASES)
    for path in paths:
        text = path.read_text("utf-8")
        assert len(text.splitlines()) < 80 and f"python examples/analysis/{path.name}" in text


@pytest.mark.parametrize("name", CASES)
def test_script(script, files, name, tmp_path):
    pytest.importorskip("matplotlib")
    model, arguments, check = CASES[name]
    if model:
        architecture, fields = model
        build(architecture, **fields).save_pretrained(files["model"])
        word_tokenizer().save_pretrained(files["model"])
    arguments = [argument.format(**files) for argument in arguments]
    picture = [] if name == "connectives" else ["--picture", tmp_path / "a.png"]
    out = script(name, *arguments, "--output", tmp_path / "a.csv", *picture)
    table = pd.read_csv(tmp_path / "a.csv", dtype={"distance": str}, float_precision="round_trip")
    check(table)
    assert out.split("\n")[0].split()[0] == table.columns[0].split()[0] and len(out.splitlines()) > len(table)
    assert not picture or picture[1].read_bytes().startswith(b"\x89PNG")


PARTS = [(1, [3, 1, 4]), (2, [2, 1])]


def documents():
    sides = [(random_text(lengths, seed=seed), random_text(lengths[::-1], seed=seed + 9)) for seed, lengths in PARTS]
    return documents_of(*sides)


@torch.no_grad()
def test_information_gain_of_uniform_attention(script):
    """Where queries are zero, entropies are the logarithms of the numbers of keys; nothing is gained over oneself."""
    model, names = build("memory", memory_size=3), script("information_gain")
    for stack in memory_stacks(model).values():
        for attention in (stack.layers[-1].memory.update_attn, stack.layers[-1].memory.output_attn):
            attention.q_proj.weight.zero_()
            attention.q_proj.bias.zero_()
    batches = document_batches(model, documents(), word_tokenizer())
    table = names["information_gain"](model, copy.deepcopy(model), batches).set_index(["attention", "side"])
    assert table.loc["output", "trained"].to_numpy() == pytest.approx(np.log(3), abs=1e-6)
    lengths = np.array([4, 2, 5, 3, 2])  # with </s>
    assert table.loc[("update", "source"), "trained"] == pytest.approx(np.log(lengths).mean(), abs=1e-6)
    assert table["gain"].to_numpy() == pytest.approx(0, abs=1e-6)


def test_gradients_of_one_graph(script):
    """Scores of all distances, from one graph for a document, a gradient for each pair of sentences."""
    model = build("memory", memory_size=3)
    found = script("attribution")["attribution"](model, documents(), word_tokenizer(), 2, 1)
    sums, pairs = np.zeros((3, 2)), np.zeros(3)
    for number in range(2):
        taken, memory, losses = [], empty_memory(model, 1), []
        (steps,) = document_batches(model, documents().select([number]), word_tokenizer(), rows=1)
        tables = {model.model.encoder.embed_tokens, model.model.decoder.embed_tokens}
        hooks = [table.register_forward_hook(lambda *call, taken=taken: taken.append(call[2])) for table in tables]
        for step in steps:
            outputs, memory = forward_step(model, step, memory)
            losses.append(torch.nn.functional.cross_entropy(outputs.logits[0], step["labels"][0]))
        for hook in hooks:
            hook.remove()
        for i, loss in enumerate(losses):
            for s in range(i + 1):
                pairs[i - s] += 1
                inputs = taken[2 * s : 2 * s + 2]
                gradients = torch.autograd.grad(loss, inputs, retain_graph=True, materialize_grads=True)
                for side, name in enumerate(("input_ids", "decoder_input_ids")):
                    words = {}
                    for token, vector in zip(steps[s][name][0].tolist(), gradients[side][0]):
                        words[token] = words.get(token, 0) + vector
                    sums[i - s, side] += sum(vector.norm().item() for token, vector in words.items() if token >= 6)
    assert found["pairs"].tolist() == pairs.tolist()
    np.testing.assert_allclose(found[["source", "target"]].to_numpy(), sums / pairs[:, None], rtol=1e-3)
