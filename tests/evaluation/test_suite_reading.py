"""Suites of any format: bad files and arguments, the built-in suites, published counts, languages."""

import json

import pytest
from support.errors import refused
from support.suite_files import CONTRAPRO, VOITA_ITEM, changed

from hf_docmt.data.documents import write_documents
from hf_docmt.data.synthetic.suites import make_suites
from hf_docmt.evaluation.suites import SuiteItem, check_language, counts_note, read_suite


def made(count, **fields):
    given = {"item_id": "x:1", "source": ("s",), "target_context": (), "candidates": ("a", "b"), "correct": 0}
    return [SuiteItem(**{**given, "phenomenon": "p", "distance": None, **fields})] * count


@pytest.mark.parametrize(
    ("item", "changes", "message"),
    [
        (CONTRAPRO, {"segment id": 6}, r"item 2: no segment 6 in document '1999_1_2.de', which has 1 to 5"),
        (CONTRAPRO, {"segment id": 0}, "item 2: no segment 0"),
        (CONTRAPRO, {"segment id": "4"}, "item 2: 'segment id' must be of type int, got '4'"),
        (CONTRAPRO, {"segment id": 3}, "item 2: 'src segment' is \"It's red.\", but segment 3 .* is 'Here .'"),
        (CONTRAPRO, {"document id": "2000_1.de"}, r"item 2: document '2000_1.de' is not in .*documents\.jsonl"),
        (CONTRAPRO, {"ref segment": ...}, "item 2: 'ref segment' must be of type str, it is missing"),
        (CONTRAPRO, {"errors": []}, "item 2: no contrastive translations, expected at least one"),
        (CONTRAPRO, {"errors": [{}, {}]}, "item 2, error 1: 'contrastive' must be of type str"),
        (CONTRAPRO, {"ante distance": "far"}, "item 2: 'ante distance' must be of type int, got 'far'"),
        (CONTRAPRO, {"group": 3}, "item 2: 'group' must be of type str, got 3"),
        (VOITA_ITEM, {"group": ["a"]}, "item 2: 'group' must be of type str"),
        (VOITA_ITEM, {"src": ...}, "item 2: 'src' must be of type str, it is missing"),
        (VOITA_ITEM, {"true_ind": 3}, "item 2: true_ind is 3 with 3 candidates"),
        (VOITA_ITEM, {"true_ind": True}, "item 2: 'true_ind' must be of type int, got True"),
        (VOITA_ITEM, {"dst": VOITA_ITEM["dst"][:1], "true_ind": 0}, "item 2: true_ind is 0 with 1 candidates"),
        (VOITA_ITEM, {"dst": ["A _eos B _eos C", "A _eos B"]}, "item 2: candidate 1 has 2 sentences, the source has 3"),
        (VOITA_ITEM, {"dst": ["A _eos B _eos C", None]}, "item 2: candidate 1 is None, expected text"),
        (VOITA_ITEM, {"dst": ["A _eos B _eos C", "A _eos X _eos C"]}, "item 2: candidate 1 has another context"),
    ],
)
def test_bad_items_are_named(write_suite, item, changes, message):
    refused(r"suite\.json, " + message, read_suite, write_suite(item, changed(item, **changes)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[\n{"src": "a",\n "dst" ["b"]}]', r"suite\.json, line 3, column 8: broken JSON"),
        (b'[{"src": "\xff"}]', r"suite\.json.*byte offset 10"),
        (b"", r"suite\.json: the file is empty"),
        (b"3", r"suite\.json: a suite is a JSON list of items, at least one, got int"),
        (b"{}", r"suite\.json: a suite is a JSON object of blocks, at least one"),
        (b'{"src": "a"}', r"suite\.json, block src: expected an object, got str"),
        (b'["a"]', r"suite\.json, item 1: expected an object, got str"),
        (b'[{"text": "a"}]', r"suite\.json: neither ContraPro .* nor Voita .*'text'"),
    ],
)
def test_bad_files_are_named(tmp_path, content, message):
    path = tmp_path / "suite.json"
    path.write_bytes(content)
    refused(message, read_suite, path)


def test_bad_arguments(write_suite):
    refused("unknown suite format 'bleu'", read_suite, write_suite(VOITA_ITEM), "bleu")
    refused("context is -1", read_suite, write_suite(VOITA_ITEM), context=-1)
    with pytest.raises(ValueError, match="future_context -2; expected the number of sentences"):
        read_suite(write_suite(VOITA_ITEM), future_context=-2)
    with pytest.raises(ValueError, match=r"records is a\.json, but .*suite\.json has no use for it, it is for text"):
        read_suite(write_suite(VOITA_ITEM), records="a.json")
    with pytest.raises(ValueError, match=r"is a\.jsonl, but .*suite\.json has no use for it, .* JSON of ContraPro"):
        read_suite(write_suite(VOITA_ITEM), documents="a.jsonl")
    refused("does not exist", read_suite, "nowhere.json")
    with pytest.raises(ValueError, match="documents need 'translation'"):
        read_suite(write_suite(CONTRAPRO, documents=({"doc_id": "1999_1_2", "source": ["a"], "target": ["b"]},)))


def test_built_in_suites(tmp_path):
    """What the discourse corpus writes is read with every context, distance and answer as made."""
    suites = make_suites(seed=3, items_per_cell=2)
    pronouns = {"pronoun": {"it:er", "it:sie", "it:es"}, "register": {"you:du", "you:sie"}}
    write_documents(suites.pop("documents"), tmp_path / "documents.jsonl")
    for name, entries in suites.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(entries), encoding="utf-8")
        items = read_suite(path, context=4)
        assert len(items) == len(entries) > 0
        key = "ctx_dist" if name not in pronouns else "ante distance"
        assert [item.distance for item in items] == [entry[key] for entry in entries]
        before = [min(item.distance, 4) if name == "register" else 3 for item in items]
        assert all(len(i.target_context) == len(i.source) - 1 >= least for i, least in zip(items, before, strict=True))
        assert {item.phenomenon for item in items} == pronouns.get(name, {name})
        assert [(item.group, item.group_unit) for item in items] == [(entry["group"], "group") for entry in entries]


def test_counts_note():
    deixis = made(2500, item_id="deixis_test:1", format="voita")
    assert counts_note(deixis) is None
    assert counts_note(deixis[:-1]) == (
        "deixis_test: other counts than published: items 2,499 (published 2,500), candidates 4,998 (published 5,000)"
    )
    assert counts_note(made(3, item_id="my_own:1", format="voita")) is None
    assert counts_note(made(3, item_id="deixis_test:1")) is None
    sizes = {0: 2400, 1: 7075, 2: 1510, 3: 573, 4: 400, 9: 42}
    german = {"item_id": "contrapro:1", "format": "contrapro", "candidates": ("a", "b", "c")}
    whole = [item for far, n in sizes.items() for item in made(n, distance=far, **german)]
    assert counts_note(whole) is None
    assert "distance=>3 441 (published 442)" in counts_note(whole[:-1])
    assert counts_note(made(12000, **german)) is None  # distances are not known
    french = {"item_id": "OpenSubs:1", "format": "lopes"}
    items = [item for pronoun in ("il", "elle", "ils", "elles") for item in made(3500, phenomenon=pronoun, **french)]
    assert counts_note(items) is None
    assert "phenomenon=elles 3,499 (published 3,500)" in counts_note(items[:-1])
    pairs = [
        item
        for block in range(50)
        for kind in ("correct", "semi-correct")
        for item in made(2, item_id="anaphora:1", format="bawden", labels={"kind": kind}, group=f"anaphora:{block}")
    ]
    assert counts_note(pairs) is None
    assert counts_note(pairs[:-4]).count("published") == 5


@pytest.mark.parametrize(
    ("name", "document", "is_contrapro"),
    [
        ("contrapro", "d1", True),
        ("my_copy", "1999_1_2.de", True),
        ("pronoun", "pronoun-1-2-er", False),  # of the built-in corpus
        ("pronoun", None, False),
    ],
)
def test_suites_in_the_format_of_contrapro_are_others(name, document, is_contrapro):
    items = made(3, item_id=f"{name}:1", format="contrapro", group=document)
    assert (counts_note(items) is not None) == is_contrapro


def test_languages(write_suite, lopes):
    french = read_suite(lopes())
    check_language(french, "en", "fr")
    check_language(french, "eng_Latn", "fr_XX")
    check_language(french, None, None)
    refused(r"current\.src, line 1: the target language is 'fr', the model's 'de'", check_language, french, "en", "de")
    refused("source language is 'en', the model's 'de'; use data from de to fr", check_language, french, "de", "fr")
    german = write_suite(CONTRAPRO)
    assert read_suite(german)[0].languages == ("en", "de")  # from the documents
    assert read_suite(german, context=0)[0].languages == (None, "de")  # from the document id
    refused("the target language is 'de', the model's 'fr'", check_language, read_suite(german, context=0), "en", "fr")
    check_language(read_suite(write_suite(VOITA_ITEM, name="deixis_dev.json")), "en", "de")  # others use the format
    russian = changed(VOITA_ITEM, dst=["А _eos Б _eos В", "А _eos Б _eos Г"])
    assert read_suite(write_suite(russian, name="deixis.json"))[0].languages == (None, None)
    with pytest.raises(ValueError, match=r"item 1: the target language is 'ru', the model's 'de'"):
        check_language(read_suite(write_suite(russian, name="deixis_dev.json")), "en", "de")
