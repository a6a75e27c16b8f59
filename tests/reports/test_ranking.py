"""Systems as rows: order, ranks and clusters against a slow reading of their definitions."""

import itertools
import random
from dataclasses import replace

import pytest

from hf_docmt.reports.comparison import Comparison, Figure, Row
from hf_docmt.reports.ranking import better_systems, clusters_of, format_ranking, rank_of, ranked
from hf_docmt.reports.significance import Outcome, Pair

SIGNATURE = "segments:sentence|version:1"


def comparison(values, significant, metric="chrF"):
    """Systems with these scores, of which these pairs differ."""
    figures = {name: Figure(value, 10, SIGNATURE, None, None) for name, value in values.items()}
    row = Row(0, "a", "translation", "set", "all", metric, None, None, None, "", "", "", figures)
    pairs = []
    for first, second in itertools.combinations(values, 2):
        test = Outcome(values[second] - values[first], (0, 1), 0.01, 10, {first, second} in significant)
        pairs.append(Pair(0, first, second, test))
    return Comparison(tuple(values), (row,), {"a": SIGNATURE}, next(iter(values)), (), {}, tuple(pairs))


def borders(order, significant):
    """After which systems a cluster ends: no pair across the border is alike."""
    return [
        cut
        for cut in range(1, len(order))
        if all({above, below} in significant for above in order[:cut] for below in order[cut:])
    ]


@pytest.mark.parametrize("seed", range(40))
def test_ranks_and_clusters(seed):
    rng = random.Random(seed)
    values = {name: float(rng.randrange(100)) + n / 10 for n, name in enumerate("abcdef"[: rng.randrange(2, 7)])}
    share = rng.choice((0.3, 0.8, 1.0))
    significant = [set(pair) for pair in itertools.combinations(values, 2) if rng.random() < share]
    found = comparison(values, significant)
    order = sorted(values, key=values.get, reverse=True)
    better = better_systems(found, found.rows[0])
    assert ranked(found.rows[0]) == order
    clusters, cuts = clusters_of(order, better), borders(order, significant)
    for number, system in enumerate(order):
        above = sum({system, other} in significant for other in order[:number])
        below = sum({system, other} in significant for other in order[number + 1 :])
        first, last = 1 + above, len(order) - below
        assert rank_of(system, order, better) == (str(first) if first == last else f"{first}-{last}")
        assert clusters[system] == 1 + sum(cut <= number for cut in cuts)


def test_scores_of_others_say_which_way_is_better():
    """`better:lower` in the signature; figures of neither direction are not ranked, and lines of CSV are whole."""
    found = comparison({"a": 3.0, "b": 1.0}, [])
    assert ranked(found.rows[0]) == ["a", "b"]
    signature = "scores:external|better:lower"
    figures = {name: replace(figure, signature=signature) for name, figure in found.rows[0].figures.items()}
    assert ranked(replace(found.rows[0], figures=figures)) == ["b", "a"]
    assert [line.split(",")[:2] for line in format_ranking(found, "csv").splitlines()[1:]] == [["set", "chrF (a)"]] * 2
    length = comparison({"a": 0.9, "b": 1.1}, [], "length ratio")
    text = format_ranking(replace(found, rows=(*found.rows, *length.rows)))
    assert "Not ranked, since neither more nor less of it is better: length ratio." in text
    assert "length ratio  " not in text
    paired = comparison({"a": 0.9, "b": 1.1}, [{"a", "b"}], "length ratio")
    lines = [line.split(",") for line in format_ranking(paired, "csv").splitlines()]
    assert lines[0][1:7] == ["metric", "system", "n", "rank", "cluster", "score"]
    assert [line[1:7] for line in lines[1:]] == [
        ["length ratio (a)", "a", "10", "", "", "0.90 "],
        ["length ratio (a)", "b", "10", "", "", "1.10 "],
    ]


def test_of_edit_rates_the_lowest_is_the_best():
    found = comparison({"a": 40.0, "b": 30.0, "c": 50.0}, [{"a", "b"}, {"b", "c"}], "TER")
    cells = [line.split(",")[2:6] for line in format_ranking(found, "csv").splitlines()]
    assert cells[0] == ["system", "n", "rank", "cluster"]
    assert cells[1:] == [["b", "10", "1", "1"], ["a", "10", "2-3", "2"], ["c", "10", "2-3", "2"]]
