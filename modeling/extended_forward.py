"""Models with a head that take more inputs than the backbone: their signature, and a warning where they are missing."""

from collections.abc import Callable
from inspect import Parameter, signature

from transformers.utils import logging

logger = logging.get_logger(__name__)


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


def warn_without_context(model, arguments: dict, by_hand: str) -> None:
    """Warn once where the arguments of `generate` have none of `model.context_arguments`, not even as None.

    Encoder outputs have read theirs. `by_hand` says how to give it.
    """
    names = model.context_arguments
    if "encoder_outputs" in arguments or any(name in arguments for name in names):
        return
    logger.warning_once(
        f"{type(model).__name__}.generate got no context: a sentence is translated as if it were alone. Documents: "
        'model.translate_documents([["The sentence before.", "This one."]], tokenizer). By hand: '
        f"{by_hand}. For sentences without context pass {names[0]}=None."
    )
