"""Newstest sets in SGML."""

import json

import pytest
from support.reader_checks import fails, ids, pairs, read

from hf_docmt.data.documents import sentences
from hf_docmt.evaluation.translation_scores import evaluate_files
from hf_docmt.files import DataError

SRC = """<srcset setid="newstest2018" srclang="any">
<doc sysid="ref" docid="abc.1" genre="news" origlang="en">
<p>
<seg id="1">R&D at AT&T &lt; 3 &quot;%&quot; a < b</seg>
<seg id="2">Two  blanks. </seg>
</p>
<p>
<seg id="3"></seg>
</p>
</doc>
<DOC docid="bbc.2" genre="news" origlang="de">
<hl>
<seg id="1">Three
 lines
of it</seg>
</hl>
</DOC>
</srcset>
"""


REF = """<!DOCTYPE mteval SYSTEM "mteval.dtd">
<refset setid="newstest2018" srclang="any" trglang="de">
<doc sysid="ref" docid="bbc.2" genre="news" origlang="de">
<seg id=1>Drei</seg>
</doc>
<doc sysid="ref" docid="abc.1" genre="news" origlang="en">
<seg id="2">Zwei.</seg>
<seg id="1">F&amp;E &#8222;x&#8220; &unknown ?a=1&copy=2</seg>
<seg id="3">Neu.</seg>
</doc>
</refset>
"""


SGM_EN_DE = [
    [('R&D at AT&T < 3 "%" a < b', "F&E „x“ &unknown ?a=1&copy=2"), ("Two  blanks.", "Zwei."), ("", "Neu.")],
    [("Three lines of it", "Drei")],
]


@pytest.fixture
def newstest(write):
    return {"source": write("newstest-src.en.sgm", SRC), "target": write("newstest-ref.de.sgm", REF)}


def test_sgm_matches_documents_and_sentences_by_id(newstest):
    for format in ("sgm", "auto"):
        documents = read(format, **newstest)
        assert pairs(documents) == SGM_EN_DE and ids(documents) == ["abc.1", "bbc.2"]
    alone = read("auto", target_lang=None, source=newstest["source"])
    assert [sentences(row, "en") for row in alone] == [[en for en, _ in document] for document in SGM_EN_DE]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('<seg id="3"></seg>\n', "", ["ref.de.sgm, line 9", "'abc.1'", "seg '3'", "src.en.sgm, line 2", "same segs"]),
        ('id="3"></seg>', 'id="4"></seg>', ["src.en.sgm, line 8", "seg '4'", "ref.de.sgm, line 6"]),
        ('docid="bbc.2"', 'docid="bbc.3"', ["src.en.sgm, line 11", "'bbc.3'", "is not in", "ref.de.sgm"]),
        ('docid="bbc.2"', 'docid="abc.1"', ["line 11", "'abc.1' was there before", "line 2", "its own file"]),
        ('docid="bbc.2" ', "", ["line 11", "document id is missing"]),
        ('<seg id="2">', '<seg id="1">', ["line 5", "seg '1' was there before, in line 4"]),
        ('<seg id="2">', "<seg>", ["line 5", "seg id is missing"]),
        ("a < b</seg>", "a <b</seg>\n", ["line 4", "in <seg> of line 4", "&lt;"]),
        ("a < b</seg>", "a < b", ["line 5", "<seg> in <seg> of line 4"]),
        ('<seg id="2">', '<sge id="2">', ["line 5", "text outside <seg>: 'Two  blanks.'"]),
        ('<seg id="2">Two  blanks. </seg>', "</seg>", ["line 5", "</seg> where <doc> of line 2 is open"]),
        ("</doc>\n", "", ["line 10", "<doc> before </doc> of line 2"]),
        ("</doc>", "</doc></doc>", ["line 10", "</doc> where <srcset> of line 1 is open"]),
        ("</doc>\n", '</doc>\n<seg id="1">x</seg>\n', ["line 11", "<seg> outside <doc>"]),
        (SRC, '<srcset setid="x">\n</srcset>\n', ["src.en.sgm", "no <doc>"]),
        (SRC, '<srcset>\n<doc docid="a">\n<p></p>\n</doc></srcset>', ["line 2", "'a'"]),
    ],
)
def test_sgm_bad_input(newstest, old, new, words):
    assert SRC.count(old) == 1
    newstest["source"].write_text(SRC.replace(old, new), encoding="utf-8")
    fails(*words, **newstest)


def test_sgm_that_is_cut(newstest):
    """Wherever the file ends, an error says so; nothing is lost in silence."""
    for end in range(1, len(SRC.rstrip())):
        newstest["source"].write_text(SRC[:end], encoding="utf-8")
        fails("src.en.sgm, line", format="sgm", target_lang=None, source=newstest["source"])
    newstest["source"].write_bytes(SRC.encode().replace(b"blanks", b"bl\xe4nks"))
    fails("src.en.sgm, line 5", "not UTF-8", "0xe4", **newstest)


def test_one_side_alone_is_no_plain_text(newstest):
    fails("src.en.sgm", "name the format 'sgm'", target_lang=None, path=newstest["source"])


def test_sets_are_scored_by_document_id(newstest, write):
    """The reference side alone is given; its documents stand in another order."""
    rows = [("abc.1", ["Zwei.", "F&E „x“ &unknown ?a=1&copy=2", "Neu."]), ("bbc.2", ["Drei"])]
    text = "".join(json.dumps({"doc_id": name, "translation": translation}) + "\n" for name, translation in rows)
    report = evaluate_files(write("out.jsonl", text), newstest["target"], "sgm", target_lang="de")
    assert next(result.value for result in report.results if result.metric == "s-BLEU") == pytest.approx(100)
    lost = write("less.jsonl", text.splitlines()[0])
    with pytest.raises(DataError, match="not translated: bbc.2"):
        evaluate_files(lost, newstest["target"], "sgm", target_lang="de")
