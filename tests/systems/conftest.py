"""Tiny models of systems."""

from support.systems import llama, marian, tokenizer  # noqa: F401 (fixtures)
