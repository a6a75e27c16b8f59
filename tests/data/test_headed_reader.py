"""The format of CONTRIBUTING.md: one class in a plain file, detected, read and scored by the command."""

import json
import re
from pathlib import Path

import pytest

from hf_docmt.data.readers import Reader, reader, readers

GUIDE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
(CODE,) = re.findall(r"```python\n# headed\.py\n(.*?)```", GUIDE, re.DOTALL)
DOCUMENTS = "# talk\nOne . ||| Eins .\nTwo three four . ||| Zwei drei vier .\n# news\nFive . ||| Fünf .\n"


@pytest.fixture(autouse=True)
def plugin(write, monkeypatch):
    monkeypatch.setattr(reader, "_READERS", readers())
    monkeypatch.setenv("HF_DOCMT_PLUGINS", str(write("headed.py", CODE)))


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


def test_unknown_formats_are_reported_with_those_from_outside(write, run):
    code, _, err = run("evaluate", write("a.jsonl", "{}"), write("b.headed", DOCUMENTS), "--format", "haeded")
    assert (
        code == 1
        and "unknown format 'haeded' (did you mean 'headed'?)" in err
        and ", wmt_jsonl, headed and auto" in err
    )


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match=r"two readers have the name 'jsonl': .*JsonlReader.* and .*Other"):

        class Other(Reader):
            name = "jsonl"

            def read(self, languages, path):
                return iter(())
