"""Lopes: text files and their contexts, bad files, the real files."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from support.errors import refused
from support.suite_files import DATA, LOPES, write_lopes

from hf_docmt.data.documents import write_documents
from hf_docmt.evaluation.context_ablation import with_context
from hf_docmt.evaluation.contrastive_accuracy import contrastive_accuracy
from hf_docmt.evaluation.suites import counts_note, read_suite

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
    assert read_suite(folder, context=0)[0].index == 1
    assert read_suite(folder, context=2)[0].source == ("b", "c", "It is red.")  # the nearest of three
    assert read_suite(folder, context=5)[0].source == ("a", "b", "c", "It is red.")
    for path in folder.glob("*.context.*"):
        path.unlink()
    assert read_suite(folder, context=0)[0].source == ("It is red.",)
    refused(r"c2\.context\.src and \.trg are needed next to it, found no context files", read_suite, folder, context=2)


@pytest.mark.parametrize(
    ("files", "part", "lines", "message"),
    [
        ("current.src current.trg", slice(5, 6), [], r"current\.src: 5 lines, .* multiple of 2"),
        ("current.trg", slice(5, 6), [], r"current\.trg ends after line 5, but .*current\.src goes on; the files must"),
        ("c3.context.trg", slice(17, 18), [], r"c3\.context\.trg ends after line 17"),
        (
            "c3.context.src c3.context.trg",
            slice(14, 18),
            [],
            r"c3\.context\.src: 14 lines, expected 18, 3 .* line 5 has none",
        ),
        ("current.src", slice(3, 4), ["Other."], r"current\.src, line 4: 'Other\.' is not line 3"),
        ("current.trg", slice(4, 5), [" "], r"current\.trg, line 5: empty"),
        ("current.trg", slice(1, 2), ["Elle est."], r"current\.src, line 1: .* do not differ in il"),
        ("c3.context.src", slice(4, 5), ["x"], r"c3\.context\.src: the context of line 2 is not"),
        (
            "c3.context.trg",
            slice(6),
            [""] * 6,
            r"current\.src, line 1: OpenSubs\.c3\.context\.trg has only empty lines",
        ),
    ],
)
def test_bad_lopes_files_are_named(lopes, files, part, lines, message):
    def change(written):
        for name in files.split():
            written[f"OpenSubs.{name}"][part] = lines

    refused(message, read_suite, lopes(change))


def test_lopes_files_that_are_missing_or_too_many(lopes, tmp_path):
    folder = lopes()
    (folder / "OpenSubs.c3.context.trg").unlink()
    refused(r"c3\.context\.trg: the file does not exist", read_suite, folder)
    (folder / "Other.current.src").write_text("a\n")
    refused(r"expected one file \*\.current\.src in the folder, found", read_suite, folder)


def test_lopes_arguments(lopes, tmp_path):
    folder = lopes()
    for format in ("lopes", "auto"):
        with pytest.raises(ValueError, match=r"expected the folder of the suite or its file \*\.current\.src"):
            read_suite(folder / "OpenSubs.c3.context.src", format)
    refused("in the folder, found none", read_suite, tmp_path)


FILMS = {  # sentences of two documents; the items are those of LOPES
    "1999_2": ["Begin.", "Where are they?", "They say it."],
    "1998_1": ["a", "b", "c", "It is red."],
}
PLACES = [("1998_1", 3, 0, True), ("1999_2", 1, 2, False), ("1999_2", 2, 7, False)]  # of LOPES: document, id, distance


def lopes_entry(number, corpus="OpenSubs"):
    """An item of LOPES as JSON: segments from 0, one error."""
    source, (right, wrong), *_ = LOPES[number]
    document, segment, distance, inside = PLACES[number]
    pronouns = [("it", "Elle"), ("they", "ils"), ("they", "elles")][number]
    return {
        "document id": document,
        "segment id": segment,
        "corpus": corpus,
        "src segment": source,
        "ref segment": right,
        "src pronoun": pronouns[0],
        "ref pronoun": pronouns[1],
        "ante distance": distance if corpus == "OpenSubs" else -1,
        "intrasegmental": inside if corpus == "OpenSubs" else False,
        "errors": [{"contrastive": wrong}],
    }


def write_films(path):
    rows = [{"doc_id": name, "translation": [{"en": text, "fr": text.upper()} for text in texts]}
            for name, texts in FILMS.items()]  # fmt: skip
    write_documents(rows, path)
    return path


def test_lopes_json(tmp_path):
    """From JSON and documents: segments count from 0, accuracy by distance of a model."""
    path, documents = tmp_path / "testset.json", write_films(tmp_path / "films.jsonl")
    path.write_text(json.dumps([lopes_entry(number) for number in range(3)]), encoding="utf-8")
    items = read_suite(path, documents=documents, context=2)
    assert [item.phenomenon for item in items] == ["elle", "ils", "elles"]
    assert [item.source for item in items] == [
        ("b", "c", "It is red."), ("Begin.", "Where are they?"), ("Begin.", "Where are they?", "They say it."),
    ]  # fmt: skip
    assert [item.distance for item in items] == [0, 2, 7] and items[0].target_context == ("B", "C")
    assert [item.labels["intrasegmental"] for item in items] == ["yes", "no", "no"]
    assert [(item.format, item.index, item.languages, item.group) for item in items] == [
        ("lopes", 3, ("en", "fr"), "1998_1:3"),
        ("lopes", 1, ("en", "fr"), "1999_2:1"),
        ("lopes", 2, ("en", "fr"), "1999_2:2"),
    ]
    for condition in ("random", "wrong-document"):  # items of one film have no context of each other
        for seed in range(5):
            other = with_context([items[1], items[2], items[0]], condition, seed)
            assert set(other[0].source[:-1] + other[1].source[:-1]) <= {"b", "c"}
    breakdown = contrastive_accuracy(items, [[2.0, 1.0], [1.0, 2.0], [1.0, 1.0]]).breakdown
    found = {label: part.value for label, part in breakdown.items() if label.startswith("distance")}
    assert found == {"distance=0": 100, "distance=2": 0, "distance=>3": 0}
    assert "items 3 (published 14,000)" in counts_note(items)
    path.write_text(json.dumps([lopes_entry(0) | {"segment id": 4}]), encoding="utf-8")
    refused("item 1: no segment 4 in document '1998_1', which has 0 to 3", read_suite, path, documents=documents)


def test_lopes_text_with_records(lopes, tmp_path):
    """The text files hold the items document by document, in the order in which the documents come first."""
    folder, path = lopes(), tmp_path / "testset.json"
    plain = read_suite(folder)
    entries = [lopes_entry(number) for number in (0, 1, 2)]
    path.write_text(json.dumps(entries), encoding="utf-8")
    items = read_suite(folder, records=path)
    assert [item.distance for item in items] == [0, 2, 7] and items[1].labels == {"intrasegmental": "no"}
    assert [item.document for item in items] == ["1998_1", "1999_2", "1999_2"]
    assert [replace(item, distance=None, labels={}, document=None) for item in items] == plain

    def mixed(files):  # 0 and 1 are of one document: their lines come before those of 2
        for name, lines in files.items():
            size = 2 if "current" in name else 6
            files[name] = [*lines[:size], *lines[2 * size :], *lines[size : 2 * size]]

    entries[2]["document id"] = "1998_1"
    path.write_text(json.dumps(entries), encoding="utf-8")
    with pytest.raises(ValueError, match=r"current\.src, line 3: 'Where are they\?' is not 'They say it\.', .*item 3"):
        read_suite(folder, records=path)
    other = write_lopes(tmp_path / "mixed", mixed)
    assert [item.distance for item in read_suite(other, records=path)] == [0, 7, 2]
    path.write_text(json.dumps(entries[:2]), encoding="utf-8")
    refused(r"current\.src: 6 lines, expected 4 for 2 items", read_suite, folder, records=path)
    refused("documents is .* has no use for it", read_suite, folder, documents=path)


def test_lopes_of_the_un_corpus(lopes, tmp_path):
    """No distances, which are -1 there, and other counts."""
    path = tmp_path / "UN-testset-enfr.json"
    path.write_text(json.dumps([lopes_entry(0, corpus="UN-enfr")]), encoding="utf-8")
    (item,) = read_suite(path, context=0)
    assert (item.distance, item.labels, item.phenomenon, item.suite) == (None, {}, "elle", "UN-testset-enfr")
    assert counts_note([item]) is None

    def renamed(files):
        for name in list(files):
            files[name.replace("OpenSubs", "UN-corpus")] = files.pop(name)

    items = read_suite(lopes(renamed))
    assert items[0].suite == "UN-corpus" and counts_note(items) is None


@real
def test_real_lopes_files():
    items = read_suite(DATA / "lopes2020_enfr")
    assert Counter(item.phenomenon for item in items) == {"ils": 3287, "elle": 1350, "elles": 1229, "il": 1137}
    assert Counter(len(item.source) for item in items) == {4: 6974, 1: 29}
