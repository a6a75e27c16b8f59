"""Workbooks of Excel: the texts of cells, shared ones once (ECMA-376 part 1, 18.3.1.4, 18.4 and 18.5.1)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hf_docmt.files import DataError
from hf_docmt.formats.document_format import DocumentFormat, FormatOptions, Piece, Segment
from hf_docmt.formats.office_members import (
    LOOKED_UP,
    OfficeMember,
    OfficeSlot,
    Run,
    attribute_place,
    comments,
    looked_up,
    main_member,
    related,
)
from hf_docmt.formats.text_positions import replaced
from hf_docmt.formats.xml_positions import Element, escape_text, parse_xml
from hf_docmt.formats.zip_archive import ZipArchive

MAIN = "xl/workbook.xml"
CELL = re.compile(rb"""<((?:\w+:)?)c\s([^<>]*?["'])\s*>([^<]*+(?:<(?!/?\1c[\s/>])[^<]*+)*+)</\1c>""")
REFERENCE = re.compile(rb"""\br\s*=\s*["']([A-Z]+)(\d+)["']""")
SHARED = re.compile(rb"""\bt\s*=\s*["']s["']""")
VALUE = re.compile(rb"<(?:\w+:)?v\s*>\s*(\d+)\s*<")
RANGE = re.compile(r"([A-Z]+)(\d+):([A-Z]+)(\d+)")
FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")
LITERALS = re.compile(rb"<(?:\w+:)?(?:f|formula\d?)(?:\s[^<>]*)?>([^<]+)<")  # of cells, conditions and choices
BEFORE_CALCULATION = ("sheets", "functionGroups", "externalReferences", "definedNames")  # in the workbook, 18.2.27
VIEW = re.compile(rb"(<(?:\w+:)?sheetView)(?=[\s/>])")
INLINE = re.compile(rb"<(?:\w+:)?is[\s>]")


@dataclass(frozen=True)
class Cell:
    """A cell with a text: its place, and the number of its string among those shared, or those in its sheet.

    `start` and `end` are the bytes of that number.
    """

    column: int  # from 1; 0: not said
    row: int
    is_shared: bool
    number: int
    start: int = 0
    end: int = 0


class Strings(OfficeMember):
    """The shared strings, or the inline strings of a sheet's cells."""

    texts, breaks = ("si", "is"), "\n\t"

    def find(self, root: Element) -> None:
        self.root, self.prefix = root, root.name.removesuffix(root.local_name)
        self.elements = list(root.descendants(*(self.prefix + name for name in self.texts)))  # in their order

    def add_string(self, element: Element, place: str, is_copy: bool) -> OfficeSlot | None:
        """Add its slot; the slot of a copy comes after all strings."""
        start, end = (self.root.inner_end,) * 2 if is_copy else (element.inner_start, element.inner_end)
        return self.add(start, end, self._items(element), place)

    def _items(self, parent: Element) -> Iterator[Run]:
        for child in parent.elements(self.prefix + "t", self.prefix + "r"):
            if child.local_name == "r":
                properties = child.elements(self.prefix + "rPr")
                looks = next((self.data[each.start : each.end].decode() for each in properties), "")
                texts = [text.text for text in child.elements(self.prefix + "t")]
            else:
                texts, looks = [child.text], ""
            yield "".join(texts), looks

    def run(self, text: str, looks: str) -> str:
        preserve = ' xml:space="preserve"' if text != text.strip() or re.search(r"\n|\t", text) else ""
        text = f"<{self.prefix}t{preserve}>{escape_text(text)}</{self.prefix}t>"
        return f"<{self.prefix}r>{looks}{text}</{self.prefix}r>"

    def rendered(self, slot: OfficeSlot, pieces: Sequence[Piece]) -> str:
        string = super().rendered(slot, pieces)
        run = f"<{self.prefix}r>"
        if string.count(run) == 1 and string.startswith(f"{run}<{self.prefix}t"):  # no looks at all
            string = string.removeprefix(run).removesuffix(f"</{self.prefix}r>")
        return f"<{self.prefix}si>{string}</{self.prefix}si>" if slot.start == slot.end else string


class Sheet:
    """A sheet: its cells with texts, their inline strings, and the cells that tables name."""

    def __init__(self, archive: ZipArchive, name: str, title: str):
        self.name, self.title, self.data = name, title, archive.read(name)
        self.strings = Strings(name, self.data if INLINE.search(self.data) else b"<worksheet></worksheet>", title)
        self.cells = list(_cells(self.data))
        self.first_row = self.cells[0].row if self.cells else 0
        self.heads: set[tuple[int, int]] = set()
        for table in related(archive, name, "table").values():
            values = parse_xml(archive.read(table)).attributes
            if match := RANGE.fullmatch(values.get("ref", "")):
                first, last = int(match[2]), int(match[4])
                rows = [first] * (values.get("headerRowCount") != "0") + [last] * ("totalsRowCount" in values)
                columns = range(_column(match[1]), _column(match[3]) + 1)
                self.heads |= {(column, row) for column in columns for row in rows}

    def meant(self, columns: set[int] | None) -> list[Cell]:
        """The cells that are translated. In `columns` those below the first row are; None: all but heads of tables."""
        if columns is None:
            return [cell for cell in self.cells if (cell.column, cell.row) not in self.heads]
        return [cell for cell in self.cells if cell.column in columns and cell.row != self.first_row]

    def written(self, strings: bytes | None, numbers: dict[int, int], cells: Sequence[Cell]) -> bytes:
        """The sheet with these bytes, and other numbers of shared strings in these cells."""
        places = {(cell.column, cell.row) for cell in cells}
        data = self.data if strings is None else strings
        return replaced(
            data,
            [
                (cell.start, cell.end, str(numbers[cell.number]))
                for cell in (_cells(data) if numbers else ())
                if cell.is_shared and cell.number in numbers and (cell.column, cell.row) in places
            ],
        )


def _cells(sheet: bytes) -> Iterator[Cell]:
    """The cells whose texts are strings. A sheet may have millions of cells, so that no tree is made of it."""
    inline = 0
    for match in CELL.finditer(sheet):
        place = REFERENCE.search(match[2])
        column, row = (_column(place[1].decode()), int(place[2])) if place else (0, 0)
        value = VALUE.search(match[3]) if SHARED.search(match[2]) else None
        if value:
            start = match.start(3)
            yield Cell(column, row, True, int(value[1]), start + value.start(1), start + value.end(1))
        elif INLINE.search(match[3]):
            yield Cell(column, row, False, inline)
            inline += 1


def _column(letters: str) -> int:
    """The number of a column, from 1."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


class XlsxFormat(DocumentFormat):
    """Texts of cells, sheet by sheet, or those of some columns below their first row. Other texts and numbers stay.

    So do formulas, which are calculated again, names of sheets and first rows of tables, which formulas name.
    """

    name = "xlsx"
    endings = (".xlsx", ".xlsm")
    in_folders = False
    takes = frozenset({"columns"})
    placeholders: re.Pattern | None = re.compile(r"_x[0-9A-Fa-f]{4}_")  # characters, 22.9.2.19

    @classmethod
    def tag_name(cls, raw: str) -> str | None:
        """None for the formatting of runs."""
        return raw if raw in ("\n", "\t") else None

    def parse(self, data: bytes, options: FormatOptions) -> list[Segment]:
        self.options, self.archive = options, ZipArchive(data)
        self.main = main_member(self.archive, MAIN, "workbook; save it as .xlsx")
        targets = related(self.archive, self.main, "worksheet")
        self.sheets = [
            Sheet(self.archive, targets[number], element.attributes.get("name", number))
            for element in parse_xml(self.archive.read(self.main)).descendants()
            if element.local_name == "sheet" and (number := element.attributes.get("r:id", "")) in targets
        ]
        names = list(related(self.archive, self.main, "sharedStrings").values())
        self.shared = Strings(names[0], self.archive.read(names[0])) if names else Strings("", b"<sst></sst>")
        columns = self._columns(options.columns) if options.columns else [None] * len(self.sheets)
        self.meant = [sheet.meant(own) for sheet, own in zip(self.sheets, columns)]
        others = {
            cell.number
            for sheet, cells in zip(self.sheets, self.meant)
            for cell in set(sheet.cells).difference(cells)
            if cell.is_shared
        }
        self.owners: list[Strings] = []  # of the segments
        self.copied: dict[int, int] = {}  # the numbers of strings that other cells have, too, by ids of slots
        kept = looked_up(text for sheet in self.sheets for text in LITERALS.findall(sheet.data))
        self.remarks = comments(self.archive)
        segments, seen = [], set()
        for sheet, cells in zip(self.sheets, self.meant):
            for cell in cells:
                strings = self.shared if cell.is_shared else sheet.strings
                if (strings.name, cell.number) in seen or cell.number >= len(strings.elements):
                    continue
                seen.add((strings.name, cell.number))
                if kept(self._text(sheet, cell)):
                    self.remarks[LOOKED_UP] += 1
                    continue
                strings.part = sheet.title
                is_copy = cell.is_shared and cell.number in others
                if slot := strings.add_string(strings.elements[cell.number], f"string {cell.number + 1}", is_copy):
                    segments.append(slot.segment)
                    self.owners.append(strings)
                    if is_copy:
                        self.copied[id(slot)] = cell.number
        return segments

    def _columns(self, asked: Sequence[str]) -> list[set[int] | None]:
        """The numbers of columns for each sheet: by their names in its first row, or else by letters or numbers."""
        heads = [
            {self._text(sheet, cell): cell.column for cell in sheet.cells if cell.row == sheet.first_row}
            for sheet in self.sheets
        ]
        columns: list[set[int] | None] = []
        for column in asked:
            if not any(column in head for head in heads) and not re.fullmatch(r"[A-Z]{1,3}|[1-9]\d*", column):
                choices = ", ".join(dict.fromkeys(repr(text) for head in heads for text in head))
                raise DataError(f"no column {column!r}; name a letter (A, B, ...) or one of {choices}")
        for head in heads:
            own: set[int] = set()
            for column in asked:
                if column in head:
                    own.add(head[column])
                elif not any(column in other for other in heads):
                    own.add(int(column) if column.isdecimal() else _column(column))
            columns.append(own)
        return columns

    def _text(self, sheet: Sheet, cell: Cell) -> str:
        elements = (self.shared if cell.is_shared else sheet.strings).elements
        return elements[cell.number].text.strip() if cell.number < len(elements) else ""

    def write(self, translations: Sequence[list[Piece] | None]) -> bytes:
        contents: dict[str, bytes] = {}
        for strings in [self.shared, *(sheet.strings for sheet in self.sheets)]:
            own = [new for new, owner in zip(translations, self.owners, strict=True) if owner is strings]
            data = strings.written(own)
            if data != strings.data:
                contents[strings.name] = data
        copies = [self.copied[id(slot)] for _, _, slot, _ in self.shared.edits if id(slot) in self.copied]
        numbers = {number: len(self.shared.elements) + place for place, number in enumerate(copies)}
        for sheet, cells in zip(self.sheets, self.meant):
            data = sheet.written(contents.get(sheet.name), numbers, cells)
            if self.options.is_right_to_left and contents:
                data = VIEW.sub(rb'\1 rightToLeft="1"', re.sub(rb'\srightToLeft="[^"]*"', b"", data))
            if data != sheet.data:
                contents[sheet.name] = data
        if numbers:
            contents[self.shared.name] = _with_count(contents[self.shared.name], len(numbers))
        if contents and any(FORMULA.search(sheet.data) for sheet in self.sheets):
            contents[self.main] = _recalculated(self.archive.read(self.main))
        return self.archive.changed(contents) if contents else self.archive.data


def _recalculated(workbook: bytes) -> bytes:
    """A workbook whose formulas are calculated when it is opened."""
    root = parse_xml(workbook)
    prefix = root.name.removesuffix(root.local_name)
    for element in root.elements(prefix + "calcPr"):
        start, end = attribute_place(workbook, element, "fullCalcOnLoad")
        return replaced(workbook, [(start, end, '"1"' if start < end else ' fullCalcOnLoad="1"')])
    place = [element.end for element in root.elements() if element.local_name in BEFORE_CALCULATION][-1]
    return replaced(workbook, [(place, place, f'<{prefix}calcPr fullCalcOnLoad="1"/>')])


def _with_count(strings: bytes, added: int) -> bytes:
    """Shared strings that say how many they are."""
    root = parse_xml(strings)
    count = root.attributes.get("uniqueCount", "")
    if not count.isdecimal():
        return strings
    return replaced(strings, [(*attribute_place(strings, root, "uniqueCount"), f'"{int(count) + added}"')])
