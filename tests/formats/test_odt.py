"""OpenDocument: what is text, what stays, and that files come back as they were."""

from random import Random

import pytest
from support.errors import refused
from support.generated_xml import COMMENT, DELETED, FRAME, NOTE, RUBY, odt_content, odt_file
from support.markup_checks import (
    check_identity,
    check_shuffled,
    check_swapped,
    parsed,
    translated,
    translated_file,
    upper,
)
from support.office_files import member

from hf_docmt.formats.odt import OdtFormat


def cell(attributes, text):
    return f"<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>"


def span(number, text):
    return f'<text:span text:style-name="T{number}">{text}</text:span>'


@pytest.mark.parametrize(
    ("body", "expected", "written"),
    [
        ("<text:h>One &lt;</text:h>", ["One <"], "<text:h>ONE &lt;</text:h>"),
        ("<text:p>12 - 3</text:p>", [], "<text:p>12 - 3</text:p>"),
        (f"<text:p>One {span(1, 'two')}</text:p>", ["One two"], "<text:p>ONE TWO</text:p>"),
        (f"<text:p>One {span(2, 'two')}</text:p>", ["One two"], f"<text:p>ONE {span(2, 'TWO')}</text:p>"),
        (
            "<text:p>A<text:s/><text:s/>b<text:tab/>c<text:line-break/>d</text:p>",
            ["A  b\tcd"],
            "<text:p>A<text:s/><text:s/>B<text:tab/>C<text:line-break/>D</text:p>",
        ),
        (
            '<text:p><text:a x="y">A link</text:a></text:p>',
            ["A link"],
            '<text:p><text:a x="y">A LINK</text:a></text:p>',
        ),
        (
            "<text:p>Page <text:page-number>x</text:page-number></text:p>",
            ["Page x"],
            "<text:p>PAGE <text:page-number>x</text:page-number></text:p>",
        ),
        (f"<text:p>One{NOTE}</text:p>", ["One", "Below"], f"<text:p>ONE{NOTE.replace('Below', 'BELOW')}</text:p>"),
        (
            f"<text:p>One{FRAME}</text:p>",
            ["One", "In a box", "A key"],
            f"<text:p>ONE{FRAME.replace('In a box', 'IN A BOX').replace('A key', 'A KEY')}</text:p>",
        ),
        (
            f"{DELETED}<text:p>New{COMMENT} text</text:p>",
            ["New text"],
            f"{DELETED}<text:p>NEW{COMMENT} TEXT</text:p>",
        ),
        (cell('office:value-type="string"', "Cell"), ["Cell"], cell('office:value-type="string"', "CELL")),
        (cell('office:string-value="a" x="1"', "Cell"), ["Cell"], cell('x="1"', "CELL")),
        (cell('office:string-value="12"', "12"), [], cell('office:string-value="12"', "12")),
        (cell('office:value-type="date"', "May"), [], cell('office:value-type="date"', "May")),
        (cell('table:formula="of:=A1"', "May"), [], cell('table:formula="of:=A1"', "May")),
        (
            f"<text:p>A {RUBY}</text:p>",
            ["A b"],
            f"<text:p>A {RUBY}</text:p>",
        ),
    ],
)
def test_what_is_translated(body, expected, written):
    data = odt_content(body)
    assert [segment.text for segment in parsed(OdtFormat, data)[1]] == [*expected, "At the top"]
    new = translated(OdtFormat, data, upper)
    assert f"<office:body>{written}</office:body>" in member(new, "content.xml")
    assert "AT THE TOP" in member(new, "styles.xml")


def test_tabs_are_columns():
    new, sentences, _ = translated_file(
        OdtFormat, odt_content("<text:p>Name:<text:tab/>Ann <text:tab/>Room 5</text:p>")
    )
    assert sentences == ["Name:", "Ann", "Room 5", "At the top"]
    assert "<text:p>NAME:<text:tab/>ANN <text:tab/>ROOM 5</text:p>" in member(new, "content.xml")


@pytest.mark.parametrize(
    ("formula", "left"),
    [
        ('table:formula="of:=VLOOKUP(&quot;the lamp&quot;;[.A1:.B2];2)"', ["Lamp", "Two lamps"]),
        ('table:formula="of:=COUNTIF([.A1:.A3];&quot;=*lamp&quot;)"', ["Two lamps"]),
        ('calcext:value="[.A1]=&quot;Lamp&quot;"', ["The lamp", "Two lamps"]),
        ('table:condition="cell-content-is-in-list(&quot;Lamp&quot;;&quot;Two lamps&quot;)"', ["The lamp"]),
        ('table:formula="of:=&quot;*&quot;&amp;[.A1]"', ["Lamp", "The lamp", "Two lamps"]),
    ],
)
def test_texts_that_formulas_look_up_stay(formula, left):
    cells = "".join(cell("", text) for text in ("Lamp", "The lamp", "Two lamps", "")) + f"<x {formula}/>"
    reader, segments = parsed(OdtFormat, odt_content(f"<office:spreadsheet>{cells}</office:spreadsheet>"))
    assert [segment.text for segment in segments] == [*left, "At the top"]
    assert reader.remarks["looked-up text", "left alone"] == 3 - len(left)


@pytest.mark.parametrize(
    ("language", "written"),
    [
        ("de", 'fo:language="de" fo:country="none" style:language-asian="zh" style:country-asian="CN"'),
        ("jpn_Jpan", 'fo:language="en" fo:country="US" style:language-asian="ja" style:country-asian="none"'),
    ],
)
def test_language_of_the_default_style(language, written):
    styles = member(
        translated(OdtFormat, odt_content("<text:p>One</text:p>"), upper, target_lang=language), "styles.xml"
    )
    assert written in styles
    assert 'fo:language="fr" fo:country="FR"' in styles


def test_slides_and_sheets_are_parts():
    slides = f"<draw:page>{FRAME}<presentation:notes><text:p>Note</text:p></presentation:notes></draw:page>" * 2
    sheet = "<table:table><table:table-row>" + cell("", "Cell") + "</table:table-row></table:table>"
    parts = [
        (segment.part, segment.text)
        for body in (slides, f"<office:spreadsheet>{sheet}</office:spreadsheet>")
        for segment in parsed(OdtFormat, odt_content(body))[1]
    ]
    slide = ["In a box", "A key", "Note"]
    assert parts == [
        *(("slide1", text) for text in slide),
        *(("slide2", text) for text in slide),
        ("styles", "At the top"),
        ("sheet1", "Cell"),
        ("styles", "At the top"),
    ]


@pytest.mark.parametrize("seed", range(100))
def test_round_trips(seed):
    data = odt_file(Random(seed))
    check_identity(OdtFormat, data)
    check_swapped(OdtFormat, data, exact=False)
    check_shuffled(OdtFormat, data, seed)


def test_broken_files_are_refused():
    refused("content.xml: line 1.*broken XML", parsed, OdtFormat, odt_content("<text:p>"))
    encrypted = odt_content("", **{"META-INF/manifest.xml": "<manifest:encryption-data/>"})
    refused("it is encrypted; save it without a password", parsed, OdtFormat, encrypted)
