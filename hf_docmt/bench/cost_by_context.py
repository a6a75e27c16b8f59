"""Cost of context: a document sentence by sentence, by the number of context sentences of each."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from hf_docmt import registry
from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row
from hf_docmt.bench.measurement import (
    elapsed_seconds,
    measure_repeats,
    measure_rows,
    prepare_process,
    return_freed_blocks,
    trim_memory,
)
from hf_docmt.bench.models import (
    SENTENCE_TOKENS,
    SEP,
    SPECIAL_TOKENS,
    TRANSFORMER_BASE,
    random_model,
    random_units,
    written_ids,
)
from hf_docmt.bench.options import CostByContextOptions
from hf_docmt.bench.results import BenchResult, Check, ScalingRow, least_squares_slope
from hf_docmt.modeling.configuration_caching import PAPER
from hf_docmt.modeling.context_cache import CachedContextTranslator
from hf_docmt.modeling.context_strategies import ContextTranslator
from hf_docmt.modeling.document_state import CurrentSentence, DocumentState
from hf_docmt.modeling.shortening import LATENT
from hf_docmt.modeling.strategies import SegmentTranslator

PEER, SINGLE = "sentence", "single-encoder"
ROUTING = "routing"
SYSTEMS: dict[str, tuple[str, dict]] = {  # name: architecture, fields of its configuration; all by strategy sliding
    PEER: ("concat", {}),  # each other one gets as many sentences as are asked for; half of `ROUTING`'s follow
    SINGLE: ("concat", {"context_sides": "source"}),
    "multi-encoder": ("multiencoder", {}),
    "tokens": ("caching", {"shortening": "none"}),
    **{name: ("caching", {"shortening": name}) for name in ("avg", "linear", "grouping", "selecting")},
    "doct": ("doct", {}),
    ROUTING: ("routing", {}),
}
NEEDS_CONTEXT = ("doct", ROUTING)
SHORTENED = "grouping"  # the system whose growth is checked
WORK = f"{__name__}:measure"
WARM_UP = 2  # sentences translated before the measurement
TRAINING_STEPS = 3  # of a measurement
MAX_TIME = {  # times the peer's seconds, at so many context sentences
    "translation": {(SHORTENED, 10): 1.15, (ROUTING, 2): 1.25},
    "training": {(ROUTING, 2): 1.6},
}
MAX_MEMORY_GROWTH = 0.2  # times what a context sentence adds to the memory of `SINGLE`
MAX_KEPT_GROWTH = 4.0  # times the vectors that are kept of a context sentence
GROWTH = "MiB a context sentence"


@dataclass(kw_only=True)
class CostByContext(CostByContextOptions, Benchmark):
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

    The sentence-level model takes part in every round, and is the `peer` of the others there, see
    `measure_rows`. After the rows come the MiB that a context sentence adds, by
    least squares over one context sentence and more, beside those of `SINGLE`; in translation those of caching also
    beside the vectors that it keeps of a context sentence, the least that it can add.
    """

    report_options = (
        {"contexts": (1, 2, 10), "repeats": 1, "time_limit": 120.0},
        {"contexts": (1, 2), "repeats": 3, "time_limit": 120.0, "work": "training"},
    )

    sentences: int = 8
    sizes: Mapping[str, int] = field(default_factory=lambda: TRANSFORMER_BASE)
    vocab_size: int = 30000

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        rows: list[ScalingRow] = []
        for context in self.contexts:
            names = [name for name in SYSTEMS if context or name not in NEEDS_CONTEXT]
            cases = {name: self.case(name, context) for name in names}
            rows += measure_rows(cases, system_row, self, on_row, rows, work=WORK)
        growth = memory_growth_rows(rows)
        if self.work == "translation":
            growth += kept_vectors_rows(growth, self.sizes["d_model"])
        checks = target_checks(rows, growth, self.contexts, self.work)
        return self.result(rows + growth, checks, sentence_tokens=SENTENCE_TOKENS)

    def case(self, name: str, context: int) -> dict:
        """What `measure` measures of a system with so many context sentences."""
        architecture, fields = SYSTEMS[name]
        settings = {"architecture": architecture, "fields": fields | context_fields(name, context), "context": context}
        tokens = SENTENCE_TOKENS * (context + 1)
        return self.shared_case(**settings, tokens=tokens, sentence_tokens=SENTENCE_TOKENS)


def context_fields(name: str, context: int) -> dict:
    """The fields of a configuration that ask for so many context sentences."""
    if name == PEER:
        return {}
    future = context // 2 if name == ROUTING else 0
    return {"past_context": context - future, "future_context": future}


def system_row(name: str, case: Mapping, numbers: Mapping[str, Mapping]) -> ScalingRow:
    """The row of a system; `numbers` are those of all systems measured so far with this context."""
    context, sentences = case["context"], case["sentences"]
    times = [numbers.get(system, {}).get("seconds") for system in (name, PEER)]
    speeds = [sentences / seconds if seconds else None for seconds in times]
    of_one = {**numbers[name], "seconds": times[0] and times[0] / sentences}
    more = {"name": name, "tokens": case["tokens"], "context": context, **of_one}
    return ScalingRow.of(case_name(name, context), "sentences/s", *speeds, **more)


def case_name(name: str, context: int) -> str:
    """The name of a row."""
    return f"{name}, {'beside ' * (name == PEER)}{context} context sentence{'s' * (context != 1)}"


def memory_growth_rows(rows: Sequence[ScalingRow]) -> list[ScalingRow]:
    """The MiB that a context sentence adds to each system, over all rows with one context sentence or more."""
    growth: list[ScalingRow] = []
    for name in (SINGLE, *(name for name in SYSTEMS if name not in (PEER, SINGLE))):
        fitted = [row for row in rows if row.name == name and row.context and row.memory_mib is not None]
        ours = least_squares_slope([(row.context, row.memory_mib) for row in fitted])
        single = growth[0].ours if growth else ours
        span = f"{fitted[0].context} to {fitted[-1].context} context sentences" if fitted else "not measured"
        more = {"name": f"{name}, {GROWTH}", "tokens": None, "context": fitted[-1].context if fitted else None}
        growth.append(ScalingRow.of(f"{name}, {span}", GROWTH, ours, single, **more))
    return growth


def kept_vectors_rows(growth: Sequence[ScalingRow], d_model: int) -> list[ScalingRow]:
    """The MiB that a context sentence adds to each caching system, beside those of the vectors kept of it."""
    rows = []
    for row in growth:
        name = row.name.removesuffix(f", {GROWTH}")
        architecture, fields = SYSTEMS[name]
        if architecture == "caching":
            kept = kept_vectors(fields["shortening"]) * d_model * 4 / 2**20  # fp32
            case, more = f"{row.case}, beside what is kept", {"tokens": None, "context": row.context}
            rows.append(ScalingRow.of(case, GROWTH, row.ours, kept, name=f"{name}, kept", **more))
    return rows


def kept_vectors(shortening: str) -> int:
    """How many vectors of a context sentence of `SENTENCE_TOKENS` tokens and `</s>` are kept, with the paper's K."""
    tokens, size = SENTENCE_TOKENS + 1, PAPER[shortening].get("shortening_size", 1)
    return size if shortening in LATENT else -(-tokens // size)


def target_checks(
    rows: Sequence[ScalingRow], growth: Sequence[ScalingRow], contexts: Sequence[int], work: str
) -> list[Check]:
    """The targets; a check is missed where a system was not measured, up to the last context."""
    checks = []
    for (name, context), target in MAX_TIME[work].items():
        value = next((row.time_ratio for row in rows if (row.name, row.context) == (name, context)), None)
        checks.append(Check.at_most(f"{case_name(name, context)}: time over {PEER}'s", value, target))
    if work == "training":
        return checks
    complete = {row.name: row for row in growth if row.context == contexts[-1]}
    names = (f"{SHORTENED}, {GROWTH}", f"{SHORTENED}, kept", f"{SINGLE}, {GROWTH}")
    ours, kept, single = map(complete.get, names)
    beside_single = ours.ratio if ours and single else None
    checks.append(Check.at_most(f"{SHORTENED}: memory growth over {SINGLE}'s", beside_single, MAX_MEMORY_GROWTH))
    beside_kept = kept.ratio if kept else None
    checks.append(Check.at_most(f"{SHORTENED}: memory growth over what is kept", beside_kept, MAX_KEPT_GROWTH))
    return checks


def measure(case: Mapping, send: Callable) -> dict:
    """`seconds` of translating `sentences` sentences after `context` others, and `memory_mib` at the peak of one.

    Time and memory are measured in two passes: in the second one freed memory returns to the system at once, which
    takes time. The cache of the context counts as memory. The weights and what is left by a first translation, such as
    prepacked weights, are in memory before. For `work` training it is a step on as many sentences at once.
    """
    device = prepare_process(case)
    if case["work"] == "training":
        step = training_step(case, device)
        return measure_repeats(lambda: elapsed_seconds(step, device), TRAINING_STEPS, device)
    begin = translation(case, device)
    seconds = elapsed_seconds(begin(case["context"], case["sentences"]), device)
    trim_memory()
    return_freed_blocks()
    numbers = measure_repeats(lambda: elapsed_seconds(begin(case["context"], 1), device), 1, device)
    return numbers | {"seconds": seconds}


def translation(case: Mapping, device: torch.device) -> Callable[[int, int], Callable[[], list[list[int]]]]:
    """A function (past, sentences) that begins a random document and returns the translation of `sentences` of it.

    The document begins with `past` sentences, of which the model caches its context. The decoder writes as many tokens
    for a sentence as the sentence has, since no special token is ever chosen. The translation returns `written_ids`.
    """
    model = random_model(case["architecture"], case["fields"], case["sizes"], case["vocab_size"]).to(device)
    size, future = case["sentence_tokens"], case["fields"].get("future_context", 0)

    def begin(past: int, sentences: int) -> Callable[[], list[list[int]]]:
        document = random_units(past + sentences + future, size, case["vocab_size"])
        translator = model.translator_class(model, 1, {"max_new_tokens": size, "num_beams": 1, "do_sample": False})
        cache_context(translator, document, past)

        def translate() -> list[list[int]]:
            slide(translator, document, past, past + sentences)
            return written_ids(document.parts[past : past + sentences], size)

        return translate

    begin(0, WARM_UP)()
    return begin


def training_step(case: Mapping, device: torch.device) -> Callable[[], object]:
    """Forward and backward pass of a batch of random sentences, each with its context."""
    model = random_model(case["architecture"], case["fields"], case["sizes"], case["vocab_size"]).train().to(device)
    rows, size, context = case["sentences"], case["sentence_tokens"], case["context"]

    def random_ids(*shape: int) -> torch.Tensor:
        return torch.randint(SPECIAL_TOKENS, case["vocab_size"], shape, device=device)

    batch = {"labels": random_ids(rows, size)}
    if registry.get(case["architecture"]).separate_context:
        past, future = (case["fields"].get(f"{side}_context", 0) for side in ("past", "future"))
        offsets = torch.tensor([*range(-past, 0), *range(1, future + 1)], device=device)
        batch |= {"input_ids": random_ids(rows, size)}
        if context:
            ids = random_ids(rows, context, size)
            batch |= {"context_input_ids": ids, "context_attention_mask": torch.ones_like(ids)}
            batch |= {"context_offsets": offsets.expand(rows, context)}
    else:
        batch["input_ids"] = random_ids(rows, size * (case["fields"].get("past_context", 0) + 1))
        batch["input_ids"][:, size - 1 : -1 : size] = SEP
    batch["attention_mask"] = torch.ones_like(batch["input_ids"])

    def step() -> None:
        model(**batch).loss.backward()

    step()  # allocates the gradients
    return step


def cache_context(translator: SegmentTranslator | ContextTranslator, document: DocumentState, end: int) -> None:
    """Let a translator cache the first sentences of a document, as it would after translating them.

    It writes one token each: the context is that of the source.
    """
    if isinstance(translator, CachedContextTranslator):
        short = copy.copy(translator)  # of the same cache
        short.settings = copy.deepcopy(translator.settings)
        short.settings.max_new_tokens = 1
        slide(short, document, 0, end)


def slide(translator: SegmentTranslator | ContextTranslator, document: DocumentState, first: int, end: int) -> None:
    """Translate the sentences from `first` to before `end` by strategy `sliding`."""
    with translator.model.prepacked_weights():
        translator.slide([CurrentSentence(document, index) for index in range(first, end)])
