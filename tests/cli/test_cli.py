"""The command `docmt`: results on standard output, clear errors with exit code 1, nothing half-written."""

import json
import resource
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from hf_docmt import __version__
from hf_docmt.cli import loading
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.modeling.configuration_concat import ConcatConfig
from hf_docmt.modeling.modeling_concat import ConcatForConditionalGeneration

DOCUMENTS = [
    {"doc_id": "a", "translation": [{"en": "The lamp is old.", "de": "Die Lampe ist alt."}, {"en": "", "de": ""}]},
    {"doc_id": "b", "translation": [{"en": "It is new.", "de": "Sie ist neu."}]},
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a tiny random concatenation model and its tokenizer."""
    folder = tmp_path_factory.mktemp("model")
    texts = [text for document in DOCUMENTS for pair in document["translation"] for text in pair.values()]
    tokenizer = train_tokenizer(texts, "bpe", 270)
    torch.manual_seed(0)
    config = ConcatConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, past_context=1, source_lang="en",
        target_lang="de", init_std=0.3,
    )  # fmt: skip
    model = ConcatForConditionalGeneration(config)
    model.generation_config.max_new_tokens = 12
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in DOCUMENTS), encoding="utf-8")
    return path


def test_help_answers_quickly():
    """`docmt --help` takes well under a second of processor time: heavy libraries stay out of it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "hf_docmt", "--help"], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0 and "translate" in done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0


def test_commands_are_grouped_and_in_order(run, monkeypatch):
    monkeypatch.setenv("TERMINAL_WIDTH", "100")
    code, out, _ = run("--help")
    panels = ["Start", "Data", "Models", "Evaluation", "Publication", "Analysis and speed"]
    found = [out.find(f" {panel} ──") for panel in panels]
    assert code == 0 and -1 not in found and found == sorted(found)
    assert "segment" in out and "│ words" not in out and "--show-completion" in out


def test_version(run):
    assert run("--version") == (0, f"docmt {__version__}\n", "")


def test_completion_offers_commands(monkeypatch):
    asked = {"_DOCMT_COMPLETE": "complete_bash", "COMP_WORDS": "docmt ev", "COMP_CWORD": "1"}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run([sys.executable, "-m", "hf_docmt"], capture_output=True, text=True)
    assert done.stdout.split() == ["evaluate"]


def test_translate_keeps_documents_and_sentences(run, model, documents, tmp_path):
    output = tmp_path / "out.jsonl"
    code, out, err = run("translate", model, documents, "-o", output, "--strategy", "sequential", "--beams", 2)
    assert (code, out) == (0, "") and "2 documents, 3 sentences" in err
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [row["doc_id"] for row in rows] == ["a", "b"]
    assert [len(row["translation"]) for row in rows] == [len(row["source"]) for row in rows] == [2, 1]
    assert rows[0]["translation"][1] == ""


def test_models_run_on_the_accelerator(run, model, documents, monkeypatch):
    for found, name in ((None, "cpu"), (torch.device("cuda"), "cuda")):
        with monkeypatch.context() as patch:
            patch.setattr(torch.accelerator, "current_accelerator", lambda check_available, found=found: found)
            assert loading.default_device() == name
    devices = []
    translate = "hf_docmt.translation.corpus.translate_corpus"
    monkeypatch.setattr(translate, lambda loaded, *_, **__: devices.append(loaded.device.type) or [])
    monkeypatch.setattr(loading, "default_device", lambda: "meta")  # a device without numbers
    code, _, err = run("translate", model, documents)
    assert code == 0, err
    devices.append(loading.load_system(str(model)).model.device.type)
    assert devices == ["meta", "meta"]


def test_translate_plain_lines_in_a_pipe(run, model):
    code, out, _ = run("translate", model, "-", "--strategy", "sentence", stdin="The lamp is old.\n\nIt is new.\n")
    assert code == 0
    lines = out.split("\n")
    assert len(lines) == 4 and lines[1] == "" and lines[3] == ""


def test_evaluate_writes_a_report(run, documents, tmp_path):
    rows = [{"doc_id": row["doc_id"], "translation": [pair["de"] for pair in row["translation"]]} for row in DOCUMENTS]
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
    languages = ("--source-lang", "en", "--target-lang", "de")
    code, out, _ = run(
        "evaluate", tmp_path / "out.jsonl", documents, *languages, "-o", tmp_path / "report.json", "--json"
    )
    assert code == 0
    report = json.loads(out)
    assert report == json.loads((tmp_path / "report.json").read_text())
    chrf = [result for result in report["results"] if result["metric"] == "chrF"]
    assert chrf[0]["value"] == pytest.approx(100) and "version:" in chrf[0]["signature"]


def test_evaluate_names_documents_that_are_missing(run, documents, tmp_path):
    (tmp_path / "out.jsonl").write_text(json.dumps({"doc_id": "a", "translation": ["x", ""]}) + "\n")
    languages = ("--source-lang", "en", "--target-lang", "de")
    code, _, err = run("evaluate", tmp_path / "out.jsonl", documents, *languages)
    assert code == 1 and "1 documents" in err and "not translated: b" in err
    code, _, err = run("evaluate", tmp_path / "out.jsonl", documents)
    assert code == 1 and "--target-lang" in err


def test_evaluate_plain_lines_of_different_number(run, tmp_path):
    (tmp_path / "a.txt").write_text("eins\nzwei\n")
    (tmp_path / "b.txt").write_text("eins\n")
    code, _, err = run("evaluate", tmp_path / "a.txt", tmp_path / "b.txt")
    assert code == 1 and "2" in err and "1" in err


def test_corpus_contrast_export_info(run, model, tmp_path):
    """The road from corpus to Hub folder by commands alone."""
    assert run("corpus", tmp_path / "c", "--train", 2, "--validation", 1, "--test", 1, "--suite-items", 1)[0] == 0
    suite = tmp_path / "c" / "ellipsis.json"
    code, out, _ = run("contrast", model, suite, "-o", tmp_path / "report.json")
    assert code == 0 and "accuracy" in out
    code, out, _ = run("export", model, tmp_path / "hub", "--report", tmp_path / "report.json", "--license", "mit")
    assert code == 0 and "model-index" in (tmp_path / "hub" / "README.md").read_text()
    code, out, _ = run("info", model, "--json")
    assert code == 0 and json.loads(out)["architecture"] == "concat"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("translate", "nowhere", "-"), ("nowhere",)),
        (("translate", "{model}", "absent.jsonl"), ("absent.jsonl",)),
        (("translate", "{model}", "{documents}", "--strategy", "slidng"), ("slidng", "sliding")),
        (("translate", "{model}", "{documents}", "--format", "jsnl"), ("jsnl", "jsonl")),
        (("translate", "{model}", "{documents}", "-o", "no/such/folder/out"), ("no/such/folder",)),
        (("contrast", "{model}", "absent.json"), ("absent.json",)),
        (("train", "absent.yaml"), ("absent.yaml",)),
        (("corpus", "{model}"), ("not an empty folder",)),
        (("export", "{model}", "{model}"), ("not an empty folder",)),
        (("translate", "{model}", "{documents}", "-o", "{model}"), ("it is a folder",)),
        (("contrast", "{model}", "absent.json", "-o", "no/such/folder/out"), ("no/such/folder",)),
        (("evaluate", "{documents}", "{documents}", "-o", "no/such/folder/out"), ("no/such/folder",)),
    ],
)
def test_errors_are_one_line_and_exit_code_one(run, model, documents, arguments, words):
    filled = [str(argument).format(model=model, documents=documents) for argument in arguments]
    code, out, err = run(*filled)
    assert code == 1 and out == ""
    assert err.startswith("docmt: ") and "Traceback" not in err
    for word in words:
        assert word in err


def test_broken_weights_are_told(run, model, documents, tmp_path):
    for file in model.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:200])
    code, _, err = run("translate", tmp_path, documents)
    assert code == 1 and "cannot load" in err


@pytest.mark.parametrize("change", ["a weight less", "a table more", "other sizes"])
def test_checkpoint_that_is_not_that_of_its_config(run, model, documents, tmp_path, change):
    for file in model.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    if change == "a weight less":
        weights = load_file(tmp_path / "model.safetensors")
        weights.pop("model.decoder.layers.0.encoder_attn.q_proj.weight")
        save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    else:
        config = json.loads((tmp_path / "config.json").read_text())
        config |= {"segment_encoding": "learned"} if change == "a table more" else {"d_model": 32}
        (tmp_path / "config.json").write_text(json.dumps(config))
    code, out, err = run("translate", tmp_path, documents)
    assert code == 1 and out == "" and "cannot load a model" in err and "train the checkpoint again" in err


def test_evaluate_formats_of_two_files(run, model, tmp_path):
    """Documents without ids are matched by their order."""
    (tmp_path / "t.en").write_text("<d>\nThe lamp is old.\nIt is new.\n<d>\nIt is old.\n")
    (tmp_path / "t.de").write_text("<d>\nDie Lampe ist alt.\nSie ist neu.\n<d>\nSie ist alt.\n")
    assert run("translate", model, tmp_path / "t.en", "--format", "dtag", "-o", tmp_path / "t.out")[0] == 0
    arguments = ("evaluate", tmp_path / "t.out", tmp_path / "t.de", "--format", "dtag", "--target-lang", "de")
    code, out, _ = run(*arguments, "--name", "tiny", "--strategy", "sliding", "--beams", 1, "--json")
    report = json.loads(out)
    assert code == 0 and report["model"]["name"] == "tiny" and report["results"][0]["n"] == 3
    assert {(result["strategy"], result["beams"]) for result in report["results"]} == {("sliding", 1)}
    assert "repairs" in report["results"][0]["details"]
    (tmp_path / "t.de").write_text("<d>\nDie Lampe ist alt.\nSie ist neu.\n")
    code, _, err = run(*arguments)
    assert code == 1 and "2 documents" in err and "translate them all" in err


def test_card_of_several_reports(run, model, documents, tmp_path):
    """Scores and accuracies come together under the model's name, with the facts of its training, without paths."""
    run("translate", model, documents, "-o", tmp_path / "out.jsonl")
    languages = ("--source-lang", "en", "--target-lang", "de")
    run("evaluate", tmp_path / "out.jsonl", documents, *languages, "-o", tmp_path / "bleu.json")
    run("corpus", tmp_path / "c", "--train", 2, "--validation", 1, "--test", 1, "--suite-items", 1)
    run("contrast", model, tmp_path / "c" / "ellipsis.json", "-o", tmp_path / "accuracy.json")
    (model / "training.json").write_text('{"steps": 77}')
    reports = ("--report", tmp_path / "bleu.json", "--report", tmp_path / "accuracy.json")
    code, _, _ = run("export", model, tmp_path / "hub", *reports, "--repo-id", "org/tiny", "--dataset", "org/talks")
    (model / "training.json").unlink()
    card = (tmp_path / "hub" / "README.md").read_text()
    assert code == 0 and "# org/tiny" in card and "| steps | 77 |" in card and "org/talks" in card
    assert "s-BLEU" in card and "accuracy" in card and str(tmp_path) not in card


def test_a_failed_write_keeps_the_old_file(run, model, documents, tmp_path, monkeypatch):
    output = tmp_path / "out.jsonl"
    output.write_text("precious\n")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hf_docmt.files.os.replace", full)
    code, _, err = run("translate", model, documents, "-o", output)
    assert code == 1 and "No space left" in err
    assert output.read_text() == "precious\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["documents.jsonl", "out.jsonl"]


def test_contrast_scores_go_out_and_come_back(run, model, tmp_path):
    """Scores written in the published order are judged to the same accuracy; conditions of context side by side."""
    run("corpus", tmp_path / "c", "--train", 2, "--validation", 1, "--test", 1, "--suite-items", 2)
    suite = tmp_path / "c" / "ellipsis.json"
    options = ("--conditions", "true,empty", "--write-scores", tmp_path / "scores", "--json")
    code, out, _ = run("contrast", model, suite, *options)
    results = json.loads(out)["results"]
    assert code == 0 and len(results) == 2 and "context:empty" in results[1]["signature"]
    file = tmp_path / "scores" / "ellipsis.true.scores"
    code, out, _ = run("contrast", "theirs", suite, "--scores", file, "--json")
    (judged,) = json.loads(out)["results"]
    assert code == 0 and judged["value"] == results[0]["value"] and judged["signature"].startswith("scores:file")
    again = tmp_path / "again" / "ellipsis.json"
    again.parent.mkdir()
    again.write_text(suite.read_text())
    before = file.read_text()
    code, _, err = run("contrast", model, suite, again, "--items", "1-1", "--write-scores", tmp_path / "scores")
    assert code == 1 and f"{suite} and {again} are both called 'ellipsis'" in err and file.read_text() == before
    for option in ("--conditions", "--normalization", "--context", "--write-scores", "--option"):
        code, out, err = run("contrast", "theirs", suite, "--scores", file, option, 0)
        assert code == 1 and out == "" and f"{option} is for a model that is scored, but --scores" in err
    code, out, err = run("contrast", model, suite, "--better", "higher")
    assert code == 1 and out == "" and "--better is for a file of scores, but --scores is not given" in err
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    code, _, err = run("contrast", "theirs", suite, "--scores", file)
    assert code == 1 and "ellipsis.true.scores" in err


def test_contrast_of_some_items(run, model, tmp_path):
    """What is left out by --items is neither scored nor judged."""
    run("corpus", tmp_path / "c", "--train", 2, "--validation", 1, "--test", 1, "--suite-items", 2)
    suite, scores = tmp_path / "c" / "ellipsis.json", tmp_path / "scores"
    code, out, _ = run("contrast", model, suite, "--items", "3-5", "--write-scores", scores, "--json")
    (part,) = json.loads(out)["results"]
    assert code == 0 and (part["n"], part["split"]) == (3, "items 3-5")
    options = ("--scores", scores / "ellipsis.true.scores", "--json")
    code, out, _ = run("contrast", "theirs", suite, *options, "--items", "3-5")
    (judged,) = json.loads(out)["results"]
    assert code == 0 and (judged["value"], judged["split"]) == (part["value"], "items 3-5")
    code, _, err = run("contrast", "theirs", suite, *options)
    assert code == 1 and "ellipsis.true.scores" in err
    folder = tmp_path / "unused"
    code, _, err = run("contrast", model, suite, tmp_path / "nowhere.json", "--write-scores", folder)
    assert code == 1 and "nowhere.json" in err and not folder.exists()  # the first suite was not scored
    published = suite.rename(suite.with_name("ellipsis_vp.json"))  # what is counted is the whole file, not the part
    note = f"ellipsis_vp: other counts than published: items {len(json.loads(published.read_text()))} (published 500)"
    for arguments in ((model, published), ("theirs", published, "--scores", scores / "ellipsis.true.scores")):
        code, out, _ = run("contrast", *arguments, "--items", "3-5")
        assert code == 0 and out.splitlines()[-1].startswith(note)
    suite = published.rename(suite)
    for items, words in (("0-2", "items 0-2 of ellipsis"), ("3-900", "give a part of 1-"), ("3", "FIRST-LAST")):
        code, _, err = run("contrast", model, suite, "--items", items)
        assert code == 1 and words in err and len(err.splitlines()) == 1


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
    (tmp_path / "inputs" / "formality.en-de").write_text("It is old.\n")
    code, _, err = run("ctxpro", model, suite)
    assert code == 1 and "1 lines for 2 items" in err


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
    assert code == 1 and "no example can be read in lines 2-2" in err
    code, _, err = run("analyze", "rationales", model, tmp_path, "--target-lang", "fr")
    assert code == 1 and "highlighted.train.context.fr" in err
    code, _, err = run("analyze", "rationales", model, tmp_path, "--source-lang", "de", "--target-lang", "en")
    assert code == 1 and "the source language is 'de', the model's 'en'" in err
    code, _, err = run("analyze", "rationales", model, tmp_path, "--attention", "all")
    assert code == 1 and "attention" in err


def test_compare_two_systems(run, model, documents, tmp_path):
    """Reports of two systems in one table, tested against each other, as text, Markdown and picture."""
    run("corpus", tmp_path / "c", "--train", 2, "--validation", 1, "--test", 1, "--suite-items", 2)
    suite = tmp_path / "c" / "deixis.json"
    for name, context in (("without", 0), ("with", 1)):
        run("contrast", model, suite, "--context", context, "-o", tmp_path / f"{name}.json")
    reports = (tmp_path / "without.json", tmp_path / "with.json", "--name", "without", "--name", "with")
    options = ("--may-differ", "past", "--breakdown", "distance", "--baseline", "without")
    code, out, _ = run("compare", *reports, *options, "--picture", tmp_path / "distance.png")
    assert code == 0 and "distance=1" in out and "past:0/1" in out
    assert (tmp_path / "distance.png").read_bytes()[:4] == b"\x89PNG"
    code, out, _ = run("compare", *reports, "--format", "markdown")
    assert code == 0 and out.startswith("|")
    code, _, err = run("compare", tmp_path / "with.json", documents)
    assert code == 1 and "documents.jsonl" in err


def test_evaluate_parts_alignment_and_discourse(run, documents, tmp_path):
    rows = [{"doc_id": row["doc_id"], "translation": [pair["de"] for pair in row["translation"]]} for row in DOCUMENTS]
    for row, document in zip(rows, DOCUMENTS):
        row["source"] = [pair["en"] for pair in document["translation"]]
        row["translation"] = [" ".join(row["translation"])]  # free text, not a sentence for each
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    languages = ("--source-lang", "en", "--target-lang", "de", "--json")
    code, _, err = run("evaluate", tmp_path / "out.jsonl", documents, *languages)
    assert code == 1 and "document 'a': 1 translated sentences for 2" in err
    options = ("--align", "--by", "index,domain", "--domains", "[ab]")
    code, out, _ = run("evaluate", tmp_path / "out.jsonl", documents, *languages, *options)
    found = {result["metric"]: result for result in json.loads(out)["results"]}
    assert code == 0 and found["under-translation"]["value"] == 0 and found["chrF"]["value"] == pytest.approx(100)
    assert {"index=1", "domain=a", "domain=b"} <= set(found["chrF"]["breakdown"])
    for measure, words in (("connectives", "counted in English, got 'de'"), ("pronouns", "from English to German")):
        other = ("--source-lang", "de", "--target-lang", "de") if measure == "pronouns" else languages
        code, _, err = run("evaluate", tmp_path / "out.jsonl", documents, *other, "--discourse", measure)
        assert code == 1 and words in err
    code, _, err = run("evaluate", tmp_path / "out.jsonl", documents, *languages, "--discourse", "metaphors")
    assert code == 1 and "unknown discourse measure 'metaphors'" in err


@pytest.fixture
def comet_python(tmp_path):
    """In the place of a Python with unbabel-comet: the score is the length of the source, context included."""
    path = tmp_path / "python"
    path.write_text(
        f"#!{sys.executable}\nimport json, sys\nfile, output, _, model = sys.argv[4:8]\n"
        "rows = [json.loads(line) for line in open(file, encoding='utf-8')]\n"
        "scores = [len(''.join(row['src'])) for row in rows]\n"
        "json.dump({'model': model, 'scores': scores, 'context': '--context' in sys.argv}, open(output, 'w'))\n"
    )
    path.chmod(0o755)
    return path


def test_evaluate_with_comet(run, documents, comet_python, tmp_path):
    """Sources beside the translations are scored, alone and in context, into the same report."""
    rows = [{"doc_id": row["doc_id"], "translation": [pair["de"] for pair in row["translation"]]} for row in DOCUMENTS]
    output = tmp_path / "out.jsonl"
    output.write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
    arguments = ("evaluate", output, documents, "--source-lang", "en", "--target-lang", "de", "--comet", comet_python)
    code, _, err = run(*arguments)
    assert code == 1 and "'a' has no 'source' beside its translation, needed for COMET; give the JSON lines" in err
    for row, document in zip(rows, DOCUMENTS):
        row["source"] = [pair["en"] for pair in document["translation"]]
    output.write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
    code, out, _ = run(*arguments, "--json")
    found = {result["metric"]: result for result in json.loads(out)["results"]}
    assert code == 0 and {"s-BLEU", "COMET"} <= set(found) and "doc-COMET" not in found
    assert found["COMET"]["value"] == pytest.approx(100 * (16 + 0 + 10) / 3)
    assert "model:Unbabel/wmt22-comet-da" in found["COMET"]["signature"]
    options = ("--comet-context", 1, "--comet-model", "org/metric", "--strategy", "full", "--json")
    code, out, _ = run(*arguments, *options)
    found = {result["metric"]: result for result in json.loads(out)["results"]}
    assert code == 0 and found["COMET"]["value"] == pytest.approx(100 * 26 / 3)
    assert found["doc-COMET"]["value"] == pytest.approx(100 * (16 + 16 + 10) / 3)
    assert "model:org/metric|scale:100|context:1" in found["doc-COMET"]["signature"]
    assert found["doc-COMET"]["strategy"] == "full" and found["doc-COMET"]["details"]["statistics"]["ids"] == ["a", "b"]


def test_evaluate_without_what_comet_needs(run, documents, comet_python, tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("eins\n")
    plain = ("evaluate", tmp_path / "a.txt", tmp_path / "b.txt")
    code, _, err = run(*plain, "--comet", comet_python)
    assert code == 1 and "has no 'source' beside its translation, needed for COMET; give the JSON lines that" in err
    for option in (("--comet-context", 2), ("--comet-model", "org/metric")):
        code, _, err = run(*plain, *option)
        assert code == 1 and "give the Python of an environment with unbabel-comet (--comet)" in err
    row = {"doc_id": "a", "source": ["x"], "translation": ["y"]}
    (tmp_path / "one.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "reference.jsonl").write_text(json.dumps({"doc_id": "a", "translation": [{"en": "x", "de": "y"}]}))
    arguments = (tmp_path / "one.jsonl", tmp_path / "reference.jsonl", "--source-lang", "en", "--target-lang", "de")
    code, out, err = run("evaluate", *arguments, "--comet", tmp_path / "no-python", "-o", tmp_path / "report.json")
    assert code == 1 and out == "" and "pip install unbabel-comet 'setuptools<81'" in err
    assert not (tmp_path / "report.json").exists()


def test_discourse_of_aligned_translations_says_so(run, tmp_path):
    sentences = ["Er schläft.", "Aber sie liest."], ["He sleeps.", "But she reads."]
    pairs = [{"de": source, "en": target} for source, target in zip(*sentences)]
    (tmp_path / "reference.jsonl").write_text(json.dumps({"doc_id": "a", "translation": pairs}) + "\n")
    row = {"doc_id": "a", "source": sentences[0], "translation": sentences[1]}
    (tmp_path / "out.jsonl").write_text(json.dumps(row) + "\n")
    files = (tmp_path / "out.jsonl", tmp_path / "reference.jsonl", "--source-lang", "de", "--target-lang", "en")
    signatures = []
    for options in ((), ("--align",)):
        code, out, err = run("evaluate", *files, "--discourse", "connectives", *options, "--json")
        assert code == 0, err
        signatures += [one["signature"] for one in json.loads(out)["results"] if one["metric"] == "connectives"]
    assert signatures[1].startswith("aligned:mweralign-") and signatures[1].endswith(f"|{signatures[0]}")


def test_cxmi_of_a_model(run, model, documents):
    code, out, _ = run("cxmi", model, documents, "--json")
    (result,) = json.loads(out)["results"]
    assert code == 0 and (result["metric"], result["n"]) == ("CXMI", 2) and "past:1" in result["signature"]
    code, out, err = run("cxmi", model, documents, "--source-lang", "de", "--target-lang", "en")
    assert code == 1 and out == "" and "item a:1: the source language is 'de', the model's 'en'" in err


def test_attention_share(run, model, documents, tmp_path):
    picture, output = tmp_path / "share.svg", tmp_path / "share.json"
    code, out, err = run("analyze", "attention-share", model, documents, "--picture", picture, "-o", output)
    assert (code, err) == (0, "") and "attention share" in out and "  sentence=1" in out and picture.exists()
    (result,) = json.loads(output.read_text())["results"]
    assert 0 < result["value"] <= 100 and result["dataset"] == "documents"
    code, out, err = run("analyze", "attention-share", model, tmp_path / "missing.jsonl", "--json")
    assert code == 1 and err.startswith("docmt: ") and out == ""
    code, out, err = run("analyze", "attention-share", "nowhere", documents, "--picture", tmp_path / "share.pdf")
    assert code == 1 and "ends in .png or .svg" in err
