"""HTML: what is text, what stays, and that every page comes back as it was."""

import random
import re

import pytest
from support.format_checks import changed, check_round_trips, parsed, shuffled

from hf_docmt.files import DataError
from hf_docmt.formats.html_pages import HtmlFormat

PAGE = """<!DOCTYPE html>\r
<html lang="en" class='x'><head><meta charset="utf-8"><title>Locks &amp; keys</title>
<meta name="description" content="How to open"><meta name="author" content="Ann">
<style>p > b {color: red}</style></head>
<body><h1>The <em>old</em> door</h1>
<p class=a>We met <b>Ann</b>. <a href="x?a=1&b=2" title="To 'her'">She</a> had <code>make &amp; run</code><br/>
in it.</p>
<!-- a comment --><pre>not <b>this</b></pre><p translate="no">Nor this</p><p>12 &mdash; 3</p>
<ul><li>One<li>Two <span class="notranslate">Brand</span></ul><script>var a = "<p>no</p>";</script>
<p>Look: <img src=a.png alt="A &quot;key&quot;">, <b>bold <i>both</b> italic</i></p><input type="submit" value="Go">
<a href="y"><div>Block</div></a></body></html>
"""


def texts(data, **options):
    return [segment.text for segment in parsed(HtmlFormat, data, **options)[1]]


def test_what_is_translated():
    assert texts(PAGE.encode()) == [
        "Locks & keys",
        "How to open",
        "The old door",
        "We met Ann. She had make & run\nin it.",
        "To 'her'",
        "One",
        "Two Brand",
        "Look: , ",
        'A "key"',
        "bold ",
        "both",
        " italic",
        "Go",
        "Block",
    ]


def test_round_trips():
    assert check_round_trips(HtmlFormat, PAGE.encode()) > 8
    assert changed(HtmlFormat, changed(HtmlFormat, PAGE.encode())) == PAGE.encode()


def test_only_texts_change_and_the_language_is_set():
    data = changed(HtmlFormat, PAGE.encode(), lambda text: text.replace("e", "<é>"), target_lang="deu_Latn").decode()
    assert "<html lang=\"de\" class='x'>" in data and "W&lt;é&gt; m&lt;é&gt;t <b>Ann</b>" in data
    assert "title=\"To 'h<é>r'\"" in data
    for kept in ("<code>make &amp; run</code><br/>", 'content="Ann"', "not <b>this</b>", ">Nor this<", "<p>no</p>"):
        assert kept in data
    assert changed(HtmlFormat, b"<html><p>One", target_lang="de") == b'<html lang="de"><p>oNE'


def test_encodings():
    latin = '<meta charset="iso-8859-1"><p>caf\xe9 one</p>'.encode("latin-1")
    assert texts(latin) == ["café one"]
    assert changed(HtmlFormat, latin, lambda text: text + " дом") == latin[:-4] + b" &#1076;&#1086;&#1084;</p>"
    assert texts("\ufeff<p>é</p>".encode("utf-16-le")) == ["é"] and texts(b"<p>caf\xe9") == ["café"]
    assert check_round_trips(HtmlFormat, "\ufeff<p>One <b>é</b></p>".encode("utf-16-le")) == 2
    assert changed(HtmlFormat, b"<?xml version='1.0'?><p>a&#160;b</p>") == b"<?xml version='1.0'?><p>A&#160;B</p>"
    with pytest.raises(DataError, match=r"not in utf-8 as far as it says .*; save it as UTF-8"):
        texts(b'<meta charset="utf-8"><p>\xff')


@pytest.mark.parametrize(
    "data", [b"", b"plain", b"<p", b"<p>one</b> two <", b"<code>x", b"<!-- x", b"&amp", b"<p>&#x;&nosuch; a"]
)
def test_soup_is_read_and_kept(data):
    check_round_trips(HtmlFormat, data)


NAMES = "p div b i a span em h1 li td ul table code br img pre script".split()


def random_page(rng: random.Random) -> str:
    parts = []
    for _ in range(rng.randint(3, 40)):
        name = rng.choice(NAMES)
        attributes = rng.choice(["", "", " class=x", ' title="A text"', " alt='b > c'", " translate=no", " data-x"])
        markup = [f"<{name}{attributes}>", f"</{name}>", "<!-- c -->", "<br/>"]
        parts.append(rng.choice([*markup, "some text ", "\n ", "&lt;&amp;", "é", "One. Two."]))
    return "".join(parts)


@pytest.mark.parametrize("seed", range(200))
def test_random_pages(seed):
    check_round_trips(HtmlFormat, random_page(random.Random(seed)).encode(), seed)


def test_tags_of_a_translation_stay_balanced():
    rng = random.Random(0)
    document, segments = parsed(HtmlFormat, PAGE.encode())
    written = document.write([shuffled(segment.pieces, rng) for segment in segments]).decode()
    names = [sorted(re.findall(r"</?\w+", page)) for page in (PAGE, written)]
    assert names[0] == names[1]
