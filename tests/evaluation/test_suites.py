"""Contrastive suites: the published formats as JSON and as text, bad files, counts, languages, the real files."""

import copy
import dataclasses
import json
from collections import Counter
from pathlib import Path

import pytest

from hf_docmt.data.documents import write_documents
from hf_docmt.data.synthetic.suites import make_suites
from hf_docmt.evaluation.suites import SuiteItem, check_language, counts_note, read_suite

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

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
    with pytest.raises(ValueError, match=r"nowhere\.jsonl is not there"):  # not ignored where no context is read
        read_suite(path, documents=tmp_path / "nowhere.jsonl", context=0)
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
    others = [changed(VOITA_ITEM, src=source) for source in ("a b _eos c _eos e", "x _eos c _eos d")]
    for context in (0, 1, 3):  # items of one context, however much of it is read
        found = read_suite(write(VOITA_ITEM, *others, name="deixis_dev.json"), context=context)
        assert [item.group for item in found] == ["deixis_dev:1", "deixis_dev:1", "deixis_dev:3"]


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
        (b"[]", r"suite\.json: a suite is a JSON list of items, at least one"),
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
    with pytest.raises(ValueError, match=message):
        read_suite(path)


def test_bad_arguments(write):
    with pytest.raises(ValueError, match="unknown suite format 'bleu'"):
        read_suite(write(VOITA_ITEM), "bleu")
    with pytest.raises(ValueError, match="context is -1"):
        read_suite(write(VOITA_ITEM), context=-1)
    with pytest.raises(ValueError, match="future_context -2; expected the number of sentences"):
        read_suite(write(VOITA_ITEM), future_context=-2)
    with pytest.raises(ValueError, match=r"records is a\.json, but .*suite\.json has no use for it, it is for text"):
        read_suite(write(VOITA_ITEM), records="a.json")
    with pytest.raises(
        ValueError, match=r"context_file is 3, but .*suite\.json has no use for it, .* text files of Lopes"
    ):
        read_suite(write(VOITA_ITEM), context_file=3)
    with pytest.raises(
        ValueError, match=r"documents is a\.jsonl, but .*suite\.json has no use for it, .* JSON of ContraPro"
    ):
        read_suite(write(VOITA_ITEM), documents="a.jsonl")
    with pytest.raises(ValueError, match="does not exist"):
        read_suite("nowhere.json")
    with pytest.raises(ValueError, match="documents need 'translation'"):
        read_suite(write(CONTRAPRO, documents=({"doc_id": "1999_1_2", "source": ["a"], "target": ["b"]},)))


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


def test_built_in_cataphora(tmp_path):
    """The sentence that names the antecedent comes with the context after the current one."""
    suites = make_suites(seed=3, items_per_cell=2, cataphora=True)
    write_documents(suites["documents"], tmp_path / "documents.jsonl")
    (tmp_path / "cataphora.json").write_text(json.dumps(suites["cataphora"]), encoding="utf-8")
    items = read_suite(tmp_path / "cataphora.json", context=1, future_context=1)
    for item, entry in zip(items, suites["cataphora"], strict=True):
        assert item.distance == -1 and len(item.source_after) == 1
        assert entry["src ante head"] in item.source_after[0]


# Text files


LOPES = [  # source, French lines, source context, target context
    ("It is red.", ("Elle est rouge.", "Il est rouge."), ["a", "b", "c"], ["A", "B", "C"]),
    ("Where are they?", ("Où sont-ils ?", "Où sont-elles ?"), ["", "", ""], ["", "", ""]),
    ("They say it.", ("Qu'elles le disent, elles.", "Qu'ils le disent, ils."), ["", "b", "c"], ["", "B", "C"]),
]


@pytest.fixture
def lopes(tmp_path):
    """Writes the published files, after `change` was made to {file: lines}; gives the folder."""

    def write(change=lambda files: None, sizes=(3,)):
        files = {
            "OpenSubs.current.src": [source for source, *_ in LOPES for _ in range(2)],
            "OpenSubs.current.trg": [line for _, lines, *_ in LOPES for line in lines],
        }
        for size in sizes:
            for side, place in (("src", 2), ("trg", 3)):
                lines = [line for item in LOPES for _ in range(2) for line in item[place][-size:]]
                files[f"OpenSubs.c{size}.context.{side}"] = lines
        change(files)
        return write_lines(tmp_path / "lopes", files)

    return write


def write_lines(folder, files):
    folder.mkdir()
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return folder


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


ANAPHORA = {
    "src": ["The houses are old.", "They are red."],
    "trg": [
        {
            "correct": ["Les maisons sont vieilles.", "Elles sont rouges."],
            "incorrect": ["Les maisons sont vieilles.", "Ils sont rouges."],
            "type": "f.pl",
        },
        {
            "semi-correct": ["Les bâtiments sont vieux.", "Ils sont rouges."],
            "incorrect": ["Les bâtiments sont vieux.", "Elles sont rouges."],
            "type": "m.pl",
        },
    ]
    * 2,
}
CHOICES = {
    "type": "repet",
    "examples": [
        {
            "src": ["Crazy?", "Is this crazy?"],
            "trg": {"correct": ["Dingue ?", "C'est dingue ?"], "incorrect": ["Dingue ?", "C'est fou ?"]},
        },
        {
            "src": ["Mad?", "Is this crazy?"],
            "trg": {"correct": ["Fou ?", "C'est fou ?"], "incorrect": ["Fou ?", "C'est dingue ?"]},
        },
    ],
}


def bawden_files(name="anaphora", blocks=(ANAPHORA, ANAPHORA)):
    """The text files of a set: two lines a pair."""
    pairs = []
    for block in blocks:
        for example in block.get("examples") or [{"src": block["src"], "trg": target} for target in block["trg"]]:
            target = example["trg"]
            right = target["correct"] if "correct" in target else target["semi-correct"]
            pairs += [(example["src"], right), (example["src"], target["incorrect"])]
    return {
        f"{name}.{part}.{lang}": [pair[side][place] for pair in pairs]
        for place, part in enumerate(("prev", "current"))
        for side, lang in enumerate(("en", "fr"))
    }


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
    assert items[1].place == f"{path}, block 1, pair 2" and items[4].item_id == "anaphora:5"
    alone = read_suite(path, context=0)[1]
    assert (alone.source, alone.target_context, alone.index) == (("They are red.",), (), 1)


def test_bawden_lexical_choice(tmp_path):
    path = tmp_path / "lexical-choice.json"
    path.write_text(json.dumps({"1": CHOICES}), encoding="utf-8")
    first, second = read_suite(path)
    assert (first.phenomenon, first.labels, first.group) == ("lexical_choice", {"type": "repet"}, "lexical_choice:1")
    assert second.source[0] == "Mad?" and second.candidates == first.candidates[::-1]
    folder = write_lines(tmp_path / "text", bawden_files("lexical_choice", [CHOICES]))
    assert placeless(read_suite(folder / "lexical_choice.prev.fr")) == placeless([first, second])


def placeless(items):
    return [dataclasses.replace(item, place="") for item in items]


def test_bawden_text(tmp_path):
    folder = write_lines(tmp_path / "text", bawden_files())
    plain = read_suite(folder / "anaphora.current.fr")
    assert [item.group for item in plain] == ["anaphora:1"] * 4 + ["anaphora:2"] * 4
    assert plain[0].place == f"{folder / 'anaphora.current.en'}, line 1" and plain[1].place.endswith("line 3")
    assert {len(item.labels) for item in plain} == {0}
    (folder / "anaphora.json").write_text(json.dumps({"1": ANAPHORA, "2": ANAPHORA}), encoding="utf-8")
    told = read_suite(folder / "anaphora.json")
    for name in ("current.en", "prev.fr"):
        assert placeless(read_suite(folder / f"anaphora.{name}")) == placeless(told)
    assert placeless(plain) == [dataclasses.replace(item, labels={}) for item in placeless(told)]
    (folder / "anaphora.json").rename(tmp_path / "blocks.json")
    (folder / "anaphora.prev.fr").write_text("\n" * 16, encoding="utf-8")
    with pytest.raises(ValueError, match=r"current\.en, line 1: its previous sentence is missing or empty"):
        read_suite(folder / "anaphora.current.en")
    other = write_lines(tmp_path / "other", bawden_files("idioms"))
    with pytest.raises(
        ValueError, match="a block is known of anaphora and lexical_choice; give the set's JSON as records"
    ):
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
        ("prev.fr", 3, "Les maisons.", r"prev\.en: the context of line 4 is not that of line 3"),
        ("prev.en", slice(4, 6), ["", ""], r"current\.en, line 5: '' is not 'The houses are old"),
        ("current.en", 1, "They are blue.", r"current\.en, line 2: 'They are blue\.' is not line 1 again"),
        ("prev.en", slice(14, None), [], r"prev\.en: ends after line 14"),
        ("current.en", slice(14, None), [], r"current\.en: ends after line 14"),
    ],
)
def test_bad_bawden_text(tmp_path, name, line, text, message):
    files = bawden_files()
    files[f"anaphora.{name}"][line] = text
    folder = write_lines(tmp_path / "text", files)
    (folder / "anaphora.json").write_text(json.dumps({"1": ANAPHORA, "2": ANAPHORA}), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_suite(folder / "anaphora.current.en")


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
    with pytest.raises(ValueError, match=r"anaphora\.json, " + message):
        read_suite(path)


def contrapro_files():
    """What the published extraction makes of the item, twice; the second without context."""
    candidates = [CONTRAPRO["ref segment"], *(error["contrastive"] for error in CONTRAPRO["errors"])]
    context = [["", "Where is it?", "Here."], ["", "Wo ist sie?", "Hier."]]
    return {
        "contrapro.text.en": [CONTRAPRO["src segment"]] * 6,
        "contrapro.text.de": candidates * 2,
        "contrapro.context.en": context[0] * 3 + [""] * 9,
        "contrapro.context.de": context[1] * 3 + [""] * 9,
    }


def test_contrapro_text(tmp_path):
    folder = write_lines(tmp_path / "text", contrapro_files())
    first, second = read_suite(folder / "contrapro.text.en")
    assert first.source == ("Where is it?", "Here.", "It's red.") and first.target_context == ("Wo ist sie?", "Hier.")
    assert second.source == ("It's red.",) and second.target_context == ()
    assert first.candidates == ("Sie ist rot.", "Er ist rot.", "Es ist rot.")
    assert (first.phenomenon, first.distance, first.index, first.group) == ("it:sie", None, 2, None)
    assert (first.languages, first.item_id, second.place) == (
        ("en", "de"),
        "contrapro:1",
        f"{folder / 'contrapro.text.en'}, line 4",
    )
    assert read_suite(folder / "contrapro.text.de", context=1)[0].source == ("Here.", "It's red.")
    records = tmp_path / "contrapro.json"
    records.write_text(json.dumps([CONTRAPRO, changed(CONTRAPRO, **{"ante distance": 0})]), encoding="utf-8")
    told = read_suite(folder / "contrapro.text.en")
    assert [item.distance for item in told] == [3, 0]
    assert (told[0].labels, told[0].group, told[0].index) == ({"intrasegmental": "no"}, "1999_1_2.de", 3)
    assert [item.source for item in told] == [first.source, second.source]
    (folder / "contrapro.text.de").write_text(
        "Sie &apos; ist ROT .\nEr ist rot .\nEs war rot .\n" * 2, encoding="utf-8"
    )
    with pytest.raises(ValueError, match=r"text\.en, line 1: 'Es war rot \.' is not 'Es ist rot\.', .*json, item 1"):
        read_suite(folder / "contrapro.text.en")


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("text", slice(5), r"contrapro\.text\.en: 5 lines, expected a multiple of 3.* ends in line 3"),
        ("context", slice(17), r"context\.en: 17 lines, expected 18, 3 for each of the 6 lines"),
    ],
)
def test_bad_contrapro_text(tmp_path, name, lines, message):
    files = contrapro_files()
    for lang in ("en", "de"):
        files[f"contrapro.{name}.{lang}"] = files[f"contrapro.{name}.{lang}"][lines]
    folder = write_lines(tmp_path / "text", files)
    with pytest.raises(ValueError, match=message):
        read_suite(folder / "contrapro.text.en", context=3 if name == "context" else 0)


def test_contrapro_text_needs_context_files(tmp_path):
    files = {name: lines for name, lines in contrapro_files().items() if "text" in name.split(".")}
    folder = write_lines(tmp_path / "text", files)
    with pytest.raises(ValueError, match=r"contrapro\.context\.en: the file does not exist"):
        read_suite(folder / "contrapro.text.en")
    assert len(read_suite(folder / "contrapro.text.en", context=0)) == 2


def test_contrapro_future_context(write):
    path = write(CONTRAPRO, changed(CONTRAPRO, **{"segment id": 1, "src segment": "Where is the cup?"}))
    last, first = read_suite(path, context=0, future_context=2)
    assert last.source == ("It's red.",) and (last.source_after, last.target_after) == (("Bye.",), ("Tschüss.",))
    assert (first.source_after, first.target_after) == (("", "Here ."), ("", "Hier."))
    assert {item.group for item in (first, last)} == {"1999_1_2.de"}
    assert read_suite(path)[0].source_after == ()


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
    assert [item.place.rpartition("/")[2] for item in items] == ["deixis_dev.src, line 1", "deixis_dev.src, line 4"]
    assert (items[0].distance, items[0].phenomenon, items[0].format) == (2, "deixis", "voita")
    assert read_suite(folder / "deixis_dev.dst", context=1) == items
    path.rename(tmp_path / "blocks.json")
    with pytest.raises(ValueError, match=r"which lines are one item is in deixis_dev\.json, which is not beside"):
        read_suite(folder / "deixis_dev.src")
    assert len(read_suite(folder / "deixis_dev.src", records=tmp_path / "blocks.json")) == 2
    (folder / "deixis_dev.dst").write_text("a _eos b _eos c\n" * 5, encoding="utf-8")
    with pytest.raises(ValueError, match=r"deixis_dev\.src, line 1: 'a _eos b _eos c' is not 'A B _eos C _eos D'"):
        read_suite(folder / "deixis_dev.src", records=tmp_path / "blocks.json")
    for suffix in ("src", "dst"):
        (folder / f"deixis_dev.{suffix}").write_text(f"{VOITA_ITEM['src']}\n" * 4, encoding="utf-8")
    with pytest.raises(ValueError, match=r"deixis_dev\.src: 4 lines, expected 5 for 2 items"):
        read_suite(folder / "deixis_dev.src", records=tmp_path / "blocks.json")


# What is published


def made(count, **fields):
    given = {"item_id": "x:1", "source": ("s",), "target_context": (), "candidates": ("a", "b"), "correct": 0}
    return [SuiteItem(**{**given, "phenomenon": "p", "distance": None, **fields})] * count


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
    assert counts_note(made(12000, **german)) is None  # distances are not told
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


def test_languages(write, lopes):
    french = read_suite(lopes())
    check_language(french, "en", "fr")
    check_language(french, "eng_Latn", "fr_XX")
    check_language(french, None, None)
    with pytest.raises(ValueError, match=r"current\.src, line 1: the target language is 'fr', the model's 'de'"):
        check_language(french, "en", "de")
    with pytest.raises(ValueError, match="source language is 'en', the model's 'de'; take data from de to fr"):
        check_language(french, "de", "fr")
    german = write(CONTRAPRO)
    assert read_suite(german)[0].languages == ("en", "de")  # from the documents
    assert read_suite(german, context=0)[0].languages == (None, "de")  # from the document id
    with pytest.raises(ValueError, match="the target language is 'de', the model's 'fr'"):
        check_language(read_suite(german, context=0), "en", "fr")
    check_language(read_suite(write(VOITA_ITEM, name="deixis_dev.json")), "en", "de")  # others use the format
    russian = changed(VOITA_ITEM, dst=["А _eos Б _eos В", "А _eos Б _eos Г"])
    assert read_suite(write(russian, name="deixis.json"))[0].languages == (None, None)
    with pytest.raises(ValueError, match=r"item 1: the target language is 'ru', the model's 'de'"):
        check_language(read_suite(write(russian, name="deixis_dev.json")), "en", "de")


# The real files


real = pytest.mark.skipif(not DATA.is_dir(), reason="the data folder is not there")


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
    assert placeless(read_suite(DATA / "voita2019" / "scoring_data" / f"{name}.dst")) == placeless(items)
    assert {item.languages for item in items} == {("en", "ru")}
    assert f"items {count} (published 500)" in counts_note(items)


@real
def test_real_lopes_files():
    items = read_suite(DATA / "lopes2020_enfr")
    assert Counter(item.phenomenon for item in items) == {"ils": 3287, "elle": 1350, "elles": 1229, "il": 1137}
    assert Counter(len(item.source) for item in items) == {4: 6974, 1: 29}


@real
@pytest.mark.parametrize(("json_name", "name"), [("anaphora", "anaphora"), ("lexical-choice", "lexical_choice")])
def test_real_bawden_files(json_name, name):
    items = read_suite(DATA / "bawden2018_enfr" / f"{json_name}.json")
    assert counts_note(items) is None and len(items) == 200
    assert placeless(read_suite(DATA / "bawden2018_enfr" / f"{name}.current.en")) == placeless(items)
