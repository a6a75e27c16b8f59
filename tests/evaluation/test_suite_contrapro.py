"""ContraPro: JSON with its documents, the text made from it."""

import json

import pytest
from support.errors import refused
from support.suite_files import CONTRAPRO, changed, contrapro_files, write_lines

from hf_docmt.evaluation.contrast import read_scores
from hf_docmt.evaluation.contrastive_accuracy import contrastive_accuracy, item_records
from hf_docmt.evaluation.suites import read_suite


def test_contrapro(write_suite):
    (item,) = read_suite(write_suite(CONTRAPRO))
    assert item.source == ("Where is the cup?", "", "Here .", "It's red.")
    assert item.target_context == ("Wo ist die Tasse?", "", "Hier.")
    assert item.candidates == ("Sie ist rot.", "Er ist rot.", "Es ist rot.") and item.correct == 0
    assert (item.phenomenon, item.distance, item.labels) == ("it:sie", 3, {"intrasegmental": "no"})
    assert (item.item_id, item.index) == ("suite:1", 3)


def test_contrapro_context(write_suite, tmp_path):
    path = write_suite(CONTRAPRO, changed(CONTRAPRO, **{"segment id": 1, "src segment": "Where is the cup?"}))
    near, first = read_suite(path, context=1)
    assert near.source == ("Here .", "It's red.") and near.target_context == ("Hier.",)
    assert first.source == ("Where is the cup?",) and first.target_context == () and first.index == 0
    (tmp_path / "documents.jsonl").rename(tmp_path / "elsewhere.jsonl")
    assert read_suite(path, documents=tmp_path / "elsewhere.jsonl", context=1) == [near, first]
    assert read_suite(path, context=0)[0].source == ("It's red.",)
    with pytest.raises(ValueError, match=r"nowhere\.jsonl is missing"):  # not ignored where no context is read
        read_suite(path, documents=tmp_path / "nowhere.jsonl", context=0)
    refused(r"documents\.jsonl is missing; give the documents", read_suite, path)


def test_contrapro_nulls(write_suite):
    plain = changed(
        CONTRAPRO, **{"intrasegmental": None, "ante distance": ..., "src pronoun": None, "document id": "1999_1_2"}
    )
    (item,) = read_suite(write_suite(plain))
    assert (item.phenomenon, item.distance, item.labels) == ("suite", None, {})


def test_contrapro_labels(write_suite):
    """Further properties of an item, by which accuracy is broken down, too."""
    (item,) = items = read_suite(write_suite(changed(CONTRAPRO, labels={"exact_distance": 3})))
    assert item.labels == {"intrasegmental": "no", "exact_distance": 3}
    assert contrastive_accuracy(items, [[1.0, 0.0, 0.0]]).breakdown["exact_distance=3"].value == 100
    with pytest.raises(ValueError, match=r"item 1: 'labels' must be of type dict, got \[3\]"):
        read_suite(write_suite(changed(CONTRAPRO, labels=[3])))


def test_contrapro_future_context(write_suite):
    path = write_suite(CONTRAPRO, changed(CONTRAPRO, **{"segment id": 1, "src segment": "Where is the cup?"}))
    last, first = read_suite(path, context=0, future_context=2)
    assert last.source == ("It's red.",) and (last.source_after, last.target_after) == (("Bye.",), ("Tschüss.",))
    assert (first.source_after, first.target_after) == (("", "Here ."), ("", "Hier."))
    assert {item.group for item in (first, last)} == {"1999_1_2.de"}
    assert read_suite(path)[0].source_after == ()


def test_contrapro_items_with_different_numbers_of_errors(write_suite, tmp_path):
    """Scored as the published evaluation does: scores in order, the reference strictly better than all of its own."""
    errors = [[f"Error {n}." for n in range(count)] for count in (1, 3, 2, 1)]
    items = read_suite(
        write_suite(*(changed(CONTRAPRO, errors=[{"contrastive": text} for text in some]) for some in errors))
    )
    assert [len(item.candidates) for item in items] == [2, 4, 3, 2]
    lines = iter(costs := [1, 2, 3, 4, 3, 5, 1, 2, 3, 2, 2])  # lower is better
    expected = []
    for some in errors:
        reference, *others = (next(lines) for _ in range(1 + len(some)))
        expected.append(reference < min(others))
    path = tmp_path / "scores"
    path.write_text("".join(f"{cost}\n" for cost in costs), encoding="utf-8")
    records = item_records(items, read_scores(path, items))
    assert [record["right"] for record in records] == expected == [True, False, True, False]


def test_a_full_context_of_the_text_may_be_cut_off(tmp_path):
    """So that the item is not taken for the first of its document; nor is one without its context."""
    files = contrapro_files()
    for language, line in (("en", "Hello."), ("de", "Hallo.")):
        lines = files[f"contrapro.context.{language}"]
        files[f"contrapro.context.{language}"] = [
            line if number in (0, 3, 6) else old for number, old in enumerate(lines)
        ]
    folder = write_lines(tmp_path / "text", files)
    assert [item.index for item in read_suite(folder / "contrapro.text.en")] == [4, 0]
    assert [item.index for item in read_suite(folder / "contrapro.text.en", context=3)] == [4, 0]
    assert [item.index for item in read_suite(folder / "contrapro.text.en", context=0)] == [1, 1]


def test_contrapro_text(tmp_path):
    folder = write_lines(tmp_path / "text", contrapro_files())
    first, second = read_suite(folder / "contrapro.text.en")
    assert first.source == ("Where is it?", "Here.", "It's red.") and first.target_context == ("Wo ist sie?", "Hier.")
    assert second.source == ("It's red.",) and second.target_context == ()
    assert first.candidates == ("Sie ist rot.", "Er ist rot.", "Es ist rot.")
    assert (first.phenomenon, first.distance, first.index, first.group) == ("it:sie", None, 2, None)
    assert (first.languages, first.item_id, second.location) == (
        ("en", "de"),
        "contrapro:1",
        f"{folder / 'contrapro.text.en'}, line 4",
    )
    assert read_suite(folder / "contrapro.text.de", context=1)[0].source == ("Here.", "It's red.")
    records = tmp_path / "contrapro.json"
    records.write_text(json.dumps([CONTRAPRO, changed(CONTRAPRO, **{"ante distance": 0})]), encoding="utf-8")
    items = read_suite(folder / "contrapro.text.en")
    assert [item.distance for item in items] == [3, 0]
    assert (items[0].labels, items[0].group, items[0].index) == ({"intrasegmental": "no"}, "1999_1_2.de", 3)
    assert [item.source for item in items] == [first.source, second.source]
    (folder / "contrapro.text.de").write_text(
        "Sie &apos; ist ROT .\nEr ist rot .\nEs war rot .\n" * 2, encoding="utf-8"
    )
    with pytest.raises(ValueError, match=r"text\.en, line 1: 'Es war rot \.' is not 'Es ist rot\.', .*json, item 1"):
        read_suite(folder / "contrapro.text.en")
