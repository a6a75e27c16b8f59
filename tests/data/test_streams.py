"""Documents side by side: every sentence once, in order, the same number of batches, and what the collator makes."""

from collections import Counter

import numpy as np
import pytest
import torch
from support.tiny_models import BOS, EOS, PAD, documents_of, random_text, word_tokenizer

from hf_docmt.data.streams import DocumentStreamSampler, StreamCollator, StreamExamples, split_steps
from hf_docmt.loading import registry

LENGTHS = [3, 1, 7, 2, 2, 5, 4, 3, 1, 6]
DOCUMENTS = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
STARTS = np.concatenate([[0], np.cumsum(LENGTHS)])


def rows_of_epoch(batches) -> list[list[int]]:
    """The scored examples of every row, in order."""
    steps = [numbers for batch in batches for numbers, scored in batch if scored]
    return [[number for number in row if number >= 0] for row in zip(*steps)]


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(("rows", "window", "lead"), [(1, 1, 0), (3, 4, 1), (4, 100, 2), (10, 3, 1), (2, 2, 5)])
def test_every_sentence_once_and_documents_in_order(rows, window, lead, shuffle):
    sampler = DocumentStreamSampler(DOCUMENTS, rows, window, lead=lead, shuffle=shuffle, seed=7)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        batches = list(sampler)
        assert len(batches) == len(sampler)
        rows_read = rows_of_epoch(batches)
        assert sorted(number for row in rows_read for number in row) == list(range(len(DOCUMENTS)))
        for row in rows_read:
            for before, after in zip(row, row[1:]):
                assert after == before + 1 or (before + 1 in STARTS and after in STARTS)
        sizes = [sum(scored for _, scored in batch) for batch in batches]
        assert min(sizes) >= 1 and max(sizes) <= window
        assert all(len(numbers) == rows for batch in batches for numbers, _ in batch)


def test_lead_repeats_the_previous_steps():
    batches = list(DocumentStreamSampler(DOCUMENTS, 3, 4, lead=2, seed=1))
    scored = [numbers for batch in batches for numbers, is_scored in batch if is_scored]
    index = 0
    for batch in batches:
        lead = [numbers for numbers, is_scored in batch if not is_scored]
        before = [[-1] * 3] * (2 - min(index, 2)) + scored[max(0, index - 2) : index]
        assert lead == before and [is_scored for _, is_scored in batch[:2]] == [False, False]
        index += len(batch) - 2


def test_epochs_and_windows_vary():
    sampler = DocumentStreamSampler(np.repeat(np.arange(40), 5), 4, 6, seed=3)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    second = list(sampler)
    assert rows_of_epoch(second) != rows_of_epoch(first) and len(first) == len(second)
    sizes = Counter(len(batch) for batch in first + second)
    assert len(sizes) > 3
    together = [{tuple(sorted(n // 5 for n in batch[0][0])) for batch in epoch} for epoch in (first, second)]
    assert together[0] != together[1]  # other documents are side by side


def test_a_window_far_above_the_documents():
    sampler = DocumentStreamSampler(np.repeat(np.arange(40), 5), 1, 10**9, seed=3)
    (batch,) = sampler
    assert len(batch) == 200
    sizes = [sum(scored for _, scored in batch) for batch in DocumentStreamSampler(np.zeros(999, int), 1, 50, seed=3)]
    assert sum(sizes) == 999 and min(sizes) >= 1 and max(sizes) <= 50 and len(set(sizes)) > 15


@pytest.mark.parametrize("shuffle", [True, False])
def test_whole_documents(shuffle):
    sampler = DocumentStreamSampler(DOCUMENTS, 3, None, shuffle=shuffle, seed=7)
    epochs = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        epochs.append(list(sampler))
        assert len(epochs[-1]) == len(sampler) == 4
        for batch in epochs[-1]:
            lengths = []
            for row in zip(*(numbers for numbers, _ in batch)):
                sentences = [number for number in row if number >= 0]
                lengths.append(len(sentences))
                if sentences:
                    document = DOCUMENTS[sentences[0]]
                    assert sentences == list(range(STARTS[document], STARTS[document + 1]))
            assert len(batch) == max(lengths) and all(scored for _, scored in batch)
            assert sorted(set(lengths) - {0}) in ([5, 6, 7], [3, 4], [1, 2], [1])
        assert sorted(n for row in rows_of_epoch(epochs[-1]) for n in row) == list(range(len(DOCUMENTS)))
    assert (epochs[0] != epochs[1]) == shuffle


@pytest.mark.parametrize(("window", "lead"), [(None, 0), (3, 1)])
def test_processes_share_the_documents(window, lead):
    shares = [
        list(DocumentStreamSampler(DOCUMENTS, 2, window, lead=lead, seed=5, rank=rank, world_size=3))
        for rank in range(3)
    ]
    assert [[len(batch) for batch in share] for share in shares] == [[len(batch) for batch in shares[0]]] * 3
    everything = sorted(number for share in shares for row in rows_of_epoch(share) for number in row)
    assert everything == list(range(len(DOCUMENTS)))


def test_more_rows_than_documents():
    with pytest.raises(ValueError, match="6 documents side by side in 2 processes need 12 documents, got 10; lower"):
        DocumentStreamSampler(DOCUMENTS, 6, 3, world_size=2)


def test_fewer_documents_than_processes_without_shuffling():
    """Validation of one document by two processes: one of them has nothing to read."""
    shares = [list(DocumentStreamSampler([0, 0, 0], 1, 2, shuffle=False, rank=rank, world_size=2)) for rank in (0, 1)]
    assert sorted(rows_of_epoch(share)[0] for share in shares) == [[], [0, 1, 2]]
    assert [len(share) for share in shares] == [2, 2]


def test_collated_steps():
    config = registry.get("memory").config_class(source_lang="en", target_lang="de")
    corpus = documents_of((random_text([2, 1, 3]), random_text([1, 4, 2])), (random_text([1]), random_text([2])))
    examples = registry.get("memory").examples(corpus, word_tokenizer(), config)
    collate = StreamCollator(registry.get("memory").collator(config, word_tokenizer()))
    steps = [([0, 3], False), ([1, -1], True), ([2, -1], True)]
    data = StreamExamples(examples)
    batch = collate([data[step] for step in steps])
    assert len(data) == 4 and batch["input_ids"].shape == (3, 2, 4) and batch["labels"].shape == (3, 2, 5)
    assert batch["document_start"].tolist() == [[True, True], [False, False], [False, False]]
    assert (batch["labels"][0] == -100).all() and (batch["labels"][:, 1] == -100).all()
    assert batch["labels"][2, 0].tolist() == [*examples[2]["target"][0], EOS, -100, -100]
    assert batch["input_ids"][1, 1].tolist() == [EOS, PAD, PAD, PAD]
    assert batch["decoder_input_ids"][1, 1].tolist() == [BOS, *[PAD] * 4]
    for step, numbers in zip(split_steps(batch), ([0, 3], [1], [2])):
        widths = [max(len(examples[n][side][0]) + 1 for n in numbers) for side in ("source", "target")]
        assert [step[name].shape[1] for name in ("input_ids", "decoder_input_ids")] == widths
        assert step["labels"].shape == step["decoder_input_ids"].shape and step["document_start"].dtype == torch.bool
