"""How much of the machine's ceiling a decoding benchmark reaches."""

from collections.abc import Mapping
from typing import Any

from hf_docmt.bench.ceilings import COPY
from hf_docmt.bench.decode import MODES

BYTES = {"fp32": 4, "bf16": 2, "int8": 1}  # of a weight


def ceiling_share(row: Mapping[str, Any], setting: Mapping[str, Any], ceilings: Mapping[str, float]) -> float:
    """The least seconds that a row of the decoding benchmark can take here, over those that it took.

    The least are those of the products of all weights with all tokens at the speed of a large product, or of reading
    the weights once at the speed of a copy, whichever is more, for the source and for every step of the decoder. What
    attention adds at such lengths is left out. `ceilings` are GFLOP/s of each precision, and GB/s of a copy.
    """
    sentences, precision = row["batch"], row["precision"]
    source, step = weights_read(setting["sizes"], setting["vocab_size"])

    def least_seconds(weights: int, tokens: int) -> float:
        products = 2 * weights * tokens / (ceilings[precision] * 1e9)
        return max(products, weights * BYTES[precision] / (ceilings[COPY] * 1e9))

    least = least_seconds(source, sentences * setting["source_tokens"])
    least += setting["target_tokens"] * least_seconds(step, sentences * MODES[row["mode"]])
    return least / row["ours_seconds"]


def weights_read(sizes: Mapping[str, int], vocab_size: int) -> tuple[int, int]:
    """The number of weights of matrices that every source token meets, and of those that every target token meets."""
    width, layers = sizes["d_model"], sizes["decoder_layers"]
    encoder = sizes["encoder_layers"] * (4 * width**2 + 2 * width * sizes["encoder_ffn_dim"])
    cross_keys = layers * 2 * width**2
    step = layers * (6 * width**2 + 2 * width * sizes["decoder_ffn_dim"]) + vocab_size * width
    return encoder + cross_keys, step
