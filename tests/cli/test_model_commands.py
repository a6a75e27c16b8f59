"""Commands that score or analyse a model: contrast, ctxpro, cxmi, rationales, attention shares."""

import json

import pytest

from hf_docmt.data.synthetic.corpus import write_corpus


@pytest.fixture(scope="module")
def suites(tmp_path_factory):
    """Folder of the built-in suites, two items a cell."""
    return write_corpus(tmp_path_factory.mktemp("corpus") / "c", train=2, validation=1, test=1, suite_items=2)


def test_contrast_scores_go_out_and_come_back(run, model, suites, tmp_path):
    """Scores written in the published order are evaluated to the same accuracy; conditions of context side by side."""
    suite = suites / "ellipsis.json"
    options = ("--conditions", "true,empty", "--write-scores", tmp_path / "scores", "--json")
    code, out, _ = run("contrast", model, suite, *options)
    results = json.loads(out)["results"]
    assert code == 0 and len(results) == 2 and "context:empty" in results[1]["signature"]
    file = tmp_path / "scores" / "ellipsis.true.scores"
    code, out, _ = run("contrast", "theirs", suite, "--scores", file, "--json")
    (found,) = json.loads(out)["results"]
    assert code == 0 and found["value"] == results[0]["value"] and found["signature"].startswith("scores:file")
    again = tmp_path / "again" / "ellipsis.json"
    again.parent.mkdir()
    again.write_text(suite.read_text())
    before = file.read_text()
    code, _, err = run("contrast", model, suite, again, "--items", "1-1", "--write-scores", tmp_path / "scores")
    assert code == 1 and f"{suite} and {again} are both called 'ellipsis'" in err and file.read_text() == before
    for option in ("--conditions", "--normalization", "--context", "--write-scores", "--option"):
        code, out, err = run("contrast", "theirs", suite, "--scores", file, option, 0)
        assert code == 1 and out == "" and f"{option} is for scoring with a model, but --scores" in err
    code, out, err = run("contrast", model, suite, "--better", "higher")
    assert code == 1 and out == "" and "--better is for a file of scores (--scores); remove it" in err
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    code, _, err = run("contrast", "theirs", suite, "--scores", file)
    assert code == 1 and "ellipsis.true.scores" in err


def test_contrast_of_some_items(run, model, suites, tmp_path):
    """What is left out by --items is neither scored nor evaluated."""
    suite, scores = suites / "ellipsis.json", tmp_path / "scores"
    code, out, _ = run("contrast", model, suite, "--items", "3-5", "--write-scores", scores, "--json")
    (part,) = json.loads(out)["results"]
    assert code == 0 and (part["n"], part["split"]) == (3, "items 3-5")
    options = ("--scores", scores / "ellipsis.true.scores", "--json")
    code, out, _ = run("contrast", "theirs", suite, *options, "--items", "3-5")
    (found,) = json.loads(out)["results"]
    assert code == 0 and (found["value"], found["split"]) == (part["value"], "items 3-5")
    code, _, err = run("contrast", "theirs", suite, *options)
    assert code == 1 and "ellipsis.true.scores" in err
    folder = tmp_path / "unused"
    code, _, err = run("contrast", model, suite, tmp_path / "nowhere.json", "--write-scores", folder)
    assert code == 1 and "nowhere.json" in err and not folder.exists()  # the first suite was not scored
    published = tmp_path / "ellipsis_vp.json"  # what is counted is the whole file, not the part
    published.write_text(suite.read_text())
    note = f"ellipsis_vp: other counts than published: items {len(json.loads(published.read_text()))} (published 500)"
    for arguments in ((model, published), ("theirs", published, "--scores", scores / "ellipsis.true.scores")):
        code, out, _ = run("contrast", *arguments, "--items", "3-5")
        assert code == 0 and out.splitlines()[-1].startswith(note)
    for items, words in (("0-2", "items 0-2 of ellipsis"), ("3-900", "give a part of 1-"), ("3", "FIRST-LAST")):
        code, _, err = run("contrast", model, suite, "--items", items)
        assert code == 1 and words in err and len(err.splitlines()) == 1


def test_contrast_with_details(run, model, suites, tmp_path):
    """A second run reads what the first one wrote; another model's is refused."""
    suite, details = suites / "ellipsis.json", tmp_path / "details.jsonl"
    options = ("--limit", 4, "--normalization", "window-mean", "--details", details, "--json")
    code, out, _ = run("contrast", model, suite, *options)
    (result,) = json.loads(out)["results"]
    assert code == 0 and (result["n"], result["split"]) == (4, "items 1-4") and "tokens:window" in result["signature"]
    written = details.read_text()
    records = [json.loads(line) for line in written.splitlines()]
    assert sum(record["right"] for record in records) * 25 == result["value"]
    assert run("contrast", model, suite, *options)[1] == out and details.read_text() == written
    code, _, err = run("contrast", model, suite, *options, "--context", 0)
    assert code == 1 and "details.jsonl, line 1: of another run, model is" in err
    code, _, err = run("contrast", model, suite, "--limit", 2, "--items", "1-3")
    assert code == 1 and "give a limit of 1 or more, or a part of the items, not both" in err


def test_translation_of_a_suite(run, model, suites, tmp_path):
    suite, details = suites / "pronoun.json", tmp_path / "details.jsonl"
    options = ("--limit", 3, "--beams", 2, "--strategy", "sequential", "--details", details, "--json")
    code, out, _ = run("translate-suite", model, suite, *options)
    results = json.loads(out)["results"]
    assert code == 0 and [result["metric"] for result in results] == ["s-BLEU", "chrF", "TER"]
    assert {(result["n"], result["strategy"], result["beams"]) for result in results} == {(3, "sequential", 2)}
    assert len(details.read_text().splitlines()) == 3 and "past:1" in results[0]["signature"]
    code, _, err = run("translate-suite", model, suite, "--future-context", 1)
    assert code == 1 and "future_context is 1, but the model was trained with 0" in err


def test_ctxpro_of_a_model(run, model, tmp_path):
    for folder in ("evalsets", "inputs"):
        (tmp_path / folder).mkdir()
    item = {"expected": "sie", "rule": "ACC", "src segment": "It is old.", "ref segment": "Sie.", "document id": "a"}
    suite = tmp_path / "evalsets" / "formality.en-de.json"
    suite.write_text(json.dumps([item, item | {"document id": "b"}]))
    (tmp_path / "inputs" / "formality.en-de").write_text("The lamp.<eos> It is old.\nHi.<eos> It is old.\n")
    options = ("--conditions", "true,empty", "--strategy", "sequential", "--beams", 2)
    code, out, _ = run("ctxpro", model, suite, *options, "-o", tmp_path / "report.json", "--json")
    true, empty = json.loads(out)["results"]
    assert code == 0 and (true["n"], true["strategy"], true["beams"]) == (2, "sequential", 2)
    assert "past:1|future:0|context:true" in true["signature"] and "difference" in empty["details"]
    assert json.loads((tmp_path / "report.json").read_text())["model"]["name"] == model.name
    (result,) = json.loads(run("ctxpro", model, suite, "--json")[1])["results"]
    assert (result["strategy"], result["beams"]) == ("sliding", 1)  # what the model takes
    translations = tmp_path / "outputs"
    translations.write_text("Hallo.<eos> Sie ist alt.\nSie.<eos> Ja.\n")
    options = ("--translations", translations, "--details", tmp_path / "details.jsonl", "--json")
    code, out, _ = run("ctxpro", "theirs", suite, *options)
    report = json.loads(out)
    assert code == 0 and (report["model"], report["results"][0]["value"]) == ({"name": "theirs"}, 50)
    records = [json.loads(line) for line in (tmp_path / "details.jsonl").read_text().splitlines()]
    assert [record["right"] for record in records] == [True, False]
    code, _, err = run("ctxpro", "theirs", suite, *options[:2], "--beams", 4)
    assert code == 1 and "--beams is for translating with a model, but --translations gives" in err
    code, _, err = run("ctxpro", "theirs", suite, suite, *options[:2])
    assert code == 1 and "--translations is a file for one set, got 2 sets" in err
    (tmp_path / "inputs" / "formality.en-de").write_text("It is old.\n")
    code, _, err = run("ctxpro", model, suite)
    assert code == 1 and "1 lines for 2 items" in err


def test_cxmi_of_a_model(run, model, documents, tmp_path):
    code, out, _ = run("cxmi", model, documents, "--json")
    (result,) = json.loads(out)["results"]
    assert code == 0 and (result["metric"], result["n"]) == ("CXMI", 2) and "past:1" in result["signature"]
    options = ("--normalization", "mean", "--conditions", "true, random,true", "--json")
    options += ("--details", tmp_path / "words.jsonl")
    code, out, _ = run("cxmi", model, documents, *options)
    true, random = json.loads(out)["results"]
    assert code == 0 and "sentence:mean" in true["signature"] and "context:random, seed 0" in random["signature"]
    assert len((tmp_path / "words.jsonl").read_text().splitlines()) == 4
    code, out, err = run("cxmi", model, documents, "--source-lang", "de", "--target-lang", "en")
    assert code == 1 and out == "" and "item a:1: the source language is 'de', the model's 'en'" in err


def test_rationales_of_a_model(run, model, tmp_path):
    texts = {
        "context.en": ["The lamp."] * 2,
        "en": ["<p>It</p> is old.", "<p>It</p> is new."],
        "context.de": ["Die  <hon>Lampe<hoff> ."] * 2,
        "de": ["<p>Sie</p> ist alt.", "<p>Sie</p> ist <hon>neu."],
    }
    for name, lines in texts.items():
        (tmp_path / f"highlighted.train.{name}").write_text("".join(f"{line}\n" for line in lines))
    code, out, _ = run("analyze", "rationales", model, tmp_path, "--json")
    report = json.loads(out)
    assert code == 0 and report["data"] == {"lines": 2, "examples": 1, "skipped": {"unclear word border": 1}}
    share = report["results"][0]
    assert share["metric"] == "attention on marked words" and 0 < share["value"] < 100 and share["n"] == 1
    code, out, _ = run("analyze", "rationales", model, tmp_path, "--items", "1-1", "--attention", "decoder", "--json")
    assert json.loads(out)["results"][0]["split"] == "train, lines 1-1"
    code, _, err = run("analyze", "rationales", model, tmp_path, "--items", "2-2")
    assert code == 1 and "in lines 2-2" in err and "1 with unclear word border" in err
    code, _, err = run("analyze", "rationales", model, tmp_path, "--target-lang", "fr")
    assert code == 1 and "highlighted.train.context.fr" in err
    code, _, err = run("analyze", "rationales", model, tmp_path, "--source-lang", "de", "--target-lang", "en")
    assert code == 1 and "the source language is 'de', the model's 'en'" in err
    code, _, err = run("analyze", "rationales", model, tmp_path, "--attention", "all")
    assert code == 1 and "attention" in err
