"""Pairs of a sentence and its translation as a new TMX 1.4 or XLIFF 1.2 file, for programs that translators use."""

from collections.abc import Iterable

from hf_docmt.formats.string_files import locale_code
from hf_docmt.formats.xliff import suggestion
from hf_docmt.formats.xliff_exchange import CONTROL, unit_text, xliff_file
from hf_docmt.formats.xml_positions import escape_text

Pair = tuple[str, str, bool]  # source, translation, whether a person accepted it
ENDINGS = {"tmx": ".tmx", "xliff": ".xlf"}
TMX = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4">
<header creationtool="hf-docmt" creationtoolversion="1" o-tmf="hf-docmt" adminlang="en" srclang="{}" \
datatype="plaintext" segtype="sentence"/>
<body>
{}</body>
</tmx>
"""


def pairs_file(kind: str, pairs: Iterable[Pair], name: str, source_lang: str, target_lang: str) -> bytes:
    """The file of a kind of `ENDINGS`; `name` is that of the document."""
    units, codes = [], [locale_code(lang, "-") for lang in (source_lang, target_lang)]
    for number, (*texts, is_accepted) in enumerate(pairs, 1):
        sides = [escape_text(CONTROL.sub("", text)) for text in texts]
        if kind == "tmx":
            variants = (f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in zip(codes, sides))
            units.append(f"<tu>{''.join(variants)}</tu>\n")
        else:
            state = {"state": "signed-off"} if is_accepted else suggestion(None)
            units.append(unit_text(number, sides[0], sides[1], state, approved=' approved="yes"' * is_accepted))
    if kind == "tmx":
        return TMX.format(codes[0], "".join(units)).encode("utf-8")
    return xliff_file(name, "plaintext", source_lang, target_lang, units)
