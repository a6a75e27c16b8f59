"""Sentences as token ids, and token ids as texts for tables and pictures."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from hf_docmt.data.tokenized_documents import tokenize_sentences

UNREADABLE = "\ufffd"  # what a tokenizer makes of a part of a character
CONTINUED = "…"  # text of a token that continues a character


def sentence_ids(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Token ids of each sentence as in training, without special tokens. ValueError: no sentence, or an empty one."""
    if isinstance(texts, str) or not texts:
        raise ValueError(f"texts: got {texts!r}, expected a list of sentences; give at least one, as [text]")
    ids = tokenize_sentences([list(texts)], tokenizer, is_target=False).lists(0, len(texts))
    for number, (text, row) in enumerate(zip(texts, ids), 1):
        if not (text.strip() and row):
            raise ValueError(f"sentence {number} is empty: got {text!r}, expected text; leave it out")
    return ids


def token_texts(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> list[str]:
    """The text of each token. Where several tokens make one character, the first has it, the others CONTINUED."""
    texts, start = [], 0
    for end in range(1, len(ids) + 1):
        text = tokenizer.decode(ids[start:end])
        if UNREADABLE in text and end < len(ids) and ids[end] not in tokenizer.all_special_ids:
            continue
        texts += [text.strip() or tokenizer.convert_ids_to_tokens(ids[start]), *[CONTINUED] * (end - start - 1)]
        start = end
    return texts
