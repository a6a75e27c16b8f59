"""Voita: JSON, the text that is scored, the real files."""

import json
from collections import Counter

import pytest
from support.suite_files import DATA, VOITA_ITEM, changed, without_location, write_lines

from hf_docmt.evaluation.suites import counts_note, read_suite

real = pytest.mark.skipif(not DATA.is_dir(), reason="the data folder is not there")


def test_voita(write_suite):
    (item,) = read_suite(write_suite(VOITA_ITEM, name="lex_cohesion_dev.json"))
    assert item.source == ("a b", "c", "d") and item.target_context == ("A B", "C")
    assert item.candidates == ("D", "E", "D") and item.correct == 1
    assert (item.phenomenon, item.distance, item.index) == ("lex_cohesion", 2, 2)
    (near,) = read_suite(write_suite(VOITA_ITEM), context=1)
    assert near.source == ("c", "d") and near.target_context == ("C",) and near.index == 2
    (alone,) = read_suite(write_suite(VOITA_ITEM), context=0)
    assert alone.source == ("d",) and alone.target_context == ()
    others = [changed(VOITA_ITEM, src=source) for source in ("a b _eos c _eos e", "x _eos c _eos d")]
    for context in (0, 1, 3):  # items of one context, however much of it is read
        found = read_suite(write_suite(VOITA_ITEM, *others, name="deixis_dev.json"), context=context)
        assert [item.group for item in found] == ["deixis_dev:1", "deixis_dev:1", "deixis_dev:3"]


def test_voita_text(tmp_path):
    path = tmp_path / "deixis_dev.json"
    path.write_text(json.dumps([VOITA_ITEM, changed(VOITA_ITEM, dst=VOITA_ITEM["dst"][:2])]), encoding="utf-8")
    files = {
        "deixis_dev.src": [VOITA_ITEM["src"]] * 5,
        "deixis_dev.dst": [text.lower() for text in VOITA_ITEM["dst"] + VOITA_ITEM["dst"][:2]],
    }
    folder = write_lines(tmp_path / "scoring_data", files)
    items = read_suite(folder / "deixis_dev.src", context=1)
    assert [item.candidates for item in items] == [("d", "e", "d"), ("d", "e")]
    assert [(item.source, item.target_context, item.correct) for item in items] == [(("c", "d"), ("c",), 1)] * 2
    assert [item.location.rpartition("/")[2] for item in items] == ["deixis_dev.src, line 1", "deixis_dev.src, line 4"]
    assert (items[0].distance, items[0].phenomenon, items[0].format) == (2, "deixis", "voita")
    assert read_suite(folder / "deixis_dev.dst", context=1) == items
    path.rename(tmp_path / "blocks.json")
    with pytest.raises(ValueError, match=r"which lines are one item is in deixis_dev\.json, which is not next to"):
        read_suite(folder / "deixis_dev.src")
    assert len(read_suite(folder / "deixis_dev.src", records=tmp_path / "blocks.json")) == 2
    (folder / "deixis_dev.dst").write_text("a _eos b _eos c\n" * 5, encoding="utf-8")
    with pytest.raises(ValueError, match=r"deixis_dev\.src, line 1: 'a _eos b _eos c' is not 'A B _eos C _eos D'"):
        read_suite(folder / "deixis_dev.src", records=tmp_path / "blocks.json")
    for suffix in ("src", "dst"):
        (folder / f"deixis_dev.{suffix}").write_text(f"{VOITA_ITEM['src']}\n" * 4, encoding="utf-8")
    with pytest.raises(ValueError, match=r"deixis_dev\.src: 4 lines, expected 5 for 2 items"):
        read_suite(folder / "deixis_dev.src", records=tmp_path / "blocks.json")


@real
@pytest.mark.parametrize(
    ("name", "phenomenon", "count", "candidates"),
    [
        ("deixis_dev", "deixis", 482, 964),
        ("lex_cohesion_dev", "lex_cohesion", 395, 887),
        ("ellipsis_infl", "ellipsis_infl", 493, 2484),
    ],
)
def test_real_voita_files(name, phenomenon, count, candidates):
    items = read_suite(DATA / "voita2019" / f"{name}.json")
    assert len(items) == count
    assert sum(len(item.candidates) for item in items) == candidates
    assert {item.phenomenon for item in items} == {phenomenon}
    assert all(len(item.source) == 4 and len(item.target_context) == 3 for item in items)
    assert set(Counter(item.distance for item in items)) == {1, 2, 3}
    assert without_location(read_suite(DATA / "voita2019" / "scoring_data" / f"{name}.dst")) == without_location(items)
    assert {item.languages for item in items} == {("en", "ru")}
    assert f"items {count} (published 500)" in counts_note(items)
