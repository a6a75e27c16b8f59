"""COMET through files: what is written, refused or shortened, a scorer in another process, what is read back."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from hf_docmt import __version__
from hf_docmt.evaluation.comet import comet_input, comet_result
from hf_docmt.evaluation.comet_files import comet_command, read_comet_scores, run_comet, write_comet_input

SOURCES = [["One.", "Two.", "Three."], ["Four."]]
HYPOTHESES = [["eins.", "zwo.", ""], ["vier."]]
REFERENCES = [["Eins.", "Zwei.", "Drei."], ["Vier."]]
SIDES = (SOURCES, HYPOTHESES, REFERENCES)
SCORES = {"model": "fake", "scores": [0.5, 0.25, 0.75, 1.0]}

FAKE_PACKAGE = """
class Model:
    use_context = False

    def enable_context(self):
        self.use_context = WORKS

    def predict(self, data, batch_size, gpus):
        class Prediction:
            scores = [len(row["mt"]) / 100 + (1 if self.use_context else 0) for row in data]
        return Prediction

def download_model(name):
    return "/somewhere/" + name

def load_from_checkpoint(path):
    assert path == "/somewhere/some/model"
    return Model()
"""


def words(limit_name="words"):
    """A tokenizer that counts blanks."""

    def tokenize(text):
        return {"input_ids": text.split()}

    tokenize.name_or_path = limit_name
    return tokenize


@pytest.fixture
def scorer(tmp_path):
    """A command that gives each item the length of its hypothesis, or does what the text says."""

    def make(text="json.dump({'model': 'fake', 'scores': [len(i['mt']) for i in items]}, open(sys.argv[2], 'w'))"):
        path = tmp_path / "scorer.py"
        path.write_text(
            f"import json, sys\nitems = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]\n{text}\n"
        )
        return [sys.executable, str(path), "{input}", "{output}"]

    return make


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Something like unbabel-comet in another place."""

    def make(works=True, version="2.2.9"):
        package, info = tmp_path / "site" / "comet", tmp_path / "site" / f"unbabel_comet-{version}.dist-info"
        package.mkdir(parents=True)
        info.mkdir()
        (package / "__init__.py").write_text(FAKE_PACKAGE.replace("WORKS", str(works)))
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: unbabel-comet\nVersion: {version}\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))

    return make


def test_sentences():
    found = comet_input(*SIDES)
    assert found.items[1] == {"src": "Two.", "mt": "zwo.", "ref": "Zwei."} and len(found.items) == 4
    assert (found.lengths, found.ids, found.context, found.shortened) == ((3, 1), ("1", "2"), 0, 0)


def test_context():
    """The reference stands before the hypothesis, nothing of another document, at most so many sentences."""
    found = comet_input(*SIDES, context=1)
    assert found.items[0] == {"src": "One.", "mt": "eins.", "ref": "Eins."}
    assert found.items[2] == {"src": "Two. </s> Three.", "mt": "Zwei. </s> ", "ref": "Zwei. </s> Drei."}
    assert found.items[3] == {"src": "Four.", "mt": "vier.", "ref": "Vier."} and found.shortened == 0
    found = comet_input(*SIDES, context=5, separator="<x>", mt_context="hypothesis")
    assert found.items[2]["mt"] == "eins. <x> zwo. <x> " and found.items[2]["ref"] == "Eins. <x> Zwei. <x> Drei."


def test_signature():
    plain, context = (
        comet_input(*SIDES),
        comet_input(*SIDES, context=2, long="chunk", limit=40, tokenizer=words("xlmr")),
    )
    assert plain.signature == "context:0|limit:510|counted:bytes/3|long:refuse"
    assert context.signature == "context:2|separator:</s>|mt-context:reference|limit:40|counted:xlmr|long:chunk"


def test_long_context_is_refused():
    """Two sentences of context, three words and two separators are five."""
    assert comet_input(*SIDES, context=2, limit=5, tokenizer=words()).shortened == 0
    with pytest.raises(
        ValueError, match="document 'a', sentence 3: 5 subwords with 2 sentences of context, COMET reads 4;"
    ):
        comet_input(*SIDES, context=2, limit=4, tokenizer=words(), doc_ids=["a", "b"])


def test_long_context_is_shortened_and_told(caplog):
    found = comet_input(*SIDES, context=2, limit=4, long="chunk", tokenizer=words())
    assert [item["src"] for item in found.items] == ["One.", "One. </s> Two.", "Two. </s> Three.", "Four."]
    assert found.shortened == 1 and "1 of 4 sentences got less context, 4 subwords" in caplog.text
    found = comet_input(*SIDES, context=2, limit=1, long="chunk", tokenizer=words())
    assert found.items == comet_input(*SIDES).items and found.shortened == 2


@pytest.mark.parametrize("side", range(3))
def test_the_longest_side_decides(side):
    sides = [[list(document) for document in part] for part in SIDES]
    sides[side][0][2] = "a b c d e f"
    found = comet_input(*sides, context=2, limit=8, long="chunk", tokenizer=words())
    assert found.shortened == 1 and found.items[2]["src"].startswith("Two. </s> ")
    for long in ("refuse", "chunk"):
        with pytest.raises(
            ValueError, match="sentence 3: 6 subwords with 0 sentences of context, .* 5; cut the sentence"
        ):
            comet_input(*sides, limit=5, long=long, tokenizer=words())


def test_estimate():
    """Three bytes a subword, upwards, and two special ones."""
    documents = [["ab cdé"]]  # seven bytes
    assert comet_input(documents, documents, documents, limit=5)
    with pytest.raises(ValueError, match="document '1', sentence 1: 5 subwords"):
        comet_input(documents, documents, documents, limit=4)


def test_input_file(tmp_path):
    found = comet_input([["a\u2028b"]], [["ü"]], [['"c"']])
    write_comet_input(found, tmp_path / "in.jsonl")
    text = (tmp_path / "in.jsonl").read_bytes().decode("utf-8")
    assert [json.loads(line) for line in text.split("\n")[:-1]] == [{"src": "a\u2028b", "mt": "ü", "ref": '"c"'}]


def test_result():
    prepared = comet_input(*SIDES, context=1, doc_ids=["a", "b"])
    result = comet_result(
        prepared, SCORES | {"comet": "2.2.9"}, dataset="talks", split="test", strategy="full", beams=4
    )
    assert (result["metric"], result["value"], result["n"]) == ("doc-COMET", 62.5, 4)
    assert result["signature"] == f"model:fake|scale:100|{prepared.signature}|comet:2.2.9|version:{__version__}"
    assert result["details"]["statistics"] == {"unit": "document", "ids": ["a", "b"], "rows": [[1.5, 3], [1.0, 1]]}
    assert result["details"]["interval"] == [50, 100] and result["details"]["shortened"] == 0
    plain = comet_result(comet_input(*SIDES), SCORES | {"comet": None}, dataset="d", split="s", samples=0)
    assert plain["metric"] == "COMET" and "interval" not in plain["details"]


def test_a_scorer_in_another_process(scorer):
    prepared = comet_input(*SIDES, context=1)
    found = run_comet(prepared, scorer())
    assert found == {"model": "fake", "scores": [5, 15, 11, 5], "comet": None}


def test_the_program_beside_unbabel_comet(environment):
    """The command runs as it is given, where this package is not needed, and takes the package `comet`."""
    environment()
    for context in (0, 1):
        prepared = comet_input(*SIDES, context=context)
        found = run_comet(prepared, comet_command(prepared, sys.executable, "some/model"))
        assert (found["model"], found["comet"]) == ("some/model", "2.2.9")
        assert found["scores"] == [len(item["mt"]) / 100 + context for item in prepared.items]


def test_a_model_that_cannot_use_context(environment):
    environment(works=False)
    prepared = comet_input(*SIDES, context=1)
    with pytest.raises(ValueError, match="this COMET model cannot score with context: take one that pools by average"):
        run_comet(prepared, comet_command(prepared, sys.executable, "some/model"))


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
        ("sys.exit('no such model')", "status 1: no such model\n.*unbabel-comet\n.*comet_scorer.py {input} {output}"),
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
    assert command[0] == "python3" and command[2:] == ["{input}", "{output}", "--model", "M"]
    assert comet_command(SimpleNamespace(context=2))[-1] == "--context"


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
        ({"long": "cut"}, "unknown long 'cut': expected refuse or chunk"),
        ({"mt_context": "source"}, "unknown mt_context 'source': expected reference or hypothesis"),
        ({"context": -1}, "context is -1 and limit 510"),
        ({"limit": 0}, "context is 0 and limit 0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        comet_input(*SIDES, **options)


def test_sides_that_do_not_line_up():
    with pytest.raises(ValueError, match="1 translated documents for 2 references"):
        comet_input(SOURCES, HYPOTHESES[:1], REFERENCES)
    with pytest.raises(ValueError, match="document 'b': 2 source sentences for 1 reference sentences"):
        comet_input([SOURCES[0], ["Four.", "Five."]], HYPOTHESES, REFERENCES, doc_ids=["a", "b"])
