"""Gradients by distance: against a document read by hand with one graph; what is unique; the command."""

import pytest
import torch
from support.errors import refused
from support.tiny_models import build, documents_of, random_text, word_tokenizer

from hf_docmt.analysis.gradient_attribution import Attribution, gradient_attribution
from hf_docmt.analysis.memory_maps import document_batches, empty_memory, forward_step
from hf_docmt.reports.result import PartScore

LENGTHS = [[3, 1, 4, 2, 3], [2, 1], [1, 0, 2]]
CASES = {
    "both": {},
    "source, all layers": {"memory_sides": "source", "memory_layers": [0, 1]},
    "own embeddings": {"memory_sides": "target", "share_encoder_decoder_embeddings": False},
}


def documents():
    return documents_of(
        *((random_text(one, seed=n), random_text(one[::-1], seed=9 + n)) for n, one in enumerate(LENGTHS))
    )


def embeddings_and_losses(model, steps):
    """Of all sentences of one document, in one graph; embeddings are those of the source, the target, the source, …"""
    taken, memory, losses = [], empty_memory(model, 1), []
    tables = {model.model.encoder.embed_tokens, model.model.decoder.embed_tokens}
    hooks = [table.register_forward_hook(lambda module, inputs, output: taken.append(output)) for table in tables]
    for step in steps:
        outputs, memory = forward_step(model, step, memory)
        losses.append(torch.nn.functional.cross_entropy(outputs.logits[0], step["labels"][0]))
    for hook in hooks:
        hook.remove()
    return taken, losses


def by_hand(model, ranges):
    """Score of each range and side, and the pairs: one graph for a document, a gradient for each pair of sentences."""
    sums = {side: [0.0] * len(ranges) for side in ("source", "target")}
    pairs = [0] * len(ranges)
    for number in range(len(documents())):
        (steps,) = document_batches(model, documents().select([number]), word_tokenizer(), rows=1)
        taken, losses = embeddings_and_losses(model, steps)
        for i, loss in enumerate(losses):
            for index, (first, last) in enumerate(ranges):
                near = [s for s in range(i + 1) if first <= i - s <= last]
                pairs[index] += len(near)
                for shift, (side, name) in enumerate((("source", "input_ids"), ("target", "decoder_input_ids"))):
                    words = {}
                    for s in near:
                        (gradient,) = torch.autograd.grad(
                            loss, taken[2 * s + shift], retain_graph=True, allow_unused=True
                        )
                        for token, vector in zip(steps[s][name][0].tolist(), [] if gradient is None else gradient[0]):
                            if token >= 6:
                                words[token] = words.get(token, 0) + vector
                    sums[side][index] += sum(vector.norm().item() for vector in words.values())
    return {side: [one / n for one, n in zip(found, pairs)] for side, found in sums.items()}, pairs


@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_one_graph(case):
    model = build("memory", memory_size=3, **CASES[case])
    ranges = ((0, 0), (1, 1), (2, 2), (1, 2))
    expected, pairs = by_hand(model, ranges)
    for step, kept in ((1, [0, 1, 2]), (2, [0, 3])):
        found = gradient_attribution(model, documents(), word_tokenizer(), reach=2, step=step, rows=3)
        assert found.ranges == tuple(ranges[k] for k in kept) and found.pairs == tuple(pairs[k] for k in kept)
        for side in ("source", "target"):
            assert getattr(found, side) == pytest.approx([expected[side][k] for k in kept], rel=1e-3, abs=1e-7)
    if case == "source, all layers":
        assert found.target[1] == 0  # nothing of the target is remembered
    assert all(score > 0 for score in found.both)


@pytest.mark.parametrize("reach", [1, 3, 50])
def test_runs_and_rows_do_not_matter(reach):
    model = build("memory", memory_size=3).train()
    frozen = model.lm_head.bias if model.lm_head.bias is not None else model.model.encoder.layers[0].fc1.weight
    frozen.requires_grad_(False)
    one, many = (gradient_attribution(model, documents(), word_tokenizer(), reach=reach, rows=r) for r in (1, 4))
    assert one.pairs == many.pairs and one.both == pytest.approx(many.both, rel=1e-3)
    longer = gradient_attribution(model, documents(), word_tokenizer(), reach=4, step=1)
    nearer = gradient_attribution(model, documents(), word_tokenizer(), reach=reach, step=1)
    assert nearer.both == pytest.approx(longer.both[: reach + 1], rel=1e-3)
    assert one.ranges[-1] == (1, min(reach, 4)) and one.reach == min(reach, 4)
    uneven = gradient_attribution(model, documents(), word_tokenizer(), reach=4, step=3)
    assert uneven.ranges[1:] == ((1, 3), (4, 4)) and uneven.result("d").signature["step"] == "3"
    assert model.training and not frozen.requires_grad and model.model.encoder.embed_tokens.weight.requires_grad
    assert not any(module._forward_hooks for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_language_codes_are_no_words():
    """In a multilingual Marian they are ordinary tokens to the tokenizer."""
    model = build("memory", memory_size=3)
    words = {token for row in documents() for pair in row["translation"] for token in pair["de"].split()}
    codes = word_tokenizer().convert_tokens_to_ids(sorted(words))
    model.config.language_ids = {f"l{token}": token for token in codes}
    found = gradient_attribution(model, documents(), word_tokenizer(), reach=2, step=1)
    assert found.target == (0.0, 0.0, 0.0)


def test_result():
    found = Attribution(((0, 0), (1, 2), (3, 3)), (1.0, 0.2, 0.1), (2.0, 0.2, 0.0), (9, 6, 2), reach=3)
    assert found.labels == ("0", "1-2", "3") and found.both == (3.0, 0.4, 0.1)
    result = found.result("talks")
    assert result.value == pytest.approx((0.4 * 6 + 0.1 * 2) / 8) and result.n == 8
    assert result.breakdown["distance=1-2"] == PartScore(0.4, 6)


def test_bad_input():
    model = build("memory", memory_size=3)
    for name in ("reach", "step"):
        message = f"{name} is a number of sentences, at least 1; got 0"
        refused(message, gradient_attribution, model, documents(), word_tokenizer(), **{name: 0})
    short = documents_of((["w7"], ["w8"]))
    refused("no document has more than one sentence", gradient_attribution, model, short, word_tokenizer())
    refused("'lst' has no memory", gradient_attribution, build("lst"), documents(), word_tokenizer())
