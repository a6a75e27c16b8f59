"""WMT sets in XML."""

import sys

import pytest
from support.reader_checks import fails, ids, pairs, read

from hf_docmt.data.documents import sentences
from hf_docmt.messages import install_command

WMT = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="newstest2021.en-de">
  <collection id="general">
  <doc id="guardian.1" origlang="en" domain="news">
    <src lang="en">
      <p>
        <seg id="1">Q&amp;A &lt;here&gt;</seg>
        <seg id="2">Two.</seg>
      </p>
      <p>
        <seg id="3"/>
      </p>
    </src>
    <ref lang="de" translator="A">
      <p>
        <seg id="1">F&amp;A</seg>
        <seg id="2">Zwei A.</seg>
        <seg id="3">Neu A.</seg>
      </p>
    </ref>
    <ref lang="de" translator="C">
      <p><seg id="1">F</seg><seg id="2">Zwei C.</seg><seg id="3">Neu C.</seg></p>
    </ref>
    <hyp lang="de" system="Online-A">
      <p><seg id="1">Ausgabe</seg></p>
    </hyp>
  </doc>
  <doc id="bbc.2" origlang="de">
    <src lang="en"><p><seg id="1">Three.</seg></p></src>
    <ref lang="de" translator="A"><p><seg id="1">Drei.</seg></p></ref>
  </doc>
  <doc id="gender.1" origlang="en" testsuite="gender"><src lang="en"><p><seg id="1">She.</seg></p></src></doc>
  </collection>
</dataset>
"""


def test_languages_spelled_otherwise_in_xml(write):
    pytest.importorskip("defusedxml")
    path, codes = write("newstest2021.en-de.xml", WMT), ("eng_Latn", "de_DE")
    found = pairs(read("wmt", *codes, path=path, translator="A"), *codes)
    assert found == pairs(read("wmt", path=path, translator="A"))


def test_wmt(write):
    pytest.importorskip("defusedxml")
    path = write("newstest2021.en-de.xml", WMT)
    for format in ("wmt", "auto"):
        documents = read(format, path=path, translator="A")
        assert ids(documents) == ["guardian.1", "bbc.2"]
        assert pairs(documents) == [
            [("Q&A <here>", "F&A"), ("Two.", "Zwei A."), ("", "Neu A.")],
            [("Three.", "Drei.")],
        ]
    assert sentences(read("auto", target_lang=None, path=path)[0], "en") == ["Q&A <here>", "Two.", ""]
    one = write("one.xml", WMT.replace('translator="C"', 'translator="C" style="x"').replace('"A"', '"C"', 1))
    fails("one.xml, line 4", "2 <ref> in 'de'", "translators 'C', 'C', asked for is 'C'", path=one, translator="C")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("", "", ["line 4", "'guardian.1'", "2 <ref> in 'de'", "'A', 'C'", "choose one", "translator="]),
        ('translator="C"', 'translator="A"', ["line 4", "2 <ref>", "'A', 'A'", "asked for is 'A'"]),
        ('<ref lang="de" translator="A"><p>', '<ref lang="fr"><p>', ["line 28", "'bbc.2'", "no <ref> in 'de'", "'fr'"]),
        ('<seg id="3">Neu A.</seg>', "", ["line 11", "seg '3'", "without it from", "line 14"]),
        ('<seg id="3"/>', "", ["line 18", "seg '3'", "line 5"]),
        ("Zwei A.", "Zwei & A.", ["line 17, column", "broken XML", "not well-formed"]),
        ("</ref>\n    <ref", "<ref", ["line 20", "<ref> before </ref> of line 14"]),
        ("</p>\n    </src>", "</p></src>\n    lost", ["line 13", "text outside <seg>: 'lost'"]),
        ('id="bbc.2"', 'id="guardian.1"', ["line 29", "'guardian.1' was used before", "line 5"]),
        ('<doc id="bbc.2"', "<doc", ["line 28", "document id is missing"]),
        ("<src lang=\"en\"><p>", "<p>", ["line 29, column", "broken XML"]),
        ('<seg id="3"/>', "</p></src><seg id=\"9\"/><src lang=\"en\"><p>", ["line 4", "<seg> outside <src> and <ref>"]),
    ],
)  # fmt: skip
def test_wmt_bad_input(write, old, new, words):
    pytest.importorskip("defusedxml")
    path = write("set.xml", WMT.replace(old, new, 1))
    fails(*words, path=path, translator="A" if old else None)


def test_xml_that_is_cut_or_dangerous(write):
    pytest.importorskip("defusedxml")
    for end in range(WMT.index("<collection"), len(WMT.rstrip()), 7):
        fails("cut.xml, line", "broken XML", "cut", path=write("cut.xml", WMT[:end]), translator="A")
    fails("u.xml, line 8", "not UTF-8", path=write("u.xml", WMT.encode().replace(b"Two", b"T\xffo")), translator="A")
    kind = '<!DOCTYPE dataset [\n<!ENTITY a "x">\n<!ENTITY b "&a;&a;">\n]>\n<dataset'
    fails("b.xml, line 3", "defines the entity 'a'", path=write("b.xml", WMT.replace("<dataset", kind)), format="wmt")
    outside = write("c.xml", WMT.replace("<dataset", '<!DOCTYPE dataset SYSTEM "file:///dev/null/no.dtd">\n<dataset'))
    assert len(read("auto", path=outside, translator="A")) == 2, "a document type is named and never fetched"
    secret = write("secret.txt", "secret")
    steal = f'<!DOCTYPE dataset [<!ENTITY s SYSTEM "file://{secret}">]>\n<dataset'
    path = write("d.xml", WMT.replace("<dataset", steal, 1).replace("Two.", "&s;"))
    fails("d.xml, line 2", "entity 's'", format="wmt", target_lang=None, path=path)


def test_xml_without_defusedxml_says_how_to_install_it(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "defusedxml.common", None)
    fails(install_command("xml"), path=write("a.xml", WMT))
