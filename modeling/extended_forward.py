"""`forward` of a model with a head that takes more inputs than the backbone's, all of them named in its signature."""

from collections.abc import Callable
from inspect import Parameter, signature


def with_inputs(base_forward: Callable, *names: str) -> Callable:
    """Decorator of `forward(self, *args, **kwargs)`: the signature of a base class, with more inputs that may be None.

    `generate` and transformers' `Trainer` pass on what the signature names.
    """
    base = signature(base_forward)
    *parameters, others = base.parameters.values()  # `others`: **kwargs
    own = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in names]

    def named(forward: Callable) -> Callable:
        forward.__signature__ = base.replace(parameters=[*parameters, *own, others])
        return forward

    return named
