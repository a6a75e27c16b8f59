"""Translations that are left as they were written (`repairs="none"`), with a scripted model."""

import pytest
from support.scripted_model import CHUNK, DOCUMENT, TRANSLATION, WINDOW, Scripted, segment
from support.slow_translation import settings
from support.tiny_models import SEP, build, random_text, word_tokenizer

FIRST, SECOND = segment("w6 w7", "w8"), segment("w9 w10 w11", "w12")  # the chunks of DOCUMENT


def raw(model, document=DOCUMENT, strategy="full", **arguments):
    """Lines and (sentence, kind, detail) of the repairs of one document."""
    arguments |= {"repairs": "none", "return_report": True}
    (found,), (report,) = model.translate_documents([document], word_tokenizer(), strategy, **arguments)
    return found, [tuple(repair.values()) for repair in report]


def test_as_repaired_where_nothing_is_to_repair():
    assert raw(Scripted(**CHUNK)) == (TRANSLATION, [])


def test_too_few_sentences():
    """The blank line stays where it is; nothing is translated again."""
    model = Scripted({tuple(FIRST): segment("w18 w19 w20")}, **CHUNK)
    found, report = raw(model)
    assert found == ["w18 w19 w20", "", "w21 w22 w23", "", "w24"]
    assert report == [(index, "misaligned", "1 sentences for 2: left as written") for index in (0, 1)]
    assert sorted(model.sources) == sorted([FIRST, SECOND])


def test_too_many_sentences():
    model = Scripted(
        {tuple(FIRST): segment("w18", "w19", "w20"), tuple(SECOND): segment("w21", "", "w24", "w5")}, **CHUNK
    )
    found, report = raw(model)
    assert found == ["w18", "w19", "w20", "", "w21", "", "", "w24", ""]
    assert [(sentence, kind) for sentence, kind, _ in report] == [(index, "misaligned") for index in (0, 1, 3, 5)]


def test_parts_of_one_sentence():
    """Of an over-long sentence parts meet in one line; what is beyond them are lines of their own."""
    long = "w6 w7 w8 w9"
    faults = {tuple(segment("w6 w7", "w8 w9")): segment("w18 w19", "w20", "w21")}
    for model, expected in (
        (Scripted(**CHUNK), ["w18 w19 w20 w21"]),
        (Scripted(faults, **CHUNK), ["w18 w19 w20", "w21"]),
    ):
        assert raw(model, [long], max_sentence_tokens=2)[0] == expected
    nothing = Scripted({tuple(segment("w6 w7", "w8 w9")): segment("w18")}, **CHUNK)
    assert raw(nothing, [long], max_sentence_tokens=2)[0] == ["w18"]


def test_translation_that_does_not_end():
    """What was cut off is reported, and left so."""
    found, report = raw(Scripted(**CHUNK), ["w6 w7", "w8"], max_new_tokens=4)
    assert found == ["w18 w19", "w20"]
    assert report == [(1, "length", "stopped after 4 tokens without an end: left as written")]
    found, report = raw(Scripted(**CHUNK), ["w6 w7", "w8"], max_new_tokens=2)
    assert found == ["w18 w19"]
    assert [kind for _, kind, _ in report] == ["misaligned", "misaligned", "length"]


def test_full_is_one_search_for_each_chunk():
    """With a real model: lines are what `generate` wrote for the chunks, cut at the separators."""
    model = build(**CHUNK)
    document = random_text([3, 1, 2, 4, 2])
    written = []
    generate = model.generate
    model.generate = lambda *args, **kwargs: written.append(generate(*args, **kwargs)) or written[-1]
    found, report = raw(model, document, **settings({"num_beams": 2}))
    model.generate = generate
    again = model.translate_documents([document], word_tokenizer(), "full", **settings({"num_beams": 2}))[0]
    assert len(again) == len(document) and found != again and any(kind == "misaligned" for _, kind, _ in report)
    lines = sum(int((row == SEP).sum()) + 1 for batch in written for row in batch)
    assert len(found) == lines


@pytest.mark.parametrize(
    ("written", "kept"), [(("w18 w19 w20",), "w18 w19 w20"), (("w18", "w19", "w20", "w21"), "w21"), (("w18", ""), "")]
)
def test_window_as_in_the_released_code(written, kept):
    """Lupo et al. (2023): what stands behind the last separator, all where there is none."""
    model = Scripted({tuple(segment("w6 w7", "w8", "w9 w10 w11")): segment(*written)}, **WINDOW)
    found, report = raw(model, strategy="sliding")
    assert found == [*TRANSLATION[:3], kept, *TRANSLATION[4:]]
    assert report == [(3, "misaligned", f"{len(written)} sentences for 3: left as written")]
    assert len(model.sources) == 4  # no sentence a second time


def test_window_with_future():
    model = Scripted({tuple(segment("w6 w7", "w8")): segment("w18", "w19", "w20")}, future_context=1)
    assert raw(model, ["w6 w7", "w8"], strategy="sliding")[0] == ["w19", "w20"]
    model = Scripted({tuple(segment("w6 w7", "w8")): segment("w18 w19")}, future_context=1)
    assert raw(model, ["w6 w7", "w8"], strategy="sliding")[0] == ["w18 w19", "w20"]


@pytest.mark.parametrize(
    ("fields", "arguments", "message"),
    [
        (CHUNK, {"repairs": "some"}, "repairs must be one of all, none, got 'some'"),
        (CHUNK, {"repairs": "none", "strategy": "sequential"}, "omit it, or use 'sliding' or 'full'"),
        (
            WINDOW | {"context_sides": "source"},
            {"repairs": "none"},
            "got strategy 'sliding', which writes .*: omit it",
        ),
    ],
)
def test_repairs_that_are_refused(fields, arguments, message):
    model = Scripted(**fields)
    with pytest.raises(ValueError, match=message):
        model.translate_documents([DOCUMENT], word_tokenizer(), **arguments)
    assert not model.calls


def test_strategies_by_sentence_have_no_repairs():
    for architecture in ("memory", "caching"):
        with pytest.raises(ValueError, match="which writes this model's sentences one by one: omit it"):
            build(architecture).translate_documents([["w6"]], word_tokenizer(), repairs="none")
