"""ASS subtitles: what of them is translated, and that all else stays."""

import pytest
from support.markup_checks import check_identity, check_shuffled, check_swapped, parsed, swapped, translated

from hf_docmt.files import DataError
from hf_docmt.formats.ass import AssFormat
from hf_docmt.formats.document_file import DocumentFile
from hf_docmt.formats.document_format import FormatOptions, Tag

SCRIPT = r"""[Script Info]
; a comment: with a colon
Title: A film
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize
Style: Default,Arial,20

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.00,0:00:03.00,Default,Ann,0,0,0,,{\i1}Well, it{\i0} was late.\NAnd {\an8\pos(1,2)}cold\hthere.
Comment: 0,0:00:01.00,0:00:03.00,Default,,0,0,0,,Not this
Dialogue: 0,0:00:01.00,0:00:03.00,Default,,0,0,0,,{\p1}m 0 0 l 100 0{\p0}
Dialogue: 0,0:00:04.00,0:00:05.00,Default,,0,0,0,,{\pos(1,1)\p1}m 0 0 l 9 9{\p0}Sign {text
Dialogue: 0,0:00:04.00,0:00:05.00,Default,,0,0,0,,12 ...

[Fonts]
Dialogue: nothing
"""


def line(text: str) -> bytes:
    return b"[Events]\nFormat: Start, Text\nDialogue: 1," + text.encode()


def test_segments():
    segments = parsed(AssFormat, SCRIPT.encode())[1]
    assert [(segment.location, segment.text) for segment in segments] == [
        ("line 12", "Well, it was late. And cold there."),
        ("line 15", "Sign {text"),
    ]
    assert segments[0].pieces[:6] == [
        Tag("alone", r"{\i1}"),
        "Well, it",
        Tag("alone", r"{\i0}"),
        " was late. ",
        Tag("alone", r"\N", by_length=True),
        "And ",
    ]
    assert segments[1].pieces[0] == Tag("alone", r"{\pos(1,1)\p1}m 0 0 l 9 9{\p0}")


EVENTS = r"""[Events]
Format: Layer, Start, End, Style, Text
Dialogue: 0,0:00:01.00,0:00:03.00,Main,{\i1}We saw the lamp\Nthat{\i0} he bought. He
Dialogue: 0,0:00:03.00,0:00:05.00,Main,{\an8}said it\hwas old
Dialogue: 0,0:00:05.00,0:00:06.00,Main,and small.
Dialogue: 0,0:00:06.00,0:00:07.00,Main,- Who is it?\N- {\i1}Ann
Dialogue: 0,0:00:07.00,0:00:08.00,Main,[a door]
Dialogue: 0,0:00:08.00,0:00:09.00,Sign,The house
Dialogue: 1,0:00:08.00,0:00:09.00,Sign,The house
Dialogue: 1,0:00:09.00,0:00:10.00,Sign,{\pos(1,2)}on the hill
Dialogue: 1,0:00:19.00,0:00:20.00,Sign,far away
Dialogue: 1,0:00:29.00,0:00:30.00,Sign,- A <b>red</b> lamp\N- \{\an8\}x
"""


def test_sentences_over_lines_and_events():
    """As of subtitles without styles: no border ends a sentence, and lengths say where they stand in the new one."""
    file = DocumentFile(EVENTS.encode(), "f", AssFormat(), FormatOptions())
    sentences = [each.text for own in file.sentences for each in own.sentences]
    assert sentences == [
        "We saw the lamp that he bought.",
        "He said it was old and small.",
        "Who is it?",
        "Ann",
        "a door",
        *["The house", "The house", "on the hill", "far away"],
        r"- A <b>red</b> lamp - {\an8}x",
    ]
    new = ["Wir sahen die Lampe, die er gekauft hat.", "Er sagte, sie wäre alt und klein.", *sentences[2:]]
    data, written = file.translated({"f": {"translation": new}})
    assert written.problems == []
    assert data.decode().splitlines()[2:5] == [
        r"Dialogue: 0,0:00:01.00,0:00:03.00,Main,{\i1}Wir sahen die Lampe,\Ndie{\i0} er gekauft hat. Er",
        r"Dialogue: 0,0:00:03.00,0:00:05.00,Main,{\an8}sagte,\hsie wäre",
        r"Dialogue: 0,0:00:05.00,0:00:06.00,Main,alt und klein.",
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_round_trips(end):
    script = SCRIPT.replace("\n", end)
    for data in (script.encode(), b"\xef\xbb\xbf" + script.encode(), b"\xff\xfe" + script.encode("utf-16-le")):
        assert check_identity(AssFormat, data) == 6
        check_swapped(AssFormat, data, exact=False)  # the brace that opens nothing gets a backslash
        check_swapped(AssFormat, data.replace(b"{\0t", b"(\0t").replace(b"{text", b"(text"))
        check_shuffled(AssFormat, data)


def test_other_programs_read_it():
    pysubs2 = pytest.importorskip("pysubs2")
    before = pysubs2.SSAFile.from_string(SCRIPT)
    after = pysubs2.SSAFile.from_string(translated(AssFormat, SCRIPT.encode(), swapped).decode())
    assert [event.text for event in after][0] == r"{\i1}wELL, IT{\i0} WAS LATE.\NaND {\an8\pos(1,2)}COLD\hTHERE."
    assert [(event.start, event.style, event.name) for event in after] == [
        (event.start, event.style, event.name) for event in before
    ]


@pytest.mark.parametrize("text", ["a{b}c", "x\\N y", "one\ntwo", "end\\", "\\{a", "C:\\new, \\home"])
def test_text_is_read_as_text(text):
    written = translated(AssFormat, line("One"), lambda pieces: [text])
    assert parsed(AssFormat, written)[1][0].pieces == [text.replace("\n", " ")]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[Events]\nDialogue: 1,One", "line 2: expected a Format line before it"),
        (b"[Events]\nFormat: A, B, Text\nDialogue: 1,One", "line 3: expected 3 fields"),
        (b"[Events]\nFormat: Text, A\n", "line 2: expected Text as the last field"),
        ("[Events]\nFormat: Text\nDialogue: é".encode("latin-1"), "save it as UTF-8"),
    ],
)
def test_bad_input(data, message):
    with pytest.raises(DataError, match=message):
        parsed(AssFormat, data)
