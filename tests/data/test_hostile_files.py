"""Files made to fill the memory or to lose text on the way: refused by file and line, or read."""

import gzip
import json

import pytest
import yaml
from support.reader_checks import fails, read

from hf_docmt import files
from hf_docmt.data.documents import sentences
from hf_docmt.training.recipe import RecipeError, load_recipe

SEG = '<srcset setid="x" srclang="en"><doc docid="d"><seg id="1">{}</seg></doc></srcset>\n'


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
