"""One start of a training run, in a process of its own: time to the first update, speed after it, memory."""

import hashlib
import resource
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

from hf_docmt.bench.epoch import TokenCounter
from hf_docmt.bench.memory import memory_in_use
from hf_docmt.bench.subprocesses import answer_case
from hf_docmt.data.documents import sentences
from hf_docmt.data.readers import read_documents
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.training.arguments import training_arguments
from hf_docmt.training.recipe import Recipe, parse_recipe
from hf_docmt.training.run import make_trainer, read_part, run_tokenizer
from hf_docmt.training.trainer import DocMTTrainer

HASHED_BATCHES = 20


def measure(case: Mapping) -> dict:
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
        "private_mib": private_mib(),
        "cpu_seconds": sum(one.ru_utime + one.ru_stime for one in usage),
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


def private_mib() -> float | None:
    """Resident memory that is this process's own, without pages of files; None where the system does not report it."""
    rollup = Path("/proc/self/smaps_rollup")
    if not rollup.is_file():
        return None
    lines = [line.split() for line in rollup.read_text(encoding="utf-8").splitlines()]
    sizes = {line[0]: int(line[1]) for line in lines if line[0].startswith("Private_")}
    return (sizes["Private_Clean:"] + sizes["Private_Dirty:"]) / 2**10


if __name__ == "__main__":
    answer_case(measure)
