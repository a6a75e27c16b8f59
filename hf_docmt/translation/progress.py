"""Progress of a translation job: its counts, and their display on standard error while it runs."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tqdm import tqdm

from hf_docmt.messages import counted
from hf_docmt.modeling.text_splitting import has_text

SHOWN_FAILURES = 20
MANY = 100  # sentences, of which more than half have to have a translation
FIRST_LINE, NEXT_LINES = 10.0, 60.0  # seconds; a job that is shorter writes none


@dataclass
class JobSummary:
    """Counts over documents; `failures` are (id, reason) of the first documents that could not be translated.

    In the others, `visible` counts sentences with words, `empty` those of them whose translation is empty, and
    `empty_documents` the documents that have such ones. The fields are values of JSON, and are read back from them.
    """

    documents: int = 0
    sentences: int = 0
    lines: int = 0  # written sentences
    as_written: bool = False  # translated with repairs="none", so that there may be other lines than sentences
    repairs: Counter = field(default_factory=Counter)
    carried_runs: int = 0  # opaque runs in sentences
    in_parts: int = 0  # sentences that were translated around it
    from_memory: int = 0  # sentences
    visible: int = 0
    empty: int = 0
    empty_documents: int = 0
    failed: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)
    problems: int = 0  # of the files and texts that were written
    written: list[str] = field(default_factory=list)  # lines about them

    def __post_init__(self):
        self.repairs, self.failures = Counter(self.repairs), [(doc_id, reason) for doc_id, reason in self.failures]

    @classmethod
    def of(cls, rows: Sequence[dict]) -> "JobSummary":
        """The counts over result rows."""
        failures = [(row["doc_id"], row["error"]) for row in rows if "error" in row]
        visible = [_translations_of_text(row) for row in rows]
        empty = [sum(not has_text(text) for text in texts) for texts in visible]
        return cls(
            documents=len(rows),
            sentences=sum(len(row["source"]) for row in rows),
            lines=sum(len(row["translation"]) for row in rows),
            as_written=any(map(_is_as_written, rows)),
            repairs=Counter(repair["kind"] for row in rows for repair in row["repairs"]),
            carried_runs=sum(row.get("carried_runs", 0) for row in rows),
            in_parts=sum(row.get("in_parts", 0) for row in rows),
            from_memory=sum(row.get("from_memory", 0) for row in rows),
            visible=sum(map(len, visible)),
            empty=sum(empty),
            empty_documents=sum(map(bool, empty)),
            failed=len(failures),
            failures=failures[:SHOWN_FAILURES],
            problems=sum(len(row.get("problems", ())) for row in rows),
            written=[line for row in rows for line in (*row.get("problems", ()), *missing_terms(row))],
        )

    def add(self, other: "JobSummary") -> None:
        """Count further documents in."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        del self.failures[SHOWN_FAILURES:]

    @property
    def is_mostly_empty(self) -> bool:
        """Whether all translations of text are empty, or more than half where there are a hundred and more."""
        return 0 < self.empty == self.visible or 2 * self.empty > self.visible >= MANY

    def text(self) -> str:
        """The last line of the command, after a line for each of the first documents that failed."""
        shown = [f"{doc_id}: {reason}" for doc_id, reason in self.failures]
        if self.failed > len(shown):
            shown.append(f"... and {self.failed - len(shown)} more")
        written = f", {counted(self.lines, 'line')} as written" if self.as_written else ""
        repairs = ", ".join(f"{count} {kind}" for kind, count in sorted(self.repairs.items())) or "none"
        parts = f" ({counted(self.in_parts, 'sentence')} translated around them)" if self.in_parts else ""
        carried = f", {counted(self.carried_runs, 'run')} carried{parts}" if self.carried_runs else ""
        carried += f", {counted(self.from_memory, 'sentence')} from memory" if self.from_memory else ""
        documents = counted(self.empty_documents, "document")
        empty = f" ({self.empty} with an empty translation, in {documents})" if self.empty else ""
        if self.is_mostly_empty:
            shown.append(
                f"{self.empty} of {counted(self.visible, 'sentence')} with text got an empty translation: the model, "
                "its tokenizer or a setting of the search is wrong. Do not use the output"
            )
        failed = f", {counted(self.failed, 'document')} failed" if self.failed else ""
        size = f"{counted(self.documents, 'document')}, {counted(self.sentences, 'sentence')}{empty}"
        return "\n".join([*shown, *self.written, f"{size}{written}, repairs: {repairs}{carried}{failed}"])


def missing_terms(row: dict) -> list[str]:
    """A line for each term of the glossary that a translation lacks."""
    missing = [repair for repair in row["repairs"] if repair["kind"] == "term"]
    return [f"{row['doc_id']}, sentence {repair['sentence'] + 1}: {repair['detail']}" for repair in missing]


def _is_as_written(row: dict) -> bool:
    """Whether a document was translated without repairs: its line j need not be sentence j."""
    return row["search"].get("repairs") == "none"


def _translations_of_text(row: dict) -> list[str]:
    """The translations in a result row of sentences with a letter or digit; none for failures and unrepaired lines."""
    if "error" in row or _is_as_written(row):
        return []
    pairs = zip(row["source"], row["translation"])
    return [text for source, text in pairs if any(character.isalnum() for character in source)]


class Progress:
    """Sentences that are done: a bar on a terminal; in a log a line after ten seconds, and then one per minute.

    `total` is the size of the job (None: unknown), `done` what a job before has done of it.
    """

    def __init__(self, total: JobSummary | None, done: JobSummary, clock: Callable[[], float] = time.monotonic):
        self.total, self.clock = total, clock
        self.start, self.before = clock(), done.sentences
        self.next = self.start + FIRST_LINE
        counts = {"total": total and total.sentences, "initial": done.sentences}
        self.bar = tqdm(**counts, unit=" sentences", smoothing=0.1, dynamic_ncols=True, disable=not sys.stderr.isatty())

    def update(self, summary: JobSummary) -> None:
        """Move the bar, or write a line where it is time."""
        self.bar.set_postfix_str(counted(summary.documents, "document"), refresh=False)
        self.bar.update(summary.sentences - self.bar.n)
        now = self.clock()
        if self.bar.disable and now >= self.next:
            print(self.line(summary, now - self.start), file=sys.stderr, flush=True)
            self.next = now + NEXT_LINES

    def line(self, summary: JobSummary, seconds: float) -> str:
        """The work done, and what tqdm says of its speed since this job started and of the time left."""
        of = f" of {self.total.documents}" if self.total else ""
        total, documents = self.total and self.total.sentences, counted(summary.documents, "document")
        texts = {"prefix": f"{documents}{of}", "unit": " sentences", "initial": self.before}
        return tqdm.format_meter(summary.sentences, total, seconds, ncols=0, **texts)

    def close(self) -> None:
        """Close the bar without clearing it."""
        self.bar.close()
