"""Cost of context: a document sentence by sentence, by the number of sentences that are read before each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

import torch

from hf_docmt.bench.marian import TRANSFORMER_BASE
from hf_docmt.bench.rounds import System, alternate_rounds
from hf_docmt.bench.scaling import COLUMNS as LENGTH_COLUMNS
from hf_docmt.bench.scaling import check_setting
from hf_docmt.bench.subprocesses import slope
from hf_docmt.bench.timing import bench_result, check_at_most, check_positive

PEER, SINGLE = "sentence", "single-encoder"
ROUTING = "routing"
SYSTEMS = {  # each gets as many sentences as are asked for, `ROUTING` half of them after the current one
    PEER: System("concat", "sliding"),
    SINGLE: System("concat", "sliding", fields={"context_sides": "source"}),
    "multi-encoder": System("multiencoder", "sliding"),
    "tokens": System("caching", "sliding", fields={"shortening": "none"}),
    **{
        shortening: System("caching", "sliding", fields={"shortening": shortening})
        for shortening in ("avg", "linear", "grouping", "selecting")
    },
    "doct": System("doct", "sliding"),
    ROUTING: System("routing", "sliding"),
}
NEEDS_CONTEXT = ("doct", ROUTING)
PROCESS = "hf_docmt.bench.context_decoding"
WORKS = ("translation", "training")
SENTENCE = 25  # tokens of a sentence
MOST_TIME = {  # times the peer's seconds, at so many context sentences
    "translation": {("grouping", 10): 1.15, (ROUTING, 2): 1.25},
    "training": {(ROUTING, 2): 1.6},
}
MOST_GROWTH = {"grouping": 0.2}  # times what a context sentence adds to the memory of `SINGLE`
GROWTH = "MiB a context sentence"
COLUMNS = (*LENGTH_COLUMNS, "context")


def bench_contexts(
    repeats: int = 3,
    *,
    contexts: Sequence[int] = (0, 1, 2, 5, 10, 20),
    work: str = "translation",
    sentences: int = 8,
    sizes: Mapping[str, int] = TRANSFORMER_BASE,
    vocab_size: int = 30000,
    device: str = "cpu",
    time_limit: float = 600,
    tell: Callable[[Mapping], None] = lambda row: None,
) -> dict:
    """Sentences a second and extra memory of translating or training with context, with random weights.

    Maka et al. (2024), section 5.5 and figure 5: the sentence-level model, the single encoder that reads context and
    sentence as one sequence, the multi-encoder, and caching of tokens or of shortened sentences, with the paper's
    settings; further the Document Transformer, and routing, which has half of the context after the sentence.

    `work` is `translation`, greedy, one sentence at a time, or `training`: forward and backward pass of a batch of
    `sentences`, their context encoded anew. In translation a document of random sentences of `SENTENCE` tokens, as many
    written for each, is walked by strategy `sliding`. `sentences` of it are measured, which follow as many others as
    are context: the context is full, and what a walk has kept of it stands ready. `seconds` are those of a sentence:
    its encoding, once, and its translation.
    `memory_mib` is what is in use at the peak of a sentence, with what is kept of its context.

    The sentence-level model takes part in every turn, and is the `peer` of the others there; processes, turns, what is
    `skipped` and `tell` are as in `bench_cost`. After the rows stand the MiB that a context sentence adds, by least
    squares over one context sentence and more, beside those of `SINGLE`. Returns `rows`, `checks`, `setting`. Raises
    `ValueError` for bad arguments.
    """
    check_contexts(contexts)
    if work not in WORKS:
        raise ValueError(f"work: expected {' or '.join(WORKS)}, got {work!r}")
    check_positive(sentences=sentences)
    check_setting(repeats, sizes, vocab_size, device, time_limit)
    shared = {"work": work, "sizes": dict(sizes), "vocab_size": vocab_size, "device": device}
    shared |= {"threads": torch.get_num_threads(), "sentences": sentences, "sentence_tokens": SENTENCE}
    rows: list[dict] = []
    for context in contexts:
        cases, found = {}, {}
        for name, system in SYSTEMS.items():
            if context or name not in NEEDS_CONTEXT:
                case = asdict(system) | shared | {"context": context, "tokens": tokens_read(context)}
                cases[name] = case | {"fields": case["fields"] | reach_of(name, context)}
        before = [row | {"seconds": (row["seconds"] or 0) * sentences} for row in rows]  # of a whole measurement
        for name, numbers in alternate_rounds(PROCESS, cases, before, repeats, time_limit):
            found[name] = numbers
            tell(row_of(found, name, context, sentences))
        rows += [row_of(found, name, context, sentences) for name in cases]
    growth = growth_rows(rows)
    setting = {"contexts": list(contexts), "sentences": sentences, "sentence_tokens": SENTENCE, "repeats": repeats}
    setting |= {"vocab_size": vocab_size, "sizes": dict(sizes), "device": device, "time_limit": time_limit}
    setting |= {"work": work}
    return bench_result(rows + growth, checks_of(rows, growth, contexts, work), **setting)


def reach_of(name: str, context: int) -> dict:
    """The fields of a configuration that ask for so many context sentences."""
    if name == PEER:
        return {}
    future = context // 2 if name == ROUTING else 0
    return {"past_context": context - future, "future_context": future}


def tokens_read(context: int) -> int:
    """Tokens of a sentence and its context."""
    return SENTENCE * (context + 1)


def row_of(found: Mapping[str, Mapping], name: str, context: int, sentences: int) -> dict:
    """The row of a system by what is known of all systems with so much context; null where it was not measured."""
    row = dict.fromkeys(COLUMNS) | {"case": case_name(name, context), "unit": "sentences/s", "name": name}
    row |= {"context": context, "tokens": tokens_read(context), **found[name]}
    if row["seconds"]:
        row["seconds"] /= sentences
        row["ours"] = 1 / row["seconds"]
    seconds = found.get(PEER, {}).get("seconds")
    row["peer"] = sentences / seconds if seconds else None
    row["ratio"] = row["ours"] / row["peer"] if row["ours"] and row["peer"] else None
    return row


def case_name(name: str, context: int) -> str:
    return f"{name}, {'beside ' * (name == PEER)}{context} context sentence{'s' * (context != 1)}"


def growth_rows(rows: Sequence[Mapping]) -> list[dict]:
    """What a context sentence adds to the memory of each system, by all that was measured with one or more."""
    found = []
    for name in (SINGLE, *(name for name in SYSTEMS if name not in (PEER, SINGLE))):
        fitted = [row for row in rows if row["name"] == name and row["context"] and row["memory_mib"] is not None]
        ours = slope([(row["context"], row["memory_mib"]) for row in fitted])
        single = found[0]["ours"] if found else ours
        reach = f"{fitted[0]['context']} to {fitted[-1]['context']} context sentences" if fitted else "not measured"
        row = {"case": f"{name}, {reach}", "unit": GROWTH, "name": f"{name}, {GROWTH}", "ours": ours, "peer": single}
        row["ratio"] = ours / single if ours is not None and single and single > 0 else None
        found.append(dict.fromkeys(COLUMNS) | row | {"context": fitted[-1]["context"] if fitted else None})
    return found


def checks_of(rows: Sequence[Mapping], growth: Sequence[Mapping], contexts: Sequence[int], work: str) -> list[dict]:
    """What the systems have to show; a check is missed where one of them was not measured, up to the last context."""
    checks = []
    for (name, context), target in MOST_TIME[work].items():
        ratio = next((row["ratio"] for row in rows if (row["name"], row["context"]) == (name, context)), None)
        value = 1 / ratio if ratio else None
        checks.append(check_at_most(f"{case_name(name, context)}: time over {PEER}'s", value, target))
    if work == "training":
        return checks
    single = next(row for row in growth if row["name"] == f"{SINGLE}, {GROWTH}")
    for name, target in MOST_GROWTH.items():
        row = next(row for row in growth if row["name"] == f"{name}, {GROWTH}")
        value = row["ratio"] if row["context"] == single["context"] == contexts[-1] else None
        checks.append(check_at_most(f"{name}: memory growth over {SINGLE}'s", value, target))
    return checks


def check_contexts(contexts: Sequence[int]) -> None:
    """Raise `ValueError` for numbers of context sentences that show no growth."""
    for context in contexts:
        if not isinstance(context, int) or isinstance(context, bool) or context < 0:
            raise ValueError(f"contexts: expected whole numbers of at least 0, got {context!r}")
    if sum(context > 0 for context in contexts) < 2 or list(contexts) != sorted(set(contexts)):
        raise ValueError(
            f"contexts: expected at least two of 1 or more, from the fewest sentences to the most, got {list(contexts)}"
        )
