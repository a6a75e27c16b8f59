"""Subtitles: cues as sentences, and the translation put back, read again by pysubs2."""

import json
import random

import pysubs2
import pytest
from support.reader_checks import fails, read

from hf_docmt.data.documents import sentences
from hf_docmt.data.readers import get_reader, iterate_documents
from hf_docmt.data.readers.subtitles import distribute, reading_speed


def srt(*texts, gap=0, point=","):
    """A cue a second, `gap` seconds apart."""
    times = [(n * (1 + gap), n * (1 + gap) + 1) for n in range(len(texts))]
    cues = [f"00:00:{a:02}{point}000 --> 00:00:{b:02}{point}500\n{text}\n" for (a, b), text in zip(times, texts)]
    return "".join(f"{number}\n{cue}\n" for number, cue in enumerate(cues, 1))


def vtt(*texts):
    return "WEBVTT\n\n" + srt(*texts, point=".")


def read_sentences(path):
    (document,) = iterate_documents(path=path, source_lang="en")
    return document, sentences(document, "en")


def translated(path, translate):
    document, source = read_sentences(path)
    result = {"doc_id": document["doc_id"], "source": source, "translation": [translate(s) for s in source]}
    return get_reader("subtitles").render(json.loads(json.dumps(document)), result)  # the row may travel as JSON


@pytest.mark.parametrize(
    "texts, expected",
    [
        (["I know that", "you are here."], ["I know that you are here."]),
        (["I know.", "You are here."], ["I know.", "You are here."]),
        (["Yes. I know that", "you are\nhere. Good."], ["Yes.", "I know that you are here.", "Good."]),
        (["- Who is it?\n- Me, of", "course."], ["Who is it?", "Me, of course."]),
        (["-Who is it\n-Me"], ["Who is it", "Me"]),
        (["We talked to Mr.", "Smith."], ["We talked to Mr. Smith."]),
        (["Wait...", "Who is it?"], ["Wait...", "Who is it?"]),
        (["Wait...", "...for me."], ["Wait... for me."]),
        (["He said", "- No."], ["He said", "No."]),
        (["<i>I know that</i>", "<i>you are\nhere.</i>"], ["I know that you are here."]),
        (["<i>I know</i>\n<i>that</i>", "{\\an8}you <b>are</b> here."], ["I know that you are here."]),
        (["[DOOR SLAMS]", "Who is it?"], ["DOOR SLAMS", "Who is it?"]),
        (["[laughs] Who is", "it?"], ["[laughs] Who is it?"]),
        (["♪ I know ♪", "♪ that ♪", "♪♪"], ["I know", "that"]),
        (["", "I know", "", "it."], ["I know", "it."]),
        (["3 < 4 <3 you"], ["3 < 4 <3 you"]),
        (["It was in", "1984"], ["It was in 1984"]),
        (["♪"], [""]),
    ],
)
def test_sentences_of_cues(write, texts, expected):
    assert read_sentences(write("a.srt", srt(*texts)))[1] == expected
    assert read_sentences(write("a.vtt", vtt(*texts)))[1] == expected


def test_cues_that_are_far_apart_are_not_joined(write):
    assert read_sentences(write("a.srt", srt("I know", "that", gap=9)))[1] == ["I know", "that"]
    assert len(read_sentences(write("b.srt", srt(*["no full stop"] * 20)))[1]) == 4


@pytest.mark.parametrize(
    "text, sizes, pieces",
    [
        ("aa bb cc dd", [1, 1], ["aa bb", "cc dd"]),
        ("aaaaaa bb", [1, 1], ["aaaaaa", "bb"]),
        ("Danke", [5, 5], ["", "Danke"]),
        ("aa bb cc", [1, 2], ["aa", "bb cc"]),
        ("", [1, 1], ["", ""]),
        ("你好，世界。", [1, 1], ["你好，", "世界。"]),
        ("one two", [3], ["one two"]),
    ],
)
def test_translations_are_cut_between_words(text, sizes, pieces):
    assert sorted(distribute(text, sizes)) == sorted(pieces)


def test_distribution_loses_nothing():
    draw = random.Random(0)
    for _ in range(500):
        words = ["x" * draw.randint(1, 9) for _ in range(draw.randint(0, 12))]
        pieces = distribute(" ".join(words), [draw.randint(1, 40) for _ in range(draw.randint(1, 6))])
        assert "".join(pieces).replace(" ", "") == "".join(words)


def test_markup_comes_back(write):
    texts = [
        "{\\an8}<i>I know that</i>",
        "- Who?\n- <i>Me.</i>",
        "♪ La la ♪",
        "[BANG]",
        "♪♪",
        "<i>a</i>\n<i>b</i>",
        "...x",
    ]
    written = translated(write("a.srt", srt(*texts)), str.upper)
    expected = ["{\\an8}<i>I KNOW THAT</i>", "- WHO?\n- <i>ME.</i>", "♪ LA LA ♪", "[BANG]", "♪♪", "<i>A\nB</i>", "...X"]
    assert written == srt(*expected)


@pytest.mark.parametrize(
    "text, translation, expected",
    [
        ("[Anna] <i>The man is here.</i>", "[Anna] Der Mann ist hier.", "[Anna] <i>Der Mann ist hier.</i>"),
        ("- <i>He sleeps</i>.\n- It is late.", "Er schläft.", "- <i>Er schläft</i>.\n- Er schläft."),
        ("ANNA: <i>He sleeps</i>!", "ANNA: Er schläft?!", "ANNA: <i>Er schläft</i>?!"),
        ("(Anna) <i>He</i>\n<i>sleeps.</i>", "(Anna) Er schläft.", "(Anna) <i>Er\nschläft.</i>"),
        ("<i>He sleeps</i>.", "Er schläft", "<i>Er schläft</i>"),
        ("[Anna] <i>He sleeps.</i>", "Er schläft.", "<i>Er schläft.</i>"),
        ("<i>He sleeps</i>.", "", ""),
        ("He <i>sleeps</i>.", "Er schläft.", "Er schläft."),
        ("<i>He</i> sleeps.", "Er schläft.", "Er schläft."),
        ("He <b>is</b> <i>here</i>.", "Er ist da.", "Er ist da."),
    ],
)
def test_markup_behind_a_label_and_before_the_stop(write, text, translation, expected):
    """It stands around the same words; where it stood around some of them only, it is left out."""
    assert translated(write("a.srt", srt(text)), lambda _: translation) == srt(expected)
    assert "<" not in "".join(read_sentences(write("a.srt", srt(text)))[1])


@pytest.mark.parametrize("name, point", [("a.srt", ","), ("a.vtt", ".")])
def test_cues_without_counters(write, name, point):
    """A last line of digits is text there, whatever comes behind it."""
    times = [f"00:00:0{n}{point}000 --> 00:00:0{n}{point}900" for n in range(1, 6)]
    cues = "\n\n".join(
        f"{time}\n{text}" for time, text in zip(times, ["We won in\n1998", "12", "", "Then in\n\n", "2002"])
    )
    path = write(name, ("WEBVTT\n\n" if name == "a.vtt" else "") + cues + "\n")
    assert len(iterate_cues(path)) == 5
    assert read_sentences(path)[1] == ["We won in 1998 12", "Then in 2002"]


def test_coordinates_of_subrip_stay(write):
    text = srt("Who?", "Me.").replace("02,500\n", "02,500 X1:100 X2:200 Y1:10 Y2:20\n")
    assert translated(write("a.srt", text), str) == text and "X1" in text


@pytest.mark.parametrize("name, text", [("a.srt", srt("Who?", "Me.")), ("a.vtt", vtt("Who?", "Me."))])
def test_a_byte_order_mark_stays(write, name, text):
    assert translated(write(name, "\ufeff" + text), str) == "\ufeff" + text


def test_times_inside_the_text_of_webvtt(write):
    line = "so<00:00:00.480><c> we</c><00:00:00.719><c> go.</c>"
    text = f"WEBVTT\n\n00:00.160 --> 00:02.000\n{line}\n\n00:02.000 --> 00:03.000\nYes.\n"
    assert read_sentences(write("a.vtt", text))[1] == ["so we go.", "Yes."]


def test_webvtt_keeps_header_settings_and_entities(write):
    text = (
        "WEBVTT - title\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nname\n00:01.000 --> 00:02.000 align:start\n"
        "<v Mary>You &amp; me.</v>\n\nNOTE not shown\n\nother name\n00:02.000 --> 01:00:03.500\nWho?\n"
    )
    written = translated(write("a.vtt", text), lambda sentence: sentence.replace("Who", "a<b"))
    assert written == (
        "WEBVTT - title\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nname\n00:00:01.000 --> 00:00:02.000 "
        "align:start\n<v Mary>You &amp; me.</v>\n\nother name\n00:00:02.000 --> 01:00:03.500\na&lt;b?\n\n"
    )


def test_webvtt_cues_without_names(write):
    """None is made up, and the last line of a cue that no blank line ends is none."""
    cue = "{0}00:00:0{1}.000 --> 00:00:0{2}.000\n{3}\n"
    text = (
        "WEBVTT\n\n" + cue.format("", 1, 2, "One.") + cue.format("", 3, 4, "Two.\n") + cue.format("b\n", 5, 6, "Three.")
    )
    written = translated(write("a.vtt", text), lambda sentence: sentence)
    assert [line for line in written.splitlines() if line and "-->" not in line] == [
        "WEBVTT",
        "One.",
        "Two.",
        "b",
        "Three.",
    ]


TRANSLATIONS = ["", "Ja.", "1984", "-- > --> <", "a\n\nb", "C:\\new\\Home", "你好，世界。", "wort " * 60, "{\\p1} <i>"]


@pytest.mark.parametrize("seed", range(20))
def test_times_and_number_of_cues_stay(write, seed):
    """Whatever the cues and the translations are."""
    draw = random.Random(seed)
    words = ["I", "know.", "- No", "<i>", "</i>", "\n", "\n- ", "♪", "[x]", "...", "1984", "{\\an8}", "Mr.", "said"]
    texts = [" ".join(draw.choices(words, k=draw.randint(0, 6))).strip() for _ in range(30)]
    for path in (write("a.srt", srt(*texts)), write("a.vtt", vtt(*texts))):
        written = translated(path, lambda _: draw.choice(TRANSLATIONS))
        before = pysubs2.load(str(path))
        after = pysubs2.SSAFile.from_string(written, format_=path.suffix[1:])
        assert [(cue.start, cue.end) for cue in after] == [(cue.start, cue.end) for cue in before]
        again = write(f"again{path.suffix}", written)
        assert len(iterate_cues(again)) == 30


def iterate_cues(path):
    (document,) = iterate_documents(path=path, source_lang="en")
    return document["subtitles"]["cues"]


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("a.srt", "One.\n", ["line 1", "text before the first cue"]),
        ("a.srt", "1\n\n", ["no cues"]),
        ("a.srt", srt("a") + "2\n00:00:03 --> 00:00:04,000\nb\n", ["line 6", "'00:00:01,000 --> 00:00:02,000'"]),
        ("a.srt", srt("a", "at 00:00:01,000 and 00:00:02,000"), ["line 7", "not a line of two times"]),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> x\nb\n", ["line 3", "'00:00:01.000 --> 00:00:02.000'"]),
        ("a.vtt", "WEBVTT\n\n:00:01.000 --> 00:02.000\nb\n", ["line 3", "not a line of two times"]),
        ("a.vtt", "WEBVTT\n\n100:00:01.000 --> 100:00:02.000\nb\n", ["line 3", "100 hours"]),
        ("a.srt", srt("{\\p1}m 0 0"), ["line 2", "drawing"]),
    ],
)
def test_bad_files(write, name, text, words):
    fails(name, *words, target_lang=None, path=write(name, text))


@pytest.mark.parametrize("length", [None, "20"])
def test_lines_of_translations_are_limited(write, length):
    """By the option, or 42; more lines where words allow it, and no word is cut."""
    options = {} if length is None else {"max_line": length}
    (document,) = iterate_documents(path=write("a.srt", srt("One two.", "Three.")), source_lang="en", **options)
    long = "Donaudampfschifffahrtsgesellschaftskapitäne x"
    texts = ["Eins zwei drei vier fünf sechs sieben acht neun zehn elf.", long]
    written = get_reader("subtitles").render(document, {"doc_id": "a", "source": [], "translation": texts})
    first, second = (cue.text.split(r"\N") for cue in pysubs2.SSAFile.from_string(written))
    assert " ".join(first) == texts[0] and max(map(len, first)) <= int(length or 42)
    assert len(first) == (2 if length is None else 3) and " ".join(second) == long
    for wrong in ("9", "x", "-1"):
        fails("max_line is", "10 at least", target_lang=None, path=write("a.srt", srt("a")), max_line=wrong)


def test_cues_that_are_too_fast_are_reported(write):
    """Beside the plain count: 28 characters in a second, 3, and none in a cue of no time."""
    text = "1\n00:01:02,500 --> 00:01:03,500\n<i>One</i>\n\n2\n00:01:04,000 --> 00:01:05,000\nTwo.\n\n"
    path = write("a.srt", text + "3\n01:00:00,000 --> 01:00:00,000\n- Three.\n- Four.\n")
    texts = ["Das sind viele Wörter, a & b: Zwei.", "Drei", "Vier."]
    for limit, words in (
        ("17", "2 of 3 cues with more than 17"),
        ("40", "1 of 3 cues with more than 40"),
        (None, None),
    ):
        options = {"max_speed": limit} if limit else {}
        (document,) = iterate_documents(path=path, source_lang="en", **options)
        line = reading_speed(document, {"translation": texts})
        assert line is None if words is None else words in line and line.endswith("has 10000, at 1:00:00.000")
    (document,) = iterate_documents(path=write("b.srt", text), source_lang="en", max_speed="28")
    assert reading_speed(document, {"translation": ["x" * 28 + " " + "y" * 5]}) is None
    assert reading_speed(document, {"translation": ["x" * 29 + " " + "y" * 5]}).startswith(
        "b: 1 of 2 cues with more than 28 characters per second; the fastest has 29, at 0:01:02.500"
    )
    fails("max_speed is 'x', expected characters of a second, 5 at least", target_lang=None, path=path, max_speed="x")
    fails("max_speed is '4'", target_lang=None, path=path, max_speed="4")


def test_subtitles_have_no_target_side(write):
    fails("'subtitles' has no target side", path=write("a.srt", srt("a")))


def test_subtitles_are_found_by_their_first_bytes(write):
    for text in (srt("One."), vtt("One.")):
        assert sentences(read("auto", target_lang=None, path=write("a", text))[0], "en") == ["One."]


def test_translations_need_the_places_of_sentences():
    with pytest.raises(ValueError, match="translations of subtitles are put in the places"):
        get_reader("subtitles").check_repairs("none")
