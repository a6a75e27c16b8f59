"""What was made of modules, kept as long as they are the same."""

from collections.abc import Callable
from operator import is_
from typing import TypeVar

from torch import nn

Work = TypeVar("Work")
TABLES = ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks")


class Kept:
    """The last work on a module, and the state of the modules that it was made of; copies and pickles have none."""

    state: tuple[list, list, object] = ([], [], None)

    def __reduce__(self):
        return Kept, ()


def kept_work(make: Callable[[], Work], given, owner: nn.Module, *others: nn.Module) -> Work:
    """What `make` gives, again only if what is `given` or a module inside of these has changed.

    A change is another module, parameter, buffer, hook, class or attribute (an object that is another one), other
    memory of a parameter, and what torch counts as a change of it.
    """
    kept = vars(owner).setdefault("_kept_work", Kept())
    objects, numbers = fingerprint(owner, *others)
    numbers.append(given)
    before, numbers_before, work = kept.state
    if len(objects) != len(before) or numbers != numbers_before or not all(map(is_, objects, before)):
        work = make()
        kept.state = objects, numbers, work
    return work


def fingerprint(*roots: nn.Module) -> tuple[list, list]:
    """All that makes up modules: objects, to be compared by identity, and numbers of their parameters."""
    objects: list = []
    numbers: list = []
    for module in modules_of(*roots):
        own, kind = vars(module), type(module)
        objects += (kind, kind.forward, *own.values())
        for name in TABLES:
            if table := own[name]:
                objects += table.values()
        for parameter in own["_parameters"].values():
            if parameter is not None:
                numbers += (parameter.data_ptr(), 0 if parameter.is_inference() else parameter._version)
    return objects, numbers


def modules_of(*roots: nn.Module) -> list[nn.Module]:
    """These modules and all inside of them, in any order; one that stands in two places may come twice."""
    found, rest = [], list(roots)
    while rest:
        module = rest.pop()
        if module is not None:
            found.append(module)
            rest += module._modules.values()
    return found
