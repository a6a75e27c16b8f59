"""Contrastive suites: the ContraPro and Voita formats, bad files, the built-in suites, the real Voita files."""

import copy
import json
from collections import Counter
from pathlib import Path

import pytest

from hf_docmt.data.discourse_suites import make_suites
from hf_docmt.data.documents import write_documents
from hf_docmt.evaluation.suites import read_suite

VOITA = Path(__file__).parents[1] / ".." / "shared" / "data" / "voita2019"

DOCUMENT = {
    "doc_id": "1999_1_2",
    "translation": [
        {"en": "Where is the cup?", "de": "Wo ist die Tasse?"},
        {"en": "", "de": ""},
        {"en": "Here .", "de": "Hier."},
        {"en": "It 's red .", "de": "Sie ist rot."},
        {"en": "Bye.", "de": "Tschüss."},
    ],
}
CONTRAPRO = {
    "document id": "1999_1_2.de",
    "segment id": 4,
    "src segment": "It's red.",
    "ref segment": "Sie ist rot.",
    "src pronoun": "It",
    "ref pronoun": "Sie",
    "ante distance": 3,
    "intrasegmental": False,
    "errors": [{"contrastive": "Er ist rot."}, {"contrastive": "Es ist rot."}],
}
VOITA_ITEM = {
    "src": "a b _eos c _eos d",
    "dst": ["A B _eos C _eos D", "A B _eos C _eos E", "A B _eos C _eos D"],
    "true_ind": 1,
    "ctx_dist": 2,
}


@pytest.fixture
def write(tmp_path):
    """Writes a suite of these items, with the documents beside it."""

    def write(*items, name="suite.json", documents=(DOCUMENT,)):
        write_documents(documents, tmp_path / "documents.jsonl")
        path = tmp_path / name
        path.write_text(json.dumps(list(items)), encoding="utf-8")
        return path

    return write


def changed(item, **changes):
    item = copy.deepcopy(item) | changes
    return {key: value for key, value in item.items() if value is not ...}


def test_contrapro(write):
    (item,) = read_suite(write(CONTRAPRO))
    assert item.source == ("Where is the cup?", "", "Here .", "It's red.")
    assert item.target_context == ("Wo ist die Tasse?", "", "Hier.")
    assert item.candidates == ("Sie ist rot.", "Er ist rot.", "Es ist rot.") and item.correct == 0
    assert (item.phenomenon, item.distance, item.labels) == ("it:sie", 3, {"intrasegmental": "no"})
    assert (item.item_id, item.index) == ("suite:1", 3)


def test_contrapro_context(write, tmp_path):
    path = write(CONTRAPRO, changed(CONTRAPRO, **{"segment id": 1, "src segment": "Where is the cup?"}))
    near, first = read_suite(path, context=1)
    assert near.source == ("Here .", "It's red.") and near.target_context == ("Hier.",)
    assert first.source == ("Where is the cup?",) and first.target_context == () and first.index == 0
    (tmp_path / "documents.jsonl").rename(tmp_path / "elsewhere.jsonl")
    assert read_suite(path, documents=tmp_path / "elsewhere.jsonl", context=1) == [near, first]
    assert read_suite(path, context=0)[0].source == ("It's red.",)
    with pytest.raises(ValueError, match=r"documents\.jsonl is not there; give the documents"):
        read_suite(path)


def test_contrapro_nulls(write):
    plain = changed(
        CONTRAPRO, **{"intrasegmental": None, "ante distance": ..., "src pronoun": None, "document id": "1999_1_2"}
    )
    (item,) = read_suite(write(plain))
    assert (item.phenomenon, item.distance, item.labels) == ("suite", None, {})


def test_voita(write):
    (item,) = read_suite(write(VOITA_ITEM, name="lex_cohesion_dev.json"))
    assert item.source == ("a b", "c", "d") and item.target_context == ("A B", "C")
    assert item.candidates == ("D", "E", "D") and item.correct == 1
    assert (item.phenomenon, item.distance, item.index) == ("lex_cohesion", 2, 2)
    (near,) = read_suite(write(VOITA_ITEM), context=1)
    assert near.source == ("c", "d") and near.target_context == ("C",) and near.index == 2
    (alone,) = read_suite(write(VOITA_ITEM), context=0)
    assert alone.source == ("d",) and alone.target_context == ()


@pytest.mark.parametrize(
    ("item", "changes", "message"),
    [
        (CONTRAPRO, {"segment id": 6}, r"item 2: no segment 6 in document '1999_1_2.de', which has 1 to 5"),
        (CONTRAPRO, {"segment id": 0}, "item 2: no segment 0"),
        (CONTRAPRO, {"segment id": "4"}, "item 2: 'segment id' must be of type int, got '4'"),
        (CONTRAPRO, {"segment id": 3}, "item 2: 'src segment' is \"It's red.\", but segment 3 .* is 'Here .'"),
        (CONTRAPRO, {"document id": "2000_1.de"}, r"item 2: document '2000_1.de' is not in .*documents\.jsonl"),
        (CONTRAPRO, {"ref segment": ...}, "item 2: 'ref segment' must be of type str, it is missing"),
        (CONTRAPRO, {"errors": []}, "item 2: 0 contrastive translations, expected at least one"),
        (
            CONTRAPRO,
            {"errors": CONTRAPRO["errors"][:1]},
            "item 2: 1 contrastive translations, expected 2 as in the items",
        ),
        (CONTRAPRO, {"errors": [{}, {}]}, "item 2, error 1: 'contrastive' must be of type str"),
        (CONTRAPRO, {"ante distance": "far"}, "item 2: 'ante distance' must be of type int, got 'far'"),
        (VOITA_ITEM, {"src": ...}, "item 2: 'src' must be of type str, it is missing"),
        (VOITA_ITEM, {"true_ind": 3}, "item 2: true_ind is 3 with 3 candidates"),
        (VOITA_ITEM, {"true_ind": True}, "item 2: 'true_ind' must be of type int, got True"),
        (VOITA_ITEM, {"dst": VOITA_ITEM["dst"][:1], "true_ind": 0}, "item 2: true_ind is 0 with 1 candidates"),
        (VOITA_ITEM, {"dst": ["A _eos B _eos C", "A _eos B"]}, "item 2: candidate 1 has 2 sentences, the source has 3"),
        (VOITA_ITEM, {"dst": ["A _eos B _eos C", None]}, "item 2: candidate 1 is None, expected text"),
        (VOITA_ITEM, {"dst": ["A _eos B _eos C", "A _eos X _eos C"]}, "item 2: candidate 1 has another context"),
    ],
)
def test_bad_items_are_named(write, item, changes, message):
    with pytest.raises(ValueError, match=r"suite\.json, " + message):
        read_suite(write(item, changed(item, **changes)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[\n{"src": "a",\n "dst" ["b"]}]', r"suite\.json, line 3, column 8: broken JSON"),
        (b'[{"src": "\xff"}]', r"suite\.json.*byte offset 10"),
        (b"", r"suite\.json: the file is empty"),
        (b"[]", r"suite\.json: a suite is a JSON list of at least one item"),
        (b'{"src": "a"}', r"suite\.json: a suite is a JSON list of at least one item, got dict"),
        (b'["a"]', r"suite\.json, item 1: expected an object, got str"),
        (b'[{"text": "a"}]', r"suite\.json: neither ContraPro .* nor Voita .*'text'"),
    ],
)
def test_bad_files_are_named(tmp_path, content, message):
    path = tmp_path / "suite.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_suite(path)


def test_bad_arguments(write):
    with pytest.raises(ValueError, match="unknown suite format 'bleu'"):
        read_suite(write(VOITA_ITEM), "bleu")
    with pytest.raises(ValueError, match="context is -1"):
        read_suite(write(VOITA_ITEM), context=-1)
    with pytest.raises(ValueError, match="does not exist"):
        read_suite("nowhere.json")
    with pytest.raises(ValueError, match="documents need 'translation'"):
        read_suite(write(CONTRAPRO, documents=({"doc_id": "1999_1_2", "source": ["a"], "target": ["b"]},)))


def test_built_in_suites(tmp_path):
    """What the discourse corpus writes is read with every context, distance and answer as made."""
    suites = make_suites(seed=3, items_per_cell=2)
    write_documents(suites.pop("documents"), tmp_path / "documents.jsonl")
    for name, entries in suites.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(entries), encoding="utf-8")
        items = read_suite(path, context=4)
        assert len(items) == len(entries) > 0
        assert all(len(item.target_context) == len(item.source) - 1 >= 3 for item in items)
        key = "ante distance" if name == "pronoun" else "ctx_dist"
        assert [item.distance for item in items] == [entry[key] for entry in entries]
        names = {f"it:{pronoun}" for pronoun in ("er", "sie", "es")} if name == "pronoun" else {name}
        assert {item.phenomenon for item in items} == names


@pytest.mark.skipif(not VOITA.is_dir(), reason="the data folder is not there")
@pytest.mark.parametrize(
    ("name", "phenomenon", "count", "candidates"),
    [
        ("deixis_dev", "deixis", 482, 964),
        ("lex_cohesion_dev", "lex_cohesion", 395, 887),
        ("ellipsis_infl", "ellipsis_infl", 493, 2484),
    ],
)
def test_real_voita_files(name, phenomenon, count, candidates):
    items = read_suite(VOITA / f"{name}.json")
    assert len(items) == count
    assert sum(len(item.candidates) for item in items) == candidates
    assert {item.phenomenon for item in items} == {phenomenon}
    assert all(len(item.source) == 4 and len(item.target_context) == 3 for item in items)
    assert set(Counter(item.distance for item in items)) == {1, 2, 3}
    lines = (VOITA / "scoring_data" / f"{name}.dst").read_text(encoding="utf-8").split("\n")
    flat = [" _eos ".join((*item.target_context, one)) for item in items for one in item.candidates]
    assert [line.strip() for line in lines if line] == [line.strip() for line in flat]
