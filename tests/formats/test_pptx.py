"""Presentations: what is text, in which order, and that files come back as they were."""

import random

import pytest
from support.errors import refused
from support.markup_checks import (
    check_identity,
    check_shuffled,
    check_swapped,
    parsed,
    shown,
    translated,
    translated_file,
    upper,
)
from support.office_files import SLIDES, member, relations, with_main, zipped

from hf_docmt.formats.pptx import PptxFormat

SLIDE = "ppt/slides/slide1.xml"
BOLD = '<a:rPr b="1"><a:latin typeface="Arial"/></a:rPr>'
BREAK = '<a:br><a:rPr lang="en-US"/></a:br>'


def run(text, looks=""):
    return f"<a:r>{looks}<a:t>{text}</a:t></a:r>"


def slide(*paragraphs, kind="sld"):
    body = "".join(f"<a:p>{paragraph}</a:p>" for paragraph in paragraphs)
    return f'<p:{kind} {SLIDES}><p:cNvPr id="4" name="x" descr="A &quot;key&quot;"/>{body}</p:{kind}>'


def file(*paragraphs, **members):
    members = {"slides/slide1.xml": slide(*paragraphs)} | members
    ids = "".join(f'<p:sldId id="{256 + number}" r:id="{name}"/>' for number, name in enumerate(("s2", "s1")))
    targets = {"s1": ("slide", "slides/slide1.xml"), "s2": ("slide", "/ppt/slides/slide2.xml")}
    first = {"presentation.xml": f"<p:presentation {SLIDES}>{ids}</p:presentation>"}
    first["_rels/presentation.xml.rels"] = relations(**targets)
    return zipped({f"ppt/{name}": text for name, text in (first | members).items()})


@pytest.mark.parametrize(
    ("paragraph", "expected", "written"),
    [
        (run("One ", '<a:rPr lang="en-US" dirty="0"/>') + run("text"), ["One text"], run("ONE TEXT")),
        (run("12 - 3"), [], run("12 - 3")),
        (f"<a:pPr/>{run('One')}<a:endParaRPr/>", ["One"], f"<a:pPr/>{run('ONE')}<a:endParaRPr/>"),
        (run("One") + BREAK + run("two &lt;"), ["Onetwo <"], run("ONE") + BREAK + run("TWO &lt;")),
        (run("A longer ") + run("look", BOLD), ["A longer look"], run("A LONGER ") + run("LOOK", BOLD)),
        (
            run("Page ") + '<a:fld type="slidenum"><a:t>7</a:t></a:fld>',
            ["Page 7"],
            run("PAGE ") + '<a:fld type="slidenum"><a:t>7</a:t></a:fld>',
        ),
    ],
)
def test_what_is_translated(paragraph, expected, written):
    data = file(paragraph)
    assert shown(PptxFormat, data) == ['A "key"', *expected]
    assert f"<a:p>{written}</a:p>" in member(translated(PptxFormat, data, upper), SLIDE)


def test_tabs_are_columns():
    new, sentences, _ = translated_file(PptxFormat, file(run("Name:\tAnn ") + run("Lee\t\t5 keys", BOLD)))
    assert sentences == ['A "key"', "Name:", "Ann Lee", "5 keys"]
    assert run("NAME:\tANN") + run(" LEE\t\t5 KEYS", BOLD) in member(new, SLIDE)


def test_description_and_language():
    new = translated(PptxFormat, file(run("One ", BOLD)), upper, target_lang="de-DE")
    assert """descr='A "KEY"'""" in member(new, SLIDE)
    assert '<a:rPr lang="de" b="1">' in member(new, SLIDE)


def test_presentation_of_another_name():
    assert shown(PptxFormat, with_main(file(run("One")), "main.xml")) == ['A "key"', "One"]


def test_slides_are_in_their_order_and_have_their_notes():
    notes = {"slides/_rels/slide1.xml.rels": relations(n=("notesSlide", "../notesSlides/notesSlide1.xml"))}
    notes["notesSlides/notesSlide1.xml"] = slide(run("Note"), kind="notes")
    data = file(run("One"), **notes, **{"slides/slide2.xml": slide(run("Two"))})
    segments = parsed(PptxFormat, data)[1]
    texts = [(segment.part, segment.text) for segment in segments if "key" not in segment.text]
    assert texts == [("slide1", "Two"), ("slide2", "One"), ("slide2", "Note")]
    assert "NOTE" in member(translated(PptxFormat, data, upper), "ppt/notesSlides/notesSlide1.xml")


def random_file(random):
    def text():
        return " ".join(
            random.choice(("one", "&lt;Two&gt;", "thrée", "f&amp;r", "5")) for _ in range(random.randint(1, 4))
        )

    def paragraph():
        looks = ["", BOLD, '<a:rPr i="1"/>']
        runs = [run(text() + random.choice(("", " ")), looks[number % 3]) for number in range(random.randint(0, 4))]
        if random.random() < 0.3:
            runs.insert(random.randint(0, len(runs)), random.choice((BREAK, "<a:fld><a:t>x</a:t></a:fld>")))
        return "".join(runs)

    return file(*(paragraph() for _ in range(random.randint(1, 5))))


@pytest.mark.parametrize("seed", range(100))
def test_round_trips(seed):
    data = random_file(random.Random(seed))
    check_identity(PptxFormat, data)
    check_swapped(PptxFormat, data, exact=False)
    check_shuffled(PptxFormat, data, seed)


def test_broken_files_are_refused():
    refused("slide1.xml: line 1.*broken XML", parsed, PptxFormat, file("<a:r>"))
