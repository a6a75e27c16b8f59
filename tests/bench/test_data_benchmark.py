"""The benchmark of training data: the corpus it makes, its rows and checks, one start of either kind."""

import json
import time

import pytest

from hf_docmt.bench.data import UNITS, DataBenchmark, measure, mixed_documents, start_rows
from hf_docmt.bench.measurement import medians
from hf_docmt.data.documents import make_documents
from hf_docmt.data.synthetic.corpus import make_corpus


@pytest.fixture(scope="module")
def base():
    return make_corpus(train=6, validation=0, test=0, sentences=(2, 4))["train"]


@pytest.mark.parametrize("pairs", [1, 5, 30, 77])
def test_corpus_of_any_size(base, pairs):
    found = list(mixed_documents(pairs, base))
    make_documents(found, "en", "de")  # every id once, no document empty
    assert sum(len(row["translation"]) for row in found) == pairs
    texts = [pair["en"] for row in found for pair in row["translation"]]
    generated = [pair["en"] for row in base for pair in row["translation"]]
    assert texts[: len(generated)] == generated[:pairs]
    mixed = texts[len(generated) : 2 * len(generated)]
    if pairs == 77:
        assert sorted(mixed) == sorted(generated) and mixed != generated


def test_rows_and_medians():
    rounds = [{name: value for name in UNITS} | {"batches": "a"} for value in (1.0, 5.0, 3.0)]
    assert medians(rounds) == dict.fromkeys(UNITS, 3.0)
    assert medians([rounds[0], {"skipped": "killed"}]) == {"skipped": "killed"}
    rows = start_rows("case", medians(rounds), {"seconds": 6.0})
    assert [(row.unit, row.ours, row.peer, row.ratio) for row in rows[:2]] == [
        ("s to the first update", 3.0, 6.0, 0.5),
        ("MiB resident, peak", 3.0, None, None),
    ]
    skipped = start_rows("case", {"skipped": "killed"}, {})
    assert {(row.case, row.ours) for row in skipped} == {("case (skipped: killed)", None)}


def test_a_start_of_either_kind(tmp_path):
    """The same batches; measured in this process, whose memory says nothing."""
    benchmark = DataBenchmark(updates=3, vocab_size=300, max_tokens=300)
    cases = []
    benchmark.base = make_corpus(train=12, validation=2, test=0)["train"]
    (tmp_path / "small").mkdir()
    for name, rows in (("small/train", benchmark.base[:10]), ("validation", benchmark.base[10:])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    found = {}
    for name in ("first", "second", "memory"):
        case = benchmark.case(tmp_path / "small", name)
        cases.append(json.loads(json.dumps(case)))
        found[name] = measure(cases[-1], None)
    assert len({one["batches"] for one in found.values()}) == 1
    for one in found.values():
        assert 0 < one["seconds"] < time.time() - cases[0]["started"] and one["tokens_per_second"] > 0
    assert (tmp_path / "small" / ".docmt_cache").is_dir()


@pytest.mark.slow
def test_all_of_it():
    options = {"pairs": 3000, "memory_pairs": 300, "updates": 3, "repeats": 1, "documents": 20, "vocab_size": 400}
    found = DataBenchmark(**options, max_tokens=300).run().to_json()
    assert len(found["rows"]) == 4 * len(UNITS) and all(row["ours"] > 0 for row in found["rows"])
    assert [check["ok"] for check in found["checks"]][:3] == [True] * 3
    assert found["checks"][0]["name"].startswith("the same first batches")
