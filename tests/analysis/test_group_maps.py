"""Which tokens go into which groups: against weights computed token by token; use, pictures, the command, bad input."""

import numpy as np
import pytest
import torch
from support.context_reference import LATENT, normalized
from support.reference import feed_forward, reference_stack, weights_of
from support.tiny_models import EOS, build, random_text, word_tokenizer

from hf_docmt.analysis.model_runs import token_texts
from hf_docmt.analysis.pictures.maps import draw_group_maps
from hf_docmt.analysis.token_maps import GroupMap, GroupMaps, group_maps, token_weights
from hf_docmt.data.tokenizers import train_tokenizer

TEXTS = random_text([5, 1, 3, 8], seed=1)
GROUPED = [(shortening, kind) for shortening in ("grouping", "selecting") for kind in ("softmax", "sparsemax")]


def model_of(shortening="grouping", categorizer="sparsemax", **fields):
    return build("caching", past_context=1, shortening=shortening, categorizer=categorizer, **LATENT | fields)


@pytest.fixture(scope="module")
def found():
    """Two sentences, four groups."""
    first = np.array([[0.0, 0.25, 0.0, 0.75], [0.0, 0.0, 0.0, 1.0]], dtype=np.float32)
    second = np.array([[0.0, 0.5, 0.0, 0.5], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]], dtype=np.float32)
    maps = (GroupMap(1, ("$x_", "</s>"), first), GroupMap(2, ("a", "b^$", "</s>"), second))
    return GroupMaps("selecting", "sparsemax", maps)


# The maps


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


def test_model_as_it_was():
    model = model_of(dropout=0.5)
    expected = group_maps(model, TEXTS, word_tokenizer()).weights
    assert not model.training
    found = group_maps(model.train(), TEXTS, word_tokenizer()).weights
    assert model.training and np.array_equal(found, expected)


def test_names_of_special_tokens_are_text():
    found = group_maps(model_of(), ["w7 <sep> w8 </s>"], word_tokenizer())
    assert found.sentences[0].tokens == ("w7", "<unk>", "w8", "<unk>", "</s>")


# Their use


def test_use_of_groups(found):
    assert found.groups.values.tolist() == [
        [1, 0.0, 0, 0],
        [2, pytest.approx(43.75), 3, 2],
        [3, 0.0, 0, 0],
        [4, pytest.approx(56.25), 3, 2],
    ]
    assert (found.used, found.ungrouped) == (2, 1)
    assert [one.used for one in found.sentences] == [2, 2]


def test_zeros_are_distinct_from_small_weights():
    one = GroupMap(1, ("a",), np.array([[0.0, 1.23456e-9, 0.999999]]))
    (shown,) = GroupMaps("grouping", "softmax", (one,)).result("talk").details["maps"]
    assert shown == {"sentence": 1, "tokens": ["a"], "weights": [[0.0, 1.235e-9, 1.0]]}


# Pictures


def test_what_is_drawn(found, tmp_path, drawn):
    draw_group_maps(found, tmp_path / "a.png", title="$5 {")
    one, two, bar = drawn[0].axes
    for axes, expected in zip((one, two), found.sentences):
        (image,) = axes.images
        np.testing.assert_array_equal(image.get_array().filled(0), expected.weights)
        np.testing.assert_array_equal(image.get_array().mask, expected.weights == 0)
        assert tuple(label.get_text() for label in axes.get_yticklabels()) == expected.tokens
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "3", "4"]
        assert axes.get_xlabel() == "group" and image.get_clim() == (0, 1)
    assert (one.get_ylabel(), bar.get_ylabel()) == ("token", "weight")
    assert two.get_title() == "sentence 2: 2 of 4 groups" and drawn[0].get_suptitle() == "$5 {, selecting"


@pytest.mark.parametrize(("lengths", "size"), [([1], 2), ([30], 9), ([12, 1, 25], 3), ([3, 9, 1, 20, 2], 11)])
def test_no_part_covers_another(tmp_path, drawn, nothing_covers_anything, lengths, size):
    found = group_maps(model_of(shortening_size=size), random_text(lengths), word_tokenizer())
    draw_group_maps(found, tmp_path / "a.png", title="caching-en-de-" * 4)
    assert len(drawn[0].boxes) == len(lengths) + 2
    nothing_covers_anything(*drawn)


# Bad input


@pytest.mark.parametrize(
    ("architecture", "fields", "message"),
    [
        ("concat", {}, "a model of architecture 'concat' assigns no tokens to groups: expected one of architecture"),
        ("caching", {"shortening": "avg"}, "architecture 'caching' with shortening='avg' assigns no tokens to groups"),
        ("caching", {}, "with shortening='none' .* with shortening='grouping' or 'selecting'; give such a model"),
    ],
)
def test_models_without_groups(architecture, fields, message):
    with pytest.raises(ValueError, match=message):
        group_maps(build(architecture, **fields), TEXTS, word_tokenizer())


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["w7", ""], "sentence 2 is empty: got '', expected text; leave it out"),
        ([" \t"], "sentence 1 is empty"),
        ([], "expected a list of sentences; give at least one"),
        ("w7 w8", r"got 'w7 w8', expected a list of sentences; give at least one, as \[text\]"),
    ],
)
def test_bad_texts(texts, message):
    with pytest.raises(ValueError, match=message):
        group_maps(model_of(), texts, word_tokenizer())


def test_texts_of_tokens():
    tokenizer = train_tokenizer(["The dog sees the cat."] * 5, "bpe", 300)
    ids = tokenizer("The 他 dog")["input_ids"]
    texts = token_texts(tokenizer, ids)
    assert "".join(text for text in texts if text != "…") == "TheĠ他dog</s>" and len(texts) == len(ids)
    assert "他" in texts and "…" in texts and not any("\ufffd" in text for text in texts)
    cut = tokenizer("他", add_special_tokens=False)["input_ids"][:-1]
    assert len(token_texts(tokenizer, cut)) == len(cut) and token_texts(tokenizer, []) == []
