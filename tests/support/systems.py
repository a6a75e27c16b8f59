"""Tiny models, items and a slow definition of scores, for tests of systems."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MarianConfig, MarianMTModel

from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.evaluation.suites import SuiteItem
from support.pretrained_models import SIZES, randomised

WORDS = "der die das Hund Katze Haus schläft sitzt ist rot groß hier dort heute nie immer und oder aber Sie".split()
TOKENS = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 0}
TOKENS["forced_eos_token_id"] = None
LANGUAGES = {"source_lang": "English", "target_lang": "German"}


def text(seed, words):
    generator = torch.Generator().manual_seed(seed)
    return " ".join(WORDS[index] for index in torch.randint(len(WORDS), (words,), generator=generator))


def item(number, context=2, candidates=3, **changes):
    """An item with sentences of many lengths; every third has a blank context sentence."""
    blank = number % 3 == 0
    fields = {
        "item_id": f"suite:{number}",
        "source": tuple(
            text(10 * number + i, 0 if blank and i == 0 else 1 + (number + 3 * i) % 7) for i in range(context)
        )
        + (text(number, 3),),
        "target_context": tuple(text(50 * number + i, 0 if blank and i == 0 else 2) for i in range(context)),
        "candidates": tuple(text(90 * number + i, 2 + (number + i) % 4) for i in range(candidates)),
        "correct": 0,
        "phenomenon": "p",
        "distance": None,
    }
    return SuiteItem(**{**fields, **changes})


ITEMS = [item(number, context=number % 4, candidates=2 + number % 2) for number in range(1, 9)]

DOCUMENTS = [[text(1, 3), "", text(2, 5), text(3, 1)], [], ["  "], [text(4, 2), text(5, 6)]]


def pieces(tokenizer, sentence):
    return tokenizer(sentence, add_special_tokens=False)["input_ids"]


def log_probabilities(model, source, labels, scored):
    """The definition: one row, the model's own shift of the labels, token by token in double precision."""
    with torch.no_grad():
        source, target = torch.tensor([source]), torch.tensor([labels])
        logits = model(input_ids=source, attention_mask=torch.ones_like(source), labels=target).logits[0].double()
    return [torch.log_softmax(logits[t], 0)[labels[t]].item() for t in scored]


def one_at_a_time(model, tokenizer, item, past, sides, separator):
    past = min(past, len(item.source) - 1)
    first = len(item.source) - 1 - past
    sources, context = item.source[first:], item.target_context[first:]
    kept = [i for i in range(past) if sources[i].strip() or (sides == "both" and context[i].strip())]
    sep, eos = separator, [tokenizer.eos_token_id]
    source = sum((pieces(tokenizer, sources[i]) + sep for i in kept), []) + pieces(tokenizer, sources[-1]) + eos
    before = sum((pieces(tokenizer, context[i]) + sep for i in kept), []) if sides == "both" else []
    rows = []
    for candidate in item.candidates:
        labels = before + pieces(tokenizer, candidate) + eos
        rows.append(log_probabilities(model, source, labels, range(len(before), len(labels))))
    return rows


def assert_close(actual, expected):
    assert [[len(row) for row in rows] for rows in actual] == [[len(row) for row in rows] for rows in expected]
    for rows, others in zip(actual, expected):
        for row, other in zip(rows, others):
            assert row == pytest.approx(other, abs=1e-5, rel=1e-5)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer([" ".join(WORDS), "English German Translate from to : \n"] * 3, vocab_size=340)


@pytest.fixture(scope="module")
def marian(tokenizer):
    """Random weights with which translations are pieces that are cut into the same pieces again."""
    torch.manual_seed(0)
    config = MarianConfig(**SIZES, **TOKENS, vocab_size=len(tokenizer), decoder_vocab_size=len(tokenizer))
    return randomised(MarianMTModel(config))


@pytest.fixture(scope="module")
def llama(tokenizer):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    ends = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "max_position_embeddings": 256}
    return randomised(LlamaForCausalLM(LlamaConfig(**sizes, **ends, vocab_size=len(tokenizer))))
