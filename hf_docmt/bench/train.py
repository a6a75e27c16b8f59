"""Training speed: token-budget batches against a MarianMTModel in Seq2SeqTrainer with random batches of fixed size."""

import copy
import itertools
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch
from datasets import Dataset
from transformers import (
    DataCollatorForSeq2Seq,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    ProgressCallback,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    Trainer,
    TrainerCallback,
)

from hf_docmt import registry
from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row
from hf_docmt.bench.measurement import median_seconds, synchronize
from hf_docmt.bench.models import SMALL, build_pair, load_documents
from hf_docmt.bench.options import TrainOptions
from hf_docmt.bench.results import BenchResult, Check, Row
from hf_docmt.data.documents import sentences
from hf_docmt.data.samplers import TokenBudgetBatchSampler
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.training.arguments import DocMTTrainingArguments, bf16_speed
from hf_docmt.training.trainer import DocMTTrainer

VIEWS = {"sentences": 0, "windows of four": 3}  # name: sentences of past context
MIN_RATIO = 1.5  # target of every case
MIN_BF16_RATIO, MAX_LOSS_DIFFERENCE = 1.4, 0.01  # of bf16 to our own fp32: speed, and loss of the last epoch
OWN = ", ours in bf16 and fp32"  # end of the case that compares these
SMOOTHING = 0.1
COMMON = {
    "num_train_epochs": 1,
    "learning_rate": 1e-4,
    "max_grad_norm": 1.0,
    "dataloader_pin_memory": False,
    "save_strategy": "no",
    "logging_strategy": "no",
    "report_to": "none",
    "disable_tqdm": True,
}
NO_BF16 = "speed in bf16: products of matrices take longer with it than in fp32 on this processor"


@dataclass(kw_only=True)
class TrainBenchmark(TrainOptions, Benchmark):
    """Target tokens a second, ours in `DocMTTrainer` and Marian in an unmodified `Seq2SeqTrainer`.

    A measurement is one epoch of `Trainer.train` over the same examples: sentences, then windows of four sentences.
    Our batches have examples of similar length and at most `max_tokens` source and target tokens, padding included. The
    peer's are random, of a fixed number of examples that gives the same number of updates, so that an update has the
    same number of real target tokens on both sides; only real ones are counted. Sizes, initial weights, dropout, label
    smoothing and optimiser are equal. `ours_padding` and `peer_padding` are tokens with padding over tokens.

    With `precision="bf16"` both sides train in bf16 autocast, and a third one, ours in fp32, takes part in the rounds:
    rows and checks compare our bf16 with it, too. Where products of matrices take longer in bf16 its speed is not
    checked, and the setting says so. `ours_loss` and `peer_loss` are the mean losses of the last epoch.

    `documents` is a JSON-lines file, or the number of documents of the built-in corpus. The tokenizer is trained on
    them; the models have `vocab_size` tokens whether the corpus fills them or not.
    """

    report_options = ({"repeats": 3}, {"repeats": 3, "precision": "bf16"})

    documents: str | Path | int = 150
    source_lang: str = "en"
    target_lang: str = "de"
    max_tokens: int = 4000
    sizes: Mapping[str, int] = field(default_factory=lambda: SMALL)
    vocab_size: int = 8000
    seed: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.device != "cpu" and (self.device != "cuda" or torch.cuda.device_count() > 1):
            raise ValueError(
                f"device: expected cpu, or cuda with one GPU, got {self.device!r} with {torch.cuda.device_count()}; "
                "name the GPU in the variable CUDA_VISIBLE_DEVICES, since a Trainer takes all that it sees"
            )

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        languages = (self.source_lang, self.target_lang)
        documents = load_documents(self.documents, *languages)
        texts = (text for row in documents for lang in languages for text in sentences(row, lang))
        tokenizer = train_tokenizer(texts, vocab_size=self.vocab_size)
        rows, checks, slow = [], [], self.precision == "bf16" and bf16_speed(torch.device(self.device)) < 1
        for name, past_context in VIEWS.items():
            fields = {"source_lang": self.source_lang, "target_lang": self.target_lang, "past_context": past_context}
            models = build_pair(self.sizes, self.vocab_size, self.seed, label_smoothing=SMOOTHING, **fields)
            for row in view_rows(self, name, documents, tokenizer, models):
                rows.append(row)
                on_row(row)
                checks += target_checks(row, check_speed=not slow)
        built_in = isinstance(self.documents, int)
        origin = f"{self.documents} of the built-in corpus" if built_in else str(self.documents)
        unchecked = NO_BF16 if slow else None
        return self.result(rows, checks, documents=origin, label_smoothing=SMOOTHING, unchecked=unchecked)


def target_checks(row: Row, check_speed: bool) -> list[Check]:
    """The checks of a row; where `check_speed` is false that of the loss alone."""
    target = MIN_BF16_RATIO if row.case.endswith(OWN) else MIN_RATIO
    checks = [Check.at_least(f"{row.case}: ratio", row.ratio, target)] if check_speed else []
    if row.case.endswith(OWN):
        difference = abs(row.more["ours_loss"] / row.more["peer_loss"] - 1)
        checks.append(Check.at_most(f"{row.case}: difference of losses", difference, MAX_LOSS_DIFFERENCE))
    return checks


def view_rows(
    options: TrainBenchmark,
    case: str,
    documents: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    models: tuple[PreTrainedModel, PreTrainedModel],
) -> list[Row]:
    """A row of ours and the peer, and with bf16 one of our bf16 and our fp32.

    All models see all examples once in every measurement, every measurement in a new order, the same for both of ours.
    """
    ours, peer = models
    architecture = registry.for_config(ours.config)
    examples = architecture.examples(documents, tokenizer, ours.config)
    collator = architecture.collator(ours.config, tokenizer)
    updates = len(TokenBudgetBatchSampler(examples.side_lengths, options.max_tokens))
    batch_size = max(1, round(len(examples) / updates))
    batches = [collator([examples[number]]) for number in range(len(examples))]
    rows = [{name: batch[name][0].tolist() for name in ("input_ids", "labels")} for batch in batches]
    padder = DataCollatorForSeq2Seq(tokenizer, model=peer)
    with tempfile.TemporaryDirectory() as folder:
        shared = COMMON | {"output_dir": folder, "use_cpu": options.device == "cpu"}

        def our_trainer(model: PreTrainedModel, bf16: bool, seed: int) -> DocMTTrainer:
            """Token-budget batches of like length; the loss, with its smoothing, is the model's own."""
            arguments = DocMTTrainingArguments(seed=seed, bf16=bf16, max_tokens=options.max_tokens, **shared)
            return DocMTTrainer(model=model, args=arguments, train_dataset=examples, data_collator=collator)

        def peer_trainer(seed: int) -> Seq2SeqTrainer:
            """Random batches of `batch_size` examples with the same token ids, padded by transformers."""
            more = {"per_device_train_batch_size": batch_size, "label_smoothing_factor": SMOOTHING}
            arguments = Seq2SeqTrainingArguments(seed=seed, bf16=options.precision == "bf16", **more, **shared)
            return Seq2SeqTrainer(model=peer, args=arguments, train_dataset=rows, data_collator=padder)

        trainers: dict[str, Callable[[int], Trainer]] = {
            "ours": partial(our_trainer, ours, options.precision == "bf16"),
            "peer": peer_trainer,
        }
        if options.precision == "bf16":
            trainers["ours in fp32"] = partial(our_trainer, copy.deepcopy(ours), False)
        seeds = {side: itertools.count(1) for side in trainers}
        epochs: dict[str, Epoch] = {}

        def epoch_seconds(side: str) -> float:
            epochs[side] = train_epoch(trainers[side](next(seeds[side])))
            return epochs[side].seconds

        seconds = median_seconds({side: partial(epoch_seconds, side) for side in trainers}, options.repeats)
    tokens = {side: epoch.target_tokens for side, epoch in epochs.items()}
    if len(set(tokens.values())) > 1:
        raise RuntimeError(f"all sides must see the same target tokens, got {tokens}")
    if options.precision == "fp32":
        return [speed_row(case, epochs, seconds, "peer")]
    return [speed_row(case, epochs, seconds, "peer"), speed_row(f"{case}{OWN}", epochs, seconds, "ours in fp32")]


def speed_row(case: str, epochs: Mapping[str, "Epoch"], seconds: Mapping[str, float], peer: str) -> Row:
    """The row of ours and of the side `peer`: their last epochs, and their median seconds."""
    epochs = {"ours": epochs["ours"], "peer": epochs[peer]}
    tokens = {side: epoch.target_tokens for side, epoch in epochs.items()}
    more = {f"{side}_padding": epoch.padding for side, epoch in epochs.items()}
    more |= {f"{side}_tokens_per_update": tokens[side] / epoch.updates for side, epoch in epochs.items()}
    more |= {f"{side}_loss": epoch.loss for side, epoch in epochs.items()}
    seconds = {"ours": seconds["ours"], "peer": seconds[peer]}
    return Row.of_speeds(case, "target tokens/s", tokens["ours"], seconds, **more, target_tokens=tokens["ours"])


@dataclass(frozen=True)
class Epoch:
    """What one epoch took: seconds from the beginning to the end of training, updates, and real target tokens.

    `padding` is the number of tokens with padding over that without, both sides; `loss` is the mean over the updates.
    """

    seconds: float
    updates: int
    target_tokens: int
    padding: float
    loss: float


def train_epoch(trainer: Trainer) -> Epoch:
    """Train with batches counted and the time taken; nothing is printed."""
    for printing in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(printing)
    watch, counter = Watch(), TokenCounter(trainer.data_collator)
    trainer.add_callback(watch)
    trainer.data_collator = counter
    loss = trainer.train().training_loss
    padding = counter.padded / counter.tokens
    return Epoch(watch.seconds, trainer.state.global_step, counter.target_tokens, padding, loss)


class Watch(TrainerCallback):
    """Seconds between the beginning and the end of the training loop."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter):
        self.clock = clock

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        synchronize(args.device)
        self.started = self.clock()

    def on_train_end(self, args, state, control, **kwargs) -> None:
        synchronize(args.device)
        self.seconds = self.clock() - self.started


class TokenCounter:
    """A collator that counts the tokens of the batches it makes, with padding and without."""

    def __init__(self, collator: Callable[[Sequence[dict]], dict[str, torch.Tensor]]):
        self.collator = collator
        self.target_tokens = self.tokens = self.padded = 0

    def __call__(self, examples: Sequence[dict]) -> dict[str, torch.Tensor]:
        batch = self.collator(examples)
        targets = int((batch["labels"] != -100).sum())
        self.target_tokens += targets
        self.tokens += targets + int(batch["attention_mask"].sum())
        self.padded += batch["labels"].numel() + batch["input_ids"].numel()
        return batch
