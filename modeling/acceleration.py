"""What makes models faster where these files are those of hf_docmt; a Hub folder has `plain_acceleration.py` instead.

A folder of int8 weights has this file, and those that it imports.
"""

from .chunked_loss import OutputProjection, gives_loss
from .cpu_inference import Linear, faster_attention, is_plain, joint_linear, prepacked_weights
from .draft_verification import draft_search
from .quantization import Quantization, takes_bias

__all__ = [
    "Linear",
    "OutputProjection",
    "Quantization",
    "draft_search",
    "faster_attention",
    "gives_loss",
    "is_plain",
    "joint_linear",
    "prepacked_weights",
    "takes_bias",
]
