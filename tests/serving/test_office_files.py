"""Office documents through the server: their markup stays, and what comes back is read."""

import io
import zipfile
from urllib.parse import urlsplit

import docx
import pytest
from docx.shared import Pt
from support.markup_checks import tags

from hf_docmt.formats import document_formats
from hf_docmt.formats.document_file import FormatOptions

NAMES = 'xmlns:{0}="urn:{0}" xmlns:{1}="urn:{1}" xmlns:{2}="urn:{2}"'
RELATIONS = '<Relationships><Relationship Id="x" Type="http://x/slide" Target="slides/slide1.xml"/></Relationships>'
SLIDE = "<a:p><a:r><a:t>w7 </a:t></a:r><a:r><a:rPr b='1'/><a:t>w8</a:t></a:r></a:p>"


def word() -> bytes:
    document = docx.Document()
    document.add_heading("w7")
    paragraph = document.add_paragraph("w7 w8 ")
    paragraph.add_run("w9").bold = True
    document.add_table(1, 1).cell(0, 0).text = "w3"
    paragraph.paragraph_format.space_after = Pt(30)
    document.save(buffer := io.BytesIO())
    return buffer.getvalue()


def workbook() -> bytes:
    names = NAMES.format("a", "p", "r")
    cells = '<c r="A1" t="inlineStr"><is><t>w7 w8</t></is></c><c r="B1"><f>A1</f><v>12</v></c>'
    return archive(
        **{
            "xl/workbook.xml": f'<workbook {names}><sheets><sheet name="One" r:id="x"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": RELATIONS.replace("x/slide", "x/worksheet"),
            "xl/slides/slide1.xml": f"<worksheet>{cells}</worksheet>",
        }
    )


def archive(**members: str) -> bytes:
    with zipfile.ZipFile(buffer := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return buffer.getvalue()


def presentation() -> bytes:
    names = NAMES.format("a", "p", "r")
    return archive(
        **{
            "ppt/presentation.xml": f'<p:presentation {names}><p:sldId r:id="x"/></p:presentation>',
            "ppt/_rels/presentation.xml.rels": RELATIONS,
            "ppt/slides/slide1.xml": f"<p:sld {names}>{SLIDE}</p:sld>",
        }
    )


def open_document() -> bytes:
    names = NAMES.format("office", "text", "style")
    text = f"<office:document-content {names}><text:p>w7 <text:a>w8</text:a></text:p></office:document-content>"
    return archive(**{"content.xml": text, "meta.xml": "<x/>"})


def book() -> bytes:
    item = '<item id="x" href="x.xhtml" media-type="application/xhtml+xml"/>'
    return archive(
        **{
            "META-INF/container.xml": '<container><rootfile full-path="a.opf"/></container>',
            "a.opf": f'<package><language>en</language>{item}<spine><itemref idref="x"/></spine></package>',
            "x.xhtml": '<html lang="en"><p>w7 <b>w8</b>.</p><p>w9</p></html>',
        }
    )


FILES = {"docx": word, "xlsx": workbook, "pptx": presentation, "odt": open_document, "epub": book}


def fetched(client, name: str, data: bytes) -> bytes:
    status, answer = client.upload(name, data)
    assert status == 200, answer
    status, written, headers = client.call("GET", urlsplit(answer["translatedFileUrl"]).path)
    assert status == 200 and name.partition(".")[2] in headers["content-disposition"]
    return written


@pytest.mark.parametrize("name", FILES)
def test_office_files(client, name):
    """As many segments as there were, other ones, with their tags; and all members of the archive."""
    data, options = FILES[name](), FormatOptions("en", "de")
    format = document_formats()[name]
    reader = format()
    segments = reader.parse(data, options)
    new = format().parse(written := fetched(client, f"a.{name}", data), options)
    changed = [after for before, after in zip(segments, new) if after.pieces != before.pieces]
    assert changed and written != data
    assert len(new) == len(segments)
    if name in ("odt", "epub"):  # elsewhere looks that most of a paragraph has are no tags
        assert [sum(tags(each.pieces).values()) for each in new] == [
            sum(tags(each.pieces).values()) for each in segments
        ]
    members = [set(zipfile.ZipFile(io.BytesIO(each)).namelist()) for each in (data, written)]
    assert members[0] == members[1]


def test_what_is_around_the_text_stays(client):
    paragraphs = docx.Document(io.BytesIO(fetched(client, "a.docx", word()))).paragraphs
    assert paragraphs[0].style.name == "Heading 1" and paragraphs[1].paragraph_format.space_after == Pt(30)
    assert any(run.bold for run in paragraphs[1].runs)
    sheet = zipfile.ZipFile(io.BytesIO(fetched(client, "a.xlsx", workbook()))).read("xl/slides/slide1.xml")
    assert sheet.endswith(b'<c r="B1"><f>A1</f><v>12</v></c></worksheet>')


@pytest.mark.parametrize("name", FILES)
def test_broken_office_files_are_refused(client, name):
    for data in (b"PK\x03\x04 and no more", FILES[name]()[:-40], archive(x="y")):
        status, answer = client.upload(f"a.{name}", data)
        assert status == 400 and len(answer["error"]) > 10, answer
    assert client.upload("a.txt", b"w7")[0] == 200
