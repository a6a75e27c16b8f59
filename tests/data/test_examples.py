"""Views against a slow, obvious reading of their definition."""

import copy
import pickle
import re

import numpy as np
import pytest
from support.tiny_models import documents_of, random_text, word_tokenizer
from transformers import PreTrainedTokenizerFast

from hf_docmt.data.collators import SegmentCollator
from hf_docmt.data.documents import make_documents
from hf_docmt.data.examples import ContextExamples, Examples
from hf_docmt.files import DataError
from hf_docmt.modeling.sequence_format import chunk_cuts

LANGUAGES = {"source_lang": "en", "target_lang": "de"}
CONTEXTS = ("source", "target", "both")
SIZES = (5, 1, 9, 2)


@pytest.fixture(scope="module")
def tokenizer():
    return word_tokenizer()


@pytest.fixture(scope="module")
def texts():
    """Source and target sentences of 0 to 6 words, of each document."""
    random = np.random.default_rng(1)
    return [
        tuple(random_text(random.integers(0, 7, size).tolist(), seed=seed) for seed in (number, 9 + number))
        for number, size in enumerate(SIZES)
    ]


@pytest.fixture(scope="module")
def documents(texts):
    return documents_of(*texts)


@pytest.fixture(scope="module")
def corpus(texts):
    """{doc_id: [(source ids, target ids), ...]}"""
    ids = [[[[int(word[1:]) for word in text.split()] for text in side] for side in sides] for sides in texts]
    return {f"d{number}": list(zip(*sides)) for number, sides in enumerate(ids)}


def make(documents, tokenizer, **settings):
    return Examples(documents, tokenizer, **LANGUAGES, **settings)


def example(name, pairs, index, current, start):
    source, target = [s for s, _ in pairs], [t for _, t in pairs]
    row = {"doc_id": name, "index": index, "source": source, "target": target}
    return {**row, "current": current, "document_start": start == 0}


@pytest.mark.parametrize("past, future", [(0, 0), (3, 0), (0, 2), (2, 1), (20, 20)])
def test_window(documents, tokenizer, corpus, past, future):
    expected = []
    for name, pairs in corpus.items():
        for index in range(len(pairs)):
            before, after = pairs[max(0, index - past) : index], pairs[index + 1 : index + 1 + future]
            rows = [*before, pairs[index], *after, *[([], [])] * (future - len(after))]
            expected.append(example(name, rows, index, len(before), index - len(before)))
            assert len(rows) - 1 - future == len(before)
    examples = make(documents, tokenizer, past_context=past, future_context=future)
    assert list(examples) == expected
    check_lengths(examples)


def test_sentence(documents, tokenizer, corpus):
    expected = [example(name, [p], n, 0, n) for name, pairs in corpus.items() for n, p in enumerate(pairs)]
    examples = make(documents, tokenizer, view="sentence")
    assert list(examples) == expected
    check_lengths(examples)


@pytest.mark.parametrize("limit", [7, 12, 20, 1000])
def test_chunk(documents, tokenizer, corpus, limit):
    examples = make(documents, tokenizer, view="chunk", max_target_tokens=limit)
    check_lengths(examples)
    rows = list(examples)
    assert examples.side_lengths[:, 1].max() <= limit
    for name, pairs in corpus.items():
        chunks = [row for row in rows if row["doc_id"] == name]
        begin = 0
        for chunk in chunks:
            assert chunk == example(name, pairs[begin : begin + len(chunk["source"])], begin, None, begin)
            assert chunk["source"]
            begin += len(chunk["source"])
        assert begin == len(pairs)
        if sum(len(t) + 1 for _, t in pairs) <= limit:
            assert len(chunks) == 1


def test_chunk_cuts():
    assert chunk_cuts([1] * 10, 4) == [0, 3, 7, 10]
    assert chunk_cuts([1] * 10, 10) == [0, 10]
    assert chunk_cuts([5, 5, 5], 5) == [0, 1, 2, 3]
    assert chunk_cuts([9, 1, 1, 1, 9], 10)[-1] == 5
    random = np.random.default_rng(0)
    for _ in range(200):
        lengths = random.integers(1, 30, random.integers(1, 60))
        limit = int(lengths.max() + random.integers(0, 200))
        cuts = chunk_cuts(lengths.tolist(), limit)
        parts = [int(lengths[a:b].sum()) for a, b in zip(cuts, cuts[1:])]
        assert cuts[0] == 0 and cuts[-1] == len(lengths) and min(parts) > 0 and max(parts) <= limit
        if limit > 6 * lengths.max():  # parts differ by two half sentences at most
            assert max(parts) - min(parts) <= 2 * lengths.max()


def check_lengths(examples):
    for row, sides in zip(examples, examples.side_lengths.tolist()):
        assert sides == [sum(len(s) + 1 for s in row[side]) for side in ("source", "target")]
    assert examples.lengths.tolist() == examples.side_lengths.sum(axis=1).tolist()
    assert examples.lengths.dtype == np.int64


def test_mean_source_length(documents, tokenizer, corpus):
    sources = [len(s) + 1 for pairs in corpus.values() for s, _ in pairs]
    assert make(documents, tokenizer).mean_source_length == pytest.approx(sum(sources) / len(sources))


def test_each_sentence_is_tokenized_once(documents, tokenizer, monkeypatch):
    seen = []
    call = PreTrainedTokenizerFast.__call__

    def counting(self, text=None, *, text_target=None, **settings):
        seen.extend(text or text_target)
        return call(self, text=text, text_target=text_target, **settings)

    monkeypatch.setattr(PreTrainedTokenizerFast, "__call__", counting)
    examples = make(documents, tokenizer, past_context=3)
    assert len(list(examples)) == sum(SIZES) and len(seen) == 2 * sum(SIZES)


def test_index_out_of_range_and_pickle(documents, tokenizer):
    examples = make(documents, tokenizer, past_context=1)
    for item in (-1, len(examples)):
        with pytest.raises(IndexError):
            examples[item]
    assert list(pickle.loads(pickle.dumps(examples))) == list(examples)


def test_selected_documents(documents, tokenizer):
    assert [row["doc_id"] for row in make(documents.select([2, 1]), tokenizer, view="chunk")] == ["d2", "d1"]


def test_fingerprint_is_that_of_tokens_and_cuts(documents, tokenizer):
    same = make(documents, tokenizer, past_context=2).fingerprint
    assert same == make(make_documents(list(documents), "en", "de"), tokenizer, past_context=2).fingerprint
    assert re.fullmatch("[0-9a-f]{64}", same)
    changed = make_documents([*documents.select(range(3)), {**documents[3], "doc_id": "other"}], "en", "de")
    assert make(changed, tokenizer, past_context=2).fingerprint == same  # ids are in no batch

    rows = [*documents.select(range(3)), {"doc_id": "d3", "translation": [{"en": "w7", "de": "w8"}]}]
    joined = [{"doc_id": "a", "translation": [pair for row in documents for pair in row["translation"]]}]
    other_sep = copy.deepcopy(tokenizer)
    other_sep.sep_token = "<s>"
    others = [
        make(make_documents(rows, "en", "de"), tokenizer, past_context=2),
        make(make_documents(joined, "en", "de"), tokenizer, past_context=2),
        make(documents, other_sep, past_context=2),
        make(documents, tokenizer, past_context=3),
        make(documents, tokenizer, past_context=2, future_context=1),
        make(documents, tokenizer, past_context=2, context_sides="source"),
        make(documents, tokenizer, past_context=2, use_bod=True),
        make(documents, tokenizer, view="chunk"),
        make(documents, tokenizer, view="chunk", max_target_tokens=12),
        Examples(documents, tokenizer, source_lang="de", target_lang="en", past_context=2),
        *(ContextExamples(documents, tokenizer, **LANGUAGES, context_sides=s, past_context=2) for s in CONTEXTS),
    ]
    fingerprints = {same, *(examples.fingerprint for examples in others)}
    assert len(fingerprints) == len(others) + 1


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"view": "windows"}, ["'windows'", "sentence, window, chunk"]),
        ({"view": "chunk", "max_target_tokens": 2}, ["document 'd0': sentence", "max_target_tokens=2", "split"]),
        ({"target_lang": "fr"}, ["target_lang='fr'", "['en', 'de']"]),
        ({"context_sides": "target"}, ["'target'", "both, source"]),
    ],
)
def test_bad_settings(documents, tokenizer, settings, words):
    with pytest.raises(ValueError) as error:
        Examples(documents, tokenizer, **LANGUAGES | settings)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_documents_without_a_target_side(documents, tokenizer):
    source_only = make_documents(list(documents), "en")
    with pytest.raises(DataError, match="target_lang='de'"):
        make(source_only, tokenizer)


@pytest.mark.parametrize("context_sides", ["both", "source"])
@pytest.mark.parametrize(
    "view", [{"view": "sentence"}, {"past_context": 2, "future_context": 1}, {"view": "chunk", "max_target_tokens": 9}]
)
def test_lengths_are_those_of_the_batch(documents, tokenizer, view, context_sides):
    """With the token that opens a document, so that batches keep to their budget."""
    examples = make(documents, tokenizer, **view, context_sides=context_sides, use_bod=True)
    collate = SegmentCollator(tokenizer, decoder_start_token_id=2, context_sides=context_sides, use_bod=True)
    for number, (source, target) in enumerate(examples.side_lengths.tolist()):
        batch = collate([examples[number]])
        assert (batch["input_ids"].shape[1], batch["labels"].shape[1]) == (source, target)
