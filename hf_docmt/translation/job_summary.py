"""What a translation job has done: counts of documents, sentences, repairs and failures."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

SHOWN_FAILURES = 20


@dataclass
class JobSummary:
    """Counts over the documents of a job; `failures` are (id, reason) of the documents that were not translated."""

    documents: int = 0
    sentences: int = 0
    lines: int = 0  # written sentences
    as_written: bool = False  # translated with repairs="none", so that there may be other lines than sentences
    repairs: Counter = field(default_factory=Counter)
    failures: list[tuple[str, str]] = field(default_factory=list)

    def add(self, rows: Iterable[dict]) -> None:
        """Count result rows in."""
        for row in rows:
            self.documents += 1
            self.sentences += len(row["source"])
            self.lines += len(row["translation"])
            self.as_written |= row["search"].get("repairs") == "none"
            self.repairs.update(repair["kind"] for repair in row["repairs"])
            if "error" in row:
                self.failures.append((row["doc_id"], row["error"]))

    @property
    def exit_code(self) -> int:
        return 1 if self.failures else 0

    def text(self) -> str:
        """The last line of the command, after a line for each of the first documents that failed."""
        shown = [f"{doc_id}: {reason}" for doc_id, reason in self.failures[:SHOWN_FAILURES]]
        if len(self.failures) > SHOWN_FAILURES:
            shown.append(f"... and {len(self.failures) - SHOWN_FAILURES} more")
        written = f", {self.lines} lines as written" if self.as_written else ""
        repairs = ", ".join(f"{count} {kind}" for kind, count in sorted(self.repairs.items())) or "none"
        failed = f", {len(self.failures)} documents failed" if self.failures else ""
        total = f"{self.documents} documents, {self.sentences} sentences{written}, repairs: {repairs}{failed}"
        return "\n".join([*shown, total])
