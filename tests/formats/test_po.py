"""Catalogs of gettext: entries, plurals, flags, wrapping; msgfmt reads what is written."""

import gettext
import io
import shutil
import subprocess

import pytest
from support.markup_checks import check_identity, parsed, swapped, translated

from hf_docmt.files import DataError
from hf_docmt.formats.document_file import DocumentFile, FormatOptions
from hf_docmt.formats.document_format import Tag
from hf_docmt.formats.po import PoFormat

HEADER = r"""# Translations
msgid ""
msgstr ""
"Language: fr\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n > 1);\n"

"""
CATALOG = (
    HEADER
    + r"""#: door.c:10
#, c-format
msgid "Open <b>%s</b> & \"close\" it"
msgstr ""

#, fuzzy, c-format
#| msgid "Old"
msgid "%d key"
msgid_plural "%d keys"
msgstr[0] "%d alt"
msgstr[1] "%d alt"

msgctxt "menu"
msgid "File"
msgstr "Datei"

#, fuzzy
msgid ""
"The door is open, and nobody knows who has opened it at this late hour of "
"the night.\n"
"Close it."
msgstr "Alt"

msgid "%s: %d"
msgstr ""

#~ msgid "Gone"
#~ msgstr "Weg"
"""
)


def written(catalog, translate=swapped, **options):
    return translated(PoFormat, catalog.encode(), translate, all=True, **options).decode()


def test_segments():
    segments = parsed(PoFormat, CATALOG.encode())[1]
    assert [segment.text for segment in segments[:4]] == ['Open %s & "close" it', "%d key", "%d keys", "File"]
    assert segments[4].text.endswith("of the night.\nClose it.") and len(segments) == 5
    assert [segment.has_translation for segment in segments] == [False, False, False, True, False]
    assert segments[0].pieces[1] == Tag("open", "<b>") and segments[0].location == "line 10, msgid"


def test_written():
    new = written(CATALOG, target_lang="deu_Latn")
    assert '"Language: de\\n"' in new
    assert 'msgid "Open <b>%s</b> & \\"close\\" it"\nmsgstr "oPEN <b>%S</b> & \\"CLOSE\\" IT"\n' in new
    assert '#| msgid "Old"\nmsgid "%d key"\nmsgid_plural "%d keys"\nmsgstr[0] "%D KEY"\nmsgstr[1] "%D KEYS"\n' in new
    assert '\n#, fuzzy\nmsgctxt "menu"\nmsgid "File"\nmsgstr "fILE"' in new
    assert new.count("fuzzy") == 4 and "#: door.c:10\n#, fuzzy, c-format\nmsgid" in new
    assert 'of "\n"the night.\\n"\n"Close it."\nmsgstr ""\n"tHE DOOR' in new
    assert 'OF "\n"THE NIGHT.\\n"\n"cLOSE IT."\n' in new
    assert new.endswith('msgstr ""\n\n#~ msgid "Gone"\n#~ msgstr "Weg"\n')


def test_work_of_people_stays():
    """By default what is translated and not fuzzy; a translation that is the same is written, and marked, too."""
    own = CATALOG.replace("Language: fr", "Language: de").encode()
    document = DocumentFile(own, "a", PoFormat(), FormatOptions(target_lang="de"))
    ((_, row),) = document.rows(["source"])
    lines = [pair["source"] for pair in row["translation"]]
    assert "File" not in lines
    data, written = document.translated({"a": {"translation": lines}})
    assert written.problems == [] and written.text().startswith("4 segments, 4 the same as before, ")
    assert b'\n\nmsgctxt "menu"\nmsgid "File"\nmsgstr "Datei"\n' in data and data.count(b"fuzzy") == 3
    assert b'#, fuzzy, c-format\nmsgid "Open <b>%s</b> & \\"close\\" it"\nmsgstr "Open <b>' in data
    with pytest.raises(DataError, match="its translations are in 'fr', and those into 'de' would be added to them"):
        parsed(PoFormat, CATALOG.encode(), target_lang="de")


def test_forms_of_people_stay():
    text = HEADER + 'msgid "a key"\nmsgid_plural "%d keys"\nmsgstr[0] "ein"\nmsgstr[1] ""\n'
    assert translated(PoFormat, text.encode(), swapped).endswith(b'msgstr[0] "ein"\nmsgstr[1] "%D KEYS"\n')


def test_language_of_other_fields_stays():
    new = written(CATALOG.replace('"Language', '"X-Poedit-Language: da\\n"\n"Language'), target_lang="de")
    assert '"X-Poedit-Language: da\\n"\n"Language: de\\n"\n' in new


def test_what_is_not_translated_stays():
    assert check_identity(PoFormat, CATALOG.encode()) == 3
    assert check_identity(PoFormat, CATALOG.replace("\n", "\r\n").encode()) == 3
    crlf = written(CATALOG.replace("\n", "\r\n"))
    assert crlf.replace("\r\n", "\n") == written(CATALOG) and crlf.count("\n") == crlf.count("\r\n")
    without_end = written(CATALOG[: CATALOG.index('\n\nmsgid "%s: ')])
    assert without_end.endswith('"cLOSE IT."')


@pytest.mark.parametrize(
    ("rule", "forms"),
    [
        ("nplurals=1; plural=0;", ["%D KEYS"]),
        ("nplurals=3; plural=(n==0 ? 0 : n==1 ? 1 : 2);", ["%D KEYS", "%D KEY", "%D KEYS"]),
        ("nplurals=INTEGER; plural=EXPRESSION;", ["%D KEY", "%D KEYS"]),
    ],
)
def test_plural_forms(rule, forms):
    new = written(CATALOG.replace("nplurals=2; plural=(n > 1);", rule))
    lines = [line for line in new.splitlines() if line.startswith("msgstr[")]
    assert lines == [f'msgstr[{number}] "{form}"' for number, form in enumerate(forms)]


def test_form_of_one_is_that_of_other_numbers():
    rule = "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 ? 1 : 2);"
    russian = HEADER.replace("nplurals=2; plural=(n > 1);", rule)
    day = 'msgid "a day"\nmsgid_plural "%d days"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    assert 'msgstr[0] "%D DAYS"\nmsgstr[1] "%D DAYS"\nmsgstr[2] "%D DAYS"\n' in written(russian + day)
    assert 'msgstr[0] "A DAY"\nmsgstr[1] "%D DAYS"\n' in written(HEADER + day)


def test_classes_of_godot():
    """A word in brackets is a class where the file names methods; elsewhere it is text."""
    texts = ['msgid "The [Node] here"\nmsgstr ""\n', 'msgid "Call [method x] of [Node]"\nmsgstr ""\n']
    found = [parsed(PoFormat, text.encode())[0].placeholders.search("The [Node]") for text in texts]
    assert [bool(match) for match in found] == [False, True]


def test_charset():
    template = CATALOG.replace("UTF-8", "CHARSET")
    assert "charset=UTF-8" in written(template) and "charset=CHARSET" in written(template, lambda pieces: None)
    latin = CATALOG.replace("UTF-8", "ISO-8859-1").replace("Datei", "Öffnen").encode("latin-1")
    assert b'"fILE"' in translated(PoFormat, latin, swapped, all=True)
    with pytest.raises(DataError, match="the charset ISO-8859-1 of the file has no 'ж'"):
        translated(PoFormat, latin, lambda pieces: ["ж"])


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")
def test_msgfmt(tmp_path):
    def carried(pieces):
        return [
            piece.replace("key", "Schlüssel").replace("Open", "Öffne") if isinstance(piece, str) else piece
            for piece in pieces
        ]

    file = tmp_path / "de.po"
    file.write_text(written(CATALOG, carried, target_lang="de"))
    subprocess.run(["msgfmt", "-c", "--use-fuzzy", "-o", tmp_path / "de.mo", file], check=True)
    catalog = gettext.GNUTranslations(io.BytesIO((tmp_path / "de.mo").read_bytes()))
    assert catalog.gettext('Open <b>%s</b> & "close" it') == 'Öffne <b>%s</b> & "close" it'
    assert [catalog.ngettext("%d key", "%d keys", number) for number in (1, 2)] == ["%d Schlüssel", "%d Schlüssels"]
    assert subprocess.run(["msgcat", file], capture_output=True, check=True).stdout == file.read_bytes()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('msgid "a"\nmsgstr "b\n', "line 2: expected a comment or a string"),
        ("<html>\n", "line 1: expected"),
        ('msgid "a"\nmsgid "b"\nmsgstr ""\n', "line 2: msgid a second time"),
        ('msgid "a"\n', "line 1: an entry without msgstr"),
        (HEADER.replace("(n > 1)", "(n >"), "Plural-Forms of the header"),
        (HEADER.replace("UTF-8", "martian"), "martian"),
        (HEADER + "# \udcff", "it is not UTF-8"),
    ],
)
def test_broken(text, words):
    with pytest.raises(DataError) as error:
        parsed(PoFormat, text.encode("utf-8", "surrogateescape"))
    assert words in str(error.value)
