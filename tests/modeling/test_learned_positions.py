"""Learned positions that are too few for a segment or prefix: fewer sentences, reported; other documents as they were.

Words cost one token; every word is translated by one word. A segment costs its words, separators and the end.
"""

import pytest
from support.scripted_model import Scripted, prefix, segment, translated
from support.tiny_models import WORDS, build, random_text, word_tokenizer

SHORT = ["w6 w7", "w8", "w9 w10 w11"]
LONG = [" ".join(WORDS[:6]), " ".join(WORDS[6:12]), " ".join(WORDS[12:18]), "w9"]


def ids(sentence: str) -> list[int]:
    return [int(word[1:]) for word in sentence.split()]


def true(document: list[str]) -> list[str]:
    return [" ".join(f"w{token}" for token in translated(ids(sentence))) for sentence in document]


def model_of(positions: int, **fields) -> Scripted:
    return Scripted(position_type="learned", max_position_embeddings=positions, **fields)


def translate(model, strategy: str, documents=(SHORT, LONG), **settings):
    return model.translate_documents(list(documents), word_tokenizer(), strategy, return_report=True, **settings)


def positions_of(report: list[dict]) -> list[tuple[int, str]]:
    assert {repair["kind"] for repair in report} <= {"positions"}
    return [(repair["sentence"], repair["detail"].split(":")[0]) for repair in report]


@pytest.mark.parametrize("repairs", ["all", "none"])
def test_sliding(repairs):
    """Two sentences of 6 words, a separator and the end are 14 tokens; with one more sentence of a word they are 16."""
    model = model_of(15, past_context=2)
    found, (short, long) = translate(model, "sliding", max_new_tokens=14, repairs=repairs)
    assert found == [true(SHORT), true(LONG)] and short == []
    assert positions_of(long) == [(2, "2 sentences instead of 3"), (3, "2 sentences instead of 3")]
    assert long[0]["detail"].endswith("learned positions for 15 tokens")
    assert {tuple(segment(*LONG[first : first + 2])) for first in range(3)} < set(map(tuple, model.sources))
    assert max(map(len, model.sources)) == 14


def test_sliding_keeps_the_nearer_side():
    model = model_of(15, past_context=1, future_context=1)
    found, (_, long) = translate(model, "sliding", max_new_tokens=14)
    assert found[1] == true(LONG)
    assert positions_of(long) == [(1, "2 sentences instead of 3"), (2, "2 sentences instead of 3")]
    assert segment(LONG[1], LONG[2]) in model.sources  # without the one before


def test_sliding_keeps_the_number_of_the_current_sentence():
    """Which is that of the last one but `future_context`: of two future ones none goes while there is one before."""
    document = [" ".join(WORDS[first : first + 6]) for first in (0, 6, 12, 18)]
    model = model_of(23, past_context=1, future_context=2)
    found, (report,) = translate(model, "sliding", [document], max_new_tokens=22)
    assert found == [true(document)] and positions_of(report)[0] == (1, "3 sentences instead of 4")
    assert segment(*document[1:]) in model.sources  # the second sentence, 1, with those after it, 3 and 4


def test_sliding_whose_translation_is_cut_off():
    """A source of 13 tokens fits, its translation of 15 does not: the window gets smaller until it is written whole."""
    document = ["w6 w7 w8 w9 w10 w11", "w12 w13 w14 w15 w16"]
    faults = {tuple(segment(*document)): segment("w18 w19 w20 w21 w22 w23 w24", "w24 w25 w26 w27 w28 w29")}
    model = model_of(13, past_context=1)
    model.faults = faults
    found, (report,) = translate(model, "sliding", [document])
    assert found == [true(document)] and positions_of(report) == [(1, "1 sentences instead of 2")]


def test_sequential():
    """Behind 1 + 7 tokens of start and prefix there must be room for 7 more."""
    model = model_of(15, past_context=2)
    found, (short, long) = translate(model, "sequential", max_new_tokens=7)
    assert found == [true(SHORT), true(LONG)] and short == []
    assert positions_of(long) == [(2, "2 sentences instead of 3")] + [(3, "2 sentences instead of 3")]
    assert prefix(true(LONG)[1]) in model.prompts and prefix(*true(LONG)[:2]) not in model.prompts
    found, reports = translate(model_of(14, past_context=2), "sequential", max_new_tokens=7)
    assert found == [true(SHORT), true(LONG)] and [sentence for sentence, _ in positions_of(reports[1])] == [1, 2, 3]


def test_a_long_prefix_leaves_other_rows_their_room():
    """In one batch the prefix of 20 tokens would leave 9 to the sentence alone."""
    documents = [["w6 " * 19, "w7"], ["w8 w9 w10", " ".join(WORDS[:15])]]
    documents[0][0] = documents[0][0].strip()
    model = model_of(30, past_context=1)
    found, reports = translate(model, "sequential", documents, max_new_tokens=16)
    alone = [translate(model_of(30, past_context=1), "sequential", [one], max_new_tokens=16) for one in documents]
    assert found == [translations for (translations,), _ in alone]
    assert found[1] == true(documents[1])


def test_full_makes_smaller_parts():
    model = model_of(15, view="chunk", chunk_tokens=40)
    found, (short, long) = translate(model, "full", max_new_tokens=15)
    assert found == [true(SHORT), true(LONG)] and short == []
    assert positions_of(long) == [(number, "2 sentences instead of 4") for number in range(4)]
    assert set(map(tuple, model.sources)) == {tuple(segment(*part)) for part in (SHORT, LONG[:2], LONG[2:])}


def test_chunk_sequential_goes_on_in_a_new_part():
    """22 source tokens fit; behind a start and 14 tokens of prefix there are 8 left, and 9 are wanted."""
    model = model_of(23, view="chunk", chunk_tokens=40)
    found, (short, long) = translate(model, "chunk_sequential", max_new_tokens=9)
    assert found == [true(SHORT), true(LONG)] and short == []
    assert positions_of(long) == [(2, "2 sentences instead of 4"), (3, "2 sentences instead of 4")]
    assert segment(*LONG[2:]) in model.sources


@pytest.mark.parametrize("strategy", ["sentence", "sliding", "sequential", "full"])
def test_sentence_of_more_tokens_than_positions(strategy):
    model = model_of(9, past_context=1)
    document = ["w6", " ".join(WORDS[:12]), "w7"]
    (found,), (report,) = translate(model, strategy, [document], max_new_tokens=8)
    assert found == true(document)
    assert {"sentence": 1, "kind": "split", "detail": "12 tokens, limit 8: translated in 2 parts"} in report
    assert all(len(source) <= 9 for source in model.sources)


ARCHITECTURES = {
    "concat": ({"past_context": 3}, ("sentence", "sliding", "sequential", "full")),
    "concat_bod": ({"view": "chunk", "chunk_tokens": 60, "use_bod": True}, ("sequential", "chunk_sequential", "full")),
    "gtransformer": ({"past_context": 3}, ("sliding", "sequential", "full")),
    "lst": ({"past_context": 2, "future_context": 1}, ("sliding", "sequential", "full")),
    "window": ({"past_context": 3, "position": "absolute"}, ("sliding", "sequential", "full")),
    "multiencoder": ({"past_context": 3, "future_context": 1}, ("sliding", "sequential")),
    "doct": ({"past_context": 3}, ("sliding", "sequential")),
    "caching": ({"past_context": 3, "context_sides": "both"}, ("sequential",)),
    "han": ({"context_sides": "both"}, ("sequential",)),
    "routing": ({"past_context": 1, "future_context": 1}, ("sliding", "sequential")),
    "memory": ({}, ("stream", "sentence")),
}


FAST = ("multiencoder", "caching")


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in ARCHITECTURES]
)
def test_every_architecture_and_strategy(name):
    """Documents that fit are translated as without the others, and as with more positions than are needed."""
    fields, strategies = ARCHITECTURES[name]
    model = build(name.split("_")[0], position_type="learned", max_position_embeddings=24, **fields)
    documents = [random_text([2, 1, 2], 1), random_text([9, 8, 30, 9, 7], 2), random_text([10, 11, 8], 3)]
    settings = {"num_beams": 2, "max_new_tokens": 9}
    for strategy in strategies:
        found, reports = translate(model, strategy, documents, **settings)
        assert [len(translation) for translation in found] == [3, 5, 3]
        kinds = {repair["kind"] for repair in reports[1]}
        reads_alone = strategy in ("sentence", "stream") or name in ("caching", "han", "routing")
        assert "split" in kinds and ("positions" in kinds) == (not reads_alone and name != "memory")
        for document, translation, report in zip(documents, found, reports):
            assert translate(model, strategy, [document], **settings) == ([translation], [report])
