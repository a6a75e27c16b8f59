"""Chunks of sentences that a model of free text translates at once, as numbered lines or as they were written."""

from collections.abc import Iterator, Sequence

from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.evaluation.systems.document_spans import Span, TranslatedDocument, window_of
from hf_docmt.evaluation.systems.model_system import ModelSystem
from hf_docmt.evaluation.systems.prompts import Lines, numbered, numbered_lines
from hf_docmt.messages import counted

REPAIRS = ("all", "none")
REMINDER = "There are {0} numbered lines. Answer with {0} lines, each with its number.\n\n"


class ChunkTranslation(ModelSystem):
    """Translates `chunk_sentences` sentences at once; with `repairs="none"` the lines of an answer are left so.

    A kind has `span_jobs` besides `prepare` and `generate`.
    """

    repairs: str

    def span_jobs(
        self, windows: Sequence[SuiteItem], joined: Lines, reminders: Sequence[str]
    ) -> list[tuple[list[int], list[int]]]:
        """As `prepare`, of chunks whose lines `joined` makes one text of, each with a reminder (or none) before it."""
        raise NotImplementedError

    def translate_spans(self, documents: Sequence[TranslatedDocument], spans: Sequence[Span]) -> None:
        """Translate chunks as numbered lines, twice where need be; those that fail sentence by sentence."""
        if self.repairs == "none":
            return self._translate_as_written(documents, spans)
        chunks, single = [span for span in spans if span.size > 1], [span for span in spans if span.size == 1]
        super().translate_spans(documents, single)
        for reminder, kind, remedy in ("", "retry", "asked again"), (REMINDER, "by_sentence", "sentence by sentence"):
            failed = []
            for span, (text, ended) in self._answered(documents, chunks, numbered, reminder):
                lines, document = numbered_lines(text, span.size), documents[span.document]
                if lines is None:
                    failed.append(span)
                    count = counted(len([line for line in text.splitlines() if line.strip()]), "line")
                    document.report(span, kind, f"an answer of {count} for {span.size} numbered ones: {remedy}")
                else:
                    document.write(span, lines, ended)
            chunks = failed
        for step in range(max((span.size for span in chunks), default=0)):
            super().translate_spans(documents, [span.sentences[step] for span in chunks if step < span.size])

    def _translate_as_written(self, documents: Sequence[TranslatedDocument], spans: Sequence[Span]) -> None:
        """Translate spans as lines without numbers, whose translations are the lines of the answers."""
        for span, (text, ended) in self._answered(documents, spans, "\n".join):
            lines, document = [line.strip() for line in text.splitlines() if line.strip()], documents[span.document]
            document.lines = [*(document.lines or []), *lines]
            if len(lines) != span.size:
                document.report(span, "misaligned", f"{len(lines)} sentences for {span.size}: left as written")
            document.report_end(span, ended)

    def _answered(
        self, documents: Sequence[TranslatedDocument], spans: Sequence[Span], joined: Lines, reminder: str = ""
    ) -> Iterator[tuple[Span, tuple[str, bool]]]:
        """Every span with its answer and whether that came to an end."""
        windows = [window_of(documents, span, self.past_context, 0) for span in spans]
        jobs = self.span_jobs(windows, joined, [reminder.format(span.size) for span in spans])
        return zip(spans, self.answers(jobs, [span.size for span in spans]), strict=True)

    def check_chunks(self) -> None:
        """ValueError for sizes and repairs that are none, and for context where no sentence has its translation."""
        size = self.chunk_sentences
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ValueError(f"chunk_sentences is {size!r}, expected a number of sentences, or 0 for whole documents")
        if self.repairs not in REPAIRS:
            raise ValueError(f"repairs must be one of {', '.join(REPAIRS)}, got {self.repairs!r}")
        if self.repairs == "none" and (size == 1 or self.past_context):
            raise ValueError(
                "repairs='none' is for chunks without context, which are left as they were written; give "
                f"chunk_sentences=0 or more than 1, and no past_context (got {size} and {self.past_context})"
            )
