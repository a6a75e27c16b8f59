"""Reports beside each other: what shares a row, names, breakdown, intervals, tests against a baseline, refusals."""

import itertools
import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from support.errors import refused

from hf_docmt.reports.comparison import compare_reports, select_breakdown
from hf_docmt.reports.measurement import group_signature
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.significance import compare_systems

EXAMPLES = [
    Path(__file__).resolve().parents[2] / "examples" / "reports" / f"demo_{n}.json" for n in ("sentence", "concat")
]
SIGNATURE = "logprob:sum|past:3|version:1"
NO_STATISTICS = "Not tested, no statistics in the reports: pronoun {}."
NO_BASELINE = "Not tested, no figure of a in the row: pronoun {}."


def result(value=50.0, signature=SIGNATURE, **changes):
    given = {"task": "contrastive", "dataset": "pronoun", "split": "test", "metric": "accuracy", "n": 20}
    return Result(**{**given, "signature": Signature.parse(signature), "value": value, **changes})


def report(name, *results):
    return Report(model={"name": name}, data={}, results=results)


def cells(comparison):
    """(dataset, metric, part) and values by system, of every row."""
    return [
        (row.dataset, row.metric, row.part, {system: figure.value for system, figure in row.figures.items()})
        for row in comparison.rows
    ]


def test_same_signature_shares_a_row():
    found = compare_reports([report("a", result(40.0)), report("b", result(60.0), result(30.0, metric="chrF"))])
    assert found.systems == ("a", "b")
    assert cells(found) == [
        ("pronoun", "accuracy", "", {"a": 40.0, "b": 60.0}),
        ("pronoun", "chrF", "", {"b": 30.0}),
    ]
    assert found.signatures == {"a": SIGNATURE} and found.settings == {"a": {}, "b": {}}
    assert found.notes == (NO_STATISTICS.format("accuracy of b"), NO_BASELINE.format("chrF of b"))
    assert [row.letter for row in found.rows] == ["a", "a"]
    assert found.rows[0].figures["b"].signature == SIGNATURE


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({"signature": "logprob:mean|past:3|version:2"}, "logprob"),
        ({"signature": "logprob:mean|past:3|ties:first"}, "logprob, ties"),
        ({"signature": "logprob:sum|past:3|version:1|norm:no"}, "norm"),
        ({"signature": "logprob:sum|case:lc|past:3|case:mixed"}, "case"),
    ],
)
def test_another_measurement_has_another_row(change, keys):
    found = compare_reports([report("a", result(40.0)), report("b", result(60.0, **change)), report("c", result(70.0))])
    assert [values for *_, values in cells(found)] == [{"a": 40.0, "c": 70.0}, {"b": 60.0}]
    assert [row.letter for row in found.rows] == ["a", "b"]
    assert found.notes[0].startswith(f"Rows apart because of different {keys}: pronoun accuracy.")


def test_other_texts_under_the_same_name_have_a_row_of_their_own():
    """A corrected reference, whose digest is another one; reports without a digest share the row that is there."""
    first, corrected = (result(50.0, signature=f"{SIGNATURE}|data:{digest}") for digest in ("0000aaaa", "1111bbbb"))
    found = compare_reports([report("a", first), report("b", corrected), report("c", result(70.0))])
    assert [values for *_, values in cells(found)] == [{"a": 50.0, "c": 70.0}, {"b": 50.0}]
    assert found.notes[0] == "Rows apart because of different references or sources (data): pronoun accuracy."
    assert found.signatures == {"a": f"{SIGNATURE}|data:0000aaaa", "b": f"{SIGNATURE}|data:1111bbbb"}
    refused("b and a cannot be compared: different data", compare_systems, {"a": first, "b": corrected}, "a")


def test_order_of_a_signature_is_part_of_it():
    one, other = (result(50.0, signature=text) for text in ("case:lc|tok:13a", "tok:13a|case:lc"))
    found = compare_reports([report("a", one), report("b", other)])
    assert len(found.rows) == 2 and "different order of the signature: pronoun accuracy." in found.notes[0]


@pytest.mark.parametrize(
    ("change", "settings", "signature"),
    [
        ({"strategy": "sliding"}, {"strategy": ("-", "sliding")}, SIGNATURE),
        ({"beams": 4}, {"beams": ("-", "4")}, SIGNATURE),
        ({"signature": "logprob:sum|past:all|version:1"}, {"past": ("3", "all")}, "logprob:sum|version:1"),
        ({"signature": "logprob:sum|version:1"}, {"past": ("3", "-")}, "logprob:sum|version:1"),
        ({"signature": "logprob:sum|past:3|version:2"}, {}, "logprob:sum|past:3|version:1/2"),
        (
            {"signature": "logprob:sum|past:0|future:1|target-context:none|version:1", "strategy": "sentence"},
            {"past": ("3", "0"), "future": ("-", "1"), "target-context": ("-", "none"), "strategy": ("-", "sentence")},
            "logprob:sum|version:1",
        ),
    ],
)
def test_column_heads_describe_systems(change, settings, signature):
    """Strategy, beams and context never separate figures; the signature keeps what is the same."""
    found = compare_reports([report("a", result(40.0)), report("b", result(60.0, **change))])
    assert cells(found) == [("pronoun", "accuracy", "", {"a": 40.0, "b": 60.0})]
    assert found.settings == {
        system: {key: (values[number],) for key, values in settings.items() if values[number] != "-"}
        for number, system in enumerate("ab")
    }
    assert found.signatures == {"a": signature}
    versions = "Measured by different versions, see the signatures: pronoun accuracy."
    assert (versions in found.notes) == ("1/2" in signature)
    assert [figure.signature for figure in found.rows[0].figures.values()][0] == SIGNATURE


def test_another_split_or_dataset_is_another_score():
    others = [result(60.0, split="dev"), result(61.0, dataset="deixis"), result(1.0, task="discourse"), result(2.0)]
    other = report("b", *others)
    found = compare_reports([report("a", result(40.0)), other])
    assert [values for *_, values in cells(found)] == [{"a": 40.0, "b": 2.0}, {"b": 60.0}, {"b": 61.0}, {"b": 1.0}]
    assert all(note.startswith("Not tested") for note in found.notes)


def test_what_else_may_differ():
    reports = [
        report("a", result(40.0, signature="logprob:sum|past:0", strategy="sentence", beams=1)),
        report("b", result(50.0, signature="logprob:mean|past:3", strategy="sliding", beams=1)),
        report("c", result(60.0, dataset="deixis", signature="logprob:sum|past:3", strategy="sliding", beams=1)),
    ]
    found = compare_reports(reports, may_differ=("logprob",))
    assert found.signatures == {"a": "", "b": "logprob:sum|past:3"}
    assert found.settings == {
        "a": {"strategy": ("sentence",), "logprob": ("sum",), "past": ("0",)},
        "b": {"strategy": ("sliding",), "logprob": ("mean",), "past": ("3",)},
        "c": {"strategy": ("sliding",), "logprob": ("sum",), "past": ("3",)},
    }
    row = found.rows[0]
    assert (row.strategy, row.beams) == (None, 1)
    assert [(f.strategy, f.signature) for f in row.figures.values()] == [
        ("sentence", "logprob:sum|past:0"),
        ("sliding", "logprob:mean|past:3"),
    ]


def test_examples():
    """The two reports of the repository share all rows, with the first system as baseline."""
    found = compare_reports(EXAMPLES)
    assert len(found.rows) == 8 and all(list(row.figures) == ["sentence", "concat"] for row in found.rows)
    for system, one in zip(found.systems, map(Report.read, EXAMPLES)):
        assert [row.figures[system].value for row in found.rows] == [result.value for result in one.results]
    assert found.settings == {
        "sentence": {"strategy": ("sentence",), "past": ("0",)},
        "concat": {"strategy": ("sliding",), "past": ("3",)},
    }
    assert found.baseline == "sentence" and all(row.figures["concat"].test.p_value < 0.05 for row in found.rows[4:])


def test_column_heads_use_facts_of_the_model():
    """Configurations that all systems have; search settings always; context from it where no signature says it."""
    shared = {"d_model": 64, "view": "window"}
    configs = [
        {"architecture": "concat", "config": {**shared, "encoding": "shift", "past_context": 3}},
        {"architecture": "memory", "config": {**shared, "encoding": "none", "past_context": 9, "memory_size": 4}},
        {"config": {**shared, "encoding": "none", "repairs": "none"}},
    ]
    results = [result(signature="tok:13a"), result(signature="past:all|tok:13a"), result(signature="tok:13a")]
    reports = [
        replace(report(name, one), model={"name": name, **config}) for name, one, config in zip("abc", results, configs)
    ]
    assert compare_reports(reports).settings == {
        "a": {"architecture": ("concat",), "past": ("3",), "encoding": ("shift",)},
        "b": {"architecture": ("memory",), "past": ("all",), "encoding": ("none",)},
        "c": {"encoding": ("none",), "repairs": ("none",)},
    }


def test_letters_go_on_after_z():
    results = [result(dataset=f"d{n}", signature=f"seed:{n}") for n in range(54)]
    assert list(compare_reports([report("a", *results)]).signatures)[24:] == (
        ["y", "z", *(f"a{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"), "ba", "bb"]
    )


def part(value, n=10, **details):
    return PartScore(value, n, details)


PARTS = {
    "distance=0": part(1.0, interval=[0.5, 2]),
    "distance=>3": part(2.0),
    "phenomenon=it:er": part(3.0),
    "phenomenon=it:er distance=0": part(4.0),
    "style=a=b c": part(5.0),
    "CP average": part(6.0),
}


@pytest.mark.parametrize(
    ("breakdown", "expected"),
    [
        ("none", []),
        ("all", [*PARTS, "distance=1"]),
        ("distance", ["distance=0", "distance=>3", "distance=1"]),
        ("phenomenon", ["phenomenon=it:er"]),
        ("phenomenon distance", ["phenomenon=it:er distance=0"]),
        ("phenomenon=it", ["phenomenon=it:er", "phenomenon=it:er distance=0"]),
        ("distance=>", ["distance=>3"]),
        ("CP", ["CP average"]),
    ],
)
def test_breakdown(breakdown, expected):
    one, two = result(breakdown=PARTS), result(breakdown={"distance=1": part(7.0), "distance=0": part(8.0)})
    found = compare_reports([report("a", one), report("b", two)], breakdown=breakdown)
    assert [row.part for row in found.rows] == ["", *expected]
    assert {row.group for row in found.rows} == {0}
    for row in found.rows[1:]:
        values = {"a": one.breakdown.get(row.part), "b": two.breakdown.get(row.part)}
        assert {s: f.value for s, f in row.figures.items()} == {s: v.value for s, v in values.items() if v}


@pytest.mark.parametrize("breakdown", ["none", "distance", "phenomenon distance", "CP"])
def test_parts_selected_later(breakdown):
    reports = [report("a", result(breakdown=PARTS)), report("b", result())]
    everything = compare_reports(reports, breakdown="all")
    assert select_breakdown(everything, breakdown) == compare_reports(reports, breakdown=breakdown)
    refused("no result is broken down by 'length'", select_breakdown, everything, "length")


def test_intervals():
    one = result(breakdown=PARTS, details={"interval": [45.5, 60]})
    found = compare_reports([report("a", one)], breakdown="distance")
    assert [row.figures["a"].interval for row in found.rows] == [(45.5, 60), (0.5, 2), None]


def test_different_numbers_of_items_are_reported():
    found = compare_reports([report("a", result(n=20)), report("b", result(n=19))])
    assert [figure.n for figure in found.rows[0].figures.values()] == [20, 19]
    assert found.notes[0] == "Systems scored on different numbers of items, n in their order: pronoun accuracy."


def test_equal_names_are_distinguished(tmp_path):
    paths = []
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "report.json")
        report("m", result()).write(paths[-1])
    other = tmp_path / "x" / "other.json"
    report("m", result()).write(other)
    assert compare_reports([paths[0], other]).systems == ("m (report)", "m (other)")
    assert compare_reports([*paths, report("n", result())]).systems == ("m (x/report)", "m (y/report)", "n")
    some = compare_reports([report("n", result()), report("m", result()), paths[0]])
    assert some.systems == ("n", "m (report 2)", "m (report 3)")
    assert compare_reports(paths, names=["one", "two"], baseline="two").systems == ("one", "two")
    refused(r"report\.json: given twice", compare_reports, [paths[0], paths[0].parent / ".." / "x" / "report.json"])
    refused("unknown baseline 'm': the systems are m .x/report., m .y/report.", compare_reports, paths, baseline="m")


def accuracy(right, seen, ids=None, **changes):
    """An accuracy with its statistics: items right in each document, and items seen."""
    statistics = {"unit": "document", "ids": [f"d{n}" for n in range(len(right))], "rows": list(zip(right, seen))}
    details = {"statistics": statistics | {"ids": ids or statistics["ids"]}}
    return result(100 * sum(right) / sum(seen), n=sum(seen), details=details, **changes)


def exact_p(base, other):
    """p of approximate randomisation if all ways of exchanging documents are tried; 10 items in every document."""
    observed = abs(sum(other) - sum(base))
    ways = itertools.product((1, -1), repeat=len(base))
    differences = [abs(sum(way * (o - b) for way, b, o in zip(signs, base, other))) for signs in ways]
    return sum(found >= observed for found in differences) / len(differences)


BASE, BETTER, SAME = [5] * 8, [9, 8, 9, 10, 9, 8, 9, 9], [5, 6, 4, 5, 6, 4, 5, 5]


def test_difference_from_the_baseline():
    reports = [report(name, accuracy(right, [10] * 8)) for name, right in zip("abc", (BASE, BETTER, SAME))]
    found = compare_reports(reports, baseline="a", method="randomisation", samples=2000)
    tests = [found.rows[0].figures[system].test for system in "abc"]
    assert tests[0] is None and found.baseline == "a"
    assert [test.delta for test in tests[1:]] == [38.75, 0.0]
    assert [test.significant for test in tests[1:]] == [True, False]
    for test, right in zip(tests[1:], (BETTER, SAME)):
        assert test.p_value == pytest.approx(exact_p(BASE, right), abs=0.01)
        assert test.documents == 8 and test.interval[0] <= test.delta <= test.interval[1]
    (note,) = found.notes
    drawn = "randomisation over documents, 2000 samples, seed 1"
    assert note == f"* differs from a with p by Holm < 0.05 ({drawn}); 2 tests."
    level = exact_p(BASE, BETTER) / 2
    strict = compare_reports(reports, baseline="a", method="randomisation", samples=2000, level=level)
    assert not any(figure.test and figure.test.significant for figure in strict.rows[0].figures.values())


def test_parts_are_not_tested():
    """The statistics are those of the whole score."""
    reports = [report(name, accuracy(right, [10] * 8, breakdown=PARTS)) for name, right in zip("ab", (BASE, BETTER))]
    found = compare_reports(reports, baseline="a", breakdown="distance")
    assert [row.figures["b"].test is not None for row in found.rows] == [True, False, False]


def test_a_test_does_not_depend_on_the_other_columns():
    reports = [report(name, accuracy(right, [10] * 8)) for name, right in zip("abc", (BASE, SAME, BETTER))]
    both, one = compare_reports(reports, baseline="a"), compare_reports(reports[::2], baseline="a")
    test = both.rows[0].figures["c"].test
    assert replace(test, holm=test.p_value) == one.rows[0].figures["c"].test and test.holm == 2 * test.p_value


def test_the_first_system_is_the_baseline():
    sentence = accuracy(BASE, [10] * 8, signature="logprob:sum|past:0", strategy="sentence")
    sliding = accuracy(BETTER, [10] * 8, signature="logprob:sum|past:3", strategy="sliding")
    reports = [report("a", sentence), report("b", sliding)]
    found = compare_reports(reports)
    assert found.baseline == "a" and found == compare_reports(reports, baseline="a")
    assert found.rows[0].figures["a"].test is None and found.rows[0].figures["b"].test.significant
    turned = compare_reports(reports, baseline="b").rows[0].figures
    assert turned["b"].test is None and turned["a"].test.delta == -found.rows[0].figures["b"].test.delta
    alone = compare_reports(reports[:1])
    assert alone.baseline is None and alone.notes == ()


def test_the_note_names_the_unit_drawn():
    reports = [report(name, accuracy(right, [10] * 8)) for name, right in zip("ab", (BASE, BETTER))]
    for one in reports:
        one.results[0].details["statistics"]["unit"] = "context"
    (note,) = compare_reports(reports, baseline="a").notes
    assert "(bootstrap over contexts, 1000 samples, seed 1)" in note


def test_statistics_of_other_units_are_not_tested():
    """0.1.0 resampled items of a suite whose contexts are resampled now."""
    reports = [report(name, accuracy(right, [10] * 8)) for name, right in zip("ab", (BASE, BETTER))]
    reports[0].results[0].details["statistics"]["unit"] = "item"
    found = compare_reports(reports)
    assert len(found.rows) == 1 and found.rows[0].figures["b"].test is None
    reason = "statistics of each item and of each document; evaluate both with one --unit, by one version"
    assert found.notes == (f"Not tested, {reason}: pronoun accuracy of b.",)


def test_other_documents_have_a_row_of_their_own():
    other = [f"e{n}" for n in range(8)]
    reports = [
        report("a", accuracy(BASE, [10] * 8), accuracy(SAME, [10] * 8, other)),
        report("b", accuracy(BETTER, [10] * 8, other)),
        report("c", result(70.0)),  # without statistics nothing tells its documents
    ]
    found = compare_reports(reports, baseline="a")
    assert [list(row.figures) for row in found.rows] == [["a", "c"], ["a", "b"]]
    assert found.rows[1].figures["b"].test.significant
    assert found.notes[0] == "Rows apart because of different documents: pronoun accuracy."
    assert compare_reports(reports[:1]).notes == found.notes[:1]  # two rows with the same systems
    reports[1] = report("b", accuracy(BETTER, [10] * 8, other, signature="logprob:mean|past:3|version:1"))
    (note, *_) = compare_reports(reports).notes
    assert note.startswith("Rows apart because of different logprob, documents: pronoun accuracy. What may differ")


def test_untestable_figures_are_reported():
    base, other, broken = (accuracy(right, [10] * 8) for right in (BASE, BETTER, SAME))
    turned = accuracy(BETTER, [10] * 8, ids=[f"d{n}" for n in reversed(range(8))])
    broken = replace(broken, value=77.0)
    empty = accuracy([0, 9] + [0] * 6, [0, 10] + [0] * 6)
    alone = accuracy([0, 9] + [0] * 6, [0, 10] + [0] * 6, dataset="deixis")
    results = ([base, alone], [other, alone], [turned], [broken], [result()], [empty])
    found = compare_reports([report(name, *own) for name, own in zip("abcdef", results)], baseline="a")
    assert {s for row in found.rows for s, figure in row.figures.items() if figure.test} == {"b", "f"}
    marker, note, *notes = found.notes[1], *sorted(found.notes[2:])
    assert marker.startswith("* differs from a with p by Holm < 0.05 (bootstrap") and "; 2 tests." in marker
    assert note.startswith("Not tested, d: ") and "77.0000" in note and note.endswith(": pronoun accuracy of d.")
    assert notes == [
        "Not tested, fewer than two documents with something to score: deixis accuracy of b.",
        "Not tested, no statistics in the reports: pronoun accuracy of e.",
        "Not tested, scored on other documents than the baseline, or in another order, from document 1 on: pronoun "
        "accuracy of c.",
    ]
    only = compare_reports([report("a", result()), report("b", result())], baseline="a")
    assert only.notes == ("Not tested, no statistics in the reports: pronoun accuracy of b.",)


def runs_of(name, *values, **changes):
    return [report(f"{name}-seed{n}", result(value, **changes)) for n, value in enumerate(values, 1)]


def test_runs_of_one_system():
    parts = [{"distance=0": part(value), "distance=1": part(1.0)} for value in (20.0, 22.0, 27.0)]
    reports = [report(f"b-seed{n}", result(50.0 + n, breakdown=found)) for n, found in enumerate(parts, 1)]
    del reports[2].results[0].breakdown["distance=1"]
    reports = [*runs_of("a", 40.0, 41.0, 45.0, strategy="sentence"), *reports, report("c", result(30.0))]
    found = compare_reports(reports, runs=r"-seed\d+", breakdown="all")
    assert found.systems == ("a", "b", "c") and found.baseline == "a"
    whole, near, far = found.rows
    assert (whole.figures["a"].value, whole.figures["a"].runs) == (42.0, 3)
    assert whole.figures["a"].deviation == pytest.approx(statistics.stdev([40.0, 41.0, 45.0]))
    assert (whole.figures["c"].value, whole.figures["c"].runs, whole.figures["c"].deviation) == (30.0, 1, None)
    assert (near.figures["b"].value, near.figures["b"].runs, near.figures["b"].interval) == (23.0, 3, None)
    assert (far.figures["b"].value, far.figures["b"].runs, far.figures["b"].deviation) == (1.0, 2, 0.0)
    test = whole.figures["b"].test
    assert (test.delta, test.runs) == (10.0, (3, 3)) and test.significant
    assert found.notes == (
        "* differs from a with p < 0.05 (Welch's t-test over runs); 1 test.",
        "Not tested, a single run vs. several; a test over runs needs two of each system: pronoun accuracy of c.",
    )
    assert found.settings == {"a": {"strategy": ("sentence",)}, "b": {}, "c": {}}


def test_single_runs_are_tested_over_documents():
    single = [report(name, accuracy(right, [10] * 8)) for name, right in zip("ab", (BASE, BETTER))]
    found = compare_reports([*single, *runs_of("c", 50.0, 60.0)], runs=r"-seed\d")
    assert found.rows[0].figures["b"].test == compare_reports(single).rows[0].figures["b"].test
    assert found.rows[0].figures["b"].interval == compare_reports(single).rows[0].figures["b"].interval


def test_equal_names_are_runs(tmp_path):
    """With a pattern that matches nothing: the names of models in different folders, or names as given."""
    reports = [report("a", result(40.0)), report("a", result(44.0)), report("b", result(50.0))]
    assert compare_reports(reports, runs="^$").rows[0].figures["a"].value == 42.0
    named = compare_reports(reports, names=["x", "y", "y"], runs="^$")
    assert named.systems == ("x", "y") and named.rows[0].figures["y"].runs == 2


@pytest.mark.parametrize(
    ("reports", "pattern", "message"),
    [
        (runs_of("a", 40.0, 41.0), "-seed(", "runs '-seed.' is not a regular expression: .* such as -seed"),
        (runs_of("a", 40.0, 41.0), "-run.", "no two names are equal without '-run.'.*: the names are a-seed1, a-seed2"),
        (
            [*runs_of("a", 40.0), report("a-seed2", result(41.0, strategy="sliding"))],
            r"-seed\d",
            "a-seed1, a-seed2 are not runs of one system, 'a': different strategy; give them different names",
        ),
    ],
)
def test_unrelated_systems_are_not_runs(reports, pattern, message):
    refused(message, compare_reports, reports, runs=pattern)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "sentense"}, "unknown baseline 'sentense': the systems are sentence, concat; did you mean 'sent"),
        ({"breakdown": "distances"}, "no result is broken down by 'distances': known are none, all, distance, intra"),
        ({"breakdown": "distance=9"}, "no result is broken down by 'distance=9'"),
        ({"may_differ": ["passt"]}, "unknown key that may differ 'passt': the reports have strategy, beams, .*'past'"),
        ({"names": ["one"]}, "1 names for 2 reports"),
        ({"names": ["one", "one"]}, "two systems are called 'one'"),
        ({"level": 5}, "level is 5, expected a p-value"),
        ({"method": "t-test"}, "unknown method 't-test': known are bootstrap, randomisation, sacrebleu-bootstrap"),
        ({"samples": 0}, "samples is 0"),
    ],
)
def test_unknown_names_are_refused(options, message):
    refused(message, compare_reports, EXAMPLES, **options)


def test_other_files_than_reports_are_refused(tmp_path):
    path = tmp_path / "scores.json"
    path.write_text('{"bleu": 30}')
    refused(r"scores\.json: report: unknown key 'bleu'", compare_reports, [EXAMPLES[0], path])
    broken = json.loads(EXAMPLES[1].read_text("utf-8"))
    del broken["results"][0]["signature"]
    path.write_text(json.dumps(broken))
    refused(r"scores\.json: results\[0\]: missing signature", compare_reports, [EXAMPLES[0], path])
    with pytest.raises(FileNotFoundError, match="nowhere.json"):
        compare_reports([tmp_path / "nowhere.json"])
    for none in ([], str(EXAMPLES[0]), report("a", result())):
        refused("expected a list of reports", compare_reports, none)


def test_nothing_in_common_is_refused():
    talks = report("a", result(dataset="talks"), result(dataset="news"))
    with pytest.raises(ValueError, match="nothing to compare.*a has talks accuracy, news accuracy; b has pronoun acc"):
        compare_reports([talks, report("b", result())])
    refused("a has nothing", compare_reports, [report("a")])
    assert len(compare_reports([talks]).rows) == 2


def test_two_results_for_one_cell_are_refused():
    results = (result(strategy="full"), result(strategy=None))
    refused(
        "a: two results for pronoun accuracy .test., .* give reports of one", compare_reports, [report("a", *results)]
    )


def test_documents_that_could_not_be_translated_are_noted():
    failed = result(40.0, details={"untranslated": 2})
    found = compare_reports([report("a", result(60.0)), report("b", failed)])
    assert "2 documents of b could not be translated, which lowers its scores; translate again." in found.notes
    whole = compare_reports([report("a", result(60.0)), report("b", result(40.0))])
    assert not any("could not be translated" in note for note in whole.notes)


def test_a_signature_of_several_systems_has_the_digest_of_any():
    """Reports of 0.1.0 have none, wherever they stand."""
    first, second = result(signature="a:1|version:1"), result(signature="a:1|version:1|data:x")
    for group in ({"old": first, "new": second}, {"new": second, "old": first}):
        assert group_signature(group) == "a:1|version:1|data:x"
