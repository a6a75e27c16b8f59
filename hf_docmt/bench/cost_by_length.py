"""Cost of decoding by length: documents of growing length, each system beside the sentence-level one."""

import random
import string
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch

from hf_docmt import registry
from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row
from hf_docmt.bench.measurement import measure_rows, memory_in_use, trim_memory
from hf_docmt.bench.models import TINY, TRANSFORMER_BASE, random_model, random_units, written_ids
from hf_docmt.bench.options import CostByLengthOptions
from hf_docmt.bench.process import measure_in_subprocess
from hf_docmt.bench.results import BenchResult, Check, ScalingRow, find_row, growth_rows
from hf_docmt.data.tokenizers import train_tokenizer

PEER = "sentence"
SYSTEMS = {  # name: architecture, strategy; `document` is one source of all tokens, the others have chunks
    PEER: ("concat", "sentence"),
    "memory": ("memory", "stream"),
    "document": ("concat", "sentence"),
}
WORK, STREAM_WORK = f"{__name__}:translation", f"{__name__}:measure_stream"
WARM_UP = 2  # chunks translated before the measurement; the second one of a stream reads a memory
STREAM = "stream"
VOCAB_SIZE, TARGET_TOKENS = 300, 4  # of a stream
MAX_STREAM_GROWTH = 5.0  # MiB between the first tenth and the end; the tokenizer remembers 10,000 words, about 3 MiB
MAX_TIME = {"memory": 1.15}  # times the peer's seconds, at every length
MAX_EXPONENT = {"memory": 0.1}  # of memory: eight times the tokens may take 1.23 times the memory


@dataclass(kw_only=True)
class CostByLength(CostByLengthOptions, Benchmark):
    """Target tokens a second and extra memory of translating documents, greedy, one at a time, with random weights.

    Feng et al. (2022), section 5.4 and figure 8: random source tokens, as many target tokens; the sentence-level model
    and the one with memory read and write chunks of `chunk` tokens, and the latter carries its memory from chunk to
    chunk; the document-level model reads and writes all tokens at once. Weights of equal names are equal. `SYSTEMS` use
    the strategies of `translate_documents`; `PEER` is what they are compared with. Processes, rounds and what is
    `skipped` are those of `measure_rows`.

    After the rows come the exponents with which time and memory grow, fitted from the second length on, and, for
    `stream_sentences` > 0, the row of a stream: resident MiB at its end beside those after a tenth.
    """

    report_options = ({"lengths": (500, 1000, 2000), "repeats": 1, "time_limit": 120.0},)

    chunk: int = 100
    sizes: Mapping[str, int] = field(default_factory=lambda: TRANSFORMER_BASE)
    vocab_size: int = 30000

    def __post_init__(self) -> None:
        super().__post_init__()
        uneven = [length for length in self.lengths if length % self.chunk]
        if uneven:
            raise ValueError(
                f"lengths: expected multiples of the chunk of {self.chunk} tokens, got {uneven[0]}; change either"
            )

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        rows: list[ScalingRow] = []
        make_row = partial(ScalingRow.at_length, peer=PEER)
        for tokens in self.lengths:
            cases = {name: self.case(name, tokens) for name in SYSTEMS}
            rows += measure_rows(cases, make_row, self, on_row, rows)
        rows += [row for name in SYSTEMS for row in growth_rows(name, PEER, rows, self.lengths)]
        checks = target_checks(rows, self.lengths)
        if self.stream_sentences:
            numbers = measure_in_subprocess(STREAM_WORK, self.shared_case(), self.time_limit)
            rows.append(stream_row(self.stream_sentences, numbers))
            on_row(rows[-1])
            checks.append(stream_check(rows[-1]))
        return self.result(rows, checks)

    def case(self, name: str, tokens: int) -> dict:
        """What is measured of a system at a length."""
        architecture, strategy = SYSTEMS[name]
        unit = tokens if name == "document" else self.chunk
        settings = {"architecture": architecture, "strategy": strategy, "fields": {}, "build": WORK}
        return self.shared_case(**settings, tokens=tokens, unit=unit)


def target_checks(rows: Sequence[ScalingRow], lengths: Sequence[int]) -> list[Check]:
    """The targets at all lengths; a check is missed where a system was not measured at one of them."""
    checks = []
    for name, target in MAX_TIME.items():
        times = [find_row(rows, tokens, name).time_ratio for tokens in lengths]
        value = max(times) if all(times) else None
        checks.append(Check.at_most(f"{name}: largest time over {PEER}'s", value, target))
    for name, target in MAX_EXPONENT.items():
        growth = next(row for row in rows if row.name == f"{name}, exponent of memory")
        value = growth.ours if growth.tokens == lengths[-1] else None
        checks.append(Check.at_most(growth.name, value, target))
    return checks


def stream_row(sentences: int, numbers: Mapping) -> ScalingRow:
    """The row of a stream of so many sentences; `memory_mib` is what was added after the first tenth."""
    end, tenth = numbers.get("end"), numbers.get("tenth")
    more = {"name": STREAM, "tokens": None, "memory_mib": end - tenth if end and tenth else None}
    more |= {column: numbers.get(column) for column in ("seconds", "skipped")}
    return ScalingRow.of(f"{STREAM}, {sentences} sentences", "MiB resident", end, tenth, **more)


def stream_check(row: ScalingRow) -> Check:
    """The target of a stream. It may be endless: only the state of the model goes from sentence to sentence."""
    return Check.at_most(f"{STREAM}: MiB added after a tenth", row.memory_mib, MAX_STREAM_GROWTH)


def translation(case: Mapping, device: torch.device) -> Callable[[], list[list[int]]]:
    """The translation of `tokens` random tokens in units of `unit` tokens, by a strategy of the model's translator.

    It is `translate_documents` without texts. The decoder writes as many tokens for a unit as the unit has,
    since no special token is ever chosen. The function returned gives the ids of every unit, see `written_ids`.
    The weights and what is left by a translation of `WARM_UP` chunks, such as prepacked weights, are in memory before.
    """
    model = random_model(case["architecture"], case["fields"], case["sizes"], case["vocab_size"]).to(device)

    def translate(units: int, size: int) -> list[list[int]]:
        document = random_units(units, size, case["vocab_size"])
        translator = model.translator_class(model, 1, {"max_new_tokens": size, "num_beams": 1, "do_sample": False})
        translator.translate([document], case["strategy"])
        return written_ids(document.parts, size)

    translate(WARM_UP, case["chunk"])
    trim_memory()
    return lambda: translate(case["tokens"] // case["unit"], case["unit"])


def measure_stream(case: Mapping, send: Callable) -> dict:
    """Resident MiB after a `tenth` of `stream_sentences` and at the `end`, or None, and `seconds`.

    Random sentences, all different, go through `translate_stream` of a tiny model with memory.
    """
    torch.set_num_threads(case["threads"])
    torch.manual_seed(1)
    tokenizer = train_tokenizer(random_sentences(100, seed=1), "bpe", VOCAB_SIZE)
    memory = registry.get("memory")
    config = memory.config_class(vocab_size=len(tokenizer), **TINY)
    model = memory.model_class(config).eval().to(case["device"])
    stream = model.translate_stream(
        random_sentences(case["stream_sentences"], seed=2), tokenizer, max_new_tokens=TARGET_TOKENS, do_sample=False
    )
    started, resident = time.perf_counter(), {}
    reported = {case["stream_sentences"] // 10: "tenth", case["stream_sentences"]: "end"}
    for number, _ in enumerate(stream, start=1):
        if number in reported:
            taken, _ = memory_in_use(torch.device("cpu"))
            resident[reported[number]] = None if taken is None else taken / 2**20
    return {"seconds": time.perf_counter() - started, **resident}


def random_sentences(number: int, seed: int) -> Iterator[str]:
    """Sentences of two to six words of two to six random letters, generated lazily."""
    generator = random.Random(seed)
    for _ in range(number):
        lengths = (generator.randint(2, 6) for _ in range(generator.randint(2, 6)))
        yield " ".join("".join(generator.choices(string.ascii_lowercase, k=length)) for length in lengths)
