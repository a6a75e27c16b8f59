"""Translation memories (TMX 1.4): a `tuv` of the target language is added to that of the source, or replaced.

The format: https://www.gala-global.org/tmx-14b
"""

import re
from collections.abc import Iterator

from hf_docmt.data.language_codes import primary_language
from hf_docmt.data.readers.tagged_documents import PROLOGUE
from hf_docmt.files import DataError
from hf_docmt.formats.bilingual_xml import BilingualXml, Edit, Unit, child
from hf_docmt.formats.string_files import locale_code
from hf_docmt.formats.xml_positions import Element


class TmxFormat(BilingualXml):
    """Units (`tu`) with a text in the source language."""

    name = "tmx"
    endings = (".tmx",)
    first_bytes = re.compile(PROLOGUE + rb"<tmx\s", re.DOTALL)

    def units(self) -> Iterator[Unit]:
        if self.root.local_name != "tmx":
            raise DataError(f"expected TMX, got <{self.root.name}>; name its format")
        languages: set[str] = set()
        for unit in self.root.descendants("tu"):
            variants = {_language(each): each for each in reversed(list(unit.elements("tuv")))}
            languages |= set(variants)
            source = _of(variants, self.options.source_lang)
            target = _of(variants, self.options.target_lang) if self.options.target_lang else None
            segment, translation = source and child(source, "seg"), target and child(target, "seg")
            if source and segment:
                old = self.data[translation.inner_start : translation.inner_end].strip() if translation else b""
                yield Unit(source, segment, translation, [segment], [old])
        if languages and not any(
            primary_language(each) == primary_language(self.options.source_lang) for each in languages
        ):
            names = ", ".join(sorted(languages))
            raise DataError(f"no text in {self.options.source_lang!r}; the languages are {names}: name one of them")

    def unit_edits(self, unit: Unit, content: str, score: float | None) -> Iterator[Edit]:
        if unit.target:
            yield unit.target.start, unit.target.end, f"{self.tag(unit.target)}{content}</seg>"
        elif self.options.target_lang:
            name = "xml:lang" if "xml:lang" in unit.owner.attributes else "lang"
            new = f'<tuv {name}="{locale_code(self.options.target_lang, "-")}"><seg>{content}</seg></tuv>'
            yield unit.owner.end, unit.owner.end, self.space_before(unit.owner) + new
        else:
            raise DataError("the target language is unknown; pass --target-lang")


def _language(variant: Element) -> str:
    return variant.attributes.get("xml:lang") or variant.attributes.get("lang") or ""


def _of(variants: dict[str, Element], language: str) -> Element | None:
    """The element of a language in this spelling, or else in another one."""
    spelled = {code.lower().replace("_", "-"): variant for code, variant in variants.items()}
    same = (variant for code, variant in variants.items() if primary_language(code) == primary_language(language))
    return spelled.get(language.lower().replace("_", "-")) or next(same, None)
