"""Resident memory over a long stream of sentences, in a process of its own that translates them one by one."""

import json
import random
import string
import sys
import time
from collections.abc import Iterator, Mapping

import torch

from hf_docmt import registry
from hf_docmt.bench.memory import memory_of
from hf_docmt.bench.scaling import COLUMNS
from hf_docmt.bench.subprocesses import measure_in_subprocess
from hf_docmt.bench.timing import check_at_most
from hf_docmt.data.tokenizers import train_tokenizer

NAME = "stream"
TINY = {  # the smaller the model, the more sentences in the same time; what a stream keeps does not depend on it
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
}
VOCAB_SIZE, TARGET_TOKENS = 300, 4
MOST_GROWTH = 5.0  # MiB between the first tenth and the end; the tokenizer remembers 10,000 words, about 3 MiB


def measure_stream(sentences: int, device: str, time_limit: float) -> dict:
    """The row of a stream of so many sentences: resident MiB of its process at the end beside those after a tenth.

    Random sentences, none like another, go through `translate_stream` of a tiny model with memory. `memory_mib` is what
    was added after the first tenth.
    """
    case = {"sentences": sentences, "device": device, "threads": torch.get_num_threads()}
    found = measure_in_subprocess("hf_docmt.bench.stream_memory", case, time_limit)
    row = dict.fromkeys(COLUMNS) | {"case": f"{NAME}, {sentences} sentences", "unit": "MiB resident", "name": NAME}
    row |= {name: found.get(name) for name in ("seconds", "skipped")}
    row |= {"ours": found.get("end"), "peer": found.get("tenth")}
    if row["ours"] and row["peer"]:
        row |= {"ratio": row["ours"] / row["peer"], "memory_mib": row["ours"] - row["peer"]}
    return row


def stream_checks(row: Mapping) -> list[dict]:
    """What a stream has to show: it may be endless, since nothing is kept but the memory."""
    return [check_at_most(f"{NAME}: MiB added after a tenth", row["memory_mib"], MOST_GROWTH)]


def measure(case: Mapping) -> dict:
    """Resident MiB after a `tenth` of `sentences` and at the `end` (null where the system does not tell), `seconds`."""
    torch.set_num_threads(case["threads"])
    torch.manual_seed(1)
    tokenizer = train_tokenizer(random_sentences(100, seed=1), "bpe", VOCAB_SIZE)
    memory = registry.get("memory")
    config = memory.config_class(vocab_size=len(tokenizer), **TINY)
    model = memory.model_class(config).eval().to(case["device"])
    stream = model.translate_stream(
        random_sentences(case["sentences"], seed=2), tokenizer, max_new_tokens=TARGET_TOKENS, do_sample=False
    )
    started, resident = time.perf_counter(), {}
    marks = {case["sentences"] // 10: "tenth", case["sentences"]: "end"}
    for number, _ in enumerate(stream, start=1):
        if number in marks:
            taken, _ = memory_of(torch.device("cpu"))
            resident[marks[number]] = None if taken is None else taken / 2**20
    return {"seconds": time.perf_counter() - started, **resident}


def random_sentences(number: int, seed: int) -> Iterator[str]:
    """Sentences of two to six words of two to six random letters, drawn one by one."""
    draw = random.Random(seed)
    for _ in range(number):
        words = ("".join(draw.choices(string.ascii_lowercase, k=draw.randint(2, 6))) for _ in range(draw.randint(2, 6)))
        yield " ".join(words)


def check_sentences(number: int) -> None:
    """Raise `ValueError` for a stream without a tenth; 0 is none."""
    if not isinstance(number, int) or isinstance(number, bool) or (number != 0 and number < 10):
        raise ValueError(
            f"stream_sentences: expected 0 (not measured) or a whole number of at least 10, got {number!r}"
        )


if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))
