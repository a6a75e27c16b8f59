"""What a translation job has done: counts of documents, sentences, repairs and failures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hf_docmt.messages import counted

SHOWN_FAILURES = 20


@dataclass
class JobSummary:
    """Counts over documents; `failures` are (id, reason) of the first documents that could not be translated.

    `empty` counts sentences of the others whose translation is empty and whose source is not.
    """

    documents: int = 0
    sentences: int = 0
    lines: int = 0  # written sentences
    as_written: bool = False  # translated with repairs="none", so that there may be other lines than sentences
    repairs: Counter = field(default_factory=Counter)
    empty: int = 0
    failed: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Sequence[dict]) -> "JobSummary":
        """The counts over result rows."""
        failures = [(row["doc_id"], row["error"]) for row in rows if "error" in row]
        return cls(
            documents=len(rows),
            sentences=sum(len(row["source"]) for row in rows),
            lines=sum(len(row["translation"]) for row in rows),
            as_written=any(row["search"].get("repairs") == "none" for row in rows),
            repairs=Counter(repair["kind"] for row in rows for repair in row["repairs"]),
            empty=sum(empty_translations(row) for row in rows if "error" not in row),
            failed=len(failures),
            failures=failures[:SHOWN_FAILURES],
        )

    def add(self, other: "JobSummary") -> None:
        """Count further documents in."""
        self.documents += other.documents
        self.sentences += other.sentences
        self.lines += other.lines
        self.as_written |= other.as_written
        self.repairs += other.repairs
        self.empty += other.empty
        self.failed += other.failed
        self.failures = (self.failures + other.failures)[:SHOWN_FAILURES]

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return vars(self) | {"repairs": dict(self.repairs)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "JobSummary":
        """From what `to_json` gave."""
        failures = [(doc_id, reason) for doc_id, reason in values["failures"]]
        return cls(**values | {"repairs": Counter(values["repairs"]), "failures": failures})

    @property
    def exit_code(self) -> int:
        return 1 if self.failed else 0

    def text(self) -> str:
        """The last line of the command, after a line for each of the first documents that failed."""
        shown = [f"{doc_id}: {reason}" for doc_id, reason in self.failures]
        if self.failed > len(shown):
            shown.append(f"... and {self.failed - len(shown)} more")
        written = f", {counted(self.lines, 'line')} as written" if self.as_written else ""
        repairs = ", ".join(f"{count} {kind}" for kind, count in sorted(self.repairs.items())) or "none"
        empty = f" ({self.empty} with an empty translation)" if self.empty else ""
        failed = f", {counted(self.failed, 'document')} failed" if self.failed else ""
        size = f"{counted(self.documents, 'document')}, {counted(self.sentences, 'sentence')}{empty}"
        total = f"{size}{written}, repairs: {repairs}{failed}"
        return "\n".join([*shown, total])


def empty_translations(row: dict) -> int:
    """Number of sentences of a result row that are empty though their source is not; 0 for lines as written."""
    source, translation = row["source"], row["translation"]
    if row["search"].get("repairs") == "none":  # line j need not be sentence j
        return 0
    return sum(bool(ours.strip()) and not theirs.strip() for ours, theirs in zip(source, translation))
