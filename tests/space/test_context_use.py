"""Which context a sentence used, by architecture: against attention shares, attention by hand, gates and gradients."""

import numpy as np
import pytest
import torch
from support.errors import refused
from support.tiny_models import SEP, build, documents_of, random_text, word_tokenizer

from hf_docmt.analysis.attention_share import attention_share
from hf_docmt.analysis.memory import (
    attention_maps,
    document_batches,
    embedding_gradients,
    empty_memory,
    forward_step,
    maps_of_step,
    memory_stacks,
    sentence_losses,
)

SOURCE, TARGET = random_text([3, 5, 4, 2], seed=1), random_text([3, 4, 5, 2], seed=2)
TOKENIZER = word_tokenizer()


def context_use(*arguments):
    from context_use import context_use

    return context_use(*arguments)


def used(model, sentence, source=SOURCE, target=TARGET):
    return context_use(model, source, target, TOKENIZER, sentence)


def shares_of(use):
    return {(one.offset, one.is_target): one.share for one in use.sentences}


@pytest.mark.parametrize("architecture", ["concat", "lst", "window"])
def test_segments_are_attention_shares(architecture):
    """A document in one chunk: row n of the paper's table is what sentence n reads."""
    model = build(architecture, view="chunk")
    expected = attention_share(model, documents_of((SOURCE, TARGET)), TOKENIZER).shares
    for sentence, row in enumerate(expected, 1):
        found = used(model, sentence)
        assert found.kind == "cross-attention" and len(found.tokens) == len(found.by_token)
        assert [one.offset + sentence for one in found.sentences] == [1, 2, 3, 4]
        assert [one.share for one in found.sentences] == pytest.approx(row.tolist(), abs=1e-4)
        assert found.by_token.mean(axis=0) == pytest.approx(row, abs=1e-4)


def cross_attention(model, source, target):
    """Mean of layers and heads while a target is written, (T, S)."""
    read = torch.tensor([[model.config.decoder_start_token_id, *target[:-1]]])
    model.set_attn_implementation("eager")
    inputs = {"input_ids": torch.tensor([source]), "decoder_input_ids": read}
    attentions = model(**inputs, output_attentions=True, use_cache=False).cross_attentions
    return torch.stack(attentions).mean(dim=(0, 2))[0]


@torch.no_grad()
def test_words_have_the_attention_of_their_tokens():
    model = build("concat", past_context=1)
    source = [*TOKENIZER(SOURCE[1])["input_ids"][:-1], SEP, *TOKENIZER(SOURCE[2])["input_ids"]]
    target = [*TOKENIZER(TARGET[1])["input_ids"][:-1], SEP, *TOKENIZER(TARGET[2])["input_ids"]]
    weights = cross_attention(model, source, target)
    expected = 100 * weights[target.index(SEP) + 1 :].mean(dim=0)  # while the current sentence is written
    before = used(model, 3).sentences[0]
    assert [text for text, _ in before.words if text.strip()] == SOURCE[1].split()
    assert "".join(text for text, _ in before.words) == SOURCE[1]
    assert [share for text, share in before.words if text.strip()] == pytest.approx(expected[:5].tolist(), abs=1e-4)


def test_blank_sentences_are_skipped():
    model = build("concat", past_context=2)
    blank = [SOURCE[0], " ", *SOURCE[1:]]
    found = used(model, 4, blank, [TARGET[0], "", *TARGET[1:]])
    assert shares_of(found) == pytest.approx(shares_of(used(model, 3)))
    assert found.sentences[-1].text == SOURCE[2] and found.context == found.sentences[:-1]
    refused("sentence 2 is blank", used, model, 2, blank, [TARGET[0], "", *TARGET[1:]])


CONTEXT = [
    ("multiencoder", {"integration": "sequential"}),
    ("multiencoder", {"integration": "parallel", "missing_context": "eos"}),
    ("caching", {"context_sides": "both"}),
    ("caching", {"shortening": "avg", "shortening_size": 2, "include_current": False}),
    ("doct", {}),
]


@torch.no_grad()
@pytest.mark.parametrize(("architecture", "fields"), CONTEXT)
def test_context_attention_by_hand(architecture, fields):
    """One layer: softmax(q k) of what its attention to the context gets, summed over the tokens of each sentence."""
    model = build(architecture, past_context=2, decoder_layers=1, decoder_attention_heads=1, **fields)
    attention = model.model.decoder.layers[0].context.attn
    attention = getattr(attention, "attn", attention)
    seen = []
    handle = attention.register_forward_pre_hook(lambda module, inputs: seen.append(inputs))
    found = used(model, 3)
    handle.remove()
    states, vectors, *_ = seen[0]
    scores = attention.q_proj(states)[0] @ attention.k_proj(vectors)[0].T * attention.scaling
    texts = [(-2, False, SOURCE[0]), (-1, False, SOURCE[1])]
    texts += [(-2, True, TARGET[0]), (-1, True, TARGET[1])] if fields.get("context_sides") == "both" else []
    lengths = [len(text.split()) + 1 for *_, text in texts]
    if architecture == "caching":  # a row of vectors a sentence, padded
        size = fields.get("shortening_size", 1)
        rows = vectors.shape[1] // len(texts)
        spans = [(n * rows, n * rows - (-length // size)) for n, length in enumerate(lengths)]
    else:
        ends = np.cumsum(lengths)
        spans = list(zip([0, *ends[:-1]], ends))
    kept = torch.cat([torch.arange(*span) for span in spans])
    weights = torch.zeros_like(scores)
    weights[:, kept] = scores[:, kept].softmax(dim=1)
    expected = {text[:2]: 100 * float(weights[:, slice(*span)].sum(dim=1).mean()) for text, span in zip(texts, spans)}
    assert shares_of(found) == pytest.approx(expected, abs=1e-3)
    assert found.kind == {"doct": "gate"}.get(architecture, "context attention")
    assert (found.gate is not None) == (architecture == "doct")


@torch.no_grad()
@pytest.mark.parametrize("kind", ["encoder", "decoder", "joint"])
def test_hierarchical_attention_by_hand(kind):
    """One head: what a word finds in a sentence is its share of the sentence, shared out to the words there."""
    fields = dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 1)
    model = build("han", past_context=2, hierarchical_attention=kind, **fields)
    stack, text = (model.model.encoder, SOURCE) if kind == "encoder" else (model.model.decoder, TARGET)
    attention, seen = stack.layers[-1].context, {}
    for name in ("word_attn.k_proj", "word_attn.q_proj", "sentence_attn.k_proj", "sentence_attn.q_proj", "gate"):
        projection = attention.get_submodule(name)
        projection.register_forward_hook(lambda module, inputs, output, name=name: seen.update({name: output}))
    found = used(model, 3)
    query, keys = seen["word_attn.q_proj"][0], seen["word_attn.k_proj"][0].unflatten(0, (2, -1))  # (T, D), (C, L, D)
    rows = zip(seen["sentence_attn.q_proj"][:, 0], seen["sentence_attn.k_proj"])  # (D), (C, D) each
    shares = torch.stack([(sentences @ word / 4).softmax(0) for word, sentences in rows])  # (T, C); the root of 16
    first = kind != "encoder"  # the decoder reads the word behind the start token
    for number, place in enumerate((-2, -1)):
        words = keys[number, first : first + len(text[2 + place].split())]
        expected = 100 * (shares[:, number, None] * (query @ words.T / 4).softmax(1)).mean(dim=0)
        sentence = found.sentences[number]
        assert (sentence.offset, sentence.is_target, sentence.text) == (place, first, text[2 + place])
        assert sentence.share == pytest.approx(float(expected.sum()), abs=1e-3)
        assert [share for word, share in sentence.words if word.strip()] == pytest.approx(expected.tolist(), abs=1e-3)
    assert found.kind == "hierarchical attention" and len(found.tokens) == len(found.by_token) == len(query)
    assert found.gate == pytest.approx(100 * float(1 - torch.sigmoid(seen["gate"]).mean()), abs=1e-3)
    assert used(model, 1).sentences == () and used(model, 1).gate is None


@torch.no_grad()
def test_gate_of_doct_by_hand():
    model = build("doct", past_context=1)
    opened = []
    for stack in (model.model.encoder, model.model.decoder):
        for layer in stack.layers:
            kept = {}
            gate = layer.context
            gate.state_gate.register_forward_hook(lambda m, i, o, kept=kept: kept.update(state=o))
            gate.context_gate.register_forward_hook(
                lambda m, i, o, kept=kept: opened.append((1 - torch.sigmoid(kept["state"] + o)).mean().item())
            )
    assert used(model, 2).gate == pytest.approx(100 * np.mean(opened), abs=1e-3)
    assert used(model, 1).gate is None and used(model, 1).sentences == ()


@torch.no_grad()
def test_gate_of_context_attention_by_hand():
    model = build("caching", past_context=1, shortening="sentence")
    assert model.config.context_gate
    for layer in model.model.decoder.layers:
        layer.context.gate.weight.zero_()
        layer.context.gate.bias.fill_(np.log(3))  # sigmoid 0.75
    assert used(model, 2).gate == pytest.approx(75, abs=1e-4)


@pytest.mark.parametrize("shortening", ["grouping", "selecting"])
@torch.no_grad()
def test_groups_are_taken_apart(shortening):
    """Attention to one group alone: the words have their weights in it."""
    model = build("caching", past_context=1, shortening=shortening, shortening_size=1, include_current=False)
    found = used(model, 2)
    ids = torch.tensor([TOKENIZER(SOURCE[0])["input_ids"]])
    states, *_ = model.get_encoder().read(ids, torch.ones_like(ids))
    column = model.get_encoder().shortener.categories(states, torch.ones_like(ids))[0, :, 0]
    expected = (100 * column / column.sum()).tolist()[:-1]  # without the end mark
    assert found.kind == "groups" and shares_of(found) == {(-1, False): pytest.approx(100)}
    assert [share for text, share in found.sentences[0].words if text.strip()] == pytest.approx(expected, abs=1e-3)


@torch.no_grad()
def test_source_next_to_context_is_the_current_sentence():
    """[context; source] as one sequence: a lone mark of no context stands in front of the source."""
    model = build("multiencoder", past_context=1, integration="concatenate", missing_context="eos")
    found = used(model, 2)
    assert sum(shares_of(found).values()) == pytest.approx(100) and list(shares_of(found)) == [(-1, False), (0, False)]
    source, target = (TOKENIZER(side[0])["input_ids"] for side in (SOURCE, TARGET))
    weights = cross_attention(model, source, target)[:, 1:]  # without the mark
    expected = 100 * (weights / weights.sum(dim=1, keepdim=True)).mean(dim=0)[:-1]
    words = used(model, 1).sentences[0].words
    assert [share for text, share in words if text.strip()] == pytest.approx(expected.tolist(), abs=1e-3)


@pytest.mark.parametrize(("architecture", "fields"), [("routing", {}), ("doct", {"selection": "routing"})])
def test_gates_are_those_of_the_selection(architecture, fields):
    """Mean of layers and words of what the modules give that choose among the sentences before and after."""
    model = build(architecture, past_context=1, future_context=1, **fields)
    seen = []
    for layer in model.get_encoder().layers:
        selection = next(module for name, module in layer.named_modules() if name.endswith("selection"))
        selection.register_forward_hook(lambda module, inputs, output: seen.append(output))
    found = used(model, 2)
    expected = 100 * torch.cat(seen).mean(dim=(0, 1))
    assert found.kind == "gate" and found.tokens == (*SOURCE[1].split(), "</s>")
    assert shares_of(found) == pytest.approx({(-1, False): float(expected[0]), (1, False): float(expected[1])})
    assert list(shares_of(used(model, 1))) == [(1, False)] and list(shares_of(used(model, 4))) == [(-1, False)]
    assert used(model, 1, SOURCE[:1], TARGET[:1]).sentences == ()


def test_memory_is_gradients_and_slots():
    """Words have the gradients of the loss at their embeddings, slots the attention of both sides in the last layer."""
    source, target = ["w6 w7 w8", "w9 w10"], ["w11 w12", "w13 w14 w15"]
    model = build("memory")
    found = used(model, 2, source, target)
    (steps,) = document_batches(model, documents_of((source, target)), TOKENIZER)
    with embedding_gradients(model) as embeddings:
        *_, (earlier, loss) = sentence_losses(model, steps, embeddings, 1)
        sides = ("source", "target")
        norms = [grad[0].norm(dim=1) for grad in torch.autograd.grad(loss, [earlier[1][1][side] for side in sides])]
    words = {(one.offset, one.is_target): sum(share for _, share in one.words) for one in found.sentences}
    assert list(words) == [(-1, False), (-1, True), (0, False), (0, True)]
    expected = norms[1][1:].sum() / norms[0][:3].sum()  # without the start token, without the end mark
    assert words[(-1, True)] / words[(-1, False)] == pytest.approx(float(expected), rel=1e-3)
    assert sum(one.share for one in found.sentences) == pytest.approx(100)
    stacks, memory, maps = memory_stacks(model), empty_memory(model, 1), []
    model.set_attn_implementation("eager")
    with attention_maps(stacks) as weights, torch.no_grad():
        for number, step in enumerate(steps, 1):
            _, memory = forward_step(model, step, memory)
            maps += maps_of_step(weights, dict.fromkeys(stacks, 1), step, number, TOKENIZER)
    read = {one.side: 100 * one.weights.mean(axis=0) for one in maps if (one.attention, one.sentence) == ("output", 2)}
    for side, expected in read.items():
        assert [one.share for one in found.slots if one.side == side] == pytest.approx(expected.tolist())
    (written,) = [one for one in maps if (one.attention, one.sentence, one.side) == ("update", 1, "source")]
    best = written.tokens[int(written.weights[:, 0].argmax())]
    assert found.slots[0].words[0] == (best, pytest.approx(100 * float(written.weights[:, 0].max())))
    assert used(model, 1, source, target).context == () and used(model, 1, source, target).slots == ()


def test_bad_input():
    model = build("concat", past_context=1)
    refused("4 source sentences but 3 translations", context_use, model, SOURCE, TARGET[:3], TOKENIZER, 1)
    refused("sentence 5 of 4", used, model, 5)
    model.config.source_lang = None
    refused("source_lang=None", used, model, 1)
