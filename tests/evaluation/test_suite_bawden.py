"""Bawden: blocks as JSON and as text, bad files, the real files."""

import dataclasses
import json

import pytest
from support.errors import refused
from support.suite_files import ANAPHORA, CHOICES, DATA, bawden_files, without_location, write_lines

from hf_docmt.evaluation.suites import counts_note, read_suite

real = pytest.mark.skipif(not DATA.is_dir(), reason="the data folder is not there")


def test_bawden(tmp_path):
    path = tmp_path / "anaphora.json"
    path.write_text(json.dumps({"1": ANAPHORA, "7": ANAPHORA}), encoding="utf-8")
    items = read_suite(path)
    assert len(items) == 8 and items[1].source == ("The houses are old.", "They are red.")
    assert items[1].target_context == ("Les bâtiments sont vieux.",)
    assert items[1].candidates == ("Ils sont rouges.", "Elles sont rouges.") and items[1].correct == 0
    assert items[1].labels == {"kind": "semi-correct", "type": "m.pl"} and items[0].labels["kind"] == "correct"
    assert [item.group for item in items] == ["anaphora:1"] * 4 + ["anaphora:7"] * 4
    assert {item.group_size for item in items} == {4}
    assert {(item.format, item.languages, item.phenomenon, item.index) for item in items} == {
        ("bawden", ("en", "fr"), "anaphora", 1)
    }
    assert items[1].location == f"{path}, block 1, pair 2" and items[4].item_id == "anaphora:5"
    alone = read_suite(path, context=0)[1]
    assert (alone.source, alone.target_context, alone.index) == (("They are red.",), (), 1)


def test_bawden_lexical_choice(tmp_path):
    path = tmp_path / "lexical-choice.json"
    path.write_text(json.dumps({"1": CHOICES}), encoding="utf-8")
    first, second = read_suite(path)
    assert (first.phenomenon, first.labels, first.group) == ("lexical_choice", {"type": "repet"}, "lexical_choice:1")
    assert second.source[0] == "Mad?" and second.candidates == first.candidates[::-1]
    folder = write_lines(tmp_path / "text", bawden_files("lexical_choice", [CHOICES]))
    assert without_location(read_suite(folder / "lexical_choice.prev.fr")) == without_location([first, second])


def test_bawden_json_in_any_key_order(tmp_path):
    """Numbered blocks are read in the order of their numbers, which is that of the text files."""

    def turned(value):
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(one) for one in value] if isinstance(value, list) else value

    blocks = {str(number): {**ANAPHORA, "src": [f"Before {number}.", "They are red."]} for number in range(1, 12)}
    path = tmp_path / "anaphora.json"
    path.write_text(json.dumps(blocks), encoding="utf-8")
    items = read_suite(path)
    for content in (turned(blocks), dict(sorted(blocks.items()))):
        path.write_text(json.dumps(content), encoding="utf-8")
        assert read_suite(path) == items
    folder = write_lines(tmp_path / "text", bawden_files("anaphora", blocks.values()))
    (tmp_path / "text" / "anaphora.json").write_text(json.dumps(turned(blocks)), encoding="utf-8")
    assert without_location(read_suite(folder / "anaphora.current.en")) == without_location(items)


def test_bawden_text(tmp_path):
    folder = write_lines(tmp_path / "text", bawden_files())
    plain = read_suite(folder / "anaphora.current.fr")
    assert [item.group for item in plain] == ["anaphora:1"] * 4 + ["anaphora:2"] * 4
    assert plain[0].location == f"{folder / 'anaphora.current.en'}, line 1" and plain[1].location.endswith("line 3")
    assert {len(item.labels) for item in plain} == {0}
    (folder / "anaphora.json").write_text(json.dumps({"1": ANAPHORA, "2": ANAPHORA}), encoding="utf-8")
    labelled = read_suite(folder / "anaphora.json")
    for name in ("current.en", "prev.fr"):
        assert without_location(read_suite(folder / f"anaphora.{name}")) == without_location(labelled)
    assert without_location(plain) == [dataclasses.replace(item, labels={}) for item in without_location(labelled)]
    (folder / "anaphora.json").rename(tmp_path / "blocks.json")
    (folder / "anaphora.prev.fr").write_text("\n" * 16, encoding="utf-8")
    with pytest.raises(ValueError, match=r"current\.en, line 1: its previous sentence is missing or empty"):
        read_suite(folder / "anaphora.current.en")
    other = write_lines(tmp_path / "other", bawden_files("idioms"))
    with pytest.raises(ValueError, match="blocks are known of anaphora and lexical_choice; give the set's JSON as rec"):
        read_suite(other / "idioms.current.en")
    assert len(read_suite(other / "idioms.current.en", records=tmp_path / "blocks.json")) == 8


@pytest.mark.parametrize(
    ("name", "line", "text", "message"),
    [
        (
            "current.fr",
            2,
            "Ils sont verts.",
            r"current\.en, line 3: 'Ils sont verts\.' is not 'Ils sont rouges\.', .*pair 2",
        ),
        ("prev.en", slice(4, 6), ["", ""], r"current\.en, line 5: '' is not 'The houses are old"),
    ],
)
def test_bad_bawden_text(tmp_path, name, line, text, message):
    files = bawden_files()
    files[f"anaphora.{name}"][line] = text
    folder = write_lines(tmp_path / "text", files)
    (folder / "anaphora.json").write_text(json.dumps({"1": ANAPHORA, "2": ANAPHORA}), encoding="utf-8")
    refused(message, read_suite, folder / "anaphora.current.en")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"src": ["a", "b"]}, "block 2: 'trg' must be of type list"),
        ({"src": ["a"], "trg": ANAPHORA["trg"]}, r"block 2, pair 1: got \['a'\], expected two sentences"),
        (
            {**ANAPHORA, "trg": [{"correct": ["a", "b"]}]},
            "block 2, pair 1: 'incorrect' must be of type list, it is missing",
        ),
        ({**ANAPHORA, "trg": [3]}, "block 2, pair 1: 'correct' must be of type list"),
        (
            {**ANAPHORA, "trg": [{"correct": ["a", "b"], "incorrect": ["c", "d"]}]},
            "block 2, pair 1: the previous target sentence is 'a' before the right translation, 'c' before the wrong",
        ),
        ({"examples": [{"src": ["a", "b"]}]}, "block 2, pair 1: 'trg' must be of type dict"),
    ],
)
def test_bad_bawden_blocks(tmp_path, block, message):
    path = tmp_path / "anaphora.json"
    path.write_text(json.dumps({"1": ANAPHORA, "2": block}), encoding="utf-8")
    refused(r"anaphora\.json, " + message, read_suite, path)


@real
@pytest.mark.parametrize(("json_name", "name"), [("anaphora", "anaphora"), ("lexical-choice", "lexical_choice")])
def test_real_bawden_files(json_name, name):
    items = read_suite(DATA / "bawden2018_enfr" / f"{json_name}.json")
    assert counts_note(items) is None and len(items) == 200
    assert without_location(read_suite(DATA / "bawden2018_enfr" / f"{name}.current.en")) == without_location(items)
