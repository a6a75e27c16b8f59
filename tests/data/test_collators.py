"""The collator against a slow, obvious reading of the batch's definition, in a Trainer and under loader workers."""

import pickle

import pytest
import torch
from support.errors import refused
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from hf_docmt.data.collators import SegmentCollator

PAD, UNK, BOS, EOS, SEP, BOD = range(6)
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>", "<sep>", "<bod>"]


def tokenizer_without(*missing):
    names = dict(zip(("pad_token", "unk_token", "bos_token", "eos_token", "sep_token"), SPECIAL))
    words = Tokenizer(models.WordLevel({w: n for n, w in enumerate(SPECIAL) if w not in missing}, unk_token="<unk>"))
    names = {name: token for name, token in names.items() if token not in missing}
    extra = [] if "<bod>" in missing else ["<bod>"]
    return PreTrainedTokenizerFast(tokenizer_object=words, **names, extra_special_tokens=extra)


@pytest.fixture(scope="module")
def tokenizer():
    return tokenizer_without()


def row(source, target, current, document_start=False, index=4):
    return {
        "doc_id": "a",
        "index": index,
        "source": source,
        "target": target,
        "current": current,
        "document_start": document_start,
    }


A, B, C = [10, 11], [12, 13, 14], [15]
ROWS = [
    row([A, B, C], [B, C, A], 2),
    row([B, C], [A, []], 1, True, 1),
    row([[]], [C], 0, True, 0),
    row([A, B, []], [C, B, []], 1),
    row([A, B, []], [C, B, A], 0, True, 0),
]


def reference(rows, context_sides, discount, use_bod, decoder_start=BOS):
    """One row at a time, one token at a time."""
    built = []
    for item in rows:
        source, target, weights = [], [], []
        if use_bod and item["document_start"]:
            source.append(BOD)
        for number, sentence in enumerate(item["source"]):
            source += sentence + [EOS if number == len(item["source"]) - 1 else SEP]
        sentences = list(enumerate(item["target"]))
        if context_sides == "source" and item["current"] is not None:
            sentences = [sentences[item["current"]]]
        if use_bod and item["document_start"] and sentences[0][0] == 0:
            target.append(BOD)
            weights.append(1.0 if item["current"] in (None, 0) else discount)
        for number, sentence in sentences:
            tokens = sentence + [EOS if number == sentences[-1][0] else SEP]
            target += tokens
            weights += [1.0 if item["current"] in (None, number) else discount] * len(tokens)
        built.append((source, target, weights))

    def padded(rows, value):
        width = max(map(len, rows))
        return torch.tensor([row + [value] * (width - len(row)) for row in rows])

    batch = {
        "input_ids": padded([source for source, _, _ in built], PAD),
        "attention_mask": padded([[1] * len(source) for source, _, _ in built], 0),
        "decoder_input_ids": padded([[decoder_start] + target[:-1] for _, target, _ in built], PAD),
        "decoder_attention_mask": padded([[1] * len(target) for _, target, _ in built], 0),
        "labels": padded([target for _, target, _ in built], -100),
    }
    has_context = any(item["current"] is not None and len(item["target"]) > 1 for item in rows)
    if discount != 1 and context_sides == "both" and has_context:
        batch["label_weights"] = padded([weights for _, _, weights in built], 0.0)
    return batch


@pytest.mark.parametrize("context_sides", ["both", "source"])
@pytest.mark.parametrize("discount", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("use_bod", [False, True])
def test_batch_is_the_definition(tokenizer, context_sides, discount, use_bod):
    settings = {"context_sides": context_sides, "context_discount": discount, "use_bod": use_bod}
    collator = SegmentCollator(tokenizer, decoder_start_token_id=BOS, **settings)
    chunks = [row([A, B], [B, C], None, True, 0), row([C], [C], None)]
    for rows in (ROWS, ROWS[::-1], ROWS[2:3], chunks, ROWS + chunks):
        expected = reference(rows, context_sides, discount, use_bod)
        batch = collator(rows)
        assert batch.keys() == expected.keys()
        for name, tensor in expected.items():
            assert batch[name].dtype == tensor.dtype and torch.equal(batch[name], tensor), name


def test_tokenizer_without_separator():
    collator = SegmentCollator(tokenizer_without("<sep>", "<bod>"), decoder_start_token_id=PAD)
    assert collator([row([A], [B], 0)])["labels"].tolist() == [[*B, EOS]]
    refused("sep_token", collator, [row([A, B], [B, C], 1)])
    refused("remove_unused_columns=False", collator, [{"current": 0}])


@pytest.mark.parametrize(
    "missing, settings, words",
    [
        (["<pad>"], {}, "no pad_token"),
        (["</s>"], {}, "no eos_token"),
        (["<bod>"], {"use_bod": True}, "no '<bod>'"),
        ([], {"context_sides": "target"}, "unknown context_sides 'target'.*both, source"),
    ],
)
def test_bad_settings(missing, settings, words):
    refused(words, SegmentCollator, tokenizer_without(*missing), decoder_start_token_id=BOS, **settings)


def test_pickle(tokenizer):
    collator = SegmentCollator(tokenizer, decoder_start_token_id=BOS, context_discount=0.5, use_bod=True)
    assert torch.equal(pickle.loads(pickle.dumps(collator))(ROWS)["labels"], collator(ROWS)["labels"])
