"""Training data of any size: time to the first update, memory and speed, beside documents in memory."""

import hashlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil  # which accelerate requires
import torch
from transformers import TrainerCallback

from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row
from hf_docmt.bench.measurement import medians, memory_in_use
from hf_docmt.bench.models import TINY
from hf_docmt.bench.options import DataOptions
from hf_docmt.bench.process import measure_in_subprocess
from hf_docmt.bench.results import BenchResult, Check, Row
from hf_docmt.bench.train import TokenCounter
from hf_docmt.data.documents import sentences, write_documents
from hf_docmt.data.readers import read_documents
from hf_docmt.data.synthetic.corpus import make_corpus
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.training.arguments import training_arguments
from hf_docmt.training.recipe import Recipe, parse_recipe
from hf_docmt.training.run import make_trainer, read_part, run_tokenizer
from hf_docmt.training.trainer import DocMTTrainer

if sys.platform != "win32":
    import resource

WORK = "hf_docmt.bench.data:measure"
HASHED_BATCHES = 20
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
class DataBenchmark(DataOptions, Benchmark):
    """Starts of training runs of a tiny model with windows of four sentences, each in a process of its own.

    `ours` is what `docmt train` does: documents in Arrow files, tokens in files, both made at the first start and found
    at the second. `peer` reads and tokenizes `memory_pairs` sentence pairs into memory, at every start. Both are
    measured at that size in `repeats` alternating rounds, the medians are reported; then ours at `pairs`, once, beside
    the peer's tokens a second at its size. The first batches of both must be equal, where they have the same data.

    The corpus has sentences of the built-in generator: beyond 5,000 documents their order is drawn anew for every
    further 5,000. Tokens are source and target tokens without padding.
    """

    report_options = ({"pairs": 20_000, "memory_pairs": 5_000, "updates": 20, "repeats": 1},)

    max_tokens: int = 4000
    vocab_size: int = 8000
    documents: int = GENERATED_DOCUMENTS

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        rows: list[Row] = []
        with tempfile.TemporaryDirectory() as folder:
            self.base = make_corpus(train=self.documents, validation=20, test=0)
            write_documents(self.base["validation"], Path(folder) / "validation.jsonl")
            rounds = [self._round(Path(folder), number) for number in range(self.repeats)]
            small = {name: medians([numbers[name] for numbers in rounds]) for name in rounds[0]}
            for start in ("first", "second"):
                rows += start_rows(f"{self.memory_pairs} pairs, {start} start", small[start], small["memory"])
            write_pairs(Path(folder) / "large", self.pairs, self.base["train"])
            large = {start: self._measure(Path(folder) / "large", start) for start in ("first", "second")}
            for start, numbers in large.items():
                beside = {"tokens_per_second": small["memory"].get("tokens_per_second")}
                rows += start_rows(f"{self.pairs} pairs, {start} start", numbers, beside)
        for row in rows:
            on_row(row)
        equal = len({numbers.get("batches") for starts in rounds for numbers in starts.values()}) == 1
        checks = [Check.at_least("the same first batches as in memory (1 = equal)", float(equal), 1.0)]
        for start, numbers in large.items():
            name = f"{self.pairs} pairs, {start} start: MiB resident"
            checks.append(Check.at_most(name, numbers.get("memory_mib"), MAX_MIB))
        name = f"{self.pairs} pairs, second start: s to the first update"
        checks.append(Check.at_most(name, large["second"].get("seconds"), MAX_SECONDS))
        return self.result(rows, checks, sizes=TINY)

    def _round(self, folder: Path, number: int) -> dict[str, dict]:
        """Both ways over the smaller corpus, every other time in reverse order."""
        small = folder / f"small-{number}"
        write_pairs(small, self.memory_pairs, self.base["train"])
        names = [("first", "second"), ("memory",)]
        return {name: self._measure(small, name) for side in names[:: -1 if number % 2 else 1] for name in side}

    def _measure(self, folder: Path, name: str) -> dict:
        return measure_in_subprocess(WORK, self.case(folder, name), self.time_limit)

    def case(self, folder: Path, name: str) -> dict:
        """A start over the corpus in `folder`, `first`, `second` or `memory`, for `measure`."""
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
    name = case if "skipped" not in ours else f"{case} (skipped: {ours['skipped']})"
    return [Row.of(name, unit, ours.get(column), peer.get(column)) for column, unit in UNITS.items()]


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


def measure(case: Mapping, send: Callable) -> dict:
    """Train `updates` updates by the recipe of the case, from documents in its cache or (`in_memory`) in memory.

    Returns `seconds` from `started` (time of day) to the end of the first update, `tokens_per_second` after it,
    `memory_mib` at the peak of this process or of one that it started, `private_mib` at the end without what is mapped
    from files, `cpu_seconds` of all processes, and `batches`, a digest of the first 20.
    """
    torch.set_num_threads(case["threads"])
    recipe = parse_recipe(case["recipe"])
    trainer = trainer_in_memory(recipe) if case["in_memory"] else trainer_from_cache(recipe)
    counter = HashedBatches(trainer.data_collator)
    watch = UpdateWatch(counter)
    trainer.data_collator = counter
    trainer.add_callback(watch)
    trainer.train()
    _, peak = memory_in_use(torch.device("cpu"))
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "seconds": watch.first_update - case["started"],
        "tokens_per_second": watch.tokens / watch.seconds,
        "memory_mib": None if peak is None else max(peak / 2**20, usage[1].ru_maxrss / 2**10),
        "private_mib": psutil.Process().memory_full_info().uss / 2**20,
        "cpu_seconds": sum(process.ru_utime + process.ru_stime for process in usage),
        "batches": counter.digest.hexdigest(),
    }


def trainer_from_cache(recipe: Recipe) -> DocMTTrainer:
    """What `docmt train` makes."""
    output = Path(recipe.output_dir)
    output.mkdir(parents=True)
    documents = {part: read_part(recipe, part) for part in ("train", "validation")}
    tokenizer = run_tokenizer(recipe, output, documents["train"], None)
    return make_trainer(recipe, training_arguments(recipe), documents, tokenizer)


def trainer_in_memory(recipe: Recipe) -> DocMTTrainer:
    """The same from documents that are read, and tokenized, into memory."""
    languages = {"source_lang": recipe.data.source_lang, "target_lang": recipe.data.target_lang}
    parts = {"train": recipe.data.train, "validation": recipe.data.validation}
    documents: dict[str, Any] = {name: read_documents(**files, **languages) for name, files in parts.items()}
    texts = (text for row in documents["train"] for lang in languages.values() for text in sentences(row, lang))
    tokenizer = train_tokenizer(texts, recipe.tokenizer.model, recipe.tokenizer.vocab_size)
    return make_trainer(recipe, training_arguments(recipe), documents, tokenizer)


class HashedBatches(TokenCounter):
    """Counts tokens and takes a digest of the first batches."""

    def __init__(self, collator):
        super().__init__(collator)
        self.digest, self.hashed = hashlib.sha256(), 0

    def __call__(self, examples: Sequence[dict]) -> dict[str, torch.Tensor]:
        batch = super().__call__(examples)
        if self.hashed < HASHED_BATCHES:
            self.hashed += 1
            for name in sorted(batch):
                self.digest.update(batch[name].numpy().tobytes())
        return batch


class UpdateWatch(TrainerCallback):
    """When the first update ended (time of day), and tokens and seconds from then to the last update."""

    def __init__(self, counter: TokenCounter):
        self.counter = counter

    def on_step_end(self, args, state, control, **kwargs) -> None:
        now = time.time()
        if state.global_step == 1:
            self.first_update, self.before = now, self.counter.tokens
        self.tokens, self.seconds = self.counter.tokens - self.before, now - self.first_update
