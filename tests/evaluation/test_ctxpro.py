"""ctxpro: reading, the rule by hand and against a second reading, intervals, bad files, the real sets."""

import json
import random
import re
import string
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.errors import refused

from hf_docmt.evaluation.contrastive_accuracy import wilson_interval
from hf_docmt.evaluation.ctxpro import (
    generative_report,
    generative_result,
    is_right,
    nearest_context,
    read_set,
    translation_file_report,
)
from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.messages import install_command
from hf_docmt.systems import ContextReach, DocMTSystem, Seq2SeqSystem, System

CTXPRO = Path(__file__).resolve().parents[3] / "shared" / "data" / "ctxpro_ende"

ENTRIES = [
    {
        "expected": "sie",
        "rule": "ACC.FORM+PLUR",
        "src segment": "I see you. Really.",
        "ref segment": "Ich sehe Sie. Wirklich.",
        "document id": "2016/a",
        "segment id": 7,
    },
    {
        "expected": "Weißt",
        "rule": "DO.ELL",
        "src segment": "Do you?",
        "ref segment": "Weißt du es?",
        "document id": "2016/b",
        "segment id": 3,
        "ante distance": 5,
    },
]
LINES = ["Hello.<eos> <eos> _ What?<eos> I see you. Really.", "Do you?"]


@pytest.fixture
def write(tmp_path):
    """Writes a set in the published folders and returns the JSON's path."""

    def write(entries=ENTRIES, lines=LINES, name="aux.en-de.dev"):
        for folder in ("evalsets", "inputs"):
            (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / "inputs" / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        path = tmp_path / "evalsets" / f"{name}.json"
        path.write_text(json.dumps(entries), encoding="utf-8")
        return path

    return write


def item(expected="du", rule="NOM", group="a", distance=None, number=1):
    source, labels = ("Hello.", "You?"), {"expected": expected}
    return SuiteItem(f"set:{number}", source, ("",), ("Du?",), 0, rule, distance, labels, group=group)


def right(text, word="du", **options):
    return is_right(item(word), ["Hallo.", text], **options)


def result_of(items, outputs):
    verdicts = [is_right(*pair) for pair in zip(items, outputs, strict=True)]
    return generative_result(items, verdicts, "line", "dev", {"past": 3, "future": 0, "context": "true"})


def test_reading(write):
    first, second = read_set(write())
    assert first.source == ("Hello.", "", "_ What?", "I see you. Really.")
    assert (first.labels["expected"], first.phenomenon, first.candidates[0]) == (
        "sie",
        "ACC.FORM+PLUR",
        "Ich sehe Sie. Wirklich.",
    )
    assert (first.item_id, first.group, first.distance) == ("aux.en-de.dev:1", "2016/a", None)
    assert (second.item_id, second.source, second.distance) == ("aux.en-de.dev:2", ("Do you?",), 5)


def test_inputs_elsewhere(write, tmp_path):
    path = write()
    items = read_set(path)
    (tmp_path / "inputs" / "aux.en-de.dev").rename(tmp_path / "texts")
    assert read_set(path, tmp_path / "texts") == items
    refused(r"aux\.en-de\.dev is missing; give the file of inputs", read_set, path)


def test_context(write):
    items = read_set(write())
    assert [nearest_context(item, 1).source for item in items] == [("_ What?", "I see you. Really."), ("Do you?",)]
    assert [nearest_context(item, 0).source for item in items] == [("I see you. Really.",), ("Do you?",)]
    assert nearest_context(items[0], 10**6) == items[0] and items[0].target_context == ("",) * 3


@pytest.mark.parametrize(
    ("text", "expected", "answer"),
    [
        ("Kommst du?", "du", True),
        ("DU kommst.", "du", True),
        ("du", "du", True),
        ("Kommst Du, Anna?", "du", True),
        ('"Du"', "du", True),
        ("Wirst du's sehen?", "du", False),  # the apostrophe goes, dus stays
        ("„Du“ kommst.", "du", False),  # other than ASCII punctuation stays
        ("Dumm.", "du", False),
        ("Kommst-du", "du", False),
        ("Kommst -du", "du", True),
        ("Sie kommen.", "du", False),
        ("", "du", False),
        ("Gibt's das?", "gibt's", True),
        ("Weißt du?", "Weißt", True),
        ("Kommst\tdu jetzt", "du", False),  # a blank is meant
    ],
)
def test_rule_by_hand(text, expected, answer):
    assert right(text, expected) is answer


PUBLISHED = {"rule": "published", "target_lang": "de"}


def test_expected_word_of_the_published_rule():
    """It is lower-cased, its punctuation stays, so that it is never found; what is punctuation alone never is."""
    pytest.importorskip("sentence_splitter")
    assert right("Weißt du?", "Weißt", **PUBLISHED) is True
    assert right("Gibt's das?", "gibt's", **PUBLISHED) is False
    for options in ({}, PUBLISHED):
        assert right("Wirklich?!", "?!", **options) is False
        assert right("Es sind 12.", "12", **options) is True
        assert right("Ja … oder?", "…", **options) is True  # not ASCII


def test_only_the_last_sentence_counts():
    assert not is_right(item(), ["Du?", "Sie?"])
    assert right("Sie? <eos> Du?") and not right("Du? <eos> Sie?")
    pytest.importorskip("sentence_splitter")
    assert right("Du kommst. Gut.") and not right("Du kommst. Gut.", **PUBLISHED)
    assert right("Gut. Du kommst.", **PUBLISHED) and right("Kommst du", **PUBLISHED)
    assert not right("", **PUBLISHED)
    assert is_right(item(), ["Kommst", "du jetzt?", ""], **PUBLISHED)
    refused("give target_lang, such as 'de'", right, "du", rule="published")
    with pytest.raises(ValueError, match="sentence_splitter has no rules for 'zz'; use the rule 'line'"):
        right("du", rule="published", target_lang="zz")


def test_the_splitter_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_splitter", None)
    with pytest.raises(ValueError, match=re.escape(f"{install_command('ctxpro')}, or use the rule 'line'")):
        right("du", rule="published", target_lang="xx")


def test_result_by_hand():
    items = [item(group="b"), item(rule="ACC", distance=1), item(group="b", distance=4), item(distance=9)]
    outputs = [["du"], ["Sie"], ["du"], ["du"]]
    found = result_of(items, outputs)
    assert (found.value, found.n, found.task) == (75, 4, "discourse")
    values = {label: (part.value, part.n) for label, part in found.breakdown.items()}
    assert values == {"distance=1": (0, 1), "distance=>3": (100, 2), "rule=ACC": (0, 1), "rule=NOM": (100, 3)}
    assert found.breakdown["rule=NOM"].details["interval"] == wilson_interval(3, 3)
    assert found.details["statistics"] == {"unit": "document", "ids": ["b", "a"], "rows": [[2, 2], [1, 2]]}
    assert found.details["interval"] == wilson_interval(3, 4)
    assert str(found.signature).startswith(
        "right:expected-word-in-last-sentence|last:line|case:lc|punctuation:ascii-deleted|expected:normalised|past:3|"
        "future:0|context:true|version:"
    )


@pytest.mark.parametrize(
    ("changes", "lines", "message"),
    [
        ({"expected": None}, LINES, r"json, item 2: 'expected' must be of type str, it is missing"),
        ({"ante distance": "far"}, LINES, r"json, item 2: 'ante distance' must be of type int, got 'far'"),
        ({}, LINES[:1], r"dev: 1 lines for 2 items in .*json; give the whole files"),
        ({}, LINES[::-1], r"dev, line 1: the last sentence is 'Do you\?', but the item has 'I see you"),
        ({"src segment": "Did you?"}, LINES, r"dev, line 2: the last sentence is 'Do you\?', but the item has 'Did"),
    ],
)
def test_bad_items_are_named(write, changes, lines, message):
    refused(message, read_set, write([ENTRIES[0], ENTRIES[1] | changes], lines))


def test_bad_outputs(write):
    system = Answers()
    system.translate = lambda documents: [["du"]]
    refused("is shorter", generative_report, system, [write()])


@pytest.mark.skipif(not CTXPRO.is_dir(), reason="the data folder is not there")
@pytest.mark.parametrize(
    ("name", "counts", "references"),
    [  # items, documents, sentences, tokens; right references
        ("auxiliary", (608, 499, 6072, 38254), 608),
        ("formality", (900, 432, 8956, 60275), 899),
    ],
)
def test_real_sets(name, counts, references):
    items = read_set(CTXPRO / "evalsets" / f"{name}.opensubtitles.en-de.dev.json")
    texts = [sentence for item in items for sentence in item.source]
    tokens = sum(len(sentence.split()) for sentence in texts)
    assert (len(items), len({item.group for item in items}), len(texts), tokens) == counts
    assert all(len(item.source) <= 10 for item in items)
    rules = Counter(item.phenomenon for item in items)
    if name == "formality":
        assert set(rules.values()) == {100} and len(rules) == 9
    else:
        assert set(rules) == {"DO.ELL", "WILL.ELL"}
    assert sum(is_right(item, item.candidates) for item in items) == references


class Answers:
    """A system that knows the answer where the sentence before the current one says `formal`."""

    name, context = "answers", ContextReach(1, 0, "none")
    languages, decoding = (None, None), {"strategy": None, "beams": None}

    def translate(self, documents):
        self.seen = documents
        return [["-"] * (len(d) - 1) + ["Sie kommen." if "formal" in d[0] else "Du kommst."] for d in documents]

    def describe(self):
        return {"name": self.name}


def test_a_system_with_and_without_its_context(write):
    """All items ask for `sie`, which only the sentence before tells, not one that is further away."""
    entries = [ENTRIES[0] | {"document id": f"2016/{number}"} for number in range(6)]
    path = write(
        entries, ["Hi.<eos> Be formal.<eos> I see you. Really."] * 5 + ["Be formal.<eos> Hi.<eos> I see you. Really."]
    )
    system = Answers()
    report = generative_report(system, [path], conditions=("true", "empty"))
    true, empty = report.results
    assert [true.value, empty.value] == [pytest.approx(100 * 5 / 6), 0]
    assert system.seen == [["I see you. Really."]] * 6
    assert "past:1|future:0|context:true" in str(true.signature) and "context:empty" in str(empty.signature)
    assert (true.strategy, true.beams, true.dataset) == (None, None, "aux.en-de.dev")
    assert empty.details["difference"]["value"] == pytest.approx(-100 * 5 / 6)
    assert report.data == {"sets": ["aux.en-de.dev.json"]}
    (other,) = generative_report(system, [path], conditions=("random",)).results
    assert "context:random, seed 0" in str(other.signature)
    assert {sentence for document in system.seen for sentence in document[:-1]} <= {"Hi.", "Be formal."}


def script_accuracy(entries, lines, lang):
    """The released script's figure from its description: percent of items whose word is in the last sentence."""
    from sentence_splitter import split_text_into_sentences

    found = []
    for entry, line in zip(entries, lines, strict=True):
        *_, last = split_text_into_sentences(line.strip(), lang) or [line.strip()]
        letters = [letter for letter in last.lower() if letter not in string.punctuation]
        found.append(f" {entry['expected'].lower()} " in " " + "".join(letters) + " ")
    return 100 * sum(found) / len(found)


def test_translations_from_a_file(write, tmp_path):
    pytest.importorskip("sentence_splitter")
    rng = random.Random(1)
    words = ["du", "Du", "Sie", "komm", "Komm.", "Dr.", "ja!", "?", "d.h.", "…", "<eos>", "Nein,", " "]
    lines = [" ".join(rng.choices(words, k=rng.randrange(1, 9))) for _ in range(300)]
    entries = [ENTRIES[n % 2] | {"expected": rng.choice(["du", "Sie", "Komm", "d.h.", "?"])} for n in range(300)]
    path, file = write(entries, [LINES[n % 2] for n in range(300)]), tmp_path / "outputs"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    report = translation_file_report("theirs", path, file, rule="published")
    (result,) = report.results
    assert 10 < result.value == script_accuracy(entries, lines, "de") < 90
    assert report.model == {"name": "theirs"} and "translations:file" in str(result.signature)
    assert report.data == {"sets": [path.name], "translations": "outputs"}
    (some,) = translation_file_report("theirs", path, file, rule="published", limit=70).results
    assert (some.value, some.n) == (script_accuracy(entries[:70], lines[:70], "de"), 70)
    (unmarked,) = translation_file_report("theirs", path, file).results
    assert unmarked.value == result.value and unmarked.signature == result.signature  # lines without <eos> among them
    file.write_text("".join(f"Sie. <eos> {line}\n" for line in lines), encoding="utf-8")
    (marked, line) = (translation_file_report("theirs", path, file, rule=rule).results[0] for rule in (None, "line"))
    assert marked.signature == line.signature and marked.value == line.value != result.value
    file.write_text("du\n", encoding="utf-8")
    refused(r"outputs: 1 lines for 300 items of aux\.en-de\.dev; give one", translation_file_report, "x", path, file)


def test_details_of_a_system(write, tmp_path):
    """Every item with its texts and the verdict; a second run reads them and translates nothing."""
    entries = [ENTRIES[0] | {"document id": f"2016/{number}"} for number in range(6)]
    path, file = write(entries, ["Hi.<eos> Be formal.<eos> I see you. Really."] * 6), tmp_path / "details.jsonl"
    system = Details()
    first = generative_report(system, [path], conditions=("true", "empty"), limit=4, details=file)
    records = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [record["context"] for record in records] == ["true"] * 4 + ["empty"] * 4
    told = {"item": "aux.en-de.dev:1", "expected": "sie", "right": True, "phenomenon": "ACC.FORM+PLUR"}
    assert told.items() <= records[0].items() and records[0]["translation"] == ["-", "Sie kommen."]
    assert records[0]["source"] == ["Be formal.", "I see you. Really."] and not records[4]["right"]
    assert [result.split for result in first.results] == ["items 1-4"] * 2
    del system.seen
    again = generative_report(system, [path], conditions=("true", "empty"), limit=4, details=file)
    assert [result.value for result in again.results] == [result.value for result in first.results]
    assert not hasattr(system, "seen")
    with pytest.raises(ValueError, match=r"jsonl, line 1: of another run, rule is line there and published here"):
        generative_report(system, [path], conditions=("true", "empty"), limit=4, details=file, rule="published")


class Details(Answers):
    fingerprint = System.fingerprint


def test_decoding_is_reported_where_the_model_has_its_own():
    def decoding(kind, model, strategy=None, **generate_kwargs):
        system = object.__new__(kind)
        system.model, system.strategy, system.generate_kwargs = model, strategy, generate_kwargs
        return system.decoding

    config = SimpleNamespace(num_beams=4)
    model = SimpleNamespace(generation_config=config, default_strategy=lambda: "sliding")
    assert decoding(DocMTSystem, model) == {"strategy": "sliding", "beams": 4}
    assert decoding(DocMTSystem, model, "full", num_beams=2) == {"strategy": "full", "beams": 2}
    given = {"generation_config": SimpleNamespace(num_beams=None)}
    assert decoding(DocMTSystem, model, **given) == {"strategy": "sliding", "beams": 4}
    config.num_beams = None  # greedy, in a configuration without a number
    assert decoding(Seq2SeqSystem, SimpleNamespace(generation_config=config)) == {"strategy": None, "beams": 1}


def test_bad_sets_for_a_system(write):
    system, path = Answers(), write()
    assert read_set(path)[0].languages == ("en", "de")
    refused("inputs belong to one set, got 2 sets", generative_report, system, [path, path], inputs="x")
    with pytest.raises(ValueError, match=r"are both called 'aux\.en-de\.dev' in results; give them one by one"):
        generative_report(system, [path, path])
    refused("unknown context 'none'", generative_report, system, [path], conditions=("true", "none"))
    refused("unknown rule 'last': expected one of line, published", generative_report, system, [path], rule="last")
    refused("nowhere.json", generative_report, system, [path, path.with_name("nowhere.json")])
    assert not hasattr(system, "seen")  # nothing was translated
    system.languages = ("en", "fr")
    refused("target language is 'de', the model's 'fr'", generative_report, system, [path])
