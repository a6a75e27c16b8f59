"""Translations side by side: which sentences and words differ, order, text and page, hostile text."""

import re
from html.parser import HTMLParser

import pytest

from hf_docmt.reports.side_by_side import ComparedSentence, SideBySide, changed_words, side_by_side_text, visible
from hf_docmt.reports.side_by_side_page import side_by_side_page

HOSTILE = "<script>alert(1)</script> & \"q\" 'r' {{ 7 * 7 }} {% raw %} \x1b[31m\u202etxt.exe <!-- ]]>"


def sentence(number, a, b, c=None, scores=(50.0, 50.0, 50.0), context=(), **changes):
    names = "abc" if c is not None else "ab"
    given = {"doc_id": "d1", "source": f"Source {number} .", "references": (f"Reference {number} .",)}
    translations, scores = dict(zip(names, (a, b, c))), dict(zip(names, scores))
    return ComparedSentence(
        number=number, context=context, translations=translations, scores=scores, **{**given, **changes}
    )


def compared(*sentences, **changes):
    systems = tuple(sentences[0].translations)
    return SideBySide(systems, "a", sentences, "chrF2|nrefs:1", **changes)


FOUND = compared(
    sentence(1, "Er ist alt .", "Sie ist alt .", scores=(60.0, 100.0)),
    sentence(2, "Wo ?", "Wo ?"),
    sentence(3, "Er ist nicht neu .", "Er ist neu .", scores=(70.0, 10.0), context=("Where ?", "It is old .")),
    sentence(4, "Ja", "Doch", scores=(20.0, 20.0)),
)


@pytest.mark.parametrize(
    ("base", "other", "pieces"),
    [
        ("Er ist alt .", "Er ist alt .", [("same", "Er ist alt .")]),
        ("Er ist alt .", "Sie ist alt .", [("new", "Sie"), ("same", " "), ("same", "ist alt .")]),
        ("Er ist alt.", "Er ist neu.", [("same", "Er ist "), ("new", "neu"), ("same", ".")]),
        ("Er ist nicht alt", "Er ist alt", [("same", "Er ist "), ("gone", "nicht"), ("same", "alt")]),
        ("Er ist", "Er ist ja da", [("same", "Er ist "), ("new", "ja da")]),
        ("", "Neu hier", [("new", "Neu hier")]),
        ("Weg damit", "", [("gone", "Weg damit")]),
        ("", "", []),
        ("他很老。", "她很老。", [("new", "她"), ("same", "很老。")]),
        ("घर बड़ा है", "घर बड़ी है", [("same", "घर "), ("new", "बड़ी"), ("same", " "), ("same", "है")]),
        ("a  b", "a b", [("same", "a b")]),
    ],
)
def test_changed_words(base, other, pieces):
    assert changed_words(base, other) == pieces


@pytest.mark.parametrize("other", ["", "x", " a  b\tc ", "a b c d", "c b a", "她 is\u00a0da .", "aa\u0301b \u202e)("])
def test_pieces_join_to_the_translation(other):
    for base in ("", "a b c", "她 ist da ."):
        assert "".join(text for change, text in changed_words(base, other) if change != "gone") == other


def test_selection():
    assert [one.number for one in FOUND.select().sentences] == [1, 3, 4]
    assert [one.number for one in FOUND.select("all").sentences] == [1, 2, 3, 4]
    assert [one.number for one in FOUND.select("changed", "change").sentences] == [3, 1, 4]
    assert [one.number for one in FOUND.select("all", "change").sentences] == [3, 1, 2, 4]
    third = compared(sentence(1, "x", "x", "y"), sentence(2, "x", "x", "x"))
    assert [one.number for one in third.select().sentences] == [1]
    alone = SideBySide(("a",), "a", FOUND.sentences, "")
    assert alone.select().sentences == () and len(alone.select("all", "change").sentences) == 4
    assert FOUND.summary() == ["b: 3 of 4 sentences differ from a; 1 score higher, 1 lower, 1 the same"]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            {"sentences": "change"},
            "unknown choice of sentences 'change': known are changed, all; did you mean 'changed'",
        ),
        ({"order": "size"}, "unknown order 'size': known are document, change"),
    ],
)
def test_unknown_choices_are_refused(choice, message):
    with pytest.raises(ValueError, match=message):
        FOUND.select(**choice)


def test_text():
    assert side_by_side_text(FOUND.select(), FOUND.summary()).splitlines() == [
        "b: 3 of 4 sentences differ from a; 1 score higher, 1 lower, 1 the same",
        "{+new+} and [-gone-] against a; scores: chrF2|nrefs:1",
        "",
        "d1, sentence 1",
        "  source             Source 1 .",
        "  reference          Reference 1 .",
        "  a            60.0  Er ist alt .",
        "  b           +40.0  {+Sie+} ist alt .",
        "",
        "d1, sentence 3",
        "  context            Where ?",
        "  context            It is old .",
        "  source             Source 3 .",
        "  reference          Reference 3 .",
        "  a            70.0  Er ist nicht neu .",
        "  b           -60.0  Er ist [-nicht-] neu .",
        "",
        "d1, sentence 4",
        "  source             Source 4 .",
        "  reference          Reference 4 .",
        "  a            20.0  Ja",
        "  b            +0.0  {+Doch+}",
    ]


def test_a_terminal_obeys_nothing_in_the_text():
    hostile = compared(sentence(1, HOSTILE, f"{HOSTILE}\nb", doc_id=HOSTILE, source=None))
    text = side_by_side_text(hostile)
    assert "\x1b" not in text and "\u202e" not in text and "\\u001b[31m\\u202etxt.exe" in text
    assert len(text.splitlines()) == 1 + 1 + 4 and "source" not in text
    assert visible("a\nb\ud800\u202e", bidirectional=False) == "a b\\ud800\u202e"


class Page(HTMLParser):
    """Tags that are open at each text, and the texts; a tag that is closed wrongly is an error."""

    def __init__(self, page):
        super().__init__()
        self.open, self.texts, self.tags = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append((self.open[-1], data))

    def of(self, tag):
        return [text for found, text in self.texts if found == tag]


def test_page():
    page = Page(side_by_side_page(FOUND.select(), FOUND.summary()))
    assert page.of("ins")[1:] == ["Sie", "Doch"] and page.of("del")[1:] == ["nicht"]
    assert page.of("dt") == [*["source", "reference"], *["context"] * 2, *["source", "reference"] * 2]
    assert page.of("span") == ["60.0", "+40.0", "70.0", "-60.0", "20.0", "+0.0"]
    classes = [attributes["class"] for tag, attributes in page.tags if tag == "span"]
    assert classes == ["same", "up", "same", "down", "same", "same"]
    assert "b: 3 of 4 sentences differ from a; 1 score higher, 1 lower, 1 the same" in page.of("bdi")
    shown = re.findall(r'<p dir="auto">(.*?)</p>', side_by_side_page(FOUND.select()), re.DOTALL)
    texts = [re.sub(r"\s+", " ", re.sub("<[^>]+>", "", text)) for text in shown]
    assert texts[3] == "Er ist nicht neu ." and texts[1] == "Sie ist alt ."


def test_page_stands_alone_and_runs_nothing():
    """No script, no link, no image: hostile texts stay texts, also those of names, ids and languages."""
    one = sentence(1, HOSTILE, "b", doc_id=HOSTILE, source=HOSTILE, references=(HOSTILE,), context=(HOSTILE,))
    one = ComparedSentence(
        **{**vars(one), "translations": {HOSTILE: HOSTILE, "b": "b"}, "scores": {HOSTILE: 1.0, "b": 2.0}}
    )
    found = SideBySide((HOSTILE, "b"), HOSTILE, (one,), HOSTILE, target_lang='de" onload="x')
    text = side_by_side_page(found, found.summary())
    page = Page(text)
    assert {tag for tag, _ in page.tags} <= set(
        "html head meta title style body header h1 h2 ul li bdi p ins del code main article dl dt dd div span".split()
    )
    assert not any(name.startswith("on") or name in ("src", "href") for _, found in page.tags for name in found)
    assert "http" not in re.sub("http-equiv", "", text) and "\x1b" not in text
    assert (
        HOSTILE.replace("\x1b", "\\u001b") in page.of("dd")
        and ("p", {"dir": "auto", "lang": 'de" onload="x'}) in page.tags
    )
    assert "default-src 'none'" in text
    assert all(attributes.get("dir") == "auto" for tag, attributes in page.tags if tag == "dd")
