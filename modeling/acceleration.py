"""What the package has for speed and training; a Hub folder has `plain_acceleration.py` instead.

A folder of int8 weights has this file, and those that it imports.
"""

from .chunked_loss import OutputProjection
from .cpu_inference import Linear, faster_attention, is_plain, joint_linear
from .model_support import HeadSupport, ModelSupport
from .quantization import takes_bias
from .training import dropout

__all__ = [
    "HeadSupport",
    "Linear",
    "ModelSupport",
    "OutputProjection",
    "dropout",
    "faster_attention",
    "is_plain",
    "joint_linear",
    "takes_bias",
]
