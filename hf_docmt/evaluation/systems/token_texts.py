"""Tokens and the text they stand for: their strings, and the characters of a sentence that each one covers."""

import re
from collections.abc import Sequence
from os.path import commonprefix

from transformers import PreTrainedTokenizerBase

from hf_docmt.data.tokenized_documents import tokenize_sentences

WORD = re.compile(r"\w+|[^\w\s]+")  # letters and digits, or a run of punctuation
UNBROKEN = re.compile(r"\S+")


def piece_texts(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> list[str]:
    """What every token adds to the decoded text, blanks included; special tokens by their names.

    A character that is cut into several tokens comes with the last of them, those before it show U+FFFD.
    """
    texts, before = [], ""
    for end in range(1, len(ids) + 1):
        text = tokenizer.decode(ids[:end], skip_special_tokens=False, clean_up_tokenization_spaces=False)
        texts.append(text[len(commonprefix([before, text])) :])
        before = text
    return texts


def piece_ids(tokenizer: PreTrainedTokenizerBase, text: str, *, is_target: bool) -> list[int]:
    """Token ids of a sentence without special tokens, as the scorer and training have them."""
    return tokenize_sentences([[text]], tokenizer, is_target=is_target).lists(0, 1)[0]


def piece_spans(tokenizer: PreTrainedTokenizerBase, text: str, *, is_target: bool) -> list[tuple[int, int]]:
    """(start, end) characters of every token of `piece_ids`; the blank before a word may be part of its first token.

    Tokenizers written in Python give no character offsets: there a token has those of its word, found by tokenizing
    the words between blanks one by one. ValueError where these tokens together are not those of the sentence.
    """
    if tokenizer.is_fast:
        side = {"text_target" if is_target else "text": text}
        found = tokenizer(
            **side, return_offsets_mapping=True, add_special_tokens=False, split_special_tokens=True, verbose=False
        )
        return [tuple(span) for span in found["offset_mapping"]]
    words = word_spans(text, UNBROKEN)
    pieces = [piece_ids(tokenizer, text[start:end], is_target=is_target) for start, end in words]
    if sum(pieces, []) != piece_ids(tokenizer, text, is_target=is_target):
        raise ValueError(
            f"{type(tokenizer).__name__} gives no characters for its tokens, and the tokens of the words "
            f"are not those of the sentence {text!r}; use a fast tokenizer"
        )
    return [word for word, ids in zip(words, pieces) for _ in ids]


def word_spans(text: str, pattern: re.Pattern = WORD) -> list[tuple[int, int]]:
    """(start, end) characters of the words of a text; a run of punctuation is a word of its own."""
    return [found.span() for found in pattern.finditer(text)]
