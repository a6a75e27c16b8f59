"""Translation memories and catalogs as corpora: TMX, XLIFF, PO, with what programs write."""

from pathlib import Path

import pytest
from support.errors import refused

from hf_docmt.data.readers import read_documents

TMX = """<?xml version="1.0"{}?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="*all*"/><body>
<tu><note>x</note><prop type="a">b</prop>
 <tuv xml:lang="EN-US"><seg>Open <bpt i="1">&lt;b&gt;</bpt>the   <hi>window</hi><ept i="1">&lt;/b&gt;</ept>
 &amp; go<ph x="1">{{n}}</ph>.</seg></tuv>
 <tuv xml:lang="fr"><seg>Non.</seg></tuv>
 <tuv lang="de_AT"><seg>Fenster (AT)</seg></tuv>
 <tuv lang="de-DE"><seg>Öffne das <![CDATA[Fenster <x>]]>.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Only English</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Empty</seg></tuv><tuv xml:lang="de"><seg> </seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>The lamp</seg></tuv><tuv xml:lang="de"><seg>Die Lampe</seg></tuv></tu>
</body></tmx>"""
XLIFF1 = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en-US"
 target-language="de" original="a"><body><group><trans-unit id="1"><source>One. Two.</source><seg-source><mrk
 mtype="seg"
 mid="1">One.</mrk> <mrk mtype="seg" mid="2">T<g id="1">w</g>o<x id="2"/>.</mrk></seg-source><target><mrk mtype="seg"
 mid="1">Eins.</mrk> <mrk mtype="seg" mid="2">Zwei.</mrk></target><alt-trans><target>Falsch</target></alt-trans>
 </trans-unit></group><trans-unit id="2"><source>New</source><target state="new">New</target></trans-unit>
 <trans-unit id="3"><source>Three<x id="1" ctype="lb"/>lines</source><target>Drei<x id="1" ctype="lb"/>Zeilen</target>
 </trans-unit><trans-unit id="4"><source>None</source></trans-unit></body></file>
 <file source-language="en" target-language="fr"><body><trans-unit id="1"><source>No</source><target>Non</target>
 </trans-unit></body></file></xliff>"""
XLIFF2 = """<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de"><file id="f">
 <unit id="1"><segment><source>A <pc id="1">lamp</pc><ph id="2"/></source><target>Eine <pc id="1">Lampe</pc></target>
 </segment><segment state="initial"><source>Two</source><target>Two</target></segment></unit></file></xliff>"""
PO = Path(__file__).with_name("memory.po").read_text("utf-8")
CASES = {
    "a.tmx": (TMX.format(""), [[("Open the window & go.", "Öffne das Fenster <x>."), ("The lamp", "Die Lampe")]]),
    "b.xlf": (XLIFF1, [[("One.", "Eins."), ("Two.", "Zwei."), ("Three lines", "Drei Zeilen")]]),
    "c.xlf": (XLIFF2, [[("A lamp", "Eine Lampe")]]),
    "d.po": (PO, [[('Open the "file"', "Datei öffnen"), ("%d file", "%d Datei"), ("%d files", "%d Dateien")]]),
}


def pairs(path, target_lang="de_DE", source_lang="en"):
    documents = read_documents(path=path, source_lang=source_lang, target_lang=target_lang)
    return [[(pair[source_lang], pair[target_lang]) for pair in document] for document in documents["translation"]]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_pairs(tmp_path, name, encoding):
    text, expected = CASES[name]
    (tmp_path / name).write_text(text, encoding=encoding)
    assert pairs(tmp_path / name) == expected
    sources = read_documents(path=tmp_path / name, source_lang="en")["translation"][0]
    assert len(sources) > len(expected[0]) and set(sources[0]) == {"en"}


def test_encodings_of_files(tmp_path):
    (tmp_path / "a.tmx").write_bytes(TMX.format(' encoding="UTF-16"').encode("utf-16"))
    assert pairs(tmp_path / "a.tmx") == CASES["a.tmx"][1]
    (tmp_path / "d.po").write_bytes(PO.replace("UTF-8", "ISO-8859-1").encode("latin-1"))
    assert pairs(tmp_path / "d.po") == CASES["d.po"][1]


def test_variants_of_a_language(tmp_path):
    """A unit with one of two variants has no pair; no-break spaces stay, and character references are read."""
    tuv = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'
    units = [tuv.format("EN-gb", "lift&#xA0;!") + tuv.format("en-us", "elevator\t\n !"), tuv.format("en-us", "truck")]
    (tmp_path / "a.tmx").write_text(
        "<tmx version='1.4'><body>" + "".join(f"<tu>{unit}</tu>" for unit in units) + "</body></tmx>"
    )
    assert pairs(tmp_path / "a.tmx", "en-GB", "en-US") == [[("elevator !", "lift\xa0!")]]
    refused("no unit has texts in en and fr", pairs, tmp_path / "a.tmx", "fr")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tmx", TMX.format("").replace("</tu>", "", 1), r"a.tmx, line \d+, column \d+: broken XML"),
        ("a.tmx", TMX.format("").replace('"tmx14.dtd"', '"x" [<!ENTITY a "b">]'), "entity of its own"),
        ("a.tmx", TMX.format("").replace("de", "nl"), "no unit has texts in en and de_DE; its languages are .*fr"),
        ("b.xlf", XLIFF1.replace('"de"', '"nl"'), "no unit has texts in en and de_DE; its languages are en"),
        ("d.po", PO.replace("Language: de", "Language: nl"), "no unit has texts in en and de_DE; its languages are nl"),
        ("d.po", PO.replace("UTF-8", "nothing"), "not nothing"),
        ("d.po", PO + "what", "d.po, line 26: expected a comment"),
    ],
)
def test_refusals(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    refused(message, pairs, tmp_path / name)
