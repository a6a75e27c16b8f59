"""Any document as XLIFF with machine translations, and the document again with the reviewed ones."""

import re

import pytest
from lxml import etree
from support.errors import refused
from support.office_files import zipped

from hf_docmt.formats.document_file import DocumentFile
from hf_docmt.formats.document_format import FormatOptions
from hf_docmt.formats.docx import DocxFormat
from hf_docmt.formats.file_translation import merge_file
from hf_docmt.formats.html import HtmlFormat
from hf_docmt.formats.markdown import MarkdownFormat
from hf_docmt.formats.plain_text import PlainTextFormat
from hf_docmt.formats.po import PoFormat
from hf_docmt.formats.xliff_exchange import exchange_file

RUN = "<w:r><w:rPr><w:b/></w:rPr><w:t>dog</w:t></w:r>"
WORD = f'<w:document><w:body><w:p><w:r><w:t xml:space="preserve">The </w:t></w:r>{RUN}</w:p></w:body></w:document>'
PAGE = b'# The *old* **dog**\n\nSee ![a <dog>](x.png "A & B") at http://a.b/c_d_e: `x`, {{ n }}. It is 2*3_4.\r\n'


def exchanged(tmp_path, format, data, change=str.upper, score=-0.5):
    """The paths of a document and its XLIFF, and what is written without it."""
    path = tmp_path / f"a{format.endings[0]}"
    path.write_bytes(data)
    file = DocumentFile(data, path.name, format(), FormatOptions("en", "de"))
    results = {}
    for _, row in file.rows(["en"]):
        lines = [change(pair["en"]) for pair in row["translation"]]
        results[row["doc_id"]] = {"translation": lines, "score": [score] * len(lines)}
    translation = file.translation(results)
    (tmp_path / "a.xlf").write_bytes(exchange_file(file, translation))
    return tmp_path / "a.xlf", path, file.written(translation)[0]


@pytest.mark.parametrize("change", [str.upper, str, lambda text: ""], ids=["upper", "same", "empty"])
@pytest.mark.parametrize(
    ("format", "data"),
    [
        (MarkdownFormat, PAGE),
        (HtmlFormat, b'<html lang="en"><p title="A &amp; B">The <b>old <i>dog</i></b><br>is &lt;it&gt;.</p></html>'),
        (DocxFormat, zipped({"word/document.xml": WORD})),
        (PlainTextFormat, b"The dog is old. It\tsleeps.\x0c\n\n12\nIt & I.\n"),
        (PoFormat, b'msgid "The %s dog"\nmsgstr ""\n'),
    ],
)
def test_unchanged_it_is_the_translation(tmp_path, format, data, change):
    xliff, path, expected = exchanged(tmp_path, format, data, change)
    merge_file(xliff, path, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == expected


def test_a_review(tmp_path):
    """Targets as another program writes them: in another encoding, with other empty elements, segments, no target."""
    xliff, path, _ = exchanged(tmp_path, MarkdownFormat, PAGE + b"\nThe end.\n")
    root = etree.fromstring(xliff.read_bytes())
    space = "{urn:oasis:names:tc:xliff:document:1.2}"
    first, *_, last = root.iter(f"{space}target")
    assert first.get("{http://www.w3.org/2005/11/its}mtConfidence") == "0.607"
    first.clear()
    mark = etree.SubElement(first, f"{space}mrk", mtype="seg", mid="1")
    for number, text in (("3", "Hund"), ("1", "alte")):
        etree.SubElement(mark, f"{space}g", id=number).text = text
    mark[0].tail = " der "
    last.getparent().remove(last)
    xliff.write_bytes(etree.tostring(root, encoding="UTF-16"))
    written = merge_file(xliff, path, tmp_path / "out.md")
    assert (tmp_path / "out.md").read_text().startswith("# **Hund** der *alte*\n\nSEE ")
    assert (tmp_path / "out.md").read_bytes().endswith(b".\r\n\nThe end.\n") and written.unchanged == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('<target>[^<]*<g id="1">OLD</g>', "<target>ALT", r"unit 1 lacks the element with id 1 \('\*'\)"),
        ('<g id="1">OLD</g>', '<g id="1">OLD</g><g id="1"></g>', "unit 1 repeats the element with id 1"),
        ('<g id="1">OLD</g>', '<g id="9">OLD</g>', "unit 1 has an element <g id='9'> that the document does not have"),
        ('<g id="1">OLD</g>', '<x id="1"/>', "unit 1 has an element <x id='1'> that"),
        ('<source>The <g id="1">old', '<source>The <g id="1">new', "unit 1 has another source than the document; give"),
        ('<trans-unit id="1"', '<trans-unit id="77"', "no unit 1 for line 1 of .*a.md; give the document that was"),
        ("</body>", '<trans-unit id="78"/></body>', "a.md has no segment for unit 78; give the document that was"),
        ('version="1.2"', 'version="2.1"', "a.xlf: expected an XLIFF 1.2 file of docmt translate, got <xliff>"),
        ("</file>", "", "a.xlf: line .*: broken XML"),
    ],
)
def test_what_is_refused(tmp_path, old, new, message):
    xliff, path, _ = exchanged(tmp_path, MarkdownFormat, PAGE, score=None)
    text = xliff.read_text().replace(' state="needs-review-translation" state-qualifier="mt-suggestion"', "")
    assert (changed := re.sub(old, new, text, count=1)) != text
    xliff.write_text(changed)
    refused(message, merge_file, xliff, path, tmp_path / "out.md")
    assert not (tmp_path / "out.md").exists()


@pytest.mark.parametrize(
    ("least", "before", "after"),
    [
        (None, "", "#, fuzzy\n"),
        ("-0.3", "", "#, fuzzy\n"),
        ("-0.7", "", ""),
        ("-0.7", "#, fuzzy\n", ""),
        ("-0.7", "#, c-format, fuzzy\n", "#, c-format\n"),
        ("-0.3", "#, fuzzy, c-format\n", "#, fuzzy, c-format\n"),
    ],
)
def test_fuzzy_below_a_score(least, before, after):
    options = FormatOptions.of("en", "de", fuzzy_below=least)
    file = DocumentFile(f'{before}msgid "A dog"\nmsgstr ""\n'.encode(), "a.po", PoFormat(), options)
    written, _ = file.translated({"a.po": {"translation": ["Ein Hund"], "score": [-0.5]}})
    assert written.decode() == f'{after}msgid "A dog"\nmsgstr "Ein Hund"\n'
