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


def test_an_assistant_needs_the_source():
    model, assistant = build(past_context=2), build(seed=1)
    ids = torch.tensor([[7, 8, SEP, 10, EOS]])
    settings = {"max_new_tokens": 6, "assistant_model": assistant, "encoder_outputs": model.get_encoder()(ids)}
    with pytest.raises(ValueError, match="got encoder_outputs without input_ids: give both"):
        model.generate(**settings)
    assert torch.equal(model.generate(input_ids=ids, **settings), model.generate(ids, max_new_tokens=6))
