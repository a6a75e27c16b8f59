"""Books: chapters in reading order, tables of contents, the language; other members stay."""

import io
import zipfile

import pytest
from support.markup_checks import check_identity, check_shuffled, check_swapped, parsed, translated, upper
from support.office_files import member, zipped

from hf_docmt.files import DataError
from hf_docmt.formats.document_file import DocumentFile, FormatOptions
from hf_docmt.formats.epub import EpubFormat

CONTAINER = '<container><rootfiles><rootfile full-path="EPUB/a%20b.opf"/></rootfiles></container>'.replace("%20", " ")
PACKAGE = """<?xml version="1.0"?>
<package><metadata><dc:language xmlns:dc="d">en-GB</dc:language></metadata><manifest>
<item id="two" href="two.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="text/on%65.xhtml" media-type="application/xhtml+xml"/>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="toc" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<item id="img" href="a.png" media-type="image/png"/>
</manifest><spine toc="toc"><itemref idref="one"/><itemref idref="two"/></spine></package>"""
NCX = '<!DOCTYPE ncx PUBLIC "x" "y"><ncx><navMap><navLabel><text>The door &amp; key</text></navLabel></navMap></ncx>'


def page(text):
    return f'<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en"><body>{text}</body></html>'


def book(**members) -> bytes:
    contents = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "EPUB/a b.opf": PACKAGE,
        "EPUB/two.xhtml": page("<p>It was <b>late</b>.</p>"),
        "EPUB/text/one.xhtml": page("<h1>The door</h1><p>We met Ann.</p>"),
        "EPUB/nav.xhtml": page("<nav><a href='one'>The door</a></nav>"),
        "EPUB/toc.ncx": NCX,
        "EPUB/a.png": "\x89",
    }
    return zipped({name: text for name, text in (contents | members).items() if text is not None})


def test_chapters_in_reading_order():
    segments = parsed(EpubFormat, book())[1]
    assert [(segment.part.rpartition("/")[2], segment.text) for segment in segments] == [
        ("one.xhtml", "The door"),
        ("one.xhtml", "We met Ann."),
        ("two.xhtml", "It was late."),
        ("nav.xhtml", "The door"),
        ("toc.ncx", "The door & key"),
    ]
    file = DocumentFile(book(), "a.epub", EpubFormat(), FormatOptions())
    ids = [row["doc_id"] for _, row in file.rows(["en"])]
    assert ids == [f"a.epub#EPUB/{name}" for name in ("text/one.xhtml", "two.xhtml", "nav.xhtml", "toc.ncx")]


def test_round_trips():
    data = book()
    assert check_identity(EpubFormat, data) == 4
    check_swapped(EpubFormat, data, exact=False)
    check_shuffled(EpubFormat, data)


def test_members_that_change():
    def shout(pieces):
        return ["IT WAS < ", *pieces[1:]] if pieces[0] == "It was " else None

    before, after = (
        zipfile.ZipFile(io.BytesIO(data)) for data in (book(), translated(EpubFormat, book(), shout, target_lang="de"))
    )
    changed = {name for name in before.namelist() if before.read(name) != after.read(name)}
    assert changed == {"EPUB/two.xhtml", "EPUB/a b.opf"} and after.namelist() == before.namelist()
    assert b">de</dc:language>" in after.read("EPUB/a b.opf")
    assert b'xml:lang="de"' in after.read("EPUB/two.xhtml") and b"IT WAS &lt; <b>late</b>" in after.read(
        "EPUB/two.xhtml"
    )
    everything = translated(EpubFormat, book(), upper)
    assert "<text>THE DOOR &amp; KEY</text>" in member(everything, "EPUB/toc.ncx")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"META-INF/container.xml": None}, "it has no META-INF/container.xml: no book"),
        ({"META-INF/container.xml": "<container/>"}, "it names no package"),
        ({"EPUB/a b.opf": "<package>"}, "EPUB/a b.opf: line 1, column .*: broken XML"),
        ({"EPUB/two.xhtml": None}, "it names 'EPUB/two.xhtml', which is not in it"),
        ({"EPUB/toc.ncx": "<ncx>"}, "EPUB/toc.ncx: line 1, column .*: broken XML"),
    ],
)
def test_broken_books(members, message):
    with pytest.raises(DataError, match=message):
        parsed(EpubFormat, book(**members))
