"""Files of all formats through the page: sentences out, the translation back in the same format."""

import json
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from hf_docmt.files import DataError

pytest.importorskip("sentencex")
pytest.importorskip("docx")
LANGS = ("en", "de")


def capitals(upload):
    """The upload with every sentence in capitals as its translation."""
    from uploads import read_upload, source_of, write_upload

    rows = read_upload(upload, "en")
    translations = [[text.upper() for text in source_of(row, "en")] for row in rows]
    return rows, write_upload(upload, rows, translations, LANGS)


def test_text_keeps_its_lines():
    from uploads import pasted, source_of

    text = "A title\n\nHe came.  She left.\nIt rained.\n\n\nThe end.\n"
    rows, made = capitals(pasted(text))
    assert source_of(rows[0], "en") == ["A title", "He came.", "She left.", "It rained.", "The end."]
    assert made.name == "text.de.txt"
    assert made.data.decode() == "A TITLE\n\nHE CAME. SHE LEFT.\nIT RAINED.\n\n\nTHE END.\n"


def test_text_file_of_windows():
    from uploads import Upload

    _, made = capitals(Upload("a.TXT", b"\xef\xbb\xbfOne.\r\n\r\nTwo.\r\n"))
    assert made.data == b"ONE.\r\n\r\nTWO.\r\n" and made.name == "a.de.txt"


def test_jsonl_keeps_documents_and_columns():
    from uploads import Upload

    lines = [
        {"doc_id": "a", "translation": [{"en": "One."}, {"en": ""}, {"en": "Two."}]},
        {"id": "b", "text": "Three.\n\nFour.", "genre": "news"},
    ]
    rows, made = capitals(Upload("d.jsonl", "\n".join(map(json.dumps, lines)).encode()))
    assert [row["doc_id"] for row in rows] == ["a", "b"]
    first, second = map(json.loads, made.data.decode().splitlines())
    assert first["translation"] == ["ONE.", "", "TWO."] and first["source"] == ["One.", "", "Two."]
    assert (second["text"], second["genre"]) == ("THREE.\n\nFOUR.", "news")


def test_subtitles_keep_their_times():
    pytest.importorskip("pysubs2")
    from uploads import Upload

    text = "1\n00:00:01,000 --> 00:00:02,500\n<i>I think that</i>\n\n2\n00:00:02,600 --> 00:00:04,000\nhe came.\n\n"
    rows, made = capitals(Upload("film.srt", text.encode()))
    assert made.name == "film.de.srt" and len(rows[0]["translation"]) == 1
    assert made.data.decode() == text.replace("I think that", "I THINK THAT").replace("he came", "HE CAME")


def word_document() -> bytes:
    import docx

    document = docx.Document()
    document.add_heading("A title", 1)
    paragraph = document.add_paragraph("He came. ")
    paragraph.add_run("Very").bold = True
    paragraph.add_run(" late, they said. It rained.")
    paragraph.add_run().add_break()
    paragraph.add_run("Name:\tAnna")
    document.add_paragraph("")
    document.add_table(1, 2).rows[0].cells[1].text = "In a cell."
    document.sections[0].header.paragraphs[0].text = "At the top."
    file = BytesIO()
    document.save(file)
    return file.getvalue()


def test_word_document_keeps_its_look():
    import docx
    from uploads import Upload, source_of

    rows, made = capitals(Upload("letter.docx", word_document()))
    assert source_of(rows[0], "en") == [
        "A title",
        "He came.",
        "Very late, they said.",
        "It rained.",
        "Name:",
        "Anna",
        "In a cell.",
        "At the top.",
    ]
    document = docx.Document(BytesIO(made.data))
    title, text, empty = document.paragraphs
    assert (title.style.name, title.text, empty.text) == ("Heading 1", "A TITLE", "")
    assert text.text == "HE CAME. VERY LATE, THEY SAID. IT RAINED.\nNAME:\tANNA"
    assert [run.text for run in text.runs if run.bold] == [""]
    assert document.tables[0].rows[0].cells[1].text == "IN A CELL."
    assert document.sections[0].header.paragraphs[0].text == "AT THE TOP."


def test_text_boxes_of_word_come_once():
    """The copy for old programs is left alone."""
    import docx
    from docx.oxml import parse_xml
    from word_files import read_lines, replace_lines

    space = "http://schemas.openxmlformats.org/"
    document = docx.Document()
    inner = "<w:p><w:r><w:t>In a box.</w:t></w:r></w:p>"
    document.add_paragraph("Around.").runs[0]._r.append(
        parse_xml(
            f'<mc:AlternateContent xmlns:mc="{space}markup-compatibility/2006" '
            f'xmlns:w="{space}wordprocessingml/2006/main"><mc:Choice>{inner}</mc:Choice>'
            f"<mc:Fallback>{inner}</mc:Fallback></mc:AlternateContent>"
        )
    )
    file = BytesIO()
    document.save(file)
    assert read_lines(file.getvalue(), "a.docx") == ["Around.", "In a box."]
    assert read_lines(replace_lines(file.getvalue(), "a.docx", ["1", "2"]), "a.docx") == ["1", "2"]


def packed(size: int) -> bytes:
    """A ZIP file of so many bytes, unpacked."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.writestr("x.xml", b" " * size)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.pdf", b"x", r"a\.pdf ends in '\.pdf', expected one of \.txt, \.docx"),
        ("a", b"x", "a ends in 'nothing'"),
        ("a.txt", b" \n \n", r"a\.txt has no text"),
        ("a.txt", b"\xff\xfeA", r"a\.txt is not UTF-8, byte 0"),
        ("a.txt", b"He came.\n" * 2001, "2001 sentences, expected 2000 at most"),
        ("a.jsonl", b"{", r"^a\.jsonl, line 1"),
        ("a.srt", b"hello", r"^a\.srt, line 1: text before the first cue"),
        ("a.docx", b"PK", r"a\.docx is no Word document"),
        ("a.docx", 10, r"a\.docx is no Word document"),
        ("a.docx", 101 * 2**20, "101 MiB when it is unpacked, expected 100 at most"),
    ],
)
def test_bad_files(name, data, message):
    pytest.importorskip("pysubs2")
    from uploads import Upload, read_upload

    data = packed(data) if isinstance(data, int) else data  # not before: its bytes have the time in them
    with pytest.raises(DataError, match=message):
        read_upload(Upload(name, data), "en")


def test_uploads_as_json():
    from uploads import Upload

    upload = Upload("a.txt", bytes(range(256)))
    assert Upload.from_json(json.loads(json.dumps(upload.as_json()))) == upload
    assert Upload.from_json({"name": "../../a.txt", "data": ""}).name == "a.txt"
    for wrong in (None, {}, {"name": "a", "data": 1}, {"name": "a", "data": "?"}):
        with pytest.raises(ValueError, match="upload"):
            Upload.from_json(wrong)
