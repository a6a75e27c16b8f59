"""Speed of contrastive scoring: batches that encode each source once, against one candidate at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row
from hf_docmt.bench.measurement import median_seconds_and_outputs
from hf_docmt.bench.models import SMALL, build_pair, load_documents
from hf_docmt.bench.options import ContrastOptions
from hf_docmt.bench.results import BenchResult, Check, Row
from hf_docmt.data.documents import sentences
from hf_docmt.data.synthetic.suites import make_suites
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.evaluation.suites.voita import Voita
from hf_docmt.systems import DocMTSystem, System

SUITES = ("deixis", "ellipsis")  # of two and of four candidates
MIN_RATIO = 5.0  # target of every case
MAX_DIFFERENCE = 1e-5  # of a token's log-probability, relative to its size


@dataclass(kw_only=True)
class ContrastBenchmark(ContrastOptions, Benchmark):
    """Items a second on the CPU with windows of four sentences: ours, and the same model scoring row by row.

    The suites are those of the built-in corpus, the tokenizer is trained on it, the weights are random. `difference`
    is the largest one between the two scores of a token, see `largest_difference`.
    """

    report_options = ({"repeats": 3},)

    items: int = 60
    sizes: Mapping[str, int] = field(default_factory=lambda: SMALL)
    vocab_size: int = 8000
    seed: int = 1

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        documents = load_documents(200, "en", "de")
        texts = [text for row in documents for lang in ("en", "de") for text in sentences(row, lang)]
        tokenizer = train_tokenizer(texts, "bpe", min(self.vocab_size, 2000))
        model, _ = build_pair(self.sizes, self.vocab_size, self.seed, past_context=3)
        system = DocMTSystem(model.eval(), tokenizer, "ours")
        suites = make_suites(self.seed, -(-self.items // 4))
        rows = []
        for name in SUITES:
            items = Voita(name, context=3, content=suites[name]).read()[: self.items]
            scorers = {"ours": system.token_log_probabilities, "peer": partial(score_one_by_one, system)}
            works = {side: partial(scorer, items) for side, scorer in scorers.items()}
            seconds, scores = median_seconds_and_outputs(works, self.repeats)
            case, difference = f"{name}, {len(items[0].candidates)} candidates", largest_difference(**scores)
            rows.append(Row.of_speeds(case, "items/s", len(items), seconds, difference=difference))
            on_row(rows[-1])
        checks = [Check.at_least(f"{row.case}: ratio", row.ratio, MIN_RATIO) for row in rows]
        largest = max(row.more["difference"] for row in rows)
        checks.append(Check.at_least("scores: minus the largest difference", -largest, -MAX_DIFFERENCE))
        return self.result(rows, checks)


def score_one_by_one(system: System, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
    """The result of `token_log_probabilities`, with a batch for every candidate."""

    def score(item: SuiteItem, candidate: str) -> list[float]:
        return system.token_log_probabilities([replace(item, candidates=(candidate,), correct=0)])[0][0]

    return [[score(item, candidate) for candidate in item.candidates] for item in items]


def largest_difference(ours: list, peer: list) -> float:
    """The largest difference between scores [item][candidate][token], relative to 1 or the score if that is larger."""
    items = zip(ours, peer, strict=True)
    candidates = [candidate for item in items for candidate in zip(*item, strict=True)]
    return max(abs(a - b) / max(1, abs(b)) for scores in candidates for a, b in zip(*scores, strict=True))
