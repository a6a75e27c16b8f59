"""Gradient of a sentence's loss at the words of earlier sentences, by distance (Feng et al. 2022, figure 4)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.memory_maps import (
    INPUTS,
    STACKS,
    Batch,
    document_batches,
    empty_memory,
    forward_step,
    has_sentence,
    memory_stacks,
)
from hf_docmt.analysis.model_runs import context_result
from hf_docmt.data.collators import IGNORE_INDEX
from hf_docmt.reports.result import Result
from hf_docmt.systems.attention_weights import forward_hooks
from hf_docmt.systems.model_system import evaluation_mode

DIGITS = 6  # significant ones, of the scores in a report

Words = tuple[Batch, dict[str, torch.Tensor]]  # a step, and the embeddings (B, T, D) of its tokens by side


@dataclass(frozen=True)
class Attribution:
    """Mean scores by distance in sentences, for `ranges` (first, last), both included; the first range is (0, 0).

    `source`, `target`: scores of the words of each side. `pairs`: number of sentence pairs behind each mean.
    """

    ranges: tuple[tuple[int, int], ...]
    source: tuple[float, ...]
    target: tuple[float, ...]
    pairs: tuple[int, ...]
    reach: int

    @property
    def both(self) -> tuple[float, ...]:
        """Sums of source and target."""
        return tuple(map(sum, zip(self.source, self.target)))

    @property
    def labels(self) -> tuple[str, ...]:
        """The ranges as texts, `1-10`, or `0` for a single distance."""
        return tuple(str(first) if first == last else f"{first}-{last}" for first, last in self.ranges)

    def result(self, dataset: str) -> Result:
        """The result of a report; the value is the mean over all distances but 0."""
        pairs = sum(self.pairs[1:])
        value = sum(score * n for score, n in zip(self.both[1:], self.pairs[1:])) / max(1, pairs)
        signature = {"gradient": "loss by embedding", "norm": 2, "tokens": "unique", "mean": "sentence pairs"}
        signature |= {"reach": self.reach, "step": self.ranges[1][1] - self.ranges[1][0] + 1, "target": "reference"}
        scores = zip(self.labels, self.both, self.pairs)
        parts = {f"distance={label}": (rounded(score), n) for label, score, n in scores}
        sides = {side: [rounded(score) for score in getattr(self, side)] for side in STACKS}
        details = {"distances": list(self.labels), **sides}
        return context_result("gradient attribution", rounded(value), pairs, dataset, signature, parts, details)


def gradient_attribution(
    model: PreTrainedModel,
    documents: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    *,
    reach: int = 100,
    step: int = 10,
    rows: int = 8,
) -> Attribution:
    """Gradients of a sentence's loss with respect to the embeddings of words up to `reach` sentences before it.

    Feng et al. (2022), section 5.2: Score(k) = Avg(sum over documents and sentences s, i, with i - s in the range k, of
    G(s, i)), where G is the gradient that the loss of sentence i has at the words of sentence s, and within a range a
    word counts once. Here the loss is the cross-entropy per target token in nats, references forced, without dropout
    and smoothing; the gradients at all occurrences of a word within the range are added up, as they are in a row of the
    embedding matrix, and the Euclidean norms of the sums, one for each word, are added up and divided by the sentences.
    The gradient passes through the memory without truncation, whatever training truncated.

    Departures: ranges are 1 to `step`, `step` + 1 to 2 `step`, … (paper: 10 and overlapping by one sentence), and
    distance 0, the sentence itself, is a range of its own, since it needs no memory; a word's gradient there is not
    added to its gradient further back. `</s>` and other special tokens are not counted as words. Source and target are
    separate. `rows` documents are read at once. ValueError: no memory, no document longer than one sentence, `reach`
    or `step` that is not a whole number from 1.
    """
    memory_stacks(model)
    for name, number in (("reach", reach), ("step", step)):
        if not isinstance(number, int) or number < 1:
            raise ValueError(f"{name} is a number of sentences, at least 1; got {number!r}")
    longest = max(map(len, documents["translation"]))
    if longest < 2:
        raise ValueError("no document has more than one sentence, so there are no earlier ones; give whole documents")
    reach = min(reach, longest - 1)
    firsts = range(1, reach + 1, step)
    ranges = [(0, 0), *((first, min(first + step - 1, reach)) for first in firsts)]
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id} | {model.config.decoder_start_token_id}
    special |= set((model.config.language_ids or {}).values())
    special = torch.tensor(sorted(special), device=model.device)
    sums, pairs = {side: [0.0] * len(ranges) for side in INPUTS}, [0] * len(ranges)
    with embedding_gradients(model) as embeddings:
        for steps in document_batches(model, documents, tokenizer, rows):
            for earlier, loss in sentence_losses(model, steps, embeddings, reach):
                leaves = [leaf[side] for side in INPUTS for _, leaf in earlier]
                gradients = torch.autograd.grad(loss, leaves, retain_graph=True, materialize_grads=True)
                by_side = dict(zip(INPUTS, (gradients[: len(earlier)], gradients[len(earlier) :])))
                for number, (first, last) in enumerate(ranges):
                    near = slice(first, last + 1)
                    pairs[number] += int(has_sentence(earlier[0][0]).sum()) * len(earlier[near])
                    for side, name in INPUTS.items():
                        ids = [step[name] for step, _ in earlier[near]]
                        sums[side][number] += word_norms(ids, by_side[side][near], special)
    means = {side: tuple(total / n for total, n in zip(sums[side], pairs)) for side in INPUTS}
    return Attribution(tuple(ranges), **means, pairs=tuple(pairs), reach=reach)


def sentence_losses(
    model: PreTrainedModel, steps: list[Batch], embeddings: list[torch.Tensor], reach: int
) -> Iterator[tuple[list[Words], torch.Tensor]]:
    """For each step: it and up to `reach` steps before, nearest first, with their embeddings, and the summed loss.

    `embeddings` is filled by `embedding_gradients`. A graph spans 2 `reach` sentences, of which the later half is
    scored: every sentence is read twice, and memory does not grow with the document.
    """
    before = empty_memory(model, len(steps[0]["labels"]))  # the state before the span
    for first in range(0, len(steps), reach):
        memory, words = before, []
        begin = max(0, first - reach)
        for index, step in enumerate(steps[begin : first + reach], begin):
            if index == first:
                before = {name: state.detach() for name, state in memory.items()}
            embeddings.clear()
            outputs, memory = forward_step(model, step, memory)
            words.append((step, dict(zip(INPUTS, embeddings, strict=True))))
            if index >= first:
                yield words[: -reach - 2 : -1], mean_losses(outputs.logits, step["labels"]).sum()


def mean_losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy per target token of each row, (B, T, V) and (B, T) -> (B,); 0 without one."""
    losses = torch.nn.functional.cross_entropy(logits.float().mT, labels, ignore_index=IGNORE_INDEX, reduction="none")
    return losses.sum(dim=1) / (labels != IGNORE_INDEX).sum(dim=1).clamp(min=1)


@contextmanager
def embedding_gradients(model: PreTrainedModel) -> Iterator[list[torch.Tensor]]:
    """The model without dropout, with gradients for token embeddings only; a forward pass appends them to the list."""
    embeddings: list[torch.Tensor] = []

    def make_leaf(module, inputs, output):
        embeddings.append(output.detach().requires_grad_())
        return embeddings[-1]

    tables = {getattr(model.model, name).embed_tokens for name in STACKS.values()}  # one module where they share it
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    model.requires_grad_(False)
    try:
        with evaluation_mode(model), forward_hooks((table, make_leaf) for table in tables), torch.enable_grad():
            yield embeddings
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


def word_norms(ids: list[torch.Tensor], gradients: Sequence[torch.Tensor], special: torch.Tensor) -> float:
    """The norms of the summed gradients of each word in each row: ids (B, T), gradients (B, T, D) of sentences.

    `special` are the token ids that are not words.
    """
    if not ids:
        return 0.0
    ids, gradients = torch.cat(ids, dim=1), torch.cat(list(gradients), dim=1)
    words = ~torch.isin(ids, special)
    rows = torch.arange(len(ids), device=ids.device)[:, None].expand_as(ids)
    unique, index = torch.stack([rows[words], ids[words]]).unique(dim=1, return_inverse=True)  # (2, words)
    summed = gradients.new_zeros(unique.shape[1], gradients.shape[2], dtype=torch.double)
    summed.index_add_(0, index, gradients[words].double())
    return float(summed.norm(dim=1).sum())


def rounded(score: float) -> float:
    """The score with DIGITS significant digits."""
    return float(f"{score:.{DIGITS}g}")
