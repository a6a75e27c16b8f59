"""Budgets of batches: what max_tokens counts, and that batches have as many target tokens as fairseq's."""

import numpy as np
import pytest
from support.tiny_models import word_tokenizer

from hf_docmt.data.collators import ContextCollator
from hf_docmt.data.documents import make_documents
from hf_docmt.data.examples import ContextExamples, Examples
from hf_docmt.data.samplers import TokenBudgetBatchSampler, batch_budget, fairseq_batches
from hf_docmt.training.arguments import DocMTTrainingArguments

LANGUAGES = {"source_lang": "en", "target_lang": "de"}


@pytest.fixture(scope="module")
def documents():
    random = np.random.default_rng(5)
    rows = []
    for number in range(120):
        lengths = random.lognormal(2.2, 0.6, (int(random.integers(2, 12)), 2)).astype(int) + 1
        pairs = [{"en": " ".join(["w7"] * one), "de": " ".join(["w8"] * other)} for one, other in lengths]
        rows.append({"doc_id": str(number), "translation": pairs})
    return make_documents(rows, "en", "de")


def separate(documents, **options):
    return ContextExamples(documents, word_tokenizer(), **LANGUAGES, **{"context_sides": "source"} | options)


def batches_of(examples, max_tokens, budget):
    max_tokens, target_tokens = batch_budget(examples, max_tokens, budget)
    sampler = TokenBudgetBatchSampler(examples.side_lengths, max_tokens, target_tokens=target_tokens)
    return list(sampler), max_tokens


def fairseq_reference(lengths, max_tokens):
    """Batch by batch, row by row: sorted by source and target; full when one more row would not fit."""
    rows = sorted(lengths.tolist())
    batches, pending = [], []
    for row in rows:
        if pending and (len(pending) + 1) * max(map(max, [*pending, row])) > max_tokens:
            count = max(8 * (len(pending) // 8), len(pending) % 8)
            batches.append(pending[:count])
            pending = pending[count:]
        pending.append(row)
    return [*batches, pending]


@pytest.mark.parametrize("max_tokens", [10, 60, 300, 2000, 10**6])
def test_batches_of_fairseq(max_tokens):
    lengths = np.random.default_rng(1).integers(1, 50, (700, 2)).astype(np.int32)
    assert fairseq_batches(lengths, max_tokens) == len(fairseq_reference(lengths, max_tokens))


@pytest.mark.parametrize("sides", ["source", "target", "both"])
def test_sides_with_context_by_definition(documents, sides):
    """The tokens that the collator puts into the context of each side, and the current sentence."""
    examples = separate(documents, context_sides=sides, past_context=2, future_context=int(sides != "target"))
    collate = ContextCollator(word_tokenizer(), decoder_start_token_id=2, context_sides=sides)
    for number, expected in enumerate(examples.side_lengths_with_context.tolist()):
        batch = collate([examples[number]])
        context = batch["context_attention_mask"].sum(dim=2)[0]
        target = batch["context_is_target"][0]
        source = batch["input_ids"].shape[1] + int(context[~target].sum())
        assert expected == [source, batch["labels"].shape[1] + int(context[target].sum())]


@pytest.mark.parametrize("past_context", [1, 2, 4])
def test_a_budget_of_fairseq_has_its_target_tokens(documents, past_context):
    examples = separate(documents, past_context=past_context)
    theirs = fairseq_reference(examples.side_lengths_with_context, 600)
    ours, max_tokens = batches_of(examples, 600, "fairseq")
    assert len(ours) == pytest.approx(len(theirs), rel=0.1)
    costs = [len(batch) * examples.side_lengths[batch].max(axis=0).sum() for batch in ours]
    assert max(costs) <= max_tokens
    current, _ = batches_of(examples, 600, "fairseq_current")
    assert len(current) == pytest.approx(len(fairseq_reference(examples.side_lengths[:, :2], 600)), rel=0.1)
    assert len(current) < len(ours)


def test_a_budget_of_fairseq_for_segments(documents):
    examples = Examples(documents, word_tokenizer(), **LANGUAGES, past_context=2)
    theirs = fairseq_reference(examples.side_lengths, 600)
    for budget in ("fairseq", "fairseq_current"):
        ours, _ = batches_of(examples, 600, budget)
        assert len(ours) == pytest.approx(len(theirs), rel=0.1)
        targets = np.array([examples.side_lengths[batch, 1].sum() for batch in ours])
        assert targets.std() < 0.1 * targets.mean()


def test_padded_budgets(documents):
    """Segments fill it; with separate context it is a bound, and batches have about equal target tokens."""
    segments = Examples(documents, word_tokenizer(), **LANGUAGES, past_context=2)
    assert batch_budget(segments, 500) == (500, None)
    examples = separate(documents, past_context=2)
    max_tokens, target_tokens = batch_budget(examples, 500)
    total, targets = examples.side_lengths.sum(), examples.side_lengths[:, 1].sum()
    assert max_tokens == 500 and target_tokens == int(2 / 3 * 500 * targets / total)


def test_unknown_budget(tmp_path):
    with pytest.raises(ValueError, match="unknown budget 'tokens': expected one of padded, fairseq, fairseq_current"):
        DocMTTrainingArguments(str(tmp_path), use_cpu=True, report_to="none", budget="tokens")
