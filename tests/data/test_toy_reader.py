"""A format from outside the package: one class in a plain file, detected, read and scored by the command."""

import json

import pytest

from hf_docmt.data.readers import Reader, reader, readers

TOY = '''
from hf_docmt.data.documents import make_row
from hf_docmt.data.readers import Evidence, Reader
from hf_docmt.files import DataError, location_of, read_lines


class ToyReader(Reader):
    """A line `# NAME` begins a document, `source = target` is a sentence pair."""

    name = "toy"

    def recognize(self, sample):
        return Evidence.NAME if sample.ending == ".toy" else Evidence.NONE

    def read(self, languages, path):
        documents = {}
        for number, line in read_lines(path):
            if line.startswith("# "):
                location, pairs = documents[line[2:]] = (location_of(path, number), [])
            elif " = " not in line:
                raise DataError(f"{location_of(path, number)}: no ' = ' between the sides; add it")
            else:
                pairs.append(line.split(" = "))
        for doc_id, (location, pairs) in documents.items():
            yield location, make_row(location, doc_id, *zip(*pairs), languages)
'''
DOCUMENTS = "# talk\nOne . = Eins .\nTwo three four . = Zwei drei vier .\n# news\nFive . = Fünf .\n"


@pytest.fixture(autouse=True)
def plugin(write, monkeypatch):
    monkeypatch.setattr(reader, "_READERS", readers())
    monkeypatch.setenv("HF_DOCMT_PLUGINS", str(write("toy.py", TOY)))


@pytest.mark.parametrize("options", [(), ("--format", "toy")])
def test_the_command_reads_a_format_from_outside(write, run, options):
    rows = [("news", ["Fünf ."]), ("talk", ["Eins .", "Zwei drei vier ."])]
    text = "".join(json.dumps({"doc_id": name, "translation": translation}) + "\n" for name, translation in rows)
    files = write("out.jsonl", text), write("reference.toy", DOCUMENTS)
    languages = ("--source-lang", "en", "--target-lang", "de")
    code, out, err = run("evaluate", *files, *options, *languages, "--json")
    assert code == 0, err
    scores = {result["metric"]: result["value"] for result in json.loads(out)["results"]}
    assert scores["chrF"] == 100 and scores["TER"] == 0
    code, _, err = run("evaluate", files[0], write("bad.toy", "# a\nOne .\n"), *options, *languages)
    assert code == 1 and "bad.toy, line 2: no ' = ' between the sides; add it" in err
    assert list(readers())[-1] == "toy"


def test_unknown_formats_are_reported_with_those_from_outside(write, run):
    code, _, err = run("evaluate", write("a.jsonl", "{}"), write("b.toy", DOCUMENTS), "--format", "toi")
    assert code == 1 and "unknown format 'toi' (did you mean 'toy'?)" in err and ", wmt_jsonl, toy and auto" in err


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match=r"two readers have the name 'jsonl': .*JsonlReader.* and .*Other"):

        class Other(Reader):
            name = "jsonl"

            def read(self, languages, path):
                return iter(())
