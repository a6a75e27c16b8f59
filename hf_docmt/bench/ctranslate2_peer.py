"""CTranslate2 as a further peer of decoding: a plain model with its weights, where the library is installed."""

import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import torch
from transformers import PreTrainedModel

from hf_docmt.bench.marian import COMMON

COMPUTE_TYPES = {"fp32": "float32", "int8": "int8"}  # our name of a precision: theirs


def ctranslate2_version() -> str | None:
    """The version of the library; None where it is not installed, since nothing needs it."""
    try:
        return version("ctranslate2")
    except PackageNotFoundError:
        return None


def ctranslate2_peers(
    model: PreTrainedModel, precisions: Sequence[str], device: str, tokens: int
) -> dict[str, "CTranslate2Peer"]:
    """A peer for each precision that the library has; none where it is not installed."""
    if ctranslate2_version() is None:
        return {}
    return {one: CTranslate2Peer(model, one, device, tokens) for one in precisions if one in COMPUTE_TYPES}


class CTranslate2Peer:
    """Translation into `tokens` tokens by CTranslate2 with the weights of a model, in one of `COMPUTE_TYPES`.

    It has as many threads as torch. Weights are handed over in memory, since the library's own converter wants a
    tokenizer. Tokens are named by their ids, since the library reads words.
    """

    def __init__(self, model: PreTrainedModel, precision: str, device: str, tokens: int):
        from ctranslate2 import Translator

        from hf_docmt.hub.ctranslate2_conversion import ctranslate2_specification

        self.tokens = tokens
        name, _, index = device.partition(":")
        place = {"device": name, "device_index": int(index or 0)}
        threads = {"inter_threads": 1, "intra_threads": torch.get_num_threads()}
        with tempfile.TemporaryDirectory() as folder:
            specification = ctranslate2_specification(model, list(map(str, range(model.config.vocab_size))))
            specification.validate()
            specification.optimize(quantization=COMPUTE_TYPES[precision])
            specification.save(folder)
            self.translator = Translator(folder, compute_type=COMPUTE_TYPES[precision], **place, **threads)

    def generate(self, input_ids: torch.Tensor, beams: int) -> torch.Tensor:
        """The translations with the decoder's start token, (B, 1 + tokens)."""
        sources = [list(map(str, ids)) for ids in input_ids.tolist()]
        start = COMMON["decoder_start_token_id"]
        prompts = [[str(start)]] * len(sources)
        found = self.translator.translate_batch(sources, prompts, beam_size=beams, max_decoding_length=self.tokens)
        return torch.tensor([[start, *map(int, one.hypotheses[0])] for one in found])
