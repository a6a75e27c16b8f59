"""COMET through files: what is written, refused or shortened, a scorer in another process, what is read back."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hf_docmt import __version__
from hf_docmt.evaluation.metrics.comet import Comet, DocumentComet
from hf_docmt.evaluation.metrics.comet_input import comet_input
from hf_docmt.evaluation.metrics.comet_program import (
    comet_command,
    read_comet_scores,
    run_comet,
    write_comet_input,
)
from hf_docmt.evaluation.metrics.comet_scorer import fit
from hf_docmt.evaluation.metrics.metric import ScoreSettings
from hf_docmt.evaluation.metrics.translated_documents import TranslatedDocuments
from hf_docmt.reports.signature import Signature

SOURCES = [["One.", "Two.", "Three."], ["Four."]]
HYPOTHESES = [["eins.", "zwo.", ""], ["vier."]]
REFERENCES = [["Eins.", "Zwei.", "Drei."], ["Vier."]]
SIDES = (SOURCES, HYPOTHESES, REFERENCES)
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


@pytest.fixture
def scorer(tmp_path):
    """A command that gives each item the length of its hypothesis, or does what the text says."""

    def make(
        text="json.dump({'model': 'fake', 'scores': [len(' '.join(i['mt'])) for i in items]}, open(sys.argv[2], 'w'))",
    ):
        path = tmp_path / "scorer.py"
        path.write_text(
            f"import json, sys\nitems = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]\n{text}\n"
        )
        return [sys.executable, str(path), "{input}", "{output}"]

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


def test_sentences():
    found = comet_input(*SIDES)
    assert found.items[1] == {"doc_id": "1", "sentence": 2, "src": ["Two."], "mt": ["zwo."], "ref": ["Zwei."]}
    assert (found.lengths, found.ids, found.context, len(found.items)) == ((3, 1), ("1", "2"), 0, 4)


def test_context():
    """The reference stands before the hypothesis, nothing of another document, at most so many sentences."""
    items = comet_input(*SIDES, context=1, doc_ids=["a", "b"]).items
    assert items[0] == {"doc_id": "a", "sentence": 1, "src": ["One."], "mt": ["eins."], "ref": ["Eins."]}
    assert items[2]["src"] == ["Two.", "Three."] and items[2]["mt"] == ["Zwei.", ""]
    assert items[2]["ref"] == ["Zwei.", "Drei."]
    assert items[3] == {"doc_id": "b", "sentence": 1, "src": ["Four."], "mt": ["vier."], "ref": ["Vier."]}
    items = comet_input(*SIDES, context=5, mt_context="hypothesis").items
    assert items[2]["mt"] == ["eins.", "zwo.", ""] and items[2]["ref"] == ["Eins.", "Zwei.", "Drei."]


def test_texts_of_the_model():
    """Sentences are joined by the separator of the model's tokenizer."""
    texts, found = fit(comet_input(*SIDES, context=1).items, model(), "refuse")
    assert texts[0] == {"src": "One.", "mt": "eins.", "ref": "Eins."}
    assert texts[2] == {"src": "Two. </s> Three.", "mt": "Zwei. </s> ", "ref": "Zwei. </s> Drei."}
    assert found == {"separator": "</s>", "limit": 8, "shortened": 0}
    assert fit(comet_input(*SIDES).items, model(context=False), "refuse")[1]["separator"] is None


def test_long_context():
    """Three words, two separators and two special ones are seven subwords."""
    items = comet_input(*SIDES, context=2, doc_ids=["a", "b"]).items
    assert fit(items, model(7), "refuse")[1]["shortened"] == 0
    with pytest.raises(SystemExit, match="COMET: document 'a', sentence 3: 7 subwords with 2 .* reads 6; give less"):
        fit(items, model(6), "refuse")
    texts, found = fit(items, model(6), "chunk")
    assert [text["src"] for text in texts] == ["One.", "One. </s> Two.", "Two. </s> Three.", "Four."]
    assert found["shortened"] == 1
    texts, found = fit(items, model(3), "chunk")
    assert texts == fit(comet_input(*SIDES).items, model(), "refuse")[0] and found["shortened"] == 2


@pytest.mark.parametrize("side", range(3))
def test_the_longest_side_decides(side):
    sides = [[list(document) for document in part] for part in SIDES]
    sides[side][0][2] = "a b c d e f"
    texts, found = fit(comet_input(*sides, context=2).items, model(10), "chunk")
    assert found["shortened"] == 1 and texts[2]["src"].startswith("Two. </s> ")
    for long in ("refuse", "chunk"):
        with pytest.raises(SystemExit, match="sentence 3: 8 subwords with 0 sentences of context, .* 7; cut the sent"):
            fit(comet_input(*sides).items, model(7), long)


def test_a_model_that_reads_all_sides_at_once():
    """Its limit is that of the sum, of the sides that it reads: three of three subwords here."""
    items = comet_input([["a"]], [["b"]], [["c"]]).items
    assert fit(items, model(9, False, input_segments=["mt", "src", "ref"]), "refuse")[1]["limit"] == 9
    with pytest.raises(SystemExit, match="9 subwords with 0 sentences of context, this model reads 8"):
        fit(items, model(8, False, input_segments=["mt", "src", "ref"]), "refuse")
    assert fit(items, model(6, False, input_segments=["mt", "src"]), "refuse")[0]


def test_a_separator_in_a_sentence():
    """It would hide a part of the current sentence; without context it hides nothing."""
    sides = [["a", "b"]], [["c", "d </s> e"]], [["f", "g"]]
    with pytest.raises(SystemExit, match="COMET: document '1', sentence 2: the separator </s> occurs in it or its"):
        fit(comet_input(*sides, context=1).items, model(), "chunk")
    assert fit(comet_input(*sides).items, model(context=False), "refuse")[0][1]["mt"] == "d </s> e"


def test_input_file(tmp_path):
    found = comet_input([["a\u2028b"]], [["ü"]], [['"c"']])
    write_comet_input(found, tmp_path / "in.jsonl")
    text = (tmp_path / "in.jsonl").read_bytes().decode("utf-8")
    assert [json.loads(line) for line in text.split("\n")[:-1]] == [
        {"doc_id": "1", "sentence": 1, "src": ["a\u2028b"], "mt": ["ü"], "ref": ['"c"']}
    ]


def test_result():
    prepared = comet_input(*SIDES, context=1, doc_ids=["a", "b"])
    found = SCORES | {"comet": "2.2.7", "separator": "</s>", "limit": 510, "shortened": 1}
    aligned = {"strategy": "full", "beams": 4, "alignment": Signature.parse("alignment:x")}
    documents = TranslatedDocuments(SIDES[1], SIDES[2], SIDES[0], ["a", "b"], "talks", "test", **aligned)
    result = DocumentComet(context=1).result_of(prepared, found, documents)
    assert (result.metric, result.value, result.n) == ("doc-COMET", 62.5, 4)
    assert str(result.signature) == (
        "alignment:x|model:fake|scale:100|context:1|mt-context:reference|separator:</s>|limit:510|comet:2.2.7|"
        f"version:{__version__}"
    )
    assert result.details["statistics"] == {"unit": "document", "ids": ["a", "b"], "rows": [[1.5, 3], [1.0, 1]]}
    assert result.details["interval"] == [50, 100] and result.details["shortened"] == 1


def test_result_of_a_program_that_tells_nothing(tmp_path):
    (tmp_path / "scores.json").write_text(json.dumps(SCORES))
    prepared = comet_input(*SIDES)
    found = read_comet_scores(tmp_path / "scores.json", prepared)
    documents = TranslatedDocuments(SIDES[1], SIDES[2], SIDES[0])
    result = Comet().result_of(prepared, found, documents, ScoreSettings(samples=0))
    assert str(result.signature) == f"model:fake|scale:100|context:0|comet:None|version:{__version__}"
    assert result.metric == "COMET" and "interval" not in result.details


def test_a_scorer_in_another_process(scorer):
    prepared = comet_input(*SIDES, context=1)
    found = run_comet(prepared, scorer())
    assert (found["model"], found["scores"], found["comet"]) == ("fake", [5, 10, 6, 5], None)


def test_the_program_beside_unbabel_comet(environment):
    """The command runs as it is given, where this package is not needed, and takes the package `comet`."""
    environment()
    for context in (0, 1):
        prepared = comet_input(*SIDES, context=context)
        found = run_comet(prepared, comet_command(prepared, sys.executable, "some/model"))
        assert (found["model"], found["comet"], found["limit"]) == ("some/model", "2.2.9", 8)
        joined = [" </s> ".join(item["mt"]) for item in prepared.items]
        assert found["scores"] == [len(text) / 100 + context for text in joined]


def test_checkpoint_file_by_what_is_in_it(environment, tmp_path):
    """The signature has no path, and two files of one name are two models."""
    environment()
    prepared, names = comet_input(*SIDES), []
    for content in ("one", "two"):
        (tmp_path / "own.ckpt").write_text(content)
        found = run_comet(prepared, comet_command(prepared, sys.executable, str(tmp_path / "own.ckpt")))
        names.append(found["model"])
    assert names[0] == "own.ckpt@7692c3ad3540" and names[1].startswith("own.ckpt@") and names[0] != names[1]


def test_shortened_context_is_reported(environment, caplog):
    environment()
    sides = [[["a b c", "d e f", "g"]]] * 3  # 3 + 1 + 3 and 3 + 1 + 3 + 1 + 1 words beside two special ones
    prepared = comet_input(*sides, context=2, doc_ids=["talk"])
    found = run_comet(prepared, comet_command(prepared, sys.executable, "some/model", "chunk"))
    assert found["shortened"] == 2 and "2 of 3 sentences got less context, 8 subwords" in caplog.text
    with pytest.raises(ValueError, match="^COMET: document 'talk', sentence 2: 9 subwords with 1 sentences of .*$"):
        run_comet(prepared, comet_command(prepared, sys.executable, "some/model"))


def test_a_model_that_cannot_use_context(environment):
    environment(works=False)
    prepared = comet_input(*SIDES, context=1)
    with pytest.raises(ValueError, match="^COMET: this model cannot score with context: take one that pools by .*$"):
        run_comet(prepared, comet_command(prepared, sys.executable, "some/model"))


def test_both_results(environment):
    environment()
    options, settings = {"python": sys.executable, "model": "some/model"}, ScoreSettings(samples=0)
    documents = TranslatedDocuments(SIDES[1], SIDES[2], SIDES[0], ["a", "b"])
    (plain,) = Comet(**options).score(documents, settings)
    (context,) = DocumentComet(**options, context=1).score(documents, settings)
    assert plain.metric == "COMET" and plain.value == pytest.approx(3.5)
    assert context.metric == "doc-COMET" and "separator:</s>|limit:8|" in str(context.signature)
    with pytest.raises(ValueError, match="context is -1"):
        DocumentComet(**options, context=-1).score(documents, settings)


def test_scores_of_another_input(environment, tmp_path):
    environment()
    old, new = comet_input(*SIDES), comet_input(SOURCES, REFERENCES, REFERENCES)
    write_comet_input(old, tmp_path / "in.jsonl")
    files = {"{input}": str(tmp_path / "in.jsonl"), "{output}": str(tmp_path / "out.json")}
    subprocess.run([files.get(part, part) for part in comet_command(old, sys.executable, "some/model")], check=True)
    assert len(read_comet_scores(tmp_path / "out.json", old)["scores"]) == 4
    with pytest.raises(ValueError, match=r"out\.json: these are the scores of another input"):
        read_comet_scores(tmp_path / "out.json", new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "sys.exit('no such model')",
            "status 1: no such model\n.*unbabel-comet 'setuptools.*\n.*comet_scorer.py {input} {output}",
        ),
        ("raise MemoryError('too big')", "status 1: .*MemoryError: too big"),
        ("print('done')", "status 0: done\n"),
        ("pass", "status 0: it wrote no scores"),
    ],
)
def test_failing_commands(scorer, text, message):
    with pytest.raises(ValueError, match=f"(?s).*scorer.py .* failed, {message}"):
        run_comet(comet_input(*SIDES), scorer(text))


def test_commands_that_cannot_run():
    with pytest.raises(ValueError, match="(?s)no-such-python .* failed, .*No such file.*python -m venv comet-env"):
        run_comet(comet_input(*SIDES), comet_command(comet_input(*SIDES), "no-such-python"))
    with pytest.raises(ValueError, match="comet-score '{input}' lacks {input} or {output}"):
        run_comet(comet_input(*SIDES), ["comet-score", "{input}"])


def test_the_command_says_whether_there_is_context():
    command = comet_command(SimpleNamespace(context=0), "python3", "M")
    assert command[0] == "python3" and command[4:] == ["{input}", "{output}", "--model", "M", "--long", "refuse"]
    assert comet_command(SimpleNamespace(context=2), long="chunk")[-2:] == ["chunk", "--context"]
    with pytest.raises(ValueError, match="unknown long 'cut': expected refuse or chunk"):
        comet_command(SimpleNamespace(context=2), long="cut")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([0.5] * 4, "expected an object with `model` and a list `scores`"),
        ({"scores": [0.5] * 4}, "expected an object with `model`"),
        (SCORES | {"scores": [0.5] * 3}, "3 scores for 4 sentences"),
        (SCORES | {"scores": [0.5, None, 1, 1]}, "score 2: None is not a finite number"),
        (SCORES | {"scores": [0.5, 1, float("nan"), 1]}, "score 3: nan is not a finite number"),
        (SCORES | {"scores": [0.5, 1, 1, True]}, "score 4: True is not a finite number"),
        (SCORES | {"context": True}, "scored with --context, the input is otherwise"),
        (SCORES | {"input": "0" * 64}, "scores of another input"),
    ],
)
def test_bad_scores(found, message, tmp_path):
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(found))
    with pytest.raises(ValueError, match=rf"scores\.json.*: .*{message}" if "score " not in message[:6] else message):
        read_comet_scores(path, comet_input(*SIDES))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mt_context": "source"}, "unknown mt_context 'source': expected reference or hypothesis"),
        ({"context": -1}, "context is -1: expected 0 or more sentences"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        comet_input(*SIDES, **options)


def test_sides_that_do_not_line_up():
    with pytest.raises(ValueError, match="1 translated document for 2 references"):
        comet_input(SOURCES, HYPOTHESES[:1], REFERENCES)
    with pytest.raises(ValueError, match="document 'b': 2 source sentences for 1 reference sentences"):
        comet_input([SOURCES[0], ["Four.", "Five."]], HYPOTHESES, REFERENCES, doc_ids=["a", "b"])


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
    prepared = comet_input(*sides, context=context)
    write_comet_input(prepared, tmp_path / "in.jsonl")
    peer = Path(__file__).resolve().parents[1] / "support" / "comet_peer.py"
    subprocess.run([python, "-W", "ignore", peer, tmp_path / "tiny", tmp_path / "in.jsonl"], check=True)
    model = str(tmp_path / "tiny" / "checkpoints" / "model.ckpt")
    found = run_comet(prepared, comet_command(prepared, python, model, "chunk"))
    assert found["scores"] == pytest.approx(json.loads((tmp_path / "in.jsonl.scores").read_text()), abs=1e-5)
    assert len({round(score, 3) for score in found["scores"]}) > len(prepared.items) / 2
    assert found["limit"] == 22 and (found["shortened"] > 0) == (context == 3)
    if context == 3:
        with pytest.raises(ValueError, match="COMET: document '.*', sentence .* this model reads 22; give less"):
            run_comet(prepared, comet_command(prepared, python, model))
