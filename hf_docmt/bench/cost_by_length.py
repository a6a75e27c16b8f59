"""Cost of decoding by length: documents of growing length, each way to translate them beside the sentence-level one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

import torch

from hf_docmt.bench.marian import TRANSFORMER_BASE
from hf_docmt.bench.rounds import System, alternate_rounds
from hf_docmt.bench.scaling import check_arguments, growth_rows, make_row, peer_of
from hf_docmt.bench.stream_memory import check_sentences, measure_stream, stream_checks
from hf_docmt.bench.timing import bench_result, check_at_most, check_positive

PEER = "sentence"
SYSTEMS = {
    PEER: System("concat", "sentence"),
    "memory": System("memory", "stream"),
    "document": System("concat", "sentence", whole=True),
}
PROCESS = "hf_docmt.bench.document_decoding"
MOST_TIME = {"memory": 1.15}  # times the peer's seconds, at every length
MOST_GROWTH = {"memory": 0.1}  # exponent of memory: eight times the tokens may take 1.23 times the memory


def bench_cost(
    repeats: int = 3,
    *,
    lengths: Sequence[int] = (500, 1000, 2000, 4000, 8000),
    chunk: int = 100,
    sizes: Mapping[str, int] = TRANSFORMER_BASE,
    vocab_size: int = 30000,
    device: str = "cpu",
    time_limit: float = 600,
    stream_sentences: int = 0,
    tell: Callable[[Mapping], None] = lambda row: None,
) -> dict:
    """Target tokens a second and extra memory of translating documents, greedy, one at a time, with random weights.

    Feng et al. (2022), section 5.4 and figure 8: random source tokens, as many target tokens; the sentence-level model
    and the one with memory read and write chunks of `chunk` tokens, the latter carrying its memory along, the
    document-level model all tokens at once. Weights of equal names are equal. `SYSTEMS` are walked by the strategies
    that users call, `PEER` is what they are compared with. Every measurement has a process of its own; at each length
    the systems take turns `repeats` times, and medians count. A length at which one measurement would not fit into the
    free memory, or into `time_limit` seconds, going by the shorter ones, is skipped, and `skipped` says why.
    `tell` hears the row of a system after each of its measurements, with the medians so far.

    After them stand the exponents with which time and memory grow, fitted from the second length on, and, for
    `stream_sentences` > 0, the row of `measure_stream`. Returns `rows`, `checks`, `setting`. Raises `ValueError` for
    bad arguments.
    """
    check_arguments(repeats, lengths, sizes, vocab_size, device, time_limit)
    check_chunk(chunk, lengths)
    check_sentences(stream_sentences)
    shared = {"sizes": dict(sizes), "vocab_size": vocab_size, "chunk": chunk, "repeats": 1, "device": device}
    shared |= {"threads": torch.get_num_threads()}
    rows: list[dict] = []
    for tokens in lengths:
        cases = {
            name: asdict(system) | shared | {"tokens": tokens, "unit": tokens if system.whole else chunk}
            for name, system in SYSTEMS.items()
        }
        found: dict[str, dict] = {}
        for name, numbers in alternate_rounds(PROCESS, cases, rows, repeats, time_limit):
            found[name] = numbers
            tell(row_of(found, name, tokens))
        rows += [row_of(found, name, tokens) for name in SYSTEMS]
    rows += [row for name in SYSTEMS for row in growth_rows(name, PEER, rows, lengths)]
    checks = checks_of(rows, lengths)
    if stream_sentences:
        rows.append(measure_stream(stream_sentences, device, time_limit))
        tell(rows[-1])
        checks += stream_checks(rows[-1])
    setting = {"lengths": list(lengths), "chunk": chunk, "repeats": repeats, "vocab_size": vocab_size}
    setting |= {"sizes": dict(sizes), "device": device, "time_limit": time_limit, "stream_sentences": stream_sentences}
    return bench_result(rows, checks, **setting)


def row_of(found: Mapping[str, Mapping], name: str, tokens: int) -> dict:
    """The row of a system by what is known of all systems at a length."""
    peer = make_row(PEER, tokens, found.get(PEER, {}), None)
    return peer if name == PEER else make_row(name, tokens, found[name], peer)


def checks_of(rows: Sequence[Mapping], lengths: Sequence[int]) -> list[dict]:
    """What the systems have to show, at all lengths; a check is missed where one of them was not measured."""
    checks = []
    for name, target in MOST_TIME.items():
        ratios = [peer_of(rows, tokens, name)["ratio"] for tokens in lengths]
        value = 1 / min(ratios) if all(ratios) else None
        checks.append(check_at_most(f"{name}: largest time over {PEER}'s", value, target))
    for name, target in MOST_GROWTH.items():
        growth = next(row for row in rows if row["name"] == f"{name}, exponent of memory")
        value = growth["ours"] if growth["tokens"] == lengths[-1] else None
        checks.append(check_at_most(growth["name"], value, target))
    return checks


def check_chunk(chunk: int, lengths: Sequence[int]) -> None:
    """Raise `ValueError` for chunks that the lengths cannot be cut into."""
    check_positive(chunk=chunk)
    uneven = [length for length in lengths if length % chunk]
    if uneven:
        raise ValueError(f"lengths: expected multiples of the chunk of {chunk} tokens, got {uneven[0]}; change either")
