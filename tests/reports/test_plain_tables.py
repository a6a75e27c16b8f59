"""Tables of cells in text, Markdown and LaTeX, with what these read as commands escaped."""

import pytest

from hf_docmt.reports.plain_tables import plain_table

ROWS = [["", "a_b", "c"], ["x|y", "1", "50 %"]]


def test_styles():
    assert plain_table(ROWS, ["A note."]).splitlines() == [
        "     a_b  c",
        "---  ---  ----",
        "x|y    1  50 %",
        "",
        "A note.",
    ]
    assert plain_table(ROWS, ["A *."], "markdown").splitlines() == [
        "|  | a\\_b | c |",
        "| --- | ---: | ---: |",
        "| x\\|y | 1 | 50 % |",
        "",
        "- A \\*.",
    ]
    latex = plain_table(ROWS, ["A %."], "latex").splitlines()
    assert latex[:4] == [r"\begin{tabular}{lrr}", r"\toprule", r" & a\_b & c \\", r"\midrule"]
    assert latex[4:] == [r"x\textbar{}y & 1 & 50 \% \\", r"\bottomrule", r"\end{tabular}", r"\par A \%."]


def test_unknown_style():
    with pytest.raises(ValueError, match="style is 'html', expected text, markdown or latex"):
        plain_table(ROWS, [], "html")
