"""The trainer of models that carry a state: documents side by side, the memory passed from batch to batch."""

from collections import deque
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader

from hf_docmt.data.streams import DocumentStreamSampler, StreamCollator, StreamExamples, split_steps
from hf_docmt.training.trainer import DocMTTrainer

STATE = ("encoder_memory", "decoder_memory")


class StreamTrainer(DocMTTrainer):
    """`DocMTTrainer` for ordered documents (Feng et al. 2022, sections 3.4 and 5.3).

    A batch has some sentences of `args.stream_documents` documents, or whole documents (`args.stream_window` None).
    They are read in order, each with the memory that the one before has written. The gradient of the loss of sentence i
    reaches what was computed for sentences i - n + 1 to i, n = `args.memory_gradient`, and nothing before: for every
    loss the n - 1 sentences before it are read again, from a memory that is a constant (truncated backpropagation
    through time). So it is the same for every window, with memory on one side or both, in one layer or several; a
    sentence costs n forward and backward passes. A batch starts with the last n - 1 sentences of the previous one. The
    memory itself is passed on without end and saved with every checkpoint: a resumed run equals one
    without a break. What is held for the backward pass grows with the number of sentences in a batch.

    Departure: a blank sentence is read as an empty one in training; in translation it leaves the memory unchanged.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.memory: dict[str, torch.Tensor] = {}  # before the first sentence of the next batch; {} = initial
        self.eval_memory: dict[str, torch.Tensor] = {}

    @property
    def lead(self) -> int:
        """Sentences in front of a batch that are read for their memory alone; none where documents are read whole."""
        return 0 if self.args.stream_window is None else self.args.memory_gradient - 1

    def get_train_dataloader(self) -> DataLoader:
        sampler = DocumentStreamSampler(
            self.train_dataset.document,
            self.args.stream_documents,
            self.args.stream_window,
            lead=self.lead,
            seed=self.args.seed,
            rank=self.args.process_index,
            world_size=self.args.world_size,
        )
        return self._stream_loader(self.train_dataset, sampler)

    def get_eval_dataloader(self, eval_dataset=None) -> DataLoader:
        """Every sentence once; no document is read by two processes."""
        dataset = self.eval_examples(eval_dataset)
        documents = len(np.unique(dataset.document))
        rows = max(1, min(self.args.stream_documents, documents // self.args.world_size))
        processes = {"rank": self.args.process_index, "world_size": self.args.world_size}
        sampler = DocumentStreamSampler(dataset.document, rows, self.args.stream_window, shuffle=False, **processes)
        return self._stream_loader(dataset, sampler)

    def _stream_loader(self, dataset, sampler: DocumentStreamSampler) -> DataLoader:
        return self._loader(StreamExamples(dataset), sampler, StreamCollator(self.data_collator))

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """The sum over the sentences of a batch; afterwards `self.memory` is the state before the next batch."""
        losses = []
        memory = TruncatedMemory(model, self.memory, sentences=self.args.memory_gradient - 1)
        for step, sentence in enumerate(split_steps(inputs)):
            if step >= self.lead:
                batch = sentence | memory.before_next()
                loss, outputs = super().compute_loss(
                    model, batch, return_outputs=True, num_items_in_batch=num_items_in_batch
                )
                losses.append(loss)
            memory.append(sentence)
        self.memory = memory.before_recent
        return (sum(losses), outputs) if return_outputs else sum(losses)

    def evaluation_loop(self, dataloader, description, prediction_loss_only=None, *args, **kwargs):
        """Raises `ValueError` where predictions are asked for (`predict`, `compute_metrics`)."""
        if not prediction_loss_only:
            raise ValueError(
                "StreamTrainer computes losses, not predictions: remove compute_metrics and translate with "
                "model.translate_documents."
            )
        self.eval_memory = {}
        return super().evaluation_loop(dataloader, description, prediction_loss_only, *args, **kwargs)

    def summed_loss(self, batch: dict) -> float:
        total = 0.0
        for sentence in split_steps(batch):
            outputs = self.model(**sentence, **self.eval_memory, num_items_in_batch=1, skip_logits=True)
            total += outputs.loss.item()
            self.eval_memory = memory_after(outputs)
        return total

    def steps_per_epoch(self, processes: int) -> int | None:
        """None: a process goes on with the memory of its own rows."""
        return None

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)
        by_side = {name.removesuffix("_memory"): memory for name, memory in self.memory.items()}
        torch.save(by_side, self._memory_file(output_dir))

    def _load_rng_state(self, checkpoint: str | None) -> None:
        super()._load_rng_state(checkpoint)
        if checkpoint is not None:
            file = self._memory_file(checkpoint)
            by_side = torch.load(file, map_location="cpu", weights_only=True)  # torch knows no cpu:0 here
            self.memory = {f"{side}_memory": memory.to(self.args.device) for side, memory in by_side.items()}

    def _memory_file(self, folder: str) -> Path:
        return Path(folder) / f"memory_{self.args.process_index}.pt"


class TruncatedMemory:
    """The memory before each sentence, its gradient reaching the last `sentences` before it, and nothing before them.

    `memory` is the state before the first sentence, as `forward` takes it, without gradient; {} = initial.
    """

    def __init__(self, model: torch.nn.Module, memory: dict[str, torch.Tensor], sentences: int):
        self.model, self.sentences = model, sentences
        self.recent: deque[dict] = deque()  # the batches of the last sentences of every row
        self.before_recent = memory  # before the first of them, without gradient
        self.after_first: dict[str, torch.Tensor] = {}  # the same after it

    def before_next(self) -> dict[str, torch.Tensor]:
        """`encoder_memory` and `decoder_memory` (B, M, D) of the next sentence: the recent ones are read again."""
        memory = self.before_recent
        for number, sentence in enumerate(self.recent):
            inputs = {name: tensor for name, tensor in sentence.items() if name not in ("labels", "label_weights")}
            memory = memory_after(self.model(**inputs, **memory, use_cache=False, logits_to_keep=1))
            if number == 0:
                self.after_first = {name: state.detach() for name, state in memory.items()}
        return memory

    def append(self, sentence: dict[str, torch.Tensor]) -> None:
        """Take in a sentence of every row."""
        if len(self.recent) == self.sentences:
            self.before_recent = self.after_first
            self.recent.popleft()
        self.recent.append(sentence)


def memory_after(outputs) -> dict[str, torch.Tensor]:
    """The state (B, M, D) that a sentence of every row has left, as `forward` takes it for the next."""
    return {name: outputs[name] for name in STATE if outputs.get(name) is not None}
