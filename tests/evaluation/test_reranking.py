"""Choice among translations of several files: against all pairs, by scores of others, by command, bad input."""

import json
import random

import pytest
import sacrebleu
from support.errors import refused
from typer.testing import CliRunner

from hf_docmt.cli import app
from hf_docmt.evaluation.reranking import reranked_rows

WORDS = "the a cat dog sees runs".split()
SAME = lambda hypothesis, reference: float(hypothesis == reference)  # noqa: E731


@pytest.fixture
def systems(tmp_path):
    """Writes a file for each system: documents as lists of sentences, or whole rows."""

    def write(**documents):
        paths = []
        for name, rows in documents.items():
            rows = [row if isinstance(row, dict) else {"translation": row} for row in rows]
            paths.append(tmp_path / f"{name}.jsonl")
            lines = [json.dumps({"doc_id": f"d{number}", "source": ["s"], **row}) for number, row in enumerate(rows)]
            paths[-1].write_text("\n".join(lines) + "\n")
        return paths

    return write


def scores_file(path, scores):
    path.write_text("".join(f"{score}\n" for score in scores))
    return path


@pytest.mark.parametrize(
    ("metric", "sentence_score"), [("chrf", sacrebleu.sentence_chrf), ("bleu", sacrebleu.sentence_bleu)]
)
def test_the_greatest_sum_over_all_pairs(systems, metric, sentence_score):
    """Of translations and candidates alike, each pair scored by sacrebleu."""
    draw = random.Random(1)
    texts = lambda count: [" ".join(draw.choices(WORDS, k=draw.randint(1, 6))) for _ in range(count)]  # noqa: E731
    plain = [[texts(3), texts(2)] for _ in range(2)]
    candidates = [[texts(3) for _ in range(size)] for size in (3, 2)]
    beams = [{"translation": [found[0] for found in one], "candidates": one} for one in candidates]
    rows = reranked_rows(systems(a=plain[0], b=beams, c=plain[1]), metric)
    for document, row in enumerate(rows):
        assert "candidates" not in row and row["doc_id"] == f"d{document}"
        for sentence, (chosen, name) in enumerate(zip(row["translation"], row["chosen"])):
            votes = {name: [plain[number][document][sentence]] for number, name in enumerate("ac")}
            votes["b"] = candidates[document][sentence]
            voters = [text for texts in votes.values() for text in texts]
            sums = {text: sum(sentence_score(text, [other]).score for other in voters) for text in voters}
            assert sums[chosen] == pytest.approx(max(sums.values())) and chosen in votes[name]


def test_whole_documents(systems):
    """`c` is nearest to the others on the whole, and for one sentence alone; its repairs come along."""
    repairs = [{"sentence": 1, "kind": "length", "detail": ""}]
    files = systems(
        a=[["du", "du", "x"]], b=[["du", "Sie", "y"]], c=[{"translation": ["du", "Sie", "x"], "repairs": repairs}]
    )
    (row,) = reranked_rows(files, SAME, "document")
    assert row["translation"] == ["du", "Sie", "x"] and row["chosen"] == "c" and row["repairs"] == repairs
    assert row["search"] == {"strategy": "rerank", "rerank": "mbr-custom", "unit": "document", "systems": 3}
    files = systems(a=[["p", "q", "r"]], b=[["p", "u", "v"]], c=[["w", "q", "v"]], d=[["w", "u", "r"]])
    (alike,) = reranked_rows(files, SAME, "document")
    assert alike["chosen"] == "a"  # of equal ones the first
    (mixed,) = reranked_rows(files, SAME)
    assert mixed["translation"] == ["p", "q", "r"] and mixed["repairs"] == []


def test_candidates_of_one_search(systems):
    beams = {"translation": ["a", "x"], "candidates": [["a", "b", "b"], ["x", "y"]]}
    (row,) = reranked_rows(systems(beams=[beams]), SAME)
    assert row["translation"] == ["b", "x"] and row["chosen"] == ["beams"] * 2 and "candidates" not in row


def test_candidates_vote_for_documents(systems):
    """The translation that a reranked search took is the hypothesis, whatever its candidates are."""
    beams = {"translation": ["b"], "candidates": [["a", "c", "c"]]}
    (row,) = reranked_rows(systems(a=[["c"]], beams=[beams]), SAME, "document")
    assert row["chosen"] == "a"
    (row,) = reranked_rows(systems(beams=[{**beams, "candidates": [["c", "c", "d"]]}], a=[["d"]]), SAME, "document")
    assert row["chosen"] == "a"  # half of the votes, as "c" has, which is no document's
    (row,) = reranked_rows(systems(a=[["d"]], beams=[{**beams, "candidates": [["b", "c", "d"]]}]), SAME, "document")
    assert row["chosen"] == "a"  # two of four
    (row,) = reranked_rows(systems(a=[["d"]], beams=[{**beams, "candidates": [["b", "b", "e"]]}]), SAME)
    assert row["translation"] == ["b"] and row["chosen"] == ["beams"]


def test_scores_of_another_program(systems, tmp_path):
    files = systems(a=[["a1", "a2"], ["a3"]], b=[["b1", "b2"], ["b3"]])
    scores = [scores_file(tmp_path / "a", [0.1, 0.9, 0.5]), scores_file(tmp_path / "b", [0.2, 0.3, 0.5])]

    def translations(name="comet", **options):
        rows = reranked_rows(files, external=[(name, path) for path in scores], **options)
        return [row["translation"] for row in rows]

    assert translations() == [["b1", "a2"], ["a3"]]
    assert translations("comet:lower") == translations("metricx") == [["a1", "b2"], ["a3"]]  # which counts errors
    assert translations(unit="document") == [["a1", "a2"], ["a3"]]
    assert translations("metricx", unit="document") == [["b1", "b2"], ["a3"]]
    scores[:] = [scores_file(tmp_path / "a", [0.1, 0.9]), scores_file(tmp_path / "b", [0.2, 0.3])]  # of documents
    assert translations(unit="document") == [["b1", "b2"], ["a3"]]
    refused("scores of documents, which do not tell sentences apart", translations)


def test_documents_that_failed(systems):
    """They are no candidates, unless all of them failed."""
    failed = {"translation": ["", ""], "error": "no memory left"}
    files = systems(a=[failed, failed], b=[["x", "y"], failed], c=[["z", "y"], failed])
    for unit in ("sentence", "document"):
        first, second = reranked_rows(files, SAME, unit)
        assert first["translation"] == ["x", "y"] and "error" not in first
        assert second["translation"] == ["", ""] and second["error"] == "no memory left"


@pytest.mark.parametrize(
    ("documents", "options", "message"),
    [
        ({"a": [["x"]]}, {}, "one translation alone to choose from"),
        ({"a": [{"translation": ["x"], "candidates": [["x", "y"]]}]}, {"unit": "document"}, "one translation alone"),
        ({"a": [["x"]], "b": [["x"], ["y"]]}, {}, r"b.jsonl: document 'd1' is not in both this file and .*a.jsonl"),
        ({"a": [["x"]], "b": [["x", "y"]]}, {}, "document 'd0' has 2 sentences, in .*a.jsonl 1"),
        ({"a": [["x"]], "b": ["x"]}, {}, "expected a document with `doc_id` and a list of sentences"),
        ({"a": [["x"]], "b": [{"translation": ["x"], "candidates": ["x"]}]}, {}, "must be a list of texts for each"),
        ({"a": [["x"]], "b": [{"translation": ["x"], "candidates": [[]]}]}, {}, "must be a list of texts for each"),
        ({"a": [["x"]], "b": [{"translation": ["x"], "candidates": [["x"]] * 2}]}, {}, "list of texts for each"),
        ({"a": [["x"]], "b": [["x"]]}, {"unit": "word"}, "unknown unit 'word': known are sentence, document"),
        ({"a": [["x"]], "b": [["x"]]}, {"metric": "ter"}, "unknown utility 'ter': expected one of chrf, bleu"),
        ({"a": [["x"]], "b": [["x"]]}, {"external": [("comet", "a")]}, "1 files of scores for 2 of translations"),
        ({"a": [["x"]], "b": [["x"]]}, {"external": [("qe", "a"), ("MQM", "b")]}, "qe, MQM do not compare"),
    ],
)
def test_bad_input(systems, documents, options, message):
    refused(message, reranked_rows, systems(**documents), **options)


def test_the_command(systems, tmp_path, monkeypatch):
    """Its rows are translations like others, which `docmt evaluate` scores."""
    monkeypatch.chdir(tmp_path)
    systems(a=[["the cat sees", "x"]], b=[["the cat runs", "a dog"]], c=[["the cat runs", "a dog runs"]])
    run = lambda *arguments: CliRunner().invoke(app, arguments)  # noqa: E731
    result = run("rerank", "a.jsonl", "b.jsonl", "c.jsonl", "-o", "best.jsonl", "--metric", "bleu")
    assert result.exit_code == 0, result.output
    (row,) = map(json.loads, (tmp_path / "best.jsonl").read_text().splitlines())
    assert row["translation"] == ["the cat runs", "a dog"] and row["chosen"] == ["b", "b"]
    pairs = [{"en": "s", "de": "the cat runs"}, {"en": "t", "de": "a dog"}]
    reference = {"doc_id": "d0", "translation": pairs}
    (tmp_path / "reference.jsonl").write_text(json.dumps(reference) + "\n")
    result = run("evaluate", "best.jsonl", "reference.jsonl", "--source-lang", "en", "--target-lang", "de", "--json")
    assert result.exit_code == 0 and '"strategy": "rerank"' in result.output and "mbr-bleu" in result.output
    (tmp_path / "one.scores").write_text("1\n0\n")
    scores = ["--external", "qe=one.scores", "--external", "qe=one.scores"]
    result = run("rerank", "a.jsonl", "b.jsonl", *scores, "--unit", "document")
    assert result.exit_code == 0 and json.loads(result.output)["chosen"] == "a"
    refused = run("rerank", "a.jsonl", "b.jsonl", *scores, "--metric", "bleu")
    assert refused.exit_code == 1 and "--metric is not used with --external" in str(refused.exception)
    assert run("rerank", "a.jsonl", "b.jsonl", "-o", "a.jsonl").exit_code == 1
