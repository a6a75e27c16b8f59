"""The formats of CONTRIBUTING.md: a class in a plain file each, found, read, scored and translated by the command."""

import json
import re
from pathlib import Path

import pytest
from support.tiny_models import write_model

from hf_docmt.data.readers import Reader, reader, readers
from hf_docmt.formats.document_format import FORMATS

GUIDE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
CODE = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", GUIDE, re.DOTALL))
DOCUMENTS = "# talk\nOne . ||| Eins .\nTwo three four . ||| Zwei drei vier .\n# news\nFive . ||| Fünf .\n"


@pytest.fixture(autouse=True)
def plugin(write, monkeypatch):
    monkeypatch.setattr(reader, "_READERS", readers())
    monkeypatch.setenv("HF_DOCMT_PLUGINS", ",".join(str(write(name, code)) for name, code in CODE.items()))
    yield
    FORMATS.pop("notes", None)


@pytest.mark.parametrize("options", [(), ("--format", "headed")])
def test_the_command_reads_a_format_from_outside(write, run, options):
    rows = [("news", ["Fünf ."]), ("talk", ["Eins .", "Zwei drei vier ."])]
    text = "".join(json.dumps({"doc_id": name, "translation": translation}) + "\n" for name, translation in rows)
    files = write("out.jsonl", text), write("reference.headed", DOCUMENTS)
    languages = ("--source-lang", "en", "--target-lang", "de")
    code, out, err = run("evaluate", *files, *options, *languages, "--json")
    assert code == 0, err
    scores = {result["metric"]: result["value"] for result in json.loads(out)["results"]}
    assert scores["chrF"] == 100 and scores["TER"] == 0
    code, _, err = run("evaluate", files[0], write("bad.headed", "# a\nOne .\n"), *options, *languages)
    assert code == 1 and "bad.headed, line 2: expected '# name' or 'source ||| target', got 'One .'" in err
    assert list(readers())[-1] == "headed"


def test_the_command_translates_a_format_from_outside(write, run, tmp_path):
    model, notes = write_model(tmp_path / "model"), write("talk.notes", "w7 w8\n> w9 w10\n\n> w7\r\n")
    code, _, err = run("translate", model, notes, "-o", tmp_path / "talk.de.notes")
    assert code == 0, err
    lines = (tmp_path / "talk.de.notes").read_bytes().decode().split("\n")
    assert [lines[0], *lines[2::2]] == ["w7 w8", "", ""] and all(line.startswith("> ") for line in lines[1::2])
    assert lines[1] != "> w9 w10" and lines[3].endswith("\r")


def test_unknown_formats_are_reported_with_those_from_outside(write, run):
    code, _, err = run("evaluate", write("a.jsonl", "{}"), write("b.headed", DOCUMENTS), "--format", "haeded")
    assert code == 1 and "unknown format 'haeded' (did you mean 'headed'?)" in err and ", headed and auto" in err


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match=r"two readers have the name 'jsonl': .*JsonlReader.* and .*Other"):

        class Other(Reader):
            name = "jsonl"

            def read(self, languages, path):
                return iter(())
