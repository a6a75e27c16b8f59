"""Contrastive accuracy: ties, breakdown, intervals, statistics, averages over suites, report results."""

import json
import math
import random
from dataclasses import replace

import pytest
from support.errors import refused

from hf_docmt import __version__
from hf_docmt.evaluation.contrastive_accuracy import contrastive_accuracy, item_records
from hf_docmt.evaluation.suites import SuiteItem, average_results
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.signature import Signature


def made(number, correct=0, size=3, phenomenon="p", distance=None, **fields):
    candidates = tuple(f"{number} {index}" for index in range(size))
    name = fields.pop("suite", "i")
    return SuiteItem(f"{name}:{number}", ("s",), (), candidates, correct, phenomenon, distance, **fields)


def accuracy_of(*rows):
    items, scores = [], []
    for number, (phenomenon, distance, labels, correct, row) in enumerate(rows, 1):
        items.append(made(number, correct, len(row), phenomenon, distance, labels=labels))
        scores.append(row)
    return contrastive_accuracy(items, scores)


def verdicts(items, scores):
    return [record["right"] for record in item_records(items, scores)]


def part(right, n):
    """An independent form of Wilson's interval: the shares p with (share - p)² = z² p (1 - p) / n."""
    share, square = right / n, 1.959963984540054**2 / n
    a, b, c = 1 + square, -(2 * share + square), share * share
    root = math.sqrt(b * b - 4 * a * c)
    interval = [100 * (-b - root) / (2 * a), 100 * (-b + root) / (2 * a)]
    return PartScore(pytest.approx(100 * right / n), n, {"interval": pytest.approx(interval, abs=1e-6)})


def test_accuracy_by_hand():
    accuracy = accuracy_of(
        ("it:er", 0, {"intrasegmental": "yes"}, 0, [-1.0, -2.0, -3.0]),
        ("it:er", 4, {"intrasegmental": "no"}, 0, [-2.0, -1.0, -3.0]),
        ("it:es", 4, {"intrasegmental": "no"}, 2, [-2.0, -3.0, -1.0]),
        ("it:es", 7, {}, 1, [-2.0, -2.0]),  # a tie is wrong
        ("it:es", None, {}, 1, [-math.inf, -5.0]),
    )
    assert (accuracy.value, accuracy.n, accuracy.signature["ties"]) == (60.0, 5, "wrong")
    assert accuracy.breakdown == {
        "distance=0": part(1, 1),
        "distance=>3": part(1, 3),
        "intrasegmental=no": part(1, 2),
        "intrasegmental=yes": part(1, 1),
        "phenomenon=it:er": part(1, 2),
        "phenomenon=it:er distance=0": part(1, 1),
        "phenomenon=it:er distance=>3": part(0, 1),
        "phenomenon=it:es": part(2, 3),
        "phenomenon=it:es distance=>3": part(1, 2),
    }
    assert accuracy.details["interval"] == part(3, 5).details["interval"]


@pytest.mark.parametrize(
    ("correct", "row", "wrong", "first"),
    [
        (0, [-1.0, -1.0, -2.0], False, True),
        (1, [-1.0, -1.0, -2.0], False, False),
        (1, [-2.0, -1.0, -1.0], False, True),
        (2, [-2.0, -1.0, -1.0], False, False),
        (1, [-2.0, -1.0, -3.0], True, True),
        (0, [-2.0, -1.0, -1.0], False, False),
        (0, [-math.inf, -math.inf, -math.inf], False, True),
    ],
)
def test_ties(correct, row, wrong, first):
    for format in (None, "contrapro", "lopes", "bawden", "voita"):
        suite, expected = [made(1, correct, format=format)], first if format == "voita" else wrong
        accuracy = contrastive_accuracy(suite, [row])
        assert (accuracy.value, verdicts(suite, [row])) == (100.0 * expected, [expected]), format
        assert accuracy.signature["ties"] == ("first" if format == "voita" else "wrong")


def test_bad_scores():
    with pytest.raises(ValueError, match="item i:2: NaN in its scores"):
        accuracy_of(("p", 1, {}, 0, [-1.0, -2.0]), ("p", 1, {}, 0, [-1.0, math.nan]))
    with pytest.raises(ValueError, match=r"a\.json, item 7: NaN in its scores \[nan, 1\.0, 2\.0\]"):
        contrastive_accuracy([made(1, location="a.json, item 7")], [[math.nan, 1.0, 2.0]])
    items = [made(1), made(2)]
    refused("is shorter", contrastive_accuracy, items, [[1.0, 2.0, 3.0]])
    refused("item i:2: 2 scores for 3 candidates", contrastive_accuracy, items, [[1.0, 2.0, 3.0], [1.0, 2.0]])


def test_statistics_by_group():
    """Any choice of groups has the accuracy that follows from its rows."""
    generator = random.Random(1)
    items = [made(number, group=f"d{number % 4}", format="contrapro") for number in range(40)]
    scores = [[generator.random() for _ in range(3)] for _ in items]
    accuracy = contrastive_accuracy(items, scores)
    statistics = accuracy.details["statistics"]
    assert statistics["unit"] == "document" and statistics["ids"] == ["d0", "d1", "d2", "d3"]
    for name, row in zip(statistics["ids"], statistics["rows"]):
        own = [right for item, right in zip(items, verdicts(items, scores)) if item.group == name]
        assert row == [sum(own), len(own)]
    pairs = contrastive_accuracy([made(n, format="voita", group=f"i:{n // 2}") for n in range(4)], scores[:4]).details[
        "statistics"
    ]
    assert pairs["unit"] == "context" and [n for _, n in pairs["rows"]] == [2, 2]
    alone = contrastive_accuracy([made(number, format="voita") for number in range(3)], scores[:3]).details[
        "statistics"
    ]
    assert alone["unit"] == "item" and alone["ids"] == ["i:0", "i:1", "i:2"]
    assert [n for _, n in alone["rows"]] == [1, 1, 1]


def bawden_block(number):
    """Four pairs with the same two translations, each right twice."""
    for index in range(4):
        texts = (f"{number} ils", f"{number} elles")
        labels = {"kind": "correct" if index < 2 else "semi-correct", "type": ("m.pl", "f.pl")[index % 2]}
        yield SuiteItem(
            f"anaphora:{4 * number + index}",
            ("before", f"s{number}"),
            (f"avant {index}",),
            texts if index % 2 else texts[::-1],
            0,
            "anaphora",
            None,
            labels,
            group=f"anaphora:{number}",
            group_size=4,
            format="bawden",
        )


def test_bawden_blocks():
    items = [item for number in range(5) for item in bawden_block(number)]
    right = [True] * 4 + [True, True, True, False] + [False] * 4 + [True] * 4 + [True, False] * 2
    accuracy = contrastive_accuracy(items, [[1.0, 0.0] if found else [0.0, 1.0] for found in right])
    assert accuracy.value == 65.0
    assert accuracy.breakdown["block=all right"] == part(2, 5)
    assert accuracy.breakdown["kind=semi-correct"] == part(6, 10) and accuracy.breakdown["kind=correct"] == part(7, 10)
    assert accuracy.breakdown["type=f.pl"] == part(5, 10)
    assert accuracy.details["statistics"] == {
        "unit": "block",
        "ids": [f"anaphora:{number}" for number in range(5)],
        "rows": [[4, 4], [3, 4], [0, 4], [4, 4], [2, 4]],
    }
    assert "block=all right" not in contrastive_accuracy([made(1, group="d")], [[1.0, 2.0, 3.0]]).breakdown
    part_of = contrastive_accuracy(
        items[2:10], [[1.0, 0.0]] * 8
    )  # half of the first block, the second, half of the third
    assert part_of.breakdown["block=all right"] == part(1, 1) and part_of.n == 8
    assert "block=all right" not in contrastive_accuracy(items[2:6], [[1.0, 0.0]] * 4).breakdown


def result_of(items, share=0.5, seed=1, dataset="d"):
    generator = random.Random(seed)
    scores = [[1.0, *([0.0 if generator.random() < share else 2.0] * (len(i.candidates) - 1))] for i in items]
    return contrastive_accuracy(items, scores, dataset=dataset, how_scored={"logprob": "sum"})


def test_contrapro_averages():
    sizes = {0: 2400, 1: 7075, 2: 1510, 3: 573, 4: 300, 8: 142}
    items = [
        made(n, phenomenon="it:er", distance=far, format="contrapro")
        for far, size in sizes.items()
        for n in range(size)
    ]
    accuracy = result_of(items, 0.7, dataset="contrapro")
    found = {one.metric: one for one in average_results([accuracy])}
    by = {d: accuracy.breakdown[f"distance={d}"].value for d in ("0", "1", "2", "3", ">3")}
    assert found["CP"].value == pytest.approx(accuracy.value)  # with the published sizes the two are one
    assert found["CP_d>0"].value == pytest.approx(
        (7075 * by["1"] + 1510 * by["2"] + 573 * by["3"] + 442 * by[">3"]) / 9600
    )
    assert found["CP_avg"].value == pytest.approx((by["1"] + by["2"] + by["3"] + by[">3"]) / 4)
    assert [found[name].n for name in ("CP", "CP_d>0", "CP_avg")] == [12000, 9600, 9600]
    assert {(str(one.signature), one.dataset) for one in found.values()} == {
        (str(accuracy.signature.without("data")), "contrapro")
    }


def test_published_row_of_averages():
    """The row `s4to4` of the tables of Lupo et al. (2023), appendix F."""
    about = {
        "task": "contrastive",
        "split": "all",
        "metric": "accuracy",
        "signature": Signature.parse("s"),
        "value": 0.0,
        "n": 1,
    }
    by = {"0": 75.20, "1": 68.89, "2": 74.96, "3": 79.58, ">3": 87.78}
    breakdown = {f"distance={name}": PartScore(value, 1) for name, value in by.items()}
    found = average_results([Result(**about, dataset="cp", breakdown=breakdown, details={"format": "contrapro"})])
    assert [round(one.value, 2) for one in found] == [72.12, 71.35, 77.80]
    values = {"deixis_test": 85.80, "lex_cohesion_test": 46.13, "ellipsis_infl": 79.60, "ellipsis_vp": 73.20}
    results = [
        Result(**{**about, "value": value}, dataset=name, details={"format": "voita", "suite": name})
        for name, value in values.items()
    ]
    found = average_results(results)
    assert [(one.metric, one.dataset, round(one.value, 2)) for one in found] == [
        ("Voita", "voita_test", 72.02),
        ("Voita_avg", "voita_test", 71.18),
    ]
    assert average_results(results[:3]) == []
    other = replace(results[3], signature=Signature.parse("t"))
    assert average_results([*results[:3], other]) == []  # measured in another way
    development = [one.with_details({"suite": one.dataset.replace("test", "dev")}) for one in results]
    both = average_results([*results[:2], *development])
    assert [one.dataset for one in both] == ["voita_dev", "voita_dev", "voita_test", "voita_test"]


def test_result_of_the_report():
    items = [made(1, distance=1, size=2, format="voita", suite="deixis_dev")]
    items += [made(2, distance=2, size=2, format="voita", suite="deixis_dev")]
    how_scored = {"logprob": "mean", "past": 3}
    result = contrastive_accuracy(items, [[-1.0, -2.0], [-2.0, -1.0]], split="test", how_scored=how_scored)
    assert (result.task, result.metric, result.value, result.n) == ("contrastive", "accuracy", 50.0, 2)
    assert str(result.signature.without("data")) == f"logprob:mean|past:3|ties:first|version:{__version__}"
    assert result.breakdown["distance=2"] == part(0, 1)
    assert "phenomenon=p distance=2" not in result.breakdown  # with one phenomenon it says the same
    details = result.details
    assert (details["format"], details["suite"]) == ("voita", "deixis_dev")
    assert details["context"] == {"past": 0, "future": 0, "items without past": 2}
    report = Report(model={"name": "m"}, data={}, results=[result])
    assert Report.from_dict(json.loads(json.dumps(report.to_dict()))) == report and "50.00" in str(report)


def test_chance():
    """The accuracy of guessing, over items with different numbers of candidates; random scores come near it."""
    items = [made(number, size=2 + number % 3) for number in range(3000)]
    generator = random.Random(2)
    accuracy = contrastive_accuracy(items, [[generator.random() for _ in item.candidates] for item in items])
    assert accuracy.details["chance"] == pytest.approx(100 * (1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert accuracy.value == pytest.approx(accuracy.details["chance"], abs=3)
