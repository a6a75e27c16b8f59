"""Losses by sentence of a window: against sums that are made token by token."""

import pytest
import torch
from support.tiny_models import SEP, build, documents_of, random_text, word_tokenizer

from hf_docmt import registry
from hf_docmt.analysis.segment_losses import segment_losses


def documents():
    return documents_of(
        (random_text([3, 1, 4, 2], seed=1), random_text([2, 4, 1, 3], seed=2)),
        (random_text([5], seed=3), random_text([2], seed=4)),
    )


@pytest.mark.parametrize(
    ("architecture", "fields"),
    [
        ("concat", {"past_context": 2}),
        ("concat", {"past_context": 1, "future_context": 1}),
        ("lst", {"past_context": 1}),
    ],
)
def test_losses_are_those_of_single_tokens(architecture, fields):
    model, tokenizer = build(architecture, **fields), word_tokenizer()
    kind = registry.for_config(model.config)
    examples, sums = kind.examples(documents(), tokenizer, model.config), {}
    for example in (examples[number] for number in range(len(examples))):
        batch = kind.collator(model.config, tokenizer)([example])
        labels = batch.pop("labels")[0].tolist()
        with torch.no_grad():
            scores = model(**batch).logits[0].log_softmax(-1)
        for position, label in enumerate(labels):
            offset = labels[:position].count(SEP) - example["current"]
            sums.setdefault(offset, []).append(-float(scores[position, label]))
    for max_tokens in (20, 4096):
        found = segment_losses(model, documents(), tokenizer, max_tokens).offsets
        assert {offset: count for offset, (_, count) in found.items()} == {o: len(one) for o, one in sums.items()}
        for offset, (loss, count) in found.items():
            assert loss == pytest.approx(sum(sums[offset]) / count, abs=1e-5)


def test_dropout_of_a_model_in_training_mode_is_off():
    model = build("concat", past_context=1, dropout=0.5)
    expected = segment_losses(model, documents(), word_tokenizer())
    assert segment_losses(model.train(), documents(), word_tokenizer()) == expected and model.training


def test_the_result_has_a_part_for_each_offset():
    found = segment_losses(build("concat", past_context=2), documents(), word_tokenizer())
    result = found.result("test")
    assert list(result.breakdown) == ["offset=-2", "offset=-1", "offset=0"]
    assert (result.value, result.n) == found.offsets[0]


@pytest.mark.parametrize(
    ("architecture", "fields", "message"),
    [
        ("caching", {"past_context": 1}, "writes one sentence at a time"),
        ("memory", {}, "writes one sentence at a time"),
        ("concat", {"past_context": 1, "context_sides": "source"}, "writes one sentence at a time"),
        ("concat", {"view": "chunk"}, "reads a chunk, expected windows"),
        ("concat", {}, "reads a sentence, expected windows"),
    ],
)
def test_refused(architecture, fields, message):
    with pytest.raises(ValueError, match=message):
        segment_losses(build(architecture, **fields), documents(), word_tokenizer())
