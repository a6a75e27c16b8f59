"""Translation memories, and catalogs of programs with their translations, as documents: TMX, XLIFF, PO.

TMX: https://www.gala-global.org/tmx-14b, XLIFF: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html
"""

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from hf_docmt.data.documents import make_row
from hf_docmt.data.language_codes import primary_language
from hf_docmt.data.readers.po_messages import po_messages
from hf_docmt.data.readers.reader import Reader, numbered_id
from hf_docmt.data.readers.tagged_documents import PROLOGUE
from hf_docmt.files import DataError, display_path, location_of, open_bytes

LANG = "{http://www.w3.org/XML/1998/namespace}lang"
WITHOUT_TEXT = frozenset("bpt ept ph it ut x bx ex sc ec sm em cp".split())  # inline elements: codes of programs
NOT_DONE = frozenset(("new", "needs-translation", "needs-adaptation", "needs-l10n", "initial"))  # states of XLIFF
WHITE = re.compile(r"[ \t\r\n]+")  # no-break and ideographic spaces stay
Texts = list[str | None]  # of a unit in each language
CHARSET = re.compile(rb"charset=([\w-]+)")


class MemoryReader(Reader):
    """Units with a text in all languages asked for, in the order of the file; a run of XML's white space is a blank."""

    document_ids = False

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        self.found: set[str] = set()  # languages of the file
        location, is_empty = display_path(path), True
        for number, units in enumerate(self.documents(languages, path), 1):
            pairs = [[WHITE.sub(" ", text).strip(" ") for text in unit if text and text.strip()] for unit in units]
            if pairs := [texts for texts in pairs if len(texts) == len(languages)]:
                sides = list(zip(*pairs))
                is_empty, doc_id = False, numbered_id(path, number)
                yield location, make_row(location, doc_id, sides[0], sides[1] if sides[1:] else None, languages)
        if is_empty:
            raise DataError(
                f"{location}: no unit has texts in {' and '.join(languages)}; its languages are "
                f"{', '.join(sorted(self.found)) or 'not named'}"
            )

    @abstractmethod
    def documents(self, languages: list[str], path: str | Path) -> Iterator[list[Texts]]:
        """The documents of a file: the texts of each unit, one for each language."""

    def is_of(self, code: str | None, language: str) -> bool:
        """Whether texts with this code, if any, are in a language."""
        self.found |= {code} if code else set()
        return not code or primary_language(code) == primary_language(language)


class TmxReader(MemoryReader):
    """Translation memories (TMX), one document. A text with the exact language code is preferred to others."""

    name = "tmx"
    endings = (".tmx",)
    first_bytes = re.compile(PROLOGUE + rb"<tmx\s", re.DOTALL)

    def documents(self, languages: list[str], path: str | Path) -> Iterator[list[Texts]]:
        units: list[Texts] = []
        for unit in elements(path, "tu"):
            texts: dict[str, str] = {}
            for variant in unit:
                code, segment = variant.get(LANG) or variant.get("lang"), _child(variant, "seg")
                if local_name(variant) == "tuv" and code and segment is not None:
                    self.found.add(code)
                    texts.setdefault(code.lower().replace("_", "-"), _text(segment))
            codes = [_code_of(texts, language) for language in languages]
            units.append([texts.get(code) if codes.count(code) == 1 else None for code in codes])
        yield units


class XliffReader(MemoryReader):
    """XLIFF 1.x and 2.x, a document for each `file`. What is marked as still to be translated has no translation."""

    name = "xliff"
    endings = (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff")
    first_bytes = re.compile(PROLOGUE + rb"<(\w+:)?xliff\s", re.DOTALL)

    def documents(self, languages: list[str], path: str | Path) -> Iterator[list[Texts]]:
        whole: dict[str, str] = {}
        for file in elements(path, "file", whole):
            codes = [file.get("source-language") or whole.get("srcLang")]
            codes.append(file.get("target-language") or whole.get("trgLang"))
            if all([self.is_of(code, language) for code, language in zip(codes, languages)]):
                units = (unit for unit in file.iter() if local_name(unit) in ("trans-unit", "segment"))
                yield [texts[: len(languages)] for unit in units for texts in _unit_texts(unit)]


class PoReader(MemoryReader):
    """Catalogs (PO), one document: entries with a translation that is not fuzzy, of plurals the first and last form."""

    name = "po"
    endings = (".po", ".pot")
    first_bytes = re.compile(rb'(?:#.*\n|\s)*msgid "')

    def documents(self, languages: list[str], path: str | Path) -> Iterator[list[Texts]]:
        with open_bytes(path) as file:
            data = file.read().removeprefix(b"\xef\xbb\xbf")
        if not data:
            raise DataError(f"{display_path(path)}: the file is empty; it needs at least one entry")
        charset = CHARSET.search(data[:8192])
        encoding = charset[1].decode("ascii") if charset and charset[1] != b"CHARSET" else "utf-8"
        try:
            entries = list(po_messages(data.decode(encoding)))
        except (UnicodeError, LookupError) as error:
            raise DataError(f"{display_path(path)}: it is not {encoding}, as its header says ({error})") from error
        except DataError as error:
            raise DataError(f"{display_path(path)}, {error}") from error
        units: list[Texts] = []
        for entry in entries:
            if not entry.text("msgid"):
                language = re.search(r"^Language:[ ]*([\w@-]+)", entry.text("msgstr"), re.MULTILINE)
                if language and len(languages) > 1 and not self.is_of(language[1], languages[1]):
                    break
                continue
            keys = [(key, form) for key, form in (("msgid", 0), ("msgid_plural", -1)) if key in entry.strings]
            has_translation = entry.has_translation and (len(keys) == 1 or len(entry.forms) > 1)
            units += [
                [entry.text(key), entry.text(entry.forms[form]) if has_translation else None][: len(languages)]
                for key, form in keys
            ]
        yield units


def elements(
    path: str | Path, names: str | tuple[str, ...], root: dict[str, str] | None = None
) -> Iterator[ElementTree.Element]:
    """The elements with one of these names, one at a time; `root` gets the attributes of the file's first element."""
    names = (names,) if isinstance(names, str) else names
    with open_bytes(path) as file:
        try:
            first = None
            for event, element in ElementTree.iterparse(CheckedXml(file, path), ("start", "end")):
                if first is None:
                    first = element
                    (root if root is not None else {}).update(element.attrib)
                if event == "end" and local_name(element) in names:
                    yield element
                    element.clear()
        except ElementTree.ParseError as error:
            line, column = error.position
            raise DataError(
                f"{location_of(path, line)}, column {column + 1}: broken XML ({error}); repair it"
            ) from error


class CheckedXml:
    """A file of XML that is read in blocks; DataError for entities of its own, which can fill the memory."""

    def __init__(self, file, path: str | Path):
        self.file, self.path, self.before = file, path, b""

    def read(self, size: int = -1, /) -> bytes:
        data = self.file.read(size)
        if not self.before + data:
            raise DataError(f"{display_path(self.path)}: the file is empty; it needs at least one unit")
        if b"<!ENTITY" in (self.before + data).replace(b"\0", b""):
            raise DataError(f"{display_path(self.path)}: XML with an entity of its own; replace it by its text")
        self.before = data[-16:]
        return data


def _unit_texts(unit: ElementTree.Element) -> Iterator[Texts]:
    """Source and translation of a unit, by segments where both sides have the same ones."""
    source, target = (_child(unit, name) for name in ("source", "target"))
    segmented = _child(unit, "seg-source")
    state = (target if local_name(unit) == "trans-unit" and target is not None else unit).get("state", "")
    parts = [_segments(element) for element in (segmented, target)]
    if parts[0] and state not in NOT_DONE and [*parts[0]] == [*parts[1]]:
        yield from ([text, parts[1][number]] for number, text in parts[0].items())
    elif source is not None:
        yield [_text(source), None if target is None or state in NOT_DONE else _text(target)]


def _segments(element: ElementTree.Element | None) -> dict[str | None, str]:
    marks = element.iter() if element is not None else ()
    return {mark.get("mid"): _text(mark) for mark in marks if mark.get("mtype") == "seg"}


def _code_of(texts: dict[str, str], language: str) -> str:
    """The code of the text in a language: the very code, or the first one of the same language."""
    own = language.lower().replace("_", "-")
    same = (code for code in texts if primary_language(code) == primary_language(language))
    return own if own in texts else next(same, "")


def local_name(element: ElementTree.Element) -> str:
    """The name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _child(element: ElementTree.Element, name: str) -> ElementTree.Element | None:
    return next((each for each in element if local_name(each) == name), None)


def _text(element: ElementTree.Element) -> str:
    """The text of an element, without what stands for codes of programs in it."""
    inner: Sequence[str] = [
        (_text(each) if local_name(each) not in WITHOUT_TEXT else " " * (each.get("ctype") == "lb")) + (each.tail or "")
        for each in element
    ]
    return (element.text or "") + "".join(inner)
