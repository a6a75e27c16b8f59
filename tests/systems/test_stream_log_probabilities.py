"""Scores of models with a state: equal to reading one item by itself, sentence by sentence."""

from dataclasses import replace

import pytest
import torch
from support.errors import refused
from support.tiny_models import BOD, BOS, EOS, build, random_text, word_tokenizer

from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.systems import DocMTSystem

TOKENIZER = word_tokenizer()


def item(number: int, context: int, candidates: int = 3, index: int | None = None) -> SuiteItem:
    lengths = [1 + (number + sentence) % 4 for sentence in range(context)]
    return SuiteItem(
        item_id=f"suite:{number}",
        source=(*random_text(lengths, seed=number), random_text([3], seed=50 + number)[0]),
        target_context=tuple(random_text(lengths[::-1], seed=100 + number)),
        candidates=tuple(random_text([2, 4, 1][:candidates], seed=200 + number)),
        correct=0,
        phenomenon="it:er",
        distance=1,
        index=index,
    )


ITEMS = [item(1, 0), item(2, 3), item(3, 1, candidates=2), item(4, 5), item(5, 3, index=9), item(6, 0, index=4)]


def by_itself(model, one: SuiteItem, candidate: str) -> list[float]:
    state = {}
    starts = one.index is None or one.index == len(one.source) - 1
    pairs = [*zip(one.source[:-1], one.target_context), (one.source[-1], candidate)]
    for number, (source, target) in enumerate(pairs):
        bod = [BOD] if model.config.use_bod and starts and number == 0 else []
        ids, to = (TOKENIZER(text, add_special_tokens=False)["input_ids"] for text in (source, target))
        labels = [*bod, *to, EOS]
        with torch.no_grad():
            outputs = model(
                input_ids=torch.tensor([[*bod, *ids, EOS]]),
                decoder_input_ids=torch.tensor([[BOS, *labels[:-1]]]),
                **state,
            )
        state = model.memory_after(outputs)
    found = outputs.logits[0].log_softmax(-1)
    return [float(found[position, label]) for position, label in enumerate(labels)][len(bod) :]


@pytest.mark.parametrize("fields", [{}, {"memory_sides": "source"}, {"memory_sides": "target"}, {"use_bod": True}])
def test_equal_to_single_items(fields):
    model = build("memory", memory_size=3, **fields)
    for batch_tokens in (4096, 60, 1):
        found = DocMTSystem(model, TOKENIZER, batch_tokens=batch_tokens).token_log_probabilities(ITEMS)
        for one, rows in zip(ITEMS, found, strict=True):
            for candidate, values in zip(one.candidates, rows, strict=True):
                assert values == pytest.approx(by_itself(model, one, candidate), abs=1e-4)


def test_blank_context_is_passed_over():
    model, one = build("memory", memory_size=3, use_bod=True), ITEMS[1]
    blank = replace(one, source=("", *one.source[:1], " ", *one.source[1:]), target_context=("w9", *one.target_context))
    blank = replace(blank, target_context=("w9", one.target_context[0], "", *one.target_context[1:]))
    system = DocMTSystem(model, TOKENIZER)
    for found, expected in zip(*(system.token_log_probabilities([item])[0] for item in (blank, one)), strict=True):
        assert found == pytest.approx(expected, abs=1e-5)


def test_too_long_for_learned_positions():
    system = DocMTSystem(build("memory", position_type="learned", max_position_embeddings=3), TOKENIZER)
    refused("suite:2: .* the model has learned positions for 3", system.token_log_probabilities, ITEMS[1:2])


def test_less_context():
    """A document that starts two sentences before the current one, without a mark that it is one."""
    model = build("memory", memory_size=3, use_bod=True)
    system = DocMTSystem(model, TOKENIZER, past_context=2)
    shorter = SuiteItem(
        **{name: getattr(ITEMS[3], name) for name in ("item_id", "candidates", "correct", "phenomenon", "distance")},
        source=ITEMS[3].source[-3:],
        target_context=ITEMS[3].target_context[-2:],
        index=5,
    )
    found = system.token_log_probabilities([ITEMS[3]])[0]
    assert found[0] == pytest.approx(by_itself(model, shorter, shorter.candidates[0]), abs=1e-4)


def test_target_context_and_description():
    model = build("memory", memory_size=3, memory_sides="source")
    assert DocMTSystem(model, TOKENIZER).target_context == "none"
    assert DocMTSystem(model, TOKENIZER).describe()["config"]["past_context"] == "all"
    assert DocMTSystem(model, TOKENIZER).describe()["config"]["memory_sides"] == "source"
    assert DocMTSystem(build("memory"), TOKENIZER).target_context == "reference"
