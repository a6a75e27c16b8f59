"""`docmt evaluate` and `docmt compare`: reports from files of translations."""

import gzip
import json

import pytest
from support.reader_checks import DOCUMENTS, jsonl

LANGUAGES = ("--source-lang", "en", "--target-lang", "de")


@pytest.fixture
def translations(tmp_path):
    """Writes the references as translations, in another order; `sources` stand beside them, `joined` as one text."""

    def write(sources=False, joined=False):
        rows = []
        for document in reversed(DOCUMENTS):
            source, target = ([pair[lang] for pair in document["translation"]] for lang in ("en", "de"))
            row = {"doc_id": document["doc_id"], "translation": [" ".join(target)] if joined else target}
            rows.append(row | ({"source": source} if sources else {}))
        path = tmp_path / "out.jsonl"
        path.write_text(jsonl(rows))
        return path

    return write


def test_evaluate_writes_a_report(run, documents, translations, tmp_path):
    code, out, _ = run("evaluate", translations(), documents, *LANGUAGES, "-o", tmp_path / "report.json", "--json")
    assert code == 0
    report = json.loads(out)
    assert report == json.loads((tmp_path / "report.json").read_text())
    chrf = [result for result in report["results"] if result["metric"] == "chrF"]
    assert chrf[0]["value"] == pytest.approx(100) and "version:" in chrf[0]["signature"]
    assert len(chrf[0]["details"]["interval"]) == 2


def test_intervals_are_drawn_where_they_are_seen(run, documents, translations, tmp_path, monkeypatch):
    """Neither the table of one system nor its sentence scores have them."""
    monkeypatch.setattr("hf_docmt.reports.resampling.bootstrap_scores", None)
    code, out, err = run("evaluate", translations(), documents, *LANGUAGES, "--by", "length")
    assert code == 0 and "100.00" in out, err
    with pytest.raises(TypeError, match="not callable"):
        run("evaluate", translations(), documents, *LANGUAGES, "-o", tmp_path / "report.json")


def test_a_set_of_wmt_is_scored_by_its_own_references(run, tmp_path):
    """A document without sentences counts as nothing."""
    document = (
        '<doc id="{0}" origlang="en"><src lang="en"><p>{1}</p></src><ref lang="de" translator="A"><p>{1}</p></ref>'
        '<hyp system="S" lang="de"><p>{1}</p></hyp></doc>'
    )
    texts = {"a": '<seg id="1">One is here.</seg>', "b": "", "c": '<seg id="1">Two are here.</seg>'}
    path, report = tmp_path / "set.xml", tmp_path / "report.json"
    path.write_text(f"<dataset id='x'>{''.join(document.format(*item) for item in texts.items())}</dataset>")
    options = ("--system", "S", "--translator", "A", *LANGUAGES, "-o", report)
    outputs = [run("evaluate", *files, *options) for files in ([path], [path, path])]
    assert outputs[0] == outputs[1] and outputs[0][0] == 0, outputs
    bleu = json.loads(report.read_text())["results"][0]
    assert (bleu["value"], bleu["n"]) == (pytest.approx(100), 2)


def test_evaluate_names_documents_that_are_missing(run, documents, tmp_path):
    (tmp_path / "out.jsonl").write_text(json.dumps({"doc_id": "a", "translation": ["x", ""]}) + "\n")
    code, _, err = run("evaluate", tmp_path / "out.jsonl", documents, *LANGUAGES)
    assert code == 1 and "1 document," in err and "not translated: b" in err
    code, _, err = run("evaluate", tmp_path / "out.jsonl", documents)
    assert code == 1 and "--target-lang" in err


def test_several_systems(run, documents, translations, tmp_path):
    """JSON lines of systems before the reference, or any files with -r; systems as rows, a report each."""
    first, second = translations(), tmp_path / "other.jsonl"
    second.write_text(first.read_text().replace("D", "X"))
    code, out, err = run("evaluate", first, second, documents, *LANGUAGES, "-o", tmp_path / "reports")
    table = [line.split() for line in out.splitlines()]
    assert code == 0 and table[0][:4] == ["dataset", "metric", "system", "n"], err
    assert sorted(path.name for path in (tmp_path / "reports").iterdir()) == ["other.json", "out.json"]
    alone = json.loads(run("evaluate", second, documents, *LANGUAGES, "--unit", "document", "--json")[1])
    assert json.loads((tmp_path / "reports" / "other.json").read_text()) == alone
    lines = [tmp_path / name for name in ("a.txt", "b.txt", "reference.txt")]
    for path, text in zip(lines, ("Hallo .\n", "Hallo !\n", "Hallo .\n")):
        path.write_text(text)
    found = json.loads(run("evaluate", *lines[:2], "-r", lines[2], "--json")[1])
    assert found["systems"] == ["a", "b"] and found["rows"][0]["figures"].keys() == {"a", "b"}
    code, _, err = run("evaluate", *lines[:2], "-r", lines[2], "--name", "x")
    assert code == 1 and "--name is for one system, got files of 2 systems" in err
    code, _, err = run("evaluate", first, second, documents, *LANGUAGES, "-o", lines[0])
    assert code == 1 and lines[0].read_text() == "Hallo .\n"


@pytest.mark.parametrize("option", ["--output", "--sentence-scores"])
def test_outputs_that_are_inputs(run, documents, tmp_path, option):
    lines = tmp_path / "lines.txt"
    lines.write_text("a\n")
    for name in (lines, tmp_path / ".." / tmp_path.name / "lines.txt"):
        code, _, err = run("evaluate", lines, lines, option, name)
        assert code == 1 and f"the output {name} is the input {lines}" in err and lines.read_text() == "a\n"
    code, _, err = run("evaluate", lines, documents, "-o", tmp_path / "both", "--sentence-scores", tmp_path / "both")
    assert code == 1 and "is given both as report and as sentence scores; give two files" in err
    code, _, err = run("cxmi", "no_model", documents, "-o", tmp_path / "both", "--details", tmp_path / "both")
    assert code == 1 and "is given both as report and as details; give two files" in err
    code, _, err = run("cxmi", "no_model", documents, "-o", documents)
    assert code == 1 and f"the output {documents} is the input {documents}" in err


@pytest.mark.parametrize(
    "command",
    [
        "contrast name suite.json --scores s.scores --documents INPUT",
        "contrast name suite.json --records INPUT",
        "translate-suite no_model suite.json --documents INPUT",
        "translate-suite no_model suite.json --records INPUT",
        "ctxpro no_model set.json --inputs INPUT",
    ],
)
def test_any_file_that_is_read_is_an_input(run, documents, command):
    before = documents.read_bytes()
    words = command.replace("INPUT", str(documents)).split()
    code, _, err = run(*words, "-o", documents)
    assert code == 1 and f"the output {documents} is the input {documents}" in err
    assert documents.read_bytes() == before


def test_a_packed_reference_has_the_name_of_its_data(run, documents, translations, tmp_path):
    packed = tmp_path / "documents.jsonl.gz"
    packed.write_bytes(gzip.compress(documents.read_bytes()))
    for reference in (documents, packed):
        _, out, _ = run("evaluate", translations(), reference, *LANGUAGES, "--json")
        assert {result["dataset"] for result in json.loads(out)["results"]} == {"documents"}


def test_languages_of_evaluate_have_no_default(run):
    """There is no model whose languages they could be."""
    _, out, _ = run("evaluate", "--help")
    assert "Source language in the documents" in " ".join(out.split()) and "that of the model" not in out


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


def test_compare_two_systems(run, model, documents, tmp_path):
    """Reports of two systems in one table, tested against each other, as text, Markdown and picture."""
    run("corpus", tmp_path / "c", "--train", 2, "--validation", 1, "--test", 1, "--suite-items", 2)
    suite = tmp_path / "c" / "deixis.json"
    for name, context in (("without", 0), ("with", 1)):
        run("contrast", model, suite, "--context", context, "-o", tmp_path / f"{name}.json")
    reports = (tmp_path / "without.json", tmp_path / "with.json", "--name", "without", "--name", "with")
    code, out, _ = run("compare", *reports, "--breakdown", "distance", "--picture", tmp_path / "distance.png")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0 and "distance=1" in out and ["past", "0", "1"] in lines and "difference: from without" in out
    assert (tmp_path / "distance.png").read_bytes()[:4] == b"\x89PNG"
    code, plain, _ = run("compare", *reports, "--picture", tmp_path / "distance.png")
    assert code == 0 and "distance=1" not in plain
    code, out, _ = run("compare", *reports, "--baseline", "with", "--format", "csv")
    assert code == 0 and out.startswith("task,dataset,split,metric,part,system,strategy,beams,past,value,")
    code, out, _ = run("compare", *reports, "--format", "markdown")
    assert code == 0 and out.startswith("|")
    code, _, err = run("compare", tmp_path / "with.json", documents)
    assert code == 1 and "documents.jsonl" in err


def test_evaluate_parts_alignment_and_discourse(run, documents, translations):
    pytest.importorskip("mweralign")
    files, languages = (translations(sources=True, joined=True), documents), (*LANGUAGES, "--json")
    code, _, err = run("evaluate", *files, *languages)
    assert code == 1 and "document 'a': 1 translated sentence for 2" in err
    options = ("--align", "--by", "index,domain", "--domains", "[ab]")
    code, out, _ = run("evaluate", *files, *languages, *options)
    found = {result["metric"]: result for result in json.loads(out)["results"]}
    assert code == 0 and found["under-translation"]["value"] == 0 and found["chrF"]["value"] == pytest.approx(100)
    assert {"index=1", "domain=a", "domain=b"} <= set(found["chrF"]["breakdown"])
    for measure, words in (
        ("connectives", "counted in English, got 'de'"),
        ("pronouns", "counted from en to de, fr, es, got"),
    ):
        other = ("--source-lang", "de", "--target-lang", "de") if measure == "pronouns" else languages
        code, _, err = run("evaluate", *files, *other, "--discourse", measure)
        assert code == 1 and words in err
    code, _, err = run("evaluate", *files, *languages, "--discourse", "metaphors")
    assert code == 1 and "unknown discourse measure 'metaphors'" in err


def test_discourse_of_aligned_translations_says_so(run, tmp_path):
    pytest.importorskip("mweralign")
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


def test_evaluate_as_sacrebleu(run, tmp_path):
    """Options by the names of sacrebleu's command line; two references; scores of sentences in a file of their own."""
    (tmp_path / "out.txt").write_text("Der HUND schläft , sagt er\n今天天气\n")
    (tmp_path / "a.txt").write_text("Der Hund schläft, sagte er\n今天好天气\n")
    (tmp_path / "b.txt").write_text("Der Hund schläft\n今天天气很好\n")
    files = [tmp_path / name for name in ("out.txt", "a.txt", "b.txt")]
    flags = ("--lowercase", "--chrf-lowercase", "--ter-case-sensitive", "--ter-asian-support", "--ter-no-punct")
    options = ("-l", "en-zh_CN", "-m", "bleu,chrf++", "-m", "ter", *flags, "--ter-normalized")
    code, out, err = run("evaluate", *files, *options, "--sentence-scores", tmp_path / "s.jsonl", "--json")
    assert code == 0, err
    signatures = [result["signature"].split("|version")[0] for result in json.loads(out)["results"]]
    assert signatures == [
        "segments:sentence|nrefs:2|case:lc|eff:no|tok:zh|smooth:exp",
        "segments:sentence|nrefs:2|case:lc|eff:yes|nc:6|nw:2|space:no",
        "segments:sentence|nrefs:2|case:mixed|tok:tercom|norm:yes|punct:no|asian:yes",
    ]
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [row["sentence"] for row in rows] == [1, 2] and rows[0]["scores"].keys() == {"s-BLEU", "chrF++", "TER"}
    assert "|tok:char|" in run("evaluate", *files, "--tokenize", "char")[1]
    for options, words in (
        (("-l", "en"), "--language-pair: got 'en', expected two codes such as en-de"),
        (("-l", "en-de", "--target-lang", "de"), "--language-pair en-de and --source-lang or --target-lang"),
        (("--sentence-scores", tmp_path), f"cannot write {tmp_path}: it is a folder"),
    ):
        code, _, err = run("evaluate", *files, *options)
        assert code == 1 and words in err


def test_evaluate_against_a_baseline(run, documents, tmp_path):
    """Differences and p-values over documents or sentences; the report is that of the first file."""
    texts = {"ours": "Die Lampe ist alt.\n\nSie ist neu.\n", "theirs": "Die Lampe ist jung.\n\nEs ist neu.\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    options = (documents, "-l", "en-de", "-m", "ter", "--baseline", tmp_path / "theirs.txt", "-o", tmp_path / "r.json")
    for unit, ids in (("document", ["a", "b"]), ("sentence", ["a:1", "a:2", "b:1"])):
        code, out, err = run("evaluate", tmp_path / "ours.txt", *options, "--unit", unit)
        assert code == 0 and "difference: from theirs" in out and f"(randomisation over {unit}s" in out, err
        report = json.loads((tmp_path / "r.json").read_text())
        assert report["model"]["name"] == "ours" and report["results"][0]["value"] == 0
        assert report["results"][0]["details"]["statistics"]["ids"] == ids
    plain = (tmp_path / "ours.txt", tmp_path / "theirs.txt")
    parts = run("evaluate", tmp_path / "ours.txt", *options, "--by", "index")[1]
    assert "index=1" in parts and "index=2" in parts
    rows = [{"doc_id": "a", "translation": ["Es.", "Sie."]}, {"doc_id": "b", "translation": ["Sie."]}]
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    systems = (tmp_path / "one.jsonl", tmp_path / "two.jsonl", documents, "-l", "en-de", "-m", "ter")
    several = run("evaluate", *systems, "--by", "index")[1]
    assert "index=1" in several and "two" in several and "index=1" not in run("evaluate", *systems)[1]
    assert "over sentences" in run("evaluate", *plain, "-m", "ter", "--baseline", plain[1])[1]
    found = json.loads(run("evaluate", tmp_path / "ours.txt", *options, "--json")[1])
    assert found["rows"][0]["figures"]["ours"]["test"]["delta"] == pytest.approx(-100 * 2 / 7)
    code, _, err = run("evaluate", tmp_path / "ours.txt", *options, "--unit", "words")
    assert code == 1 and "unknown unit 'words': expected one of document, paragraph, sentence" in err
