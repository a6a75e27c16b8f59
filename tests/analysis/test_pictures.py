"""Pictures of comparisons: what is drawn, where legend and labels stand, files, refusals."""

import itertools
import re
import struct
import sys
from functools import partial
from xml.etree import ElementTree

import pytest
from support.errors import refused

from hf_docmt.analysis.pictures import (
    COLOURS,
    DISTINCT,
    DPI,
    GREY,
    SINGLE,
    SUBPLOT,
    check_picture_path,
    draw_breakdown,
    look_of,
)
from hf_docmt.messages import install_command
from hf_docmt.reports.comparison import compare_reports
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.signature import Signature

matplotlib = pytest.importorskip("matplotlib")
getp = matplotlib.artist.getp
SYSTEMS = ["sentence", "concat with a long name", "memory", "window"]
DISTANCES = {"distance=>3": 40.0, "distance=0": 90.0, "distance=3": 60.0, "distance=1": 80.0, "distance=10": 20.0}
BUCKETS = ("1", "2", "3", "4-5", "6-10", "11-20", "21-50", ">50")


def result(value=50.0, parts=None, signature="logprob:sum|ties:wrong", **changes):
    given = {"task": "contrastive", "dataset": "pronoun", "split": "test", "metric": "accuracy", "n": 50}
    given["breakdown"] = {label: part(found) for label, found in (parts or {}).items()}
    return Result(**{**given, "signature": Signature.parse(signature), "value": value, **changes})


def part(value):
    return PartScore(value, 10, {"interval": [value - 6, value + 3]})


def report(name, *results):
    return Report(model={"name": name}, data={}, results=results)


def shifted(parts, by):
    return {label: value + by for label, value in parts.items()}


def distances(systems, datasets=("pronoun",)):
    reports = [
        report(name, *(result(parts=shifted(DISTANCES, number), dataset=dataset) for dataset in datasets))
        for number, name in enumerate(systems)
    ]
    return compare_reports(reports, breakdown="distance")


def indices(systems, metrics=("s-BLEU",)):
    parts = {f"index={bucket}": 30.0 for bucket in BUCKETS}
    reports = [
        report(name, *(result(parts=shifted(parts, number), metric=metric, signature=metric) for metric in metrics))
        for number, name in enumerate(systems)
    ]
    return compare_reports(reports, breakdown="index")


def series(axes):
    """{label: (x, y, lower ends, upper ends)} of the error bars."""
    found = {}
    for bars in axes.containers:
        line, _, (stems,) = bars.lines
        ends = [segment[:, 1].tolist() for segment in stems.get_segments()]
        found[bars.get_label()] = (*map(list, line.get_data()), [low for low, _ in ends], [high for _, high in ends])
    return found


def test_what_is_drawn(drawn, tmp_path):
    draw_breakdown(distances(SYSTEMS[:2]), tmp_path / "a.png")
    (axes,) = drawn[0].axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1", "3", ">3", "10"]
    assert axes.get_xlabel() == "distance in sentences" and axes.get_ylabel() == "accuracy (%)"
    assert axes.get_title() == "pronoun"
    found = series(axes)
    assert list(found) == SYSTEMS[:2]
    for number, (x, y, low, high) in enumerate(found.values()):
        expected = [value + number for value in (90.0, 80.0, 60.0, 40.0, 20.0)]
        assert y == expected and low == [v - 6 for v in expected] and high == [v + 3 for v in expected]
        assert [round(position) for position in x] == [0, 1, 2, 3, 4]
    assert axes.get_ylim()[0] < 0 and axes.get_ylim()[1] > 100
    (legend,) = drawn[0].legends
    assert [text.get_text() for text in legend.get_texts()] == SYSTEMS[:2]
    assert drawn[0].get_supxlabel() == "logprob:sum | ties:wrong\nruns of each system: 1\nbars: 95 % intervals"


def test_numbers_without_items(drawn, tmp_path):
    parts = {"distance=0": 90.0, "distance=1": 80.0, "distance=>3": 40.0}
    draw_breakdown(compare_reports([report("a", result(parts=parts))], breakdown="distance"), tmp_path / "a.png")
    (axes,) = drawn[0].axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["0", "1", "2\nno items", "3\nno items", ">3"]
    assert [round(position) for position in series(axes)["a"][0]] == [0, 1, 4]


def test_incomparable_results_have_separate_panels(drawn, tmp_path):
    other = report("b", result(parts=DISTANCES, signature="logprob:mean|ties:wrong"))
    found = compare_reports([report("a", result(parts=DISTANCES)), other], breakdown="distance")
    draw_breakdown(found, tmp_path / "a.png")
    assert [(axes.get_title(), list(series(axes))) for axes in drawn[0].axes] == [
        ("pronoun, logprob sum (a)", ["a"]),
        ("pronoun, logprob mean (b)", ["b"]),
    ]
    assert drawn[0].get_supxlabel().startswith("(a) logprob:sum | ties:wrong\n(b) logprob:mean | ties:wrong\n")
    looks = [axes.containers[0].lines[0] for axes in drawn[0].axes]
    assert looks[0].get_color() != looks[1].get_color() and looks[0].get_marker() != looks[1].get_marker()


def test_titles_are_words(drawn, nothing_covers_anything, tmp_path):
    """Of results that would have the same title, what differs between their signatures."""
    conditions = {"true": "a_b", "random, seed 0": "a_b", "empty": "c"}
    results = [
        result(parts=DISTANCES, dataset=name, signature=f"context:{context}|ties:wrong")
        for context, name in conditions.items()
    ]
    draw_breakdown(compare_reports([report("a", *results)], breakdown="distance"), tmp_path / "a.png")
    titles = ["a b, true context (a)", "a b, random context (b)", "c (c)"]
    assert [(axes.get_title(), axes.get_gridspec().ncols) for axes in drawn[0].axes] == [(title, 3) for title in titles]
    nothing_covers_anything(drawn[0])


def test_chance_from_the_reports(drawn, tmp_path):
    """One subplot for systems of different strategies, with the level that the results know."""
    guessed = {"chance": 25.0}
    first = report("a", result(parts=DISTANCES, details=guessed, signature="past:0|ties:wrong"))
    second = report("b", result(parts=DISTANCES, details=guessed, signature="past:3|ties:wrong", strategy="sliding"))
    draw_breakdown(compare_reports([first, second], breakdown="distance"), tmp_path / "a.png")
    (axes,) = drawn[0].axes
    assert list(series(axes)) == ["a", "b"]
    assert [line.get_ydata()[0] for line in axes.lines if line.get_label() == "chance"] == [25.0]
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == ["a", "b", "chance"]


def test_deviations_over_runs_are_bars(drawn, tmp_path):
    reports = [report(f"a-{n}", result(parts={"distance=0": value})) for n, value in enumerate((40.0, 60.0))]
    draw_breakdown(compare_reports(reports, breakdown="distance", runs="-."), tmp_path / "a.png")
    _, y, low, high = series(drawn[0].axes[0])["a"]
    assert (y, low, high) == ([50.0], [50 - 200**0.5], [50 + 200**0.5])
    assert drawn[0].get_supxlabel().endswith("runs of each system: 2\nbars: standard deviations over runs")


def test_a_system_looks_the_same_in_all_pictures(drawn, tmp_path):
    """Colour, marker and place by the order of a study, whichever of its systems are drawn."""
    order = [f"s{n}" for n in range(20)]
    for chosen in (order[:3], [order[15], order[1]], order[13:20]):
        draw_breakdown(distances(chosen), tmp_path / "a.png", order=order)
    lines = [{bars.get_label(): bars.lines[0] for bars in figure.axes[0].containers} for figure in drawn]
    names = ("color", "marker", "linestyle")
    looks = [{label: [getp(line, name) for name in names] for label, line in shown.items()} for shown in lines]
    assert [list(shown) for shown in looks] == [order[:3], [order[1], order[15]], order[13:20]]
    draw_breakdown(distances([f"s{n}" for n in (0, DISTINCT)]), tmp_path / "a.png", order=[f"s{n}" for n in range(60)])
    first, later = (bars.lines[0].get_color() for bars in drawn[-1].axes[0].containers)
    assert first != later, "systems whose places are far apart, too"
    assert looks[0]["s1"] == looks[1]["s1"] and looks[1]["s15"] == looks[2]["s15"]
    assert len({look_of(number)["marker"] + str(look_of(number)) for number in range(DISTINCT)}) == DISTINCT


def test_chosen_systems_in_colour(drawn, nothing_covers_anything, tmp_path):
    names = [f"system {n}" for n in range(20)]
    draw_breakdown(distances(names), tmp_path / "a.png", highlight=names[5:8])
    (axes,) = drawn[0].axes
    assert list(series(axes)) == names[5:8]
    assert [line.get_color() for line in axes.lines].count(GREY) == 17
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == [*names[5:8], "others"]
    nothing_covers_anything(drawn[0])
    with pytest.raises(ValueError, match="unknown system to highlight 'system 77'"):
        draw_breakdown(distances(names), tmp_path / "a.png", highlight=["system 77"])


def test_scores(drawn, tmp_path):
    draw_breakdown(indices(SYSTEMS[:2], ("s-BLEU", "chrF")), tmp_path / "a.png", axis="index")
    draw_breakdown(indices(SYSTEMS[:2], ("s-BLEU", "chrF")), tmp_path / "a.png", axis="index", metric="chrF")
    both, one = ([(axes.get_title(), axes.get_ylabel()) for axes in figure.axes] for figure in drawn)
    assert both == [("pronoun, s-BLEU (a)", "score"), ("pronoun, chrF (b)", "")]
    assert one == [("pronoun", "chrF")]
    axes = drawn[1].axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(BUCKETS)
    assert axes.get_xlabel() == "index of the sentence in its document"
    assert [y for _, y, _, _ in series(axes).values()] == [[30.0] * 8, [31.0] * 8]


@pytest.mark.parametrize(
    ("kind", "systems", "panels"),
    [("distance", 2, 4), ("distance", 4, 1), ("distance", 8, 1), ("index", 8, 1), ("index", 4, 2), ("index", 2, 4)],
)
def test_no_part_covers_another(drawn, nothing_covers_anything, tmp_path, kind, systems, panels):
    names = [*SYSTEMS, "a", "b", "another long name", "d"][:systems]
    scores = [f"score{number}" for number in range(panels)]
    if kind == "distance":
        draw_breakdown(distances(names, scores), tmp_path / "a.png")
    else:
        draw_breakdown(indices(names, scores), tmp_path / "a.png", axis="index")
    (figure,) = drawn
    assert len(figure.axes) == panels
    nothing_covers_anything(figure)
    for axes in figure.axes:
        pixels = sorted(axes.transData.transform([(x, 0)])[0][0] for found in series(axes).values() for x in found[0])
        assert min(b - a for a, b in itertools.pairwise(pixels)) > 5  # bars stand beside each other
    assert all(height > 1.2 * 200 for height in (axes.bbox.height for axes in figure.axes))


def test_png(tmp_path):
    path = draw_breakdown(distances(SYSTEMS[:2]), tmp_path / "a.PNG")
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert b"hf-docmt" in content
    width, height = struct.unpack(">II", content[16:24])
    assert width == round(SINGLE[0] * DPI) and SINGLE[1] * DPI < height < (SINGLE[1] + 1) * DPI
    draw_breakdown(distances(SYSTEMS[:2], ("p", "q")), path)
    assert struct.unpack(">I", path.read_bytes()[16:20])[0] == round(2 * SUBPLOT[0] * DPI)


def test_svg_is_the_same_every_time(tmp_path):
    paths = [draw_breakdown(indices(SYSTEMS), tmp_path / f"{n}.svg", axis="index") for n in range(2)]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert ElementTree.parse(paths[0]).getroot().tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "a.pdf"}, r"a\.pdf: a picture's name ends in \.png or \.svg, got '\.pdf'"),
        ({"path": "picture"}, "got 'none'"),
        ({"path": "nowhere/a.png"}, "nowhere is not a writable folder; create it first"),
        ({"datasets": ["pronouns"]}, "unknown dataset 'pronouns': by distance there are pronoun"),
    ],
)
def test_wrong_names_are_refused(tmp_path, options, message):
    path = tmp_path / options.pop("path", "a.png")
    refused(message, draw_breakdown, distances(SYSTEMS[:2]), path, **options)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_draw_is_refused(tmp_path):
    draw, path = partial(draw_breakdown, indices(SYSTEMS)), tmp_path / "a.png"
    refused("no accuracy is broken down by distance in .*; use docmt contrast", draw, path)
    refused("no TER is broken down by index .* docmt evaluate --by index", draw, path, axis="index", metric="TER")
    refused("unknown axis 'domain': expected one of distance, index, length", draw, path, axis="domain")
    many = indices([f"s{n}" for n in range(2 * len(COLOURS) + 1)])
    refused("15 systems in one picture, at most 14", draw_breakdown, many, path, axis="index")


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = "pictures need matplotlib.*" + re.escape(install_command("plots"))
    refused(message, draw_breakdown, indices(SYSTEMS), tmp_path / "a.png", axis="index")
    with pytest.raises(ValueError, match=message):  # commands ask before the work
        check_picture_path(tmp_path / "a.png")
