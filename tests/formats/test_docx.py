"""Word documents: what is text, what stays, and that files come back as they were."""

import io
import random

import docx
import pytest
from support.errors import refused
from support.markup_checks import (
    check_identity,
    check_shuffled,
    check_swapped,
    parsed,
    shown,
    translated,
    translated_file,
)
from support.office_files import member, relations, spaces, with_main, workbook, zipped

from hf_docmt.formats.document_file import DocumentFile, FormatOptions
from hf_docmt.formats.docx import DocxFormat
from hf_docmt.formats.office_members import comments
from hf_docmt.formats.zip_archive import ZipArchive

DOCUMENT, SPACES = "word/document.xml", spaces("w m wp mc")
STYLES = f'<w:styles {SPACES}><w:docDefaults><w:rPr><w:lang w:val="en-US"/></w:rPr></w:docDefaults></w:styles>'
ITALIC = "<w:rPr><w:i/></w:rPr>"
BOX = "<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>"


def changed(format, data, change, **options):
    def translate(pieces):
        return [change(piece) if isinstance(piece, str) else piece for piece in pieces]

    return translated(format, data, translate, **options)


def mark(kind):
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


def field(code, result):
    code = f"<w:r><w:instrText>{code}</w:instrText></w:r>"
    return mark("begin") + code + mark("separate") + run(result) + mark("end")


def run(text, looks=""):
    return f'<w:r>{looks}<w:t xml:space="preserve">{text}</w:t></w:r>'


def file(*paragraphs):
    body = "".join(f"<w:p>{paragraph}</w:p>" for paragraph in paragraphs)
    members = {"word/styles.xml": STYLES, "docProps/x.bin": bytes(range(256))}
    members[DOCUMENT] = f"<w:document {SPACES}><w:body>{body}</w:body></w:document>"
    return zipped(members, b"note")


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        (run("One ", '<w:rPr><w:lang w:val="en"/></w:rPr>') + "<w:proofErr/>" + run("text"), ["One text"]),
        (run("12 - 3"), []),
        (f"<w:ins>{run('new')}</w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>", ["new"]),
        (run("Page ") + field("PAGE", "7") + run(" of it"), ["Page 7 of it"]),
        (field("HYPERLINK x", "a link"), ["a link"]),
        (run("I am ") + field(" FORMTEXT ", "a red lamp") + run("."), ["I am a red lamp."]),
        (f"<w:sdt><w:sdtPr/><w:sdtContent>{run('Name')}</w:sdtContent></w:sdt>", ["Name"]),
        (run("well") + "<w:r><w:noBreakHyphen/></w:r>" + run("known"), ["well\u2011known"]),
        (run("See ") + "<m:oMath><m:t>x=1</m:t></m:oMath>", ["See x=1"]),
        (run("Look") + BOX, ["Look", "In a box"]),
        (run("Look") + '<w:r><w:drawing><wp:docPr descr="A &quot;key&quot;"/></w:drawing></w:r>', ["Look", 'A "key"']),
    ],
)
def test_what_is_translated(paragraph, expected):
    data = file(paragraph)
    assert shown(DocxFormat, data) == expected
    assert shown(DocxFormat, changed(DocxFormat, data, str.upper)) == [
        text.upper() if "x=1" not in text else "SEE x=1" for text in expected
    ]


def test_tabs_are_columns():
    data = file(run("Name:") + "<w:r><w:tab/></w:r>" + run("Ann\tLee") + "<w:r><w:ptab/></w:r>" + run("Room 5"))
    new, sentences, written = translated_file(DocxFormat, data)
    assert sentences == ["Name:", "Ann", "Lee", "Room 5"] and written.problems == []
    assert shown(DocxFormat, new) == ["NAME:\tANN\tLEE\tROOM 5"]


def test_comments_are_counted():
    """Of all kinds of office documents, by the members that have some."""
    members = {"word/comments.xml": "<w:comments><w:comment w:id='1'/><w:comment/></w:comments>"}
    members |= {
        "word/commentsIds.xml": "<x:commentsIds><x:commentId/></x:commentsIds>",
        "ppt/commentAuthors.xml": "<p:cmAuthor/>",
    }
    members |= {"ppt/comments/comment1.xml": "<p:cm/>", "ppt/comments/modernComment_1.xml": "<a:cmLst><a:cm id=''/>"}
    members |= {"xl/comments1.xml": "<comments><comment ref='A1'/>", "xl/threadedComments/a.xml": "<threadedComment/>"}
    members |= {"content.xml": "<office:annotation/><office:annotation-end/>"}
    assert comments(ZipArchive(zipped(members))) == {("comment", "left alone"): 6}
    members[DOCUMENT] = f"<w:document {SPACES}>{run('One')}</w:document>"
    file = DocumentFile(zipped(members), "a", DocxFormat(), FormatOptions())
    assert file.translated({})[1].text().endswith(", 6 comments left alone")


def test_empty_inputs_stay():
    empty = field("FORMTEXT", "\u2002\u2002")
    pieces = parsed(DocxFormat, file(run("I am ") + empty))[1][0].pieces
    assert [getattr(piece, "raw", piece) for piece in pieces] == ["I am ", empty]


def contents_of_table(code):
    """The paragraphs of a field that goes over three of them, with one before it and one behind."""
    begin = mark("begin") + f"<w:r><w:instrText>{code}</w:instrText></w:r>" + mark("separate")
    entry = f'<w:hyperlink w:anchor="a">{run("Chapter")}{field("PAGEREF a", "3")}</w:hyperlink>'
    return run("Contents"), run("See ") + begin + entry, run("Index"), run("Last") + mark("end") + run(" and on")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (r'TOC \o "1-3"', ["Contents", "See ", " and on"]),
        ('INCLUDETEXT "a.docx"', ["Contents", "See ", " and on"]),
        ('HYPERLINK "a"', ["Contents", "See Chapter3", "Index", "Last and on"]),
        ("FORMTEXT", ["Contents", "See Chapter3", "Index", "Last and on"]),
    ],
)
def test_fields_over_paragraphs(code, expected):
    """Those that Word makes, such as tables of contents, stay; what others wrote is translated."""
    data = file(*contents_of_table(code))
    assert shown(DocxFormat, data) == expected
    reader = DocxFormat()
    reader.parse(data, FormatOptions())
    assert reader.remarks["field paragraph", "left alone"] == (3 if len(expected) == 3 else 0)
    new = changed(DocxFormat, data, str.upper)
    assert shown(DocxFormat, new) == [text.upper() for text in expected]
    assert len(expected) == 4 or member(new, DOCUMENT).count("Chapter") == 1
    check_identity(DocxFormat, data)


def test_pictures_may_change_places():
    """A paragraph with two text boxes, which the translation has in another order."""
    box = "<w:r><w:pict><w:txbxContent><w:p>{}</w:p></w:txbxContent></w:pict></w:r>"
    boxes = [box.format(run("In ") + run("one", ITALIC)), box.format(run("Two") + "<w:r><w:tab/></w:r>")]
    document = DocumentFile(
        file(run("Look ") + boxes[0] + run(" here ") + boxes[1]), "a", DocxFormat(), FormatOptions()
    )
    pieces = list(document.segments[0].pieces)
    places = [number for number, piece in enumerate(pieces) if not isinstance(piece, str)]
    pieces[places[0]], pieces[places[1]] = pieces[places[1]], pieces[places[0]]
    moved = [pieces, None, None]
    assert document._problems(document.format.write(moved), moved) == []


def test_a_run_with_a_box_is_not_a_field():
    box = f"<w:r><w:pict><w:txbxContent><w:p>{field('PAGE', '7')}{run('In a box')}</w:p></w:txbxContent></w:pict></w:r>"
    assert shown(DocxFormat, file(run("Look ") + box)) == ["Look ", "7In a box"]


def test_a_field_without_an_end_hides_nothing():
    data = file(mark("begin") + "<w:r><w:instrText>TOC</w:instrText></w:r>" + run("One"), run("Two"))
    assert shown(DocxFormat, data) == ["One", "Two"]


def test_other_looks_are_tags():
    data = file(run("A long text with ") + run("looks", ITALIC))
    assert [getattr(piece, "raw", piece) for piece in parsed(DocxFormat, data)[1][0].pieces] == [
        "A long text with ",
        ITALIC,
        "looks",
        "",
    ]
    assert run("LOOKS &lt;", ITALIC) in member(changed(DocxFormat, data, lambda text: text.upper() + " <"), DOCUMENT)


def test_box_in_a_changed_paragraph_is_changed_too():
    new = member(changed(DocxFormat, file(run("Look") + BOX), str.upper), DOCUMENT)
    assert run("LOOK") in new and "IN A BOX" in new


def test_a_translated_box_is_not_a_problem():
    """The tag that holds the box is read again with another text in it."""
    document = DocumentFile(file(run("Look ") + BOX + run("there")), "a.docx", DocxFormat(), FormatOptions())
    ((_, row),) = document.rows(["en"])
    texts = [pair["en"].upper() for pair in row["translation"]]
    data, written = document.translated({row["doc_id"]: {"translation": texts}})
    assert written.problems == [] and "IN A BOX" in member(data, DOCUMENT) and written.segments == 2


@pytest.mark.parametrize("seed", range(100))
def test_random_documents(seed):
    rng = random.Random(seed)
    looks = ["", "", "<w:rPr><w:b/></w:rPr>", ITALIC, '<w:rPr><w:lang w:val="de"/></w:rPr>', "<w:rPr/>"]
    inner = ["<w:r><w:br/></w:r>", '<w:bookmarkStart w:id="1"/>', "<w:r><w:tab/></w:r>", "<w:proofErr/>"]

    def content(depth=0):
        parts = []
        for _ in range(rng.randint(1, 6)):
            kind = rng.random()
            if kind < 0.2 and depth < 2:
                parts.append(f'<w:hyperlink w:id="{rng.randint(1, 3)}">{content(depth + 1)}</w:hyperlink>')
            elif kind < 0.4:
                parts.append(rng.choice(inner))
            else:
                parts.append(run(rng.choice(["One ", " two.", "é &amp; ", "3", ""]), rng.choice(looks)))
        return "".join(parts)

    data = file(*(content() for _ in range(rng.randint(1, 4))))
    check_identity(DocxFormat, data)
    check_swapped(DocxFormat, data, exact=False)
    check_shuffled(DocxFormat, data, seed)


def test_language_and_other_members():
    data = file(run("Look"))
    new = changed(DocxFormat, data, str.upper, target_lang="de")
    assert 'w:val="de"' in member(new, "word/styles.xml")
    old, now = ZipArchive(data), ZipArchive(new)
    assert now.names == old.names
    assert now.data.endswith(b"note")
    assert now.members[2].date_time == old.members[2].date_time
    assert now.read("docProps/x.bin") == bytes(range(256))


def test_word_library_opens_it():
    buffer = io.BytesIO()
    document = docx.Document()
    document.add_heading("A title")
    paragraph = document.add_paragraph("Some ")
    paragraph.add_run("bold").bold = True
    paragraph.add_run(" text in a line")
    document.save(buffer)
    new = docx.Document(io.BytesIO(changed(DocxFormat, buffer.getvalue(), str.upper)))
    assert [paragraph.text for paragraph in new.paragraphs] == ["A TITLE", "SOME BOLD TEXT IN A LINE"]
    assert [text.text for text in new.paragraphs[1].runs if text.bold] == ["BOLD"]


def test_members_are_found_by_relations():
    links = relations(h=("header", "top.xml"), s=("styles", "/word/styles2.xml"))
    members = {"word/document.xml": f"<w:document {SPACES}><w:p>{run('One')}</w:p></w:document>"}
    members |= {"word/_rels/document.xml.rels": links, "word/styles2.xml": STYLES}
    members["word/top.xml"] = f"<w:hdr {SPACES}><w:p>{run('Above')}</w:p></w:hdr>"
    data = with_main(zipped(members), "document2.xml")
    assert [(each.part, each.text) for each in parsed(DocxFormat, data)[1]] == [("", "One"), ("top", "Above")]
    new = changed(DocxFormat, data, str.upper, target_lang="de")
    assert shown(DocxFormat, new) == ["ONE", "ABOVE"] and 'w:val="de"' in member(new, "word/styles2.xml")


def test_broken_files_are_refused():
    refused("word/document.xml is not in it: no Word document", parsed, DocxFormat, with_main(workbook(""), "book.xml"))
    refused("document.xml: line 1.*broken XML", parsed, DocxFormat, file("<w:r>"))
