"""Files made to fill the memory, to take for ever, or to lose text on the way: refused by file and line, or read."""

import gzip
import json
import time

import pytest
import yaml
from support.reader_checks import fails, read

from hf_docmt import files
from hf_docmt.data.documents import sentences
from hf_docmt.data.readers.reader import readers
from hf_docmt.formats import document_formats
from hf_docmt.training.recipe import RecipeError, load_recipe

BLANKS, WORD, LINES = " " * 40_000, "a" * 40_000, "x y z\n" * 40_000
SEG = '<srcset setid="x" srclang="en"><doc docid="d"><seg id="1">{}</seg></doc></srcset>\n'
XML = '<?xml version="1.0"?><mteval><srcset><doc docid="d"{}><seg id="1">{}</seg></doc></srcset></mteval>'
SLOW = {  # name of the file and its text; each took 3 to over 20 seconds with work that grew as the square
    "tag.sgm": '<srcset><doc docid="d"><seg id="1">a</seg>\n<seg id="2\n' + LINES,
    "comment.sgm": "<srcset><!-- \n" + LINES,
    "blanks.sgm": SEG.format("a" + BLANKS + "b"),
    "attribute.xml": XML.format(f' x="{LINES}"', "a"),
    "blanks.xml": XML.format("", "a" + BLANKS + "b"),
    "tags.train": f"<doc {WORD}>\n<seg id={BLANKS}\n",
    "keys.jsonl": '{"doc_id":"a",' + "".join(f'"k{number}":1,' for number in range(40_000)) + '"k39999":2}\n',
    "columns.jsonl": json.dumps({"doc_id": "a", "translation": [{"en": "a"}]} | {f"c{n}": n for n in range(400)}),
}


@pytest.mark.parametrize("name", SLOW)
def test_work_grows_with_the_file(write, name):
    path = write(name, SLOW[name])
    formats = {"sgm": "sgm", "xml": "iwslt", "train": "iwslt", "jsonl": "jsonl"}
    start = time.process_time()
    try:
        read(formats[name.split(".")[1]], target_lang=None, **{"path" if "jsonl" in name else "source": path})
    except files.DataError as error:
        assert str(path) in str(error) and "line" in str(error)
    assert time.process_time() - start < 5  # under a second on an idle machine


@pytest.mark.parametrize("head", [b"<!-- a -->", b"<!--", b"<!-- a --> \n", b"<!DOCTYPE a>", b" ", b"<?xml a>"])
def test_first_bytes_are_looked_at_once(head):
    """Of every format and reader; 40 comments at the head of any file took days."""
    patterns = [each.first_bytes for each in (*document_formats().values(), *readers().values()) if each.first_bytes]
    start = time.process_time()
    assert not any(pattern.match(head * (60_000 // len(head))) for pattern in patterns)
    assert time.process_time() - start < 2  # some milliseconds on an idle machine


def test_line_limit(write, monkeypatch):
    path = write("long.jsonl", json.dumps({"doc_id": "a", "translation": [{"en": "a" * (2 << 20), "de": "b"}]}))
    assert len(read("jsonl", path=path)) == 1
    monkeypatch.setenv(files.LINE_LIMIT_VARIABLE, "1")
    fails("long.jsonl, line 1", "more than 1 MiB", files.LINE_LIMIT_VARIABLE, format="jsonl", path=path)
    for wrong in ("0", "-3", "much"):
        monkeypatch.setenv(files.LINE_LIMIT_VARIABLE, wrong)
        with pytest.raises(ValueError, match=f"{files.LINE_LIMIT_VARIABLE} is '{wrong}', expected a number of MiB"):
            read("jsonl", path=path)


def test_gzip_bombs(tmp_path, monkeypatch):
    """One endless line is stopped by its length, endless lines by how well they pack; text packs worse."""
    monkeypatch.setattr(files, "MAX_LINE_MIB", 1)
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress(b"a\n" * (1 << 22)))
    fails("lines.gz: ", "200 times its size", format="lines", target_lang=None, path=path)
    path.write_bytes(gzip.compress(b"\0" * (2 << 20)))
    fails("lines.gz, line 1", "more than 1 MiB", format="lines", target_lang=None, path=path)
    text = "".join(f"{number} {number * 7919 % 10_007}\n" for number in range(20_000))
    path.write_bytes(gzip.compress(text.encode()))
    assert len(read("lines", target_lang=None, path=path)) == 1


@pytest.mark.parametrize("text", ["<![CDATA[a]]>", "</100 euros", "<!joe@x.de> wrote", "a < b", "<3", "a </ b", "<>"])
def test_text_that_looks_like_markup_is_kept(write, text):
    path = write("set.sgm", SEG.format(text))
    assert [sentences(row, "en") for row in read("sgm", target_lang=None, source=path)] == [[text]]


@pytest.mark.parametrize("text", ["a </euros> b", "a <!-- b --> c", "a <?php b ?> c", "<joe@x.de> wrote", "<b>a</b>"])
def test_markup_in_text_is_refused(write, text):
    path = write("set.sgm", "\n" + SEG.format(text))
    fails("set.sgm, line 2", "&lt;", format="sgm", target_lang=None, source=path)


def test_tags_of_html_swallow_no_documents(write):
    path = write("set.sgm", '<style>\n<srcset><doc docid="d"><seg id="1">a</seg></doc></srcset>\n')
    assert [sentences(row, "en") for row in read("sgm", target_lang=None, source=path)] == [["a"]]


def test_aliases_in_recipes(write):
    """Nine lines of YAML that stand for a billion values."""
    rows = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    rows += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi")]
    path = write("bomb.yaml", "\n".join(rows))
    assert len(yaml.safe_load(path.read_text())) == 9
    with pytest.raises(RecipeError, match=r"bomb.yaml(.|\n)*alias \*a is refused(.|\n)*line 2"):
        load_recipe(path)
