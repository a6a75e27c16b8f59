"""Markup on translations: where it goes, and that none is lost, doubled or crossed whatever the fits are."""

import random

import pytest

from hf_docmt.data.readers.running_text import sentence_splitter
from hf_docmt.data.word_fits import position_fit, words_of
from hf_docmt.formats.document_format import Tag
from hf_docmt.formats.projection import markup_tree, project
from hf_docmt.formats.segment_sentences import SegmentSentences, _collapsed, _collapsed_lengths, kept_apart

WORDS = "the a b2 H2O it's café , . Anna 42 日本 x_y".split()


def written(pieces) -> str:
    """Pieces as a text in which a tag is its raw text."""
    return "".join(
        piece if isinstance(piece, str) else piece.text if piece.raw is None else piece.raw for piece in pieces
    )


def parsed(text: str) -> list:
    """The pieces of a text with tags such as <b>, </b>, <br/> (a break), <img/> and <code:text>."""
    pieces = []
    for part in text.replace("<", "\0<").replace(">", ">\0").split("\0"):
        if part.startswith("<code:"):
            pieces.append(Tag("alone", part, part[6:-1]))
        elif part.startswith("<"):
            kind = "close" if part[1] == "/" else "alone" if part.endswith("/>") else "open"
            pieces.append(Tag(kind, part, breaks=part == "<br/>"))
        elif part:
            pieces.append(part)
    return pieces


def fit_of(source: str, target: str, pairs: dict[str, str]) -> list:
    """Fits of 1 between the words of these pairs."""
    texts = [[text[slice(*place)] for place in words_of(text)] for text in (source, target)]
    return [
        [row, column, 1.0]
        for row, new in enumerate(texts[1])
        for column, old in enumerate(texts[0])
        if pairs.get(old, old) == new
    ]


def translated(text: str, *translations: str, **pairs: str) -> str:
    sentences = SegmentSentences(parsed(text), sentence_splitter("en"))
    fits = [fit_of(own.text, new, pairs) for own, new in zip(sentences.sentences, translations)]
    return written(sentences.translated(translations, fits))


def test_text_before_a_continued_element_stays_before_it():
    """The words of the element come first in the translation, and it ends in the next sentence."""
    assert translated(
        "One <img/><b>two. Three</b> four.", "zwei eins.", "Drei vier.", two="zwei", One="eins.", Three="Drei"
    ) == ("<img/><b>zwei eins. Drei</b> vier.")
    assert translated("<b>One. Two</b> three <img/>four.", "Eins.", "vier zwei drei.", Two="zwei", four="vier") == (
        "<b>Eins. vier zwei</b><img/> drei."
    )


@pytest.mark.parametrize(
    ("source", "translations", "expected"),
    [
        ("<b>Yesterday</b> we met.", ["Wir kamen gestern."], "Wir kamen <b>gestern</b>."),
        ("We met <i>old <b>Anna</b></i>.", ["Anna alt trafen wir."], "<i><b>Anna</b> alt</i> trafen wir."),
        ("One <b>two. Three</b> four.", ["Eins zwei.", "Drei vier."], "Eins <b>zwei. Drei</b> vier."),
        ("<b>One.  Two.</b> ", ["Eins.", "Zwei."], "<b>Eins.  Zwei.</b> "),
        ("H<sub>2</sub>O melts.", ["Es schmilzt H2O."], "Es schmilzt H<sub>2</sub>O."),
        ("We met<img/> Anna.", ["Anna kamen wir."], "Anna kamen<img/> wir."),
        ("We met <img/> <b>Anna</b>.", ["Wir Anna kamen."], "Wir <img/> <b>Anna</b> kamen."),
        ("Run <code:make> now.", ["Jetzt make starten."], "Jetzt <code:make> starten."),
        ("Run <code:make> now.", ["Jetzt starten."], "Jetzt starten. <code:make>"),
        ("Run <code:b> <code:b> now.", ["Jetzt b b starten."], "Jetzt <code:b> <code:b> starten."),
        ("Run <code:a> <b><code:b></b> now.", ["Jetzt b a starten."], "Jetzt <b><code:b></b> <code:a> starten."),
        ("Line one<br/>line two", ["Zeile eins", "Zeile zwei"], "Zeile eins<br/>Zeile zwei"),
        ("<p></p>Press <b>Save</b>", ["Auf Save klicken"], "<p></p>Auf <b>Save</b> klicken"),
        (" One\n  two ", ["Eins zwei"], " Eins zwei "),
        ("Open <a>the door</a>!", ["Tür auf!"], "<a>Tür</a> auf!"),
        ("Open <a>the door</a>, two.", ["Tür, zwei."], "<a>Tür</a>, zwei."),  # what ends the sentence stays outside
    ],
)
def test_markup_follows_words(source, translations, expected):
    pairs = dict(Yesterday="gestern", met="kamen", we="wir", old="alt", One="Eins", two="zwei", Three="Drei")
    pairs |= dict(four="vier", Two="Zwei", melts="schmilzt", Run="starten", now="Jetzt", door="Tür", the=",")
    assert translated(source, *translations, **pairs) == expected


@pytest.mark.parametrize(
    ("source", "translations", "expected"),
    [
        ("The king<s>2</s>.", ["O rei2."], "O rei<s>2</s>."),
        ("The king<s><a>[2]</a></s> is.", ["O rei[2] é."], "O rei<s><a>[2]</a></s> é."),
        ("In 2013 the king<s>3</s>.", ["Em 2013 o rei3."], "Em 2013 o rei<s>3</s>."),
        ("<a>Home</a><a>About us</a>", ["Casa", "Sobre nós"], "<a>Casa</a><a>Sobre nós</a>"),
        ("See <a>Home</a><a>Us</a> there", ["Veja Casa", "Nós lá"], "Veja <a>Casa</a><a>Nós</a> lá"),
        ("<i>Last</i><b>Name</b>", ["O", "Nome"], "<i>O</i><b>Nome</b>"),
        ("<b>un</b><i>believable</i>", ["unbelievable x"], "<b>un</b><i>believable</i> x"),
        ("<b>un</b>believable king", ["unbelievable rei"], "<b>un</b>believable rei"),
        ("10<s>6</s> kings", ["106 reis"], "10<s>6</s> reis"),
    ],
)
def test_words_that_touch_across_tags(source, translations, expected):
    assert translated(source, *translations, king="rei", Us="Nós", See="Veja", Home="Casa") == expected


def test_the_same_sentence_is_left_alone():
    sentences = SegmentSentences(parsed("One  <b>two</b>."), sentence_splitter("en"))
    assert sentences.translated(["One two."], [None]) is None
    assert sentences.translated([""], [None]) is None  # no translation: the text stays


def test_by_position_an_element_cuts_no_copy():
    sentences = SegmentSentences(parsed("<b>One <code:{{ n }}></b> old lamp"), sentence_splitter("en"))
    assert written(sentences.translated(["So eins {{ n }} Lampe"], [None])) == "<b>So eins <code:{{ n }}></b> Lampe"


def test_full_width_text_has_no_blanks_between_sentences():
    sentences = SegmentSentences(["One. Two."], sentence_splitter("en"))
    assert sentences.translated(["一。", "二。"], [None, None]) == ["一。二。"]


def test_no_sentence_ends_in_code():
    sentences = SegmentSentences(parsed("See <code:a. B> there. Yes."), sentence_splitter("en"))
    assert [sentence.text for sentence in sentences.sentences] == ["See a. B there.", "Yes."]


def test_a_placeholder_is_carried_and_never_costs_words():
    import re

    pieces = list(kept_apart(["Hi {name}, %d files"], [re.compile(r"%d"), re.compile(r"\{\w+\}")]))
    assert [piece.text for piece in pieces if isinstance(piece, Tag)] == ["{name}", "%d"]
    sentences = SegmentSentences(["Hi {name}, %d files"], sentence_splitter("en"), [re.compile(r"\{\w+\}|%d")])
    assert written(sentences.translated(["Hallo Dateien"], [None])) == "Hallo Dateien {name} %d"


def random_pieces(rng: random.Random, depth: int = 0) -> str:
    parts = []
    for _ in range(rng.randint(0 if depth else 1, 5)):
        kind = rng.random()
        if kind < 0.25 and depth < 4:
            name = rng.choice("bius")
            parts.append(f"<{name}{rng.randint(0, 9)}>{random_pieces(rng, depth + 1)}</{name}>")
        elif kind < 0.4:
            parts.append(rng.choice(["<img/>", "<br/>", f"<code:{rng.choice(WORDS)}>", "<x/>"]))
        else:
            parts.append(rng.choice(["", " ", "\n "]) + rng.choice(WORDS) + rng.choice([" ", "", ". The "]))
    return "".join(parts)


@pytest.mark.parametrize("seed", range(400))
def test_tags_are_there_once_and_nested(seed):
    rng = random.Random(seed)
    pieces = parsed(random_pieces(rng))
    sentences = SegmentSentences(pieces, sentence_splitter("en"))
    if not sentences.sentences:
        return
    targets, fits = [], []
    for sentence in sentences.sentences:
        target = " ".join(rng.choices(WORDS, k=rng.randint(1, 8)))
        rows, columns = len(words_of(target)), len(words_of(sentence.text))
        fit = [[rng.randrange(rows), rng.randrange(columns), rng.random()] for _ in range(2 * columns)]
        targets.append(target)
        fits.append(rng.choice([None, [], fit]))
    result = sentences.translated(targets, fits)
    if result is None:
        assert targets == [sentence.text for sentence in sentences.sentences]
        return
    tags = [[piece for piece in side if isinstance(piece, Tag)] for side in (pieces, result)]
    assert sorted(map(id, tags[0])) == sorted(map(id, tags[1]))
    stack = []
    for tag in tags[1]:
        if tag.kind == "open":
            stack.append(tag.raw[1])
        elif tag.kind == "close":
            assert stack.pop() == tag.raw[2]
    assert stack == []
    text = "".join(piece if isinstance(piece, str) else piece.text for piece in result)
    dropped = sum(len(tag.text.split()) + 2 for tag in tags[0] if tag.text)
    assert len(text.split()) >= sum(len(target.split()) for target in targets) - dropped - len(targets)


def test_an_element_without_words_stays_inside_its_parent():
    places = [(0, Tag("open", "<b>")), (7, Tag("close", "</b>")), (7, Tag("alone", "<br>"))]
    root = markup_tree(7, [(place, tag, False) for place, tag in places], 0)
    assert (
        written(project(root, "One two", "Eins zwei", position_fit("One two", "Eins zwei"))) == "<b>Eins zwei</b><br>"
    )


@pytest.mark.parametrize("before", ["One", "One "])
@pytest.mark.parametrize("after", ["two", " two"])
def test_blank_tag_next_to_a_blank(before, after):
    """A tag whose text is a blank, as of subtitles, takes no word away where it is one blank with another."""
    sentences = SegmentSentences([before, Tag("alone", "\\h", " "), after, " three"], lambda text: [text])
    assert [sentence.text for sentence in sentences.sentences] == ["One two three"]
    pieces = sentences.translated(["Eins two drei"], [None])
    assert written(pieces).replace("\\h", " ").split() == ["Eins", "two", "drei"]


def test_lengths_of_beginnings():
    """Of a text whose runs of white space are one blank, in one pass."""
    text = "a  b\u00a0\n c\td.  e"
    assert _collapsed_lengths(text) == [len(_collapsed(text[:size] + ".")) - 1 for size in range(len(text) + 1)]
