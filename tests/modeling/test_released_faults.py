"""What is wrong in the code that was released with two papers, rebuilt in a few lines, beside what it should be.

The proofs of examples/recipes/README.md. No option of this package reproduces any of it.
"""

import pytest
import torch
from support.fairseq_models import Released
from support.fairseq_weights import BASE, EOS, maka_weights
from support.tiny_models import BOS, SEP, build
from torch import nn

from hf_docmt.modeling.layers import CACHE_NAME

# Maka et al. (2024): order of context sentences in translation and contrastive scoring


def training_slots(sentences: list, size: int) -> list:
    """The list that the model is trained on: empty places first, the nearest sentence last."""
    last = sentences[-size:]
    return [[EOS]] * (size - len(last)) + last


def translation_slots(sentences: list, size: int) -> list:
    """The list that the scripts of translation and contrastive evaluation make: nearest first, empty places last."""
    last = sentences[-size:]
    return last[::-1] + [[EOS]] * (size - len(last))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_order_of_context_sentences(size):
    """Equal for one context sentence alone, or none."""
    document = [[5, EOS], [6, 7, EOS], [8, 9, EOS], [10, EOS]]
    for known in range(len(document) + 1):
        slots = training_slots(document[:known], size), translation_slots(document[:known], size)
        assert (slots[0] == slots[1]) == (size == 1 or known == 0)
        assert sorted(slots[0]) == sorted(slots[1])


@pytest.mark.parametrize("arch", ["caching", "shortening"])
def test_reversed_order_changes_what_the_model_computes(arch):
    """The place in the list is the segment embedding, so that a sentence gets that of another distance."""
    shortening = {"shortening_groups": 2, "shortening_ffn_hidden": 4, "shortening_group_learned_pos": True}
    settings = BASE | shortening | {"arch": f"{arch}_contextual_transformer", "context_sentence_learned_pos": True}
    settings["share_decoder_input_output_embed"] = True
    released = Released(settings, maka_weights(settings, (20, 20)))
    source, target, document = [5, 6, EOS], [EOS, 7, 8], [[9, 8, EOS], [10, EOS], [11, 12, 5, EOS]]
    difference = {}
    for size in (1, 2, 3):
        logits = [
            released.maka(source, slots(document[:2], size), target) for slots in (training_slots, translation_slots)
        ]
        difference[size] = (logits[0] - logits[1]).abs().max().item()
    assert difference[1] == 0
    assert difference[2] > 0.01 and difference[3] > 0.01


# Lupo et al. (2023): segment-shifted positions while decoding


def training_shifts(labels: list[int], counts: list[int], shift: int) -> list[int]:
    """Shift of the next token of every row: `shift` for each sentence before its own; label 1 is the last sentence."""
    return [(count - label) * shift for label, count in zip(labels, counts)]


def released_shifts(labels: list[int], counts: list[int], shift: int) -> list[int]:
    """While decoding: all rows lose it where row 0 is shifted further than row 1, taken for a start token."""
    shifts = training_shifts(labels, counts, shift)
    return [0] * len(shifts) if shifts[0] > shifts[1] else shifts


def test_shifts_are_dropped_where_beam_0_is_ahead():
    """Two beams of a window of three sentences, one of which has written one sentence, the other none."""
    assert training_shifts([2, 3], [3, 3], shift=8) == [8, 0]
    assert released_shifts([2, 3], [3, 3], shift=8) == [0, 0]
    assert released_shifts([3, 2], [3, 3], shift=8) == [0, 8]  # the other way round nothing is lost


def test_start_token_is_shifted_while_decoding():
    """It has the label 1; training takes its shift away, decoding does not, since the beams of a source are alike."""
    assert released_shifts([1, 1], [3, 3], shift=8) == [16, 16]


def released_start_shifts(counts: list[int], shift: int) -> list[int]:
    """In training: row 0 of the batch decides for all rows whether the start token's shift is taken away."""
    return [0] * len(counts) if counts[0] > 1 else training_shifts([1] * len(counts), counts, shift)


def test_row_0_decides_for_the_start_tokens_of_training():
    assert released_start_shifts([3, 1, 3], shift=8) == [0, 0, 0]
    assert released_start_shifts([1, 3, 3], shift=8) == [0, 16, 16]


def test_ours_shifts_the_same_way_in_training_and_decoding():
    """With a cache, token by token, as in one forward; with the released shifts the same tokens get other logits."""
    model = build(past_context=2, segment_encoding="shift", segment_shift=8)
    source = torch.tensor([[7, SEP, 8, 9, SEP, 6, 3]]).expand(2, -1)
    target = torch.tensor([[BOS, 7, SEP, 8, 9], [BOS, 7, 8, 9, 11]])  # row 0 is ahead
    sentences = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]])
    with torch.no_grad():
        encoded = model.get_encoder()(input_ids=source)
        at_once = model(encoder_outputs=encoded, decoder_input_ids=target).logits

        def step_by_step(sentences):
            cache, logits = None, []
            for step in range(target.shape[1]):
                tokens = {"decoder_input_ids": target[:, step : step + 1]}
                tokens["decoder_sentence_index"] = sentences[:, step : step + 1]
                output = model(encoder_outputs=encoded, cache=cache, use_cache=True, **tokens)
                cache = output[CACHE_NAME]
                logits.append(output.logits[:, 0])
            return torch.stack(logits, dim=1)

        torch.testing.assert_close(step_by_step(sentences), at_once, atol=1e-5, rtol=1e-5)
        dropped = step_by_step(torch.zeros_like(sentences))
        start = step_by_step(sentences + torch.tensor([2, 0, 0, 0, 0]))
    assert (dropped - at_once)[0, 3:].abs().max() > 0.01
    assert (start - at_once)[:, 0].abs().max() > 0.01


# Lupo et al. (2023): learned position-segment embeddings


class ReleasedLearnedPSE(nn.Module):
    """[PE_t; SE_k] looked up in a table of all pairs, which is made once of the segment embeddings' first values."""

    def __init__(self, positions: torch.Tensor, segments: int, dim: int):
        super().__init__()
        self.count = len(positions)
        self.segments = nn.Embedding(segments + 1, dim, padding_idx=0)
        rows = [torch.cat([positions, row.expand(self.count, -1)], dim=1) for row in self.segments.weight[1:]]
        self.table = torch.cat(rows)

    def forward(self, position: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return self.table[position + self.count * (label - 1)]


def trained_one_step(module: nn.Module, output) -> tuple[torch.Tensor, torch.Tensor]:
    """What `output` gives before and after a step of gradient descent on its own sum of squares."""
    before = output()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    (before**2).sum().backward()
    optimizer.step()
    return before.detach(), output().detach()


def test_released_learned_pse_never_learns():
    """The segment embeddings get a gradient and change; the table does not, nor is it in a checkpoint."""
    positions, labels = torch.tensor([0, 1, 2, 3]), torch.tensor([2, 2, 1, 1])
    module = ReleasedLearnedPSE(torch.randn(6, 4), segments=2, dim=4)
    first = module.segments.weight.detach().clone()
    before, after = trained_one_step(module, lambda: module(positions, labels))
    assert not torch.equal(module.segments.weight, first)
    torch.testing.assert_close(before, after, atol=0, rtol=0)

    loaded = ReleasedLearnedPSE(module.table[:6, :4].detach(), segments=2, dim=4)
    loaded.load_state_dict(module.state_dict())
    assert (loaded(positions, labels) - after).abs().max() > 0.01
