"""Int8 models whose products without the kernels are those of plain operations, and targets that a search writes."""

import torch
from transformers import LogitsProcessor

from hf_docmt.engine import int8_linear, quantization
from support.tiny_models import build

SIZES = {"d_model": 32, "encoder_ffn_dim": 40, "decoder_ffn_dim": 24, "decoder_attention_heads": 4}
LAYERS = {"encoder_layers": 2, "decoder_layers": 2}


def plain_int8_model(monkeypatch, architecture: str, fields: dict):
    """A model of large int8 weights, or attention would hardly matter."""
    monkeypatch.setattr(quantization, "MIN_ELEMENTS", 0)
    monkeypatch.setattr(int8_linear, "FBGEMM", False)
    model = build(architecture, seed=1, **SIZES | LAYERS | fields)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3 if parameter.dim() > 1 else 1)
    return model.quantize("int8")


class Written(LogitsProcessor):
    """Lets search write these tokens (S, T) behind prompts of so many, the same for all beams of a source."""

    def __init__(self, target: torch.Tensor, prompt: int):
        self.target, self.prompt = target, prompt

    def __call__(self, input_ids, scores):
        tokens = self.target[:, input_ids.shape[1] - self.prompt]
        rows = tokens.repeat_interleave(len(scores) // len(tokens))[:, None]
        return torch.full_like(scores, -torch.inf).scatter(1, rows, scores.gather(1, rows))
