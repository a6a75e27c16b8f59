"""Cost of decoding by length: documents of growing length, each system beside the sentence-level one."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import torch

from hf_docmt.bench.benchmark import (
    Benchmark,
    OnRow,
    check_device,
    check_lengths,
    check_model,
    check_positive,
    check_time_limit,
    ignore_row,
    option,
)
from hf_docmt.bench.marian import TRANSFORMER_BASE
from hf_docmt.bench.results import BenchResult, Check, ScalingRow
from hf_docmt.bench.rounds import BenchSystem, alternate_rounds
from hf_docmt.bench.scaling import find_row, growth_rows, scaling_row
from hf_docmt.bench.stream_memory import check_stream_sentences, measure_stream, stream_checks

PEER = "sentence"
SYSTEMS = {
    PEER: BenchSystem("concat", "sentence"),
    "memory": BenchSystem("memory", "stream"),
    "document": BenchSystem("concat", "sentence", whole=True),
}
PROCESS = "hf_docmt.bench.document_decoding"
MAX_TIME = {"memory": 1.15}  # times the peer's seconds, at every length
MAX_EXPONENT = {"memory": 0.1}  # of memory: eight times the tokens may take 1.23 times the memory


@dataclass(kw_only=True)
class CostByLength(Benchmark):
    """Target tokens a second and extra memory of translating documents, greedy, one at a time, with random weights.

    Feng et al. (2022), section 5.4 and figure 8: random source tokens, as many target tokens; the sentence-level model
    and the one with memory read and write chunks of `chunk` tokens, and the latter carries its memory from chunk to
    chunk; the document-level model reads and writes all tokens at once. Weights of equal names are equal. `SYSTEMS` use
    the strategies of `translate_documents`; `PEER` is what they are compared with. Every measurement has a process of
    its own; at each length the systems are measured in `repeats` alternating rounds, and the medians are reported. A
    measurement is stopped where it needs more than the available memory or more than `time_limit` seconds; `skipped`
    says so, and longer documents are not tried. `on_row` gets the row of a system after each of its measurements, with
    the medians so far.

    After them come the exponents with which time and memory grow, fitted from the second length on, and, for
    `stream_sentences` > 0, the row of `measure_stream`.
    """

    name = "cost-by-length"
    command = "cost"
    by = "length"
    default_by = True
    help = (
        "Time and memory of translating, or of training: by length of documents, or by sentences of context.\n\n"
        "By length: sentences alone, with recurrent memory, whole documents. Every row is printed on standard error as "
        "soon as it is measured. On one core (25 ms per token), one repeat over the lengths 500,1000,4000 or the "
        "contexts 0,1,2,10 took eleven minutes; the defaults take longer."
    )
    report_options = ({"lengths": (500, 1000, 2000), "repeats": 1, "time_limit": 120.0},)

    repeats: int = option(3, "Measurements of each system, the median is reported.")
    lengths: tuple[int, ...] = option((500, 1000, 2000, 4000, 8000), "Tokens of the documents, separated by commas.")
    chunk: int = 100
    sizes: Mapping[str, int] = field(default_factory=lambda: TRANSFORMER_BASE)
    vocab_size: int = 30000
    device: str = option("cpu", "cpu or cuda.")
    time_limit: float = option(600, "Longest time of one measurement, in seconds.")
    stream_sentences: int = option(0, "Sentences of a stream whose memory is measured; 0 = none.")

    def __post_init__(self) -> None:
        check_lengths(self.lengths)
        check_positive(repeats=self.repeats)
        check_model(self.sizes, self.vocab_size)
        check_device(self.device)
        check_time_limit(self.time_limit)
        check_chunk(self.chunk, self.lengths)
        check_stream_sentences(self.stream_sentences)

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        rows: list[ScalingRow] = []
        for tokens in self.lengths:
            cases = {name: self.case(system, tokens) for name, system in SYSTEMS.items()}
            numbers: dict[str, dict] = {}
            for name, latest in alternate_rounds(PROCESS, cases, rows, self.repeats, self.time_limit):
                numbers[name] = latest
                on_row(system_row(numbers, name, tokens))
            rows += [system_row(numbers, name, tokens) for name in SYSTEMS]
        rows += [row for name in SYSTEMS for row in growth_rows(name, PEER, rows, self.lengths)]
        checks = target_checks(rows, self.lengths)
        if self.stream_sentences:
            rows.append(measure_stream(self.stream_sentences, self.device, self.time_limit))
            on_row(rows[-1])
            checks += stream_checks(rows[-1])
        setting = {"lengths": list(self.lengths), "chunk": self.chunk, "repeats": self.repeats}
        setting |= {"vocab_size": self.vocab_size, "sizes": dict(self.sizes), "device": self.device}
        setting |= {"time_limit": self.time_limit, "stream_sentences": self.stream_sentences}
        return BenchResult.of(rows, checks, **setting)

    def case(self, system: BenchSystem, tokens: int) -> dict:
        """What `hf_docmt.bench.document_decoding` measures of a system at a length."""
        case = asdict(system) | {"sizes": dict(self.sizes), "vocab_size": self.vocab_size, "chunk": self.chunk}
        case |= {"repeats": 1, "device": self.device, "threads": torch.get_num_threads()}
        return case | {"tokens": tokens, "unit": tokens if system.whole else self.chunk}


def system_row(numbers: Mapping[str, Mapping], name: str, tokens: int) -> ScalingRow:
    """The row of a system at a length; `numbers` are those of all systems measured so far."""
    peer = scaling_row(PEER, tokens, numbers.get(PEER, {}), None)
    return peer if name == PEER else scaling_row(name, tokens, numbers[name], peer)


def target_checks(rows: Sequence[ScalingRow], lengths: Sequence[int]) -> list[Check]:
    """The targets at all lengths; a check is missed where a system was not measured at one of them."""
    checks = []
    for name, target in MAX_TIME.items():
        ratios = [find_row(rows, tokens, name).ratio for tokens in lengths]
        value = 1 / min(ratios) if all(ratios) else None
        checks.append(Check.at_most(f"{name}: largest time over {PEER}'s", value, target))
    for name, target in MAX_EXPONENT.items():
        growth = next(row for row in rows if row.name == f"{name}, exponent of memory")
        value = growth.ours if growth.tokens == lengths[-1] else None
        checks.append(Check.at_most(growth.name, value, target))
    return checks


def check_chunk(chunk: int, lengths: Sequence[int]) -> None:
    """Raise `ValueError` for lengths that are no multiples of the chunk."""
    check_positive(chunk=chunk)
    uneven = [length for length in lengths if length % chunk]
    if uneven:
        raise ValueError(f"lengths: expected multiples of the chunk of {chunk} tokens, got {uneven[0]}; change either")
