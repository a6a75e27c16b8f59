"""What one process of the attention bench measures: reads a case as JSON, prints seconds and memory as JSON."""

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import torch
from torch.nn import functional as F

from hf_docmt import registry

SPECIAL, EOS, SEP = 6, 3, 4  # number of special tokens, ids
SENTENCE = 25  # tokens of a sentence, with its separator
HEADS, HEAD_DIM = 8, 64  # of attention alone
WINDOWS = "hf_docmt.modeling.window_attention"


def measure(case: Mapping) -> dict:
    """Median seconds of `repeats` steps of a case, and MiB that they need at their peak beyond what was there before.

    Before them stand weights, inputs, and what a step on a short document has made, such as gradients. Memory on
    a CPU is the resident memory of the process, as Linux tells it (null elsewhere), on a GPU what torch has allocated.
    """
    torch.set_num_threads(case["threads"])
    torch.manual_seed(1)
    device = torch.device(case["device"])
    step = WORK[case["work"]](case, device)
    before, _ = memory_of(device, reset=True)
    seconds = [timed(step, device) for _ in range(case["repeats"])]
    _, peak = memory_of(device)
    return {"seconds": median(seconds), "memory_mib": None if peak is None else (peak - before) / 2**20}


def training_step(case: Mapping, device: torch.device) -> Callable[[], object]:
    """Forward and backward pass of a new model on one document; the update, which no length changes, is left out."""
    architecture = registry.get(case["architecture"])
    config = architecture.config_class(vocab_size=case["vocab_size"], **case["sizes"], **case["fields"])
    model = architecture.model_class(config).train().to(device)
    model.set_attn_implementation(case["implementation"])

    def step(tokens: int) -> None:
        source, target = (document(tokens, case["vocab_size"]).to(device) for _ in range(2))
        model(input_ids=source, attention_mask=torch.ones_like(source), labels=target).loss.backward()

    step(min(2 * SENTENCE, case["tokens"]))
    return lambda: step(case["tokens"])


def attention_alone(case: Mapping, device: torch.device) -> Callable[[], object]:
    """Forward and backward pass of one attention of a sequence to itself, `implementation` sdpa, eager or window."""
    attend = {"sdpa": F.scaled_dot_product_attention, "eager": plain_attention}.get(case["implementation"])
    if case["implementation"] == "window":
        window_attention = registry.load(f"{WINDOWS}:window_attention")
        windows_around = registry.load(f"{WINDOWS}:windows_around")

        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            places, width = torch.arange(key.shape[2], device=device)[None], case["fields"]["window"]
            windows = windows_around(places, width, width, key.shape[2], None, None)
            return window_attention(query, key, value, windows)

    def step_for(tokens: int) -> Callable[[], object]:
        shape = (1, HEADS, tokens, HEAD_DIM)
        inputs = [torch.randn(shape, device=device, requires_grad=True) for _ in range(3)]
        gradient = torch.randn(shape, device=device)
        return lambda: torch.autograd.grad(attend(*inputs), inputs, gradient)

    step_for(min(2 * SENTENCE, case["tokens"]))()
    return step_for(case["tokens"])


def plain_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """softmax(QK^T / sqrt(d))V with all weights in memory."""
    return F.softmax(query @ key.transpose(2, 3) * HEAD_DIM**-0.5, dim=-1) @ value


def document(tokens: int, vocab_size: int) -> torch.Tensor:
    """A document of random sentences, (1, tokens)."""
    ids = torch.randint(SPECIAL, vocab_size, (1, tokens))
    ids[:, SENTENCE - 1 :: SENTENCE] = SEP
    ids[:, -1] = EOS
    return ids


def timed(step: Callable[[], object], device: torch.device) -> float:
    """Seconds of a step, to the end of what it has asked a GPU for."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    started = time.perf_counter()
    step()
    wait()
    return time.perf_counter() - started


def memory_of(device: torch.device, reset: bool = False) -> tuple[int | None, int | None]:
    """Bytes that are taken now, and at the peak since the last `reset`; None where the system does not tell."""
    if device.type == "cuda":
        if reset:
            torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")
    if not status.is_file():
        return None, None
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak begins at what is taken now
    lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
    return tuple(int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))


WORK = {"training step": training_step, "attention alone": attention_alone}

if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))
