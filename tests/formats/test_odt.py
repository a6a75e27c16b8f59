"""OpenDocument: what is text, what stays, and that files come back as they were."""

import io
import random
import zipfile

import pytest
from support.markup_checks import check_identity, check_shuffled, check_swapped, parsed, translated

from hf_docmt.files import DataError
from hf_docmt.formats.odt import OdtFormat
from hf_docmt.formats.zip_archive import ZipArchive

PREFIXES = "office text draw svg table style fo officeooo presentation".split()
SPACES = " ".join(f'xmlns:{prefix}="urn:{prefix}"' for prefix in PREFIXES)
LOOKS = (
    '<style:style style:name="T1" style:family="text"><style:text-properties officeooo:rsid="1"/></style:style>'
    '<style:style style:name="T2" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>'
)
STYLES = (
    f'<office:document-styles {SPACES}><style:default-style style:family="paragraph"><style:text-properties '
    'fo:language="en" fo:country="US" style:language-asian="zh" style:country-asian="CN"/></style:default-style>'
    '<style:style style:name="Foreign"><style:text-properties fo:language="fr" fo:country="FR"/></style:style>'
    "<style:header><text:p>At the top</text:p></style:header></office:document-styles>"
)
BODY = "<text:note-body><text:p>Below</text:p></text:note-body>"
NOTE = f"<text:note><text:note-citation>1</text:note-citation>{BODY}</text:note>"
RUBY = "<text:ruby><text:ruby-base>b</text:ruby-base><text:ruby-text>c</text:ruby-text></text:ruby>"
FRAME = "<draw:frame><draw:text-box><text:p>In a box</text:p></draw:text-box><svg:desc>A key</svg:desc></draw:frame>"
COMMENT = "<office:annotation><text:p>Remark</text:p></office:annotation>"
DELETED = "<text:tracked-changes><text:deletion><text:p>Old</text:p></text:deletion></text:tracked-changes>"


def file(body, styles=STYLES, **members):
    content = f"<office:document-content {SPACES}>{LOOKS}<office:body>{body}</office:body></office:document-content>"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text", zipfile.ZIP_STORED)
        for name, text in {"content.xml": content, "styles.xml": styles, **members}.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def upper(pieces):
    return [piece.upper() if isinstance(piece, str) else piece for piece in pieces]


def member(data, name="content.xml"):
    return ZipArchive(data).read(name).decode()


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
    data = file(body)
    assert [segment.text for segment in parsed(OdtFormat, data)[1]] == [*expected, "At the top"]
    new = translated(OdtFormat, data, upper)
    assert f"<office:body>{written}</office:body>" in member(new)
    assert "AT THE TOP" in member(new, "styles.xml")


@pytest.mark.parametrize(
    ("language", "written"),
    [
        ("de", 'fo:language="de" fo:country="none" style:language-asian="zh" style:country-asian="CN"'),
        ("jpn_Jpan", 'fo:language="en" fo:country="US" style:language-asian="ja" style:country-asian="none"'),
    ],
)
def test_language_of_the_default_style(language, written):
    styles = member(translated(OdtFormat, file("<text:p>One</text:p>"), upper, target_lang=language), "styles.xml")
    assert written in styles
    assert 'fo:language="fr" fo:country="FR"' in styles


def test_slides_and_sheets_are_parts():
    slides = f"<draw:page>{FRAME}<presentation:notes><text:p>Note</text:p></presentation:notes></draw:page>" * 2
    sheet = "<table:table><table:table-row>" + cell("", "Cell") + "</table:table-row></table:table>"
    parts = [
        (segment.part, segment.text)
        for body in (slides, f"<office:spreadsheet>{sheet}</office:spreadsheet>")
        for segment in parsed(OdtFormat, file(body))[1]
    ]
    slide = ["In a box", "A key", "Note"]
    assert parts == [
        *(("slide1", text) for text in slide),
        *(("slide2", text) for text in slide),
        ("styles", "At the top"),
        ("sheet1", "Cell"),
        ("styles", "At the top"),
    ]


def random_body(random):
    def inline(depth=0):
        texts = ["one ", "&lt;Two&gt;", " thrée", "f&amp;r", "5", "<text:s/>", "<text:line-break/>", "<text:bookmark/>"]
        if depth == 0:
            texts += [NOTE, FRAME, COMMENT]
        if depth < 3:
            texts += [span(random.randint(1, 2), inline(depth + 1)), f"<text:a>{inline(depth + 1)}</text:a>"]
        return "".join(random.choices(texts, k=random.randint(1, 4)))

    return "".join(f"<text:p>{inline()}</text:p>" for _ in range(random.randint(1, 5)))


@pytest.mark.parametrize("seed", range(100))
def test_round_trips(seed):
    data = file(random_body(random.Random(seed)))
    check_identity(OdtFormat, data)
    check_swapped(OdtFormat, data, exact=False)
    check_shuffled(OdtFormat, data, seed)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a zip"),
        (file("<text:p>"), "content.xml: line 1.*broken XML"),
        (file("<text:p>One</text:p>")[:-60], "not a zip"),
        (file("", **{"META-INF/manifest.xml": "<manifest:encryption-data/>"}), "encrypted"),
        (file(f"<text:p>{'a' * 3_000_000}</text:p>"), "zip bomb"),
    ],
)
def test_broken_files_are_refused(data, message):
    with pytest.raises(DataError, match=message):
        parsed(OdtFormat, data)
