"""The arguments of the trainer, given directly or from a recipe."""

import logging
import time
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import Seq2SeqTrainingArguments

from hf_docmt.data.samplers import BUDGETS
from hf_docmt.messages import check_known, install_command
from hf_docmt.training.recipe import Recipe
from hf_docmt.training.recipe_sections import StreamRecipe

_logger = logging.getLogger(__name__)

OF_THE_RECIPE = (  # arguments with the name and the value that they have in a recipe
    "max_tokens", "budget", "learning_rate", "new_learning_rate", "warmup_steps", "adam_epsilon", "weight_decay",
    "eval_steps", "average", "stop_on", "report_to",
)  # fmt: skip


@dataclass
class DocMTTrainingArguments(Seq2SeqTrainingArguments):
    """`Seq2SeqTrainingArguments` with token-budget batches, two learning rates and the averaging of checkpoints.

    Batches are made by token budget, so that `per_device_train_batch_size` has no effect; label smoothing is a field of
    the model's config, whose loss applies it, and not `label_smoothing_factor`.
    """

    max_tokens: int = 8000  # size of a batch in tokens
    budget: str = "padded"  # how they are counted, see `hf_docmt.data.samplers`
    new_learning_rate: float | None = None  # of the trainer's `new_parameters`
    stop_on: str = "discounted"  # undiscounted = the validation loss ignores label_weights
    average: int = 4  # checkpoints kept after the best one, to be averaged with it
    stream_documents: int = 16  # documents read side by side, by models that carry a state
    stream_window: int | None = 10  # most sentences of each between two updates; None = whole documents
    memory_gradient: int = 2  # sentences that the gradient of a loss reaches, the current one included
    remove_unused_columns: bool = False  # the collator needs what examples hold
    label_names: list[str] | None = field(default_factory=lambda: ["labels"])  # label_weights are not always there
    use_cache: bool = True  # the trainer writes it into the model's config
    restore_callback_states_from_checkpoint: bool = True  # patience goes on counting where it was

    def __post_init__(self):
        self.use_cpu = self.use_cpu or not torch.accelerator.is_available()  # else processes on a CPU are not joined
        super().__post_init__()
        if self.memory_gradient < 2:
            raise ValueError(
                f"memory_gradient must be >= 2, the current sentence and one before, got {self.memory_gradient}"
            )
        check_known(self.budget, BUDGETS, "budget", "expected one of")
        check_known(self.stop_on, ("discounted", "undiscounted"), "stop_on", "expected one of")
        if self.bf16 and (speed := bf16_speed(self.device)) < 1:
            _logger.warning(
                f"bf16 was requested, but matrix products take {1 / speed:.1f} times as long with it as in fp32 on "
                "this processor; omit bf16, or set training.bf16: auto in a recipe"
            )
        self._n_gpu = min(self.n_gpu, 1)  # one device a process: no DataParallel, which would cut batches in pieces


DocMTArguments = DocMTTrainingArguments  # the name of version 0.1.0, also in its training_args.bin


@cache
def bf16_speed(device: torch.device) -> float:
    """How many times as fast as in fp32 products of matrices are in bf16; measured, in some milliseconds, on a CPU.

    Processors without instructions for bf16 are many times slower with it, some that have them are, too. Another device
    is taken to be faster where torch computes in bf16 on it.
    """
    if device.type != "cpu":
        return 2.0 if device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False) else 0.5
    seconds: dict[torch.dtype, list[float]] = {torch.float32: [], torch.bfloat16: []}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # whose own time no other process lengthens
    for _ in range(4):  # side by side: the least of each counts
        for dtype, times in seconds.items():
            states, weight = torch.ones(512, 256, dtype=dtype), torch.ones(1024, 256, dtype=dtype)
            start = time.thread_time()
            torch.nn.functional.linear(states, weight)
            times.append(time.thread_time() - start)
    torch.set_num_threads(threads)
    return min(seconds[torch.float32]) / min(seconds[torch.bfloat16])


def training_arguments(recipe: Recipe) -> DocMTTrainingArguments:
    """Arguments for `DocMTTrainer`: checkpoints go to `<output_dir>/checkpoints`, one at every validation.

    Label smoothing stays 0 here because the model's own loss applies it (`config.label_smoothing`). Raises `ValueError`
    where the tracker is not installed.
    """
    training = recipe.training
    if training.report_to != "none" and find_spec(training.report_to) is None:
        raise ValueError(
            f"training.report_to: {training.report_to} is not installed: {install_command('tracking')}, or set none"
        )
    stream = training.stream or StreamRecipe()
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    interval = "epoch" if training.eval_steps is None else "steps"
    return DocMTTrainingArguments(
        output_dir=str(Path(recipe.output_dir) / "checkpoints"),
        run_name=Path(recipe.output_dir).name,
        seed=recipe.seed,
        gradient_accumulation_steps=training.accumulation,
        bf16=bf16_speed(device) > 1 if training.bf16 == "auto" else training.bf16,
        max_steps=training.max_steps or -1,
        num_train_epochs=training.epochs or 1,
        lr_scheduler_type=training.scheduler,
        adam_beta1=training.adam_betas[0],
        adam_beta2=training.adam_betas[1],
        max_grad_norm=training.clip or 0.0,
        activation_checkpointing=training.gradient_checkpointing,
        activation_checkpointing_kwargs={"use_reentrant": False},
        eval_strategy=interval,
        save_strategy=interval,
        save_steps=training.eval_steps or 500,
        stream_documents=stream.documents,
        stream_window=None if stream.window == "full" else stream.window,
        memory_gradient=stream.memory_gradient,
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        greater_is_better=False,
        logging_steps=training.log_steps,
        project="docmt",
        dataloader_num_workers=training.workers,
        **{name: getattr(training, name) for name in OF_THE_RECIPE},
        dataloader_pin_memory=torch.cuda.is_available(),
        ddp_find_unused_parameters=False,
    )
