"""Lopes: text files and their contexts, bad files, the real files."""

from collections import Counter

import pytest
from support.suite_files import (
    DATA,
    LOPES,
)

from hf_docmt.evaluation.suites import read_suite

real = pytest.mark.skipif(not DATA.is_dir(), reason="the data folder is not there")


def test_lopes(lopes):
    folder = lopes()
    items = read_suite(folder)
    assert [item.phenomenon for item in items] == ["elle", "ils", "elles"]
    assert [item.candidates for item in items] == [lines for _, lines, *_ in LOPES]
    assert items[0].source == ("a", "b", "c", "It is red.") and items[0].target_context == ("A", "B", "C")
    assert items[1].source == ("Where are they?",) and items[1].target_context == ()
    assert items[2].source == ("b", "c", "They say it.") and items[2].target_context == ("B", "C")
    assert [(item.item_id, item.index, item.correct) for item in items] == [
        ("OpenSubs:1", 4, 0),
        ("OpenSubs:2", 0, 0),
        ("OpenSubs:3", 2, 0),
    ]
    assert {(item.format, item.languages, item.group, item.distance) for item in items} == {
        ("lopes", ("en", "fr"), f"OpenSubs:{number}", None) for number in (1, 2, 3)
    }
    for name in ("OpenSubs.current.src", "OpenSubs.current.trg"):
        assert read_suite(folder / name) == items


def test_lopes_items_of_one_context(lopes):
    """A group is the same whatever is read of the context, so that systems can be compared."""

    def again(files):
        for name, lines in files.items():
            size = 2 if "current" in name else 2 * int(name[10])
            lines += lines[: 2 * size]

    folder = lopes(again, sizes=(1, 3))
    for context in (0, 1, 3):
        groups = [item.group for item in read_suite(folder, context=context)]
        assert groups == [f"OpenSubs:{number}" for number in (1, 2, 3, 1, 5)]  # an empty context is none
    for path in folder.glob("*.context.*"):
        path.unlink()
    assert {item.group for item in read_suite(folder, context=0)} == {None}


def test_lopes_context_files(lopes):
    folder = lopes(sizes=(1, 3))
    assert read_suite(folder, context=1)[0].source == ("c", "It is red.")
    assert read_suite(folder, context=1)[0].index == 2  # more may go before, as far as the file tells
    assert read_suite(folder, context=1, context_file=3)[0].index == 4
    assert read_suite(folder, context=0)[0].index == 1
    assert read_suite(folder, context=2)[0].source == ("b", "c", "It is red.")  # the nearest of three
    assert read_suite(folder, context=5)[0].source == ("a", "b", "c", "It is red.")
    for path in folder.glob("*.context.*"):
        path.unlink()
    assert read_suite(folder, context=0)[0].source == ("It is red.",)
    with pytest.raises(ValueError, match=r"c2\.context\.src and \.trg are needed beside it, found no context files"):
        read_suite(folder, context=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: [f[f"OpenSubs.current.{s}"].pop() for s in ("src", "trg")],
            r"current\.src: 5 lines, .* multiple of 2",
        ),
        (lambda f: f["OpenSubs.current.trg"].pop(), r"current\.trg: ends after line 5, .*current\.src has 6 lines"),
        (lambda f: f["OpenSubs.c3.context.trg"].pop(), r"c3\.context\.trg: ends after line 17"),
        (
            lambda f: [
                f.update({f"OpenSubs.c3.context.{s}": f[f"OpenSubs.c3.context.{s}"][:14]}) for s in ("src", "trg")
            ],
            r"c3\.context\.src: 14 lines, expected 18, 3 for each of the 6 lines of .*; there is none for line 5",
        ),
        (
            lambda f: f["OpenSubs.current.src"].__setitem__(3, "Other."),
            r"current\.src, line 4: 'Other\.' is not line 3",
        ),
        (lambda f: f["OpenSubs.current.trg"].__setitem__(4, " "), r"current\.trg, line 5: empty"),
        (
            lambda f: f["OpenSubs.current.trg"].__setitem__(1, "Elle est."),
            r"current\.src, line 1: .* do not differ in il",
        ),
        (lambda f: f["OpenSubs.c3.context.src"].__setitem__(4, "x"), r"c3\.context\.src: the context of line 2 is not"),
        (
            lambda f: f["OpenSubs.c3.context.trg"].__setitem__(slice(6), [""] * 6),
            r"current\.src, line 1: OpenSubs\.c3\.context\.trg has only empty lines",
        ),
        (lambda f: f.pop("OpenSubs.c3.context.trg"), r"c3\.context\.trg: the file does not exist"),
        (lambda f: f.update({"Other.current.src": ["a"]}), r"expected one file \*\.current\.src in the folder, found"),
    ],
)
def test_bad_lopes_files_are_named(lopes, change, message):
    with pytest.raises(ValueError, match=message):
        read_suite(lopes(change))


def test_lopes_arguments(lopes, tmp_path):
    folder = lopes()
    with pytest.raises(ValueError, match=r"c2\.context\.src .* found c3; add them"):
        read_suite(folder, context_file=2)
    for format in ("lopes", "auto"):
        with pytest.raises(ValueError, match=r"expected the folder of the suite or its file \*\.current\.src"):
            read_suite(folder / "OpenSubs.c3.context.src", format)
    with pytest.raises(ValueError, match="in the folder, found none"):
        read_suite(tmp_path)


@real
def test_real_lopes_files():
    items = read_suite(DATA / "lopes2020_enfr")
    assert Counter(item.phenomenon for item in items) == {"ils": 3287, "elle": 1350, "elles": 1229, "il": 1137}
    assert Counter(len(item.source) for item in items) == {4: 6974, 1: 29}
