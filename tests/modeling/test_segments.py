"""Which sentence a token belongs to, its number, position and sinusoid, against examples counted by hand."""

import math

import pytest
import torch
from support.tiny_models import BOD, EOS, PAD, SEP

from hf_docmt.modeling.modeling_concat import sentence_count, sentence_numbers
from hf_docmt.modeling.segments import is_right_padded, sentence_index, sinusoid, token_positions

# Sentences of 3, 4 and 3 tokens with their separators; one of 2 and an empty one; a sentence alone.
IDS = torch.tensor(
    [
        [7, 8, SEP, 9, 7, 7, SEP, 10, 11, EOS],
        [7, 8, SEP, EOS, PAD, PAD, PAD, PAD, PAD, PAD],
        [BOD, 7, 8, 9, EOS, PAD, PAD, PAD, PAD, PAD],
    ]
)


def test_separator_belongs_to_the_sentence_it_ends():
    assert sentence_index(IDS, SEP).tolist() == [
        [0, 0, 0, 1, 1, 1, 1, 2, 2, 2],
        [0, 0, 0, 1, 1, 1, 1, 1, 1, 1],
        [0] * 10,
    ]
    assert sentence_count(IDS, SEP).tolist() == [3, 2, 1]


def test_numbers_stay_in_the_table():
    """Of more target sentences than source ones the rest is part of the last one."""
    index = torch.arange(6)[None]
    assert sentence_numbers(index, torch.tensor([3]), 2).tolist() == [[3, 2, 1, 1, 1, 1]]
    assert sentence_numbers(index, torch.tensor([3]), 1, 1).tolist() == [[2, 1, 3, 3, 3, 3]]


def test_positions():
    assert token_positions((2, 4), IDS.device).tolist() == [[0, 1, 2, 3]]
    assert token_positions((2, 2), IDS.device, past_length=3).tolist() == [[3, 4]]
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 0, 1, 1], [1, 1, 1, 0, 0]])
    assert token_positions((3, 5), IDS.device, mask).tolist() == [[0, 0, 0, 1, 2], [0, 1, 1, 2, 3], [0, 1, 2, 2, 2]]
    assert token_positions((3, 2), IDS.device, mask, past_length=3).tolist() == [[1, 2], [2, 3], [2, 2]]


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ([[1, 1, 1], [1, 0, 0]], True),
        ([[1, 1, 1], [0, 1, 1]], False),
        ([[1, 1, 1], [1, 0, 1]], False),
        ([[1, 1, 1], [0, 0, 0]], False),
    ],
)
def test_padding_on_the_right(mask, expected):
    assert is_right_padded(torch.tensor(mask)) is expected


def test_sinusoids_by_hand():
    found = sinusoid(torch.tensor([[0, 3]]), 4)
    expected = [[0, 0, 1, 1], [math.sin(3), math.sin(3 / 100), math.cos(3), math.cos(3 / 100)]]
    torch.testing.assert_close(found, torch.tensor([expected]))
    tensor2tensor = [math.sin(3), math.sin(3 / 10000), math.cos(3), math.cos(3 / 10000)]
    torch.testing.assert_close(sinusoid(torch.tensor([3]), 4, "sinusoidal_t2t"), torch.tensor([tensor2tensor]))
    torch.testing.assert_close(
        sinusoid(torch.tensor([5]), 2, "sinusoidal_t2t"), torch.tensor([[math.sin(5), math.cos(5)]])
    )


def test_far_positions_are_exact():
    position = 1_000_003
    found = sinusoid(torch.tensor([position]), 6)[0]
    assert found.dtype == torch.float32
    for column, exponent in enumerate((0, 1 / 3, 2 / 3)):
        angle = position / 10000**exponent
        assert math.isclose(found[column], math.sin(angle), abs_tol=1e-6)
        assert math.isclose(found[column + 3], math.cos(angle), abs_tol=1e-6)
