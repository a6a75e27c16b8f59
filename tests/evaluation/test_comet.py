"""COMET through files: what is written, refused or shortened, a scorer in another process, what is read back."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.errors import refused

from hf_docmt import __version__
from hf_docmt.evaluation.metrics.comet import Comet, DocumentComet, comet_items, read_comet_scores, run_comet
from hf_docmt.evaluation.metrics.comet_scorer import fit
from hf_docmt.evaluation.metrics.metric import ScoreSettings
from hf_docmt.evaluation.metrics.translated_documents import TranslatedDocuments
from hf_docmt.reports.signature import Signature

SOURCES = [["One.", "Two.", "Three."], ["Four."]]
HYPOTHESES = [["eins.", "zwo.", ""], ["vier."]]
REFERENCES = [["Eins.", "Zwei.", "Drei."], ["Vier."]]
SCORES = {"model": "fake", "scores": [0.5, 0.25, 0.75, 1.0]}

FAKE_PACKAGE = """
from types import SimpleNamespace

class Tokenizer:
    sep_token, sep_token_id = "</s>", 2

    def __call__(self, text):
        return {"input_ids": [2 if word == "</s>" else 9 for word in f"<s> {text} </s>".split()]}

class Model:
    use_context = False
    hparams = SimpleNamespace()
    encoder = SimpleNamespace(tokenizer=Tokenizer(), max_positions=10)

    def enable_context(self):
        self.use_context = WORKS

    def predict(self, data, batch_size, gpus):
        assert gpus == 1
        return SimpleNamespace(scores=[len(row["mt"]) / 100 + (1 if self.use_context else 0) for row in data])

def download_model(name):
    return "/somewhere/" + name

def load_from_checkpoint(path):
    assert path == "/somewhere/some/model" or path.endswith("own.ckpt"), path
    return Model()
"""


def model(limit=8, context=True, **hparams):
    """What `fit` asks of a COMET model: a tokenizer of words, with its limit."""
    made = {}
    exec(FAKE_PACKAGE.replace("WORKS", "True"), made)
    made["Model"].encoder.max_positions = limit + (0 if hparams else 2)
    made["Model"].hparams, made["Model"].use_context = SimpleNamespace(**hparams), context
    return made["Model"]()


def documents(sources=SOURCES, hypotheses=HYPOTHESES, references=REFERENCES, **fields):
    return TranslatedDocuments(hypotheses, references, sources, **fields)


def items_of(*sides, context=0, ids=("a", "b")):
    return list(comet_items(documents(*sides), list(ids), context))


@pytest.fixture
def python(tmp_path):
    """A Python in whose place a program gives each item the length of its hypothesis, or does what the text says."""

    def make(
        text="json.dump({'model': 'fake', 'scores': [len(' '.join(i['mt'])) for i in items]}, open(sys.argv[5], 'w'))",
    ):
        path = tmp_path / "python"
        lines = (
            f"import json, sys\nitems = [json.loads(line) for line in open(sys.argv[4], encoding='utf-8')]\n{text}\n"
        )
        path.write_text(f"#!{sys.executable}\n{lines}")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Something like unbabel-comet in another environment."""

    def make(works=True, version="2.2.9"):
        package, info = tmp_path / "site" / "comet", tmp_path / "site" / f"unbabel_comet-{version}.dist-info"
        package.mkdir(parents=True)
        info.mkdir()
        (package / "__init__.py").write_text(FAKE_PACKAGE.replace("WORKS", str(works)))
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: unbabel-comet\nVersion: {version}\n")
        (tmp_path / "site" / "torch.py").write_text("class cuda:\n    is_available = lambda: True\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))

    return make


def test_items():
    """The reference stands before the hypothesis, nothing of another document, at most so many sentences."""
    assert items_of()[1] == {"doc_id": "a", "sentence": 2, "src": ["Two."], "mt": ["zwo."], "ref": ["Zwei."]}
    items = items_of(context=1)
    assert items[0] == {"doc_id": "a", "sentence": 1, "src": ["One."], "mt": ["eins."], "ref": ["Eins."]}
    assert items[2]["src"] == ["Two.", "Three."] and items[2]["mt"] == ["Zwei.", ""]
    assert items[2]["ref"] == ["Zwei.", "Drei."]
    assert items[3] == {"doc_id": "b", "sentence": 1, "src": ["Four."], "mt": ["vier."], "ref": ["Vier."]}


def test_texts_of_the_model():
    """Sentences are joined by the separator of the model's tokenizer."""
    texts, found = fit(items_of(context=1), model())
    assert texts[0] == {"src": "One.", "mt": "eins.", "ref": "Eins."}
    assert texts[2] == {"src": "Two. </s> Three.", "mt": "Zwei. </s> ", "ref": "Zwei. </s> Drei."}
    assert found == {"separator": "</s>", "limit": 8, "shortened": 0}
    assert fit(items_of(), model(context=False))[1]["separator"] is None


def test_long_context():
    """Three words, two separators and two special ones are seven subwords."""
    items = items_of(context=2)
    assert fit(items, model(7))[1]["shortened"] == 0
    texts, found = fit(items, model(6))
    assert [text["src"] for text in texts] == ["One.", "One. </s> Two.", "Two. </s> Three.", "Four."]
    assert found["shortened"] == 1
    texts, found = fit(items, model(3))
    assert texts == fit(items_of(), model())[0] and found["shortened"] == 2


@pytest.mark.parametrize("side", range(3))
def test_the_longest_side_decides(side):
    sides = [[list(document) for document in part] for part in (SOURCES, HYPOTHESES, REFERENCES)]
    sides[side][0][2] = "a b c d e f"
    texts, found = fit(items_of(*sides, context=2), model(10))
    assert found["shortened"] == 1 and texts[2]["src"].startswith("Two. </s> ")
    with pytest.raises(SystemExit, match="COMET: document 'a', sentence 3: 8 subwords, this model reads 7; cut the"):
        fit(items_of(*sides), model(7))


def test_a_model_that_reads_all_sides_at_once():
    """Its limit is that of the sum, of the sides that it reads: three of three subwords here."""
    items = items_of([["a"]], [["b"]], [["c"]])
    assert fit(items, model(9, False, input_segments=["mt", "src", "ref"]))[1]["limit"] == 9
    with pytest.raises(SystemExit, match="9 subwords, this model reads 8"):
        fit(items, model(8, False, input_segments=["mt", "src", "ref"]))
    assert fit(items, model(6, False, input_segments=["mt", "src"]))[0]


def test_a_separator_in_a_sentence():
    """It would hide a part of the current sentence; without context it hides nothing."""
    sides = [["a", "b"]], [["c", "d </s> e"]], [["f", "g"]]
    with pytest.raises(SystemExit, match="COMET: document 'a', sentence 2: the separator </s> occurs in it or its"):
        fit(items_of(*sides, context=1), model())
    assert fit(items_of(*sides), model(context=False))[0][1]["mt"] == "d </s> e"


def test_result(python):
    """By a program that tells nothing but the scores, and by one that tells all."""
    how = {"strategy": "full", "beams": 4, "alignment": Signature.parse("alignment:x")}
    translated = documents(doc_ids=["a", "b"], dataset="talks", split="test", **how)
    told = SCORES | {"comet": "2.2.7", "separator": "</s>", "limit": 510, "shortened": 1}
    (result,) = DocumentComet(python(f"json.dump({told}, open(sys.argv[5], 'w'))"), context=1).score(translated)
    assert (result.metric, result.value, result.n) == ("doc-COMET", 62.5, 4)
    assert str(result.signature) == (
        "alignment:x|model:fake|scale:100|context:1|mt-context:reference|separator:</s>|limit:510|comet:2.2.7|"
        f"version:{__version__}"
    )
    assert result.details["statistics"] == {"unit": "document", "ids": ["a", "b"], "rows": [[1.5, 3], [1.0, 1]]}
    assert result.details["interval"] == [50, 100] and result.details["shortened"] == 1
    (result,) = Comet(python()).score(documents(), ScoreSettings(samples=0))
    assert str(result.signature) == f"model:fake|scale:100|context:0|comet:None|version:{__version__}"
    assert (result.metric, result.value) == ("COMET", 100 * (5 + 4 + 0 + 5) / 4) and "interval" not in result.details


def test_the_program_beside_unbabel_comet(environment, python):
    """It runs where this package is not needed, and takes the package `comet`; what is written is read as it is."""
    environment()
    program = python("json.dump({'model': items[0]['src'][0], 'scores': [1]}, open(sys.argv[5], 'w'))")
    assert run_comet(items_of([["a\u2028b"]], [["ü"]], [['"c"']]), program, "m")["model"] == "a\u2028b"
    for context in (0, 1):
        items = items_of(context=context)
        found = run_comet(items, sys.executable, "some/model", with_context=context > 0)
        assert (found["model"], found["comet"], found["limit"]) == ("some/model", "2.2.9", 8)
        joined = [" </s> ".join(item["mt"]) for item in items]
        assert found["scores"] == [len(text) / 100 + context for text in joined]


def test_checkpoint_file_by_what_is_in_it(environment, tmp_path):
    """The signature has no path, and two files of one name are two models."""
    environment()
    names = []
    for content in ("one", "two"):
        (tmp_path / "own.ckpt").write_text(content)
        names.append(run_comet(items_of(), sys.executable, str(tmp_path / "own.ckpt"))["model"])
    assert names[0] == "own.ckpt@7692c3ad3540" and names[1].startswith("own.ckpt@") and names[0] != names[1]


def test_shortened_context_is_reported(environment, caplog):
    environment()
    sides = [[["a b c", "d e f", "g"]]] * 3  # 3 + 1 + 3 and 3 + 1 + 3 + 1 + 1 words beside two special ones
    found = run_comet(items_of(*sides, context=2), sys.executable, "some/model", with_context=True)
    assert found["shortened"] == 2 and "2 of 3 sentences got less context, 8 subwords" in caplog.text


def test_a_model_that_cannot_use_context(environment):
    environment(works=False)
    with pytest.raises(ValueError, match="^COMET: this model cannot score with context: take one that pools by .*$"):
        DocumentComet(sys.executable, "some/model").score(documents())


def test_both_results(environment):
    environment()
    options, settings = {"python": sys.executable, "model": "some/model"}, ScoreSettings(samples=0)
    (plain,) = Comet(**options).score(documents(), settings)
    (context,) = DocumentComet(**options, context=1).score(documents(), settings)
    assert plain.metric == "COMET" and plain.value == pytest.approx(3.5)
    assert context.metric == "doc-COMET" and "separator:</s>|limit:8|" in str(context.signature)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sys.exit('no such model')", "status 1: no such model\n.*pip install unbabel-comet 'setuptools.*"),
        ("raise MemoryError('too big')", "status 1: .*MemoryError: too big"),
        ("print('done')", "status 0: done\n"),
        ("pass", "status 0: it wrote no scores"),
    ],
)
def test_failing_programs(python, text, message):
    refused(f"(?s).*python .* failed, {message}", run_comet, items_of(), python(text), "m")
    with pytest.raises(ValueError, match="(?s)no-such-python .* failed, .*No such file.*python -m venv comet-env"):
        run_comet(items_of(), "no-such-python", "m")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ([0.5] * 4, ": expected an object with `model` and a list `scores`"),
        ({"scores": [0.5] * 4}, ": expected an object with `model`"),
        (SCORES | {"scores": [0.5] * 3}, ": 3 scores for 4 sentences"),
        (SCORES | {"scores": [0.5, None, 1, 1]}, ", score 2: None is not a finite number"),
        (SCORES | {"scores": [0.5, 1, float("nan"), 1]}, ", score 3: nan is not a finite number"),
        (SCORES | {"scores": [0.5, 1, 1, True]}, ", score 4: True is not a finite number"),
    ],
)
def test_bad_scores(output, message, tmp_path):
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(output))
    refused(rf"scores\.json{message}", read_comet_scores, path, 4)


def test_bad_input():
    for sides, message in (
        ((SOURCES, HYPOTHESES[:1]), "1 translated document for 2 reference documents"),
        (([SOURCES[0], ["Four.", "Five."]],), "document '2': 2 source sentences for 1 translated sentence"),
        ((None,), "COMET needs the source sentences of the documents; give sources"),
    ):
        refused(message, Comet().score, documents(*sides))
    refused("context is -1: expected 0 or more sentences", DocumentComet(context=-1).score, documents())


@pytest.mark.slow
@pytest.mark.skipif("COMET_PYTHON" not in os.environ, reason="COMET_PYTHON: a Python that has unbabel-comet")
@pytest.mark.parametrize("context", [0, 1, 3])
def test_unbabel_comet_itself(tmp_path, context):
    """Scores of a tiny checkpoint equal those computed sentence by sentence from its parts, and context is shortened.

    Characters are subwords and 22 of them are read, two of these special; sentences are of 0 to 8.
    """
    draw, python = random.Random(0), os.environ["COMET_PYTHON"]
    lengths = [draw.randint(1, 6) for _ in range(12)]
    sides = [[["".join(draw.choices("abcxyz ", k=draw.randint(0, 8))) for _ in range(length)] for length in lengths]]
    sides += [[[text[::-1] + draw.choice("pq") for text in document] for document in sides[0]] for _ in range(2)]
    items = items_of(*sides, context=context, ids=map(str, range(12)))
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    peer = Path(__file__).resolve().parents[1] / "support" / "comet_peer.py"
    subprocess.run([python, "-W", "ignore", peer, tmp_path / "tiny", tmp_path / "in.jsonl"], check=True)
    model = str(tmp_path / "tiny" / "checkpoints" / "model.ckpt")
    found = run_comet(items, python, model, with_context=context > 0)
    assert found["scores"] == pytest.approx(json.loads((tmp_path / "in.jsonl.scores").read_text()), abs=1e-5)
    assert len({round(score, 3) for score in found["scores"]}) > len(items) / 2
    assert found["limit"] == 22 and (found["shortened"] > 0) == (context == 3)
