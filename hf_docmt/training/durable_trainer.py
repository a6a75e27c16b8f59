"""A trainer whose checkpoints are whole on the disk, and which resumes from the last one that is."""

import json
import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any

from accelerate.utils import broadcast_object_list
from transformers import Seq2SeqTrainer, set_seed
from transformers.trainer import OPTIMIZER_NAME, OPTIMIZER_NAME_BIN, SCHEDULER_NAME, TRAINER_STATE_NAME

from hf_docmt.adapters import ADAPTER_WEIGHTS
from hf_docmt.journal import text_digest
from hf_docmt.training.checkpoints import (
    INDEX,
    SHARDED_WEIGHTS,
    WEIGHTS,
    Manifest,
    check_checkpoint,
    checkpoint_path,
    explain_write_errors,
    last_usable_checkpoint,
    read_manifest,
    remove_checkpoint,
    remove_half_deleted,
    remove_unneeded,
    require_weights,
    write_manifest,
)
from hf_docmt.training.distributed import accumulation_for


class DurableTrainer(Seq2SeqTrainer):
    """`Seq2SeqTrainer` with checkpoints that survive kills, power cuts and damage.

    A manifest marks a checkpoint as complete when all of it is on the disk; then those that are not needed any more are
    deleted, but for the last two. Resuming (`train(resume_from_checkpoint=True)`) takes the last one whose files are
    all as they were written: weights, optimizer, scheduler, random state, trainer state.

    A run may go on with another number of processes where every update can have the same batches as before, so that
    it equals one with the old number up to rounding and the random numbers of dropout; else it is refused. Other
    training and validation data (their `fingerprint`, if there is one) are refused, too; `data_name` names the former
    in the error.
    """

    def __init__(self, *args, data_name: str = "train_dataset", **kwargs):
        super().__init__(*args, **kwargs)
        self.data_name = data_name
        self.batch_processes = self.args.world_size  # that batches are made for; another after resuming with others
        self._checked: str | None = None  # checkpoint that was found to be whole

    # Resuming

    def train(self, resume_from_checkpoint: str | bool | None = None, **kwargs):
        """As `Seq2SeqTrainer.train`; `True` is the last usable checkpoint.

        Raises `ValueError` for a damaged checkpoint, other training data, and a number of processes that cannot go on.
        """
        if resume_from_checkpoint is True:
            resume_from_checkpoint = self.last_checkpoint()
            if resume_from_checkpoint is None:
                raise ValueError(f"{self.args.output_dir}: no complete checkpoint to resume from; start the run anew")
        elif resume_from_checkpoint and resume_from_checkpoint != self._checked:
            path = resume_from_checkpoint
            self._in_main_process(lambda: check_checkpoint(path, self.checkpoint_files).processes)
            self._adopt(path)
        self._checked = None
        if self.args.should_save:
            remove_half_deleted(self.args.output_dir)
        return super().train(resume_from_checkpoint, **kwargs)

    def last_checkpoint(self) -> str | None:
        """The last usable checkpoint, found by the main process; None where none is complete. Raises as `train`."""
        path = self._in_main_process(lambda: last_usable_checkpoint(self.args.output_dir, self.checkpoint_files))
        if path is None:
            return None
        self._adopt(str(path))
        return str(path)

    def checkpoint_files(self, processes: int) -> list[tuple[str, ...]]:
        """What a checkpoint of so many processes must have, one file of each tuple."""
        fsdp = self.is_fsdp_enabled
        ranks = [""] if processes == 1 else [f"_{rank}" for rank in range(processes)]
        return [
            (SHARDED_WEIGHTS,) if fsdp else (WEIGHTS, INDEX, ADAPTER_WEIGHTS),
            (OPTIMIZER_NAME_BIN if fsdp else OPTIMIZER_NAME,),
            (SCHEDULER_NAME,),
            (TRAINER_STATE_NAME,),
            *((f"rng_state{rank}.pth",) for rank in ranks),
        ]

    def steps_per_epoch(self, processes: int) -> int | None:
        """Batches of a process in an epoch of a run with so many; None where they are not shared in another way."""
        return None

    def _adopt(self, checkpoint: str) -> None:
        """Check that the run of a checkpoint can go on here, with the batches it had in every update."""
        manifest = read_manifest(checkpoint)
        fingerprints = self._in_main_process(lambda: self.data_fingerprints)
        names = {"data": f"{self.data_name}: not the training data", "validation": "not the validation data"}
        for field, name in names.items():
            there, here = getattr(manifest, field), fingerprints[field]
            if there and here and there != here:
                raise ValueError(
                    f"{name} of {checkpoint} (fingerprint {there[:12]} there, {here[:12]} here); restore the files of "
                    "then, or start a new run in another folder"
                )
        before, now = manifest.batch_processes, self.args.world_size
        accumulation = manifest.accumulation or self.args.gradient_accumulation_steps
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
        if manifest.processes != now and self.is_world_process_zero():
            print(
                f"{checkpoint} was saved by {manifest.processes} processes, now there are {now}: every update has the "
                "same batches, dropout has other random numbers",
                file=sys.stderr,
            )
        self._checked = checkpoint

    @cached_property
    def data_fingerprints(self) -> dict[str, str | None]:
        """Those of training (`data`) and validation data, of data that have one."""
        return {"data": fingerprint_of(self.train_dataset), "validation": fingerprint_of(self.eval_dataset)}

    def _in_main_process(self, find: Callable[[], Any]) -> Any:
        """What `find` returns in the main process, for all; an error there is one everywhere."""
        answer = [None, None]
        if self.is_world_process_zero():
            try:
                answer = [find(), None]
            except ValueError as error:
                answer = [None, str(error)]
        result, problem = broadcast_object_list(answer)
        if problem is not None:
            raise ValueError(problem)
        return result

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None and read_manifest(checkpoint).processes != self.args.world_size:
            set_seed(self.args.seed + self.state.global_step)
        else:
            super()._load_rng_state(checkpoint)

    def _issue_warnings_after_load(self, load_result) -> None:
        """Tied weights are saved once; their other names are no missing keys."""
        load_result.missing_keys[:] = [
            name for name in load_result.missing_keys if name not in self.model.all_tied_weights_keys
        ]
        super()._issue_warnings_after_load(load_result)

    def _load_best_model(self) -> None:
        require_weights(self.state.best_model_checkpoint)
        super()._load_best_model()

    # Saving

    def _save_checkpoint(self, model, trial) -> None:
        """Save, mark as complete, then delete what is no longer needed: a failure leaves the earlier checkpoints."""
        folder = checkpoint_path(self.args.output_dir, self.state.global_step)
        with explain_write_errors(folder):
            if self.args.should_save:
                remove_checkpoint(folder)  # what an interrupted run has left, or a damaged one
            self.accelerator.wait_for_everyone()
            super()._save_checkpoint(model, trial)
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                processes = self.args.world_size
                accumulation = processes * self.args.gradient_accumulation_steps // self.batch_processes
                manifest = Manifest(processes, self.batch_processes, accumulation, **self.data_fingerprints)
                write_manifest(folder, manifest)
                remove_unneeded(self.args.output_dir, self.state.best_global_step, self.args.average)


def fingerprint_of(data) -> str | None:
    """That of a data set, or one of several data sets by name; None where one has none."""
    if not isinstance(data, dict):
        return getattr(data, "fingerprint", None)
    fingerprints = {name: fingerprint_of(part) for name, part in data.items()}
    return None if None in fingerprints.values() else text_digest(json.dumps(fingerprints, sort_keys=True))
