"""Benches: turns, medians, ratios and checks by numbers that are known; tiny runs of the real thing."""

import json
from itertools import count

import pytest
import torch

from hf_docmt.bench import decode, train
from hf_docmt.bench.contrast import bench_contrast, largest_difference
from hf_docmt.bench.decode import bench_decode, checks_of, make_lively
from hf_docmt.bench.epoch import Watch
from hf_docmt.bench.marian import TRANSFORMER_BASE, build_pair
from hf_docmt.bench.timing import alternate, bench_result, check_at_least, format_bench, make_row, seconds_of
from hf_docmt.bench.train import bench_documents, bench_train
from hf_docmt.data.documents import write_documents
from hf_docmt.data.synthetic.corpus import make_corpus

TINY = {name: 2 if name.endswith(("layers", "heads")) else 32 for name in TRANSFORMER_BASE}


@pytest.fixture(scope="module")
def decoded():
    return bench_decode(1, batch_sizes=(1, 3), tokens=8, sizes=TINY, vocab_size=100)


@pytest.fixture(scope="module")
def trained():
    return bench_train(1, documents=8, max_tokens=400, sizes=TINY, vocab_size=300)


def test_sides_take_turns_and_the_median_counts():
    calls = []
    times = {"ours": iter([90.0, 1.0, 2.0, 60.0]), "peer": iter([90.0, 3.0, 50.0, 5.0])}

    def side(name):
        return lambda: calls.append(name) or next(times[name])

    assert alternate({name: side(name) for name in times}, repeats=3) == {"ours": 2.0, "peer": 5.0}
    assert calls == ["ours", "peer", "peer", "ours", "ours", "peer", "peer", "ours"]  # the first round does not count


def test_seconds_by_a_clock():
    ticks, calls = iter([10.0, 12.5]), []
    assert seconds_of(lambda: calls.append(1), clock=lambda: next(ticks)) == 2.5
    assert calls == [1]
    numbers = count()
    watch = Watch(clock=lambda: float(next(numbers)))
    watch.on_train_begin(None, None, None)
    watch.on_train_end(None, None, None)
    assert watch.seconds == 1.0


def test_ratio_is_the_time_of_the_peer_over_ours():
    row = make_row("a case", "sentences/s", {"ours": 8, "peer": 8}, {"ours": 2.0, "peer": 5.0}, more=1)
    assert row["ours"] == 4.0 and row["peer"] == 1.6 and row["ratio"] == 2.5 and row["more"] == 1
    row = make_row("a case", "tokens/s", {"ours": 30, "peer": 10}, {"ours": 1.0, "peer": 1.0})
    assert row["ratio"] == 3.0  # other amounts: speeds are compared, not times


def test_check_and_text():
    assert check_at_least("x", 2.0, 2.0)["ok"] and not check_at_least("x", 1.99, 2.0)["ok"]
    row = make_row("a case", "sentences/s", {"ours": 1, "peer": 1}, {"ours": 2.0, "peer": 5.0})
    text = format_bench(bench_result([row], [check_at_least("fast", 2.5, 1.5), check_at_least("faster", 2.5, 3)]))
    assert "a case" in text and "seconds" not in text and f"threads: {torch.get_num_threads()}" in text
    verdicts = {line.split()[0]: line.split()[-1] for line in text.splitlines() if line.startswith("fast")}
    assert verdicts == {"fast": "ok", "faster": "missed"}


def test_decode_targets():
    def row(precision, mode, ratio, equal=1.0):
        case = f"{precision} {mode}"
        return {"case": case, "precision": precision, "mode": mode, "ratio": ratio, "equal_tokens": equal}

    def verdicts(*rows):
        return {check["name"]: check["ok"] for check in checks_of(rows)}

    good = verdicts(row("fp32", "greedy", 1.8), row("fp32", "beam 4", 2.0), row("bf16", "beam 4", 1.0, 0.9))
    assert len(good) == 5 and all(good.values())  # the same tokens are not asked for in bf16
    bad = verdicts(row("fp32", "greedy", 1.79), row("fp32", "beam 4", 1.99, 0.99), row("bf16", "greedy", 0.99))
    assert bad.pop("fp32: smallest ratio") and len(bad) == 4 and not any(bad.values())


def test_decode_rows(decoded):
    assert json.loads(json.dumps(decoded)) == decoded
    assert [row["case"] for row in decoded["rows"]] == [
        f"{precision} {mode} batch {size}"
        for precision in ("fp32", "bf16")
        for mode in ("greedy", "beam 4")
        for size in (1, 3)
    ]
    for row in decoded["rows"]:
        assert row["ours"] == pytest.approx(row["batch"] / row["ours_seconds"]) and row["unit"] == "sentences/s"
        assert row["ratio"] == pytest.approx(row["peer_seconds"] / row["ours_seconds"])
    exact = [row for row in decoded["rows"] if row["precision"] == "fp32"]
    assert all(row["equal_tokens"] == 1.0 for row in exact)
    assert all(row["different_tokens"] > 3 for row in exact if row["batch"] == 3)  # not one token all the time
    assert {"threads", "torch", "transformers", "vocab_size", "sizes"} <= decoded["setting"].keys()
    names = [check["name"] for check in decoded["checks"]]
    assert names[:4] == [f"{row['case']}: ratio" for row in exact]
    assert names[4:] == ["fp32: smallest ratio", "bf16: smallest ratio", "fp32: equal tokens"]
    assert decoded["checks"][-1]["ok"]


def test_decode_ratio_from_known_times(monkeypatch):
    def known(sides, repeats):
        assert repeats == 4 and all(run() > 0 for run in sides.values())
        return {"ours": 1.0, "peer": 1.9}

    monkeypatch.setattr(decode, "alternate", known)
    found = bench_decode(4, batch_sizes=(2,), precisions=("fp32",), tokens=4, sizes=TINY, vocab_size=50)
    assert [row["ratio"] for row in found["rows"]] == pytest.approx([1.9, 1.9]) and found["rows"][0]["ours"] == 2.0
    assert [check["ok"] for check in found["checks"]] == [True, False, True, True]


def test_pair_has_the_same_weights_but_its_own():
    ours, peer = (model.eval() for model in build_pair(TINY, 60, seed=3))
    ids = torch.tensor([[7, 8, 9, 3]])
    with torch.no_grad():
        logits = [model(input_ids=ids, decoder_input_ids=ids).logits for model in (ours, peer)]
        torch.testing.assert_close(*logits, atol=1e-5, rtol=0)
        make_lively(peer)
        assert torch.equal(ours(input_ids=ids, decoder_input_ids=ids).logits, logits[0])


def test_unequal_tokens_are_seen(monkeypatch):
    def pair(*args):
        ours, peer = build_pair(*args)
        with torch.no_grad():
            peer.model.decoder.layers[-1].fc2.weight.normal_(std=3)
        return ours, peer

    monkeypatch.setattr(decode, "build_pair", pair)
    found = bench_decode(1, batch_sizes=(4,), precisions=("fp32",), tokens=6, sizes=TINY, vocab_size=100)
    assert found["rows"][0]["equal_tokens"] < 1 and not found["checks"][-1]["ok"]


def test_train_rows(trained):
    assert json.loads(json.dumps(trained)) == trained
    assert [row["case"] for row in trained["rows"]] == list(train.VIEWS)
    for row, check in zip(trained["rows"], trained["checks"], strict=True):
        assert row["ratio"] == pytest.approx(row["peer_seconds"] / row["ours_seconds"])
        assert row["ours"] == pytest.approx(row["target_tokens"] / row["ours_seconds"])
        assert 1 <= row["ours_padding"] < row["peer_padding"]
        assert row["ours_tokens_per_update"] == pytest.approx(row["peer_tokens_per_update"], rel=0.3)
        assert check == check_at_least(f"{row['case']}: ratio", row["ratio"], 1.5)


def test_train_counts_real_tokens(trained):
    """All target tokens of the corpus once: words' pieces, and a separator or end after every sentence."""
    rows = make_corpus(train=8, validation=0, test=0)["train"]
    sentences = [pair for row in rows for pair in row["translation"]]
    texts = [text for row in rows for lang in ("en", "de") for text in (pair[lang] for pair in row["translation"])]
    tokenizer = train.train_tokenizer(texts, vocab_size=300)
    expected = sum(len(tokenizer(pair["de"])["input_ids"]) for pair in sentences)
    assert trained["rows"][0]["target_tokens"] == expected
    assert trained["rows"][1]["target_tokens"] > 2 * expected  # windows repeat their context


def test_train_on_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(train, "VIEWS", {"sentences": 0})
    path = tmp_path / "documents.jsonl"
    write_documents(make_corpus(seed=5, train=4, validation=0, test=0, sentences=(3, 5))["train"], path)
    found = bench_train(
        1, documents=path, source_lang="de", target_lang="en", max_tokens=90, sizes=TINY, vocab_size=300
    )
    assert [row["case"] for row in found["rows"]] == ["sentences"] and found["setting"]["documents"] == str(path)
    assert capsys.readouterr().out == ""  # standard output is for the result


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"repeats": 0}, "repeats: expected a whole number of at least 1, got 0"),
        ({"repeats": 1.5}, "repeats"),
        ({"batch_sizes": ()}, "batch_sizes: expected at least one"),
        ({"batch_sizes": (4, 0)}, "batch_sizes: expected a whole number"),
        ({"precisions": ("fp16",)}, "expected some of fp32, bf16, got 'fp16'"),
        ({"tokens": 0}, "tokens"),
        ({"vocab_size": 6}, "vocab_size: expected at least 7"),
        ({"sizes": {"d_model": 8}}, "sizes: got"),
    ],
)
def test_bad_decode_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        bench_decode(**arguments)


@pytest.mark.parametrize("name", ["repeats", "max_tokens", "vocab_size", "documents"])
def test_bad_train_arguments(name):
    with pytest.raises(ValueError, match=f"{name}: expected a whole number of at least 1, got 0"):
        bench_train(**{name: 0})


def test_bad_documents(tmp_path):
    with pytest.raises(ValueError, match="the built-in corpus is en to de, got en to fr; give a file"):
        bench_documents(5, "en", "fr")
    with pytest.raises((ValueError, OSError), match="nowhere.jsonl"):
        bench_documents(tmp_path / "nowhere.jsonl", "en", "de")


def test_contrast_scores_the_same_one_by_one():
    found = bench_contrast(1, items=6, sizes=TINY, vocab_size=300)
    assert [row["case"] for row in found["rows"]] == ["deixis, 2 candidates", "ellipsis, 4 candidates"]
    assert all(row["difference"] <= 1e-5 and row["ratio"] > 0 for row in found["rows"])
    assert len(found["checks"]) == 3 and found["checks"][2]["ok"]
    with pytest.raises(ValueError, match="items: expected a whole number of at least 1, got 0"):
        bench_contrast(1, items=0)


def test_largest_difference_is_relative_to_large_scores():
    ours, peer = [[[-1.0, -20.0]], [[-0.5]]], [[[-1.25, -16.0]], [[-0.5]]]
    assert largest_difference(ours, peer) == 0.25
    assert largest_difference(ours, ours) == 0
    with pytest.raises(ValueError):
        largest_difference(ours, peer[:1])
