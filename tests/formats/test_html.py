"""Pages: what of them is translated, and that all else stays."""

from random import Random

import pytest
from support.markup_checks import check_identity, check_shuffled, check_swapped, parsed, swapped, translated

from hf_docmt.files import DataError
from hf_docmt.formats.document_file import DocumentFile, FormatOptions
from hf_docmt.formats.document_format import Tag
from hf_docmt.formats.html import HtmlFormat

PAGE = """<!DOCTYPE html>
<html lang="en" xml:lang='en'><head><meta charset="utf-8"><title>A page about locks</title>
<meta name="description" content="How Jasmine &amp; Phil open doors"><style>p {color: red}</style></head>
<body class=x>\r\n<!-- a comment --><h1>The <em>old</em> door</h1>
<p>We met <b>Jasmine</b>. <a href="x.html" title="To the keys">She</a> had <code>make &lt;x></code> in room 422.<br>
It was late.
<ul><li>One key<li translate="no">Brand name<li>Two <kbd>keys</kbd><li>Three</ul><pre>do not touch</pre>
<p>See <img src=a.png alt="The &quot;red&quot; key"> and <b>this &lt;thing&gt;</b>&nbsp;now.</p><p>12</p>
<p class="a notranslate">Not me <b title="nor me">or me</b></p><button>Press <i class=i></i> me</button>
<input type=submit value='Send "it"' placeholder=here><script>var a = "<p>no</p>"</script><textarea>mine</textarea>
<table><tr><td>Name</td><td>Phil <span translate=no>Mr X</span> came</td></tr></table></body></html>
"""


def texts(data, **options):
    return [segment.text for segment in parsed(HtmlFormat, data if isinstance(data, bytes) else data.encode())[1]]


def test_what_is_translated():
    assert texts(PAGE) == [
        "A page about locks",
        "How Jasmine & Phil open doors",
        "The old door",
        "We met Jasmine. She had make <x> in room 422.\nIt was late.",
        "To the keys",
        "One key",
        "Two keys",
        "Three",
        "See  and this <thing>\xa0now.",
        'The "red" key',
        "Press  me",
        'Send "it"',
        "here",
        "Name",
        "Phil Mr X came",
    ]


def test_tags():
    segment = next(segment for segment in parsed(HtmlFormat, PAGE.encode())[1] if "Jasmine." in segment.text)
    assert segment.location == "line 6"
    assert segment.pieces == [
        "We met ",
        Tag("open", "<b>"),
        "Jasmine",
        Tag("close", "</b>"),
        ". ",
        Tag("open", '<a href="x.html" title=>'),  # the title is a segment of its own
        "She",
        Tag("close", "</a>"),
        " had ",
        Tag("alone", "<code>make &lt;x></code>", "make <x>"),
        " in room 422.",
        Tag("alone", "<br>", breaks=True),
        "\nIt was late.",
    ]


def test_written():
    written = translated(HtmlFormat, PAGE.encode(), swapped, target_lang="deu_Latn").decode()
    assert '<html lang="de" xml:lang="de">' in written
    assert '. <a href="x.html" title="tO THE KEYS">sHE</a> HAD <code>make &lt;x></code> IN ROOM' in written
    assert 'alt="tHE &quot;RED&quot; KEY"> AND <b>THIS &lt;THING&gt;</b>&nbsp;NOW.</p>' in written
    assert """value='sEND "IT"' placeholder="HERE">""" in written
    assert written.count("\r\n") == 1 and written.startswith("<!DOCTYPE html>\n")
    assert translated(HtmlFormat, b"<p>One.</p>", swapped, target_lang="de") == b"<p>oNE.</p>"
    assert b'<html lang="pt-BR">' in translated(HtmlFormat, b"<html><p>One.</html>", swapped, target_lang="pt_BR")


def test_languages_of_parts():
    """Those that are translated get the new language; others, and code, stay what they are."""
    page = "<html lang=en><p lang=en-GB>One <q lang=fr>deux</q> two<pre lang=en>x</pre><p translate=no lang=en>n"
    assert translated(HtmlFormat, page.encode(), swapped, target_lang="de").decode() == (
        '<html lang="de"><p lang="de">oNE <q lang=fr>deux</q> TWO<pre lang=en>x</pre><p translate=no lang=en>n'
    )


def test_texts_move_with_their_tags():
    def reverse(pieces):
        return pieces[::-1] if len(pieces) == 3 and pieces[1].kind == "alone" else pieces

    data = b'<p>One <img src="a" alt="key"> two</p>'
    moved = translated(HtmlFormat, data, lambda pieces: reverse(pieces) if len(pieces) > 1 else ["door"])
    assert moved == b'<p> two<img src="a" alt="door">One </p>'


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("<div>One<b>two<p>three</b></p>four</div>", ["One", "two", "three", "four"]),  # crossing blocks
        ("<p>a <i>b <b>c</i> d</b></p>", ["a", "b", "c", "d"]),  # crossing each other
        ("<p>One</b> two", ["One", " two"]),
        ("a < b &amp c &unknown; &#x41;", ["a < b & c &unknown; A"]),
        ("<dl><dt translate=no>A<dd>B</dl>", ["B"]),
        ("<p>漢<ruby>字<rt>ji</rt></ruby></p>", ["漢字"]),
        ("<p>One <!-- c --> two <svg><title>no</title></svg></p>", ["One  two "]),
        ("<p>One <![foo[ x ]]> two <![endif]>", ["One  two"]),  # comments, as in browsers
        ("<p>One <![CDATA[ x > y ]]> two", ["One  two"]),
        ("<title/><p/>One<br/>two<a id='x'/>", ["Onetwo"]),
        ("<textarea title='A note'>mine</textarea><pre title='Own' translate=no></pre>", ["A note"]),
        ("<p>See <iframe title='A film'>x</iframe></p><style title='x'></style>", ["See ", "A film"]),
        ("<map><area alt='The garden'></map><map class=notranslate><area alt='Mine'></map>", ["The garden"]),
        ("<select title=Tone><option>Own<optgroup label=Warm><option value=r>Red</select>", ["Tone", "Warm", "Red"]),
        ("<option value=r>Red<option value=b>Blue</option>", ["Red", "Blue"]),
        ("<p translate=no>A <i translate=yes>b <u translate=no>c<s translate>d</s></u></i><p>e", ["b cd", "d", "e"]),
        ("<p>A <b lang=fr-CA title=x>b<i xml:lang=en>c</i></b><div lang=de>d<p lang=en-GB>e</div>", ["A bc", "c", "e"]),
        ("<html lang=de><p lang=de>Eins<p lang=en>Two<p lang=fr>Trois<pre lang=en>x", ["Eins", "Two"]),
        ("<pre translate=no>a<b translate=yes>b</b></pre><p lang='' translate=yes>c", ["c"]),
        ("", []),
        ("<p>", []),
        ("One <b title='x", ["One <b title='x"]),
    ],
)
def test_rough_pages(text, segments):
    assert [segment.strip() for segment in texts(text)] == [segment.strip() for segment in segments]
    check_identity(HtmlFormat, text.encode())
    DocumentFile(text.encode(), "f", HtmlFormat(), FormatOptions())  # sentences want segments that are well nested


def test_encodings():
    latin = '<meta charset="ISO-8859-1"><p>caf\xe9 “x”</p>'.encode("cp1252")
    assert texts(latin) == ["café “x”"]
    assert translated(HtmlFormat, latin, lambda pieces: ["Ж“é"]).endswith("<p>&#1046;“é</p>".encode("cp1252"))
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        data = mark + PAGE.encode(encoding)
        assert texts(data) == texts(PAGE)
        check_identity(HtmlFormat, data)
        check_swapped(HtmlFormat, data, exact=False)
    assert texts('<?xml version="1.0" encoding="windows-1251"?><p>Ж</p>'.encode("cp1251")) == ["Ж"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<p>caf\xe9</p>", "utf-8, as it should be.*save it as UTF-8"),
        (b'<meta charset="klingon"><p>', "klingon"),
        (b"PK\x03\x04\0\0", "not text"),
    ],
)
def test_bad_input(data, message):
    with pytest.raises(DataError, match=message):
        texts(data)


def test_many_unclosed_elements():
    assert len(texts("<div><b>a</i>" * 20_000)) == 20_000
    assert len(texts("<b translate=no><b translate=yes>a" * 2_000)) == 2_000


@pytest.mark.parametrize("depth", [390, 410, 5000])
def test_elements_within_each_other_have_a_limit(depth):
    """Those around all words of a sentence are as deep as they like."""

    def translated(data):
        document = DocumentFile(data, "a", HtmlFormat(), FormatOptions())
        return document.translated({"a": {"translation": ["Eine Lampe."]}})[0]

    opened, closed = b"<b>" * depth, b"</b>" * depth
    assert translated(opened + b"A lamp." + closed) == opened + b"Eine Lampe." + closed
    if depth < 400:
        assert translated(b"A " + opened + b"lamp" + closed + b".").count(b"<b>") == depth
    else:
        with pytest.raises(DataError, match="^a, line 1: nested more than 400 deep; simplify it"):
            translated(b"A " + opened + b"lamp" + closed + b".")


def page(random: Random, depth: int = 3) -> str:
    """A random page of what a browser would read without repair."""
    parts = []
    for _ in range(random.randint(1, 4)):
        kind = random.choice("pphulqtixc") if depth else "p"
        if kind in "phl":
            name = {"p": "p", "h": "h2", "l": "figcaption"}[kind]
            attributes = random.choice(["", " class=x", ' title="My title"'])
            parts.append(f"<{name}{attributes}>{inline(random)}</{name}>")
        elif kind == "u":
            items = "\n".join(f"<li>{inline(random)}" for _ in range(random.randint(1, 3)))
            parts.append(f"<ul>{items}</ul>")
        elif kind == "q":
            parts.append(f"<blockquote>{page(random, depth - 1)}</blockquote>")
        elif kind == "t":
            parts.append(f"<table><tr><td>{inline(random)}<td>{page(random, depth - 1)}</table>")
        elif kind == "i":
            parts.append(inline(random))
        else:
            parts.append("<pre>x <b>y</b>\n z</pre>" if kind == "x" else "<!-- <p>no</p> -->")
    return random.choice(["\n", "", "\r\n  "]).join(parts)


def inline(random: Random, depth: int = 2) -> str:
    parts = []
    for _ in range(random.randint(1, 4)):
        kind = random.choice("wwwbalivec") if depth else "w"
        if kind == "w":
            parts.append(random.choice(["One", "two words", "&amp;", "&lt;b&gt;", "&nbsp;", "1.5", "a\nb"]))
        elif kind in "ba":
            name, attributes = ("b", "") if kind == "b" else ("a", ' href="x?a=1&b=2" title=\'It "is"\'')
            parts.append(f"<{name}{attributes}>{inline(random, depth - 1)}</{name}>")
        else:
            parts.append(
                {
                    "l": "<br>",
                    "i": '<img src="a" alt="A &amp; b">',
                    "v": "<code>x &lt; y</code>",
                    "e": "<i></i>",
                    "c": "<!-- c -->",
                }[kind]
            )
    return random.choice([" ", ""]).join(parts)


@pytest.mark.parametrize("seed", range(300))
def test_random_pages(seed):
    data = f"<body>{page(Random(seed))}</body>".encode()
    check_identity(HtmlFormat, data)
    check_swapped(HtmlFormat, data)
    check_shuffled(HtmlFormat, data, seed)
