"""The trainer of models that carry a state: documents side by side, the memory passed from batch to batch."""

from collections import deque
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.utils.data import DataLoader

from hf_docmt.data.streams import DocumentStreamSampler, StreamCollator, StreamExamples, split_steps
from hf_docmt.training.trainer import DocMTTrainer

SIDES = ("encoder", "decoder")


class StreamTrainer(DocMTTrainer):
    """`DocMTTrainer` for ordered documents (Feng et al. 2022, section 3.4).

    A batch has some sentences of `args.stream_documents` documents. They are read in order, each with the memory that
    the one before has written. The gradient of a sentence's loss flows back through `args.memory_gradient` sentences,
    itself included (truncated backpropagation through time). Where several layers or both sides have a memory, a later
    one was written by states that had read an earlier one; each of these adds at most `memory_gradient` - 1 sentences.
    At the start of a batch the sentences before it are read again, so that its first losses reach as far back. The
    memory itself is passed on without end and saved with every checkpoint: a resumed run equals one without a break.
    What is held for the backward pass grows with the number of sentences in a batch.

    Departure: a blank sentence is read as an empty one in training; in translation it leaves the memory unchanged.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.memory: dict[str, torch.Tensor] | None = None  # before the first sentence of the next batch, by stack
        self.eval_memory: dict[str, torch.Tensor] | None = None

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
        """Every sentence once; no document is read by two processes."""
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
        """The sum over the sentences of a batch; afterwards `self.memory` is the state before the next batch."""
        losses = []
        model_with_memory = self.accelerator.unwrap_model(model).model
        memory = TruncatedMemory(model_with_memory, self.memory, keep=self.args.memory_gradient - 1)
        for sentence in split_steps(inputs):
            batch = sentence | memory.inputs()
            loss, outputs = super().compute_loss(
                model, batch, return_outputs=True, num_items_in_batch=num_items_in_batch
            )
            losses.append(loss)
            memory.append(sentence, batch, outputs)
        self.memory = memory.before_recent()
        return (sum(losses), outputs) if return_outputs else sum(losses)

    def evaluation_loop(self, dataloader, description, prediction_loss_only=None, *args, **kwargs):
        """Raises `ValueError` where predictions are asked for (`predict`, `compute_metrics`)."""
        if not prediction_loss_only:
            raise ValueError(
                "StreamTrainer computes losses, not predictions: leave compute_metrics out and translate with "
                "model.translate_documents."
            )
        self.eval_memory = None
        return super().evaluation_loop(dataloader, description, prediction_loss_only, *args, **kwargs)

    def summed_loss(self, batch: dict) -> float:
        total = 0.0
        memory = TruncatedMemory(self.model.model, self.eval_memory, keep=0)
        for sentence in split_steps(batch):
            inputs = sentence | memory.inputs()
            outputs = self.model(**inputs, num_items_in_batch=1)
            total += outputs.loss.item()
            memory.append(sentence, inputs, outputs)
        self.eval_memory = memory.before_recent()
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
class SentenceStep:
    """One sentence of every row after the model has read it, with what the memory after it is made of."""

    memory_before: dict[str, torch.Tensor | None]  # by stack, (B, M, D), without gradient
    states: dict[str, dict]  # by stack, what its layers hand to the memory, with gradient
    masks: dict[str, torch.Tensor]  # by stack, (B, L), 1 = token
    document_start: torch.Tensor  # (B,) bool


class TruncatedMemory:
    """The memory from sentence to sentence, its gradient truncated `keep` sentences back.

    `memory` is the state before the first sentence, by name of the stack (`encoder`, `decoder`); None or {} = initial.
    """

    def __init__(self, model: torch.nn.Module, memory: dict[str, torch.Tensor] | None, keep: int):
        self.stacks = {side: getattr(model, side) for side in SIDES if getattr(model, side).memory_layers}
        self.detached = memory or {}  # before the next sentence, without gradient
        self.recent: deque[SentenceStep] = deque(maxlen=keep)

    def inputs(self) -> dict[str, torch.Tensor]:
        """`encoder_memory` and `decoder_memory` (B, M, D) of the next sentence.

        They are computed again from the memory before the last `keep` sentences and from what these have written.
        """
        memory = self.detached
        if self.recent:
            memory = self.recent[0].memory_before
            for step in self.recent:
                memory = {side: self._updated(side, memory.get(side), step) for side in self.stacks}
        return {f"{side}_memory": state for side, state in memory.items()}

    def append(self, sentence: dict, inputs: dict, outputs) -> None:
        """Take in a sentence of every row: its batch, the batch with the memory, and the model's output."""
        self.detached = {side: outputs[f"{side}_memory"].detach() for side in self.stacks}
        self.recent.append(
            SentenceStep(
                {side: inputs[f"{side}_memory"].detach() for side in self.stacks if f"{side}_memory" in inputs},
                dict(zip(SIDES, outputs["memory_states"])),
                {"encoder": sentence["attention_mask"], "decoder": sentence["decoder_attention_mask"]},
                sentence["document_start"],
            )
        )

    def before_recent(self) -> dict[str, torch.Tensor]:
        """The memory before the last `keep` sentences, from which the next batch starts."""
        return self.recent[0].memory_before if self.recent else self.detached

    def _updated(self, side: str, memory: torch.Tensor | None, step: SentenceStep) -> torch.Tensor:
        """The memory (B, M, D) of one stack after a sentence."""
        stack = self.stacks[side]
        memory = stack.memory_before(memory, step.document_start, len(step.document_start))
        return stack.memory_after(memory, step.states[side], step.masks[side])
