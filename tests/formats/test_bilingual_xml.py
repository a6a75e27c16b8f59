"""XLIFF and translation memories: targets made and replaced, inline markup, states, languages."""

import re
from random import Random

import pytest
from support.markup_checks import check_identity, parsed, shuffled, swapped, translated

from hf_docmt.files import DataError
from hf_docmt.formats.document_format import Tag
from hf_docmt.formats.tmx import TmxFormat
from hf_docmt.formats.xliff import XliffFormat

XLIFF_1 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
 <file source-language="en-US" original="a" datatype="plaintext">
  <body><!-- a comment -->
   <trans-unit id='1'>
    <source>Open <g id="1">the <x id="2"/> door</g> &amp; <bpt id="3">&lt;b></bpt>wait<ept id="3">&lt;/b></ept></source>
   </trans-unit>
   <trans-unit id="2" approved="yes"><source>Key</source><target state="final">Schlüssel</target></trans-unit>
   <group translate="no"><trans-unit id="3"><source>Brand</source></trans-unit>
    <trans-unit id="4" translate="yes"><source>Two<x id="1" ctype="lb"/>lines</source><target/></trans-unit></group>
   <trans-unit id="5"><source>One. Two.</source>
    <seg-source><mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk></seg-source>
    <alt-trans><source>Not</source><target>this</target></alt-trans></trans-unit>
   <trans-unit id="6"><source>&lt;b>Run&lt;/b> %s <mrk mtype="protected">Mr X</mrk></source></trans-unit>
   <trans-unit id="7"><source>%s: 12</source></trans-unit>
  </body>
 </file>
</xliff>
"""
XLIFF_2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="fr">
 <file id="f1"><group id="g"><unit id="1"><originalData><data id="d1">Not this</data></originalData>
  <segment id="s1" state="initial">
   <source>Say <pc id="1">hello <ph id="2" equiv="%s"/></pc> <sc id="3"/>now<ec startRef="3"/></source>
  </segment>
  <ignorable><source> </source></ignorable>
  <segment state="final"><source>Bye</source><target>Tschüs</target></segment></unit></group>
  <unit id="2" translate="no"><segment><source>Brand</source></segment></unit>
 </file>
</xliff>
"""
TMX = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en-US" adminlang="en" segtype="sentence" datatype="x" o-tmf="x" creationtool="x"
  creationtoolversion="1"/><body>
  <tu><tuv xml:lang="fr"><seg>Clé</seg></tuv>
   <tuv xml:lang="EN-US"><seg>A <bpt i="1" x="1">{\\b </bpt>key<ept i="1">}</ept> <hi>here</hi></seg></tuv></tu>
  <tu><tuv xml:lang="en"><seg>Door</seg></tuv><tuv xml:lang="de-DE"><seg>Tür</seg></tuv></tu>
</body></tmx>
"""


def new(format, text, translate=swapped, **options):
    return translated(format, text.encode(), translate, **{"target_lang": "de", "all": True, **options}).decode()


def test_xliff_1():
    segments = parsed(XliffFormat, XLIFF_1.encode())[1]
    kinds = [piece.kind if isinstance(piece, Tag) else piece for piece in segments[0].pieces]
    assert kinds == ["Open ", "open", "the ", "alone", " door", "close", " & ", "open", "wait", "close"]
    assert [segment.text for segment in segments[1:]] == ["Key", "Twolines", "One.", "Two.", "Run %s Mr X"]
    assert [segment.has_translation for segment in segments] == [False, True, False, False, False, False]
    assert (
        not segments[0].pieces[3].breaks
        and segments[2].pieces[1].breaks
        and segments[0].location == "line 5"
        and segments[0].part == "file-1"
    )
    text = new(XliffFormat, XLIFF_1)
    state = 'state="needs-review-translation" state-qualifier="mt-suggestion"'
    assert '<file source-language="en-US" original="a" datatype="plaintext" target-language="de">' in text
    first = re.search(r"\n    <target .*\n", text)[0]
    assert first == (
        f'\n    <target {state}>oPEN <g id="1">THE <x id="2"/> DOOR</g> &amp; <bpt id="3">&lt;b></bpt>WAIT'
        '<ept id="3">&lt;/b></ept></target>\n'
    )
    assert f'approved="no"><source>Key</source><target {state}>kEY</target>' in text
    assert (
        f'<source>Two<x id="1" ctype="lb"/>lines</source><target {state}>tWO<x id="1" ctype="lb"/>LINES</target>'
        in text
    )
    assert f'<target {state}><mrk mtype="seg" mid="1">oNE.</mrk> <mrk mtype="seg" mid="2">tWO.</mrk></target>' in text
    assert '>&lt;b&gt;rUN&lt;/b&gt; %S <mrk mtype="protected">Mr X</mrk></target>' in text
    assert new(XliffFormat, XLIFF_1.replace(' version="1.2"', "")) == text.replace(' version="1.2"', "")
    assert text.count("<target") == 6 and "<source>Not</source><target>this</target>" in text


def test_xliff_2():
    segments = parsed(XliffFormat, XLIFF_2.encode())[1]
    kinds = [piece.kind if isinstance(piece, Tag) else piece for piece in segments[0].pieces]
    assert kinds == ["Say ", "open", "hello ", "alone", "close", " ", "open", "now", "close"]
    assert segments[0].text == "Say hello %s now" and [each.has_translation for each in segments] == [False, True]
    text = new(XliffFormat, XLIFF_2)
    assert 'srcLang="en" trgLang="de">' in text and text.count('state="translated"') == 2 and "initial" not in text
    assert (
        '\n   <target>sAY <pc id="1">HELLO <ph id="2" equiv="%s"/></pc> <sc id="3"/>NOW<ec startRef="3"/></target>'
        in text
    )
    assert '<segment state="translated"><source>Bye</source><target>bYE</target></segment>' in text
    with pytest.raises(DataError, match="its translations are in 'fr', and those into 'de' would be added to them"):
        new(XliffFormat, XLIFF_2, all=False)


@pytest.mark.parametrize(
    ("source", "pieces"),
    [
        (
            '<x id="START_LINK" equiv-text="&lt;a (c)=&quot;() => f()&quot;>"/>a<x id="CLOSE_LINK"/>',
            ["open", "a", "close"],
        ),
        ('<x id="START_LINK_1"/>a<x id="CLOSE_LINK"/>', ["open", "a", "close"]),
        ('<x id="0" equiv-text="&lt;b>"/>a<x id="1" equiv-text="&lt;/b>"/>', ["open", "a", "close"]),
        ('<ph id="1">&lt;i></ph>a<ph id="2">&lt;/i></ph>', ["open", "a", "close"]),
        ('a<x id="TAG_IMG" equiv-text="&lt;img/>"/>', ["a", "alone"]),
        ('a <x id="START_TAG_P" equiv-text="&lt;p>"/>', ["a ", "alone"]),
        ('a <x id="ICU" equiv-text="{n, plural, other {b}}"/>', ["a ", "{n, plural, other {b}}"]),
        ('a <x id="START_TAG_V"/><x id="CLOSE_TAG_V"/>', ["a ", '<x id="START_TAG_V"/><x id="CLOSE_TAG_V"/>']),
        ("{n, plural, other {<x id='INTERPOLATION'/> b}}", None),
    ],
)
def test_placeholders_of_programs(source, pieces):
    """Markup that describes one is not read; what looks like an ICU message in a description is none."""
    unit = f'<body><trans-unit id="1"><source>{source}</source></trans-unit></body>'
    format, segments = parsed(XliffFormat, f'<xliff version="1.2"><file>{unit}</file></xliff>'.encode())
    shown = [[each.text or each.kind if isinstance(each, Tag) else each for each in own.pieces] for own in segments]
    assert shown == [pieces] * bool(pieces) and bool(format.remarks) == (pieces is None)


def test_crossing_markup_becomes_stand_alone():
    source = '<source>a <bx id="1"/>b<g id="2"> c <ex id="1"/>d</g></source>'
    text = re.sub("<source>Open.*</source>", source, XLIFF_1)
    kinds = [piece.kind for piece in parsed(XliffFormat, text.encode())[1][0].pieces if isinstance(piece, Tag)]
    assert kinds == ["alone", "open", "alone", "close"]


@pytest.mark.parametrize("lock", ['m:locked="true"', 'mq:locked="locked"'])
def test_locked_units_stay(lock):
    text = XLIFF_1.replace("<trans-unit id='1'", f"<trans-unit id='1' {lock}")
    assert [segment.text for segment in parsed(XliffFormat, text.encode())[1]][:1] == ["Key"]
    text = text.replace(lock, lock.partition("=")[0] + '="false"')
    assert len(parsed(XliffFormat, text.encode())[1]) == 6


@pytest.mark.parametrize(("locked", "written"), [((1,), ("Eins.", "tWO.")), ((1, 2), ("Eins.", "Zwei."))])
def test_locked_segments_stay(locked, written):
    target = '<target{}><mrk mtype="seg" mid="1">{}</mrk> <mrk mtype="seg" mid="2">{}</mrk></target>'
    locks = "".join(f'<sdl:seg id="{number}" locked="true"/>' for number in locked)
    text = XLIFF_1.replace(
        "    <alt-trans>", f"{target.format('', 'Eins.', 'Zwei.')}<sdl:seg-defs>{locks}</sdl:seg-defs>"
    )
    text = text.replace("</alt-trans>", "").replace("<source>Not</source><target>this</target>", "")
    state = "" if len(locked) == 2 else ' state="needs-review-translation" state-qualifier="mt-suggestion"'
    assert target.format(state, *written) in new(XliffFormat, text)


def test_segments_that_are_translated_stay():
    target = '<target><mrk mtype="seg" mid="1">Eins.</mrk> <mrk mtype="seg" mid="2">{}</mrk></target>'
    text = XLIFF_1.replace("    <alt-trans>", f"{target.format('')}<alt-trans>")
    flags = [segment.has_translation for segment in parsed(XliffFormat, text.encode())[1]]
    assert flags == [False, True, False, True, False, False]
    changes = iter(flags)
    text = new(XliffFormat, text, lambda pieces: None if next(changes) else swapped(pieces), all=False)
    state = ' state="needs-review-translation" state-qualifier="mt-suggestion"'
    assert target.format("tWO.").replace("<target", f"<target{state}") in text


def test_memories():
    segments = parsed(TmxFormat, TMX.encode(), target_lang="de")[1]
    assert [segment.text for segment in segments] == ["A key here", "Door"]
    assert [segment.has_translation for segment in segments] == [False, True]
    text = new(TmxFormat, TMX)
    seg = '<seg>a <bpt i="1" x="1">{\\b </bpt>KEY<ept i="1">}</ept> <hi>HERE</hi></seg>'
    assert f'\n   <tuv xml:lang="de">{seg}</tuv></tu>' in text
    assert '<tuv xml:lang="de-DE"><seg>dOOR</seg></tuv></tu>' in text and "Clé" in text
    assert new(TmxFormat, text) == text
    with pytest.raises(DataError, match="no text in 'nl'; the languages are EN-US, de-DE, en, fr"):
        new(TmxFormat, TMX, source_lang="nl")
    with pytest.raises(DataError, match="pass --target-lang"):
        new(TmxFormat, TMX, target_lang=None)


@pytest.mark.parametrize(("format", "text"), [(XliffFormat, XLIFF_1), (XliffFormat, XLIFF_2), (TmxFormat, TMX)])
def test_what_is_not_translated_stays(format, text):
    assert check_identity(format, text.replace("\n", "\r\n").encode()) > 3
    wide = "\ufeff" + text.replace("UTF-8", "UTF-16").replace('"1.0"?', '"1.0" encoding="UTF-16"?')
    assert check_identity(format, wide.encode("utf-16-le")) > 3
    assert b"\0" in translated(format, wide.encode("utf-16-le"), swapped, target_lang="de", all=True)
    moved = new(format, text, lambda pieces: shuffled(pieces, Random(1)))
    sources = [
        [segment.pieces for segment in parsed(format, each.encode(), target_lang="de", all=True)[1]]
        for each in (text, moved)
    ]
    assert sources[0] == sources[1]


@pytest.mark.parametrize(
    ("format", "text", "words"),
    [
        (XliffFormat, XLIFF_1[:500], "broken XML"),
        (XliffFormat, "", "broken XML"),
        (XliffFormat, "<xliff version='3.0'/>", "expected XLIFF of version 1.x or 2.x, got <xliff version='3.0'>"),
        (XliffFormat, XLIFF_1.replace("en-US", "fr"), "source-language is 'fr', expected 'en'"),
        (XliffFormat, '<!DOCTYPE x [<!ENTITY a "b">]>' + XLIFF_2, "declares an entity"),
        (TmxFormat, XLIFF_2, "expected TMX, got <xliff>"),
        (TmxFormat, TMX.replace('"1.0"', '"1.0" encoding="martian"'), "it is not martian"),
    ],
)
def test_broken(format, text, words):
    with pytest.raises(DataError, match=re.escape(words)):
        parsed(format, text.encode())
