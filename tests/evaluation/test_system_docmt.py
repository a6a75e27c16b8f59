"""Document models as systems: the scores of the model, and those of a converted Marian model."""

import pytest
import torch
from support.pretrained_models import SIZES
from support.systems import DOCUMENTS, ITEMS, assert_close, item

from hf_docmt import registry
from hf_docmt.evaluation.systems import DocMTSystem, Seq2SeqSystem
from hf_docmt.evaluation.systems.log_probabilities import token_log_probabilities
from hf_docmt.hub.conversion import convert_sentence_model


@pytest.mark.filterwarnings("ignore:.*did not end before")
@pytest.mark.parametrize("past", [0, 2])
def test_converted_model_has_the_same_scores(marian, tokenizer, past):
    """A Marian model and our model with the same weights; with context both join sentences by `<sep>`."""
    converted, adapted = convert_sentence_model(marian, tokenizer=tokenizer, past_context=past)
    items = [one for one in ITEMS if all(one.source)]  # blank context sentences are read by ours alone
    ours = DocMTSystem(converted, adapted)
    theirs = Seq2SeqSystem(marian, tokenizer, past_context=past, context_sides="both")
    assert_close(theirs.token_log_probabilities(items), ours.token_log_probabilities(items))
    assert theirs.token_texts(items) == ours.token_texts(items)
    settings = {"num_beams": 1, "max_new_tokens": 12}
    documents = [document for document in DOCUMENTS if document]
    strategy = "sequential" if past else "sentence"
    found = Seq2SeqSystem(marian, tokenizer, past_context=past, context_sides="both", **settings)
    assert found.translate(documents) == DocMTSystem(converted, adapted, strategy=strategy, **settings).translate(
        documents
    )


def test_docmt_system_is_the_scorer(tokenizer):
    torch.manual_seed(0)
    architecture = registry.get("concat")
    sizes = {name: size for name, size in SIZES.items() if name != "max_position_embeddings"}
    model = architecture.model_class(
        architecture.config_class(**sizes, vocab_size=len(tokenizer), past_context=2, use_bod=True)
    ).eval()
    system = DocMTSystem(model, tokenizer, "mine")
    found = system.token_log_probabilities(ITEMS)
    collate = architecture.collator(model.config, tokenizer, context_discount=0.0)
    expected = token_log_probabilities(model, tokenizer, ITEMS, collate=collate, past_context=2)
    for row, other in zip(found, expected, strict=True):
        for tokens, others in zip(row, other, strict=True):
            assert tokens == pytest.approx(others)
    texts, scores = system.token_texts(ITEMS), system.token_log_probabilities(ITEMS)
    assert [[len(row) for row in rows] for rows in texts] == [[len(row) for row in rows] for rows in scores]
    alone = item(4, context=0)
    (row,) = system.token_texts([alone])
    assert row[0][0] == "<bod>" and row[0][-1] == "</s>" and "".join(row[0][1:-1]).strip() == alone.candidates[0]
    facts = system.describe()
    assert (facts["name"], facts["architecture"]) == ("mine", "concat")
    assert facts["parameters"] == model.num_parameters() and facts["config"]["past_context"] == 2
    assert [len(document) for document in system.translate(DOCUMENTS)] == [len(document) for document in DOCUMENTS]
    assert DocMTSystem(model, tokenizer, past_context=1).past_context == 1
    with pytest.raises(ValueError, match="past_context is 3, but the model was trained with 2"):
        DocMTSystem(model, tokenizer, past_context=3)
    with pytest.raises(ValueError, match="future_context is 1, but the model was trained with 0"):
        DocMTSystem(model, tokenizer, future_context=1)
