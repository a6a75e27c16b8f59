"""Shares of context sentences: against gates computed word by word; pictures, the command, bad input."""

import numpy as np
import pytest
import torch
from support.context_reference import layer_outputs, positions, selected
from support.reference import norm, reference_stack, weights_of
from support.tiny_models import BOD, EOS, build, random_text, word_tokenizer
from torch.nn import functional as F

from hf_docmt.analysis.pictures.maps import draw_gates
from hf_docmt.analysis.token_maps import GateMap, gate_map

TEXTS = random_text([3, 5, 1, 4], seed=1)
ROUTED = [
    ("routing", {}),
    ("routing", {"future_context": 0, "use_bod": True}),
    ("routing", {"past_context": 0, "normalize_before": True}),
    ("routing", {"past_context": 2, "future_context": 2}),
    ("doct", {"selection": "routing", "context_layers": 2}),
    ("doct", {"selection": "routing", "past_context": 1, "future_context": 1, "normalize_before": True}),
]


def ids_of(model, number: int) -> list[int]:
    begin = [BOD] if model.config.use_bod and number == 1 else []
    return [*begin, *(int(word[1:]) for word in TEXTS[number - 1].split()), EOS]


def gates(model, sentence: int) -> np.ndarray:
    """Equations 14 and 15 for each word in each layer, from states computed word by word: (layers, T, contexts)."""
    config, weights, routing = model.config, weights_of(model), model.config.model_type == "docmt-routing"
    table = weights["model.encoder.segment_embedding.weight"] if routing else None
    contexts, found = [], []
    for offset in [*range(-config.past_context, 0), *range(1, config.future_context + 1)]:
        if not 1 <= sentence + offset <= len(TEXTS):
            continue
        ids, side = ids_of(model, sentence + offset), "past" if offset < 0 else "future"
        if routing:
            outputs = layer_outputs(model, ids, table[0 if offset < 0 else 2])
        else:
            outputs = [reference_stack(model, "encoder", ids, layers="model.encoder.context_layers")] * 2
        contexts.append((offset + config.past_context - (offset > 0), side, outputs))

    def after_self_attention(side, number, states):
        layer = f"model.encoder.layers.{number}"
        name, normed = (
            (f"{layer}.context_attn", f"{layer}.context_attn_layer_norm")
            if routing
            else (f"{layer}.context.attn", f"{layer}.context.layer_norm")
        )
        x = norm(weights, normed, states) if config.normalize_before else states
        hidden = F.relu(x @ weights[f"{name}.selection.fc1.weight"].T + weights[f"{name}.selection.fc1.bias"])
        scores = [[*(weights[f"{name}.selection.fc2.weight"] @ word), torch.tensor(0.0)] for word in hidden]
        found.append([[float(score.exp() / sum(one.exp() for one in row)) for score in row] for row in scores])
        read = selected(model, name, x, [(index, when, outputs[number]) for index, when, outputs in contexts])
        if routing:
            states = states + read
        else:
            gate = torch.sigmoid(
                x @ weights[f"{layer}.context.state_gate.weight"].T
                + read @ weights[f"{layer}.context.context_gate.weight"].T
            )
            states = gate * states + (1 - gate) * read
        return states if config.normalize_before else norm(weights, normed, states)

    ids = ids_of(model, sentence)
    added = [positions(model, len(ids)) + table[1]] if routing else None
    reference_stack(model, "encoder", ids, added, after_self_attention=after_self_attention)
    return np.array(found)


# The shares


@torch.no_grad()
@pytest.mark.parametrize(("architecture", "fields"), ROUTED)
def test_shares_are_those_of_the_weights(architecture, fields):
    model = build(architecture, **fields)
    past, future = model.config.past_context, model.config.future_context
    offsets = [*range(-past, 0), *range(1, future + 1)]
    for sentence in range(1, 5):
        there = [offset for offset in offsets if 1 <= sentence + offset <= 4]
        if not there:
            continue
        found, expected = gate_map(model, TEXTS, word_tokenizer(), sentence), gates(model, sentence)
        begin = ("<bod>",) if model.config.use_bod and sentence == 1 else ()
        assert found.tokens == (*begin, *TEXTS[sentence - 1].split(), "</s>")
        complete = there == offsets and past and future
        assert found.columns == (*(f"{offset:+d}" for offset in there), *(() if complete else ("nothing",)))
        shares = expected[:, :, [offsets.index(offset) for offset in there]]
        np.testing.assert_allclose(found.shares[:, :, : len(there)], shares, atol=1e-5)
        np.testing.assert_allclose(found.shares.sum(axis=2), 1, atol=1e-5)
        np.testing.assert_allclose(found.mean[:, : len(there)], shares.mean(axis=0), atol=1e-5)


@pytest.mark.parametrize(("count", "expected"), [(2, 2), (3, 2), (4, 3)])
def test_the_middle_sentence(count, expected):
    assert gate_map(build("routing"), TEXTS[:count], word_tokenizer()).sentence == expected


def test_far_sentences_do_not_matter():
    model = build("routing")
    near = gate_map(model, TEXTS[1:], word_tokenizer(), 2)
    np.testing.assert_allclose(gate_map(model, TEXTS, word_tokenizer(), 3).shares, near.shares, atol=1e-6)


def test_model_as_it_was():
    model = build("doct", selection="routing", dropout=0.5)
    expected = gate_map(model, TEXTS, word_tokenizer()).shares
    assert not model.training
    found = gate_map(model.train(), TEXTS, word_tokenizer()).shares
    assert model.training and np.array_equal(found, expected)
    assert not any(module._forward_hooks for module in model.modules())


SHARES = [[[0.5, 0.3, 0.2], [0.1, 0.5, 0.4]], [[0.7, 0.1, 0.2], [0.3, 0.3, 0.4]]]


@pytest.fixture
def found():
    """Two layers, two tokens."""
    return GateMap(2, ("$x_", "</s>"), ("-1", "+1", "nothing"), np.array(SHARES))


def test_result_by_hand(found):
    result = found.result("talk")
    assert (result.value, result.n) == (pytest.approx(40), 2)
    assert {name: part.value for name, part in result.breakdown.items()} == {
        "offset=-1": 40.0, "offset=+1": 30.0, "offset=nothing": 30.0, "layer=1": 30.0, "layer=2": 50.0,
    }  # fmt: skip
    assert result.details == {
        "sentence": 2,
        "tokens": ["$x_", "</s>"],
        "columns": ["-1", "+1", "nothing"],
        "shares": SHARES,
    }


# Pictures


def test_what_is_drawn(found, tmp_path, drawn):
    draw_gates(found, tmp_path / "a.png", title="$5 {")
    (figure,) = drawn
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["mean of the layers", "layer 1", "layer 2"]
    for axes, shares in zip(figure.axes, [found.mean, *found.shares], strict=True):
        bars = [[(bar.get_y(), bar.get_height()) for bar in one] for one in axes.containers]
        for column, parts in enumerate(bars):
            below = shares[:, :column].sum(axis=1)
            np.testing.assert_allclose(parts, list(zip(below, shares[:, column])), atol=1e-9)
    labels = [label.get_text() for label in figure.axes[-1].get_xticklabels()]
    assert labels == ["$x_", "</s>"] and figure.get_suptitle() == "$5 {, sentence 2"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["-1", "+1", "nothing"]
    colours = {bars[0].get_facecolor() for bars in figure.axes[0].containers}
    assert len(colours) == 3


@pytest.mark.parametrize(("words", "fields"), [(1, {}), (40, {"encoder_layers": 6}), (6, {"past_context": 5})])
def test_no_part_covers_another(tmp_path, drawn, nothing_covers_anything, words, fields):
    found = gate_map(build("routing", **fields), random_text([2] * 5 + [words, 2]), word_tokenizer(), 6)
    draw_gates(found, tmp_path / "a.png", title="routing-en-de-" * 3)
    nothing_covers_anything(*drawn)


# Bad input


@pytest.mark.parametrize(
    ("architecture", "fields", "message"),
    [
        ("concat", {}, "a model of architecture 'concat' words do not select among context sentences: expected one of"),
        ("doct", {}, "architecture 'doct' with selection='none' words do not select"),
    ],
)
def test_models_without_selection(architecture, fields, message):
    with pytest.raises(ValueError, match=message):
        gate_map(build(architecture, **fields), TEXTS, word_tokenizer())


@pytest.mark.parametrize(
    ("texts", "sentence", "fields", "message"),
    [
        ([], None, {}, "expected a list of sentences; give at least one"),
        (["w7", "", "w8"], None, {}, "sentence 2 is empty: got '', expected text; leave it out"),
        (["w7"], None, {}, "sentence 1 of 1 has no context: the model reads 1 sentence before and 1 after it; give"),
        (["w7", "w8"], 1, {"future_context": 0}, "sentence 1 of 2 has no context: .* before and 0 after it"),
        (["w7", "w8"], 0, {}, "sentence 0 of 2: expected a number from 1 to 2"),
    ],
)
def test_bad_sentences(texts, sentence, fields, message):
    with pytest.raises(ValueError, match=message):
        gate_map(build("routing", **fields), texts, word_tokenizer(), sentence)
