"""CTranslate2 as a further peer of decoding: a MarianMTModel with its weights, where the library is installed."""

import copy
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from transformers import MarianMTModel

from hf_docmt.bench.marian import COMMON

COMPUTE_TYPES = {"fp32": "float32", "int8": "int8"}  # our name of a precision: theirs


def ctranslate2_version() -> str | None:
    """The version of the library; None where it is not installed, since nothing needs it."""
    try:
        return version("ctranslate2")
    except PackageNotFoundError:
        return None


def ctranslate2_peers(
    model: MarianMTModel, precisions: Sequence[str], device: str, tokens: int
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

    def __init__(self, model: MarianMTModel, precision: str, device: str, tokens: int):
        from ctranslate2 import Translator

        self.tokens = tokens
        name, _, index = device.partition(":")
        place = {"device": name, "device_index": int(index or 0)}
        threads = {"inter_threads": 1, "intra_threads": torch.get_num_threads()}
        with tempfile.TemporaryDirectory() as folder:
            specification = marian_specification(copy.deepcopy(model))  # quantization is in place
            specification.validate()
            specification.optimize(quantization=COMPUTE_TYPES[precision])
            specification.save(folder)
            self.translator = Translator(folder, compute_type=COMPUTE_TYPES[precision], **place, **threads)

    def generate(self, input_ids: torch.Tensor, beams: int) -> torch.Tensor:
        """The translations with the decoder's start token, (B, 1 + tokens)."""
        sources = [list(map(str, ids)) for ids in input_ids.tolist()]
        found = self.translator.translate_batch(sources, beam_size=beams, max_decoding_length=self.tokens)
        start = COMMON["decoder_start_token_id"]
        return torch.tensor([[start, *map(int, one.hypotheses[0])] for one in found])


def marian_specification(model: MarianMTModel) -> Any:
    """CTranslate2's description of the model.

    It is made by the converter of Bart: Marian is a Bart of post-norm layers without a norm of the embeddings. The
    converter of Marian drops the last token, which is the padding in Marian's own models only.
    """
    from ctranslate2.converters.transformers import BartLoader

    model.config.normalize_before = model.config.normalize_embedding = False
    with torch.no_grad():
        found = BartLoader().get_model_spec(model)
    names = [str(number) for number in range(model.config.vocab_size)]
    found.register_source_vocabulary(names)
    found.register_target_vocabulary(names)
    found.config.bos_token = found.config.decoder_start_token = names[COMMON["decoder_start_token_id"]]
    found.config.eos_token = names[COMMON["eos_token_id"]]
    found.config.unk_token = names[COMMON["pad_token_id"]]
    found.config.add_source_bos = found.config.add_source_eos = False
    return found
