"""How a comparison is written in text, Markdown and LaTeX: markers, intervals, escapes."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from hf_docmt.reports.comparison import Figure
from hf_docmt.reports.tables import extra_digits


@dataclass(frozen=True)
class TableStyle:
    """How a format writes figures, their markers and intervals, and any other text."""

    escape: Callable[[str], str]
    marker: str
    no_marker: str  # as wide as the marker
    letter: str  # of a signature
    range: str
    plus_minus: str
    deviation: str
    absent: str
    minus: str = "-"
    intervals: str = "range"
    digits: int = 2

    def figure(self, figure: Figure | None, runs: int = 1) -> str:
        """The figure of a system with so many `runs`."""
        if figure is None:
            return self.absent
        style = self._for(figure)
        marker = self.marker if figure.significant else self.no_marker
        return f"{style._number(figure.value)}{marker}{style._interval(figure)}{style._deviation(figure, runs)}"

    def difference(self, figure: Figure, base: Figure) -> str:
        """`+1.23 (0.004)`: the difference from the baseline and its p-value; `-` for a p-value of no test."""
        test = figure.test
        p_value = self.absent if test is None else f"{test.p_value:.3f}"
        if test is not None and test.p_value < 0.001:
            p_value = f"{test.p_value:.1g}"
        return f"{self._for(figure)._number(figure.value - base.value, '+')} ({p_value})"

    def _for(self, figure: Figure) -> "TableStyle":
        return replace(self, digits=self.digits + extra_digits(figure.signature))

    def _number(self, value: float, sign: str = "") -> str:
        return f"{value:{sign}.{self.digits}f}".replace("-", self.minus)

    def _deviation(self, figure: Figure, all_runs: int) -> str:
        """The deviation over runs, and how many they are where the system has more."""
        if all_runs == 1:
            return ""
        if figure.deviation is None:
            return " (1 run)"
        runs = f", {figure.runs} runs" if figure.runs < all_runs else ""
        return self.deviation.format(self._number(figure.deviation) + runs)

    def _interval(self, figure: Figure) -> str:
        if figure.interval is None or self.intervals == "none":
            return ""
        low, high = figure.interval
        if self.intervals == "range":
            return self.range.format(self._number(low), self._number(high))
        return self.plus_minus.format(self._number(max(high - figure.value, figure.value - low)))


def _plain(text: object) -> str:
    """On one line."""
    return " ".join(str(text).split())


def escape_markdown(text: object) -> str:
    """Text on one line in which no character is Markdown or HTML, and no address becomes a link."""
    return re.sub(r"(?i)([\\`*_{}\[\]<>|#~$&]|:(?=//)|(?<=www)\.)", r"\\\1", _plain(text))


def code_span(text: str) -> str:
    """As code, between more backticks than follow each other in it."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{_plain(text)}{room}{fence}"


def escape_latex(text: object, others: dict[str, str] | None = None) -> str:
    """Text in which no character is a LaTeX command; `others` adds replacements of characters or changes them."""
    signs = _LATEX | (others or {})
    return "".join(signs.get(sign, sign) for sign in _plain(text))


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "`": r"\textasciigrave{}",
    "[": "{[}",  # these two would be read as options of the line end before them
    "*": "{*}",
    "±": r"$\pm$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
BREAKABLE = {"|": r"\textbar\allowbreak{}"}
STYLES = {
    "text": TableStyle(_plain, "*", " ", " ({})", " [{}, {}]", " ±{}", " (±{})", "-"),
    "markdown": TableStyle(escape_markdown, r"\*", "", " ({})", " [{}, {}]", " ±{}", " (±{})", "-"),
    "latex": TableStyle(
        escape_latex,
        "$^{*}$",
        r"\phantom{$^{*}$}",
        r"\textsuperscript{{{}}}",
        "~[{}, {}]",
        r"\,$\pm$\,{}",
        r"\,($\pm$\,{})",
        "--",
        minus="$-$",
    ),
}
