"""Several workers for one job: groups go to whoever is free, and their rows come out in the groups' order."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Protocol

import torch
from transformers.utils.logging import disable_progress_bar

from hf_docmt.plugins import load_plugins
from hf_docmt.remote_code import trust_remote_code
from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
from hf_docmt.translation.groups import Group

AHEAD = 4  # groups for each worker that are taken in before the first of them is given out; bounds the memory
END = Group(-1, -1, [])  # behind the last group
MAX_LOSSES = 3  # workers that one group may end before the job does


class WorkerPool(Protocol):
    """Workers that translate a group at a time."""

    size: int  # number of workers at the start

    def has_idle(self) -> bool:
        """Whether a worker can take a group now."""
        ...

    def submit(self, group: Group) -> None:
        """Give a group to an idle worker."""
        ...

    def wait(self) -> list[tuple[Group, list[dict] | None]]:
        """Wait for workers; groups with their rows, or with None where the worker was lost before it had them.

        No groups where a worker was only made ready. Raises what a translator raised, and `ChildProcessError` where no
        worker is left.
        """
        ...


def translate_in_order(groups: Iterable[Group | None], pool: WorkerPool) -> Iterator[list[dict]]:
    """The result rows of each group, in the groups' order.

    None among the groups says that none has arrived yet; what is done is then given out first. A group whose worker was
    lost (killed, out of memory, its machine gone) is given to another one, before all others; so its time is lost and
    nothing else. Raises `ChildProcessError` for a group that lost three workers, what the pool raises, and, after the
    rows of all groups before, what `groups` raises.
    """
    waiting = iter(groups)
    order: deque[int] = deque()  # numbers of the groups that were taken in, and are not given out
    rows_of: dict[int, list[dict]] = {}
    lost: deque[Group] = deque()
    losses: dict[int, int] = {}
    is_read, error = False, None
    while True:
        while order and order[0] in rows_of:
            yield rows_of.pop(order.popleft())
        while pool.has_idle() and (lost or not is_read and len(order) < AHEAD * pool.size):
            try:
                group = lost.popleft() if lost else next(waiting, END)
            except Exception as found:  # of reading
                group, error = END, found
            is_read |= group is END
            if group is None or group is END:
                break
            if group.number not in losses:
                order.append(group.number)
            losses.setdefault(group.number, 0)
            pool.submit(group)
        if is_read and not order:
            if error is not None:
                raise error
            return
        if not order and pool.has_idle():  # no group has arrived
            continue
        for group, rows in pool.wait():
            if rows is not None:
                rows_of[group.number] = rows
                del losses[group.number]
                continue
            losses[group.number] += 1
            if losses[group.number] == MAX_LOSSES:
                raise ChildProcessError(
                    f"{MAX_LOSSES} processes ended while they translated documents {group.rows[0]['doc_id']!r} to "
                    f"{group.rows[-1]['doc_id']!r}; look for a lack of memory (a smaller --batch-size helps)"
                )
            lost.append(group)


def worker_translator(settings: TranslationSettings, is_trusted: bool, threads: int | None) -> GroupTranslator:
    """The translator of a worker in a process of its own, with the plugins and the trust of the process of the job."""
    if threads is not None:
        torch.set_num_threads(threads)
    disable_progress_bar()
    load_plugins()
    with trust_remote_code(is_trusted):
        return GroupTranslator(settings)


def user_error(error: BaseException) -> Exception | None:
    """What a translator raised for the user to mend, as an error that every process can unpickle; else None."""
    for kind in (ValueError, OSError):
        if isinstance(error, kind):
            return kind(str(error))
    return None


def report_loss(group: Group) -> None:
    """Say on standard error that a worker was lost, and what it worked at."""
    first, last = group.rows[0]["doc_id"], group.rows[-1]["doc_id"]
    print(f"a process was lost; documents {first!r} to {last!r} go to another", file=sys.stderr, flush=True)
