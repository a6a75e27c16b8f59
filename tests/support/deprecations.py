"""What transformers logs as deprecated: most of it once a process, and all of it below the verbosity of tests."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import transformers.utils.logging  # noqa: F401  # gives loggers their warning_once

EXEMPT: dict[str, str] = {}  # a part of the message: why it cannot be helped
_LOGGED = {name: getattr(logging.Logger, name) for name in ("warning", "warning_once")}


@contextmanager
def logged_deprecations() -> Iterator[list[str]]:
    """The messages that transformers logs inside, each time that it would, whatever the level of its loggers.

    Inside another one, the inner one alone has them.
    """
    messages: list[str] = []
    outer = {name: getattr(logging.Logger, name) for name in _LOGGED}
    for name, original in _LOGGED.items():
        setattr(logging.Logger, name, _watched(original, messages))
    try:
        yield messages
    finally:
        for name, method in outer.items():
            setattr(logging.Logger, name, method)


def _watched(original, messages: list[str]):
    def log(self, message, *arguments, **options):
        text = str(message)
        is_exempt = any(part in text for part in EXEMPT)
        if self.name.startswith("transformers") and "deprecated" in text and not is_exempt:
            messages.append(text)
        return original(self, message, *arguments, **options)

    if hasattr(original, "cache_clear"):  # of what is logged once
        log.cache_clear = original.cache_clear
    return log
