"""Candidates of later tokens (prompt lookup, an assistant) where documents are translated; the battery has the rest."""

import pytest
import torch
from support.tiny_models import EOS, SEP, build, random_text, word_tokenizer

WINDOW = {"past_context": 2, "window": 2, "alignment": "sentence"}


@pytest.mark.parametrize(("architecture", "fields"), [("concat", {"past_context": 2}), ("window", WINDOW)])
@pytest.mark.parametrize("strategy", ["sequential", "full"])
def test_documents(architecture, fields, strategy):
    """The same translations, also of what `full` translates again in a cache that goes on."""
    model = build(architecture, **fields)
    search = {"strategy": strategy, "batch_size": 1, "num_beams": 1, "max_new_tokens": 6}
    documents = [random_text([3, 2, 3], seed=1)]
    expected = model.translate_documents(documents, word_tokenizer(), **search)
    settings = search | {"prompt_lookup_num_tokens": 2, "return_report": True}
    found, reports = model.translate_documents(documents, word_tokenizer(), **settings)
    assert found == expected and reports[0]


CHUNK = {"view": "chunk", "chunk_tokens": 60}
READS_THE_SOURCE_ONCE = [
    ("concat", CHUNK, "chunk_sequential"),
    ("lst", CHUNK, "chunk_sequential"),
    ("lst", {"past_context": 2}, "full"),
    ("caching", {"past_context": 2, "context_sides": "both"}, "sequential"),
    ("routing", {"past_context": 1}, "sliding"),
]


@pytest.mark.parametrize(("architecture", "fields", "strategy"), READS_THE_SOURCE_ONCE)
def test_where_encoder_outputs_are_given(architecture, fields, strategy):
    """Candidates change nothing, also where a prompt goes on from a cache; processors read the source's ids."""
    model, assistant = build(architecture, **fields), build(seed=1)
    documents = [random_text([5, 3, 8], seed=3), ["w8 w9", "w6 w7 w10 w11", "w12"]]

    def translate(**settings):
        settings |= {"strategy": strategy, "batch_size": 1, "max_new_tokens": 8}
        return model.translate_documents(documents, word_tokenizer(), **settings)

    expected = translate()
    assert translate(prompt_lookup_num_tokens=2) == expected == translate(assistant_model=assistant)
    assert translate(encoder_no_repeat_ngram_size=1) != expected


def test_an_assistant_needs_the_source():
    model, assistant = build(past_context=2), build(seed=1)
    ids = torch.tensor([[7, 8, SEP, 10, EOS]])
    settings = {"max_new_tokens": 6, "assistant_model": assistant, "encoder_outputs": model.get_encoder()(ids)}
    with pytest.raises(ValueError, match="got encoder_outputs without input_ids: give both"):
        model.generate(**settings)
    assert torch.equal(model.generate(input_ids=ids, **settings), model.generate(ids, max_new_tokens=6))
