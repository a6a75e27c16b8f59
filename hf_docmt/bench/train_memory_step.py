"""Seconds and memory of a training step on a long document, measured in a subprocess of the memory benchmark."""

from collections.abc import Callable, Mapping

import torch

from hf_docmt import registry
from hf_docmt.bench.attention_step import SENTENCE_TOKENS, random_document
from hf_docmt.bench.memory import measure_work
from hf_docmt.bench.subprocesses import answer_case


def measure(case: Mapping) -> dict:
    """`seconds` and `memory_mib` of a step of a case, see `measure_work`; weights and gradients are there before."""
    return measure_work(training_step, case)


def training_step(case: Mapping, device: torch.device) -> Callable[[], object]:
    """Forward and backward pass of a new model on one document, without the update."""
    architecture = registry.get(case["architecture"])
    config = architecture.config_class(vocab_size=case["vocab_size"], **case["sizes"], **case["fields"])
    model = architecture.model_class(config).train().to(device)
    if case["checkpointing"]:
        model.activation_checkpointing_enable()

    def step(tokens: int) -> None:
        source, target = (random_document(tokens, case["vocab_size"]).to(device) for _ in range(2))
        with torch.autocast(device.type, torch.bfloat16, enabled=case["precision"] == "bf16"):
            loss = model(
                input_ids=source,
                attention_mask=torch.ones_like(source),
                labels=target,
                skip_logits=case["skip_logits"],
            ).loss
        loss.backward()

    step(min(2 * SENTENCE_TOKENS, case["tokens"]))
    return lambda: step(case["tokens"])


if __name__ == "__main__":
    answer_case(measure)
