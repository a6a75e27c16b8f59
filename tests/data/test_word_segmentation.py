"""Blanks between the words of Chinese; lines, tags and entities stay as they are."""

import gzip
import sys

import pytest

from hf_docmt.data.readers import read_documents
from hf_docmt.data.word_segmentation import segment_line
from hf_docmt.messages import install_command

TALK = """<url>http://a.b/c</url>
<talkid>7</talkid>
<title>因为音乐</title>
因为音乐可以帮他

他将 思维转换成形 &amp; TED
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("甲乙丙", "甲 乙 丙"),
        ("  甲 乙\t丙 ", "甲 乙 丙"),
        ('<seg id="1"> 甲&amp;乙 </seg>', '<seg id="1"> 甲 &amp; 乙 </seg>'),
        ("&#8212;甲", "&#8212; 甲"),
        ("甲<乙丙>丁", "甲 < 乙 丙 > 丁"),
        ("a<甲b>乙", "a < 甲 b > 乙"),
        ("</p><!-- 甲 --><br/>", "</p> <!-- 甲 --> <br/>"),
        ('<doc docid="1" lang="zh">', '<doc docid="1" lang="zh">'),
        ("", ""),
    ],
)
def test_segment_line(line, expected):
    assert segment_line(line, list) == expected


def test_command(run, tmp_path):
    """The words of the paper's Table 5, talks read as before, and a pipe."""
    pytest.importorskip("jieba")
    (tmp_path / "train.tags.zh-en.zh").write_text(TALK, encoding="utf-8")
    code, out, err = run("words", tmp_path / "train.tags.zh-en.zh", "-o", tmp_path / "words.zh")
    assert (code, out, err) == (0, "", "")
    assert len((tmp_path / "words.zh").read_text(encoding="utf-8").splitlines()) == len(TALK.splitlines())
    run("words", tmp_path / "train.tags.zh-en.zh", "-o", tmp_path / "words.zh.gz")
    assert gzip.decompress((tmp_path / "words.zh.gz").read_bytes()) == (tmp_path / "words.zh").read_bytes()
    (row,) = read_documents("iwslt", source_lang="zh", source=tmp_path / "words.zh")
    assert row["doc_id"] == "7"
    assert [pair["zh"] for pair in row["translation"]] == ["因为 音乐 可以 帮 他", "", "他 将 思维 转换 成形 & TED"]
    assert run("segment", stdin="因为音乐可以帮他\n\n") == (0, "因为 音乐 可以 帮 他\n\n", "")  # was "words"


def test_errors(run, tmp_path, monkeypatch):
    (tmp_path / "a.zh").write_text("因为\n", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "jieba", None)
        code, out, err = run("words", tmp_path / "a.zh")
    assert code == 1 and out == "" and install_command("chinese") in err
    pytest.importorskip("jieba")
    code, out, err = run("words", tmp_path / "none.zh", "-o", tmp_path / "out.zh")
    assert code == 1 and "does not exist" in err and not (tmp_path / "out.zh").exists()
