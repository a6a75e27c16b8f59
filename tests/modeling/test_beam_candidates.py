"""The beams of a sentence that `nbest` keeps, by every strategy."""

from types import SimpleNamespace

import pytest
from support.errors import refused
from support.tiny_models import SEP, build, random_text, word_tokenizer

from hf_docmt.modeling.decoding import Translator
from hf_docmt.modeling.translation_jobs import CurrentSentence, DocumentState, Job, Output, SentencePart, split_at

DOCUMENTS = [random_text([3, 2, 4], seed=1), random_text([2, 5], seed=2)]
CHUNK = {"view": "chunk", "chunk_tokens": 12}


@pytest.mark.parametrize(
    ("architecture", "fields", "strategy"),
    [
        ("concat", {"past_context": 2}, "sentence"),
        ("concat", {"past_context": 2}, "sliding"),
        ("concat", {"past_context": 2}, "sequential"),
        ("concat", CHUNK, "full"),
        ("concat", CHUNK, "chunk_sequential"),
        ("caching", {"past_context": 1}, None),
        ("memory", {}, "stream"),
    ],
)
def test_every_strategy_gives_all_beams(architecture, fields, strategy):
    """The first ones are the translation without."""
    model = build(architecture, **fields)
    for parameter in model.parameters():
        parameter.data.mul_(3)  # so that translations differ from each other
    translate = lambda **more: model.translate_documents(  # noqa: E731
        DOCUMENTS, word_tokenizer(), strategy, num_beams=3, max_new_tokens=6, **more
    )
    plain = translate()
    translations, repairs, candidates = translate(nbest=3, return_report=True)
    assert translations == plain and (plain, repairs) == translate(return_report=True)
    assert [[found[0] for found in document] for document in candidates] == plain
    assert max(len(found) for document in candidates for found in document) == 3
    assert translate(nbest=1)[1] == [[[text] for text in document] for document in plain]
    scores = []
    for engine in (model.engine, None):
        model.engine = engine
        scored = translate(return_scores=True)
        assert scored == plain
        scores.append([text.score for document in scored for text in document])
    assert scores[0] == pytest.approx(scores[1], abs=1e-4) and max(scores[0]) < 0


@pytest.mark.parametrize(
    ("ids", "finished", "number", "score"),
    [
        ([7, 8], True, 0, (-4.0, 3)),
        ([7, 8], False, 0, (-2.0, 2)),
        ([7, SEP, 8], True, 0, (-2.0, 2)),
        ([7, SEP, 8], True, -1, (-6.0, 2)),
        ([SEP, SEP], True, 1, (-1.0, 1)),
    ],
)
def test_score_of_a_sentence(ids, finished, number, score):
    """The sum over its tokens and the end token or separator after them, and the number of these."""
    part, sums = SentencePart(0, []), [-1.0, -2.0, -3.0, -5.0, -9.0]
    part.take(Output(ids, finished, sums[: len(ids) + 1 + finished]), split_at(ids, SEP), number)
    assert part.score == score and part.target == split_at(ids, SEP)[number]


def test_rows_keep_their_limits():
    """Sentences of one batch get tokens by their own length, which a model that does not end uses up."""
    model = build()
    model.final_logits_bias[:, model.config.eos_token_id] = -1e9
    documents = [random_text([1], seed=1), [" ".join(random_text([9], seed=2))]]
    plain, found = model.translate_documents(documents, word_tokenizer(), "sentence", num_beams=2, nbest=2)
    lengths = [{len(text.split()) for text in texts} for (texts,) in found]
    assert all(len(own) == 1 for own in lengths) and lengths[0] != lengths[1]
    assert [{len(document[0].split())} for document in plain] == lengths


def test_candidates_are_those_of_generate():
    model, tokenizer = build(), word_tokenizer()
    (_, (found,)) = model.translate_documents([DOCUMENTS[0][:1]], tokenizer, num_beams=4, max_new_tokens=5, nbest=3)
    inputs = tokenizer(DOCUMENTS[0][:1], return_tensors="pt")
    expected = model.generate(**inputs, num_beams=4, num_return_sequences=4, max_new_tokens=6)[:3, 1:6].tolist()
    ends = [ids.index(model.config.eos_token_id) if model.config.eos_token_id in ids else 5 for ids in expected]
    expected = [ids[:end] for ids, end in zip(expected, ends)]
    assert found == [tokenizer.batch_decode(expected, skip_special_tokens=True)]


@pytest.mark.parametrize(
    ("index", "job", "stop_at_sep", "kept"),
    [
        (2, {"sentences": 3, "past": 2}, False, [[], [], [[9], [12]]]),
        (1, {"sentences": 3, "past": 1, "future": 1}, False, [[], [[8], [11]], []]),
        (0, {"sentences": 3}, False, [[[7], [10]], [[8], [11]], [[9], [12]]]),
        (1, {"sentences": 2, "past": 1}, False, [[], [[7, 8, 9], [10, 11, 12]], []]),
        (1, {"sentences": 3, "past": 1}, True, [[], [[7, 8, 9], [10, 11, 12]], []]),
    ],
)
def test_whose_candidates_are_kept(index, job, stop_at_sep, kept):
    """Those of the current sentence of a window, of all of a segment, of one alone without separators.

    One with another number of separators than the most probable one is left out.
    """
    document = DocumentState(3, [SentencePart(number, []) for number in range(3)])
    written = [[7, SEP, 8, SEP, 9], [7, 8], [10, SEP, 11, SEP, 12]]
    job = Job([], [], length=3, current=CurrentSentence(document, index), **job)
    outputs = [Output(ids, True) for ids in written]
    Translator.keep_candidates(SimpleNamespace(sep=SEP), job, outputs, stop_at_sep)
    assert [part.candidates for part in document.parts] == kept


def test_candidates_of_blank_and_of_long_sentences():
    """A blank one has itself; one in parts has its parts joined, the nth with the nth."""
    model, tokenizer = build(), word_tokenizer()
    long = " ".join(random_text([8], seed=3))
    texts, ((blank, found),) = model.translate_documents(
        [["  ", long]], tokenizer, num_beams=3, max_new_tokens=4, max_sentence_tokens=5, nbest=2
    )
    assert blank == [""] and len(found) == 2 and found[0] == texts[0][1]


def test_refusals():
    model, tokenizer = build(), word_tokenizer()
    with pytest.raises(ValueError, match="nbest=3: a search with num_beams=2 finds fewer; raise num_beams"):
        model.translate_documents(DOCUMENTS, tokenizer, num_beams=2, nbest=3)
    refused("nbest must be at least 1, got 0", model.translate_documents, DOCUMENTS, tokenizer, nbest=0)
