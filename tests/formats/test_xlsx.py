"""Workbooks: which cells are translated, where their strings stand, and that files come back as they were."""

import random

import pytest
from support.errors import refused
from support.markup_checks import (
    check_identity,
    check_shuffled,
    check_swapped,
    parsed,
    shown,
    translated,
    translated_file,
    upper,
)
from support.office_files import SLIDES, member, relations, with_main, workbook

from hf_docmt.files import DataError
from hf_docmt.formats.xlsx import MAIN, XlsxFormat

BOLD = '<r><rPr><b/></rPr><t xml:space="preserve">{} </t></r>'
BODY = '<t xml:space="preserve">{} </t>'
SHARED, SHEET = "xl/sharedStrings.xml", "xl/worksheets/sheet1.xml"


def file(strings, rows, **members):
    """A workbook of a sheet. A cell is the number of a shared string, or what stands in a cell."""
    cells = [
        f'<c r="{chr(65 + column)}{row}" '
        + (f't="s"><v>{cell}</v></c>' if isinstance(cell, int) else f"{cell}</c>" if ">" in cell else f"{cell}/>")
        for row, own in enumerate(rows, 1)
        for column, cell in enumerate(own)
    ]
    shared = "".join(f"<si>{string}</si>" for string in strings)
    members[SHARED] = f'<sst count="9" uniqueCount="{len(strings)}">{shared}</sst>'
    return workbook(f"<sheetData>{''.join(cells)}</sheetData>", **members)


@pytest.mark.parametrize(
    ("string", "expected", "written"),
    [
        ("<t>One &lt;</t>", ["One <"], "<t>ONE &lt;</t>"),
        ("<t>12 - 3</t>", [], "<t>12 - 3</t>"),
        ("<t>one\ntwo</t>", ["one\ntwo"], '<t xml:space="preserve">ONE\nTWO</t>'),
        (f"<r>{BODY.format('look')}</r>{BOLD.format('here')}", ["look here "], None),
        ("<t>東京 Tokyo</t><rPh sb='0' eb='2'><t>トウキョウ</t></rPh>", ["東京 Tokyo"], "<t>東京 TOKYO</t>"),
    ],
)
def test_what_is_translated(string, expected, written):
    data = file([string], [[0]])
    assert shown(XlsxFormat, data) == expected
    written = written or f"<r>{BODY.format('LOOK')}</r>{BOLD.format('HERE')}"
    assert f"<si>{written}</si>" in member(translated(XlsxFormat, data, upper), SHARED)


def test_workbook_of_another_name():
    assert shown(XlsxFormat, with_main(file(["<t>One</t>"], [[0]]), "book.xml")) == ["One"]


def test_strings_in_cells_and_formulas():
    cells = ['t="inlineStr"><is><t>Here</t></is>', 't="str"><f>A1</f><v>Made</v>', 's="1"', "><v>7</v>", 0]
    data = file(["<t>Shared</t>"], [cells])
    assert shown(XlsxFormat, data) == ["Here", "Shared"]
    new = translated(XlsxFormat, data, upper)
    assert "<is><t>HERE</t></is>" in member(new, SHEET)
    assert "<f>A1</f><v>Made</v>" in member(new, SHEET)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('<calcPr calcId="1"/>', '<calcPr fullCalcOnLoad="1" calcId="1"/>'),
        ("<calcPr fullCalcOnLoad='0'/>", '<calcPr fullCalcOnLoad="1"/>'),
        ("<definedNames/><oleSize/>", '<definedNames/><calcPr fullCalcOnLoad="1"/><oleSize/>'),
        ("", '<calcPr fullCalcOnLoad="1"/>'),
    ],
)
def test_formulas_are_recalculated(old, new):
    start = f'<workbook {SLIDES}><sheets><sheet name="One" r:id="x"/></sheets>'
    for cells, expected in ([0, "><f>A1</f><v>One</v>"], new), ([0], old):
        data = file(["<t>One</t>"], [cells], **{MAIN: f"{start}{old}</workbook>"})
        assert member(translated(XlsxFormat, data, upper), MAIN) == f"{start}{expected}</workbook>"
        check_identity(XlsxFormat, data)


ROWS = [[0, 1, 2], [3, 4, 5], [4, 3, 3]]
STRINGS = [f"<t>{text}</t>" for text in ("Key", "Text", "Note", "one", "two", "three")]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (None, ["Key", "Text", "Note", "one", "two", "three"]),
        (("Text",), ["two", "one"]),
        (("C", "2"), ["two", "three", "one"]),
    ],
)
def test_columns(columns, expected):
    assert shown(XlsxFormat, file(STRINGS, ROWS), columns=columns) == expected


def test_string_of_other_cells_is_copied():
    new = translated(XlsxFormat, file(STRINGS, ROWS), upper, columns=("Text",))
    assert member(new, SHARED).endswith("<t>three</t></si><si><t>TWO</t></si><si><t>ONE</t></si></sst>")
    assert 'uniqueCount="8"' in member(new, SHARED)
    cells = [int(number) for number in member(new, SHEET).replace("</v>", "<v>").split("<v>")[1::2]]
    assert cells == [0, 1, 2, 3, 6, 5, 4, 7, 3]
    assert shown(XlsxFormat, new, columns=("Text",)) == ["TWO", "ONE"]


def test_lines_and_columns_of_a_cell_stay():
    new, sentences, written = translated_file(XlsxFormat, file(["<t>One.\n\nTwo\t5\n\n\nc</t>"], [[0]]))
    assert sentences == ["One.", "Two", "5", "c"] and written.problems == []
    assert "ONE.\n\nTWO\t5\n\n\nC" in member(new, SHARED)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ('<f>MATCH("ONE",A1:A9,0)&amp;"x"</f>', ["Key", "Text", "Note", "two", "three"]),
        ('<f t="array" ref="A1">COUNTIF(A1:A9,"&lt;&gt;t*o")</f>', ["Key", "Text", "Note", "one", "three"]),
        ('<formula1>"one,two"</formula1>', ["Key", "Text", "Note", "three"]),
        ("<f>A1</f><v>one</v>", ["Key", "Text", "Note", "one", "two", "three"]),
    ],
)
def test_texts_that_formulas_look_up_stay(formula, expected):
    reader, segments = parsed(XlsxFormat, file(STRINGS, [*ROWS, [f">{formula}"]]))
    assert [segment.text for segment in segments] == expected
    assert reader.remarks["looked-up text", "left alone"] == 6 - len(expected)


def test_unknown_column_is_refused():
    with pytest.raises(DataError, match="no column 'Texts'.*'Key', 'Text', 'Note'"):
        shown(XlsxFormat, file(STRINGS, ROWS), columns=("Texts",))


def test_names_of_columns_of_tables_stay():
    table = '<table ref="A1:B3" totalsRowCount="1"/>'
    links = relations(t=("table", "../tables/table1.xml"))
    members = {"xl/worksheets/_rels/sheet1.xml.rels": links, "xl/tables/table1.xml": table}
    assert shown(XlsxFormat, file(STRINGS, ROWS, **members)) == ["Note", "one", "two", "three"]


@pytest.mark.parametrize("seed", range(100))
def test_round_trips(seed):
    chance = random.Random(seed)

    def string():
        words = [chance.choice(("one", "&lt;Two&gt;", "f&amp;r", "5", "a\nb")) for _ in range(chance.randint(1, 3))]
        if chance.random() < 0.5:
            return f"<t>{' '.join(words)}</t>"
        return "".join(chance.choice((BOLD, f"<r>{BODY}</r>")).format(word) for word in words)

    strings = [string() for _ in range(chance.randint(1, 6))]
    rows = [[chance.randrange(len(strings)) for _ in range(3)] for _ in range(chance.randint(1, 4))]
    rows[-1].append(f't="inlineStr"><is>{string()}</is>')
    data = file(strings, rows)
    check_identity(XlsxFormat, data)
    check_swapped(XlsxFormat, data, exact=False)
    check_shuffled(XlsxFormat, data, seed)


def test_broken_files_are_refused():
    refused("sharedStrings.xml: line 1.*broken XML", parsed, XlsxFormat, file(["<t>"], [[0]]))
