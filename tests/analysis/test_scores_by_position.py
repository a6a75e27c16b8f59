"""Difference of s-BLEU by index: against sacrebleu, one index at a time; intervals; the command."""

import json

import pytest
import sacrebleu
from support.errors import refused
from support.reader_checks import jsonl
from support.tiny_models import random_text

from hf_docmt.analysis.translation_files import by_index, by_index_files
from hf_docmt.reports.result import PartScore

LENGTHS = [5, 3, 12, 1]


def sides():
    references = [random_text([8] * length, seed=n) for n, length in enumerate(LENGTHS)]
    found = []
    for share in (3, 6):  # words that stay as they are
        other = [random_text([8 - share] * length, seed=50 + n + share) for n, length in enumerate(LENGTHS)]
        found.append(
            [[" ".join([*ref.split()[:share], more]) for ref, more in zip(*pair)] for pair in zip(references, other)]
        )
    return found[1], found[0], references


def bleu_at(side, references, index):
    pairs = [(one[index], ref[index]) for one, ref in zip(side, references) if index < len(ref)]
    return sacrebleu.corpus_bleu([one for one, _ in pairs], [[ref for _, ref in pairs]]).score


def test_mean_over_the_indices():
    system, baseline, references = sides()
    found = by_index(system, baseline, references, samples=20)
    assert [one.label for one in found] == ["1-10", "11-12"] and [one.n for one in found] == [19, 2]
    for one in found:
        indices = range(one.first - 1, one.last)
        for name, side in (("system", system), ("baseline", baseline)):
            scores = [bleu_at(side, references, index) for index in indices]
            assert getattr(one, name) == pytest.approx(sum(scores) / len(scores))
        assert one.difference > 10
    low, high = found[0].interval
    assert low <= found[0].difference <= high and found[1].interval is None  # only one document is so long
    assert [one.label for one in by_index(system, baseline, references, every=1, samples=0)][:2] == ["1", "2"]


def test_equal_systems_do_not_differ():
    system, _, references = sides()
    found = by_index(system, system, references, every=4, samples=20)
    assert [one.difference for one in found] == [0, 0, 0] and found[0].interval == (0, 0)


def test_bad_input(tmp_path):
    system, baseline, references = sides()
    refused("at least 1 index, got every=0", by_index, system, baseline, references, every=0)
    refused("document 1: 4 translated sentences for 5", by_index, system, [baseline[0][:-1], *baseline[1:]], references)


def files(tmp_path):
    paths = [tmp_path / f"{name}.jsonl" for name in ("new", "old", "talks")]
    for path, side in zip(paths, sides()):
        rows = [{"doc_id": f"d{number}", "translation": document} for number, document in enumerate(side)]
        if path.stem == "talks":
            rows = [row | {"translation": [{"en": "x", "de": text} for text in row["translation"]]} for row in rows]
        path.write_text(jsonl(rows if path.stem == "new" else rows[::-1]))
    return paths


def test_files_in_any_order(tmp_path):
    ranges, report = by_index_files(*files(tmp_path), source_lang="en", target_lang="de", samples=0)
    direct = by_index(*sides(), samples=0)
    assert [one.difference for one in ranges] == pytest.approx([one.difference for one in direct])
    (result,) = report.results
    assert (report.model["name"], report.data["baseline"]) == ("new", "old")
    assert result.breakdown["index=11-12"] == PartScore(ranges[1].difference, 2)
    assert result.value == pytest.approx((10 * ranges[0].difference + 2 * ranges[1].difference) / 12)


def test_command(run, tmp_path):
    pytest.importorskip("matplotlib")
    command = ("analyze", "by-index", *files(tmp_path), "--source-lang", "en", "--target-lang", "de", "--samples", 20)
    code, out, err = run(*command, "--picture", tmp_path / "index.svg", "-o", tmp_path / "index.json")
    assert (code, err) == (0, "") and [line.split()[0] for line in out.splitlines()[2:]] == ["1-10", "11-12"]
    assert "difference of s-BLEU" in (tmp_path / "index.svg").read_text()
    code, out, _ = run(*command, "--json", "--every", 5)
    assert list(json.loads(out)["results"][0]["breakdown"]) == ["index=1-5", "index=6-10", "index=11-12"]
    code, _, err = run("analyze", "by-index", *files(tmp_path), "--picture", tmp_path / "index.pdf")
    assert code == 1 and "ends in .png or .svg" in err
