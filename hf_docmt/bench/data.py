"""Training data of any size: time to the first update, memory and speed, beside documents in memory."""

import json
import random
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from hf_docmt.bench.benchmark import Benchmark, OnRow, check_positive, check_time_limit, ignore_row, option
from hf_docmt.bench.results import BenchResult, Check, Row
from hf_docmt.bench.stream_memory import TINY
from hf_docmt.bench.subprocesses import measure_in_subprocess
from hf_docmt.data.documents import write_documents
from hf_docmt.data.synthetic.corpus import make_corpus

PROCESS = "hf_docmt.bench.data_start"
UNITS = {  # column of a measurement: unit of its rows
    "seconds": "s to the first update",
    "memory_mib": "MiB resident, peak",
    "private_mib": "MiB resident, private",
    "tokens_per_second": "tokens/s",
    "cpu_seconds": "CPU s",
}
MAX_MIB, MAX_SECONDS = 1536.0, 30.0  # of a process; of a second start
GENERATED_DOCUMENTS = 5000  # of the built-in generator; more are made of their sentences


@dataclass(kw_only=True)
class DataBenchmark(Benchmark):
    """Starts of training runs of a tiny model with windows of four sentences, each in a process of its own.

    `ours` is what `docmt train` does: documents in Arrow files, tokens in files, both made at the first start and found
    at the second. `peer` reads and tokenizes `memory_pairs` sentence pairs into memory, at every start. Both are
    measured at that size in `repeats` alternating rounds, the medians are reported; then ours at `pairs`, once, beside
    the peer's tokens a second at its size. The first batches of both must be equal, where they have the same data.

    The corpus has sentences of the built-in generator: beyond 5,000 documents their order is drawn anew for every
    further 5,000. Tokens are source and target tokens without padding.
    """

    name = "data"
    help = "Time to the first update, memory and tokens per second of training on so many sentence pairs."
    report_options = ({"pairs": 20_000, "memory_pairs": 5_000, "updates": 20, "repeats": 1},)

    pairs: int = option(5_000_000, "Sentence pairs of the large corpus.")
    memory_pairs: int = option(50_000, "Sentence pairs of the corpus that is trained on both ways.")
    updates: int = option(200, "Updates of a measurement.")
    repeats: int = option(3, "Rounds over the smaller corpus, the median is reported.")
    time_limit: float = option(7200.0, "Most seconds of one start with its updates.")
    max_tokens: int = 4000
    vocab_size: int = 8000
    documents: int = GENERATED_DOCUMENTS

    def __post_init__(self) -> None:
        names = ("pairs", "memory_pairs", "updates", "repeats", "max_tokens", "vocab_size", "documents")
        check_positive(**{name: getattr(self, name) for name in names})
        check_time_limit(self.time_limit)
        if self.updates < 2:
            raise ValueError("updates: expected at least 2, as speed is measured after the first, got 1")

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        rows: list[Row] = []
        with tempfile.TemporaryDirectory() as folder:
            self.base = make_corpus(train=self.documents, validation=20, test=0)
            write_documents(self.base["validation"], Path(folder) / "validation.jsonl")
            rounds = [self._round(Path(folder), number) for number in range(self.repeats)]
            found = {name: medians([one[name] for one in rounds]) for name in rounds[0]}
            for start in ("first", "second"):
                rows += start_rows(f"{self.memory_pairs} pairs, {start} start", found[start], found["memory"])
            write_pairs(Path(folder) / "large", self.pairs, self.base["train"])
            large = {start: self._measure(Path(folder) / "large", start) for start in ("first", "second")}
            for start, numbers in large.items():
                beside = {"tokens_per_second": found["memory"].get("tokens_per_second")}
                rows += start_rows(f"{self.pairs} pairs, {start} start", numbers, beside)
        for row in rows:
            on_row(row)
        equal = len({numbers.get("batches") for one in rounds for numbers in one.values()}) == 1
        checks = [Check.at_least("the same first batches as in memory (1 = equal)", float(equal), 1.0)]
        for start, numbers in large.items():
            name = f"{self.pairs} pairs, {start} start: MiB resident"
            checks.append(Check.at_most(name, numbers.get("memory_mib"), MAX_MIB))
        name = f"{self.pairs} pairs, second start: s to the first update"
        checks.append(Check.at_most(name, large["second"].get("seconds"), MAX_SECONDS))
        options = {name: getattr(self, name) for name in ("pairs", "memory_pairs", "updates", "repeats")}
        options |= {"max_tokens": self.max_tokens, "vocab_size": self.vocab_size, "sizes": TINY}
        return BenchResult.of(rows, checks, **options)

    def _round(self, folder: Path, number: int) -> dict[str, dict]:
        """Both ways over the smaller corpus, every other time in reverse order."""
        small = folder / f"small-{number}"
        write_pairs(small, self.memory_pairs, self.base["train"])
        names = [("first", "second"), ("memory",)]
        return {name: self._measure(small, name) for side in names[:: -1 if number % 2 else 1] for name in side}

    def _measure(self, folder: Path, name: str) -> dict:
        return measure_in_subprocess(PROCESS, self.case(folder, name), self.time_limit)

    def case(self, folder: Path, name: str) -> dict:
        """A start over the corpus in `folder`, `first`, `second` or `memory`, for `hf_docmt.bench.data_start`."""
        recipe = {
            "output_dir": str(folder / name),
            "architecture": "concat",
            "model": TINY | {"past_context": 3},
            "tokenizer": {"vocab_size": self.vocab_size},
            "data": {
                "source_lang": "en",
                "target_lang": "de",
                "train": {"path": str(folder / "train.jsonl")},
                "validation": {"path": str(folder.parent / "validation.jsonl")},
            },
            "training": {"max_tokens": self.max_tokens, "max_steps": self.updates, "eval_steps": self.updates},
        }
        threads, in_memory = torch.get_num_threads(), name == "memory"
        return {"recipe": recipe, "in_memory": in_memory, "threads": threads, "started": time.time()}


def start_rows(case: str, ours: Mapping[str, Any], peer: Mapping[str, Any]) -> list[Row]:
    """A row for every number of a start; None, and a ratio of None, where it was not measured."""
    rows = []
    for column, unit in UNITS.items():
        one, other = ours.get(column), peer.get(column)
        ratio = one / other if one is not None and other else None
        name = case if "skipped" not in ours else f"{case} (skipped: {ours['skipped']})"
        rows.append(Row(case=name, ours=one, peer=other, ratio=ratio, unit=unit))
    return rows


def medians(rounds: list[dict]) -> dict:
    """The median of every number over the rounds; the first round that was skipped, where one was."""
    skipped = [one for one in rounds if "skipped" in one]
    if skipped:
        return skipped[0]
    names = [name for name in UNITS if rounds[0][name] is not None]
    return {name: median(one[name] for one in rounds) for name in names}


def write_pairs(folder: Path, pairs: int, base: list[dict]) -> Path:
    """A new folder with `train.jsonl` of so many pairs, see `mixed_documents`."""
    folder.mkdir()
    with (folder / "train.jsonl").open("w", encoding="utf-8") as file:
        for row in mixed_documents(pairs, base):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return folder / "train.jsonl"


def mixed_documents(pairs: int, base: list[dict]) -> Iterator[dict]:
    """Documents of so many pairs in all: those of `base`, then copies of them with their sentences in other order."""
    sentences = [pair for row in base for pair in row["translation"]]
    copy = 0
    while pairs > 0:
        place = 0
        for row in base:
            length = min(len(row["translation"]), pairs)
            if length:
                yield {"doc_id": f"{row['doc_id']}-{copy}", "translation": sentences[place : place + length]}
            place, pairs = place + length, pairs - length
        copy += 1
        random.Random(copy).shuffle(sentences)
