"""Shares of cross-attention: against maps that are kept and counted token by token."""

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from support.errors import refused
from support.tiny_models import SEP, build, documents_of, random_text, word_tokenizer

from hf_docmt.analysis.attention_share import attention_share, count_shares
from hf_docmt.loading import registry
from hf_docmt.systems.attention_weights import attention_weights

SCRIPTS = Path(__file__).resolve().parents[2] / "examples" / "analysis"
CASES = {
    "concat window": ("concat", {"past_context": 2}),
    "concat source": ("concat", {"past_context": 1, "future_context": 1, "context_sides": "source"}),
    "lst chunk": ("lst", {"view": "chunk", "chunk_tokens": 14}),
}


def documents():
    lengths = [3, 1, 4, 2, 3]
    return documents_of(
        (random_text(lengths, seed=1), random_text(lengths[::-1], seed=2)),
        (["w7 w8", ""], random_text([1, 5], seed=4)),
    )


def counted(model, corpus):
    """Share by target and source sentence, and by layer and head, token by token, an example at a time."""
    architecture, config = registry.for_config(model.config), model.config
    examples, collate = architecture.examples(corpus, word_tokenizer(), config), architecture.collator
    model.set_attn_implementation("eager")
    paid, heads = {}, []
    for example in (examples[number] for number in range(len(examples))):
        batch = collate(config, word_tokenizer())([example])
        with torch.no_grad():
            maps = torch.stack(model(**batch, output_attentions=True).cross_attentions)[:, 0]  # (layers, H, T, S)
        source, written = batch["input_ids"][0].tolist(), batch["labels"][0].tolist()
        before = example["current"] if config.context_sides == "source" else 0
        for position in range(len(written)):
            n = before + written[:position].count(SEP)
            row = paid.setdefault(n, {})
            for key in range(len(source)):
                m = source[:key].count(SEP)
                row.setdefault(m, []).append(maps[:, :, position, key].mean())
            heads.append(maps[:, :, position, [k for k in range(len(source)) if source[:k].count(SEP) == n]].sum(-1))
            row["tokens"] = row.get("tokens", 0) + 1
    return paid, 100 * torch.stack(heads).mean(dim=0)


@pytest.mark.parametrize("case", CASES)
def test_shares_are_those_of_the_maps(case):
    architecture, fields = CASES[case]
    model = build(architecture, **fields)
    found = attention_share(model, documents(), word_tokenizer())
    paid, heads = counted(model, documents())
    expected = np.zeros_like(found.shares)
    for n, row in paid.items():
        assert found.tokens[n] == row.pop("tokens")
        for m, weights in row.items():
            expected[n, m] = 100 * sum(weights) / found.tokens[n]
    np.testing.assert_allclose(found.shares, expected, atol=1e-3)
    np.testing.assert_allclose(found.heads, heads, atol=1e-3)
    assert found.value == pytest.approx(float(heads.mean()), abs=1e-3)
    assert 5 < found.value < 95 and found.tokens.sum() > 10


def test_batches_do_not_matter_and_the_model_stays_as_it_was():
    model = build("concat", past_context=2).train()
    model.set_attn_implementation("sdpa")
    one, many = (attention_share(model, documents(), word_tokenizer(), size) for size in (1, 4096))
    for name in ("shares", "heads", "tokens"):
        np.testing.assert_allclose(getattr(one, name), getattr(many, name), atol=1e-3)
    assert model.training and model.config._attn_implementation == "sdpa"
    assert not any(module._forward_hooks for module in model.modules())


def test_sentence_level_pays_all_to_its_sentence():
    found = attention_share(build("concat"), documents(), word_tokenizer())
    assert found.shares.tolist() == [[pytest.approx(100, abs=1e-3)]]


def test_chosen_keys_by_their_positions():
    """Weights of some keys, in any order, with their positions, are those of a map that is zero elsewhere."""
    positions = torch.stack([torch.randperm(8)[:3] for _ in range(16)]).view(2, 8, 3)
    chosen = torch.rand(2, 4, 8, 3)
    whole = torch.zeros(2, 4, 8, 8).scatter(3, positions[:, None].expand(2, 4, 8, 3), chosen)
    torch.testing.assert_close(attention_weights((None, chosen, positions), 8), whole)
    outside = torch.cat([positions, torch.tensor([-1, 9]).view(2, 1, 1).expand(2, 8, 1)], dim=2)  # no such keys
    none = torch.cat([chosen, torch.zeros(2, 4, 8, 1)], dim=3)
    torch.testing.assert_close(attention_weights((None, none, outside), 8), whole)
    assert attention_weights((None, whole, None), 8) is whole


def test_attention_without_weights():
    refused("for all 4 source tokens, .*; got none", attention_weights, (None, None), 4)
    refused("got those of 3 keys", attention_weights, (None, torch.rand(1, 4, 4, 3)), 4)
    model = build("concat", past_context=1)
    for layer in model.get_decoder().layers:
        del layer.encoder_attn
    refused("has no cross-attention", count_shares, model, [])


DECODED = {
    "full": ("concat", {"view": "chunk", "chunk_tokens": 14}, "full"),
    "sequential": ("concat", {"view": "chunk", "chunk_tokens": 14, "use_bod": True}, "sequential"),
    "lst": ("lst", {"past_context": 2}, "sliding"),
    "window": ("window", {"view": "chunk", "chunk_tokens": 14, "window": 3}, "sequential"),
    "source": ("concat", {"past_context": 2, "context_sides": "source"}, "sliding"),
}


@pytest.fixture
def search_shares(monkeypatch):
    """Of the scripts' folder."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return runpy.run_path(str(SCRIPTS / "recorded_search.py"))["search_shares"]


OPTIONS = {"max_new_tokens": 6, "batch_size": 1, "use_cache": False}


def decoded(model, corpus, strategy):
    """Shares and tokens by target sentence, from what `generate` itself returns at every step, greedy."""
    paid, heads, generate = {}, [], model.generate
    sep = model.config.sep_token_id

    def kept(*arguments, generation_config, stopping_criteria, **inputs):
        generation_config.update(output_attentions=True, return_dict_in_generate=True)
        out = generate(*arguments, generation_config=generation_config, stopping_criteria=stopping_criteria, **inputs)
        source, ids = inputs["input_ids"][0].tolist(), out.sequences[0].tolist()
        prompt = len(ids) - len(out.cross_attentions)
        limit, written = int(stopping_criteria[0].row_ends[0]), ids[prompt:]
        ends = {3, sep} if strategy == "sequential" else {3}
        for step, layers in enumerate(out.cross_attentions):
            if prompt + step >= limit or ends & set(written[:step]):
                break
            before = source.count(sep) if model.config.context_sides == "source" else 0
            n = before + ids[1 : prompt + step].count(sep)
            maps = torch.stack(layers)[:, 0, :, -1]  # (layers, H, S)
            row = paid.setdefault(n, {"tokens": 0})
            row["tokens"] += 1
            for key in range(len(source)):
                m = source[:key].count(sep)
                row[m] = row.get(m, 0) + float(maps[:, :, key].mean())
            heads.append(maps[:, :, [k for k in range(len(source)) if source[:k].count(sep) == n]].sum(-1))
        return out.sequences

    model.set_attn_implementation("eager")
    model.generate = kept
    texts = [[pair["en"] for pair in row["translation"]] for row in corpus]
    repairs = {"repairs": "none"} if model.translator_class.repaired_strategies(model.config) else {}
    repairs = {} if strategy == "sequential" else repairs
    model.translate_documents(texts, word_tokenizer(), strategy, **repairs, **OPTIONS)
    del model.generate
    return paid, 100 * torch.stack(heads).mean(dim=0)


@pytest.mark.parametrize("case", DECODED)
def test_shares_while_decoding(case, search_shares):
    """The attention of the chosen hypotheses is that of the steps which wrote them."""
    architecture, fields, strategy = DECODED[case]
    model = build(architecture, **fields)
    model.final_logits_bias[0, SEP] += 1.5
    settings = OPTIONS | {"batch_size": 3, "use_cache": True}
    found = search_shares(model, documents(), word_tokenizer(), strategy, **settings)
    paid, heads = decoded(model, documents(), strategy)
    assert found.tokens.tolist() == [paid.get(n, {"tokens": 0})["tokens"] for n in range(len(found.tokens))]
    expected = np.zeros_like(found.shares)
    for n, row in paid.items():
        for m in set(row) - {"tokens"}:
            expected[n, m] = 100 * row[m] / row["tokens"]
    np.testing.assert_allclose(found.shares, expected, atol=1e-3)
    np.testing.assert_allclose(found.heads, heads, atol=1e-3)
    assert 5 < found.value < 95


@pytest.mark.parametrize("future_context", [1, 2])
def test_shares_of_sentences_alone_where_the_model_reads_later_ones(future_context, search_shares):
    """The strategy `sentence` gives a model of source windows the current sentence, and nothing behind it."""
    model = build("concat", past_context=1, future_context=future_context, context_sides="source")
    found = search_shares(model, documents(), word_tokenizer(), "sentence", **OPTIONS)
    np.testing.assert_allclose(found.shares, [[100.0]], atol=1e-6)


def test_a_strategy_that_keeps_a_state(search_shares):
    model = build("concat", view="chunk")
    search = {"strategy": "chunk_sequential", "max_new_tokens": 3}
    refused(
        "'chunk_sequential' keeps a state between the sentences",
        search_shares, model, documents_of((["w7"], ["w8"])), word_tokenizer(), **search,
    )  # fmt: skip


def test_the_model_stays_as_it_was_after_a_search(search_shares):
    for architecture in ("concat", "doct"):
        model = build(architecture, past_context=1)
        own = model.translator_class
        for arguments in ({"max_new_tokens": 3}, {"max_length": 3}):
            try:
                search_shares(model, documents(), word_tokenizer(), **arguments)
            except ValueError:
                pass
            assert model.translator_class is own


@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        ("memory", "reads other sentences apart from the source"),
        ("routing", "docmt-routing reads other sentences apart from the source"),
    ],
)
def test_what_is_refused(architecture, message, search_shares):
    documents = documents_of((["w7"], ["w8"]))
    for shares in (attention_share, search_shares):
        refused(message, shares, build(architecture), documents, word_tokenizer())
