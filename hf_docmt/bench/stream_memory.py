"""Resident memory over a long stream of sentences, which a subprocess translates one by one."""

import random
import string
import time
from collections.abc import Iterator, Mapping

import torch

from hf_docmt import registry
from hf_docmt.bench.memory import memory_in_use
from hf_docmt.bench.results import Check, ScalingRow
from hf_docmt.bench.subprocesses import answer_case, measure_in_subprocess
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
MAX_GROWTH = 5.0  # MiB between the first tenth and the end; the tokenizer remembers 10,000 words, about 3 MiB


def measure_stream(sentences: int, device: str, time_limit: float) -> ScalingRow:
    """The row of a stream of so many sentences: resident MiB at the end beside those after a tenth.

    Random sentences, all different, go through `translate_stream` of a tiny model with memory. `memory_mib` is what
    was added after the first tenth.
    """
    case = {"sentences": sentences, "device": device, "threads": torch.get_num_threads()}
    found = measure_in_subprocess("hf_docmt.bench.stream_memory", case, time_limit)
    end, tenth = found.get("end"), found.get("tenth")
    return ScalingRow(
        case=f"{NAME}, {sentences} sentences",
        ours=end,
        peer=tenth,
        ratio=end / tenth if end and tenth else None,
        unit="MiB resident",
        seconds=found.get("seconds"),
        memory_mib=end - tenth if end and tenth else None,
        skipped=found.get("skipped"),
        name=NAME,
        tokens=None,
    )


def stream_checks(row: ScalingRow) -> list[Check]:
    """The target of a stream. It may be endless: only the state of the model goes from sentence to sentence."""
    return [Check.at_most(f"{NAME}: MiB added after a tenth", row.memory_mib, MAX_GROWTH)]


def measure(case: Mapping) -> dict:
    """Resident MiB after a `tenth` of `sentences` and at the `end` (None where the system has none), and `seconds`."""
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
    reported = {case["sentences"] // 10: "tenth", case["sentences"]: "end"}
    for number, _ in enumerate(stream, start=1):
        if number in reported:
            taken, _ = memory_in_use(torch.device("cpu"))
            resident[reported[number]] = None if taken is None else taken / 2**20
    return {"seconds": time.perf_counter() - started, **resident}


def random_sentences(number: int, seed: int) -> Iterator[str]:
    """Sentences of two to six words of two to six random letters, generated lazily."""
    generator = random.Random(seed)
    for _ in range(number):
        yield " ".join(random_word(generator) for _ in range(generator.randint(2, 6)))


def random_word(generator: random.Random) -> str:
    """Two to six random letters."""
    return "".join(generator.choices(string.ascii_lowercase, k=generator.randint(2, 6)))


def check_stream_sentences(number: int) -> None:
    """Raise `ValueError` for a stream of fewer than ten sentences; 0 means none is measured."""
    if not isinstance(number, int) or isinstance(number, bool) or (number != 0 and number < 10):
        raise ValueError(
            f"stream_sentences: expected 0 (not measured) or a whole number of at least 10, got {number!r}"
        )


if __name__ == "__main__":
    answer_case(measure)
