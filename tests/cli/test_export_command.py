"""`docmt corpus` and `docmt export`: folders, cards from reports."""

import json


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


def test_stock_export(run, model, tmp_path):
    code, out, err = run("export", model, tmp_path / "stock", "--stock", "--repo-id", "org/tiny")
    assert code == 0 and out == f"{tmp_path / 'stock'}\n", err
    assert json.loads((tmp_path / "stock" / "config.json").read_text())["architectures"] == ["MarianMTModel"]
    assert '"org/tiny"' in (tmp_path / "stock" / "README.md").read_text()
    code, _, err = run("export", model, tmp_path / "both", "--stock", "--ctranslate2", "int8")
    assert code == 1 and "--stock and --ctranslate2 write different folders" in err
    code, _, err = run("export", model, tmp_path / "int4", "--ctranslate2", "int4")
    assert code == 1 and "int4 is not a valid quantization type. Accepted types are: " in err
    assert not (tmp_path / "both").exists() and not (tmp_path / "int4").exists()
