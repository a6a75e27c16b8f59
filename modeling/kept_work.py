"""What was made of modules, kept as long as they are the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from operator import is_
from typing import TypeVar

import torch
from torch import nn

from .search import modules_of

Work = TypeVar("Work")


class Kept:
    """The last work on a module, and the state of the modules that it was made of; copies and pickles have none."""

    state: tuple[list, list, object] = ([], [], None)

    def __reduce__(self):
        return Kept, ()


_seen: ContextVar[dict[nn.Module, tuple] | None] = ContextVar("seen", default=None)  # work of this scope, by its owner


@contextmanager
def unchanged_modules() -> Iterator[None]:
    """Scope in which no module changes, so that whether work is still that of its modules is looked at once."""
    token = _seen.set({})
    try:
        yield
    finally:
        _seen.reset(token)


def kept_work(make: Callable[[], Work], given, owner: nn.Module, *others: nn.Module) -> Work:
    """What `make` gives, again only if what is `given` or a module inside of these has changed.

    A change is another module, parameter, class or attribute (an object that is another one), another number of hooks,
    other memory of a parameter, and what torch counts as a change of it.
    """
    seen = _seen.get()
    if seen is not None and seen.get(owner, ())[:-1] == (given, *others):
        return seen[owner][-1]
    kept = vars(owner).setdefault("_kept_work", Kept())
    objects, numbers = fingerprint(owner, *others)
    numbers.append(given)
    before, numbers_before, work = kept.state
    if len(objects) != len(before) or numbers != numbers_before or not all(map(is_, objects, before)):
        work = make()
        kept.state = objects, numbers, work
    if seen is not None:
        seen[owner] = (given, *others, work)
    return work


def fingerprint(*roots: nn.Module) -> tuple[list, list]:
    """All that makes up modules: objects, to be compared by identity, and numbers of their hooks and parameters."""
    objects: list = []
    numbers: list = []
    tensors: list[torch.Tensor] = []
    for module in modules_of(*roots):
        own, kind = module.__dict__, type(module)
        objects += (module, kind, kind.forward)
        objects += own.values()
        numbers.append(len(own["_forward_hooks"]) + len(own["_forward_pre_hooks"]))
        tensors += own["_parameters"].values()
    objects += tensors
    tensors = [tensor for tensor in tensors if tensor is not None]
    numbers += [tensor.data_ptr() for tensor in tensors]
    numbers += [0 if tensor.is_inference() else tensor._version for tensor in tensors]
    return objects, numbers
