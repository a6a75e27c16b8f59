"""Files of all formats through the page: sentences out, the translation back in the same format."""

import json
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest

from hf_docmt.files import DataError

pytest.importorskip("sentencex")
LANGS = ("en", "de")


def result(row, translate):
    source = [pair["en"] for pair in row["translation"]]
    return {"doc_id": row["doc_id"], "source": source, "translation": list(map(translate, source))}


def capitals(upload):
    """The upload with every sentence in capitals as its translation."""
    from uploads import read_upload, write_upload

    rows = read_upload(upload, "en")
    made, problems = write_upload(upload, rows, [result(row, str.upper) for row in rows], LANGS)
    assert not problems
    return rows, made


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


def test_wrapped_text_is_read_by_paragraphs():
    from uploads import Upload, source_of

    text = "He left the house early. It was raining hard and when\r\nhe came back nobody knew him.\r\n\r\n- Milk.\r\n"
    rows, made = capitals(Upload("a.txt", text.encode()))
    wrapped = "It was raining hard and when he came back nobody knew him."
    assert source_of(rows[0], "en") == ["He left the house early.", wrapped, "Milk."]
    assert made.data.decode() == text.upper()


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


def test_jsonl_has_the_rows_of_the_command():
    from uploads import Upload, read_upload, write_upload

    upload = Upload("d.jsonl", b'{"doc_id": "a", "translation": [{"en": "One."}], "speaker": "x"}\n{"text": "Two."}')
    repairs = [[{"sentence": 0, "kind": "parts", "detail": ""}], []]
    rows = read_upload(upload, "en")
    made, _ = write_upload(upload, rows, [result(row, str.upper) for row in rows], LANGS, repairs)
    first, second = map(json.loads, made.data.decode().splitlines())
    row = {"doc_id": "a", "source": ["One."], "translation": ["ONE."], "repairs": repairs[0]}
    assert first == row | {"speaker": "x"}
    assert second.keys() == {"text", "doc_id", "repairs"}


def test_subtitles_keep_their_times():
    from uploads import Upload

    text = "1\n00:00:01,000 --> 00:00:02,500\n<i>I think that</i>\n\n2\n00:00:02,600 --> 00:00:04,000\nhe came.\n\n"
    rows, made = capitals(Upload("film.srt", text.encode()))
    assert made.name == "film.de.srt" and len(rows[0]["translation"]) == 1
    assert made.data.decode() == text.replace("I think that", "I THINK THAT").replace("he came", "HE CAME")


def word_document() -> bytes:
    import docx

    document = docx.Document()
    document.add_heading("A title", 1)
    paragraph = document.add_paragraph("He came ")
    paragraph.add_run("very").bold = True
    paragraph.add_run(" late. It rained.")
    document.add_table(1, 2).rows[0].cells[1].text = "In a cell."
    document.sections[0].header.paragraphs[0].text = "At the top."
    file = BytesIO()
    document.save(file)
    return file.getvalue()


def test_word_document_keeps_its_look():
    docx = pytest.importorskip("docx")
    from uploads import Upload, source_of

    rows, made = capitals(Upload("letter.docx", word_document()))
    sentences = [text for row in rows for text in source_of(row, "en")]
    assert sentences == ["A title", "He came very late.", "It rained.", "In a cell.", "At the top."]
    document = docx.Document(BytesIO(made.data))
    title, text = document.paragraphs
    assert (title.style.name, title.text, text.text) == ("Heading 1", "A TITLE", "HE CAME VERY LATE. IT RAINED.")
    assert [run.text for run in text.runs if run.bold] == ["VERY"]
    assert document.tables[0].rows[0].cells[1].text == "IN A CELL."
    assert document.sections[0].header.paragraphs[0].text == "AT THE TOP."


PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nPlural-Forms: nplurals=2; plural=n != 1;\\n"\n\n'
XLIFF = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" source-language="en" '
    'target-language="de" datatype="plaintext"><body><trans-unit id="1"><source>He <g id="1">came</g>.</source>'
    "{}</trans-unit></body></file></xliff>"
)
TMX = (
    '<tmx version="1.4"><header srclang="en" segtype="sentence" datatype="x" o-tmf="x" adminlang="en" creationtool="x" '
    'creationtoolversion="1"/><body><tu><tuv xml:lang="en"><seg>He came.</seg></tuv></tu></body></tmx>'
)
MARKED = [  # file, what it holds, what its translation holds
    ("a.html", "<p>He <b>came</b>.</p>", "<p>HE <b>CAME</b>.</p>"),
    ("a.md", "# A title\n\nHe *came*.\n", "# A TITLE\n\nHE *CAME*.\n"),
    ("a.po", f'{PO}msgid "He came."\nmsgstr ""\n', 'msgstr "HE CAME."'),
    ("a.xlf", XLIFF.format(""), '>HE <g id="1">CAME</g>.</target>'),
    ("a.tmx", TMX, "<seg>HE CAME.</seg>"),
    ("a.json", '{"key": "He came."}', '{"key": "HE CAME."}'),
    ("a.yml", "key: He came.\n", "key: HE CAME.\n"),
    ("a.ass", "[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:02.00,He {\\i1}came{\\i0}.\n", "CAME"),
]


@pytest.mark.parametrize(("name", "text", "expected"), MARKED, ids=[name for name, *_ in MARKED])
def test_formats_with_markup(name, text, expected):
    pytest.importorskip("markdown_it")
    from uploads import Upload

    _, made = capitals(Upload(name, text.encode()))
    assert expected in made.data.decode() and made.name == name.replace("a.", "a.de.")


def test_all_formats_but_tables():
    pytest.importorskip("markdown_it")
    from uploads import ENDINGS

    from hf_docmt.formats import document_formats

    endings = {ending for format in document_formats().values() for ending in format.endings}
    assert endings - set(ENDINGS) == {".csv", ".xlsx", ".xlsm"} and len(set(ENDINGS)) == len(ENDINGS)


def packed(content: bytes, name: str = "word/document.xml", method: int = ZIP_DEFLATED) -> bytes:
    file = BytesIO()
    with ZipFile(file, "w", method) as archive:
        archive.writestr(name, content)
    return file.getvalue()


def words(inner: str) -> bytes:
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return packed(f'<w:document xmlns:w="{space}"><w:body>{inner}</w:body></w:document>'.encode(), method=ZIP_STORED)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.pdf", b"x", r"a\.pdf ends in '\.pdf', expected one of \.txt, \.jsonl"),
        ("a.csv", b"a,b", r"a\.csv ends in '\.csv'"),
        ("a", b"x", "a ends in 'nothing'"),
        ("a.txt", b" \n \n", r"a\.txt has no text"),
        ("a.txt", b"\xff\xfeA", r"a\.txt is not UTF-8, byte 0"),
        ("a.txt", b"He came.\n" * 2001, "2001 sentences, expected 2000 at most"),
        ("a.jsonl", b"{", r"^a\.jsonl, line 1"),
        ("a.srt", b"hello", r"^a\.srt, line 1: text before the first cue"),
        ("a.docx", b"PK", r"^a\.docx: not a zip archive"),
        ("a.docx", lambda: packed(b"<a/>", "x.xml"), r"^a\.docx: word/document\.xml is not in it"),
        ("a.docx", lambda: packed(b"<a"), r"^a\.docx: word/document\.xml"),
        ("a.docx", lambda: packed(b" " * (9 << 20)), "9437184 bytes of text when it is unpacked, expected 8388608"),
        ("a.epub", lambda: packed(b" " * (9 << 20), "a.jpg"), "9437184 bytes of text when it is unpacked"),
        ("a.epub", lambda: packed(b"<a/>" * 200_001, "a.jpg", ZIP_STORED), "200001 elements, expected 200000 at most"),
        ("a.epub", b"PK", r"^a\.epub: not a zip archive"),
        ("a.odp", lambda: packed(b" " * (9 << 20), "content.xml"), "9437184 bytes of text when it is unpacked"),
        ("a.pptx", lambda: packed(b"<a/>" * 200_001, "ppt/a.jpg", ZIP_STORED), "200001 elements, expected 200000"),
        ("a.docx", lambda: words("<w:p/>" * 200_000), "200004 elements, expected 200000 at most"),
        ("a.docx", lambda: words("<w:p>" * 5000 + "</w:p>" * 5000), "nested more than 400 deep"),
        ("a.txt", b"a" * (10 << 20) + b"a", "10485761 bytes, expected 10485760 at most"),
        ("a.html", b"<p>a\n" * (1 << 19), "2621440 bytes of text, expected 2097152 at most"),
        ("a.html", b"<p>\n" * 100_001, "200002 characters of markup, expected 200000 at most"),
        ("a.md", b"a" * 100_001, "100001 bytes on a line, expected 100000 at most"),
        ("a.json", b'{"a":\n' * 5000 + b"1" + b"}" * 5000, r"^a\.json"),
        ("a.json", b"{", r"^a\.json"),
        ("a.yml", b"a: [", r"^a\.yml"),
        ("a.po", b'msgid "a', r"^a\.po"),
        ("a.xlf", b"<xliff", r"^a\.xlf"),
        ("a.tmx", b"<tmx>", r"^a\.tmx"),
    ],
)
def test_bad_files(name, data, message):
    from uploads import Upload, read_upload

    data = data() if callable(data) else data  # not before: the bytes of archives have the time in them
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
