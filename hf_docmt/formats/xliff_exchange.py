"""Any document as XLIFF 1.2 with machine translations to review, and the reviewed translations as pieces again.

The format: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from hf_docmt.files import DataError, open_bytes
from hf_docmt.formats.bilingual_xml import DECLARED, child
from hf_docmt.formats.document_file import DocumentFile, DocumentTranslation
from hf_docmt.formats.document_format import Piece, Tag, joined, located
from hf_docmt.formats.string_files import locale_code
from hf_docmt.formats.text_positions import decoded
from hf_docmt.formats.xliff import suggestion
from hf_docmt.formats.xml_positions import Element, Text, escape_text, parse_xml

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # characters that XML does not allow


def exchange_file(document: DocumentFile, translation: DocumentTranslation) -> bytes:
    """XLIFF with a unit per segment; elements are `g`, other tags `x`, numbered by their order in the source."""
    units = []
    for number, segment in enumerate(document.segments):
        if segment is None:
            continue
        tags = [piece for piece in segment.pieces if isinstance(piece, Tag) and piece.raw is not None]
        new = translation.pieces[number] or segment.pieces
        source, target = (_inline(each, tags) for each in (_shown(segment.pieces), new))
        note = f"<note>{escape_text(segment.location)}</note>\n"
        units.append(unit_text(number + 1, source, target, suggestion(translation.scores[number]), note))
    options = document.options
    return xliff_file(document.name, f"x-{document.format.name}", options.source_lang, options.target_lang, units)


def unit_text(
    number: int, source: str, target: str, attributes: Mapping[str, str], note: str = "", approved: str = ""
) -> str:
    """A unit, of texts as XML; `attributes` are those of the target."""
    state = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return (
        f'<trans-unit id="{number}"{approved} xml:space="preserve">\n<source>{source}</source>\n'
        f"<target{state}>{target}</target>\n{note}</trans-unit>\n"
    )


def xliff_file(name: str, datatype: str, source_lang: str, target_lang: str | None, units: Iterable[str]) -> bytes:
    """The file of the units of a document."""
    languages = f'source-language="{locale_code(source_lang, "-")}"'
    languages += f' target-language="{locale_code(target_lang, "-")}"' if target_lang else ""
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        f'<file original={quoteattr(CONTROL.sub("", name))} {languages} datatype="{datatype}">\n<body>\n'
        f"{''.join(units)}</body>\n</file>\n</xliff>\n"
    )
    return text.encode("utf-8")


def _inline(pieces: Sequence[Piece], tags: Sequence[Tag]) -> str:
    """Pieces as the content of an element. Their tags have the numbers, from 1, of these ones or of equal ones."""
    free, text = list(range(len(tags))), ""
    for piece in pieces:
        if isinstance(piece, str):
            text += _escaped(piece)
            continue
        if piece.raw is None:
            text += f'<mrk mtype="protected">{_escaped(piece.text)}</mrk>'
            continue
        ranks = [(tags[n] is not piece, tags[n] != piece, tags[n].kind != piece.kind, n) for n in free]
        number = min(ranks)[-1]
        free.remove(number)
        shown = f" equiv-text={quoteattr(CONTROL.sub('', piece.text))}" if piece.text.strip() else ""
        tag = {"open": f'<g id="{number + 1}">', "close": "</g>", "alone": f'<x id="{number + 1}"{shown}/>'}
        text += tag[piece.kind]
    return text


def _shown(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with text instead of tags that are written as text."""
    return joined(piece.text if isinstance(piece, Tag) and piece.raw is None else piece for piece in pieces)


def _escaped(text: str) -> str:
    text = escape_text(text).replace("\r", "&#13;")
    return CONTROL.sub(lambda match: f'<x id="U+{ord(match[0]):04X}"/>', text)


def reviewed_pieces(path: str | Path, document: DocumentFile) -> list[list[Piece] | None]:
    """The translation of each segment of a document in an XLIFF file that `exchange_file` made of it; None: empty.

    DataError: the file is of another document or version, or a translation lacks or repeats tags of its source.
    """
    with located(str(path)):
        units = {each.attributes.get("id"): each for each in _file(path).descendants("trans-unit")}
        pieces: list[list[Piece] | None] = [None] * len(document.segments)
        for number, segment in enumerate(document.segments):
            unit = units.pop(str(number + 1), None) if segment else None
            if segment and unit:
                pieces[number] = _target(unit, segment.pieces, f"unit {number + 1}")
            elif segment:
                raise DataError(f"no unit {number + 1} for {segment.location} of {document.location}; {REMEDY}")
        if units:
            raise DataError(f"{document.location} has no segment for unit {next(iter(units))}; {REMEDY}")
    return pieces


def exchange_languages(path: str | Path) -> tuple[str, str | None]:
    """The languages of an XLIFF file."""
    attributes = _file(path).attributes
    return attributes.get("source-language", "en"), attributes.get("target-language")


def _file(path: str | Path) -> Element:
    """The element `file`. DataError: another kind of file."""
    with open_bytes(path) as file:
        data = file.read()
    with located(str(path)):
        declared = DECLARED.match(data)
        text, *_ = decoded(data, declared[1].decode("ascii").lower() if declared else "utf-8")
        root = parse_xml(re.sub(r"^<\?xml[^>]*\?>", "", text).encode("utf-8"))
        files = [each for each in root.elements() if each.local_name == "file"]
        if root.local_name != "xliff" or root.attributes.get("version") != "1.2" or len(files) != 1:
            raise DataError(f"expected an XLIFF 1.2 file of docmt translate, got <{root.name}>")
        return files[0]


REMEDY = "give the document that was translated, with the same --columns and --all"


def _target(unit: Element, source: list[Piece], name: str) -> list[Piece] | None:
    """The translation of a unit, or None if it is empty."""
    shown = _shown(source)
    tags = [piece for piece in shown if isinstance(piece, Tag)]
    before, target = (child(unit, side) for side in ("source", "target"))
    if before is None or joined(_pieces(before, tags, name)) != shown:
        raise DataError(f"{name} has another source than the document; {REMEDY}")
    found = joined(_pieces(target, tags, name)) if target else []
    if not any(isinstance(piece, Tag) or piece.strip() for piece in found):
        return None
    expected, counts = (Counter(id(piece) for piece in each if isinstance(piece, Tag)) for each in (tags, found))
    for number, tag in enumerate(tags, 1):
        if counts[id(tag)] != expected[id(tag)]:
            wrong = "lacks" if counts[id(tag)] < expected[id(tag)] else "repeats"
            raise DataError(
                f"the translation of {name} {wrong} the element with id {number} ({tag.raw!r}); every g and x of the "
                "source must be in it once"
            )
    return found


def _pieces(element: Element, tags: Sequence[Tag], name: str) -> Iterator[Piece]:
    """The content of a source or target with the tags that its elements stand for; only text for other `mrk`."""
    for each in element.children:
        if isinstance(each, Text):
            yield each.text
        elif each.attributes.get("mtype") == "protected":
            yield Tag("alone", None, "".join(map(str, _pieces(each, (), name))))
        elif each.local_name == "mrk":
            yield from _pieces(each, tags, name)
        elif control := re.fullmatch("U[+]([0-9A-F]{4})", each.attributes.get("id", "")):
            yield chr(int(control[1], 16))
        else:
            number = each.attributes.get("id", "")
            tag = tags[int(number) - 1] if number.isdecimal() and 0 < int(number) <= len(tags) else None
            if tag is None or tag.kind != {"g": "open", "x": "alone"}.get(each.local_name):
                raise DataError(f"{name} has an element <{each.name} id={number!r}> that the document does not have")
            yield tag
            if tag.kind == "open":
                yield from _pieces(each, tags, name)
                yield _closing(tag, tags)


def _closing(opening: Tag, tags: Sequence[Tag]) -> Tag:
    """The tag that closes an element."""
    depth = 0
    for tag in tags[next(number for number, tag in enumerate(tags) if tag is opening) :]:
        depth += {"open": 1, "close": -1, "alone": 0}[tag.kind]
        if depth == 0:
            return tag
    raise DataError(f"the element {opening.raw!r} is not closed in its segment; please report this")
