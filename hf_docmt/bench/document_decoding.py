"""Seconds and memory of decoding a document, measured in a subprocess of the cost benchmark by length."""

from collections.abc import Callable, Mapping
from zlib import crc32

import torch
from torch import nn
from transformers import PreTrainedModel

from hf_docmt import registry
from hf_docmt.bench.benchmark import SPECIAL_TOKENS
from hf_docmt.bench.memory import measure_work, trim_memory
from hf_docmt.bench.subprocesses import answer_case
from hf_docmt.modeling.document_state import DocumentState, SentencePart

NEVER = -1e9  # logit bias of a token that is never chosen
WARM_UP = 2  # chunks translated before the measurement; the second one of a stream reads a memory


def measure(case: Mapping) -> dict:
    """`seconds` and `memory_mib` of the translation of a case, see `measure_work`.

    The weights and what is left by a translation of `WARM_UP` chunks, such as prepacked weights, are in memory before.
    """
    return measure_work(translation, case)


def translation(case: Mapping, device: torch.device) -> Callable[[], list[list[int]]]:
    """The translation of `tokens` random tokens in units of `unit` tokens, by a strategy of the model's translator.

    It is `translate_documents` without texts. The decoder writes as many tokens for a unit as the unit has,
    since no special token is ever chosen. The function returned gives the ids of every unit and raises `RuntimeError`
    for other numbers of tokens.
    """
    model = random_model(case["architecture"], case["fields"], case["sizes"], case["vocab_size"]).to(device)

    def translate(units: int, size: int) -> list[list[int]]:
        document = random_document(units, size, case["vocab_size"])
        translator = model.translator_class(model, 1, {"max_new_tokens": size, "num_beams": 1, "do_sample": False})
        translator.translate([document], case["strategy"])
        wrong = {len(part.target) for part in document.parts} - {size}
        if wrong:
            raise RuntimeError(f"expected {size} target tokens a unit, got {sorted(wrong)}")
        return [part.target for part in document.parts]

    translate(WARM_UP, case["chunk"])
    trim_memory()
    return lambda: translate(case["tokens"] // case["unit"], case["unit"])


def random_model(architecture: str, fields: Mapping, sizes: Mapping, vocab_size: int) -> PreTrainedModel:
    """A model for evaluation that never chooses a special token; weights of equal names are equal in all of them."""
    found = registry.get(architecture)
    model = found.model_class(found.config_class(vocab_size=vocab_size, **sizes, **fields)).eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            generator = torch.Generator().manual_seed(crc32(name.encode()))
            nn.init.normal_(parameter, std=model.config.init_std, generator=generator)
    model.final_logits_bias[:, :SPECIAL_TOKENS] = NEVER
    return model


def random_document(units: int, size: int, vocab_size: int) -> DocumentState:
    """A document of so many units of `size` random tokens each, without special tokens."""
    ids = torch.randint(SPECIAL_TOKENS, vocab_size, (units, size)).tolist()
    return DocumentState(units, [SentencePart(number, unit) for number, unit in enumerate(ids)])


if __name__ == "__main__":
    answer_case(measure)
