"""Seconds and memory of writing segments of several sentences, measured in a subprocess of the attention benchmark."""

from collections.abc import Callable, Mapping

import torch
from transformers import LogitsProcessor

from hf_docmt.bench.attention_step import SENTENCE_TOKENS, SEP, random_document
from hf_docmt.bench.document_decoding import random_model
from hf_docmt.bench.memory import measure_work
from hf_docmt.bench.subprocesses import answer_case

WARM_UP = 4  # tokens written before the measurement


def measure(case: Mapping) -> dict:
    """`seconds` and `memory_mib` of writing as many tokens as the segments of a case have, see `measure_work`."""
    return measure_work(segment_decoding, case)


def segment_decoding(case: Mapping, device: torch.device) -> Callable[[], object]:
    """`generate` for a batch of random segments; weights of equal names are equal in all architectures."""
    model = random_model(case["architecture"], {}, case["sizes"], case["vocab_size"]).to(device)
    source = torch.cat([random_document(case["length"], case["vocab_size"]) for _ in range(case["batch"])]).to(device)
    settings = {"num_beams": case["beams"], "do_sample": False, "logits_processor": [SentenceEnds()]}

    def write(tokens: int) -> torch.Tensor:
        mask = torch.ones_like(source)
        return model.generate(source, attention_mask=mask, max_new_tokens=tokens, min_new_tokens=tokens, **settings)

    write(min(WARM_UP, case["length"]))
    return lambda: write(case["length"])


class SentenceEnds(LogitsProcessor):
    """Nothing but a separator at the end of every `SENTENCE_TOKENS` tokens."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores (B, V) of the next token, of which there were (B, T)."""
        if input_ids.shape[1] % SENTENCE_TOKENS == 0:
            scores = torch.full_like(scores, -torch.inf).index_fill(1, scores.new_tensor([SEP], dtype=torch.long), 0.0)
        return scores


if __name__ == "__main__":
    answer_case(measure)
