"""Documents translated into languages that are written from right to left."""

import io
import re
from xml.etree import ElementTree

import docx
import pytest
from docx.enum.section import WD_SECTION
from support import office_files
from support.markup_checks import parsed, translated
from support.office_files import SLIDES, book, open_document, presentation, spaces, workbook

from hf_docmt.data.language_codes import is_right_to_left
from hf_docmt.formats.docx import DocxFormat, bidi_paragraph, rtl_run
from hf_docmt.formats.epub import EpubFormat
from hf_docmt.formats.html import HtmlFormat
from hf_docmt.formats.odt import OdtFormat
from hf_docmt.formats.pptx import PptxFormat
from hf_docmt.formats.xlsx import XlsxFormat


def hebrew(pieces):
    return [re.sub(r"\w+", "שלום", piece) if isinstance(piece, str) else piece for piece in pieces]


def written(format, data, language="he"):
    new = translated(format, data, hebrew, target_lang=language)
    assert len(parsed(format, new)[1]) == len(parsed(format, data)[1])
    return new


def member(data, name):
    content = office_files.member(data, name)
    ElementTree.fromstring(content)
    return content


def word_document() -> bytes:
    document = docx.Document()
    document.add_heading("A title")
    paragraph = document.add_paragraph("Some ")
    paragraph.add_run("bold").bold = True
    document.add_paragraph("12")
    document.add_table(1, 1).cell(0, 0).text = "A cell"
    document.add_section(WD_SECTION.NEW_PAGE)
    document.save(buffer := io.BytesIO())
    return buffer.getvalue()


def test_word():
    new = written(DocxFormat, word_document())
    read = docx.Document(io.BytesIO(new))
    paragraphs = [*read.paragraphs, *read.tables[0].cell(0, 0).paragraphs]
    bidi = [paragraph.text for paragraph in paragraphs if paragraph._p.xpath("w:pPr/w:bidi")]
    assert bidi == ["שלום שלום"] * 3
    assert all(run.font.rtl for paragraph in paragraphs for run in paragraph.runs if "ש" in run.text)
    (bold,) = [run for run in read.paragraphs[1].runs if run.bold]
    assert [child.tag.rpartition("}")[2] for child in bold._r.rPr] == ["b", "bCs", "rtl"]
    body = read.element.body
    assert len(body.xpath("//w:tblPr/w:bidiVisual")) == 1 and len(body.xpath("//w:sectPr/w:bidi")) == 2
    assert 'w:bidi="he"' in member(new, "word/styles.xml")
    again = member(written(DocxFormat, new, "fa"), "word/document.xml")
    assert again.count("<w:bidi/>") == member(new, "word/document.xml").count("<w:bidi/>") == 5
    left = written(DocxFormat, word_document(), "de")
    assert "bidi" not in member(left, "word/document.xml") and "rtl" not in member(left, "word/document.xml")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "<w:pPr><w:bidi/></w:pPr>"),
        ("<w:pPr/>", "<w:pPr><w:bidi/></w:pPr>"),
        ("<w:bookmarkStart/>", "<w:pPr><w:bidi/></w:pPr><w:bookmarkStart/>"),
        ('<w:pPr><w:bidi w:val="0"/><w:jc w:val="left"/></w:pPr>', '<w:pPr><w:bidi/><w:jc w:val="left"/></w:pPr>'),
        (
            '<w:pPr><w:pStyle w:val="H"/><w:rPr><w:spacing w:val="2"/></w:rPr></w:pPr><w:x/>',
            '<w:pPr><w:pStyle w:val="H"/><w:bidi/><w:rPr><w:spacing w:val="2"/></w:rPr></w:pPr><w:x/>',
        ),
    ],
)
def test_properties_of_paragraphs(before, after):
    assert bidi_paragraph(before) == after


def test_looks_of_runs():
    assert rtl_run("") == "<w:rPr><w:rtl/></w:rPr>"
    looks = '<w:rPr><w:b w:val="0"/><w:i/><w:iCs/><w:sz w:val="20"/><w:rtl/><w:em w:val="dot"/></w:rPr>'
    assert rtl_run(looks) == (
        '<w:rPr><w:b w:val="0"/><w:bCs w:val="0"/><w:i/><w:iCs/><w:sz w:val="20"/><w:szCs w:val="20"/><w:rtl/>'
        '<w:em w:val="dot"/></w:rPr>'
    )


def test_slides():
    levels = '<p:txStyles><a:lvl1pPr algn="l" rtl="0"/><a:lvl2pPr algn="ctr" rtl="0"/></p:txStyles>'
    run = "<a:r><a:t>{}</a:t></a:r>"
    texts = ['<a:pPr algn="l" lvl="1" rtl="0"/>' + run.format("One"), run.format("Two"), run.format("12")]
    slides = "".join(f"<a:p>{text}</a:p>" for text in texts)
    master = f'<p:sldMaster {SLIDES}><a:lvl1pPr algn="l" rtl="0"/>{levels}</p:sldMaster>'
    data = presentation(slides, **{"slideMasters/slideMaster1.xml": master})
    new = written(PptxFormat, data)
    slide = member(new, "ppt/slides/slide1.xml")
    assert '<a:p><a:pPr rtl="1" algn="r" lvl="1"/>' in slide and slide.count('<a:pPr rtl="1"') == 2
    turned = '<p:txStyles><a:lvl1pPr algn="r" rtl="1"/><a:lvl2pPr algn="ctr" rtl="1"/></p:txStyles>'
    assert '<a:lvl1pPr algn="l" rtl="0"/>' + turned in member(new, "ppt/slideMasters/slideMaster1.xml")
    assert 'rtl="1"' not in member(written(PptxFormat, data, "de"), "ppt/slides/slide1.xml")


def test_open_document():
    styles = (
        f"<office:document-styles {spaces('office style')}>"
        '<style:default-style style:family="paragraph"><style:paragraph-properties/></style:default-style>'
        '<style:page-layout><style:page-layout-properties style:writing-mode="lr-tb"/></style:page-layout>'
        "</office:document-styles>"
    )
    data = open_document("<text:p>One</text:p>", **{"styles.xml": styles})
    new = member(written(OdtFormat, data), "styles.xml")
    assert '<style:paragraph-properties style:writing-mode="rl-tb"/>' in new
    assert '<style:page-layout-properties style:writing-mode="rl-tb"/>' in new
    assert "lr-tb" in member(written(OdtFormat, data, "de"), "styles.xml")


@pytest.mark.parametrize("attribute", ["", ' rightToLeft="0"'])
def test_workbook(attribute):
    cell, name = '<c r="A1" t="inlineStr"><is><t>One</t></is></c>', "xl/worksheets/sheet1.xml"
    data = workbook(f'<sheetViews><sheetView{attribute} workbookViewId="0"/></sheetViews>{cell}')
    assert '<sheetView rightToLeft="1" workbookViewId="0"/>' in member(written(XlsxFormat, data), name)
    assert f'<sheetView{attribute} workbookViewId="0"/>' in member(written(XlsxFormat, data, "de"), name)


def test_pages():
    assert written(HtmlFormat, b'<html lang="en"><p>One</p></html>', "de").startswith(b'<html lang="de">')
    assert written(HtmlFormat, b'<html lang="en"><p>x y</p></html>').startswith(b'<html dir="rtl" lang="he">')
    assert written(HtmlFormat, b'<html DIR=rtl lang="en"><p>x y</p></html>', "de").startswith(
        b'<html DIR="ltr" lang="de">'
    )
    assert written(HtmlFormat, b"<p>One</p>").startswith("<p>ש".encode())


def test_books():
    data = book("<p>One</p>")
    new = written(EpubFormat, data)
    assert '<spine page-progression-direction="rtl" toc="toc">' in member(new, "a.opf")
    assert member(new, "x.xhtml").startswith('<html dir="rtl" lang="he">')
    assert "rtl" not in member(written(EpubFormat, data, "de"), "a.opf")


def test_codes():
    assert all(map(is_right_to_left, ("he", "heb_Hebr", "ar_AR", "pes_Arab", "ur", "ug-CN", "yi", "kas_Arab")))
    assert not any(map(is_right_to_left, ("de", "kas_Deva", "arb_Latn", "zh-Hans", "", None)))
