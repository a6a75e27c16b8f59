"""Training speed: token-budget batches against a MarianMTModel in Seq2SeqTrainer with random batches of fixed size."""

import copy
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
from hf_docmt.bench.results import BenchResult, Check, SpeedRow
from hf_docmt.bench.timing import median_seconds
from hf_docmt.data.documents import sentences
from hf_docmt.data.samplers import TokenBudgetBatchSampler
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.modeling.cpu_inference import BF16

VIEWS = {"sentences": 0, "windows of four": 3}  # name: sentences of past context
MIN_RATIO = 1.5  # target of every case
MIN_BF16_RATIO, MAX_LOSS_DIFFERENCE = 1.4, 0.01  # of bf16 to our own fp32: speed, and loss of the last epoch
OWN = ", ours in bf16 and fp32"  # end of the case that compares these
NO_BF16 = "speed in bf16: this processor has no instructions for it"


@dataclass(kw_only=True)
class TrainBenchmark(Benchmark):
    """Target tokens a second, ours in `DocMTTrainer` and Marian in an unmodified `Seq2SeqTrainer`.

    A measurement is one epoch of `Trainer.train` over the same examples: sentences, then windows of four sentences.
    Our batches have examples of similar length and at most `max_tokens` source and target tokens, padding included. The
    peer's are random, of a fixed number of examples that gives the same number of updates, so that an update has the
    same number of real target tokens on both sides; only real ones are counted. Sizes, initial weights, dropout, label
    smoothing and optimiser are equal. `ours_padding` and `peer_padding` are tokens with padding over tokens.

    With `precision="bf16"` both sides train in bf16 autocast, and a third one, ours in fp32, takes part in the rounds:
    rows and checks compare our bf16 with it, too. Where a CPU has no instructions for bf16 its speed is not checked,
    and the setting says so. `ours_loss` and `peer_loss` are the mean losses of the last epoch.

    `documents` is a JSON-lines file, or the number of documents of the built-in corpus. The tokenizer is trained on
    them; the models have `vocab_size` tokens whether the corpus fills them or not.
    """

    name = "train"
    by = "speed"
    default_by = True
    help = "Target tokens per second in training, against fixed-size random batches in Seq2SeqTrainer."
    report_options = ({"repeats": 3}, {"repeats": 3, "precision": "bf16"})

    repeats: int = option(5, "Rounds, the median is reported.")
    documents: str | Path | int = 150
    source_lang: str = "en"
    target_lang: str = "de"
    max_tokens: int = 4000
    sizes: Mapping[str, int] = field(default_factory=lambda: SMALL)
    vocab_size: int = 8000
    seed: int = 1
    device: str = option("cpu", "cpu or cuda.")
    precision: str = option("fp32", "fp32 or bf16.")

    def __post_init__(self) -> None:
        check_positive(repeats=self.repeats, max_tokens=self.max_tokens, vocab_size=self.vocab_size)
        check_precision(self.precision)
        check_training_device(self.device)
        if isinstance(self.documents, int):
            check_positive(documents=self.documents)

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        languages = (self.source_lang, self.target_lang)
        documents = load_documents(self.documents, *languages)
        texts = (text for row in documents for lang in languages for text in sentences(row, lang))
        tokenizer = train_tokenizer(texts, vocab_size=self.vocab_size)
        rows, checks, slow = [], [], self.precision == "bf16" and self.device == "cpu" and not has_bf16()
        for name, past_context in VIEWS.items():
            fields = {"source_lang": self.source_lang, "target_lang": self.target_lang, "past_context": past_context}
            models = build_pair(self.sizes, self.vocab_size, self.seed, label_smoothing=SMOOTHING, **fields)
            setting = (self.max_tokens, self.repeats, self.device, self.precision)
            for row in compare(name, documents, tokenizer, models, *setting):
                rows.append(row)
                on_row(row)
                checks += target_checks(row, check_speed=not slow)
        built_in = isinstance(self.documents, int)
        origin = f"{self.documents} of the built-in corpus" if built_in else str(self.documents)
        setting = {"documents": origin, "max_tokens": self.max_tokens, "label_smoothing": SMOOTHING}
        setting |= {"repeats": self.repeats, "vocab_size": self.vocab_size, "seed": self.seed, "device": self.device}
        setting |= {"precision": self.precision, "unchecked": NO_BF16 if slow else None}
        return BenchResult.of(rows, checks, **setting, sizes=dict(self.sizes))


def check_precision(precision: str) -> None:
    """Raise `ValueError` for another precision than fp32 and bf16."""
    if precision not in ("fp32", "bf16"):
        raise ValueError(f"precision: expected fp32 or bf16, got {precision!r}")


def has_bf16() -> bool:
    """Whether the processor has instructions for bf16."""
    return BF16


def target_checks(row: SpeedRow, check_speed: bool) -> list[Check]:
    """The checks of a row; where `check_speed` is false that of the loss alone."""
    target = MIN_BF16_RATIO if row.case.endswith(OWN) else MIN_RATIO
    checks = [Check.at_least(f"{row.case}: ratio", row.ratio, target)] if check_speed else []
    if row.case.endswith(OWN):
        difference = abs(row.more["ours_loss"] / row.more["peer_loss"] - 1)
        checks.append(Check.at_most(f"{row.case}: difference of losses", difference, MAX_LOSS_DIFFERENCE))
    return checks


def compare(
    case: str,
    documents: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    models: tuple[PreTrainedModel, PreTrainedModel],
    max_tokens: int,
    repeats: int,
    device: str,
    precision: str,
) -> list[SpeedRow]:
    """A row of ours and the peer, and with bf16 one of our bf16 and our fp32.

    All models see all examples once in every measurement, every measurement in a new order, the same for both of ours.
    """
    ours, peer = models
    architecture = registry.for_config(ours.config)
    examples = architecture.examples(documents, tokenizer, ours.config)
    collator = architecture.collator(ours.config, tokenizer)
    updates = len(TokenBudgetBatchSampler(examples.side_lengths, max_tokens))
    batch_size = max(1, round(len(examples) / updates))
    with tempfile.TemporaryDirectory() as folder:
        more = {"device": device, "precision": precision, "folder": folder}
        trainers = {
            "ours": partial(our_trainer, ours, examples, collator, max_tokens, **more),
            "peer": partial(peer_trainer, peer, examples, collator, tokenizer, batch_size, **more),
        }
        if precision == "bf16":
            start = (copy.deepcopy(ours), examples, collator, max_tokens)
            trainers["ours in fp32"] = partial(our_trainer, *start, **more | {"precision": "fp32"})
        seeds = {side: itertools.count(1) for side in trainers}
        epochs: dict[str, Epoch] = {}

        def epoch_seconds(side: str) -> float:
            epochs[side] = train_epoch(trainers[side](seed=next(seeds[side])))
            return epochs[side].seconds

        seconds = median_seconds({side: partial(epoch_seconds, side) for side in trainers}, repeats)
    tokens = {side: epoch.target_tokens for side, epoch in epochs.items()}
    if len(set(tokens.values())) > 1:
        raise RuntimeError(f"all sides must see the same target tokens, got {tokens}")
    rows = [speed_row(case, epochs, seconds, "peer")]
    if precision == "bf16":
        rows.append(speed_row(f"{case}{OWN}", epochs, seconds, "ours in fp32"))
    return rows


def speed_row(case: str, epochs: Mapping[str, Epoch], seconds: Mapping[str, float], peer: str) -> SpeedRow:
    """The row of ours and of the side `peer`: their last epochs, and their median seconds."""
    epochs = {"ours": epochs["ours"], "peer": epochs[peer]}
    tokens = {side: epoch.target_tokens for side, epoch in epochs.items()}
    more = {f"{side}_padding": epoch.padding for side, epoch in epochs.items()}
    more |= {f"{side}_tokens_per_update": tokens[side] / epoch.updates for side, epoch in epochs.items()}
    more |= {f"{side}_loss": epoch.loss for side, epoch in epochs.items()}
    seconds = {"ours": seconds["ours"], "peer": seconds[peer]}
    return SpeedRow.of(case, "target tokens/s", tokens, seconds, **more, target_tokens=tokens["ours"])


def check_training_device(device: str) -> None:
    """Raise `ValueError` for a device that this machine does not have, and for several: a Trainer takes all it sees."""
    check_device(device)
    if device != "cpu" and (device != "cuda" or torch.cuda.device_count() > 1):
        raise ValueError(
            f"device: expected cpu, or cuda with one GPU, got {device!r} with {torch.cuda.device_count()}; name the "
            "GPU in the variable CUDA_VISIBLE_DEVICES, since a Trainer takes all that it sees"
        )
