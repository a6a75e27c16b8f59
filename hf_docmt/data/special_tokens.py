"""The special tokens that a tokenizer of transformers puts around a text, and the sequence formats of families."""

import copy
import re
from typing import NamedTuple

from transformers import PreTrainedTokenizerBase

CODE = re.compile(r"[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")  # deu_Latn, de_DE
MARIAN_CODE = re.compile(r">>(.+)<<")


class SpecialTokens(NamedTuple):
    """Special tokens before and after a text, as the tokenizer sets them: language codes, end tokens."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def special_tokens_of(tokenizer: PreTrainedTokenizerBase, *, is_target: bool) -> SpecialTokens:
    """The special tokens of a source text, or of a target text (`text_target`), found by tokenizing one letter."""
    side = {"text_target" if is_target else "text": "a"}
    whole, plain = tokenizer(**side)["input_ids"], tokenizer(**side, add_special_tokens=False)["input_ids"]
    for start in range(len(whole) - len(plain) + 1):
        if plain and whole[start : start + len(plain)] == plain:
            return SpecialTokens(tuple(whole[:start]), tuple(whole[start + len(plain) :]))
    raise ValueError(
        f"{type(tokenizer).__name__}: the tokens {plain} of a text are not among those with special tokens, {whole}; "
        "it cannot be used for joined sentences"
    )


def sequence_format_fields(model_type: str, tokenizer: PreTrainedTokenizerBase) -> dict:
    """`source_format`, `target_format` and `language_ids` of `DocMTConfig` for a family of models and its tokenizer.

    The source is the tokenizer's format of a text, the target the format that the family generates: M2M-100 and
    NLLB-200 start with `</s>` and are given the code, mBART starts with the code. A Marian tokenizer with codes such as
    `>>deu<<` has them in front of the source; where it names its languages, `source_lang` and `target_lang` are filled
    in, too, as codes of the family always are left to the caller. ValueError: codes that the tokenizer knows no place
    for, and texts that do not end in its end token.

    >>> sequence_format_fields("m2m_100", tokenizer)["target_format"]
    '<start> [target_lang] X </s>'
    """
    codes = language_ids(tokenizer)
    if model_type == "marian":
        names = {name: getattr(tokenizer, name, None) for name in ("source_lang", "target_lang")}
        named = {name: language for name, language in names.items() if language}
        return {"source_format": "[target_lang] X </s>", "language_ids": codes} if codes else named
    if codes:
        return _fields_with_codes(model_type, tokenizer, codes)
    around = special_tokens_of(tokenizer, is_target=False)
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    if around == ((bos,), (eos,)):
        return {"source_format": "<s> X </s>", "target_format": "<start> <s> X </s>"}
    if around.after != (eos,):
        behind = tokenizer.convert_ids_to_tokens(list(around.after))
        raise ValueError(
            f"{type(tokenizer).__name__} puts {behind} after a text, expected its eos_token ({tokenizer.eos_token}); "
            "set eos_token to what it puts, or give it a post-processor"
        )
    return {}


def language_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """The language codes of a tokenizer with their ids, in the family's own spelling; none where it has none."""
    if hasattr(tokenizer, "lang_code_to_id"):  # M2M-100, mBART
        return dict(tokenizer.lang_code_to_id)
    if hasattr(tokenizer, "supported_language_codes"):  # Marian
        codes = {MARIAN_CODE.fullmatch(token): index for token, index in tokenizer.encoder.items()}
        return {match[1]: index for match, index in codes.items() if match}
    if not hasattr(tokenizer, "src_lang"):
        return {}
    codes = [token for token in tokenizer.all_special_tokens if CODE.fullmatch(token)]  # NLLB
    return {code: tokenizer.convert_tokens_to_ids(code) for code in codes}


def _fields_with_codes(model_type: str, tokenizer: PreTrainedTokenizerBase, codes: dict[str, int]) -> dict:
    tokenizer, code = copy.deepcopy(tokenizer), next(iter(codes))
    tokenizer.src_lang = tokenizer.tgt_lang = code
    names = {codes[code]: "[source_lang]", tokenizer.eos_token_id: "</s>", tokenizer.bos_token_id: "<s>"}
    around = special_tokens_of(tokenizer, is_target=False)
    if unknown := {*around.before, *around.after} - names.keys():
        tokens = tokenizer.convert_ids_to_tokens(sorted(unknown))
        raise ValueError(f"{type(tokenizer).__name__} puts {tokens} around a text, expected a language code, <s>, </s>")
    before, after = ([names[token] for token in side] for side in around)
    starts_with_code = model_type == "mbart" and not around.before  # of 25 languages
    return {
        "source_format": " ".join([*before, "X", *after]),
        "target_format": "[target_lang] X </s>" if starts_with_code else "<start> [target_lang] X </s>",
        "language_ids": codes,
    }
