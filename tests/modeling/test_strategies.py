"""Strategies with real models, against documents translated one sentence at a time without batches and caches."""

import copy

import pytest
from support.slow_translation import Slow, settings
from support.tiny_models import EOS, build, random_text, word_tokenizer
from transformers import GenerationConfig

DOCUMENTS = [random_text(lengths, seed) for seed, lengths in enumerate([[3, 1, 2, 4, 2], [1, 2], [4, 3, 2], [2]])]
WINDOW = {"past_context": 2, "segment_encoding": "learned", "persistent": True}
CHUNK = {"view": "chunk", "chunk_tokens": 12, "segment_encoding": "sinusoidal", "persistent": True}
CASES = {
    "window": WINDOW,
    "future": {"past_context": 1, "future_context": 1, "segment_encoding": "onehot"},
    "source": WINDOW | {"context_sides": "source"},
    "shift": {"past_context": 3, "segment_encoding": "shift", "segment_shift": 5, "use_bod": True},
    "chunk": CHUNK,
    "chunk_none": {"view": "chunk", "chunk_tokens": 9, "use_bod": True},
    "chunk_window": {"architecture": "window", "view": "chunk", "chunk_tokens": 60, "window": 3},
}
BEAMS = [{"num_beams": 1}, {"num_beams": 3, "length_penalty": 0.6, "early_stopping": True}]


@pytest.fixture(scope="module", params=CASES)
def model(request):
    return build(**CASES[request.param])


@pytest.mark.parametrize("beams", BEAMS, ids=["greedy", "beams"])
@pytest.mark.parametrize("batch_size", [2, 16])
def test_in_order_is_the_slow_one(model, beams, batch_size):
    strategy = "chunk_sequential" if model.config.view == "chunk" else "sequential"
    found = model.translate_documents(DOCUMENTS, word_tokenizer(), strategy, batch_size=batch_size, **settings(beams))
    slow = Slow(model, beams)
    assert found == [slow.in_order(document) for document in DOCUMENTS]
    written = [sentence for document in found for sentence in document]
    assert len(set(written)) > 3 and len({len(sentence.split()) for sentence in written}) > 1


@pytest.mark.parametrize("beams", BEAMS, ids=["greedy", "beams"])
def test_repaired_parts_are_chunk_sequential(beams):
    """A model that never writes the right number of separators: `full` falls back to the slow reference of chunks."""
    model = build(**CHUNK)
    found, reports = model.translate_documents(
        DOCUMENTS, word_tokenizer(), "full", **settings(beams), return_report=True
    )
    slow = Slow(model, beams)
    for document, translation, report in zip(DOCUMENTS, found, reports):
        repaired = {repair["sentence"] for repair in report if repair["kind"] == "separators"}
        expected = slow.in_order(document)
        for index in repaired:
            assert translation[index] == expected[index]
    assert sum(len(report) for report in reports) > 5


@pytest.mark.parametrize("strategy", ["sentence", "sliding", "full"])
def test_batches_do_not_matter(model, strategy):
    if strategy == "full" and model.config.context_sides == "source":
        return
    for beams in BEAMS:
        together = model.translate_documents(
            DOCUMENTS, word_tokenizer(), strategy, return_report=True, **settings(beams)
        )
        for number, document in enumerate(DOCUMENTS):
            alone = model.translate_documents(
                [document], word_tokenizer(), strategy, batch_size=1, return_report=True, **settings(beams)
            )
            assert (alone[0][0], alone[1][0]) == (together[0][number], together[1][number])


def test_cache_of_the_prefix_is_used():
    """In a chunk every target token is read by the decoder once, not once for every later sentence."""
    model = build(**CHUNK | {"chunk_tokens": 1000})
    read = []
    model.get_decoder().register_forward_hook(
        lambda _, __, kwargs, ___: read.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    encoded = []
    model.get_encoder().register_forward_hook(lambda *_: encoded.append(1))
    (found,) = model.translate_documents([DOCUMENTS[0]], word_tokenizer(), "chunk_sequential", **settings(BEAMS[0]))
    written = sum(len(sentence.split()) + 1 for sentence in found)
    assert len(encoded) == 1
    assert sum(read) <= 1 + 2 * written  # the prefix anew would be several times as much


SETTINGS = {"max_new_tokens": 5, "no_repeat_ngram_size": 2}
SHORT = [["w6 w7", "w8", "w9 w10 w11"], ["w12 w13", "w14"]]


@pytest.mark.parametrize("strategy", ["sentence", "sliding", "sequential", "full"])
def test_settings_in_a_generation_config_are_those_of_arguments(strategy):
    """Beams, number of tokens and start token, from wherever `generate` takes them; a second sequence is not asked."""
    model, found = build(**WINDOW), []
    arguments = SETTINGS | {"num_beams": 3, "decoder_start_token_id": 7}
    found.append(model.translate_documents(SHORT, word_tokenizer(), strategy, **arguments))
    config = GenerationConfig.from_dict(model.generation_config.to_dict() | arguments | {"num_return_sequences": 2})
    found.append(model.translate_documents(SHORT, word_tokenizer(), strategy, generation_config=config))
    own = copy.deepcopy(model.generation_config)
    model.generation_config = config
    found.append(model.translate_documents(SHORT, word_tokenizer(), strategy))
    model.generation_config = own
    assert found[0] == found[1] == found[2]
    assert found[0] != model.translate_documents(SHORT, word_tokenizer(), strategy, **SETTINGS | {"num_beams": 3})


def test_length_of_a_sentence_does_not_depend_on_the_batch():
    """A model that never ends writes twice the source, its end mark counted, and 32 tokens for each sentence."""
    model = build()
    model.final_logits_bias[:, EOS] = -1e9
    documents = [["w6"], [" ".join(["w7"] * 20)]]
    for beams in (1, 3):
        together, reports = model.translate_documents(documents, word_tokenizer(), num_beams=beams, return_report=True)
        alone = [model.translate_documents([document], word_tokenizer(), num_beams=beams)[0] for document in documents]
        assert together == alone
        assert [report[0]["detail"].split(" without")[0] for report in reports] == [
            "stopped after 36 tokens",
            "stopped after 74 tokens",
        ]


def test_learned_positions_end_a_translation():
    model = build(position_type="learned", max_position_embeddings=8)
    model.final_logits_bias[:, EOS] = -1e9
    (found,), (report,) = model.translate_documents([["w6 w7"]], word_tokenizer(), return_report=True)
    assert len(found[0].split()) == 7 and report[0]["kind"] == "length"
