"""`docmt data stats`: several inputs side by side, pairs of files, JSON, and what is refused."""

import json

import pytest

LANGUAGES = ("--source-lang", "en", "--target-lang", "de")
DOCUMENT = json.dumps({"doc_id": "a", "translation": [{"en": "Here it is.", "de": "Da."}], "phenomena": ["pronoun-2"]})


@pytest.fixture
def pair(write):
    source, target = write("talks.en", "<d>\nOne two.\nThree.\n<d>\nFour.\n"), write("talks.de", "<d>\nA\nB\n<d>\nC\n")
    return f"source={source},target={target}"


def test_side_by_side(run, write, pair):
    code, out, err = run("data", "stats", write("train.jsonl", DOCUMENT + "\n"), pair, *LANGUAGES, "--context", "1")
    assert (code, err) == (0, "")
    assert out.split()[:2] == ["train", "talks"]
    rows = [line.rsplit(maxsplit=2) for line in out.splitlines()]
    assert ["documents", "1", "2"] in rows and ["sentences", "1", "3"] in rows
    assert ["words, en", "3", "4"] in rows and ["pronoun, further than 1", "1", "-"] in rows
    assert "Words are separated by white space" in out


def test_json(run, write):
    path = write("train.jsonl", DOCUMENT + "\n")
    code, out, _ = run("data", "stats", path, *LANGUAGES, "--context", "2", "--json")
    (found,) = json.loads(out)["statistics"]
    assert code == 0 and found["input"] == str(path) and found["sides"]["en"]["words"] == 3
    assert found["phenomena"] == {"pronoun": {"2": 1}} and found["out_of_reach"] == {"pronoun": 0}


def test_names_with_folders_where_files_have_one_name(run, write, tmp_path):
    (tmp_path / "other").mkdir()
    paths = [write("train.jsonl", DOCUMENT + "\n"), write("other/train.jsonl", DOCUMENT + "\n")]
    code, out, _ = run("data", "stats", *paths, *LANGUAGES, "--style", "markdown")
    assert code == 0 and all(str(path).replace("_", "\\_") in out.splitlines()[0] for path in paths)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["source="], "'source=': expected FILE, or NAME=FILE,NAME=FILE such as source=a.en,target=a.de"),
        (["source=a,source=b"], "expected FILE, or NAME=FILE,NAME=FILE"),
        (["sources=a.en,target=a.de", "--format", "dtag"], "takes no 'sources' (did you mean 'source'?)"),
        (["missing.jsonl"], "missing.jsonl: the file does not exist"),
        (["missing.jsonl", "--style", "html"], "unknown style 'html': expected one of text, markdown, latex"),
    ],
)
def test_bad_input(run, inputs, message):
    code, out, err = run("data", "stats", *inputs, *LANGUAGES)
    assert (code, out) == (1, "") and message in err
