"""Scores that are no numbers end a translation, with the model, the document and the step; in every architecture."""

import copy
import pickle

import pytest
import torch
from support.tiny_models import EOS, build, context_fields, word_tokenizer
from transformers import GenerationConfig

from hf_docmt.modeling.row_processors import FiniteScores, NonFiniteScoresError

PAST = {"past_context": 2}
FIELDS = context_fields(
    caching={"context_sides": "both"},
    concat={"segment_encoding": "learned"},
    han={"context_sides": "both"},
    routing={"past_context": 1, "future_context": 1},
    window={"window": 3},
)
CASES = {name: (name, fields) for name, fields in FIELDS.items()}
CASES["chunk"] = ("concat", {"view": "chunk", "chunk_tokens": 20})
DOCUMENTS = [["w7 w8", "w9"], ["w9 w10", "w11 w12", "w13"], ["w8", "w7 w10"]]
SETTINGS = {"max_new_tokens": 4, "batch_size": 2}
MASKED = ("q_proj", "k_proj", "relative")  # torch's attention takes scores that are nan for hidden keys: `load_model`


def translate(model, documents=DOCUMENTS, **settings):
    return model.translate_documents(documents, word_tokenizer(), **SETTINGS | settings)


@pytest.mark.parametrize(
    "name", [name if name == "multiencoder" else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_every_parameter(name):
    """A tensor of nan in any place that a translation reads is noticed, but for what makes scores of attention."""
    architecture, fields = CASES[name]
    model = build(architecture, **fields)
    expected = translate(model)
    for parameter_name, parameter in model.named_parameters():
        before, is_masked = parameter.detach().clone(), any(part in parameter_name for part in MASKED)
        with torch.no_grad():
            parameter.fill_(float("nan"))
        try:
            assert translate(model) == expected or is_masked, parameter_name
        except NonFiniteScoresError as error:
            assert error.document in range(3) and error.sentence in range(3) and (is_masked or error.step in (1, 2))
        with torch.no_grad():
            parameter.copy_(before)
    assert translate(model) == expected


@pytest.mark.parametrize(
    "beams", [{"num_beams": 1}, {"num_beams": 3}, {"do_sample": True}, {"num_beams": 2, "do_sample": True}]
)
@pytest.mark.parametrize("name", ["chunk", "multiencoder", "memory"])
def test_document_and_sentence(name, beams):
    """One word's embedding on the source side, which the second document has in its second sentence."""
    architecture, fields = CASES[name]
    model = build(architecture, **fields, share_encoder_decoder_embeddings=False)
    with torch.no_grad():
        model.get_encoder().embed_tokens.weight[12] = float("nan")
    with pytest.raises(NonFiniteScoresError, match=r"step 1 of sentence . of document 1 of the call") as caught:
        translate(model, strategy="sentence", **beams)
    error = pickle.loads(pickle.dumps(copy.copy(caught.value)))
    assert (error.document, error.sentence, error.step, str(error)) == (1, 1, 1, str(caught.value))
    found = translate(model, [DOCUMENTS[0], DOCUMENTS[2]], **beams)
    assert [len(document) for document in found] == [2, 2]


def test_stream_goes_on_where_it_was():
    model = build("memory", share_encoder_decoder_embeddings=False)
    sentences = ["w7 w8", "w12", "w9"]
    with torch.no_grad():
        row = model.get_encoder().embed_tokens.weight[12].clone()
        model.get_encoder().embed_tokens.weight[12] = float("nan")
    stream = model.translate_stream(sentences, word_tokenizer(), max_new_tokens=4)
    first, memory = next(stream), stream.memory
    for _ in range(2):
        with pytest.raises(NonFiniteScoresError, match="step 1") as caught:
            next(stream)
        assert stream.memory is memory and caught.value.document is None
    with torch.no_grad():
        model.get_encoder().embed_tokens.weight[12] = row
    assert [first, *stream] == list(model.translate_stream(sentences, word_tokenizer(), max_new_tokens=4))


@pytest.mark.parametrize("settings", [{}, {"num_beams": 3}, {"do_sample": True}])
def test_settings_that_forbid_every_token(settings):
    model = build(**PAST)
    forbidden = list(range(model.config.vocab_size))
    with pytest.raises(NonFiniteScoresError, match="step 1"):
        translate(model, suppress_tokens=forbidden, **settings)
    config = GenerationConfig(eos_token_id=EOS, pad_token_id=0, decoder_start_token_id=2, suppress_tokens=forbidden)
    with pytest.raises(NonFiniteScoresError, match="step 1"):
        translate(model, generation_config=config, **settings)


def test_infinite_bias():
    """Above all: no number. Below all: a token that is never written."""
    model = build(**PAST)
    model.final_logits_bias[0, 9] = -float("inf")
    assert all("w9" not in sentence.split() for document in translate(model) for sentence in document)
    model.final_logits_bias[0, 9] = float("inf")
    with pytest.raises(NonFiniteScoresError):
        translate(model)


def test_finite_scores_of_any_size():
    """Also where their sum is not."""
    scores = torch.full((3, 5), torch.finfo(torch.float32).max)
    assert FiniteScores("model", 1, [])(torch.zeros(3, 1), scores) is scores
