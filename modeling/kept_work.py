"""What was made of modules, kept as long as they are the same."""

from collections.abc import Callable, Iterator, Sequence
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


# Of modules of models that are in a scope: what the last work of theirs was given and made of, and this work
_seen: ContextVar[dict[nn.Module, tuple]] = ContextVar("seen")


@contextmanager
def unchanged_modules(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Scope in which these modules do not change, so that whether work is still that of them is looked at once."""
    seen = _seen.get({}) | dict.fromkeys(modules, ())
    token = _seen.set(seen)
    try:
        yield
    finally:
        _seen.reset(token)
        seen.clear()  # what copied the context in between is outside of the scope, too


def kept_work(
    make: Callable[[], Work],
    given,
    owner: nn.Module,
    *others: nn.Module,
    holds: Callable[[Work], bool] = lambda work: True,
) -> Work:
    """What `make` gives, again only if what is `given` or a module inside of these has changed, or it does not hold.

    A change is another module, parameter, class or attribute (an object that is another one), another number of hooks,
    other memory of a parameter, and what torch counts as a change of it.
    """
    seen = _seen.get({})
    last = seen.get(owner)
    if last and last[:-1] == (given, *others):
        return last[-1]
    kept = vars(owner).setdefault("_kept_work", Kept())
    objects, numbers = fingerprint(owner, *others)
    numbers.append(given)
    before, numbers_before, work = kept.state
    is_same = len(objects) == len(before) and numbers == numbers_before and all(map(is_, objects, before))
    if not is_same or not holds(work):
        work = make()
        kept.state = objects, numbers, work
    if owner in seen:
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
