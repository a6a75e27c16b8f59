"""Contrastive scores: equal to scoring one candidate at a time, batches, shared sources, bad input."""

import math
from dataclasses import replace

import pytest
import torch
from support.errors import refused
from support.systems import item
from support.tiny_models import BOS, build, random_text, word_tokenizer
from torch import nn

from hf_docmt.evaluation.contrastive_accuracy import contrastive_accuracy
from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.loading import registry
from hf_docmt.systems import DocMTSystem

ITEMS = [item(number, context=number % 4, candidates=2 + number % 3) for number in range(1, 15)]
ITEMS += [item(20, index=9), item(21, context=3, candidates=2)]


def concat(tokenizer, **changes):
    torch.manual_seed(0)
    architecture = registry.get("concat")
    sizes = {"d_model": 16, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "vocab_size": len(tokenizer), "init_std": 0.3}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_layers": 2, "decoder_layers": 2}
    return architecture.model_class(architecture.config_class(**{**sizes, **heads, **changes})).eval()


def one_at_a_time(model, tokenizer, item):
    """The definition: each candidate alone, in its window, token by token."""
    past, future, use_bod = model.config.past_context, model.config.future_context, model.config.use_bod
    special = {name: tokenizer.convert_tokens_to_ids(name) for name in ("<s>", "</s>", "<sep>", "<bod>")}

    def ids(sentence):
        return tokenizer(sentence, add_special_tokens=False)["input_ids"]

    def joined(sentences, start):
        tokens = [special["<bod>"]] if start and use_bod else []
        for sentence in sentences:
            tokens += ids(sentence) + [special["<sep>"]]
        return tokens[:-1] + [special["</s>"]]

    past = min(past, len(item.source) - 1)
    starts = (len(item.source) - 1 if item.index is None else item.index) == past
    source = list(item.source)[len(item.source) - 1 - past :] + [""] * future
    context = list(item.target_context)[len(item.target_context) - past :]
    scores = []
    for candidate in item.candidates:
        target = joined([*context, candidate] + [""] * future, starts)
        first = len(joined([*context, "x"], starts)) - len(ids("x")) - 1  # behind <bod>, which is given
        if model.config.context_sides == "source":
            target, first = joined([candidate], starts and not context), int(use_bod and starts and not context)
        last = len(target) - future
        with torch.no_grad():
            tokens = torch.tensor([joined(source, starts)])
            decoder = torch.tensor([[special["<s>"], *target[:-1]]])
            logits = model(
                input_ids=tokens,
                attention_mask=torch.ones_like(tokens),
                decoder_input_ids=decoder,
                decoder_attention_mask=torch.ones_like(decoder),
            ).logits[0]
        scores.append(sum(math.log(logits[t].double().softmax(0)[target[t]].item()) for t in range(first, last)))
    return scores


def score_suite(model, tokenizer, items, **settings):
    """[item][candidate]: the score of all its tokens."""
    found = DocMTSystem(model, tokenizer, **settings).token_log_probabilities(items)
    return [[sum(tokens) for tokens in row] for row in found]


def scored_shapes(model):
    """Rows and tokens of every source and target that the model is given from now on, as lists."""
    sources, targets = [], []
    for part, shapes in ((model.get_encoder(), sources), (model.get_decoder(), targets)):

        def note(_, args, inputs, shapes=shapes):
            shapes.append(tuple(inputs["input_ids"].shape))

        part.register_forward_pre_hook(note, with_kwargs=True)
    return sources, targets


def assert_equal_scores(found, expected):
    assert [len(row) for row in found] == [len(row) for row in expected]
    for row, other in zip(found, expected):
        assert row == pytest.approx(other, abs=1e-4, rel=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"past_context": 2},
        {"past_context": 3, "segment_encoding": "learned", "persistent": True},
        {"past_context": 3, "segment_encoding": "shift", "segment_shift": 5, "future_context": 1},
        {"past_context": 2, "segment_encoding": "sinusoidal", "pse_dim": 4, "context_sides": "source"},
        {"past_context": 1, "use_bod": True},
        {"past_context": 2, "use_bod": True, "context_sides": "source"},
        {"use_bod": True},
        {},
    ],
    ids=str,
)
def test_architecture_equals_one_candidate_at_a_time(tokenizer, settings):
    """With the architecture's own collator; each source is encoded once for its candidates."""
    model = concat(tokenizer, **settings, dropout=0.5).train()
    sources, _ = scored_shapes(model)
    items = ITEMS[::3]
    found = score_suite(model, tokenizer, items)
    assert sum(rows for rows, _ in sources) == len(items)
    assert model.training  # left as it was, yet scored without dropout
    expected = [one_at_a_time(model.eval(), tokenizer, one) for one in items]
    assert_equal_scores(found, expected)


def test_batches(tokenizer):
    """Many items a batch, within the budget; the scores do not depend on it."""
    model, found = concat(tokenizer, past_context=3), {}
    sources, targets = scored_shapes(model)
    for budget in (1, 200, 100000):
        sources.clear(), targets.clear()
        found[budget] = score_suite(model, tokenizer, ITEMS, batch_tokens=budget)
        sizes = [rows * (source + target) for (_, source), (rows, target) in zip(sources, targets, strict=True)]
        if budget == 1:
            assert len(sizes) == len(ITEMS)
        elif budget == 200:
            several = [size for size, (items, _) in zip(sizes, sources) if items > 1]
            assert len(sizes) < len(ITEMS) and several and max(several) <= budget
        else:
            assert len(sizes) == len({len(one.candidates) for one in ITEMS})
    assert_equal_scores(found[200], found[1])
    assert_equal_scores(found[100000], found[1])


def test_equal_candidates_are_scored_once(tokenizer):
    double = SuiteItem("double", ("das Haus", "die Katze"), ("das",), ("der Hund", "nie", "der Hund"), 2, "p", None)
    model = concat(tokenizer, past_context=1)
    _, targets = scored_shapes(model)
    (scores,) = score_suite(model, tokenizer, [double])
    assert [rows for rows, _ in targets] == [2]
    assert scores[0] == scores[2] != scores[1]
    assert contrastive_accuracy([double], [scores]).value == 0


def test_broken_weights_name_the_item(tokenizer):
    model = concat(tokenizer, past_context=1)
    nn.init.constant_(model.get_input_embeddings().weight, math.nan)
    refused("item suite:1: NaN", contrastive_accuracy, ITEMS, score_suite(model, tokenizer, ITEMS))


def test_items_longer_than_learned_positions_are_named(tokenizer):
    """Before anything is scored; as many tokens as there are positions are scored."""
    few, many = "das das", " ".join(["das"] * 15)
    limit = len(tokenizer(many, add_special_tokens=False)["input_ids"]) + 1
    model = concat(tokenizer, past_context=1, position_type="learned", max_position_embeddings=limit)
    fits = replace(item(1, context=0, candidates=2), source=(many,), candidates=(few, many))
    assert len(score_suite(model, tokenizer, [fits])) == 1
    model.get_encoder().register_forward_hook(lambda *_: pytest.fail("scored"))
    source = item(2, context=1, source=(many, few), target_context=("",), location="suite.json, item 2")
    target = replace(item(3, context=1, candidates=2), source=("", few), target_context=(few,), candidates=(few, many))
    for side, location, long in (("source", r"suite\.json, item 2", source), ("target", "item suite:3", target)):
        words = rf"^{location}: \d+ {side} tokens with their context, but .* learned positions for {limit}; give less"
        refused(words, score_suite, model, tokenizer, [fits, long])


ALIGNMENTS = [{}, {"alignment": "linear", "length_ratio": 0.8}, {"alignment": "one_to_one"}]


@pytest.mark.parametrize(
    ("architecture", "fields"),
    [("gtransformer", {}), ("lst", {}), *(("window", {"window": 4, **fields}) for fields in ALIGNMENTS)],
)
@torch.no_grad()
def test_chunk_models_with_left_and_right_context(architecture, fields):
    """Two sentences before and one after, as the one segment that the model was trained on: forced token by token."""
    model, words = build(architecture, view="chunk", **fields), word_tokenizer()
    source, target = random_text([3, 1, 4, 2], seed=1), random_text([2, 3, 3, 1], seed=2)
    candidates = (target[2], random_text([5], seed=3)[0])
    suite_item = replace(
        item(1),
        source=tuple(source[:3]),
        source_after=(source[3],),
        target_context=tuple(target[:2]),
        target_after=(target[3],),
        candidates=candidates,
    )
    system = DocMTSystem(model, words, past_context=2, future_context=1)
    for candidate, found in zip(candidates, system.token_log_probabilities([suite_item])[0], strict=True):
        sides = [" <sep> ".join(side) for side in (source, [*target[:2], candidate, target[3]])]
        ids, to = (words(side, split_special_tokens=False)["input_ids"] for side in sides)
        logits = model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([[BOS, *to[:-1]]])).logits
        start = sum(len(text.split()) + 1 for text in target[:2])
        positions = range(start, start + len(candidate.split()) + 1)
        expected = [float(logits[0].log_softmax(-1)[position, to[position]]) for position in positions]
        assert found == pytest.approx(expected, abs=1e-4)
