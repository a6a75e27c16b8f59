"""XLIFF 1.x and 2.x: a `target` is added to each `source`, or replaced.

The formats: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html and
https://docs.oasis-open.org/xliff/xliff-core/v2.1/xliff-core-v2.1.html
"""

import math
import re
from collections.abc import Iterator

from hf_docmt.data.language_codes import primary_language
from hf_docmt.data.readers.tagged_documents import PROLOGUE
from hf_docmt.files import DataError
from hf_docmt.formats.bilingual_xml import BilingualXml, Edit, Unit, child, with_attributes
from hf_docmt.formats.string_files import locale_code
from hf_docmt.formats.xml_positions import Element

MISSING = frozenset(("new", "needs-translation", "needs-adaptation", "needs-l10n", "initial"))  # states


def confidence(score: float) -> str:
    """A score as a probability: the geometric mean over the tokens."""
    return f"{math.exp(score):.3f}"


def suggestion(score: float | None) -> dict[str, str]:
    """The attributes of a `target` of XLIFF 1.2 that a machine wrote."""
    state = {"state": "needs-review-translation", "state-qualifier": "mt-suggestion"}
    if score is None:
        return state
    its = {"xmlns:its": "http://www.w3.org/2005/11/its", "its:annotatorsRef": "mt-confidence|docmt"}
    return state | its | {"its:mtConfidence": confidence(score)}


class XliffFormat(BilingualXml):
    """Units and their segments; what is locked or marked as not to be translated stays.

    A translation is one of a machine that awaits review: state `needs-review-translation` and `mt-suggestion` in 1.2,
    `translated` in 2.x. Its `confidence` is `mtConfidence` of ITS 2.0 in 1.2, and the `subState` in 2.x.
    """

    name = "xliff"
    endings = (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff")
    first_bytes = re.compile(PROLOGUE + rb"<(\w+:)?xliff\s", re.DOTALL)

    def units(self) -> Iterator[Unit]:
        version = self.root.attributes.get("version", "1.")  # some programs omit it
        if self.root.local_name != "xliff" or version[:2] not in ("1.", "2."):
            raise DataError(f"expected XLIFF of version 1.x or 2.x, got <{self.root.name} version={version!r}>")
        self.is_first = version.startswith("1.")
        files = [element for element in self.root.elements() if element.local_name == "file"]
        self.languages = files if self.is_first else [self.root]  # the elements with languages
        self.source_name, self.target_name = (
            ("source-language", "target-language") if self.is_first else ("srcLang", "trgLang")
        )
        for source in (element.attributes.get(self.source_name) for element in self.languages):
            if source and primary_language(source) != primary_language(self.options.source_lang):
                raise DataError(
                    f"{self.source_name} is {source!r}, expected {self.options.source_lang!r}; name the file's"
                )
        for number, file in enumerate(files, 1):
            yield from self._units(file, file.attributes.get("translate") != "no", f"file-{number}")

    def _units(self, element: Element, translate: bool, part: str) -> Iterator[Unit]:
        for each in element.elements():
            own = each.attributes.get("translate", "yes" if translate else "no") == "yes" and not _is_locked(each)
            if each.local_name == ("trans-unit" if self.is_first else "segment"):
                source = child(each, "source")
                if own and source:
                    yield self._unit(each, source, part)
            elif each.local_name in ("body", "group", "unit"):
                yield from self._units(each, own, part)

    def _unit(self, owner: Element, source: Element, part: str) -> Unit:
        target, source = child(owner, "target"), child(owner, "seg-source") or source
        state = (target.attributes if target and self.is_first else owner.attributes).get("state", "")
        marks = (each for each in owner.descendants() if each.local_name == "seg")  # of Trados, after the target
        locked = {mark.attributes.get("id") for mark in marks if _is_locked(mark)}
        old = {number: self.data[each.inner_start : each.inner_end].strip() for number, each in _segments(target)}
        numbered = _segments(source)
        texts = [(number, each) for number, each in numbered if number not in locked]
        kept = [(each, old.get(number, b"")) for number, each in numbered if number in locked]
        done = old if state not in MISSING else {}
        return Unit(
            owner,
            source,
            target,
            [each for _, each in texts],
            [done.get(number, b"") for number, _ in texts],
            part,
            kept,
        )

    def unit_edits(self, unit: Unit, content: str, score: float | None) -> Iterator[Edit]:
        source, target = unit.source, unit.target
        name = source.name.removesuffix(source.local_name) + "target"
        space = ' xml:space="preserve"' if source.attributes.get("xml:space") == "preserve" else ""
        tag = self.tag(target) if target else f"<{name}{space}>"
        if target and "xml:lang" in target.attributes and self.options.target_lang:
            tag = with_attributes(tag, **{"xml:lang": locale_code(self.options.target_lang, "-")})
        owner = self.data[unit.owner.start : unit.owner.inner_start].decode("utf-8")
        if self.is_first:
            tag = with_attributes(tag, **suggestion(score))
            owner = with_attributes(owner, approved="no") if unit.owner.attributes.get("approved") == "yes" else owner
        else:
            sure = {} if score is None else {"subState": f"docmt:{confidence(score)}"}
            owner = with_attributes(owner, state="translated", **sure)
        yield unit.owner.start, unit.owner.inner_start, owner
        text = f"{tag}{content}</{name}>"
        if target:
            yield target.start, target.end, text
        else:
            yield source.end, source.end, self.space_before(source) + text

    def target_languages(self) -> Iterator[str | None]:
        return (element.attributes.get(self.target_name) for element in self.languages)

    def language_edits(self) -> Iterator[Edit]:
        for element in self.languages if self.options.target_lang else ():
            tag = self.data[element.start : element.inner_start].decode("utf-8")
            value = locale_code(self.options.target_lang, "-")
            if primary_language(element.attributes.get(self.target_name)) != primary_language(value):
                yield element.start, element.inner_start, with_attributes(tag, **{self.target_name: value})


def _segments(parent: Element | None) -> list[tuple[str | None, Element]]:
    """The segments of a source or target with their numbers; without such it is one."""
    elements = [each for each in parent.descendants() if each.attributes.get("mtype") == "seg"] if parent else []
    return [(each.attributes.get("mid"), each) for each in elements] or ([("", parent)] if parent else [])


def _is_locked(element: Element) -> bool:
    """Whether a program marks a translation as final: Trados `locked`, others with their prefix."""
    values = {value for name, value in element.attributes.items() if name.rpartition(":")[2] == "locked"}
    return not values <= {"", "0", "false", "no"}
