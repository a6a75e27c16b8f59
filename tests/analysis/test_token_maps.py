"""What tokens choose: shares of context sentences and groups, against weights computed word by word; pictures."""

import numpy as np
import pytest
import torch
from support.context_reference import LATENT, layer_outputs, normalized, positions, selected
from support.errors import refused
from support.reference import feed_forward, norm, reference_stack, weights_of
from support.tiny_models import BOD, EOS, build, random_text, word_tokenizer
from torch.nn import functional as F

from hf_docmt.analysis.model_runs import token_texts
from hf_docmt.analysis.pictures.analyses import draw_gates, draw_group_maps
from hf_docmt.analysis.token_maps import GateMap, GroupMap, GroupMaps, gate_map, group_maps, token_weights
from hf_docmt.data.tokenizers import train_tokenizer

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
        name = f"{layer}.context_attn" if routing else f"{layer}.context.attn"
        normed = f"{layer}.context_attn_layer_norm" if routing else f"{layer}.context.layer_norm"
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


SHARES = [[[0.5, 0.3, 0.2], [0.1, 0.5, 0.4]], [[0.7, 0.1, 0.2], [0.3, 0.3, 0.4]]]


@pytest.fixture
def gate():
    """Two layers, two tokens."""
    return GateMap(2, ("$x_", "</s>"), ("-1", "+1", "nothing"), np.array(SHARES))


def test_shares_in_a_report(gate):
    result = gate.result("talk")
    assert (result.value, result.n) == (pytest.approx(40), 2)
    assert {name: part.value for name, part in result.breakdown.items()} == {
        "offset=-1": 40.0, "offset=+1": 30.0, "offset=nothing": 30.0, "layer=1": 30.0, "layer=2": 50.0,
    }  # fmt: skip
    columns, tokens = ["-1", "+1", "nothing"], ["$x_", "</s>"]
    assert result.details == {"sentence": 2, "tokens": tokens, "columns": columns, "shares": SHARES}


def test_drawn_gates(gate, tmp_path, drawn):
    draw_gates(gate, tmp_path / "a.png", title="$5 {")
    (figure,) = drawn
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["mean of the layers", "layer 1", "layer 2"]
    for axes, shares in zip(figure.axes, [gate.mean, *gate.shares], strict=True):
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
def test_no_part_of_gates_covers_another(tmp_path, drawn, nothing_covers_anything, words, fields):
    found = gate_map(build("routing", **fields), random_text([2] * 5 + [words, 2]), word_tokenizer(), 6)
    draw_gates(found, tmp_path / "a.png", title="routing-en-de-" * 3)
    nothing_covers_anything(*drawn)


# Groups

GROUPED = [(shortening, kind) for shortening in ("grouping", "selecting") for kind in ("softmax", "sparsemax")]


def model_of(shortening="grouping", categorizer="sparsemax", **fields):
    return build("caching", past_context=1, shortening=shortening, categorizer=categorizer, **LATENT | fields)


@pytest.fixture(scope="module")
def groups():
    """Two sentences, four groups."""
    first = np.array([[0.0, 0.25, 0.0, 0.75], [0.0, 0.0, 0.0, 1.0]], dtype=np.float32)
    second = np.array([[0.0, 0.5, 0.0, 0.5], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]], dtype=np.float32)
    maps = (GroupMap(1, ("$x_", "</s>"), first), GroupMap(2, ("a", "b^$", "</s>"), second))
    return GroupMaps("selecting", "sparsemax", maps)


def test_sentences_are_read_with_language_codes():
    family = {"source_format": "[source_lang] X </s>", "target_format": "<start> [target_lang] X </s>"}
    model = model_of(**family, language_ids={"xx": 26, "yy": 27}, source_lang="xx", target_lang="yy")
    one = group_maps(model, TEXTS[:1], word_tokenizer()).sentences[0]
    ids = torch.tensor([[26, *(int(word[1:]) for word in TEXTS[0].split()), EOS]])
    np.testing.assert_array_equal(one.weights, token_weights(model, ids))


@torch.no_grad()
@pytest.mark.parametrize(("shortening", "categorizer"), GROUPED)
@pytest.mark.parametrize("fields", [{}, {"normalize_before": True, "use_bod": True}])
def test_maps_are_those_of_the_weights(shortening, categorizer, fields):
    model = model_of(shortening, categorizer, **fields)
    found = group_maps(model, TEXTS, word_tokenizer())
    assert (found.shortening, found.categorizer) == (shortening, categorizer)
    assert [one.sentence for one in found.sentences] == [1, 2, 3, 4]
    for one, text in zip(found.sentences, TEXTS):
        words = text.split()
        assert one.tokens == (*words, "</s>")
        states = reference_stack(model, "encoder", [*(int(word[1:]) for word in words), EOS])
        scores = [feed_forward(weights_of(model), "model.encoder.shortener", state, "relu") for state in states]
        if shortening == "grouping":
            expected = [normalized(categorizer, row) for row in scores]
        else:
            expected = zip(*(normalized(categorizer, column) for column in torch.stack(scores, dim=1)))
        expected = np.array([[float(weight) for weight in row] for row in expected])
        np.testing.assert_allclose(one.weights, expected, atol=1e-5)
        np.testing.assert_array_equal(one.weights > 0, expected > 0)
    zeros = [(one.weights == 0).any() for one in found.sentences]
    assert any(zeros) == (categorizer == "sparsemax")


def test_names_of_special_tokens_are_text():
    found = group_maps(model_of(), ["w7 <sep> w8 </s>"], word_tokenizer())
    assert found.sentences[0].tokens == ("w7", "<unk>", "w8", "<unk>", "</s>")


def test_use_of_groups(groups):
    assert groups.groups.values.tolist() == [
        [1, 0.0, 0, 0],
        [2, pytest.approx(43.75), 3, 2],
        [3, 0.0, 0, 0],
        [4, pytest.approx(56.25), 3, 2],
    ]
    assert (groups.used, groups.ungrouped) == (2, 1)
    assert [one.used for one in groups.sentences] == [2, 2]


def test_zeros_are_distinct_from_small_weights():
    one = GroupMap(1, ("a",), np.array([[0.0, 1.23456e-9, 0.999999]]))
    (shown,) = GroupMaps("grouping", "softmax", (one,)).result("talk").details["maps"]
    assert shown == {"sentence": 1, "tokens": ["a"], "weights": [[0.0, 1.235e-9, 1.0]]}


def test_drawn_groups(groups, tmp_path, drawn):
    draw_group_maps(groups, tmp_path / "a.png", title="$5 {")
    one, two, bar = drawn[0].axes
    for axes, expected in zip((one, two), groups.sentences):
        (image,) = axes.images
        np.testing.assert_array_equal(image.get_array().filled(0), expected.weights)
        np.testing.assert_array_equal(image.get_array().mask, expected.weights == 0)
        assert tuple(label.get_text() for label in axes.get_yticklabels()) == expected.tokens
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "3", "4"]
        assert axes.get_xlabel() == "group" and image.get_clim() == (0, 1)
    assert (one.get_ylabel(), bar.get_ylabel()) == ("token", "weight")
    assert two.get_title() == "sentence 2: 2 of 4 groups" and drawn[0].get_suptitle() == "$5 {, selecting"


@pytest.mark.parametrize(("lengths", "size"), [([1], 2), ([30], 9), ([12, 1, 25], 3), ([3, 9, 1, 20, 2], 11)])
def test_no_part_of_groups_covers_another(tmp_path, drawn, nothing_covers_anything, lengths, size):
    found = group_maps(model_of(shortening_size=size), random_text(lengths), word_tokenizer())
    draw_group_maps(found, tmp_path / "a.png", title="caching-en-de-" * 4)
    assert len(drawn[0].boxes) == len(lengths) + 2
    nothing_covers_anything(*drawn)


# Both


def test_models_as_they_were():
    tokenizer = word_tokenizer()
    for model, measure in (
        (build("doct", selection="routing", dropout=0.5), lambda model: gate_map(model, TEXTS, tokenizer).shares),
        (model_of(dropout=0.5), lambda model: group_maps(model, TEXTS, tokenizer).weights),
    ):
        expected = measure(model)
        assert not model.training
        assert np.array_equal(measure(model.train()), expected) and model.training
        assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize(
    ("measure", "architecture", "fields", "message"),
    [
        (gate_map, "concat", {}, "of architecture 'concat' words do not select among context sentences: expected one"),
        (gate_map, "doct", {}, "architecture 'doct' with selection='none' words do not select"),
        (
            group_maps,
            "concat",
            {},
            "a model of architecture 'concat' assigns no tokens to groups: expected one of arch",
        ),
        (group_maps, "caching", {"shortening": "avg"}, "'caching' with shortening='avg' assigns no tokens to groups"),
        (group_maps, "caching", {}, "with shortening='none' .* with shortening='grouping' or 'selecting'; give such"),
    ],
)
def test_other_models(measure, architecture, fields, message):
    refused(message, measure, build(architecture, **fields), TEXTS, word_tokenizer())


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["w7", "", "w8"], "sentence 2 is empty: got '', expected text; leave it out"),
        ([" \t"], "sentence 1 is empty"),
        ([], "expected a list of sentences; give at least one"),
        ("w7 w8", r"got 'w7 w8', expected a list of sentences; give at least one, as \[text\]"),
    ],
)
def test_bad_texts(texts, message):
    for measure, model in ((gate_map, build("routing")), (group_maps, model_of())):
        refused(message, measure, model, texts, word_tokenizer())


@pytest.mark.parametrize(
    ("texts", "sentence", "fields", "message"),
    [
        (["w7"], None, {}, "sentence 1 of 1 has no context: the model reads 1 sentence before and 1 after it; give"),
        (["w7", "w8"], 1, {"future_context": 0}, "sentence 1 of 2 has no context: .* before and 0 after it"),
        (["w7", "w8"], 0, {}, "sentence 0 of 2: expected a number from 1 to 2"),
    ],
)
def test_sentences_without_context(texts, sentence, fields, message):
    refused(message, gate_map, build("routing", **fields), texts, word_tokenizer(), sentence)


def test_texts_of_tokens():
    tokenizer = train_tokenizer(["The dog sees the cat."] * 5, "bpe", 300)
    ids = tokenizer("The 他 dog")["input_ids"]
    texts = token_texts(tokenizer, ids)
    assert "".join(text for text in texts if text != "…") == "The␣他dog</s>" and len(texts) == len(ids)
    assert "他" in texts and "…" in texts and not any("\ufffd" in text for text in texts)
    cut = tokenizer("他", add_special_tokens=False)["input_ids"][:-1]
    assert len(token_texts(tokenizer, cut)) == len(cut) and token_texts(tokenizer, []) == []
