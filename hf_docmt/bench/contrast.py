"""Speed of contrastive scoring: batches that encode each source once, against one candidate at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hf_docmt.bench.marian import build_pair
from hf_docmt.bench.timing import alternate, bench_result, check_at_least, check_positive, make_row, seconds_of
from hf_docmt.bench.train import SMALL, bench_documents
from hf_docmt.data.documents import sentences
from hf_docmt.data.synthetic.suites import make_suites
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.evaluation.suites.voita import Voita
from hf_docmt.evaluation.systems import DocMTSystem, System

SUITES = ("deixis", "ellipsis")  # of two and of four candidates
TARGET = 5.0  # ratio that every case has to reach
CLOSE = 1e-5  # most that a token's log-probability may differ, relative to its size


def bench_contrast(
    repeats: int = 5,
    *,
    items: int = 60,
    sizes: Mapping[str, int] = SMALL,
    vocab_size: int = 8000,
    seed: int = 1,
) -> dict:
    """Items a second on the CPU with windows of four sentences: ours, and the same model scoring row by row.

    The suites are those of the built-in corpus, the tokenizer is trained on it, the weights are random. `difference`
    is the largest one between the two scores of a token, relative to 1 or the score, whichever is larger. Returns
    `rows`, `checks`, `setting`. Raises `ValueError` for bad arguments.
    """
    check_positive(repeats=repeats, items=items)
    documents = bench_documents(200, "en", "de")
    texts = [text for row in documents for lang in ("en", "de") for text in sentences(row, lang)]
    tokenizer = train_tokenizer(texts, "bpe", min(vocab_size, 2000))
    model, _ = build_pair(sizes, vocab_size, seed, past_context=3)
    system = DocMTSystem(model.eval(), tokenizer, "ours")
    suites = make_suites(seed, -(-items // 4))
    rows = [
        compare(system, Voita(name, context=3, content=suites[name]).read()[:items], name, repeats) for name in SUITES
    ]
    checks = [check_at_least(f"{row['case']}: ratio", row["ratio"], TARGET) for row in rows]
    largest = max(row["difference"] for row in rows)
    checks.append(check_at_least("scores: minus the largest difference", -largest, -CLOSE))
    return bench_result(rows, checks, items=items, repeats=repeats, seed=seed, sizes=dict(sizes))


def compare(system: System, items: Sequence[SuiteItem], name: str, repeats: int) -> dict:
    """One row: the items of one suite, scored both ways."""
    ways, found = {"ours": system.token_log_probabilities, "peer": partial(one_by_one, system)}, {}

    def side(way: str) -> Callable[[], float]:
        return lambda: seconds_of(lambda: found.update({way: ways[way](items)}))

    seconds = alternate({way: side(way) for way in ways}, repeats)
    case = f"{name}, {len(items[0].candidates)} candidates"
    difference = largest_difference(found["ours"], found["peer"])
    return make_row(case, "items/s", dict.fromkeys(ways, len(items)), seconds, difference=difference)


def one_by_one(system: System, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
    """What `token_log_probabilities` gives, from a batch for every candidate."""
    return [
        [
            system.token_log_probabilities([replace(item, candidates=(candidate,), correct=0)])[0][0]
            for candidate in item.candidates
        ]
        for item in items
    ]


def largest_difference(ours: list, peer: list) -> float:
    """Of two nested lists [item][candidate][token] of scores."""
    pairs = [pair for one, two in zip(ours, peer, strict=True) for pair in zip(one, two, strict=True)]
    return max(abs(a - b) / max(1, abs(b)) for one, two in pairs for a, b in zip(one, two, strict=True))
