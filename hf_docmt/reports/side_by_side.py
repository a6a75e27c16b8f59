"""Translations of several systems side by side, sentence by sentence: which differ, and in which words."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import regex

from hf_docmt.messages import check_known

SENTENCES = ("changed", "all")
ORDERS = ("document", "change")

Piece = tuple[str, str]  # `same`, `new` or `gone`, and the text
_WORD = regex.compile(
    r"(?V1)[\p{Han}\p{Hiragana}\p{Katakana}]|[[\p{L}\p{M}\p{N}_]--[\p{Han}\p{Hiragana}\p{Katakana}]]+|\s+|."
)
_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True)
class ComparedSentence:
    """One sentence with the source sentences before it, its references, and what each system made of it.

    `number` counts the sentences of a document from 1. `scores` are those of each translation against the references.
    """

    doc_id: str
    number: int
    context: tuple[str, ...]
    source: str | None
    references: tuple[str, ...]
    translations: dict[str, str]
    scores: dict[str, float]

    def differs(self, system: str, baseline: str) -> bool:
        return self.translations[system] != self.translations[baseline]

    def delta(self, system: str, baseline: str) -> float:
        """Score of a system minus that of the baseline."""
        return self.scores[system] - self.scores[baseline]


class Overview(NamedTuple):
    """A system as a whole: scores (the baseline's, or differences from them), and how many of its sentences differ."""

    system: str
    scores: dict[str, str]
    changes: str

    def __str__(self) -> str:
        scores = ", ".join(f"{metric} {score}" for metric, score in self.scores.items())
        return f"{self.system}: {'; '.join(filter(None, (scores, self.changes)))}"


@dataclass(frozen=True)
class SideBySide:
    """Systems in the order given, the sentences, the signature of their scores, the target language, the files read.

    `scores` are those of all sentences, by metric and system; `alone` are the systems that translated every sentence
    alone.
    """

    systems: tuple[str, ...]
    baseline: str
    sentences: tuple[ComparedSentence, ...]
    signature: str
    target_lang: str | None = None
    files: tuple[Path, ...] = ()
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    alone: frozenset[str] = frozenset()

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(system for system in self.systems if system != self.baseline)

    def overview(self) -> list[Overview]:
        """All systems, the baseline first: how many sentences differ from it, and how many of these score higher."""
        rows = [Overview(self.baseline, {name: f"{own[self.baseline]:.1f}" for name, own in self.scores.items()}, "")]
        for system in self.others:
            differing = [sentence for sentence in self.sentences if sentence.differs(system, self.baseline)]
            deltas = [sentence.delta(system, self.baseline) for sentence in differing]
            higher, lower = sum(delta > 0 for delta in deltas), sum(delta < 0 for delta in deltas)
            changes = (
                f"{len(differing)} of {len(self.sentences)} sentences differ from {self.baseline}; {higher} score "
                f"higher, {lower} lower, {len(deltas) - higher - lower} the same"
            )
            scores = {name: f"{own[system] - own[self.baseline]:+.1f}" for name, own in self.scores.items()}
            rows.append(Overview(system, scores, changes))
        return rows

    def differing(self, sentence: ComparedSentence) -> list[str]:
        """The systems whose translation is another one than the baseline's."""
        return [system for system in self.others if sentence.differs(system, self.baseline)]

    def is_changed_by_context(self, sentence: ComparedSentence) -> bool:
        """Whether a system that read context has another translation than the baseline that read none, or reversed."""
        return any((system in self.alone) != (self.baseline in self.alone) for system in self.differing(sentence))

    def select(self, sentences: str = "changed", order: str = "document") -> SideBySide:
        """`changed`, the sentences in which a system differs from the baseline, or `all` of them.

        In the order `document`, or `change`: those whose scores differ most first. ValueError: unknown choices.
        """
        check_known(sentences, SENTENCES, "choice of sentences", "known are")
        check_known(order, ORDERS, "order", "known are")
        kept = [sentence for sentence in self.sentences if sentences == "all" or self.differing(sentence)]
        if order == "change":
            kept.sort(key=lambda one: -max((abs(one.delta(name, self.baseline)) for name in self.others), default=0.0))
        return replace(self, sentences=tuple(kept))


def changed_words(base: str, other: str) -> list[Piece]:
    """`other` in pieces: `same` as in `base`, `new`, or `gone` from it with nothing instead.

    Words are what Unicode has as letters, marks and digits together; Chinese and Japanese ones are compared character
    by character. `same` and `new` pieces together are `other`.
    """
    words, base_words = _words(other), _words(base)
    matcher = SequenceMatcher(None, [word.strip() for word in base_words], [word.strip() for word in words], False)
    pieces: list[Piece] = []
    for change, base_first, base_last, first, last in matcher.get_opcodes():
        if change == "delete":
            pieces.append(("gone", "".join(base_words[base_first:base_last])))
        else:
            pieces.append(("same" if change == "equal" else "new", "".join(words[first:last])))
    return list(chain.from_iterable(map(_without_outer_space, pieces)))


def marked(base: str, other: str) -> str:
    """`other` for a terminal: what is new against `base` in `{+ +}`, what is gone from it in `[- -]`."""
    marks = {"same": "{}", "new": "{{+{}+}}", "gone": " [-{}-] "}
    return " ".join(visible("".join(marks[change].format(text) for change, text in changed_words(base, other))).split())


def side_by_side_text(shown: SideBySide, overview: Sequence[Overview] = ()) -> str:
    """For a terminal: source, reference, a line for each system with its score or the difference from the baseline's.

    New words are in `{+ +}`, words of the baseline without a counterpart in `[- -]`. Control characters, also
    those that turn the direction of writing, are shown by their code points.
    """
    whole = [visible(str(row)) for row in overview if row.scores or row.changes]
    blocks = ["\n".join([*whole, f"{{+new+}} and [-gone-] against {shown.baseline}; scores: {shown.signature}"])]
    names = {name: visible(name) for name in shown.systems}
    width = max(map(len, (*names.values(), "reference")))
    for sentence in shown.sentences:
        lines = [f"{visible(sentence.doc_id)}, sentence {sentence.number}"]
        lines += [f"  {'context':{width}}          {visible(text)}" for text in sentence.context]
        lines += [f"  {'source':{width}}          {visible(text)}" for text in (sentence.source,) if text is not None]
        lines += [f"  {'reference':{width}}          {visible(text)}" for text in sentence.references]
        for system in shown.systems:
            score = score_text(shown, sentence, system)
            text = marked(sentence.translations[shown.baseline], sentence.translations[system])
            lines.append(f"  {names[system]:{width}}  {score:>6}  {text}".rstrip())
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def score_text(shown: SideBySide, sentence: ComparedSentence, system: str) -> str:
    """The baseline's score, the difference of another system, `=` where it has the same translation."""
    if system == shown.baseline:
        return f"{sentence.scores[system]:.1f}"
    return f"{sentence.delta(system, shown.baseline):+.1f}" if sentence.differs(system, shown.baseline) else "="


def visible(text: str, bidirectional: bool = True) -> str:
    """Text on one line in which control characters and lone surrogates, which a terminal obeys, are code points.

    `bidirectional`: marks of the direction of writing, too.
    """
    return "".join(" " if sign.isspace() else _visible_sign(sign, bidirectional) for sign in text)


def _visible_sign(sign: str, bidirectional: bool) -> str:
    hidden = unicodedata.category(sign) in ("Cc", "Cs") or (bidirectional and sign in _BIDIRECTIONAL)
    return f"\\u{ord(sign):04x}" if hidden else sign


def _words(text: str) -> list[str]:
    """Words and other signs, each with the space after it; space at the beginning is a word."""
    words: list[str] = []
    for part in _WORD.findall(text):
        if part.isspace() and words:
            words[-1] += part
        else:
            words.append(part)
    return words


def _without_outer_space(piece: Piece) -> list[Piece]:
    """A piece that is not the same without the space at its end; new space is the same."""
    change, text = piece
    inner = text.rstrip()
    if change == "same" or not inner:
        return [("same", text)] if change != "gone" else []
    space = text[len(inner) :]
    return [(change, inner), *([("same", space)] if space and change == "new" else [])]
