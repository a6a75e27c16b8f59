"""Translations side by side: which sentences and words differ, order, text and page, hostile text."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from hf_docmt.reports.side_by_side import ComparedSentence, SideBySide, changed_words, side_by_side_text, visible
from hf_docmt.reports.side_by_side_page import side_by_side_page

HOSTILE = "<script>alert(1)</script> & \"q\" 'r' {{ 7 * 7 }} {% raw %} \x1b[31m\u202etxt.exe <!-- ]]>"


def sentence(number, a, b, c=None, scores=(50.0, 50.0, 50.0), context=(), **changes):
    names = "abc" if c is not None else "ab"
    given = {"doc_id": "d1", "source": f"Source {number} .", "references": (f"Reference {number} .",)}
    given |= {"translations": dict(zip(names, (a, b, c))), "scores": dict(zip(names, scores))}
    return ComparedSentence(number=number, context=context, **given | changes)


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
    rows = replace(FOUND, scores={"BLEU": {"a": 30.0, "b": 28.26}}).overview()
    assert list(map(str, rows)) == [
        "a: BLEU 30.0",
        "b: BLEU -1.7; 3 of 4 sentences differ from a; 1 score higher, 1 lower, 1 the same",
    ]


def test_changed_by_context():
    """Where one of two systems translated sentences alone, and the other did not; the baseline is one of them."""
    changed = [
        [found.is_changed_by_context(one) for one in found.sentences] for found in map(read_alone, ("", "a", "ab"))
    ]
    assert changed == [[False] * 4, [True, False, True, True], [False] * 4]


def read_alone(systems):
    return replace(FOUND, alone=frozenset(systems))


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
    assert side_by_side_text(FOUND.select(), FOUND.overview()).splitlines() == [
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
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append((self.open[-1], data))

    def of(self, tag):
        return [text for found, text in self.texts if found == tag]


def test_page():
    page = Page(side_by_side_page(FOUND.select(), FOUND.overview()))
    assert page.of("ins")[1:] == ["Sie", "Doch"] and page.of("del")[1:] == ["nicht"]
    assert page.of("dt") == [*["source", "reference"], *["context"] * 2, *["source", "reference"] * 2]
    assert page.of("bdi").count("d1") == 3
    assert page.of("span") == ["60.0", "+40.0", "70.0", "-60.0", "20.0", "+0.0"]
    classes = [attributes["class"] for tag, attributes in page.tags if tag == "span"]
    assert classes == ["same", "up", "same", "down", "same", "same"]
    assert "3 of 4 sentences differ from a; 1 score higher, 1 lower, 1 the same" in page.of("td")
    shown = re.findall(r'<p dir="auto">(.*?)</p>', side_by_side_page(FOUND.select()), re.DOTALL)
    texts = [re.sub(r"\s+", " ", re.sub("<[^>]+>", "", text)) for text in shown]
    assert texts[3] == "Er ist nicht neu ." and texts[1] == "Sie ist alt ."


def test_page_is_self_contained_and_safe():
    """No script but its own, no other file: hostile texts stay texts, also those of names, ids and languages."""
    one = sentence(1, HOSTILE, "b", doc_id=HOSTILE, source=HOSTILE, references=(HOSTILE,), context=(HOSTILE,))
    one = replace(one, translations={HOSTILE: HOSTILE, "b": "b"}, scores={HOSTILE: 1.0, "b": 2.0})
    found = SideBySide((HOSTILE, "b"), HOSTILE, (one,), HOSTILE, target_lang='de" onload="x')
    text = side_by_side_page(found, found.overview())
    page = Page(text)
    tags = "html head meta title style body header h1 table thead tbody tr th td bdi p ins del code form label input"
    tags += " select option output button main article h2 a dl dt dd div span script"
    assert {tag for tag, _ in page.tags} <= set(tags.split())
    assert not any(name.startswith("on") or name == "src" for _, found in page.tags for name in found)
    assert all(found["href"].startswith("#") for tag, found in page.tags if tag == "a")
    (script,) = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{allowed}'" in text and "unsafe-inline'; script" in text
    assert "http" not in re.sub("http-equiv", "", text) and "\x1b" not in text
    assert HOSTILE.replace("\x1b", "\\u001b") in page.of("dd")
    assert ("p", {"dir": "auto", "lang": 'de" onload="x'}) in page.tags
    assert "default-src 'none'" in text
    assert all(attributes.get("dir") == "auto" for tag, attributes in page.tags if tag == "dd")


def test_links_and_contexts_of_a_page():
    """Every sentence has an id that its heading links to; all but two sentences of context are folded."""
    before = tuple(f"Before {number}" for number in range(5))
    shown = compared(sentence(7, "a", "b", doc_id="d 1/ä", context=before), sentence(8, "a", "a", context=before[:2]))
    page = Page(side_by_side_page(shown))
    ids = [attributes["id"] for tag, attributes in page.tags if tag == "article"]
    assert ids == ["d%201%2F%C3%A4-7", "d1-8"]
    assert [attributes["href"] for tag, attributes in page.tags if tag == "a"] == [f"#{id}" for id in ids]
    assert page.of("summary") == ["3 more before"]
    assert [text for text in page.of("dd") if text.startswith("Before")] == [*before[3:], *before[:2]]
    assert [attributes["data-deltas"] for tag, attributes in page.tags if tag == "article"] == ["[0.0]", "[null]"]


@pytest.fixture
def tab(browser, tmp_path):
    """A page of 1,001 sentences of which every tenth is changed, open in a browser; no script fails or is refused."""
    pairs = [(f"a {number}", f"b {number}" if number % 10 == 0 else f"a {number}") for number in range(1, 1002)]
    many = compared(*(sentence(number, *pair, scores=(50.0, number % 100)) for number, pair in enumerate(pairs, 1)))
    file, faults = tmp_path / "page.html", []
    file.write_text(side_by_side_page(replace(many, alone=frozenset("a")), many.overview()), "utf-8")
    tab = browser.new_page()
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    tab.goto(file.as_uri())
    yield tab
    tab.close()
    assert not faults


@pytest.mark.slow
def test_page_in_a_browser(tab):
    """Sections, search, pages of 500 sentences, and links to sentences of other pages."""

    def state():
        headings = tab.locator("h2").all_text_contents()
        return tab.locator("output").inner_text(), len(headings), headings[0] if headings else None

    assert state() == ("1 to 500 of 1001 sentences", 500, "d1, sentence 1")
    views = {"changed": (10, 100), "gains": (90, 40), "losses": (100, 50), "context": (10, 100)}
    for view, (first, count) in views.items():
        tab.get_by_label("Show").select_option(view)
        assert state() == (f"{count} sentences", count, f"d1, sentence {first}")
    tab.get_by_label("Show").select_option("all")
    tab.get_by_label("Words").fill("B 99")
    assert state() == ("1 sentence", 1, "d1, sentence 990")
    tab.get_by_label("Words").fill("")
    tab.get_by_role("button", name="Later").click()
    tab.get_by_role("button", name="Later").click()
    assert state() == ("1001 to 1001 of 1001 sentences", 1, "d1, sentence 1001")
    tab.goto(f"{tab.url.split('#')[0]}#d1-620")
    assert tab.locator("article:target h2").inner_text() == "d1, sentence 620"
    assert state() == ("501 to 1000 of 1001 sentences", 500, "d1, sentence 501")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility_of_the_page(browser, scheme):
    axe = pytest.importorskip("axe_core_python.sync_playwright").Axe()
    tab = browser.new_page(color_scheme=scheme)
    tab.set_content(side_by_side_page(FOUND, FOUND.overview()))
    assert [(one["id"], one["nodes"][0]["html"]) for one in axe.run(tab)["violations"]] == []
    tab.close()


@pytest.mark.slow
def test_page_without_scripts(browser):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.set_content(side_by_side_page(FOUND, FOUND.overview()))
    assert tab.locator("article").count() == 4 and not tab.locator("form").is_visible()
    context.close()
