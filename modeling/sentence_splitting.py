"""Token ids of sentences, over-long ones in parts, and what tokenizers do not read."""


def split_sentence(text: str, tokenizer, limit: int) -> list[list[int]]:
    """Ids of a sentence, cut at the blank nearest to its middle (or in the middle) until every part fits."""
    text = text.strip()
    ids = token_ids(text, tokenizer)
    if len(ids) <= limit or len(text) < 2:
        return [ids]
    middle = len(text) // 2
    blanks = [offset for offset, character in enumerate(text) if character.isspace() and 0 < offset < len(text) - 1]
    cut = min(blanks, key=lambda offset: abs(offset - middle), default=middle)
    return split_sentence(text[:cut], tokenizer, limit) + split_sentence(text[cut:], tokenizer, limit)


def token_ids(text: str, tokenizer) -> list[int]:
    """Ids of a text as in training: the name of a special token is read as text, or becomes the unknown token."""
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    unknown = tokenizer.unk_token_id
    if unknown is None:
        return ids
    special = {token for token in tokenizer.all_special_ids if token != unknown}
    return [unknown if token in special else token for token in ids]


def check_unicode(text: str, name: str) -> None:
    """ValueError for half of a surrogate pair, which tokenizers do not read; `name` says where the text stands."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} holds half of a surrogate pair, {text[error.start]!r}, which is not Unicode text: repair the "
            "escape or the encoding that it was read with."
        ) from error
