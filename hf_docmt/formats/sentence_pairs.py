"""Pairs of a sentence and its translation as a new TMX 1.4 or XLIFF 1.2 file, for programs that translators use."""

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, tostring

from hf_docmt.formats.string_files import locale_code

Pair = tuple[str, str, bool]  # source, translation, whether a person accepted it
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
XLIFF = "urn:oasis:names:tc:xliff:document:1.2"
LANG = "{http://www.w3.org/XML/1998/namespace}lang"
ENDINGS = {"tmx": ".tmx", "xliff": ".xlf"}


def pairs_file(kind: str, pairs: Iterable[Pair], name: str, source_lang: str, target_lang: str) -> bytes:
    """The file of a kind of `ENDINGS`; `name` is that of the document."""
    languages = locale_code(source_lang, "-"), locale_code(target_lang, "-")
    root = {"tmx": _tmx, "xliff": _xliff}[kind](pairs, name, *languages)
    return tostring(root, encoding="utf-8", xml_declaration=True)


def _tmx(pairs: Iterable[Pair], name: str, source_lang: str, target_lang: str) -> Element:
    root = Element("tmx", version="1.4")
    tool = {"creationtool": "hf-docmt", "creationtoolversion": "1", "o-tmf": "hf-docmt", "adminlang": "en"}
    SubElement(root, "header", tool | {"srclang": source_lang, "datatype": "plaintext", "segtype": "sentence"})
    body = SubElement(root, "body")
    for source, translation, _ in pairs:
        unit = SubElement(body, "tu")
        for language, text in ((source_lang, source), (target_lang, translation)):
            SubElement(SubElement(unit, "tuv", {LANG: language}), "seg").text = NOT_XML.sub("", text)
    return root


def _xliff(pairs: Iterable[Pair], name: str, source_lang: str, target_lang: str) -> Element:
    root = Element("xliff", version="1.2", xmlns=XLIFF)
    languages = {"source-language": source_lang, "target-language": target_lang}
    file = SubElement(root, "file", {"original": NOT_XML.sub("", name), "datatype": "plaintext"} | languages)
    body = SubElement(file, "body")
    for number, (source, translation, is_accepted) in enumerate(pairs, 1):
        approved = {"approved": "yes"} if is_accepted else {}
        unit = SubElement(body, "trans-unit", {"id": str(number)} | approved)
        SubElement(unit, "source").text = NOT_XML.sub("", source)
        state = "signed-off" if is_accepted else "needs-review-translation"
        SubElement(unit, "target", state=state).text = NOT_XML.sub("", translation)
    return root
