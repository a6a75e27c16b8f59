"""Records of items: their contents, runs that were interrupted at any byte, files of other runs."""

import json
from types import SimpleNamespace

import pytest
from support.errors import refused
from support.systems import ITEMS

from hf_docmt.evaluation.contrast import (
    context_results,
    contrast_report,
    items_between,
    score_file_report,
    write_scores,
)
from hf_docmt.evaluation.item_records import ItemRecords
from hf_docmt.systems import ContextReach


class Lengths:
    """Scores by length; counts the items that it is asked about."""

    name, kind = "lengths", "lengths"
    context, languages = ContextReach(3), (None, None)

    def __init__(self, weights="w1"):
        self.weights, self.asked = weights, 0

    def token_log_probabilities(self, items):
        self.asked += len(items)
        return [[[-0.1 * len(word) for word in candidate.split()] for candidate in item.candidates] for item in items]

    def describe(self):
        return {"name": self.name}

    def fingerprint(self):
        return self.weights


def run(path, system, chunk=3, items=ITEMS, **options):
    file = ItemRecords(path)
    records = file.records
    file.records = lambda *arguments, **facts: records(*arguments, chunk=chunk, **facts)
    results = context_results(
        system, items, dataset="d", conditions=("true", "empty"), details=file, samples=5, **options
    )
    file.finish()
    return [result.value for result in results]


def test_records(tmp_path):
    path = tmp_path / "details.jsonl"
    values = run(path, Lengths())
    assert values == run(None, Lengths())
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [record["item"] for record in records] == [item.item_id for item in ITEMS] * 2
    for record, item in zip(records, ITEMS):
        assert record["source"] == list(item.source) and record["target_context"] == list(item.target_context)
        assert record["candidates"] == list(item.candidates) and record["correct"] == item.correct
        scores = [-0.1 * sum(map(len, candidate.split())) for candidate in item.candidates]
        assert record["scores"] == pytest.approx(scores)
        assert record["right"] is (scores[0] > max(scores[1:]))
    assert {len(record["source"]) for record in records[len(ITEMS) :]} == {1}
    assert 100 * sum(record["right"] for record in records[: len(ITEMS)]) / len(ITEMS) == pytest.approx(values[0])


def test_interrupted_at_any_byte(tmp_path):
    """The file ends as that of a run without interruption, and no whole chunk is scored twice."""
    path = tmp_path / "details.jsonl"
    values = run(path, Lengths())
    whole = path.read_bytes()
    for size in [0, 1, 5, *range(17, len(whole), 211), len(whole) - 1, len(whole)]:
        path.write_bytes(whole[:size])
        system = Lengths()
        assert run(path, system) == values and path.read_bytes() == whole
        done = whole[:size].count(b"\n")
        first = min(done, len(ITEMS))
        second = done - first
        kept = sum(n if n == len(ITEMS) else n // 3 * 3 for n in (first, second))
        assert system.asked == 2 * len(ITEMS) - kept


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"system": Lengths("w2")}, "line 1: of another run, model is w1 there and w2 here; give another file"),
        ({"normalization": "mean"}, "line 1: of another run, logprob is sum there and mean here"),
        ({"items": ITEMS[:-1]}, "line 1: of another run, items is [0-9a-f]{12} there and [0-9a-f]{12} here"),
    ],
)
def test_files_of_other_runs(tmp_path, change, message):
    path = tmp_path / "details.jsonl"
    run(path, Lengths())
    before = path.read_bytes()
    system = change.pop("system", Lengths())
    refused(rf"details\.jsonl, {message}", run, path, system, **change)
    assert path.read_bytes() == before and system.asked == 0


def test_files_of_more_than_the_run(tmp_path):
    path = tmp_path / "details.jsonl"
    run(path, Lengths())
    file = ItemRecords(path)
    context_results(Lengths(), ITEMS, dataset="d", conditions=("true",), details=file)
    refused(rf"line {len(ITEMS) + 1}: item 'suite:1', but this run ends before it", file.finish)


def test_damage_is_reported(tmp_path):
    path = tmp_path / "details.jsonl"
    run(path, Lengths())
    damaged = path.read_bytes().replace(b"suite:1", b"suite:7", 1)
    path.write_bytes(damaged)
    refused("details.jsonl, line 1: no row, or it was changed .*another file", run, path, Lengths())
    assert path.read_bytes() == damaged


def test_paths():
    refused("details go to a file", ItemRecords, "-")
    refused("cannot write", ItemRecords, "/no/such/folder/details.jsonl")


def test_details_of_suites_and_of_scores(lopes, tmp_path):
    """Through the suites' files, with `limit`; and from a file of scores."""
    folder, path = lopes(), tmp_path / "details.jsonl"
    (result,) = contrast_report(Lengths(), [folder], limit=2, details=path).results
    first, second = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    assert (result.n, result.split, first["phenomenon"], second["suite"]) == (2, "items 1-2", "elle", "OpenSubs")
    assert first["candidates"] == ["Elle est rouge.", "Il est rouge."]
    write_scores(tmp_path / "scores", [first["scores"], second["scores"]])
    again = tmp_path / "again.jsonl"
    report = score_file_report("theirs", folder, tmp_path / "scores", limit=2, details=again)
    found = [json.loads(line) for line in again.read_text("utf-8").splitlines()]
    assert report.results[0].value == result.value
    assert [(one["scores"], one["right"]) for one in found] == [
        (one["scores"], one["right"]) for one in (first, second)
    ]
    write_scores(tmp_path / "scores", [second["scores"], first["scores"]])
    with pytest.raises(ValueError, match="of another run, numbers is"):
        score_file_report("theirs", folder, tmp_path / "scores", limit=2, details=again)


def test_limit():
    items = [SimpleNamespace(suite="s")] * 5
    assert [items_between(items, None, limit)[1] for limit in (None, 2, 5, 9)] == ["all", "items 1-2", "all", "all"]
    assert len(items_between(items, None, 2)[0]) == 2 and len(items_between(items, None, 9)[0]) == 5
    refused("limit is 0, items None", items_between, items, None, 0)
    refused(r"limit is 2, items \(1, 3\): give a limit of 1 or more, or a part", items_between, items, (1, 3), 2)
