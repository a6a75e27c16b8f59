"""Cost of context: a document sentence by sentence, by the number of context sentences of each."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import torch

from hf_docmt.bench.benchmark import (
    Benchmark,
    OnRow,
    check_device,
    check_model,
    check_positive,
    check_time_limit,
    ignore_row,
    option,
)
from hf_docmt.bench.marian import TRANSFORMER_BASE
from hf_docmt.bench.results import BenchResult, Check, ScalingRow
from hf_docmt.bench.rounds import BenchSystem, alternate_rounds
from hf_docmt.bench.scaling import least_squares_slope
from hf_docmt.modeling.configuration_caching import PAPER
from hf_docmt.modeling.shortening import LATENT

PEER, SINGLE = "sentence", "single-encoder"
ROUTING = "routing"
SYSTEMS = {  # each gets as many sentences as are asked for; half of those of `ROUTING` follow the current one
    PEER: BenchSystem("concat", "sliding"),
    SINGLE: BenchSystem("concat", "sliding", fields={"context_sides": "source"}),
    "multi-encoder": BenchSystem("multiencoder", "sliding"),
    "tokens": BenchSystem("caching", "sliding", fields={"shortening": "none"}),
    **{
        shortening: BenchSystem("caching", "sliding", fields={"shortening": shortening})
        for shortening in ("avg", "linear", "grouping", "selecting")
    },
    "doct": BenchSystem("doct", "sliding"),
    ROUTING: BenchSystem("routing", "sliding"),
}
NEEDS_CONTEXT = ("doct", ROUTING)
PROCESS = "hf_docmt.bench.context_decoding"
WORKS = ("translation", "training")
SENTENCE_TOKENS = 25
MAX_TIME = {  # times the peer's seconds, at so many context sentences
    "translation": {("grouping", 10): 1.15, (ROUTING, 2): 1.25},
    "training": {(ROUTING, 2): 1.6},
}
MAX_MEMORY_GROWTH = {"grouping": 0.2}  # times what a context sentence adds to the memory of `SINGLE`
MAX_KEPT_GROWTH = {"grouping": 4.0}  # times the vectors that are kept of a context sentence
GROWTH = "MiB a context sentence"


@dataclass(frozen=True, kw_only=True)
class ContextRow(ScalingRow):
    """A system with so many sentences of context, or the growth of its memory over them."""

    context: int | None


@dataclass(kw_only=True)
class CostByContext(Benchmark):
    """Sentences a second and extra memory of translating or training with context, with random weights.

    Maka et al. (2024), section 5.5 and figure 5: the sentence-level model, the single encoder that reads context and
    sentence as one sequence, the multi-encoder, and caching of tokens or of shortened sentences, with the paper's
    settings; further the Document Transformer, and routing, which has half of the context after the sentence.

    `work` is `translation`, greedy, one sentence at a time, or `training`: forward and backward pass of a batch of
    `sentences`, their context encoded anew. In translation, strategy `sliding` translates a document of random
    sentences of `SENTENCE_TOKENS` tokens into sentences of as many tokens. `sentences` of it are measured, which follow
    as many others as are context: the context is full, and what was cached of it is there. `seconds` are those of a
    sentence: its encoding, once, and its translation. `memory_mib` is what is in use at the peak of a sentence,
    together with the cache of its context.

    The sentence-level model takes part in every round, and is the `peer` of the others there; processes, rounds, what
    is `skipped` and `on_row` are as in `CostByLength`. After the rows come the MiB that a context sentence adds, by
    least squares over one context sentence and more, beside those of `SINGLE`; in translation those of caching also
    beside the vectors that it keeps of a context sentence, the least that it can add.
    """

    name = "cost-by-context"
    command = "cost"
    by = "context"
    help = "By context: one encoder, two, caching with sequence shortening, the Document Transformer, routing."
    report_options = (
        {"contexts": (1, 2, 10), "repeats": 1, "time_limit": 120.0},
        {"contexts": (1, 2), "repeats": 3, "time_limit": 120.0, "work": "training"},
    )

    repeats: int = option(3, "Measurements of each system, the median is reported.")
    contexts: tuple[int, ...] = option((0, 1, 2, 5, 10, 20), "Numbers of context sentences, separated by commas.")
    work: str = option("translation", "By context: translation or training.")
    sentences: int = 8
    sizes: Mapping[str, int] = field(default_factory=lambda: TRANSFORMER_BASE)
    vocab_size: int = 30000
    device: str = option("cpu", "cpu or cuda.")
    time_limit: float = option(600, "Longest time of one measurement, in seconds.")

    def __post_init__(self) -> None:
        check_contexts(self.contexts)
        if self.work not in WORKS:
            raise ValueError(f"work: expected {' or '.join(WORKS)}, got {self.work!r}")
        check_positive(sentences=self.sentences)
        check_positive(repeats=self.repeats)
        check_model(self.sizes, self.vocab_size)
        check_device(self.device)
        check_time_limit(self.time_limit)

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        rows: list[ContextRow] = []
        for context in self.contexts:
            names = [name for name in SYSTEMS if context or name not in NEEDS_CONTEXT]
            cases = {name: self.case(name, context) for name in names}
            numbers: dict[str, dict] = {}
            for name, latest in alternate_rounds(PROCESS, cases, rows, self.repeats, self.time_limit):
                numbers[name] = latest
                on_row(system_row(numbers, name, context, self.sentences))
            rows += [system_row(numbers, name, context, self.sentences) for name in names]
        growth = memory_growth_rows(rows)
        if self.work == "translation":
            growth += kept_vectors_rows(growth, self.sizes["d_model"])
        setting = {"contexts": list(self.contexts), "sentences": self.sentences, "sentence_tokens": SENTENCE_TOKENS}
        setting |= {"repeats": self.repeats, "vocab_size": self.vocab_size, "sizes": dict(self.sizes)}
        setting |= {"device": self.device, "time_limit": self.time_limit, "work": self.work}
        return BenchResult.of(rows + growth, target_checks(rows, growth, self.contexts, self.work), **setting)

    def case(self, name: str, context: int) -> dict:
        """What `hf_docmt.bench.context_decoding` measures of a system with so many context sentences."""
        case = asdict(SYSTEMS[name]) | {"work": self.work, "sizes": dict(self.sizes), "vocab_size": self.vocab_size}
        case |= {"device": self.device, "threads": torch.get_num_threads()}
        case |= {"sentences": self.sentences, "sentence_tokens": SENTENCE_TOKENS}
        case |= {"context": context, "tokens": tokens_read(context)}
        return case | {"fields": case["fields"] | context_fields(name, context)}


def context_fields(name: str, context: int) -> dict:
    """The fields of a configuration that ask for so many context sentences."""
    if name == PEER:
        return {}
    future = context // 2 if name == ROUTING else 0
    return {"past_context": context - future, "future_context": future}


def tokens_read(context: int) -> int:
    """Tokens of a sentence and its context."""
    return SENTENCE_TOKENS * (context + 1)


def system_row(numbers: Mapping[str, Mapping], name: str, context: int, sentences: int) -> ContextRow:
    """The row of a system; `numbers` are those of all systems measured so far with this context."""
    seconds = _sentence_seconds(numbers.get(name, {}), sentences)
    peer_seconds = numbers.get(PEER, {}).get("seconds")
    ours = 1 / seconds if seconds else None
    peer = sentences / peer_seconds if peer_seconds else None
    return ContextRow(
        case=case_name(name, context),
        ours=ours,
        peer=peer,
        ratio=ours / peer if ours and peer else None,
        unit="sentences/s",
        name=name,
        tokens=tokens_read(context),
        context=context,
        **{**numbers[name], "seconds": seconds},
    )


def _sentence_seconds(numbers: Mapping, sentences: int) -> float | None:
    seconds = numbers.get("seconds")
    return seconds / sentences if seconds else seconds


def case_name(name: str, context: int) -> str:
    """The name of a row."""
    return f"{name}, {'beside ' * (name == PEER)}{context} context sentence{'s' * (context != 1)}"


def memory_growth_rows(rows: Sequence[ContextRow]) -> list[ContextRow]:
    """The MiB that a context sentence adds to each system, over all rows with one context sentence or more."""
    found: list[ContextRow] = []
    for name in (SINGLE, *(name for name in SYSTEMS if name not in (PEER, SINGLE))):
        fitted = [row for row in rows if row.name == name and row.context and row.memory_mib is not None]
        ours = least_squares_slope([(row.context, row.memory_mib) for row in fitted])
        single = found[0].ours if found else ours
        span = f"{fitted[0].context} to {fitted[-1].context} context sentences" if fitted else "not measured"
        found.append(
            ContextRow(
                case=f"{name}, {span}",
                ours=ours,
                peer=single,
                ratio=ours / single if ours is not None and single and single > 0 else None,
                unit=GROWTH,
                name=f"{name}, {GROWTH}",
                tokens=None,
                context=fitted[-1].context if fitted else None,
            )
        )
    return found


def kept_vectors_rows(growth: Sequence[ContextRow], d_model: int) -> list[ContextRow]:
    """The MiB that a context sentence adds to each caching system, beside those of the vectors kept of it."""
    found = []
    for row in growth:
        name = row.name.removesuffix(f", {GROWTH}")
        if SYSTEMS[name].architecture == "caching":
            kept = kept_vectors(SYSTEMS[name].fields["shortening"]) * d_model * 4 / 2**20  # fp32
            ratio = None if row.ours is None else row.ours / kept
            case = f"{row.case}, beside what is kept"
            found.append(replace(row, case=case, peer=kept, ratio=ratio, name=f"{name}, kept"))
    return found


def kept_vectors(shortening: str) -> int:
    """How many vectors of a context sentence of `SENTENCE_TOKENS` tokens and `</s>` are kept, with the paper's K."""
    tokens, size = SENTENCE_TOKENS + 1, PAPER[shortening].get("shortening_size", 1)
    return size if shortening in LATENT else -(-tokens // size)


def target_checks(
    rows: Sequence[ContextRow], growth: Sequence[ContextRow], contexts: Sequence[int], work: str
) -> list[Check]:
    """The targets; a check is missed where a system was not measured, up to the last context."""
    checks = []
    for (name, context), target in MAX_TIME[work].items():
        ratio = next((row.ratio for row in rows if (row.name, row.context) == (name, context)), None)
        value = 1 / ratio if ratio else None
        checks.append(Check.at_most(f"{case_name(name, context)}: time over {PEER}'s", value, target))
    if work == "training":
        return checks
    single = next(row for row in growth if row.name == f"{SINGLE}, {GROWTH}")
    for name, target in MAX_MEMORY_GROWTH.items():
        row = next(row for row in growth if row.name == f"{name}, {GROWTH}")
        value = row.ratio if row.context == single.context == contexts[-1] else None
        checks.append(Check.at_most(f"{name}: memory growth over {SINGLE}'s", value, target))
    for name, target in MAX_KEPT_GROWTH.items():
        row = next(row for row in growth if row.name == f"{name}, kept")
        value = row.ratio if row.context == contexts[-1] else None
        checks.append(Check.at_most(f"{name}: memory growth over what is kept", value, target))
    return checks


def check_contexts(contexts: Sequence[int]) -> None:
    """Raise `ValueError` for numbers of context sentences over which no growth can be fitted."""
    for context in contexts:
        if not isinstance(context, int) or isinstance(context, bool) or context < 0:
            raise ValueError(f"contexts: expected whole numbers of at least 0, got {context!r}")
    if sum(context > 0 for context in contexts) < 2 or list(contexts) != sorted(set(contexts)):
        raise ValueError(
            f"contexts: expected at least two of 1 or more, from the fewest sentences to the most, got {list(contexts)}"
        )
