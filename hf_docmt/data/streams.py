"""Batches of documents read side by side, for models that carry a state from sentence to sentence."""

import heapq
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset as TorchDataset

from hf_docmt.data.collators import IGNORE_INDEX


class DocumentStreamSampler:
    """Batches of some steps of `rows` documents side by side; at every step each row has its next sentence.

    `documents`: the number of the document that each example belongs to, examples of a document next to each other, in
    order. A row goes through its documents one after the other and starts the next where one ends. A batch is a list of
    steps, a step a pair (numbers of examples, whether they are scored), the numbers -1 where a row has come to its end.
    How many steps of a batch are scored is drawn at random from 1 to `window` (Feng et al. 2022, section 5.3, the
    optimisation window), without `shuffle` it is `window`. Before them come the last `lead` steps of the previous
    batch, for the gradient of the memory; at the beginning they are all -1. With `window` None (`full` in the
    paper's figure 5) a batch has one whole document in every row, of about the same length, and needs no `lead`.

    Rows are filled so that they have about the same number of sentences; in every epoch the documents of a row come in
    another order, and documents of the same length may change rows. An epoch has the same number of batches in every
    process (`world_size`), and in every epoch. ValueError: more rows than documents, with `shuffle`.
    """

    def __init__(
        self,
        documents: Sequence[int] | np.ndarray,
        rows: int,
        window: int | None,
        *,
        lead: int = 0,
        seed: int = 0,
        shuffle: bool = True,
        rank: int = 0,
        world_size: int = 1,
    ):
        documents = np.asarray(documents)
        self.starts = np.concatenate([[0], np.flatnonzero(np.diff(documents)) + 1, [len(documents)]])
        self.lengths = np.diff(self.starts)  # sentences of every document
        if shuffle and rows * world_size > len(self.lengths):
            raise ValueError(
                f"{rows} documents side by side in {world_size} processes need {rows * world_size} documents, got "
                f"{len(self.lengths)}; lower training.stream.documents"
            )
        self.rows, self.window, self.lead = rows, window, lead
        self.seed, self.shuffle, self.epoch = seed, shuffle, 0
        self.own_rows = slice(rank * rows, (rank + 1) * rows)  # rows of this process among those of all
        self.all_rows = rows * world_size
        if window is None:
            self.batches = int(np.ceil(len(self.lengths) / self.all_rows))
            return
        self.row_documents = self._fill_rows(self.all_rows)
        self.steps = max(int(self.lengths[row].sum()) for row in self.row_documents)
        mean = (window + 1) / 2 if shuffle else window
        self.batches = int(np.ceil(self.steps / mean))

    def __len__(self) -> int:
        return self.batches

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[tuple[list[int], bool]]]:
        random = np.random.default_rng([self.seed, self.epoch])
        if self.window is None:
            yield from self._whole_documents(random)
            return
        rows = self._epoch_rows(random)[self.own_rows]
        table = self._table(rows, self.lead, self.steps)
        end = self.lead
        for size in self._sizes(random):
            begin, end = end, end + size
            yield [(table[:, step].tolist(), step >= begin) for step in range(begin - self.lead, end)]

    def _whole_documents(self, random: np.random.Generator) -> Iterator[list[tuple[list[int], bool]]]:
        """Batches of one document per row, of similar lengths; the number of steps is the same in every process."""
        order = np.argsort(-self.lengths, kind="stable")
        if self.shuffle:
            order = np.lexsort([random.random(len(self.lengths)), -self.lengths])
        groups = [order[first : first + self.all_rows] for first in range(0, len(order), self.all_rows)]
        for number in random.permutation(self.batches) if self.shuffle else range(self.batches):
            documents = random.permutation(groups[number]) if self.shuffle else groups[number]
            rows = [[document] for document in documents[self.own_rows]]
            table = self._table(rows, 0, self.lengths[documents].max())
            yield [(column.tolist(), True) for column in table.T]

    def _table(self, rows: Sequence[Sequence[int] | np.ndarray], lead: int, steps: int) -> np.ndarray:
        """The sentences of the documents of every row after `lead` empty steps, (rows, lead + steps), -1 = none."""
        table = np.full((self.rows, lead + steps), -1, dtype=np.int32)
        for row, documents in zip(table, rows):
            lengths = self.lengths[documents]
            ends = np.cumsum(lengths)
            order = np.arange(lengths.sum()) + np.repeat(self.starts[documents] - ends + lengths, lengths)
            row[lead : lead + len(order)] = order
        return table

    def _fill_rows(self, rows: int) -> list[np.ndarray]:
        """Documents of every row: the longest first, each to the row with the fewest sentences."""
        filled: list[list[int]] = [[] for _ in range(rows)]
        loads = [(0, row) for row in range(rows)]
        for document in np.argsort(-self.lengths, kind="stable"):
            load, row = heapq.heappop(loads)
            filled[row].append(int(document))
            heapq.heappush(loads, (load + int(self.lengths[document]), row))
        return [np.array(row, dtype=int) for row in filled]

    def _epoch_rows(self, random: np.random.Generator) -> list[np.ndarray]:
        if not self.shuffle:
            return [np.sort(row) for row in self.row_documents]
        other = np.arange(len(self.lengths))
        for length in np.unique(self.lengths):
            same = np.flatnonzero(self.lengths == length)
            other[same] = random.permutation(same)
        return [random.permutation(other[row]) for row in self.row_documents]

    def _sizes(self, random: np.random.Generator) -> np.ndarray:
        """Scored steps of every batch: numbers from 1 to `window` that make up the epoch."""
        if not self.shuffle:
            return np.minimum(self.window, self.steps - self.window * np.arange(self.batches))
        sizes = random.integers(1, self.window + 1, self.batches)
        while (missing := self.steps - sizes.sum()) != 0:
            change = 1 if missing > 0 else -1
            free = np.flatnonzero((sizes + change >= 1) & (sizes + change <= self.window))
            chosen = random.permutation(free)[: abs(missing)]
            share = abs(missing) // len(chosen)  # of each, at least 1
            sizes[chosen] = np.clip(sizes[chosen] + change * share, 1, self.window)
        return sizes


class StreamExamples(TorchDataset):
    """Examples by steps, as `DocumentStreamSampler` gives them out: (examples or None of every row, scored)."""

    def __init__(self, examples: TorchDataset):
        self.examples = examples

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the examples."""
        return self.examples.fingerprint

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, step: tuple[list[int], bool]) -> tuple[list[dict | None], bool]:
        numbers, scored = step
        return [None if number < 0 else self.examples[number] for number in numbers], scored


class StreamCollator:
    """Steps to one batch: `collate` of every step, stacked to (steps, B, ...).

    `document_start` (steps, B) bool is true where a sentence starts a document. Labels of steps that are not scored,
    and of rows without a sentence, which get an empty one, are -100.
    """

    def __init__(self, collate: Callable[[list[dict]], dict[str, torch.Tensor]]):
        self.collate = collate

    def __call__(self, steps: list[tuple[list[dict | None], bool]]) -> dict[str, torch.Tensor]:
        batches = [self._step(*step) for step in steps]
        padding = {"input_ids": self.collate.pad, "decoder_input_ids": self.collate.pad, "labels": IGNORE_INDEX}
        return {name: stack_steps([batch[name] for batch in batches], padding.get(name, 0)) for name in batches[0]}

    def _step(self, rows: list[dict | None], scored: bool) -> dict[str, torch.Tensor]:
        no_sentence = {"source": [[]], "target": [[]], "current": 0, "index": 1, "document_start": False}
        examples = [no_sentence if row is None else row for row in rows]
        batch = self.collate(examples)
        batch["document_start"] = torch.tensor([example["document_start"] for example in examples])
        kept = torch.tensor([scored and row is not None for row in rows])
        batch["labels"] = batch["labels"].masked_fill(~kept[:, None], IGNORE_INDEX)
        return batch


def stack_steps(steps: list[torch.Tensor], padding: float) -> torch.Tensor:
    """(B,) or (B, T) each -> (steps, B) or (steps, B, longest T)."""
    if steps[0].dim() == 1:
        return torch.stack(steps)
    by_token = [step.mT for step in steps]  # (T, B)
    return pad_sequence(by_token, batch_first=True, padding_value=padding).mT.contiguous()  # (steps, B, longest T)


def split_steps(batch: dict[str, torch.Tensor]) -> Iterator[dict[str, torch.Tensor]]:
    """The steps of a batch of `StreamCollator`, without the padding that no row of a step needs."""
    masks = {"": batch["attention_mask"], "decoder_": batch["decoder_attention_mask"]}
    widths = {side: mask.sum(dim=2).amax(dim=1).tolist() for side, mask in masks.items()}
    for step in range(len(batch["labels"])):
        rows = {}
        for name, tensor in batch.items():
            side = "" if name in ("input_ids", "attention_mask") else "decoder_"
            rows[name] = tensor[step] if tensor.dim() == 2 else tensor[step, :, : widths[side][step]]
        yield rows
