"""Documents while a system translates them: spans of sentences, their context, translations and repairs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hf_docmt.modeling.generation_docmt import checked_documents
from hf_docmt.modeling.text_splitting import has_text, known_target
from hf_docmt.systems.items import SuiteItem


@dataclass(frozen=True)
class Span:
    """Sentences `first` to `stop` of the sentences with text of a document."""

    document: int
    first: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.first

    @property
    def halves(self) -> tuple["Span", "Span"]:
        middle = self.first + self.size // 2
        return Span(self.document, self.first, middle), Span(self.document, middle, self.stop)


@dataclass
class TranslatedDocument:
    """Sentences, the indices of those with text, translations of all so far, and repairs as in `translate_corpus`."""

    sentences: Sequence[str]
    kept: list[int]
    translations: list[str]
    repairs: list[dict] = field(default_factory=list)
    lines: list[str] | None = None  # unrepaired, where these need not be translations of sentences

    def write(self, span: Span, translations: Sequence[str], ended: bool) -> None:
        """Keep the translations of a span; one that was cut off is noted as a repair."""
        for index, translation in zip(self.kept[span.first : span.stop], translations, strict=True):
            if known_target(self.sentences[index]) is None:
                self.translations[index] = translation
        self.report_end(span, ended)

    def report(self, span: Span, kind: str, detail: str) -> None:
        """Note a repair at the first sentence of a span."""
        self.repairs.append({"sentence": self.kept[span.first], "kind": kind, "detail": detail})

    def report_end(self, span: Span, ended: bool) -> None:
        """Note a translation that was cut off."""
        if not ended:
            self.report(span, "length", "it did not end before max_new_tokens or the model's last position")


def read_documents(documents: Sequence[Sequence[str]]) -> list[TranslatedDocument]:
    """The documents with what is known of their translations. ValueError: documents that are not lists of strings."""
    return [
        TranslatedDocument(
            document,
            [i for i, sentence in enumerate(document) if has_text(sentence)],
            [known_target(sentence) or "" for sentence in document],
        )
        for document in checked_documents(documents)
    ]


def spans_by_step(documents: Sequence[TranslatedDocument], size: int) -> list[list[Span]]:
    """Spans of at most `size` sentences (0: whole documents): the first one of every document, the second ones, ...

    Spans whose translations are all known are skipped.
    """
    steps: list[list[Span]] = []
    for d, document in enumerate(documents):
        count = len(document.kept)
        for step, first in enumerate(range(0, count, size or max(count, 1))):
            if step == len(steps):
                steps.append([])
            numbers = document.kept[first : first + (size or count)]
            if any(known_target(document.sentences[number]) is None for number in numbers):
                steps[step].append(Span(d, first, first + len(numbers)))
    return steps


def window_of(documents: Sequence[TranslatedDocument], span: Span, past: int, future: int) -> SuiteItem:
    """The span with its context, the sentences of a longer one as lines; targets are the translations so far."""
    document = documents[span.document]
    before = document.kept[max(0, span.first - past) : span.first]
    after = tuple(document.sentences[i] for i in document.kept[span.stop :][:future])
    current = [document.sentences[i] for i in document.kept[span.first : span.stop]]
    if len(current) > 1:
        current = [" ".join(sentence.splitlines()) for sentence in current]
    number = document.kept[span.first]
    return SuiteItem(
        item_id=f"{span.document}:{number}",
        source=(*(document.sentences[i] for i in before), "\n".join(current)),
        target_context=tuple(document.translations[i] for i in before),
        candidates=("",),
        correct=0,
        phenomenon="",
        distance=None,
        source_after=after,
        target_after=("",) * len(after),
        location=f"document {span.document}, sentence {number}",
    )
