"""torch.export of models of every architecture, with context: exact, for other sentences of the same shapes, too."""

import pytest
import torch
from support.context_reference import LATENT
from support.tiny_models import EOS, PAD, SEP, build, context_fields

from hf_docmt.loading import registry


def sentences_with_context(model, absent: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    """Three sentences with all context of the model, but for the (row, column) that are absent."""
    config = model.config
    offsets = torch.tensor(config.known_offsets).expand(3, -1).clone()
    context = torch.randint(6, config.vocab_size, (*offsets.shape, 5), generator=torch.Generator().manual_seed(1))
    context[..., -1] = EOS
    mask = torch.ones_like(context)
    mask[0, 0, 3:] = 0
    for place in absent:
        mask[place], offsets[place] = 0, 0
    return {
        "input_ids": torch.tensor([[7, 8, EOS], [9, 10, EOS], [8, EOS, PAD]]),
        "attention_mask": torch.tensor([[1, 1, 1], [1, 1, 1], [1, 1, 0]]),
        "decoder_input_ids": torch.tensor([[2, 9], [2, 8], [2, 7]]),
        "context_input_ids": context,
        "context_attention_mask": mask,
        "context_offsets": offsets,
        "use_cache": False,
    }


def segments(model, ends: list[tuple[int, int]], length: int = 12) -> dict[str, torch.Tensor]:
    """Two segments, the second with padding behind it, whose sentences end at the (row, column)."""
    source, target = torch.randint(6, 30, (2, 2, length), generator=torch.Generator().manual_seed(2))
    for place in ends:
        source[place], target[place] = SEP, SEP
    source[:, -3], target[:, 0] = EOS, 2
    source[1, -2:] = PAD
    return {
        "input_ids": source,
        "attention_mask": (source != PAD).long(),
        "decoder_input_ids": target,
        "use_cache": False,
    }


def sentences_with_memory(model, starts: list[int]) -> dict[str, torch.Tensor]:
    """Two sentences and what was remembered before them; those of these rows start documents."""
    memory = [
        torch.randn(2, *stack.initial_memory.weight.shape) for stack in (model.get_encoder(), model.get_decoder())
    ]
    started = torch.zeros(2, dtype=torch.bool)
    started[starts] = True
    names = ("encoder_memory", "decoder_memory", "document_start")
    return segments(model, []) | dict(zip(names, (*memory, started), strict=True))


CONTEXTS = [[(1, 0), (2, 0), (2, 1)], [(0, 1)]]
ENDS = [[(0, 3), (0, 6), (1, 2)], [(0, 8), (1, 5), (1, 6)]]
FIELDS = context_fields(
    caching={"shortening": "grouping"} | LATENT,
    concat={"segment_encoding": "learned"},
    gtransformer={"global_layers": 1, "restarts_positions": True},
    memory={"memory_size": 3},
    routing={"past_context": 1},
    window={"window": 2, "alignment": "sentence"},
)


def case_of(name: str, fields: dict) -> tuple:
    """An architecture, its fields, what makes a batch with its kind of context, and of which kinds."""
    entry = registry.get(name)
    if entry.separate_context:
        return name, fields, sentences_with_context, CONTEXTS
    return (name, fields, sentences_with_memory, [[1], [0]]) if entry.carries_state else (name, fields, segments, ENDS)


CASES = [case_of(*item) for item in FIELDS.items()]
CASES.append(case_of("window", {"past_context": 2, "window": 2, "sees_all": True}))


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "fields", "batch_of", "kinds"), CASES, ids=[case[0] for case in CASES])
def test_export_with_context(architecture, fields, batch_of, kinds):
    model = build(architecture, encoder_layers=1, decoder_layers=1, **fields)
    batches = [batch_of(model, kind) for kind in kinds]
    with torch.no_grad():
        exported = torch.export.export(model, (), batches[0]).module()
        results = [model(**batch).logits for batch in batches]
        assert (results[0] - results[1]).abs().max() > 1e-3
        for batch, expected in zip(batches, results):
            torch.testing.assert_close(exported(**batch).logits, expected, atol=1e-5, rtol=0)
