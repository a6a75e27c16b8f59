"""The special tokens that a tokenizer of transformers puts around a text."""

from typing import NamedTuple

from transformers import PreTrainedTokenizerBase


class SpecialTokens(NamedTuple):
    """Special tokens before and after a text, as the tokenizer sets them: language codes, end tokens."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def special_tokens_of(tokenizer: PreTrainedTokenizerBase, *, is_target: bool) -> SpecialTokens:
    """Those of a source text, or of a target text (`text_target`), found by tokenizing one letter."""
    side = {"text_target" if is_target else "text": "a"}
    whole, plain = tokenizer(**side)["input_ids"], tokenizer(**side, add_special_tokens=False)["input_ids"]
    for start in range(len(whole) - len(plain) + 1):
        if plain and whole[start : start + len(plain)] == plain:
            return SpecialTokens(tuple(whole[:start]), tuple(whole[start + len(plain) :]))
    raise ValueError(
        f"{type(tokenizer).__name__}: the tokens {plain} of a text are not among those with special tokens, {whole}; "
        "it cannot be used for joined sentences"
    )
