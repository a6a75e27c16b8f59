"""How a comparison is written in text, Markdown and LaTeX: markers, intervals, escapes."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from hf_docmt.reports.comparison import Figure


@dataclass(frozen=True)
class TableStyle:
    """How a format writes figures, their markers and intervals, and any other text."""

    escape: Callable[[str], str]
    marker: str
    no_marker: str  # as wide as the marker
    letter: str  # of a signature
    range: str
    plus_minus: str
    absent: str
    minus: str = "-"
    intervals: str = "range"
    digits: int = 2

    def figure(self, figure: Figure | None) -> str:
        if figure is None:
            return self.absent
        marker = self.marker if figure.significant else self.no_marker
        return f"{self._number(figure.value)}{marker}{self._interval(figure)}"

    def _number(self, value: float) -> str:
        return f"{value:.{self.digits}f}".replace("-", self.minus)

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
    """Text in which no character is Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>|#~$&])", r"\\\1", _plain(text))


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
    "text": TableStyle(_plain, "*", " ", " ({})", " [{}, {}]", " ±{}", "-"),
    "markdown": TableStyle(escape_markdown, r"\*", "", " ({})", " [{}, {}]", " ±{}", "-"),
    "latex": TableStyle(
        escape_latex,
        "$^{*}$",
        r"\phantom{$^{*}$}",
        r"\textsuperscript{{{}}}",
        "~[{}, {}]",
        r"\,$\pm$\,{}",
        "--",
        minus="$-$",
    ),
}
