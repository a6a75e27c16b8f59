"""The benchmark of decoding: targets by numbers that are known, tiny runs."""

import json

import pytest
import torch

from hf_docmt.bench import decode, measurement
from hf_docmt.bench.decode import DecodeBenchmark, ctranslate2_checks, diversify_translations, target_checks
from hf_docmt.bench.models import TINY, build_pair
from hf_docmt.bench.results import Row


@pytest.fixture(scope="module")
def decoded():
    return DecodeBenchmark(repeats=1, batch_sizes=(1, 3), tokens=8, sizes=TINY, vocab_size=100).run().to_json()


def test_decode_targets():
    def row(precision, mode, ratio, equal=1.0):
        case = f"{precision} {mode}"
        more = {"precision": precision, "mode": mode, "equal_tokens": equal}
        return Row.of(case, "sentences/s", ratio, 1, more=more)

    def verdicts(*rows):
        return {check.name: check.ok for check in target_checks(rows)}

    good = verdicts(row("fp32", "greedy", 1.8), row("fp32", "beam 4", 2.0), row("bf16", "beam 4", 1.0, 0.9))
    assert len(good) == 5 and all(good.values())  # the same tokens are not asked for in bf16
    int8 = [row("int8", mode, ratio) for mode, ratio in (("greedy", 2.5), ("greedy", 2.4), ("beam 4", 2.9))]
    assert [check.ok for check in target_checks(int8)] == [True, False, False, True]
    bad = verdicts(row("fp32", "greedy", 1.79), row("fp32", "beam 4", 1.99, 0.99), row("bf16", "greedy", 0.99))
    assert bad.pop("fp32: smallest ratio") and len(bad) == 4 and not any(bad.values())


def test_targets_beside_ctranslate2():
    """Of int8 rows that it has, by size and by what computes ours."""

    def row(precision, mode, batch, ratio=None):
        more = {"precision": precision, "mode": mode, "batch": batch}
        more |= {} if ratio is None else {"ctranslate2": 10 / ratio}
        return Row.of(f"{mode} {batch}", "sentences/s", 10, 1, more=more)

    rows = [row("int8", "greedy", 1, 2.0), row("int8", "beam 4", 64, 1.2), row("int8", "greedy", 3, 9)]
    rows += [row("fp32", "greedy", 1, 9), row("int8", "greedy", 1)]

    def targets(size, kernels):
        return [(check.name, check.target, check.ok) for check in ctranslate2_checks(rows, size, kernels)]

    greedy, beams = "greedy 1: over CTranslate2", "beam 4 64: over CTranslate2"
    assert targets("base", True) == [(greedy, 2.5, False), (beams, 1.5, False)]
    assert targets("base", False) == [(greedy, 1.5, True), (beams, 1.0, True)]
    assert targets("small", True) == [(greedy, 1.5, True), (beams, 1.2, True)]
    assert targets("small", False) == [(greedy, 0.5, True), (beams, 0.7, True)]


def test_decode_rows(decoded):
    assert json.loads(json.dumps(decoded)) == decoded
    assert [row["case"] for row in decoded["rows"]] == [
        f"{precision} {mode} batch {size}"
        for precision in ("fp32", "bf16", "int8")
        for mode in ("greedy", "beam 4")
        for size in (1, 3)
    ]
    for row in decoded["rows"]:
        assert row["ours"] == pytest.approx(row["batch"] / row["ours_seconds"]) and row["unit"] == "sentences/s"
        assert row["ratio"] == pytest.approx(row["peer_seconds"] / row["ours_seconds"])
    exact = [row for row in decoded["rows"] if row["precision"] == "fp32"]
    assert all(row["equal_tokens"] == row["equal_choices"] == 1.0 for row in exact)
    rounded = [row["equal_choices"] for row in decoded["rows"] if row["precision"] == "int8"]
    assert all(share > 0.8 for share in rounded)
    assert all(row["different_tokens"] > 3 for row in exact if row["batch"] == 3)  # not one token all the time
    assert {"threads", "torch", "transformers", "vocab_size", "sizes"} <= decoded["setting"].keys()
    names = [check["name"] for check in decoded["checks"]]
    assert names[:8] == [f"{row['case']}: ratio" for row in decoded["rows"] if row["precision"] != "bf16"]
    assert names[8:] == [*(f"{name}: smallest ratio" for name in ("fp32", "bf16", "int8")), "fp32: equal tokens"]
    assert decoded["checks"][-1]["ok"]


def test_decode_ratio_from_known_times(monkeypatch):
    def known(sides, repeats):
        assert repeats == 4 and all(run() > 0 for run in sides.values())
        return {"ours": 1.0, "peer": 1.9, "ssru": 0.5, "ctranslate2": 1.0}

    monkeypatch.setattr(measurement, "median_seconds", known)
    options = {"batch_sizes": (2,), "precisions": ("fp32",), "tokens": 4, "sizes": TINY, "vocab_size": 50}
    found = DecodeBenchmark(repeats=4, **options).run().to_json()
    assert [row["ratio"] for row in found["rows"]] == pytest.approx([1.9, 1.9]) and found["rows"][0]["ours"] == 2.0
    assert [row["ssru"] for row in found["rows"]] == [4.0, 4.0]
    assert [check["ok"] for check in found["checks"]] == [True, False, True, True]


def test_the_recurrent_side():
    """It has as many layers and dimensions, and no self-attention in its decoder."""
    ours, _ = build_pair(TINY, 60, seed=3)
    recurrent = decode.recurrent_model(ours)
    assert ours.config.decoder_autoregression == "self_attention" != recurrent.config.decoder_autoregression
    names = {name for name, _ in recurrent.named_parameters()} ^ {name for name, _ in ours.named_parameters()}
    assert names and all(name.startswith("model.decoder.layers.") for name in names)


def test_pair_has_the_same_weights_but_its_own():
    ours, peer = (model.eval() for model in build_pair(TINY, 60, seed=3))
    ids = torch.tensor([[7, 8, 9, 3]])
    with torch.no_grad():
        logits = [model(input_ids=ids, decoder_input_ids=ids).logits for model in (ours, peer)]
        torch.testing.assert_close(*logits, atol=1e-5, rtol=0)
        diversify_translations(peer)
        assert torch.equal(ours(input_ids=ids, decoder_input_ids=ids).logits, logits[0])


def test_unequal_tokens_are_seen(monkeypatch):
    def pair(*args):
        ours, peer = build_pair(*args)
        with torch.no_grad():
            peer.model.decoder.layers[-1].fc2.weight.normal_(std=3)
        return ours, peer

    monkeypatch.setattr(decode, "build_pair", pair)
    options = {"batch_sizes": (4,), "precisions": ("fp32",), "tokens": 6, "sizes": TINY, "vocab_size": 100}
    found = DecodeBenchmark(repeats=1, **options).run().to_json()
    assert found["rows"][0]["equal_tokens"] < 1 and not found["checks"][-1]["ok"]


def test_a_further_peer(monkeypatch):
    """A stand-in for CTranslate2 in fp32 takes part in every round."""

    def generate(input_ids, beams):
        asked.append((len(input_ids), beams))
        return torch.zeros(len(input_ids), 5)

    asked = []
    monkeypatch.setattr(decode, "ctranslate2_peers", lambda model, precisions, device, tokens: {"fp32": generate})
    options = {"batch_sizes": (2,), "tokens": 4, "sizes": TINY, "vocab_size": 50}
    rows = DecodeBenchmark(repeats=1, **options).run().to_json()["rows"]
    assert asked == [(2, 1), (2, 1), (2, 4), (2, 4)]
    assert [row.get("ctranslate2", 0) > 0 for row in rows] == [True, True, False, False, False, False]


def test_ctranslate2_has_the_same_weights():
    pytest.importorskip("ctranslate2")
    found = DecodeBenchmark(repeats=1, batch_sizes=(3,), tokens=6, sizes=TINY, vocab_size=60)
    models = build_pair(TINY, 60, seed=1)
    for model in models:
        diversify_translations(model.eval())
        model.final_logits_bias[:, decode.COMMON["eos_token_id"]] = decode.NEVER
    peer = decode.ctranslate2_peers(models[0], ("fp32",), "cpu", found.tokens)["fp32"]
    sources = decode.random_sources(3, 6, 60, seed=1)
    ours = models[0].generate(sources, attention_mask=torch.ones_like(sources), max_new_tokens=6, do_sample=False)
    assert torch.equal(peer(sources, 1), ours)


def test_named_sizes(monkeypatch):
    """`small` builds the small model."""
    built = []
    monkeypatch.setattr(decode, "build_pair", lambda *arguments: built.append(arguments) or build_pair(TINY, 60, 1))
    monkeypatch.setattr(decode, "random_sources", lambda *arguments: torch.tensor([[7, 8, 3]]))
    options = {"batch_sizes": (1,), "precisions": ("fp32",), "tokens": 3}
    found = DecodeBenchmark(size="small", repeats=1, **options).run().to_json()
    assert built == [(decode.SMALL, 8000, 1)] and found["setting"]["size"] == "small"
