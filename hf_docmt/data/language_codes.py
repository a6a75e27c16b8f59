"""The language that a code means, with or without script and region: `zh` for zh_CN, zho_Hans and cmn."""

from collections.abc import Iterable

_TWO_LETTERS = {"eng": "en", "deu": "de", "ger": "de", "fra": "fr", "fre": "fr", "rus": "ru", "spa": "es", "ita": "it"}
_TWO_LETTERS |= {"pol": "pl", "por": "pt", "jpn": "ja", "kor": "ko", "tha": "th", "lao": "lo", "khm": "km"}
_TWO_LETTERS |= {"mya": "my", "bur": "my", "bod": "bo", "tib": "bo", "dzo": "dz"}
_TWO_LETTERS |= {"ara": "ar", "arb": "ar", "ces": "cs", "cze": "cs", "dan": "da", "ell": "el", "gre": "el", "est": "et"}
_TWO_LETTERS |= {"fin": "fi", "heb": "he", "hin": "hi", "hun": "hu", "ind": "id", "nld": "nl", "dut": "nl", "ron": "ro"}
_TWO_LETTERS |= {"rum": "ro", "swe": "sv", "tur": "tr", "ukr": "uk", "vie": "vi"}
_TWO_LETTERS |= dict.fromkeys(("zho", "chi", "cmn", "yue", "lzh", "wuu"), "zh")  # all written in Chinese characters

GROUPS = frozenset(  # of languages, in ISO 639-5 and names of models
    "aav afa alv art bat ber bnt cau ccs cel cpf cpp csu dra euq fiu gem gmq gmw grk iir inc ine ira itc kar kmh mkh "
    "mul nah nic nub paa phi poz pqe qwe roa sal sem sit sla smi taw trk tut urj wak xgn zhx zle zls zlw".split()
)
RIGHT_TO_LEFT = frozenset(
    "ar arc ckb dv fa fas pes prs glk he lrc mzn ps pus pbt sd snd syr ug uig ur urd yi yid".split()
)
RIGHT_TO_LEFT |= frozenset("aeb acm acq aii ajp apc ars ary arz azb bal bgn khw skr".split())
RIGHT_TO_LEFT_SCRIPTS = frozenset("adlm arab aran hebr mand nkoo rohg samr syrc thaa".split())
UNSPACED = ("bo", "dz", "ja", "km", "lo", "my", "th", "zh")  # languages written without blanks between words


def primary_language(code: str | None) -> str:
    """The language of a code in lower case, without script and region, of two letters where it is in the table.

    >>> [primary_language(code) for code in ("de_DE", "deu_Latn", "zho_Hans", "ja_XX", "swh_Latn", None)]
    ['de', 'de', 'zh', 'ja', 'swh', '']
    """
    language = (code or "").lower().replace("-", "_").split("_")[0]
    return _TWO_LETTERS.get(language, language)


def are_other_languages(code: str | None, other: str | None) -> bool:
    """Whether two codes are known to be of different languages.

    Unknown languages, groups of them (ISO 639-5), such as `roa` and `mul`, and codes of different length that are not
    in the table, such as the sides `src` and `tgt` of documents, are not compared.

    >>> [are_other_languages("de_DE", code) for code in ("deu_Latn", "fr", "mul", None)]
    [False, True, False, False]
    """
    codes = {primary_language(one) for one in (code, other) if one} - GROUPS
    return len(codes) == 2 and len(set(map(len, codes))) == 1


def is_right_to_left(code: str | None) -> bool:
    """Whether a language is written from right to left, by the script of its code, or that which it commonly has.

    >>> [is_right_to_left(code) for code in ("he", "arb_Arab", "pan_Arab", "arb_Latn", "fa-IR", "de", None)]
    [True, True, True, False, True, False, False]
    """
    parts = (code or "").lower().replace("-", "_").split("_")
    script = next((part for part in parts[1:] if len(part) == 4), None)
    return script in RIGHT_TO_LEFT_SCRIPTS if script else bool({parts[0], primary_language(code)} & RIGHT_TO_LEFT)


def other_spellings(languages: Iterable[str], asked: list[str]) -> dict[str, str]:
    """Languages of data -> those asked for, where the data have the same language, and it alone, in another spelling.

    >>> other_spellings(["en", "de", "fr"], ["eng_Latn", "de"])
    {'en': 'eng_Latn'}
    """
    languages, names = list(languages), {}
    for lang in (lang for lang in asked if lang not in languages):
        primary = primary_language(lang)
        same = [other for other in languages if other not in asked and primary_language(other) == primary]
        if len(same) == 1:
            names[same[0]] = lang
    return names
