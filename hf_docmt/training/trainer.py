"""The trainer: batches by token budget, two learning rates, exact resuming, validation loss per token."""

import json
import math
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from functools import cached_property
from itertools import repeat
from pathlib import Path

import torch
import yaml
from accelerate.utils import gather_object
from huggingface_hub import ModelCard
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import PrinterCallback, ProgressCallback, Seq2SeqTrainer, set_seed
from transformers.trainer import OPTIMIZER_NAME, OPTIMIZER_NAME_BIN, TRAINER_STATE_NAME
from transformers.trainer_utils import EvalLoopOutput

from hf_docmt.data.samplers import TokenBudgetBatchSampler, batch_budget
from hf_docmt.files import HUB_NAME
from hf_docmt.journal import text_digest
from hf_docmt.loading.model_card import ModelCardText
from hf_docmt.modeling.fingerprints import add_tokenizer_fingerprint
from hf_docmt.training.checkpoints import (
    SAVED_RUN,
    SavedRun,
    checkpoint_path,
    checkpoint_steps,
    complete_checkpoint,
    explain_write_errors,
    remove_unneeded,
    saved_run,
)
from hf_docmt.training.distributed import (
    EpochDataLoader,
    RegroupedBatches,
    accumulation_for,
    check_sharding,
    equal_rounds,
    tied_embeddings_in_root,
)

UNFINISHED = "unfinished"  # folder in which a checkpoint is saved
PROCEDURE = "## Training procedure"  # of the card that transformers drafts
TARGET = ("decoder_input_ids", "decoder_attention_mask", "labels", "label_weights")  # in a batch


class DocMTTrainer(Seq2SeqTrainer):
    """`Seq2SeqTrainer` for documents, configured by `DocMTTrainingArguments`.

        architecture = registry.get("concat")
        trainer = DocMTTrainer(
            model=architecture.model_class(config),
            args=DocMTTrainingArguments("runs/model", max_tokens=4000, max_steps=1000),
            train_dataset=architecture.examples(documents, tokenizer, config),
            data_collator=architecture.collator(config, tokenizer),
        )
        trainer.train()

    Datasets are `Examples` (they know the length of every example), the collator makes the batch, and the loss is the
    model's own, divided by the number of target tokens of the whole update: all accumulated batches of all processes.
    `new_parameters` are names of parameters that learn at `args.new_learning_rate`.

    A checkpoint gets its name when all of it is on the disk; then checkpoints that are no longer needed are deleted,
    except the last two. Resuming (`train(resume_from_checkpoint=True)`) takes the last one, and gives the same losses
    as training without a break. A run may resume with another number of processes if every update can have the same
    batches as before, so that it equals one with the old number up to rounding and the random numbers of dropout;
    otherwise it is refused. Other training and validation data (by their `fingerprint`) are refused, too; `data_name`
    names the former in the error.
    """

    def __init__(self, *args, new_parameters: Iterable[str] = (), data_name: str = "train_dataset", **kwargs):
        super().__init__(*args, **kwargs)
        self.data_name = data_name
        self.batch_processes = self.args.world_size  # that batches are made for; another after resuming with others
        check_sharding(self.accelerator)
        if self.label_smoother is not None:
            raise ValueError(
                f"label_smoothing_factor must be 0, got {self.args.label_smoothing_factor}: its loss ignores "
                "label_weights; set label_smoothing in the model's config (training.label_smoothing in a recipe)"
            )
        self.new_parameters = frozenset(new_parameters)
        unknown = self.new_parameters - {name for name, _ in self.model.named_parameters()}
        if unknown:
            raise ValueError(
                f"new_parameters: {sorted(unknown)} are not parameters of this model; see named_parameters()"
            )
        for callback in (ProgressCallback, PrinterCallback):  # both write to standard output
            self.remove_callback(callback)
        self.add_callback(ProgressOnStderr)

    def get_train_dataloader(self) -> DataLoader:
        """Batches of this process: the sampler distributes them over processes, so accelerate must not do it again."""
        sampler = self._train_sampler(self.batch_processes)
        rank, processes = self.args.process_index, self.args.world_size
        return self._loader(self.train_dataset, RegroupedBatches(sampler, rank, processes, self.train_dataset))

    def _train_sampler(self, processes: int) -> TokenBudgetBatchSampler:
        examples, arguments = self.train_dataset, self.args
        max_tokens, target_tokens = batch_budget(examples, arguments.max_tokens, arguments.budget)
        options = {"target_tokens": target_tokens, "seed": arguments.seed, "world_size": processes}
        return TokenBudgetBatchSampler(examples.side_lengths, max_tokens, **options)

    def steps_per_epoch(self, processes: int) -> int | None:
        """Batches per process in an epoch of a run with `processes`; None if the batches cannot be shared again."""
        return len(self._train_sampler(processes))

    def get_eval_dataloader(self, eval_dataset=None) -> DataLoader:
        """Batches of this process: no example is in two processes, so that numbers of batches may differ by one."""
        if self.compute_metrics is not None:
            return super().get_eval_dataloader(eval_dataset)
        dataset = self.eval_examples(eval_dataset)
        batches = list(TokenBudgetBatchSampler(dataset.side_lengths, self.args.max_tokens, shuffle=False))
        return self._loader(dataset, batches[self.args.process_index :: self.args.world_size])

    def eval_examples(self, eval_dataset=None):
        """The data set of this name, if there are several; or those given, or those of the trainer."""
        if isinstance(eval_dataset, str):
            return self.eval_dataset[eval_dataset]
        if eval_dataset is None and self.eval_dataset is None:
            raise ValueError("evaluation needs eval_dataset, got None; give it to the trainer or to evaluate()")
        return self.eval_dataset if eval_dataset is None else eval_dataset

    def _loader(self, dataset, batch_sampler, collator=None) -> DataLoader:
        return EpochDataLoader(
            dataset,
            batch_sampler=batch_sampler,
            collate_fn=collator or self.data_collator,
            num_workers=self.args.dataloader_num_workers,
            pin_memory=self.args.dataloader_pin_memory,
        )

    def _prepare_for_training(self, *args, **kwargs):
        with tied_embeddings_in_root(self.model) if self.is_fsdp_enabled else nullcontext():
            return super()._prepare_for_training(*args, **kwargs)

    def _save(self, output_dir=None, state_dict=None) -> None:
        """With sharded parameters every name of a tied weight has its own tensor; one of them is saved."""
        if state_dict is not None:
            tied = self.model.all_tied_weights_keys
            state_dict = {name: tensor for name, tensor in state_dict.items() if name not in tied}
        super()._save(output_dir, state_dict)
        if self.processing_class is not None:
            add_tokenizer_fingerprint(output_dir or self.args.output_dir, self.processing_class)

    def create_model_card(self, *args, **kwargs) -> None:
        """The model's own card with what transformers' draft says of data, scores and training; see `trainer_card`."""
        super().create_model_card(*args, **kwargs)
        if self.is_world_process_zero():
            path = Path(self.args.output_dir) / "README.md"
            model = self.accelerator.unwrap_model(self.model)
            name = self.hub_model_id or path.parent.name
            path.write_text(trainer_card(path.read_text(encoding="utf-8"), model, name), encoding="utf-8")

    def create_optimizer(self, model=None) -> torch.optim.Optimizer:
        """AdamW with one group for each of: learning rate (old, new), weight decay (no biases and norms, others)."""
        if self.optimizer is None:
            model = self.model if model is None else model
            decayed, groups = set(self.get_decay_parameter_names(model)), defaultdict(list)
            for name, parameter in model.named_parameters():
                if parameter.requires_grad:
                    groups[name in self.new_parameters, name in decayed].append(parameter)
            rates = {False: self.args.learning_rate, True: self.args.new_learning_rate or self.args.learning_rate}
            decays = {False: 0.0, True: self.args.weight_decay}
            kind, options = self.get_optimizer_cls_and_kwargs(self.args, model)
            parameters = [
                {"params": groups[new, decay], "lr": rates[new], "weight_decay": decays[decay]}
                for new, decay in sorted(groups)
            ]
            self.optimizer = kind(parameters, **options)
        return self.optimizer

    def evaluation_loop(
        self, dataloader, description, prediction_loss_only=None, ignore_keys=None, metric_key_prefix="eval"
    ):
        """Loss per target token of the whole set: the sum over all batches of all processes by their token count.

        The loop of transformers gives every batch the same weight; it is used where predictions are asked for.
        """
        if not prediction_loss_only:
            return super().evaluation_loop(
                dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix
            )
        self.model.eval()
        self.callback_handler.eval_dataloader = dataloader
        loss, tokens = 0.0, 0
        for batch, counts in equal_rounds(dataloader) if self.is_fsdp_enabled else zip(dataloader, repeat(True)):
            batch = self._prepare_inputs(batch)
            with torch.no_grad(), self.accelerator.autocast():
                batch_loss = self.summed_loss(batch)
            loss += batch_loss if counts else 0
            tokens += int((batch["labels"] != -100).sum()) if counts else 0
            self.control = self.callback_handler.on_prediction_step(self.args, self.state, self.control)
        totals = gather_object([(loss, tokens)])
        mean = sum(loss for loss, _ in totals) / max(sum(tokens for _, tokens in totals), 1)
        if not math.isfinite(mean):
            raise ValueError(
                f"validation loss is {mean} after {self.state.global_step} updates, training has diverged; lower the "
                "learning rate, warm up longer or clip gradients"
            )
        return EvalLoopOutput(None, None, {f"{metric_key_prefix}_loss": mean}, len(dataloader.dataset))

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None, **gen_kwargs):
        """As `Seq2SeqTrainer`; `generate` gets only the source, the loss its weights unless `undiscounted`."""
        inputs = self._scored(self._prepare_inputs(inputs))
        if not self.args.predict_with_generate or prediction_loss_only:
            return super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)
        loss, _, _ = super().prediction_step(model, inputs, True, ignore_keys)
        source = {name: tensor for name, tensor in inputs.items() if name not in TARGET}
        _, tokens, _ = super().prediction_step(model, source, False, ignore_keys, **gen_kwargs)
        return loss, tokens, inputs.get("labels")

    def _scored(self, batch: dict) -> dict:
        """The batch without `label_weights` where `args.stop_on` is `undiscounted`."""
        if self.args.stop_on == "discounted":
            return batch
        return {name: tensor for name, tensor in batch.items() if name != "label_weights"}

    def summed_loss(self, batch: dict) -> float:
        """The loss of a batch, summed over its target tokens; with `args.stop_on` `undiscounted` all have weight 1."""
        return self.model(**self._scored(batch), num_items_in_batch=1, skip_logits=True).loss.item()

    def train(self, resume_from_checkpoint: str | bool | None = None, **kwargs):
        """As `Seq2SeqTrainer.train`; `True` is the last complete checkpoint.

        Raises `ValueError` for other training data, and a number of processes that cannot go on.
        """
        if resume_from_checkpoint is True:
            resume_from_checkpoint = self.last_checkpoint()
            if resume_from_checkpoint is None:
                raise ValueError(f"{self.args.output_dir}: no complete checkpoint to resume from; start the run again")
        if resume_from_checkpoint:
            self._adopt(resume_from_checkpoint)
        return super().train(resume_from_checkpoint, **kwargs)

    def last_checkpoint(self) -> str | None:
        """The last complete checkpoint; None without one."""
        steps = checkpoint_steps(self.args.output_dir)
        return str(checkpoint_path(self.args.output_dir, steps[-1])) if steps else None

    def _adopt(self, checkpoint: str) -> None:
        """Check that the run of a checkpoint can go on here, with the batches it had in every update."""
        run = saved_run(checkpoint)
        if not any((Path(checkpoint) / name).exists() for name in (OPTIMIZER_NAME, OPTIMIZER_NAME_BIN)):
            raise ValueError(
                f"{checkpoint} was saved without {OPTIMIZER_NAME} (save_only_model): training cannot go on from it, "
                "but its weights are whole; begin a new run with them"
            )
        names = {"data": f"{self.data_name}: the training data", "validation": "the validation data"}
        for field, name in names.items():
            there, here = getattr(run, field), self.data_fingerprints[field]
            if there and here and there != here:
                raise ValueError(
                    f"{name} changed since {checkpoint} (fingerprint {there[:12]}, now {here[:12]}); restore it, "
                    "or start a new run in another folder"
                )
        before, now = run.batch_processes, self.args.world_size
        accumulation = run.accumulation or self.args.gradient_accumulation_steps
        if before != now:
            steps = self.steps_per_epoch(before)
            try:
                if steps is None:
                    raise ValueError("each of them has its own state")
                self.args.gradient_accumulation_steps = accumulation_for(now, before, accumulation, steps)
            except ValueError as error:
                raise ValueError(
                    f"{checkpoint} was written by a run of {before} processes, this one has {now}, and {error}; resume "
                    f"with {before}"
                ) from error
            self.batch_processes = before
        if run.processes != now and self.is_world_process_zero():
            print(
                f"{checkpoint} was saved by {run.processes} processes, now there are {now}: every update has the "
                "same batches, dropout has other random numbers",
                file=sys.stderr,
            )

    @cached_property
    def data_fingerprints(self) -> dict[str, str | None]:
        """The digests of training (`data`) and validation data, if they have one."""
        return {"data": fingerprint_of(self.train_dataset), "validation": fingerprint_of(self.eval_dataset)}

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None and saved_run(checkpoint).processes != self.args.world_size:
            set_seed(self.args.seed + self.state.global_step)
        else:
            super()._load_rng_state(checkpoint)

    def _issue_warnings_after_load(self, load_result) -> None:
        """Tied weights are saved once; their other names are not missing keys."""
        load_result.missing_keys[:] = [
            name for name in load_result.missing_keys if name not in self.model.all_tied_weights_keys
        ]
        super()._issue_warnings_after_load(load_result)

    def _save_checkpoint(self, model, trial) -> None:
        """Save, name it when all is on the disk, then delete what is not needed: a failure leaves the ones before.

        The Trainer saves in the `output_dir` of its arguments, which is another one until then.
        """
        output, is_pushed = self.args.output_dir, self.args.push_to_hub
        unfinished, folder = Path(output) / UNFINISHED, checkpoint_path(output, self.state.global_step)
        with explain_write_errors(folder):
            if self.args.should_save:
                accumulation = self.args.world_size * self.args.gradient_accumulation_steps // self.batch_processes
                run = SavedRun(self.args.world_size, self.batch_processes, accumulation, **self.data_fingerprints)
                self.state.stateful_callbacks[SAVED_RUN] = asdict(run)
                shutil.rmtree(unfinished, ignore_errors=True)  # of a run that was killed
            self.accelerator.wait_for_everyone()
            self.args.output_dir, self.args.push_to_hub = str(unfinished), False
            try:
                super()._save_checkpoint(model, trial)
            finally:
                self.args.output_dir, self.args.push_to_hub = output, is_pushed
            if self.state.best_global_step:
                self.state.best_model_checkpoint = str(checkpoint_path(output, self.state.best_global_step))
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                self.state.save_to_json(str(unfinished / folder.name / TRAINER_STATE_NAME))
                complete_checkpoint(unfinished / folder.name, folder)
                shutil.rmtree(unfinished, ignore_errors=True)
                remove_unneeded(output, self.state.best_global_step, self.args.average)
            self.accelerator.wait_for_everyone()
        if is_pushed:
            self._push_from_checkpoint(str(folder))


def fingerprint_of(data) -> str | None:
    """The digest of a data set, or of several data sets by name; None if one has none."""
    if not isinstance(data, dict):
        return getattr(data, "fingerprint", None)
    fingerprints = {name: fingerprint_of(part) for name, part in data.items()}
    return None if None in fingerprints.values() else text_digest(json.dumps(fingerprints, sort_keys=True))


def trainer_card(draft: str, model, name: str) -> str:
    """The card of a model, or of a model with an adapter, by its name on the Hub.

    The header's facts (data, licence, scores) and the section of the training are kept from `draft`, which the trainer
    of transformers writes.
    """
    adapter = getattr(model, "peft_config", {}).get("default")
    text = ModelCardText(model.config, name, ["peft"] if adapter else None)
    fields = ModelCard(draft).data.to_dict()
    tags = [*text.metadata()["tags"], *(fields.get("tags") or [])]
    fields |= text.metadata() | {"tags": list(dict.fromkeys(tags))}
    if adapter:
        fields["library_name"] = "peft"
        if HUB_NAME.fullmatch(adapter.base_model_name_or_path or ""):
            fields["base_model"] = adapter.base_model_name_or_path
    if not any(index.get("results") for index in fields.get("model-index") or ()):
        fields.pop("model-index", None)
    header = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)
    _, heading, procedure = draft.partition(PROCEDURE)
    return f"---\n{header}---\n\n{text.body()}\n\n{heading}{procedure}"


class ProgressOnStderr(ProgressCallback):
    """Progress bars on a terminal, and the losses as lines; all on standard error, standard output is for results."""

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        if state.is_world_process_zero:
            self.training_bar = tqdm(total=state.max_steps, dynamic_ncols=True, disable=None)  # None: if no terminal
            if (warmup := args.get_warmup_steps(state.max_steps)) > state.max_steps:
                text = f"the learning rate rises for {warmup} updates and there are {state.max_steps}, so it ends at "
                reached = f"{args.learning_rate * state.max_steps / warmup:.3g}, not {args.learning_rate:.3g}"
                tqdm.write(f"warning: {text}{reached}; give a lower training.warmup_steps", file=sys.stderr)
        self.current_step = 0

    def on_prediction_step(self, args, state, control, **kwargs) -> None:
        if sys.stderr.isatty():
            super().on_prediction_step(args, state, control, **kwargs)

    def on_log(self, args, state, control, logs: Mapping[str, float] | None = None, **kwargs) -> None:
        if state.is_world_process_zero and self.training_bar is not None:
            shown = [name for name in logs or {} if re.fullmatch("loss|eval_(.+_)?loss|learning_rate", name)]
            if shown:
                text = "  ".join(f"{name} {logs[name]:.4g}" for name in shown)
                steps = f"step {state.global_step} of {state.max_steps}"
                tqdm.write("  ".join(filter(None, (args.run_name, steps, text))), file=sys.stderr)
