"""Attention maps of a memory: against weights computed from the model's own states; pictures; the command."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.errors import refused
from support.tiny_models import build, documents_of, random_text, word_tokenizer

from hf_docmt.analysis.memory_maps import document_batches, empty_memory, forward_step, memory_maps, write_and_read_maps
from hf_docmt.analysis.pictures.analyses import draw_memory_maps
from hf_docmt.modeling.segments import sinusoid


def documents():
    other = (random_text([2, 2], seed=3), random_text([2, 2], seed=4))
    return documents_of(other, (random_text([3, 1, 4], seed=1), random_text([2, 5, 1], seed=2)))


def softmaxed(attention, queries, keys):
    """(B, Q, D), (B, K, D) -> mean of the heads, (Q, K), from the projections."""
    heads = [attention.heads(one)[0] for one in (attention.q_proj(queries), attention.k_proj(keys))]
    return (heads[0] @ heads[1].mT * attention.scaling).softmax(dim=-1).mean(dim=0).numpy()


@torch.no_grad()
def test_maps_are_those_of_the_states():
    model = build("memory", memory_size=3, memory_layers=[0, 1])
    found = memory_maps(model, documents(), word_tokenizer(), "d1", layer=0)
    assert len(found) == 3 * 4 and {one.layer for one in found} == {0}
    (steps,) = document_batches(model, documents().select([1]), word_tokenizer())
    memory = {
        f"{name}_memory": getattr(model.model, name).initial_memory.weight[None] for name in ("encoder", "decoder")
    }
    for sentence, step in enumerate(steps, 1):
        before = {name: state[:, :3] for name, state in memory.items()}
        outputs, memory = forward_step(model, step, memory)
        for side, name, states in zip(("source", "target"), ("encoder", "decoder"), outputs.memory_states):
            unit, own = getattr(model.model, name).layers[0].memory, before[f"{name}_memory"]
            expected = {
                "update": softmaxed(unit.update_attn, own + sinusoid(torch.arange(3), 16), states[0]).T,
                "output": softmaxed(unit.output_attn, states[0], own),
            }
            for attention, weights in expected.items():
                (one,) = [m for m in found if (m.attention, m.side, m.sentence) == (attention, side, sentence)]
                np.testing.assert_allclose(one.weights, weights, atol=1e-5)
                assert one.weights.sum(axis=int(attention == "output")) == pytest.approx(1, abs=1e-4)
    words = documents()[1]["translation"][1]
    shown = write_and_read_maps(found, 1)
    assert [(one.side, one.attention, one.sentence) for one in shown] == [
        ("source", "update", 1), ("source", "output", 2), ("target", "update", 1), ("target", "output", 2),
    ]  # fmt: skip
    assert shown[1].tokens == (*words["en"].split(), "</s>")
    assert shown[3].tokens[1:] == tuple(words["de"].split())


def test_one_side_and_the_model_as_it_was():
    model = build("memory", memory_size=3, memory_sides="target").train()
    model.set_attn_implementation("sdpa")
    found = memory_maps(model, documents(), word_tokenizer(), "d0")
    assert {one.side for one in found} == {"target"} and {one.layer for one in found} == {1}
    assert model.training and model.config._attn_implementation == "sdpa"
    assert not any(module._forward_hooks for module in model.modules())
    assert empty_memory(model, 2).keys() == {"decoder_memory"}


def test_bad_input():
    model = build("memory", memory_size=3)
    inputs, window = (documents(), word_tokenizer()), build("window", window=4, view="chunk")
    refused("document 'd7' is not in the data: .* there are d0, d1", memory_maps, model, *inputs, "d7")
    message = "layer 0 has no memory on the source side: expected one of 1"
    refused(message, memory_maps, model, *inputs, "d1", layer=0)
    refused("'window' has no memory", memory_maps, window, *inputs, "d1")
    found = memory_maps(model, documents(), word_tokenizer(), "d1")
    for sentence in (0, 3):
        refused(f"sentence {sentence} and the next one .* a number from 1 to 2", write_and_read_maps, found, sentence)


def test_signs_in_tokens_are_no_formula(tmp_path):
    pytest.importorskip("matplotlib")
    found = write_and_read_maps(memory_maps(build("memory", memory_size=3), documents(), word_tokenizer(), "d1"), 1)
    found[0] = replace(found[0], tokens=("$x_", *found[0].tokens[1:-1], "^$"))
    draw_memory_maps(found, tmp_path / "maps.png", title="$5 {")
    assert (tmp_path / "maps.png").read_bytes().startswith(b"\x89PNG")
