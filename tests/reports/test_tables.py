"""Tables as text, Markdown, LaTeX, CSV and JSON: what is shown, columns that line up, escapes."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest
from support.errors import refused

from hf_docmt.reports.comparison import Comparison, Figure, Row
from hf_docmt.reports.comparison_tables import FORMATS, format_comparison, wrapped
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.significance import Outcome
from hf_docmt.reports.tables import write_table

SIGNIFICANT = Outcome(20.0, (10.0, 30.0), 0.001, documents=8, significant=True)
NASTY = 'a|b_c & 50% $x$ #1 {y} \\z ~ ^ <i> *[n]* `q` "r" ±'


def figure(value, n=90, interval=None, test=None):
    return Figure(value, n, "logprob:sum|ties:wrong", None, None, interval, test)


def row(part="", figures=None, group=0, **changes):
    given = {"letter": "a", "task": "contrastive", "dataset": "pronoun", "split": "all", "metric": "accuracy"}
    axis, _, place = part.partition("=")
    given |= {"strategy": None, "beams": None, "chance": None, "axis": axis, "place": place}
    return Row(group=group, part=part, figures=figures or {}, **{**given, **changes})


@pytest.fixture
def comparison():
    rows = (
        row(figures={"small": figure(9.5, 450), "big": figure(100.0, 450, (98.126, 100.0), SIGNIFICANT)}),
        row("distance=0", {"small": figure(33.333, 90, (24.0, 43.5)), "big": figure(99.0)}),
        row("distance=>3", {"big": figure(-1.25, 80)}),
        row(figures={"small": figure(50.0, 12), "big": figure(50.0, 13)}, group=1, letter="b", dataset="deixis"),
    )
    notes = ("* differs significantly from small.",)
    settings = {"small": {"strategy": ("sentence",), "past": ("0",)}, "big": {"past": ("2", "all")}}
    return Comparison(("small", "big"), rows, {"a": "logprob:sum|ties:wrong", "b": "x:1/2"}, "small", notes, settings)


def test_text(comparison):
    assert format_comparison(comparison).splitlines() == [
        "dataset  metric        part             n  small                  big",
        "         strategy                          sentence               -",
        "         past                              0                      2/all",
        "-------  ------------  -----------  -----  ---------------------  -----------------------",
        "pronoun  accuracy (a)                 450   9.50                  100.00* [98.13, 100.00]",
        "         difference                                               +90.50 (0.001)",
        "                       distance=0      90  33.33  [24.00, 43.50]   99.00",
        "                       distance=>3     80      -                   -1.25",
        "deixis   accuracy (b)               12/13  50.00                   50.00",
        "         difference                                                +0.00 (-)",
        "",
        "(a) logprob:sum|ties:wrong",
        "(b) x:1/2",
        "",
        "All rows: split all.",
        "[low, high]: 95 % interval.",
        "difference: from small, p-value in brackets.",
        "* differs significantly from small.",
    ]


@pytest.mark.parametrize(
    ("width", "lines"),
    [(None, ["(a) x:1|yy:2|z:3"]), (80, ["(a) x:1|yy:2|z:3"]), (10, ["(a) x:1|", "    yy:2|", "    z:3"]),
     (13, ["(a) x:1|yy:2|", "    z:3"]), (1, ["(a) x:1|", "    yy:2|", "    z:3"])],
)  # fmt: skip
def test_signatures_are_cut_between_their_parts(width, lines):
    assert wrapped("(a) x:1|yy:2|z:3", width).split("\n") == lines


@pytest.mark.parametrize(("p_value", "text"), [(0.2388, "(0.239)"), (0.001, "(0.001)"), (0.00009999, "(0.0001)")])
def test_p_values(comparison, p_value, text):
    figures = comparison.rows[0].figures
    figures["big"] = replace(figures["big"], test=replace(SIGNIFICANT, p_value=p_value))
    assert f"+90.50 {text}" in format_comparison(comparison)


def test_width(comparison):
    """Narrower than the table: first without intervals, then in parts that all have the left columns."""
    whole = format_comparison(comparison)
    assert format_comparison(comparison, width=89) == whole == format_comparison(comparison, width=200)
    lines = format_comparison(comparison, width=88).splitlines()
    assert max(map(len, lines[:10])) <= 88 and "[" not in "".join(lines[:10])
    assert lines[14] == "95 % intervals do not fit into 88 characters; CSV and JSON have them."
    narrow = format_comparison(comparison, width=60).split("\n\n")
    assert [table.splitlines()[0].split()[-1] for table in narrow[:2]] == ["small", "big"]
    assert all(max(map(len, table.splitlines())) <= 60 for table in narrow[:2])
    assert all(table.splitlines()[4].startswith("pronoun  accuracy (a)") for table in narrow[:2])
    assert len(format_comparison(comparison, width=1).split("\n\n")) == len(narrow)


def test_runs(comparison):
    """Mean and deviation, how many runs, `(2 runs)` where a score has fewer than others of its system."""
    mean = replace(figure(50.0), runs=3, deviation=1.5)
    rows = tuple(
        replace(one, part="", figures={"small": figure(40.0), "big": replace(mean, runs=runs)})
        for one, runs in zip(comparison.rows, (3, 2))
    )
    lines = format_comparison(replace(comparison, rows=rows)).splitlines()
    assert lines[3].split() == ["runs", "1", "3"]
    assert [lines[row].split()[-6:] for row in (5,)] == [["accuracy", "(a)", "90", "40.00", "50.00", "(±1.50)"]]
    assert lines[7].split()[-5:] == ["40.00", "50.00", "(±1.50,", "2", "runs)"]
    assert "(±): standard deviation over runs, with runs - 1; values are means over runs." in lines
    latex = format_comparison(replace(comparison, rows=rows), "latex")
    assert r"50.00\,($\pm$\,1.50, 2 runs) \\" in latex


def test_facts_are_columns_where_they_differ(comparison):
    rows = [replace(one, strategy="sliding", beams=1) for one in comparison.rows]
    assert "All rows: split all, strategy sliding, beams 1." in format_comparison(replace(comparison, rows=tuple(rows)))
    rows[-1] = replace(rows[-1], beams=None, strategy=None, split="dev", dataset="pronoun", task="discourse")
    lines = format_comparison(replace(comparison, rows=tuple(rows))).splitlines()
    assert lines[0].split()[:4] == ["dataset", "task", "split", "metric"]
    assert lines[4].split()[:4] == ["pronoun", "contrastive", "all", "accuracy"]
    assert lines[8].split()[:4] == ["pronoun", "discourse", "dev", "accuracy"]


def split_cells(line):
    """Cells of a line of a Markdown table, as GitHub reads it: cut at bars without a backslash before them."""
    cells, escaped = [""], False
    for sign in line.strip().removeprefix("|").removesuffix("|"):
        if sign == "|" and not escaped:
            cells.append("")
        else:
            cells[-1] += sign
        escaped = sign == "\\" and not escaped
    return [re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", cell).strip() for cell in cells]


def test_markdown(comparison):
    lines = format_comparison(comparison, "markdown").splitlines()
    table, below = lines[: lines.index("")], lines[lines.index("") + 1 :]
    assert [cell.endswith(":") for cell in split_cells(table[1])] == [False, False, False, True, True, True]
    assert split_cells(table[2]) == ["", "strategy", "", "", "sentence", "-"]
    assert split_cells(table[4]) == ["pronoun", "accuracy (a)", "", "450", "9.50", "100.00* [98.13, 100.00]"]
    assert split_cells(table[5]) == ["", "difference", "", "", "", "+90.50 (0.001)"]
    assert split_cells(table[7]) == ["", "", "distance=>3", "80", "-", "-1.25"]
    assert below[:2] == ["- (a) `logprob:sum|ties:wrong`", "- (b) `x:1/2`"]
    assert below[-1] == r"- \* differs significantly from small."


def nasty(comparison):
    """Names full of signs that mean something in Markdown or LaTeX."""
    rows = [
        replace(one, dataset=NASTY, part=one.part and NASTY, figures={NASTY: [*one.figures.values()][-1]})
        for one in comparison.rows
    ]
    signatures = {"a": NASTY, "b": NASTY.replace("`", "``") + "`"}
    return Comparison((NASTY,), tuple(rows), signatures, None, (NASTY + "\nsecond line",))


def test_markdown_as_a_reader_shows_it(comparison):
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    html = markdown.render(format_comparison(nasty(comparison), "markdown"))
    texts = [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", html)]
    shown = NASTY.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    assert texts[:5] == ["dataset", "metric", "part", "n", shown]
    assert len(texts) == 5 * 5
    assert re.findall(r"<code>(.*?)</code>", html)[0] == shown
    assert "<em>" not in html and "<i>" not in html and f"{shown} second line" in html


def tex_text(source):
    """What LaTeX would print of a text that was escaped, by the meaning of each escape; an error for any other."""
    meanings = {
        r"\textbackslash{}": "\\",
        r"\textasciitilde{}": "~",
        r"\textasciicircum{}": "^",
        r"\textless{}": "<",
        r"\textgreater{}": ">",
        r"\textbar{}": "|",
        r"\textbar\allowbreak{}": "|",
        r"\char34{}": '"',
        r"\textasciigrave{}": "`",
        "{[}": "[",
        "{*}": "*",
        r"$\pm$": "±",
        **{f"\\{sign}": sign for sign in "&%$#_{}"},
    }
    printed = ""
    while source:
        escape = max((text for text in meanings if source.startswith(text)), key=len, default=None)
        assert escape or source[0] not in '\\{}$&#^_%~<>|"`', f"not escaped: {source[:20]}"
        printed += meanings[escape] if escape else source[0]
        source = source[len(escape or " ") :]
    return printed


def test_latex(comparison):
    lines = format_comparison(comparison, "latex").splitlines()
    assert lines[:5] == [r"\begin{table}", r"\centering\small", r"\begin{tabular}{lllrrr}", r"\toprule", LATEX_HEADER]
    assert lines[5:14] == LATEX_ROWS
    assert lines[14:17] == [r"\bottomrule", r"\end{tabular}", r"\par\smallskip\raggedright\footnotesize"]
    assert lines[17] == r"\textsuperscript{a}\,\texttt{logprob:sum\textbar\allowbreak{}ties:wrong}\par"
    assert lines[-2:] == [r"{*} differs significantly from small.\par", r"\end{table}"]


LATEX_HEADER = r"dataset & metric & part & n & small & big \\"
LATEX_ROWS = [
    r" & strategy &  &  & sentence & -- \\",
    r" & past &  &  & 0 & 2/all \\",
    r"\midrule",
    r"pronoun & accuracy\textsuperscript{a} &  & 450 & 9.50\phantom{$^{*}$} & 100.00$^{*}$~[98.13, 100.00] \\",
    r" & difference &  &  &  & +90.50 (0.001) \\",
    r" &  & distance=0 & 90 & 33.33\phantom{$^{*}$}~[24.00, 43.50] & 99.00\phantom{$^{*}$} \\",
    r" &  & distance=\textgreater{}3 & 80 & -- & $-$1.25\phantom{$^{*}$} \\ \addlinespace",
    r"deixis & accuracy\textsuperscript{b} &  & 12/13 & 50.00\phantom{$^{*}$} & 50.00\phantom{$^{*}$} \\",
    r" & difference &  &  &  & +0.00 (--) \\",
]


def test_latex_escapes(comparison):
    source = format_comparison(nasty(comparison), "latex")
    lines = source.splitlines()
    header = re.split(r"(?<!\\) & ", lines[4].removesuffix(r" \\"))
    assert [tex_text(cell) for cell in header] == ["dataset", "metric", "part", "n", NASTY]
    first = re.split(r"(?<!\\) & ", lines[6].removesuffix(r" \\"))
    assert len(first) == 5 and tex_text(first[0]) == NASTY
    code = re.fullmatch(r"\\textsuperscript\{a\}\\,\\texttt\{(.*)\}\\par", lines[13])[1]
    assert tex_text(code) == NASTY
    assert tex_text(lines[-2].removesuffix(r"\par")) == NASTY + " second line"
    bare = re.sub(r"\\[{}]", "", source)  # braces that are not printed
    depths = [bare[:end].count("{") - bare[:end].count("}") for end in range(len(bare) + 1)]
    assert min(depths) == 0 and depths[-1] == 0
    marks = [r"\begin{table}", r"\begin{tabular}", r"\end{tabular}", r"\end{table}"]
    assert re.findall(r"\\(?:begin|end)\{\w+\}", source) == marks


@pytest.mark.parametrize("start", ["[1ex] talks", "* talks"])
def test_latex_lines_do_not_start_with_options(comparison, start):
    rows = tuple(replace(one, dataset=start) for one in comparison.rows)
    source = format_comparison(replace(comparison, rows=rows, notes=(start,)), "latex")
    assert source.count("talks") == 3
    assert not re.search(r"(\\\\|\\[a-z]+)\s*[\[*]", source)


def test_json(comparison):
    found = json.loads(format_comparison(comparison, "json"))
    assert found["systems"] == ["small", "big"] and found["baseline"] == "small"
    assert found["signatures"] == comparison.signatures and found["notes"] == list(comparison.notes)
    assert [one["part"] for one in found["rows"]] == ["", "distance=0", "distance=>3", ""]
    big = found["rows"][0]["figures"]["big"]
    assert big["interval"] == [98.126, 100.0] and Outcome(**big["test"] | {"interval": (10.0, 30.0)}) == SIGNIFICANT
    assert list(found["rows"][1])[-4:] == ["part", "axis", "place", "figures"] and found["rows"][1]["place"] == "0"
    assert big["signature"] == "logprob:sum|ties:wrong"


def test_csv(comparison):
    """A line for each figure, numbers in full, texts quoted as the csv module reads them."""
    lines = list(csv.DictReader(io.StringIO(format_comparison(comparison, "csv"))))
    assert [line["system"] for line in lines] == ["small", "big", "small", "big", "big", "small", "big"]
    assert lines[1] == {
        **dict.fromkeys(("strategy", "beams", "deviation"), ""),
        **{"task": "contrastive", "dataset": "pronoun", "split": "all", "metric": "accuracy", "part": ""},
        **{"system": "big", "past": "2/all", "value": "100.0", "low": "98.126", "high": "100.0", "n": "450"},
        **{"runs": "1", "difference": "90.5", "difference low": "10.0", "difference high": "30.0", "p": "0.001"},
        "p by Holm": "",
        "signature": "logprob:sum|ties:wrong",
    }
    assert (lines[0]["difference"], lines[3]["difference"], lines[3]["part"]) == ("", "", "distance=0")
    strange = format_comparison(nasty(comparison), "csv")
    assert {line["system"] for line in csv.DictReader(io.StringIO(strange))} == {NASTY}


def test_without_markers_nothing_is_kept_free_for_them(comparison):
    rows = tuple(
        replace(one, figures={name: replace(found, test=None) for name, found in one.figures.items()})
        for one in comparison.rows
    )
    bare = replace(comparison, rows=rows)
    assert "phantom" not in format_comparison(bare, "latex")
    assert "33.33 [24.00, 43.50]" in format_comparison(bare)


def test_formats(comparison):
    assert len({format_comparison(comparison, name) for name in FORMATS}) == len(FORMATS) == 5
    refused("unknown format 'html': expected text, markdown, latex, csv or json", format_comparison, comparison, "html")


def test_nats_have_two_more_digits(comparison):
    """Of information a thousandth of a nat matters, of accuracy no thousandth of a percent."""
    nats = {
        "small": replace(figure(0.0025), signature="unit:nats|past:3"),
        "big": replace(figure(-0.0151), signature="unit:nats"),
    }
    lines = format_comparison(replace(comparison, rows=(row(figures=nats),))).splitlines()
    assert [line.split()[-1] for line in lines if "-0.0151" in line] == ["-0.0151"]
    assert any("0.0025" in line for line in lines) and any("-0.0176 (-)" in line for line in lines)
    one = Result(
        task="context use", dataset="test", split="all", metric="CXMI", value=0.0025, n=3,
        signature=Signature.parse("unit:nats|past:3"), breakdown={"x=1": PartScore(0.00049, 2)},
    )  # fmt: skip
    assert {"0.0025", "0.0005"} <= set(str(Report(model={"name": "m"}, data={}, results=[one])).split())


CELLS = [["", "a_b", "c"], ["x|y", 1, "50 %"], ["<z>", None, "2"]]


def test_styles_of_cells():
    text = write_table(CELLS, notes=["A note."])
    assert text.splitlines() == ["     a_b  c", "---  ---  ----", "x|y    1  50 %", "<z>    -   2", "", "A note."]
    assert write_table(CELLS, "markdown", ["A *."]).splitlines() == [
        "|  | a\\_b | c |",
        "| --- | ---: | ---: |",
        "| x\\|y | 1 | 50 % |",
        "| \\<z\\> | - | 2 |",
        "",
        "- A \\*.",
    ]
    latex = write_table(CELLS, "latex", ["A %."]).splitlines()
    assert latex[2:6] == [r"\begin{tabular}{lrr}", r"\toprule", r" & a\_b & c \\", r"\midrule"]
    assert latex[6:8] == [r"x\textbar{}y & 1 & 50 \% \\", r"\textless{}z\textgreater{} & - & 2 \\"]
    assert latex[-2:] == [r"A \%.\par", r"\end{table}"]


def test_unknown_style():
    refused("unknown style 'pdf': expected one of text, markdown, latex", write_table, CELLS, "pdf")
