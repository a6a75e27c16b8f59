"""Word documents (docx): their text line by line, and the same document with other text, by python-docx."""

from collections.abc import Iterable, Iterator
from io import BytesIO
from zipfile import BadZipFile, ZipFile

from docx import Document
from docx.opc.exceptions import PackageNotFoundError
from docx.oxml.ns import qn

from hf_docmt.files import DataError

LARGEST = 100 * 2**20  # bytes of a document when it is unpacked
PARAGRAPH, TEXT = qn("w:p"), qn("w:t")
BREAKS = {qn(name) for name in ("w:br", "w:cr", "w:tab")}
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # a second copy of a text box
PRESERVED = "{http://www.w3.org/XML/1998/namespace}space"

Line = list  # of the text elements of a line


def read_lines(data: bytes, name: str) -> list[str]:
    """The lines of a document: paragraphs, cut at line breaks and tabs, of body, tables, headers and footers.

    Footnotes, comments and deleted text are left alone. DataError: no Word document, or too large a one.
    """
    return ["".join(element.text or "" for element in line) for line in _lines(_open(data, name))]


def replace_lines(data: bytes, name: str, lines: Iterable[str]) -> bytes:
    """The document with other text on its lines, all else as it was.

    A line takes the look that most of its characters had: single words that were bold are so no more.
    """
    document = _open(data, name)
    for line, text in zip(list(_lines(document)), lines, strict=True):
        longest = max(line, key=lambda element: len(element.text or ""))
        for element in line:
            element.text = text if element is longest else ""
            element.set(PRESERVED, "preserve")
    changed = BytesIO()
    document.save(changed)
    return changed.getvalue()


def _open(data: bytes, name: str):
    try:
        with ZipFile(BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > LARGEST:
            raise DataError(
                f"{name} has {size >> 20} MiB when it is unpacked, expected {LARGEST >> 20} at most; split it"
            )
        return Document(BytesIO(data))
    except (BadZipFile, PackageNotFoundError, KeyError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} is no Word document (docx): {error}; save it as docx again") from error


def _lines(document) -> Iterator[Line]:
    yield from _lines_of(document.element.body)
    seen = set()
    for section in document.sections:
        for part in (section.header, section.footer):
            if not part.is_linked_to_previous and part.part.partname not in seen:
                seen.add(part.part.partname)
                yield from _lines_of(part._element)


def _lines_of(container) -> Iterator[Line]:
    """The lines below an element that have text elements."""
    for paragraph in container.iter(PARAGRAPH):
        if next(paragraph.iterancestors(FALLBACK), None) is not None:
            continue
        line: Line = []
        for element in paragraph.iter(TEXT, *BREAKS):
            if next(element.iterancestors(PARAGRAPH)) is not paragraph:
                continue  # of a text box, whose paragraphs come by themselves
            if element.tag == TEXT:
                line.append(element)
            elif line:
                yield line
                line = []
        if line:
            yield line
