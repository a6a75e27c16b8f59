"""`docmt evaluate` against the command `sacrebleu` on the same files: scores to the last digit, and signatures."""

import json
import subprocess
import sys

import numpy as np
import pytest
from support.processes import run_python
from support.reader_checks import jsonl

from hf_docmt.evaluation.comparison import compare
from hf_docmt.evaluation.translation_scores import evaluate_files

GERMAN = {
    "out": "Der Hund schläft , sagt er .\nEr träumt von einem Knochen !\n\nDie Katze (grau) saß auf Matten – gut\n",
    "one": "Der Hund schläft, sagte er.\nEr träumt von seinem Knochen!\nJa.\nDie graue Katze saß auf der Matte, gut\n",
    "two": "„Der Hund schläft“, sagt er.\nEr träumt vom Knochen.\nJawohl.\nEine Katze (GRAU) saß auf Matten - gut\n",
}
CHINESE = {
    "out": "今天天气很好,我们去公园吧。\n他买了3本书。\n他们 在 Paris 见面!\n",
    "one": "今天天气真好,我们去公园玩吧。\n他买了三本书。\n他们在Paris见面。\n",
    "two": "今天天气很好,我们要去公园。\n他买了 3 本书。\n他们在巴黎见面!\n",
}
JAPANESE = {
    "out": "今日は天気がいいので公園へ行きます。\n彼は本を買った。\n",
    "one": "今日は天気がよいので公園に行きます。\n彼は本を三冊買った。\n",
}
KOREAN = {
    "out": "오늘은 날씨가 좋아서 공원에 갑니다.\n그는 책을 샀다.\n",
    "one": "오늘은 날씨가 좋으니 공원에 갑니다.\n그는 책을 세 권 샀다.\n",
}
DOCUMENTS = {name: [text.splitlines()[:3], text.splitlines()[3:]] for name, text in GERMAN.items()}


@pytest.fixture
def reference(write):
    """The documents of the reference, with a second one in a column."""
    rows = [
        {"doc_id": number, "translation": [{"en": "x", "de": line} for line in one], "two": two}
        for number, (one, two) in enumerate(zip(DOCUMENTS["one"], DOCUMENTS["two"]))
    ]
    return write("reference.jsonl", jsonl(rows))


def joined(between):
    """The German texts with a document in each line."""
    return {name: "".join(between.join(lines) + "\n" for lines in some) for name, some in DOCUMENTS.items()}


@pytest.fixture
def files(write):
    """Writes the texts; gives the paths of the outputs and of the references asked for."""

    def written(texts, *references):
        return write("out.txt", texts["out"]), [write(f"{name}.txt", texts[name]) for name in references]

    return written


def sacrebleu(*arguments):
    """What the command prints, at more digits than a float has."""
    done = run_python("-m", "sacrebleu", *arguments, "--width", 20)
    assert done.returncode == 0, done.stderr
    return done.stdout


def scores(*arguments):
    """{(score, signature)} of the command's JSON."""
    found = json.loads(sacrebleu(*arguments))
    keys = ("name", "score", "signature")
    return {tuple(one[key] for key in keys) for one in (found if isinstance(found, list) else [found])}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("-m bleu chrf ter", {"metrics": ["bleu", "chrf", "ter"]}),
        ("-m bleu -tok char", {"metrics": ["bleu"], "tokenize": "char"}),
        ("-m bleu -tok intl -lc", {"metrics": ["bleu"], "tokenize": "intl", "lowercase": True}),
        ("-m bleu -tok none", {"metrics": ["bleu"], "tokenize": "none"}),
        ("-m chrf --chrf-word-order 2", {"metrics": ["chrf++"]}),
        ("-m chrf --chrf-lowercase", {"metrics": ["chrf"], "chrf_lowercase": True}),
        ("-m chrf --chrf-lowercase --chrf-word-order 2", {"metrics": ["chrf++"], "chrf_lowercase": True}),
        ("-m ter --ter-case-sensitive", {"metrics": ["ter"], "ter_case_sensitive": True}),
        ("-m ter --ter-no-punct", {"metrics": ["ter"], "ter_no_punct": True}),
        (
            "-m ter --ter-normalized --ter-asian-support",
            {"metrics": ["ter"], "ter_normalized": True, "ter_asian_support": True},
        ),
    ],
)
def test_options(files, theirs, ours):
    outputs, paths = files(GERMAN, "one", "two")
    report = evaluate_files(outputs, paths, **ours)
    assert as_printed(report) == scores(*paths, "-i", outputs, *theirs.split())


def test_a_byte_order_mark_is_part_of_the_first_word(files):
    outputs, paths = files(GERMAN, "one")
    plain = evaluate_files(outputs, paths, metrics=["bleu", "ter"])
    outputs.write_bytes(b"\xef\xbb\xbf" + outputs.read_bytes())
    report = evaluate_files(outputs, paths, metrics=["bleu", "ter"])
    assert as_printed(report) == scores(*paths, "-i", outputs, "-m", "bleu", "ter") != as_printed(plain)


def as_printed(report):
    """Results as the command's JSON has them: score and signature without our own entry `segments`."""
    names = {
        "s-BLEU": "BLEU",
        "d-BLEU": "BLEU",
        "chrF": "chrF2",
        "chrF++": "chrF2++",
        "d-chrF": "chrF2",
        "d-TER": "TER",
    }
    return {
        (names.get(one.metric, one.metric), one.value, str(one.signature.without("segments", "joiner", "data")))
        for one in report.results
    }


@pytest.mark.parametrize(
    ("texts", "pair", "lang", "needs"),
    [
        (CHINESE, "en-zh", "zh_CN", "sacrebleu"),
        (CHINESE, "en-zh", "zho_Hant", "sacrebleu"),
        (JAPANESE, "en-ja", "ja_XX", "ipadic"),
        (KOREAN, "en-ko", "kor_Hang", "mecab_ko"),
        (GERMAN, "en-pt", "pt_BR", "sacrebleu"),
    ],
)
def test_languages(files, texts, pair, lang, needs):
    pytest.importorskip(needs)
    outputs, paths = files(texts, *(name for name in ("one", "two") if name in texts))
    report = evaluate_files(outputs, paths, target_lang=lang, metrics=["bleu", "chrf", "ter"])
    assert as_printed(report) == scores(*paths, "-i", outputs, "-m", "bleu", "chrf", "ter", "-l", pair)


@pytest.mark.parametrize(
    ("theirs", "ours"), [("bleu", "s-BLEU"), ("chrf", "chrF"), ("chrf --chrf-word-order 2", "chrF++"), ("ter", "TER")]
)
def test_sentence_scores(files, tmp_path, theirs, ours):
    outputs, paths = files(GERMAN, "one", "two")
    metrics = ["bleu", "chrf", "chrf++", "ter"]
    evaluate_files(outputs, paths, metrics=metrics, sentence_scores=tmp_path / "sentences.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "sentences.jsonl").read_text().splitlines()]
    lines = sacrebleu(*paths, "-i", outputs, "--sentence-level", "-m", *theirs.split()).splitlines()
    printed = [line.split(" = ") for line in lines]
    assert [f"{row['scores'][ours]:.20f}" for row in rows] == [score.split()[0] for _, score, *_ in printed]
    assert [row["signatures"][ours] for row in rows] == [name.split("|", 1)[1] for name, *_ in printed]
    assert [row["sentence"] for row in rows] == [1, 2, 3, 4] and rows[0]["doc_id"] == "one"
    assert rows[0]["translation"] == GERMAN["out"].split("\n")[0] and len(rows[0]["references"]) == 2


@pytest.mark.parametrize(
    ("theirs", "method", "metrics"),  # the JSON of the command fails for chrF with bs, and for TER
    [("ar", "randomisation", ["bleu", "chrf"]), ("bs", "sacrebleu-bootstrap", ["bleu"])],
)
def test_p_values_of_plain_lines(write, monkeypatch, theirs, method, metrics):
    """Sentences are drawn one by one, as the command draws them: the same differences and p-values."""
    words, rng = "der die Hund Katze schläft sitzt auf unter Matte Tisch gut müde".split(), np.random.default_rng(3)
    lines = [" ".join(rng.choice(words, size=rng.integers(5, 12))) for _ in range(60)]
    spoilt = {name: [spoil(line, share, words, rng) for line in lines] for name, share in (("a", 0.5), ("b", 0.42))}
    paths = {name: write(f"{name}.txt", "\n".join(text) + "\n") for name, text in {"ref": lines, **spoilt}.items()}
    monkeypatch.setenv("SACREBLEU_SEED", "1")
    flags = (f"--paired-{theirs}", f"--paired-{theirs}-n", "500", "--format", "json")
    base, system = json.loads(sacrebleu(paths["ref"], "-i", paths["a"], paths["b"], "-m", *metrics, *flags))
    reports = [evaluate_files(paths[name], paths["ref"], metrics=metrics, unit="sentence") for name in ("a", "b")]
    rows = compare(reports, method=method, samples=500, seed=1).rows
    assert len(rows) == len(metrics)
    for row in rows:
        name, own = {"s-BLEU": "BLEU", "chrF": "chrF2"}[row.metric], row.figures["b"]
        assert own.value == system[name]["score"] and row.figures["a"].value == base[name]["score"]
        assert own.test.p_value == system[name]["p_value"] and 0.002 < own.test.p_value < 0.9
    assert reports[0].results[0].details["resampling"] == {"unit": "sentence", "samples": 1000, "seed": 1}


def spoil(line, share, words, rng):
    return " ".join(rng.choice(words) if rng.random() < share else word for word in line.split())


@pytest.mark.parametrize(("joiner", "between"), [("space", " "), ("none", "")])
def test_scores_of_documents(files, write, reference, joiner, between):
    """d-BLEU, d-chrF and d-TER are scores of sacrebleu on files with a document per line, also of two references."""
    translations = [{"doc_id": number, "translation": lines} for number, lines in enumerate(DOCUMENTS["out"])]
    ours = write("ours.jsonl", jsonl(translations))
    options = {"source_lang": "en", "target_lang": "de", "joiner": joiner, "metrics": ["d-bleu", "d-chrf", "d-ter"]}
    report = evaluate_files(ours, reference, **options)
    both = evaluate_files(ours, reference, **options, reference_columns=["two"])
    outputs, paths = files(joined(between), "one", "two")
    assert as_printed(report) == scores(paths[0], "-i", outputs, "-m", "bleu", "chrf", "ter")
    assert as_printed(both) == scores(*paths, "-i", outputs, "-m", "bleu", "chrf", "ter")
    assert f"joiner:{joiner}|" in str(report.results[0].signature)


def test_imports_of_line_scores(files):
    """Neither tables nor data sets nor a model, which take longer to import than the scores."""
    out, (reference,) = files(GERMAN, "one")
    code = (
        "import sys; from hf_docmt.evaluation.translation_scores import evaluate_files; "
        f"print(evaluate_files({str(out)!r}, {str(reference)!r})); "
        "sys.exit(str(sorted({'pandas', 'pyarrow', 'datasets', 'torch', 'scipy'} & sys.modules.keys())))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "s-BLEU" in run.stdout and run.stderr.splitlines()[-1] == "[]"
