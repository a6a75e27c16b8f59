"""How much goes into a batch: what `max_tokens` of a recipe counts, and the target tokens that follow from it."""

from typing import Literal

import numpy as np

from hf_docmt.data.examples import Examples, check_choices

Budget = Literal["padded", "fairseq", "fairseq_current"]
BUDGETS = ("padded", "fairseq", "fairseq_current")
FILLED = 2 / 3  # of max_tokens, by an average batch of padded separate context
ROOM = 2  # most tokens of a batch in a budget of fairseq, padding included, over those of an average one without
FAIRSEQ_ROWS = 8  # fairseq's batches have a multiple of so many rows (required_batch_size_multiple)


def batch_budget(examples: Examples, max_tokens: int, budget: Budget = "padded") -> tuple[int, int | None]:
    """`max_tokens` and `target_tokens` of a `TokenBudgetBatchSampler` over `examples.side_lengths`.

    `padded`: `max_tokens` are all tokens of a batch, padding included, a bound of memory. Where context is an input of
    its own a batch has as many target tokens as fill 2/3 of it on average: batches are of equal weight, and few are
    cut short by the bound. Segments, whose context is in source and target, just fill it.

    `fairseq`: `max_tokens` are counted on the longer side of each example, context included, as fairseq does. Batches
    get as many target tokens as fairseq's have on average; the bound of memory is twice what these take on average.
    `fairseq_current` leaves the context out of the count where it is an input of its own.
    """
    check_choices(budget=(budget, BUDGETS))
    lengths = examples.side_lengths  # (examples, columns)
    tokens, targets = int(lengths.sum()), int(lengths[:, 1].sum())
    if budget == "padded":
        if lengths.shape[1] < 3:
            return max_tokens, None
        return max_tokens, max(1, int(FILLED * max_tokens * targets / tokens))
    sides = examples.side_lengths_with_context if budget == "fairseq" else lengths[:, :2]
    target_tokens = targets / fairseq_batches(sides, max_tokens)
    return round(ROOM * target_tokens * tokens / targets), round(target_tokens)


def fairseq_batches(lengths: np.ndarray, max_tokens: int) -> int:
    """The number of batches that fairseq makes of examples with so many source and target tokens, (examples, 2).

    It sorts by source, then target, and fills batches while rows * (longest side) <= max_tokens, then leaves off rows
    to a multiple of eight (`batch_by_size` in `fairseq/data/data_utils.py`).
    """
    longer = lengths.max(axis=1)[np.lexsort((lengths[:, 1], lengths[:, 0]))].astype(np.int64)  # (examples,)
    batches = start = 0
    while start < len(longer):
        rows = longer[start : start + max(1, max_tokens // int(longer[start]))]
        cost = np.maximum.accumulate(rows) * np.arange(1, len(rows) + 1)
        count = max(1, int(np.searchsorted(cost, max_tokens, side="right")))
        if start + count < len(longer) and count > FAIRSEQ_ROWS:
            count -= count % FAIRSEQ_ROWS
        start, batches = start + count, batches + 1
    return batches
