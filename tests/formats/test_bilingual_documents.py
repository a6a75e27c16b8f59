"""Documents in two languages: each text with its translation below it, in the markup that the format has for lines."""

from functools import partial

import pytest
from support.errors import refused
from support.markup_checks import shown, translated_file
from support.office_files import book, open_document, presentation, zipped

from hf_docmt.data.readers.subtitles import SubtitlesReader
from hf_docmt.formats.document_reader import DocumentReader
from hf_docmt.formats.docx import DocxFormat
from hf_docmt.formats.epub import EpubFormat
from hf_docmt.formats.html import HtmlFormat
from hf_docmt.formats.markdown import MarkdownFormat
from hf_docmt.formats.odt import OdtFormat
from hf_docmt.formats.plain_text import PlainTextFormat
from hf_docmt.formats.po import PoFormat
from hf_docmt.formats.pptx import PptxFormat

both = partial(translated_file, bilingual=True)
WORD = "<w:document><w:body><w:p><w:r><w:t>The dog.</w:t></w:r></w:p></w:body></w:document>"


@pytest.mark.parametrize(
    ("format", "before", "after"),
    [
        (MarkdownFormat, "# The **dog**\n\n- 12\n", "# The **dog**<br>THE **DOG**\n\n- 12\n"),
        (MarkdownFormat, "| a dog | 1 |\n|---|---|\n", "| a dog<br>A DOG | 1 |\n|---|---|\n"),
        (
            MarkdownFormat,  # pictures and notes stand once
            'See ![a dog](x.png "The dog") now.[^1]\n\n[^1]: A note.\n',
            'See ![a dog / A DOG](x.png "The dog / THE DOG") now.[^1]<br>SEE NOW.\n\n[^1]: A note.<br>A NOTE.\n',
        ),
        (
            HtmlFormat,
            '<title>A dog</title><p title="One">The <b>dog</b> <img src="x">.</p>',
            '<title>A dog / A DOG</title><p title="One / ONE">The <b>dog</b> <img src="x">.<br>THE <b>DOG</b> .</p>',
        ),
        (PlainTextFormat, "The dog.\n\n12\nIt is old.\n", "The dog.\nTHE DOG.\n\n12\nIt is old.\nIT IS OLD.\n"),
    ],
)
def test_text(format, before, after):
    data, _, written = both(format, before.encode())
    assert data.decode() == after and written.problems == []


@pytest.mark.parametrize(
    ("format", "data"),
    [
        (EpubFormat, book("<p>The dog.</p>")),
        (OdtFormat, open_document("<text:p>The dog.</text:p>")),
        (PptxFormat, presentation("<a:p><a:r><a:t>The dog.</a:t></a:r></a:p>")),
        (DocxFormat, zipped({"word/document.xml": WORD})),
    ],
)
def test_archives(format, data):
    new, _, written = both(format, data)
    assert shown(format, new) == ["The dog.THE DOG."] and written.problems == []


def test_subtitles(tmp_path):
    path = tmp_path / "film.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\n<i>The dog.</i>\n\n")
    ((_, row),) = SubtitlesReader().read(["en"], path, bilingual="yes")
    text = SubtitlesReader().render(row, {"source": ["The dog."], "translation": ["Der Hund."]})
    assert text.splitlines()[2:4] == ["<i>The dog.</i>", "<i>Der Hund.</i>"]


def test_formats_with_two_languages_of_their_own_are_refused(tmp_path):
    (tmp_path / "a.po").write_text('msgid "a"\nmsgstr ""\n')
    files = DocumentReader(PoFormat).files
    refused(
        "bilingual is for .*markdown.*, got po; omit it",
        lambda: list(files(["en"], tmp_path / "a.po", bilingual="yes")),
    )
