"""Tiny models of the tests: one that was built before is as one that is built anew."""

import torch
from support import tiny_models
from support.tiny_models import build


def test_a_model_that_was_built_before(monkeypatch):
    """The same weights, ties and random numbers after it; what is done to a model stays with it."""
    fields = {"past_context": 1, "segment_encoding": "learned"}
    models, numbers = [], []
    for known in (tiny_models._BUILT, {}, {}):  # of the last two the first is built anew, too
        monkeypatch.setattr(tiny_models, "_BUILT", known)
        for _ in range(2):
            models.append(build(**fields))
            numbers.append(float(torch.rand(1)))
            models[-1].config.dropout = 0.5
            with torch.no_grad():
                models[-1].lm_head.weight.add_(len(models))
    assert len(set(numbers)) == 1
    for number, model in enumerate(models, start=1):
        assert model.lm_head.weight is model.get_decoder().embed_tokens.weight
        model.lm_head.weight.data -= number
        for name, value in model.state_dict().items():
            torch.testing.assert_close(value, models[0].state_dict()[name])
    assert (
        build(**fields).config.dropout == 0
        and build(seed=1, **fields).lm_head.weight.ne(models[0].lm_head.weight).any()
    )
