"""torch.export of models with context sentences as inputs: exact, for other sentences of the same shapes, too."""

import pytest
import torch
from support.context_reference import LATENT
from support.tiny_models import EOS, build


def batch_of(config, absent: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    """Three sentences with all context of the model, but for the (row, column) that are absent."""
    offsets = torch.tensor(config.known_offsets).expand(3, -1).clone()
    context = torch.randint(6, config.vocab_size, (*offsets.shape, 5), generator=torch.Generator().manual_seed(1))
    context[..., -1] = EOS
    mask = torch.ones_like(context)
    mask[0, 0, 3:] = 0
    for place in absent:
        mask[place], offsets[place] = 0, 0
    return {
        "input_ids": torch.tensor([[7, 8, EOS], [9, 10, EOS], [8, EOS, 0]]),
        "attention_mask": torch.tensor([[1, 1, 1], [1, 1, 1], [1, 1, 0]]),
        "decoder_input_ids": torch.tensor([[2, 9], [2, 8], [2, 7]]),
        "context_input_ids": context,
        "context_attention_mask": mask,
        "context_offsets": offsets,
        "use_cache": False,
    }


@pytest.mark.parametrize(
    ("architecture", "fields"),
    [
        ("routing", {}),
        ("doct", {"past_context": 2}),
        ("caching", {"past_context": 2, "shortening": "grouping"} | LATENT),
        ("multiencoder", {"past_context": 2}),
    ],
)
def test_export_with_context(architecture, fields):
    model = build(architecture, **fields).eval()
    batches = [batch_of(model.config, absent) for absent in ([(1, 0), (2, 0), (2, 1)], [(0, 1)])]
    with torch.no_grad():
        exported = torch.export.export(model, (), batches[0]).module()
        for batch in batches:
            torch.testing.assert_close(exported(**batch).logits, model(**batch).logits, atol=1e-5, rtol=0)
