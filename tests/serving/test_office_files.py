"""Office documents through the server: their markup stays, and what comes back is read."""

import io
import zipfile
from urllib.parse import urlsplit

import pytest
from support.http_server import running
from support.markup_checks import tags
from support.office_files import book, open_document, presentation, workbook, zipped

from hf_docmt.formats import document_formats
from hf_docmt.formats.document_file import FormatOptions

CELLS = '<c r="A1" t="inlineStr"><is><t>w7 w8</t></is></c><c r="B1"><f>A1</f><v>12</v></c>'
SLIDE = "<a:p><a:r><a:t>w7 </a:t></a:r><a:r><a:rPr b='1'/><a:t>w8</a:t></a:r></a:p>"


FILES = {
    "xlsx": workbook(CELLS),
    "pptx": presentation(SLIDE),
    "odt": open_document("<text:p>w7 <text:a>w8</text:a></text:p>", **{"meta.xml": "<x/>"}),
    "epub": book("<p>w7 <b>w8</b>.</p><p>w9</p>"),
}


def fetched(client, name: str, data: bytes) -> bytes:
    status, answer = client.upload(name, data)
    assert status == 200, answer
    status, written, headers = client.call("GET", urlsplit(answer["translatedFileUrl"]).path)
    assert status == 200 and name.partition(".")[2] in headers["content-disposition"]
    return written


@pytest.mark.parametrize("name", FILES)
def test_office_files(client, name):
    """As many segments as there were, other ones, with their tags; and all members of the archive."""
    data, options = FILES[name], FormatOptions("en", "de")
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


@pytest.mark.parametrize("name", FILES)
def test_broken_office_files_are_refused(client, name):
    for data in (b"PK\x03\x04 and no more", FILES[name][:-40], zipped({"x": "y"})):
        status, answer = client.upload(f"a.{name}", data)
        assert status == 400 and len(answer["error"]) > 10, answer
    assert client.upload("a.txt", b"w7")[0] == 200


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        (
            "a.docx",
            zipped({"word/document.xml": "<w/>" * 5000}),
            "5000 tags unpacked, expected at most",
        ),
        ("a.odt", zipped({"content.xml": " " * 2**21}), "2097152 bytes unpacked"),
        ("a.xlf", b"<x>" * 4001, "4001 tags"),
    ],
)
def test_files_that_are_large_when_unpacked_are_refused(system, name, data, reason):
    """Before they are parsed."""
    with running(system, unpacked_megabytes=1, elements=4000) as client:
        status, answer = client.upload(name, data)
        assert status == 400 and reason in answer["error"]
