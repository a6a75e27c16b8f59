"""One measured epoch of training, in our trainer or in that of transformers."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor
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

from hf_docmt.bench.timing import synchronize
from hf_docmt.data.examples import Examples
from hf_docmt.training.arguments import DocMTTrainingArguments
from hf_docmt.training.trainer import DocMTTrainer

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


def our_trainer(
    model: PreTrainedModel,
    examples: Examples,
    collator: Callable,
    max_tokens: int,
    device: str,
    precision: str,
    folder: str,
    seed: int,
) -> DocMTTrainer:
    """Token-budget batches of like length; the loss, with its smoothing, is the model's own."""
    arguments = DocMTTrainingArguments(
        output_dir=folder,
        seed=seed,
        use_cpu=device == "cpu",
        bf16=precision == "bf16",
        max_tokens=max_tokens,
        **COMMON,
    )
    return DocMTTrainer(model=model, args=arguments, train_dataset=examples, data_collator=collator)


def peer_trainer(
    model: PreTrainedModel,
    examples: Examples,
    collator: Callable,
    tokenizer: PreTrainedTokenizerBase,
    batch_size: int,
    device: str,
    precision: str,
    folder: str,
    seed: int,
) -> Seq2SeqTrainer:
    """Random batches of `batch_size` examples with the token ids that `collator` gives them, padded by transformers."""
    arguments = Seq2SeqTrainingArguments(
        output_dir=folder,
        seed=seed,
        use_cpu=device == "cpu",
        bf16=precision == "bf16",
        per_device_train_batch_size=batch_size,
        label_smoothing_factor=SMOOTHING,
        **COMMON,
    )
    batches = [collator([examples[number]]) for number in range(len(examples))]
    rows = [{name: batch[name][0].tolist() for name in ("input_ids", "labels")} for batch in batches]
    padder = DataCollatorForSeq2Seq(tokenizer, model=model)
    return Seq2SeqTrainer(model=model, args=arguments, train_dataset=rows, data_collator=padder)


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

    def __init__(self, collator: Callable[[Sequence[dict]], dict[str, Tensor]]):
        self.collator = collator
        self.target_tokens = self.tokens = self.padded = 0

    def __call__(self, examples: Sequence[dict]) -> dict[str, Tensor]:
        batch = self.collator(examples)
        targets = int((batch["labels"] != -100).sum())
        self.target_tokens += targets
        self.tokens += targets + int(batch["attention_mask"].sum())
        self.padded += batch["labels"].numel() + batch["input_ids"].numel()
        return batch
