"""Information gain of a memory's attention: against a document read by hand with hooks on both models; the command."""

import copy

import pytest
import torch
from support.errors import refused
from support.tiny_models import build, documents_of, random_text, word_tokenizer

from hf_docmt.analysis.information_gain import information_gain, information_gain_over, new_model
from hf_docmt.analysis.memory_maps import attention_maps, document_batches, empty_memory, forward_step, memory_stacks
from hf_docmt.modeling.segments import sinusoid

CASES = {
    "both sides, last layer": {},
    "target, all layers": {"memory_sides": "target", "memory_layers": [0, 1]},
    "norm first": {"memory_sides": "source", "memory_layers": [0], "normalize_before": True},
}


def documents():
    return documents_of(
        (random_text([3, 1, 4], seed=1), random_text([2, 5, 1], seed=2)),
        (["w7 w8", ""], random_text([1, 5], seed=4)),
        (random_text([2], seed=5), random_text([3], seed=6)),
    )


def entropy(weights):
    return -sum(float(p) * float(torch.log(p)) for p in weights if p > 0)


def by_hand(model, fresh):
    """Mean entropies of each layer of both, a sentence at a time; the fresh memory reads what the model's does."""
    examples_of = {key: [[], []] for key in keys_of(model)}
    for number in range(len(documents())):
        (steps,) = document_batches(model, documents().select([number]), word_tokenizer(), rows=1)
        memory = empty_memory(model, 1)
        fresh_memory = {
            side: dict(stack.by_layer(stack.initial_memory.weight[None]))
            for side, stack in memory_stacks(fresh).items()
        }
        for step in steps:
            with attention_maps(memory_stacks(model)) as maps:
                outputs, memory = forward_step(model, step, memory)
            states = dict(zip(("source", "target"), outputs.memory_states))
            for (kind, side, layer), weights in maps.items():
                unit, own = memory_stacks(fresh)[side].layers[layer].memory, fresh_memory[side]
                h = states[side][layer]
                if kind == "output":
                    fresh_weights = unit.output_attn(h, own[layer])[1]
                else:
                    positions = sinusoid(torch.arange(model.config.memory_size), model.config.d_model)
                    fresh_weights, after = unit.update_attn(own[layer] + positions, h)[1], unit.update(own[layer], h)
                for index, found in enumerate((fresh_weights, weights)):
                    rows = found[0].flatten(0, 1)  # (heads x queries, keys)
                    examples_of[kind, side, layer][index] += [entropy(row) for row in rows]
                if kind == "update":
                    own[layer] = after
    return {key: [sum(values) / len(values) for values in pair] for key, pair in examples_of.items()}


def keys_of(model):
    stacks = memory_stacks(model).items()
    return [
        (kind, side, layer) for side, stack in stacks for layer in stack.memory_layers for kind in ("update", "output")
    ]


@pytest.mark.parametrize("case", CASES)
def test_entropies_are_those_of_the_maps(case):
    model = build("memory", memory_size=3, **CASES[case])
    found = information_gain(model, documents(), word_tokenizer(), seed=3)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = by_hand(model, new_model(model, 3).eval())
    assert set(found.layers) == set(expected)
    for key, (random, trained) in expected.items():
        assert found.layers[key].random == pytest.approx(random, abs=1e-4), key
        assert found.layers[key].trained == pytest.approx(trained, abs=1e-4), key
        assert abs(found.layers[key].gain) > 1e-3
    (updates,) = {one.n for key, one in found.layers.items() if key[0] == "update"}
    assert updates == 3 * 6  # slots times sentences
    tokens = {"source": 3 + 1 + 4 + 2 + 0 + 2 + 6, "target": 2 + 5 + 1 + 1 + 5 + 3 + 6}
    assert all(one.n == tokens[key[1]] for key, one in found.layers.items() if key[0] == "output")


def test_documents_document_batches_are_documents_alone():
    model = build("memory", memory_size=3).train()
    model.set_attn_implementation("sdpa")
    one, many = (information_gain(model, documents(), word_tokenizer(), rows=rows) for rows in (1, 3))
    for key, part in one.layers.items():
        assert many.layers[key].n == part.n and many.layers[key].trained == pytest.approx(part.trained, abs=1e-5)
        assert many.layers[key].random == pytest.approx(part.random, abs=1e-5)
    assert model.training and model.config._attn_implementation == "sdpa"
    assert not any(module._forward_hooks for module in model.modules())


def test_a_memory_gains_nothing_over_itself():
    model = build("memory", memory_size=3)
    found = information_gain_over(model, copy.deepcopy(model), document_batches(model, documents(), word_tokenizer()))
    assert all(one.gain == pytest.approx(0, abs=1e-6) and one.trained > 0 for one in found.layers.values())


def test_uniform_attention():
    """Where queries are zero, entropies are the logarithms of the numbers of keys, and nothing is gained over that."""
    model = build("memory", memory_size=3)
    with torch.no_grad():
        for stack in memory_stacks(model).values():
            for attention in (stack.layers[-1].memory.update_attn, stack.layers[-1].memory.output_attn):
                attention.q_proj.weight.zero_()
                attention.q_proj.bias.zero_()
    found = information_gain_over(model, copy.deepcopy(model), document_batches(model, documents(), word_tokenizer()))
    assert found.layers["output", "source", 1].trained == pytest.approx(torch.log(torch.tensor(3.0)).item())
    lengths = torch.tensor([4.0, 2, 5, 3, 1, 3])  # with </s>
    assert found.layers["update", "source", 1].trained == pytest.approx(lengths.log().mean().item())
    assert found.mean("update").gain == pytest.approx(0, abs=1e-6)


def test_results():
    found = information_gain(build("memory", memory_size=3), documents(), word_tokenizer())
    update, output = found.results("talks")
    assert update.metric == "information gain of update attention" and output.details["memory_size"] == 3
    assert update.value == pytest.approx(found.mean("update").gain, abs=1e-6)
    sides = [update.breakdown[f"side={side}"].value for side in ("source", "target")]
    assert update.value == pytest.approx(sum(sides) / 2, abs=1e-5) and "source layer=1" in output.breakdown


def test_without_memory():
    refused("'concat' has no memory: expected", information_gain, build("concat"), documents(), word_tokenizer())
    refused("at least 1; got 0", information_gain, build("memory"), documents(), word_tokenizer(), rows=0)
