"""Seconds and memory of a training step or of attention alone, measured in a subprocess of the attention benchmark."""

from collections.abc import Callable, Mapping

import torch
from torch.nn import functional as F

from hf_docmt import registry
from hf_docmt.bench.benchmark import SPECIAL_TOKENS
from hf_docmt.bench.memory import measure_work
from hf_docmt.bench.subprocesses import answer_case
from hf_docmt.modeling.window_attention import window_attention, windows_around

EOS, SEP = 3, 4  # token ids
SENTENCE_TOKENS = 25  # with the separator
HEADS, HEAD_DIM = 8, 64  # of attention alone


def measure(case: Mapping) -> dict:
    """`seconds` and `memory_mib` of a step of a case, see `measure_work`.

    Weights, inputs and what a step on a short document has made, such as gradients, are in memory before.
    """
    return measure_work(WORK[case["work"]], case)


def training_step(case: Mapping, device: torch.device) -> Callable[[], object]:
    """Forward and backward pass of a new model on one document, without the update."""
    architecture = registry.get(case["architecture"])
    config = architecture.config_class(vocab_size=case["vocab_size"], **case["sizes"], **case["fields"])
    model = architecture.model_class(config).train().to(device)
    model.set_attn_implementation(case["implementation"])

    def step(tokens: int) -> None:
        source, target = (random_document(tokens, case["vocab_size"]).to(device) for _ in range(2))
        model(input_ids=source, attention_mask=torch.ones_like(source), labels=target).loss.backward()

    step(min(2 * SENTENCE_TOKENS, case["tokens"]))
    if case["implementation"] == "flex_attention":
        step(case["tokens"])  # compiles its kernels
    return lambda: step(case["tokens"])


def attention_alone(case: Mapping, device: torch.device) -> Callable[[], object]:
    """Forward and backward pass of one attention of a sequence to itself, `implementation` sdpa, eager or window."""
    attend = {"sdpa": F.scaled_dot_product_attention, "eager": plain_attention}.get(case["implementation"])
    if case["implementation"] == "window":

        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            positions, width = torch.arange(key.shape[2], device=device)[None], case["fields"]["window"]
            windows = windows_around(positions, width, width, key.shape[2], None, None)
            return window_attention(query, key, value, windows)

    def step_for(tokens: int) -> Callable[[], object]:
        shape = (1, HEADS, tokens, HEAD_DIM)
        inputs = [torch.randn(shape, device=device, requires_grad=True) for _ in range(3)]
        gradient = torch.randn(shape, device=device)
        return lambda: torch.autograd.grad(attend(*inputs), inputs, gradient)

    step_for(min(2 * SENTENCE_TOKENS, case["tokens"]))()
    return step_for(case["tokens"])


def plain_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """softmax(QK^T / sqrt(d))V with all weights in memory."""
    return F.softmax(query @ key.transpose(2, 3) * HEAD_DIM**-0.5, dim=-1) @ value


def random_document(tokens: int, vocab_size: int) -> torch.Tensor:
    """A document of random sentences, (1, tokens)."""
    ids = torch.randint(SPECIAL_TOKENS, vocab_size, (1, tokens))
    ids[:, SENTENCE_TOKENS - 1 :: SENTENCE_TOKENS] = SEP
    ids[:, -1] = EOS
    return ids


WORK = {"training step": training_step, "attention alone": attention_alone}

if __name__ == "__main__":
    answer_case(measure)
