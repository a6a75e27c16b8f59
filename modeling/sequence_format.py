"""The tokens of languages and ends around the sentences of a sequence, and where a document is cut into chunks."""

from bisect import bisect_left
from difflib import get_close_matches
from itertools import accumulate, count, pairwise
from typing import NamedTuple


def chunk_cuts(lengths: list[int], limit: int) -> list[int]:
    """Borders, from 0 to the number of sentences, of chunks of about equal length (Herold and Ney 2023, section 3.2).

    As few chunks as possible whose cuts, at the sentence borders nearest to equal shares, leave none longer than
    `limit`. `lengths`: tokens of each sentence, its separator included; one that is longer raises the limit.
    """
    if not lengths:
        return [0]
    borders = [0, *accumulate(lengths)]
    limit, total = max(limit, *lengths), borders[-1]
    for parts in count(-(-total // limit)):
        shares = [total * part / parts for part in range(parts + 1)]
        cuts = sorted({nearest(borders, share) for share in shares})
        if all(borders[end] - borders[first] <= limit for first, end in pairwise(cuts)):
            return cuts


def nearest(borders: list[int], share: float) -> int:
    """Index of the border nearest to `share`, the first of two that are equally near."""
    after = min(max(bisect_left(borders, share), 1), len(borders) - 1)
    return after - (share - borders[after - 1] <= borders[after] - share)


# Special tokens and language codes around sentences


SENTENCES = "X"
LANGUAGES = ("source_lang", "target_lang")
TOKENS = {"<start>": "decoder_start_token_id", "<s>": "bos_token_id", "</s>": "eos_token_id"}
SOURCE_TOKENS = ("<s>", "</s>", "[source_lang]", "[target_lang]")
TARGET_TOKENS = ("<start>", "<s>", "</s>", "[target_lang]")
ISO_639 = dict(  # two letters and three, for hints
    pair.split("=")
    for pair in (
        "ar=arb cs=ces da=dan de=deu el=ell en=eng es=spa et=est fi=fin fr=fra he=heb hi=hin hu=hun id=ind "
        "it=ita ja=jpn ko=kor nl=nld pl=pol pt=por ro=ron ru=rus sv=swe tr=tur uk=ukr vi=vie zh=zho"
    ).split()
)
EXAMPLE_LANGUAGES = ("eng", "deu", "fra", "spa", "zho")  # of codes that are named as examples


class SequenceFormat(NamedTuple):
    """Token ids around sentences, as the encoder reads a source, or a translation that is context.

    The decoder starts with `start`; then it is given `target_before`, which is excluded from the loss.
    """

    source_before: list[int]
    source_after: list[int]
    translation_before: list[int]
    translation_after: list[int]
    start: int
    target_before: list[int]

    def source(self, sentences: list[int]) -> list[int]:
        """Tokens of sentences as the encoder reads them."""
        return [*self.source_before, *sentences, *self.source_after]

    def translation(self, sentence: list[int]) -> list[int]:
        """Tokens of a translation as the encoder reads it."""
        return [*self.translation_before, *sentence, *self.translation_after]


def sequence_format(config, source_lang: str | None = None, target_lang: str | None = None) -> SequenceFormat:
    """The format of a configuration for two languages, by default its own. `ValueError`: see `checked_language`."""
    asked = {"source_lang": source_lang, "target_lang": target_lang}
    languages = {name: checked_language(config, name, asked[name]) for name in LANGUAGES}
    source, target = format_tokens(config.source_format), format_tokens(config.target_format)
    translation = languages | {"source_lang": languages["target_lang"]}
    start, *before = token_ids(config, target[0], languages)
    return SequenceFormat(
        *(token_ids(config, side, languages) for side in source),
        *(token_ids(config, side, translation) for side in source),
        start,
        before,
    )


def checked_language(config, name: str, asked: str | None) -> str | None:
    """The requested code, or that of the configuration.

    Raises `ValueError` for a code that is missing, unknown, or asked of a model without codes and not its own.
    """
    own, codes = getattr(config, name), config.language_ids or {}
    if not uses_language(config, name):
        if asked not in (None, own):
            own = f"its configuration says {own!r}" if own else "it has one language on this side"
            raise ValueError(f"{name}={asked!r}: this model has no codes for this side, {own}: omit {name}.")
        return own
    language, some_codes = asked or own, ", ".join(map(repr, sorted(codes)[:3]))
    if language is None:
        raise ValueError(
            f"{name} is missing: this model reads {config.source_format!r} and writes {config.target_format!r}, so it "
            f"needs to know its languages; give {name}, one of its {len(codes)} codes, such as {some_codes}."
        )
    if language not in codes:
        hint = closest_codes(language, codes)
        hint = f"did you mean {hint}?" if hint else f"give one such as {some_codes}."
        raise ValueError(f"{name}={language!r} is not one of the {len(codes)} language codes of this model; {hint}")
    return language


def language_codes(config, source_lang: str | None = None, target_lang: str | None = None) -> dict[str, str | None]:
    """`source_lang` and `target_lang`, where sequences contain a code; `ValueError`: see `checked_language`."""
    asked = {"source_lang": source_lang, "target_lang": target_lang}
    return {name: checked_language(config, name, asked[name]) for name in LANGUAGES if uses_language(config, name)}


def uses_language(config, name: str) -> bool:
    """Whether sequences contain the code of this language, `source_lang` or `target_lang`."""
    return f"[{name}]" in f"{config.source_format} {config.target_format}"


def some_codes(codes: dict[str, int]) -> str:
    """Three codes of a model, for messages."""
    return ", ".join(map(repr, example_codes(codes)[:3]))


def example_codes(codes) -> list[str]:
    """The codes of a model, widely spoken languages first."""
    order = {language: number for number, language in enumerate(EXAMPLE_LANGUAGES)}
    return sorted(codes, key=lambda code: (order.get(language_of(code), len(order)), code))


def language_of(code: str) -> str:
    """The language of a code, in three letters where these are known: `eng` of `eng_Latn`, `en_XX` and `>>eng<<`."""
    first = code.strip("<>_").lower().replace("-", "_").split("_")[0]
    return ISO_639.get(first, first)


def closest_codes(code: str, codes: dict[str, int]) -> str:
    """Codes that may be meant by an unknown one: spelled alike, or the same language with another script or region."""
    same = [other for other in codes if language_of(other) == language_of(code)]
    spelled = {other.lower(): other for other in codes}
    alike = get_close_matches(code.lower().replace("-", "_"), spelled, n=1, cutoff=0.75)
    return " or ".join(map(repr, [spelled[spelling] for spelling in alike] or same[:3]))


def token_ids(config, names: list[str], languages: dict[str, str | None]) -> list[int]:
    """Ids of tokens of a format."""
    ids = []
    for name in names:
        value = getattr(config, TOKENS[name]) if name in TOKENS else config.language_ids[languages[name[1:-1]]]
        ids.append(value[0] if isinstance(value, list) else value)  # several end tokens
    return ids


def format_tokens(text: str) -> tuple[list[str], list[str]]:
    """The tokens of a format before and after its sentences `X`."""
    before, _, after = text.partition(SENTENCES)
    return before.split(), after.split()


def check_format(config) -> None:
    """Raise `ValueError` for formats and language codes of a configuration that make no sequence."""
    for name, allowed in (("source_format", SOURCE_TOKENS), ("target_format", TARGET_TOKENS)):
        text = getattr(config, name)
        tokens = text.split()
        unknown = [token for token in tokens if token not in (*allowed, SENTENCES)]
        if unknown or tokens.count(SENTENCES) != 1:
            raise ValueError(
                f"{name} must be the sentences {SENTENCES} among tokens of {', '.join(allowed)}, parted by blanks; got "
                f"{text!r}."
            )
    before, after = format_tokens(config.target_format)
    if not before or "<start>" in before[1:] or after != ["</s>"]:
        raise ValueError(
            "target_format must begin with the token that the decoder starts with and end with X </s>, such as "
            f"'<start> X </s>' or '[target_lang] X </s>'; got {config.target_format!r}."
        )
    if "</s>" not in format_tokens(config.source_format)[1]:
        raise ValueError(f"source_format must have </s> after the sentences, got {config.source_format!r}.")
    for name in LANGUAGES:
        if not uses_language(config, name):
            continue
        if not config.language_ids:
            raise ValueError(f"language_ids must give an id to every language code, as {name} is in use; got none.")
        if getattr(config, name) is not None:
            checked_language(config, name, None)
    for code, token in (config.language_ids or {}).items():
        if not isinstance(code, str) or type(token) is not int or not 0 <= token < config.vocab_size:
            size = config.vocab_size
            raise ValueError(f"language_ids must have ids below vocab_size={size}, got {token!r} for {code!r}.")
