"""Files of strings: JSON, YAML, tables; what in a string is markup, a placeholder or no text."""

import json
from pathlib import Path
from random import Random

import pytest
import yaml
from support.markup_checks import check_identity, parsed, shuffled, translated, upper

from hf_docmt.files import DataError
from hf_docmt.formats import find_reader
from hf_docmt.formats.csv_tables import CsvFormat
from hf_docmt.formats.document_file import DocumentFile, FormatOptions
from hf_docmt.formats.document_format import Tag
from hf_docmt.formats.inline_strings import PLACEHOLDERS, is_text, plain_string, string_pieces
from hf_docmt.formats.json_strings import JsonStringsFormat
from hf_docmt.formats.segment_sentences import kept_apart
from hf_docmt.formats.string_files import locale_code
from hf_docmt.formats.yaml_strings import YamlStringsFormat

JSON = r"""{
  "@@locale": "en", "title" :"The \"old\" door\u2014open",
  "@title": {"description": "Not this"},
  "menu": {"file": "Open <b>{name}</b>\nNow", "id": "menu.file", "url": "https:\/\/x.org\/a",
    "n": [1, true, "One key", null]},
  "path": "One\/two or three", "plural": "{n, plural, one {# key} other {# keys}}", "none": "%s: {0}", "empty": ""
}
"""
YAML = Path(__file__).with_name("strings.yaml").read_text("utf-8")
CSV = 'id,English,"Note ""x"""\r\n1,Open the door,a\r\n2,"A key, ""old""",b\r\n3,12,c\r\n\r\n4,"Two\r\nlines",d'


def texts(format, data, **options):
    return [segment.text for segment in parsed(format, data.encode(), **options)[1]]


def written(format, data, change=upper, **options):
    return translated(format, data.encode(), change, **{"target_lang": "de", **options}).decode()


@pytest.mark.parametrize(
    "text",
    [
        "%s",
        "%1$s",
        "%(name)s",
        "%.2f",
        "%%",
        "%@",
        "%Y",
        "%-d",
        "%L1",
        "%<PRIu64>",
        "{name}",
        "{{ user.name }}",
        "{0:>10}",
    ]
    + ["{}", "${name}", "%{count}", "#{x}", "&nbsp;", "&#160;", "$t(key.a)", "$USER$", "@:menu.file"]
    + [
        "%name%",
        "%user.name%",
        ":name",
        ":attribute_2",
        "@count",
        "!link",
        "YYYY-MM-DD",
        "Ctrl+Shift+S",
        "--all",
        "--context[=CTX]",
        "-a",
        "C:\\a\\b",
    ],
)
def test_placeholders(text):
    assert PLACEHOLDERS.fullmatch(text)


@pytest.mark.parametrize(
    "text",
    ["100% sure", "a & b; c", "50%", "5 {", "5 $ or 3 @", "$5.00"]
    + [
        "12:30",
        "Note:text",
        "Note: text",
        "a::before",
        "Stop!Now",
        "Wow!",
        "5% or 6% off",
        "5%off%",
        ":)",
        "8:a",
        "(a):bc",
    ],
)
def test_no_placeholders(text):
    assert PLACEHOLDERS.search(text) is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("%ld%% of %ld%s", ["%ld", "%%", "%ld", "%s"]),
        ("%Y%m%d, %H.%M", ["%Y", "%m", "%d", "%H", "%M"]),
        ("Hi :name, (:count)!", [":name", ":count"]),
        ("%user%'s %n%", ["%user%", "%n"]),
    ],
)
def test_placeholders_side_by_side(text, names):
    assert PLACEHOLDERS.findall(text) == names


def test_markup_of_strings():
    def kinds(text):
        return [piece.kind if isinstance(piece, Tag) else piece for piece in string_pieces(text)]

    assert kinds('<a href="x">A <0>b</0></a><br/>') == ["open", "A ", "open", "b", "close", "close", "alone"]
    assert kinds("a < b and c > d") == ["a < b and c > d"]
    assert kinds("Run <file> </x>") == ["Run ", "alone", " ", "alone"]
    assert string_pieces("Run <file>")[1].text == "<file>"
    assert kinds("<b>a<i>b</b>c</i>") == ["open", "a", "alone", "b", "close", "c", "alone"]
    assert kinds("One\nTwo\nthree\n\nfour\n") == ["One", "alone", "Two\nthree", "alone", "four\n"]
    assert plain_string(string_pieces("a <b>c</b>\n D <x>")) == "a <b>c</b>\n D <x>"


def outline(text):
    """The text with signs in place of tags that open, close, are read, are not read, and break."""
    signs = {"open": "⟦", "close": "⟧"}
    return "".join(
        piece if isinstance(piece, str) else "/" if piece.breaks else signs.get(piece.kind, "●" if piece.text else "○")
        for piece in string_pieces(text)
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [  # Sphinx
        ("See :doc:`the lamp <a/b>`, :func:`f` or `it <https://x.org>`_.", "See ⟦the lamp⟧, ● or ⟦it⟧."),
        ("Set ``the name`` before |release| [1]_, as `Weblate`_ or Python_.", "Set ● before ● ●, as ● or ●."),
        ("The `project's page`__ is **very** *old*, 2*3*4 * 5", "The ⟦project's page⟧ is ⟦very⟧ ⟦old⟧, 2*3*4 * 5"),
        # BBCode
        ("[code]a *b*[/code] of [b]one[/b] [url=https://x.org/a]lamp[/url]", "● of ⟦one⟧ ⟦lamp⟧"),
        ("See [member Lamp.on][br][i]it[/i] [y/n] [b]", "See ●●⟦it⟧ [y/n] [b]"),
        ("[codeblock]\na = 1\n[/codeblock]\nNext", "●/Next"),
        # Textile, Markdown, MediaWiki
        ('h1. A "lamp":https://x.org/a_b is _old_, @a b@', "○A ⟦lamp⟧ is ⟦old⟧, ●"),
        ("The [lamp](x(1)) ![old](y.png) https://x.org/_a_/", "The ⟦lamp⟧ ⟦old⟧ https://x.org/_a_/"),
        ("* '''One''' [[A|lamp]]\n* [https://x.org page]", "○⟦One⟧ ⟦lamp⟧/○⟦page⟧"),
        # marks of keys
        ("&Open", "○Open"),
        ("Save _as", "○Save as"),
        ("Close the &window\tCtrl+W", "○Close the window/Ctrl+W"),
        ("E&xit", "○Exit"),
        ("E_xit", "○Exit"),
        ("~Open", "○Open"),
        ("AT&T, Q&A &amp; Drag&drop", "AT&T, Q&A &amp; Drag&drop"),
        ("Set _blank or file_name of rock & roll", "Set _blank or file_name of rock & roll"),
        ("Save && close", "Save ● close"),
        # bars, escapes, tabs
        ("One key|%count% keys", "One key/%count% keys"),
        ("{0} None|[1,19] Some|[20,Inf] Many", "{0} None/○Some/○Many"),
        ("one | many", "one/many"),
        ("Use [a|b] or a || b", "Use ● or a || b"),
        (r"One\nTwo C:\new\names", r"One/Two C:\new\names"),
        ("One.\n\tTwo\tthree", "One./Two/three"),
        ("  -a, --all  List all.  It is  long", "  -a, --all/List all.  It is/long"),
    ],
)
def test_marks_of_strings(text, shown):
    assert outline(text) == shown
    assert sorted(plain_string(string_pieces(text))) == sorted(text)


@pytest.mark.parametrize(
    ("text", "new"), [("¿Qué?", "¿&Qué?"), ("%s: {n} Ab", "%s: {n} &Ab"), ("文件", "文件"), ("12", "12")]
)
def test_the_mark_of_a_key_precedes_a_letter(text, new):
    assert plain_string([Tag("alone", "&"), *kept_apart([text], [PLACEHOLDERS])]) == new


@pytest.mark.parametrize(
    "text", ["F j, Y", "g:i a", "H:i", "d/m/Y", "yyyy-MM-dd", "d MMM yyyy, h:mm a", "DD.MM.YYYY HH:mm", "dd 'de' MMMM"]
)
def test_patterns_of_dates(text):
    assert not is_text(text) and is_text(f"{text} words")


@pytest.mark.parametrize("text", ["add", "n/a", "A/C", "Y/N", "I am", "Add a day", "mm"])
def test_no_patterns_of_dates(text):
    assert is_text(text)


@pytest.mark.parametrize(
    "text", ["https://a.b/c", "a@b.org", "./a/b", "#fff", "menu.file", "a_b", "userName", "%s", "12"]
)
def test_no_text(text):
    assert not is_text(text) and is_text(f"{text} and more")


@pytest.mark.parametrize("text", ["1.打开文件", "注意:请保存", "名称_说明", "/打开文件", "#标签说明", "Größe:Länge"])
def test_text_that_is_not_an_identifier(text):
    assert is_text(text)


def test_locale_codes():
    assert [locale_code(code, "-") for code in ("pt_BR", "deu_Latn", "zh-Hans", "swh")] == [
        "pt-BR",
        "de",
        "zh-Hans",
        "swh",
    ]


def test_json():
    assert texts(JsonStringsFormat, JSON) == [
        'The "old" door—open',
        "Open {name}\nNow",
        "One key",
        "One/two or three",
    ]
    assert parsed(JsonStringsFormat, JSON.encode())[1][2].location == "line 5, menu.n.2"
    text = written(JsonStringsFormat, JSON)
    assert '"@@locale": "de", "title" :"THE \\"OLD\\" DOOR\\u2014OPEN",\n' in text
    assert r'"Open <b>{name}</b>\nNow"'.replace("Open", "OPEN").replace("name", "NAME").replace("Now", "NOW") in text
    assert r'"path": "ONE\/TWO OR THREE"' in text and '"plural": "{n, plural, one {# key}' in text
    assert json.loads(text)["menu"]["url"] == "https://x.org/a" and "\\u00dc" in written(JsonStringsFormat, JSON, ü)
    assert "Ü" in written(JsonStringsFormat, '{"a": "One"}', ü)
    messages = '{"a": {"message": "Open $X$", "description": "not this", "placeholders": {"x": {"content": "$1 a"}}}}'
    assert texts(JsonStringsFormat, messages) == ["Open $X$"]


def ü(pieces):
    return ["Ü", *pieces]


def test_files_are_recognized(tmp_path):
    readers = {}
    for name, text in {
        "a.json": JSON,
        "b.arb": JSON,
        "c.json": '{"dlg-1": [{"utteranceID": 0, "speaker": "agent", "source": "Hi!", "target": "Hallo!"}]}',
        "d.yml": YAML,
        "e.csv": CSV,
        "f.tsv": "One.\tEins.\n",
    }.items():
        (tmp_path / name).write_text(text)
        readers[name] = find_reader({"path": str(tmp_path / name)}).name
    strings = {"a.json": "json", "b.arb": "json", "c.json": "chat"}
    assert readers == {**strings, "d.yml": "yaml", "e.csv": "csv", "f.tsv": "tsv"}


def test_yaml():
    assert texts(YamlStringsFormat, YAML) == [
        "The old door",
        'It\'s "old"',
        "Line\tone: é",
        "some words",
        "one word",
        "Two",
        "Dear %{name},\n\n  - a key\nBye",
        "A text that is folded.\nAnd more.\n",
        "  more\nless\n",
        "a plain text on two lines",
        "Key word",
        "Open it",
    ]
    text = written(YamlStringsFormat, YAML)
    assert text.startswith("# a comment\nde:\n  title: &title THE OLD DOOR  # behind it\n  again: *title\n")
    assert "  literal: |-\n    DEAR %{NAME},\n\n      - A KEY\n    BYE\n  folded: >  # why\n" in text
    assert (
        "    A TEXT THAT IS FOLDED.\n\n    AND MORE.\n\n  indented: |2\n      MORE\n    LESS\n  long: A PLAIN" in text
    )
    before, after = (yaml.safe_load(each) for each in (YAML, text))
    assert after["de"]["single"] == 'IT\'S "OLD"' and after["de"]["double"] == "LINE\tONE: É"
    assert after["de"]["date"] == {"format": "%Y-%m-%d", "word": "SOME WORDS"}
    assert list(before["en"]) == list(after["de"])


@pytest.mark.parametrize(
    "text", ["no", "a: b", "12", "- a", "a #b", "a, b", "[a", "it's", 'a "b"', " a ", "x\ny", "\x85", ""]
)
@pytest.mark.parametrize("name", ["title", "single", "double", "word", "literal", "folded", "indented"])
def test_yaml_texts_that_need_quotes(name, text):
    names = ["title", "single", "double", "word", "", "", "literal", "folded", "indented", "", "", ""]
    format, segments = parsed(YamlStringsFormat, YAML.encode())
    if name == "indented":  # its head says that the first line is further in
        text = f"  {text.lstrip()}"
    data = yaml.safe_load(format.write([[text] if name == each else None for each in names]))["en"]
    value = data["date"][name] if name == "word" else data[name]
    assert value == text or name in ("literal", "folded", "indented") and value.strip() == text.strip()
    assert len(data) == 14 and data["last"] == "Open it"


def test_characters_in_two_escapes():
    """A pair of escapes is one character, as JSON has it; half of one is no text."""
    text = r'{"a": "A key \ud83d\ude00", "b": "Half \ud83d"}'
    for format, new in ((JsonStringsFormat, r'{"a": "A KEY \ud83d\ude00"'), (YamlStringsFormat, '{"a": "A KEY 😀"')):
        assert texts(format, text) == ["A key 😀"]
        assert written(format, text) == new + r', "b": "Half \ud83d"}'


def test_yaml_texts_that_end_in_blanks():
    """Blanks that are no white space of YAML belong to a text; those behind a block are not written twice."""
    assert written(YamlStringsFormat, "a: Two words:\u00a0\nb: c\n", lambda pieces: [": x"]) == 'a: ": x"\nb: ": x"\n'
    for text in ("a: >-\n  ab c  \n  \nb: 1\n", "a: >+\n  ab\n\n   \n", "a: |\n  ab \u00a0\n"):
        assert yaml.safe_load(written(YamlStringsFormat, text))["a"] == yaml.safe_load(text)["a"].upper()


def test_csv():
    assert texts(CsvFormat, CSV, columns=("English",)) == ["Open the door", 'A key, "old"', "Two\r\nlines"]
    assert texts(CsvFormat, CSV, columns=("3",)) == ["a", "b", "c", "d"]
    text = written(CsvFormat, CSV, columns=("2",))
    assert text == CSV.replace("Open the door", "OPEN THE DOOR").replace("A key", "A KEY").replace(
        '"old', '"OLD'
    ).replace("Two\r\nlines", "TWO\r\nLINES").replace('OLD""', 'OLD""')
    assert written(CsvFormat, "a;b\nOne;Two, three\n", columns=("b",)) == "a;b\nOne;TWO, THREE\n"
    assert written(CsvFormat, "a\tb\nx\t\n", columns=("a",)) == "a\tb\nX\t\n"
    assert written(CsvFormat, "a,b\nOne,x\n", lambda pieces: ['Ein "Wort", ja'], columns=("a",)) == (
        'a,b\n"Ein ""Wort"", ja",x\n'
    )


@pytest.mark.parametrize(
    ("data", "new"),
    [
        ("id;b;c\n1;Red lamp;Old\n2;Old house\n", "id;b;c\n1;RED LAMP;Old\n2;OLD HOUSE\n"),
        ("id;b\n1;One, two\n\n2\n", "id;b\n1;ONE, TWO\n\n2\n"),
        ("sep=;\r\nid;b\r\n1;One, two\r\n", "sep=;\r\nid;b\r\n1;ONE, TWO\r\n"),
        ('"sep=^"\nb^c\nOne^x\n', '"sep=^"\nb^c\nONE^x\n'),
    ],
)
def test_delimiters(data, new):
    assert written(CsvFormat, data, columns=("b",)) == new


@pytest.mark.parametrize(
    ("format", "data", "options"),
    [(JsonStringsFormat, JSON, {}), (YamlStringsFormat, YAML, {}), (CsvFormat, CSV, {"columns": ("2", "3")})],
)
def test_what_is_not_translated_stays(format, data, options):
    for text in (data.encode(), b"\xef\xbb\xbf" + data.encode(), data.replace("\r", "").replace("\n", "\r\n").encode()):
        document, segments = parsed(format, text, **options)
        assert (
            document.write([None] * len(segments)) == document.write([list(each.pieces) for each in segments]) == text
        )
    assert b"\xef\xbb\xbf" == translated(format, b"\xef\xbb\xbf" + data.encode(), upper, **options)[:3]


@pytest.mark.parametrize("seed", range(100))
def test_made_strings(seed):
    """Objects of random strings are read again from JSON, YAML and tables with all strings changed."""
    random = Random(seed)
    words = [
        "key",
        "door",
        "<b>",
        "</b>",
        "<br/>",
        "{n}",
        "%s",
        "é",
        "'",
        '"',
        "\\",
        ":",
        "#",
        "-",
        ",",
        "\n",
        "😀",
        "no",
    ]
    strings = ["Word " + " ".join(random.choices(words, k=random.randint(0, 8))) for _ in range(20)]
    data = {f"k{number}": string for number, string in enumerate(strings)}
    style = random.choice([None, "'", '"', "|", ">"])
    width, unicode = random.choice([(20, True), (1000, True), (60, False)])
    dumped = yaml.safe_dump(data, default_style=style, width=width, allow_unicode=unicode, sort_keys=False)
    new = translated(YamlStringsFormat, dumped.encode(), upper)
    assert [*yaml.safe_load(new).values()] == [plain_string(upper(string_pieces(string))) for string in strings]
    dumped = json.dumps(data, ensure_ascii=not unicode, indent=random.choice([None, 2]))
    check_identity(JsonStringsFormat, dumped.encode())
    moved = translated(JsonStringsFormat, dumped.encode(), lambda pieces: shuffled(pieces, random))
    assert [sorted(string) for string in json.loads(moved).values()] == [sorted(string) for string in strings]
    new = translated(JsonStringsFormat, dumped.encode(), upper)
    assert [*json.loads(new).values()] == [plain_string(upper(string_pieces(string))) for string in strings]


@pytest.mark.parametrize(
    ("format", "data", "words"),
    [
        (JsonStringsFormat, '{"a": "b",}', "line 1, column"),
        (JsonStringsFormat, "[" * 100_000, "nested too deep"),
        (JsonStringsFormat, "", "broken JSON"),
        (YamlStringsFormat, "a: [b\n", "line 2, column 1: PyYAML, which reads YAML 1.1, cannot read it (while"),
        (YamlStringsFormat, "a: &\u263a b\n", "; repair it, or write it so"),
        (YamlStringsFormat, "a: *b\n", "undefined alias"),
        (YamlStringsFormat, "a: \x01\n", "PyYAML, which reads YAML 1.1"),
        (YamlStringsFormat, "[" * 5000, "nested too deep"),
        (CsvFormat, CSV, "numbers of 1 'id', 2 'English', 3 'Note \"x\"'"),
        (CsvFormat, "", "no row with the names"),
        (CsvFormat, "sep=;\n", "no row with the names"),
        (CsvFormat, 'a,b\n"c,d\n', "line 2: quotes that do not end"),
    ],
)
def test_broken(format, data, words):
    with pytest.raises(DataError) as error:
        parsed(format, data.encode())
    assert words in str(error.value)


def test_missing_columns():
    with pytest.raises(DataError, match=r"no column 'english' \(did|no column 'english'; did you mean 'English'"):
        parsed(CsvFormat, CSV.encode(), columns=("english",))
    with pytest.raises(DataError, match="no column '4'"):
        parsed(CsvFormat, CSV.encode(), columns=("4",))
    with pytest.raises(DataError, match="it is not utf-8"):
        parsed(CsvFormat, b"a\n\xff\n", columns=("a",))


@pytest.mark.parametrize("style", ["|", ">", "|-", ">-"])
@pytest.mark.parametrize("value", ["Two words\n\nhere", "  Indented text", "\nBehind a line end", "At the end\n\n"])
@pytest.mark.parametrize("new", ["x", " x", "\n x", "x\n"])
def test_blocks_of_other_edges(style, value, new):
    """White space at the ends of a text, which the head of a block says, may be another one."""
    dumped = yaml.safe_dump({"a": value, "b": "Next"}, default_style=style[0]).encode()
    for pieces in ([new], [value.upper()]):
        text = translated(
            YamlStringsFormat, dumped, lambda old, own=pieces: own if old == string_pieces(value) else None
        )
        assert yaml.safe_load(text) == {"a": pieces[0], "b": "Next"}


def test_words_that_are_read_as_none():
    """A translation without letters, or that looks like an identifier, is no problem of the file."""
    for new in ("12", "iPhone"):
        document = DocumentFile(b'{"a": "Two words", "b": "A key"}', "a", JsonStringsFormat(), FormatOptions())
        data, written = document.translated({"a": {"translation": [new, "x"]}})
        assert json.loads(data) == {"a": new, "b": "x"} and written.problems == []


@pytest.mark.parametrize(
    ("text", "translation", "is_told"),
    [
        ("Of {x} and %s", "%s, {x}", False),
        ("Of %s", "Von", True),
        ("Of %s", "Von %s %s", True),
        ("Of %s", "Von %s, {x}", True),
        ("Letters of %s.", "مرحبا%s", False),
        ("See x.org", "Siehe https://x.org", False),
    ],
)
def test_lost_or_doubled_placeholders_are_reported(text, translation, is_told):
    document = DocumentFile(json.dumps({"a": text}).encode(), "a", JsonStringsFormat(), FormatOptions())
    told = ["a, line 1, a: the placeholders or URLs differ from the original; check them"]
    assert list(document._other_runs([[translation]])) == told * is_told


def test_folded_lines_that_are_indented():
    text = "a: >\n  Text here\n    further in\n  and back\nb: 1\n"
    new = written(YamlStringsFormat, text)
    assert new.startswith("a: |\n  TEXT HERE\n") and yaml.safe_load(new)["a"] == yaml.safe_load(text)["a"].upper()
