"""Training steps and searches of all architectures under `torch.compile`, as one graph; attention by compiled masks."""

import pytest
import torch
from support.battery import gradients, moved, on_device
from support.tiny_models import build, context_fields, documents_of, random_text, word_tokenizer
from transformers import CompileConfig

from hf_docmt.loading import registry

FIELDS = context_fields(
    caching={"shortening": "grouping", "shortening_size": 2},
    concat={"segment_encoding": "learned"},
    doct={"selection": "routing"},
    gtransformer={"global_layers": 1, "restarts_positions": True},
    han={"context_sides": "both"},
    memory={"memory_size": 3},
    window={"window": 2},
)


def model_and_batch(architecture: str, device, lengths: tuple[int, ...] = (3, 1, 4)):
    """One layer a side; the batch has padding."""
    arch = registry.get(architecture)
    model = build(architecture, encoder_layers=1, decoder_layers=1, **FIELDS[architecture])
    documents = documents_of((random_text(list(lengths)), random_text(list(lengths)[::-1])))
    examples = arch.examples(documents, word_tokenizer(), model.config)
    chosen = [examples[number] for number in sorted({0, len(examples) - 1})]
    batch = arch.collator(model.config, word_tokenizer())(chosen)
    return on_device(model, device).train(), moved(batch, device)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("architecture", FIELDS)
def test_one_graph(architecture, device, backend):
    """The loss and gradients of the compiled step are those of the plain one."""
    model, batch = model_and_batch(architecture, device)
    expected = (model(**batch).loss.detach(), *gradients(model, batch))
    model.zero_grad()
    torch.compiler.reset()
    loss = torch.compile(lambda **batch: model(**batch).loss, backend=backend, fullgraph=True)(**batch)
    loss.backward()
    found = (loss.detach(), *(one.grad for one in model.parameters() if one.grad is not None))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", FIELDS)
def test_one_graph_of_a_search(architecture, device):
    """As `_can_compile_fullgraph` says; transformers compiles a step by itself where the cache is static."""
    model, batch = model_and_batch(architecture, device)
    assert model.eval()._can_compile_fullgraph
    names = ("input_ids", "attention_mask", *model.model.encoder_input_names)
    inputs = {name: batch[name] for name in names if name in batch}
    inputs |= {"max_new_tokens": 5, "min_new_tokens": 5, "num_beams": 1, "do_sample": False}
    torch.compiler.reset()
    compiled = CompileConfig(fullgraph=True, dynamic=False, mode="default", backend="eager")
    compiled._compile_all_devices = True
    found = model.generate(**inputs, cache_implementation="static", compile_config=compiled)
    assert torch.equal(found, model.generate(**inputs))


@pytest.mark.gpu
@pytest.mark.parametrize("architecture", [name for name in FIELDS if name != "window"])
def test_flex_attention(architecture, device):
    """Loss and gradients as with sdpa, and the same translations."""
    model, batch = model_and_batch(architecture, device)
    model.eval()
    documents, found = [random_text([2, 3])], []
    for implementation in ("sdpa", "flex_attention"):
        model.set_attn_implementation(implementation)
        texts = model.translate_documents(documents, word_tokenizer(), max_new_tokens=4)
        found.append((texts, model(**batch).loss.detach(), *gradients(model, batch)))
    assert found[0][0] == found[1][0]
    for one, other in zip(found[0][1:], found[1][1:], strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)
