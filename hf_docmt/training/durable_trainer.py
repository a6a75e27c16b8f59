"""A trainer whose checkpoints are whole on the disk, and which resumes from the last one that is."""

import json
import shutil
import sys
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

from transformers import Seq2SeqTrainer, set_seed
from transformers.trainer import OPTIMIZER_NAME, OPTIMIZER_NAME_BIN, TRAINER_STATE_NAME

from hf_docmt.journal import text_digest
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
from hf_docmt.training.distributed import accumulation_for

UNFINISHED = "unfinished"  # folder in which a checkpoint is saved


class DurableTrainer(Seq2SeqTrainer):
    """`Seq2SeqTrainer` with checkpoints that survive kills and power cuts.

    A checkpoint gets its name when all of it is on the disk; then those that are not needed any more are deleted, but
    for the last two. Resuming (`train(resume_from_checkpoint=True)`) takes the last one: weights, optimizer, scheduler,
    random state, trainer state.

    A run may go on with another number of processes where every update can have the same batches as before, so that
    it equals one with the old number up to rounding and the random numbers of dropout; else it is refused. Other
    training and validation data (their `fingerprint`, if there is one) are refused, too; `data_name` names the former
    in the error. What is compared is in the state that the trainer saves.
    """

    def __init__(self, *args, data_name: str = "train_dataset", **kwargs):
        super().__init__(*args, **kwargs)
        self.data_name = data_name
        self.batch_processes = self.args.world_size  # that batches are made for; another after resuming with others

    # Resuming

    def train(self, resume_from_checkpoint: str | bool | None = None, **kwargs):
        """As `Seq2SeqTrainer.train`; `True` is the last complete checkpoint.

        Raises `ValueError` for other training data, and a number of processes that cannot go on.
        """
        if resume_from_checkpoint is True:
            resume_from_checkpoint = self.last_checkpoint()
            if resume_from_checkpoint is None:
                raise ValueError(f"{self.args.output_dir}: no complete checkpoint to resume from; start the run anew")
        if resume_from_checkpoint:
            self._adopt(resume_from_checkpoint)
        return super().train(resume_from_checkpoint, **kwargs)

    def last_checkpoint(self) -> str | None:
        """The last complete checkpoint; None where there is none."""
        steps = checkpoint_steps(self.args.output_dir)
        return str(checkpoint_path(self.args.output_dir, steps[-1])) if steps else None

    def steps_per_epoch(self, processes: int) -> int | None:
        """Batches of a process in an epoch of a run with so many; None where they are not shared in another way."""
        return None

    def _adopt(self, checkpoint: str) -> None:
        """Check that the run of a checkpoint can go on here, with the batches it had in every update."""
        run = saved_run(checkpoint)
        if not any((Path(checkpoint) / name).exists() for name in (OPTIMIZER_NAME, OPTIMIZER_NAME_BIN)):
            raise ValueError(
                f"{checkpoint} was saved without {OPTIMIZER_NAME} (save_only_model): training cannot go on from it, "
                "but its weights are whole; begin a new run with them"
            )
        names = {"data": f"{self.data_name}: not the training data", "validation": "not the validation data"}
        for field, name in names.items():
            there, here = getattr(run, field), self.data_fingerprints[field]
            if there and here and there != here:
                raise ValueError(
                    f"{name} of {checkpoint} (fingerprint {there[:12]} there, {here[:12]} here); restore the files of "
                    "then, or start a new run in another folder"
                )
        before, now = run.batch_processes, self.args.world_size
        accumulation = run.accumulation or self.args.gradient_accumulation_steps
        if before != now:
            steps = self.steps_per_epoch(before)
            try:
                if steps is None:
                    raise ValueError("each of them has a state of its own")
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
        """Those of training (`data`) and validation data, of data that have one."""
        return {"data": fingerprint_of(self.train_dataset), "validation": fingerprint_of(self.eval_dataset)}

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None and saved_run(checkpoint).processes != self.args.world_size:
            set_seed(self.args.seed + self.state.global_step)
        else:
            super()._load_rng_state(checkpoint)

    def _issue_warnings_after_load(self, load_result) -> None:
        """Tied weights are saved once; their other names are no missing keys."""
        load_result.missing_keys[:] = [
            name for name in load_result.missing_keys if name not in self.model.all_tied_weights_keys
        ]
        super()._issue_warnings_after_load(load_result)

    # Saving

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
                unfinished.rmdir()
                remove_unneeded(output, self.state.best_global_step, self.args.average)
            self.accelerator.wait_for_everyone()
        if is_pushed:
            self._push_from_checkpoint(str(folder))


def fingerprint_of(data) -> str | None:
    """That of a data set, or one of several data sets by name; None where one has none."""
    if not isinstance(data, dict):
        return getattr(data, "fingerprint", None)
    fingerprints = {name: fingerprint_of(part) for name, part in data.items()}
    return None if None in fingerprints.values() else text_digest(json.dumps(fingerprints, sort_keys=True))
