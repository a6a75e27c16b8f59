"""The trainer of models that carry a state: documents side by side, the memory handed on from batch to batch."""

from collections import deque
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.utils.data import DataLoader

from hf_docmt.data.streams import DocumentStreamSampler, StreamCollator, StreamExamples, unstacked
from hf_docmt.training.trainer import DocMTTrainer

SIDES = ("encoder", "decoder")


class StreamTrainer(DocMTTrainer):
    """`DocMTTrainer` for ordered documents (Feng et al. 2022, section 3.4).

    A batch has some sentences of `args.stream_documents` documents, read one after the other, each with the memory that
    the one before has left. The loss of a sentence reaches back through `args.memory_gradient` sentences, itself
    included: each memory is cut from what came before that. Where several layers or both sides have a memory, a later
    one was written by states that had read an earlier one; each of these on the way adds at most `memory_gradient` - 1
    sentences. For the first sentences of a batch the ones before are read again. The memory itself is handed on without
    end, is saved with every checkpoint, and a run that goes on from there is the same as one without a break. What is
    held for the backward pass grows with the sentences of a batch.

    A blank sentence is read here as an empty one, while in translation it leaves the memory alone.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.memory: dict | None = None  # before the first step of the next batch
        self.eval_memory: dict | None = None

    # Batches

    def get_train_dataloader(self) -> DataLoader:
        sampler = DocumentStreamSampler(
            self.train_dataset.document,
            self.args.stream_documents,
            self.args.stream_window,
            lead=self.args.memory_gradient - 1,
            seed=self.args.seed,
            rank=self.args.process_index,
            world_size=self.args.world_size,
        )
        return self._stream_loader(self.train_dataset, sampler)

    def get_eval_dataloader(self, eval_dataset=None) -> DataLoader:
        """Every sentence once; each process has documents of its own."""
        dataset = self.eval_dataset if eval_dataset is None else eval_dataset
        documents = len(set(dataset.document.tolist()))
        rows = max(1, min(self.args.stream_documents, documents // self.args.world_size))
        processes = {"rank": self.args.process_index, "world_size": self.args.world_size}
        sampler = DocumentStreamSampler(dataset.document, rows, self.args.stream_window, shuffle=False, **processes)
        return self._stream_loader(dataset, sampler)

    def _stream_loader(self, dataset, sampler: DocumentStreamSampler) -> DataLoader:
        return self._loader(StreamExamples(dataset), sampler, StreamCollator(self.data_collator))

    # Loss

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """The sum over the steps of a batch; afterwards `self.memory` is the state before the next batch."""
        losses, keep = [], self.args.memory_gradient - 1
        walk = Walk(self.accelerator.unwrap_model(model).model, self.memory, keep)
        for step in unstacked(inputs):
            batch = step | walk.memory()
            loss, outputs = super().compute_loss(
                model, batch, return_outputs=True, num_items_in_batch=num_items_in_batch
            )
            losses.append(loss)
            walk.go_on(step, batch, outputs)
        self.memory = walk.earliest()
        return (sum(losses), outputs) if return_outputs else sum(losses)

    def evaluation_loop(self, dataloader, description, prediction_loss_only=None, *args, **kwargs):
        """Raises `ValueError` where predictions are asked for (`predict`, `compute_metrics`): only losses are known."""
        if not prediction_loss_only:
            raise ValueError(
                "predictions of ordered documents are not made here: leave compute_metrics out and translate with "
                "model.translate_documents."
            )
        self.eval_memory = None
        return super().evaluation_loop(dataloader, description, prediction_loss_only, *args, **kwargs)

    def summed_loss(self, batch: dict) -> float:
        total = 0.0
        walk = Walk(self.model.model, self.eval_memory, keep=0)
        for step in unstacked(batch):
            inputs = step | walk.memory()
            outputs = self.model(**inputs, num_items_in_batch=1)
            total += outputs.loss.item()
            walk.go_on(step, inputs, outputs)
        self.eval_memory = walk.earliest()
        return total

    # Checkpoints

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)
        torch.save(self.memory, self._memory_file(output_dir))

    def _load_rng_state(self, checkpoint: str | None) -> None:
        super()._load_rng_state(checkpoint)
        if checkpoint is not None:
            self.memory = torch.load(self._memory_file(checkpoint), map_location=self.args.device, weights_only=True)

    def _memory_file(self, folder: str) -> Path:
        return Path(folder) / f"memory_{self.args.process_index}.pt"


@dataclass
class Sentence:
    """A sentence of every row that was read: the memory before it, cut off, and what the next one is made of."""

    before: dict[str, torch.Tensor | None]
    states: dict[str, dict]
    masks: dict[str, torch.Tensor]
    start: torch.Tensor


class Walk:
    """The way of the memory through the steps of a batch, its gradient cut `keep` sentences back."""

    def __init__(self, model: torch.nn.Module, memory: dict | None, keep: int):
        self.stacks = {side: getattr(model, side) for side in SIDES if getattr(model, side).memory_layers}
        self.value = memory or {}  # before the next sentence, without gradient; empty = initial
        self.recent: deque[Sentence] = deque(maxlen=keep)

    def memory(self) -> dict[str, torch.Tensor]:
        """What the next sentence reads: the memory before the last `keep` sentences and what they have written."""
        memory = self.value
        if self.recent:
            memory = self.recent[0].before
            for sentence in self.recent:
                memory = {side: self.written(side, memory.get(side), sentence) for side in self.stacks}
        return {f"{side}_memory": state for side, state in memory.items()}

    def written(self, side: str, memory: torch.Tensor | None, sentence: Sentence) -> torch.Tensor:
        stack, states = self.stacks[side], sentence.states[side]
        memory = stack.memory_before(memory, sentence.start, len(sentence.start))
        return stack.memory_after(memory, states, sentence.masks[side])

    def go_on(self, step: dict, batch: dict, outputs) -> None:
        """Take note of a sentence that was read: its `step`, the `batch` with the memory, what came out."""
        before = {side: batch[f"{side}_memory"].detach() for side in self.stacks if f"{side}_memory" in batch}
        masks = {"encoder": step["attention_mask"], "decoder": step["decoder_attention_mask"]}
        states = dict(zip(SIDES, outputs["memory_states"]))
        self.value = {side: outputs[f"{side}_memory"].detach() for side in self.stacks}
        self.recent.append(Sentence(before, states, masks, step["document_start"]))

    def earliest(self) -> dict[str, torch.Tensor]:
        """The memory before the last `keep` sentences, from which the next batch goes on."""
        return self.recent[0].before if self.recent else self.value
