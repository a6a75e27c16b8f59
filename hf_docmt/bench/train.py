"""Training speed: token-budget batches against a MarianMTModel in Seq2SeqTrainer with random batches of fixed size."""

import itertools
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.bench.benchmark import Benchmark, OnRow, check_device, check_positive, ignore_row, option
from hf_docmt.bench.documents import load_documents
from hf_docmt.bench.epoch import SMOOTHING, Epoch, our_trainer, peer_trainer, train_epoch
from hf_docmt.bench.marian import SMALL, build_pair
from hf_docmt.bench.results import SIDES, BenchResult, Check, SpeedRow
from hf_docmt.bench.timing import median_seconds
from hf_docmt.data.documents import sentences
from hf_docmt.data.samplers import TokenBudgetBatchSampler
from hf_docmt.data.tokenizers import train_tokenizer

VIEWS = {"sentences": 0, "windows of four": 3}  # name: sentences of past context
MIN_RATIO = 1.5  # target of every case


@dataclass(kw_only=True)
class TrainBenchmark(Benchmark):
    """Target tokens a second, ours in `DocMTTrainer` and Marian in an unmodified `Seq2SeqTrainer`.

    A measurement is one epoch of `Trainer.train` over the same examples: sentences, then windows of four sentences.
    Our batches have examples of similar length and at most `max_tokens` source and target tokens, padding included. The
    peer's are random, of a fixed number of examples that gives the same number of updates, so that an update has the
    same number of real target tokens on both sides; only real ones are counted. Sizes, initial weights, dropout, label
    smoothing and optimiser are equal. `ours_padding` and `peer_padding` are tokens with padding over tokens.

    `documents` is a JSON-lines file, or the number of documents of the built-in corpus. The tokenizer is trained on
    them; the models have `vocab_size` tokens whether the corpus fills them or not.
    """

    name = "train"
    help = "Target tokens per second in training, against fixed-size random batches in Seq2SeqTrainer."
    report_options = ({"repeats": 3},)

    repeats: int = option(5, "Rounds, the median is reported.")
    documents: str | Path | int = 150
    source_lang: str = "en"
    target_lang: str = "de"
    max_tokens: int = 4000
    sizes: Mapping[str, int] = field(default_factory=lambda: SMALL)
    vocab_size: int = 8000
    seed: int = 1
    device: str = option("cpu", "cpu or cuda.")

    def __post_init__(self) -> None:
        check_positive(repeats=self.repeats, max_tokens=self.max_tokens, vocab_size=self.vocab_size)
        check_training_device(self.device)
        if isinstance(self.documents, int):
            check_positive(documents=self.documents)

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        languages = (self.source_lang, self.target_lang)
        documents = load_documents(self.documents, *languages)
        texts = (text for row in documents for lang in languages for text in sentences(row, lang))
        tokenizer = train_tokenizer(texts, vocab_size=self.vocab_size)
        rows = []
        for name, past_context in VIEWS.items():
            fields = {"source_lang": self.source_lang, "target_lang": self.target_lang, "past_context": past_context}
            models = build_pair(self.sizes, self.vocab_size, self.seed, label_smoothing=SMOOTHING, **fields)
            rows.append(compare(name, documents, tokenizer, models, self.max_tokens, self.repeats, self.device))
            on_row(rows[-1])
        checks = [Check.at_least(f"{row.case}: ratio", row.ratio, MIN_RATIO) for row in rows]
        built_in = isinstance(self.documents, int)
        origin = f"{self.documents} of the built-in corpus" if built_in else str(self.documents)
        setting = {"documents": origin, "max_tokens": self.max_tokens, "label_smoothing": SMOOTHING}
        setting |= {"repeats": self.repeats, "vocab_size": self.vocab_size, "seed": self.seed, "device": self.device}
        return BenchResult.of(rows, checks, **setting, sizes=dict(self.sizes))


def compare(
    case: str,
    documents: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    models: tuple[PreTrainedModel, PreTrainedModel],
    max_tokens: int,
    repeats: int,
    device: str,
) -> SpeedRow:
    """One row: both models see all examples once in every measurement, every measurement in a new order."""
    ours, peer = models
    architecture = registry.for_config(ours.config)
    examples = architecture.examples(documents, tokenizer, ours.config)
    collator = architecture.collator(ours.config, tokenizer)
    updates = len(TokenBudgetBatchSampler(examples.side_lengths, max_tokens))
    batch_size = max(1, round(len(examples) / updates))
    seeds = {side: itertools.count(1) for side in SIDES}
    epochs: dict[str, Epoch] = {}
    with tempfile.TemporaryDirectory() as folder:
        trainers = {
            "ours": partial(our_trainer, ours, examples, collator, max_tokens, device, folder),
            "peer": partial(peer_trainer, peer, examples, collator, tokenizer, batch_size, device, folder),
        }

        def epoch_seconds(side: str) -> float:
            epochs[side] = train_epoch(trainers[side](next(seeds[side])))
            return epochs[side].seconds

        seconds = median_seconds({side: partial(epoch_seconds, side) for side in SIDES}, repeats)
    tokens = {side: epochs[side].target_tokens for side in SIDES}
    if tokens["ours"] != tokens["peer"]:
        raise RuntimeError(f"both sides must see the same target tokens, got {tokens}")
    more = {f"{side}_padding": epochs[side].padding for side in SIDES}
    more |= {f"{side}_tokens_per_update": tokens[side] / epochs[side].updates for side in SIDES}
    return SpeedRow.of(case, "target tokens/s", tokens, seconds, **more, target_tokens=tokens["ours"])


def check_training_device(device: str) -> None:
    """Raise `ValueError` for a device that this machine does not have, and for several: a Trainer takes all it sees."""
    check_device(device)
    if device != "cpu" and (device != "cuda" or torch.cuda.device_count() > 1):
        raise ValueError(
            f"device: expected cpu, or cuda with one GPU, got {device!r} with {torch.cuda.device_count()}; name the "
            "GPU in the variable CUDA_VISIBLE_DEVICES, since a Trainer takes all that it sees"
        )
