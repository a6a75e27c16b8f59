"""A translation of documents that can be looked at while it is made, and stopped."""

import copy
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.modeling.decoding import split_at, translated_sentences
from hf_docmt.modeling.opaque_runs import (
    CarriedSentence,
    Finder,
    Span,
    carried_sentences,
    carry,
    context_reach,
    masked_lines,
)

INTERVAL = 0.5  # seconds between two looks
BATCHES = 4  # number of updates shown


@dataclass(frozen=True)
class LiveProgress:
    """Sentences done, all sentences, and for each document its translations so far, None until then.

    `repairs` are those of `translate_documents`, for each document, when all is done, None before; so are `carried`,
    the sentences with opaque runs.
    """

    done: int
    total: int
    translations: list[list[str | None]]
    repairs: list[list[dict]] | None = None
    carried: list[dict[int, CarriedSentence]] | None = None


class StoppedError(Exception):
    """Ends a translation whose client is gone."""


def live_translation(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    documents: list[list[str]],
    interval: float = INTERVAL,
    given: Sequence[dict[int, list[Span]]] | None = None,
    **search,
) -> Iterator[LiveProgress]:
    """Translate documents in a thread and say every `interval` seconds how far it is; the last one is complete.

    Opaque runs are carried; `given` are those that a format knows, by sentence of each document. `search` are further
    arguments of `translate_documents`. A generator that is closed ends the translation after its
    current batch. Sentences come in the order of the document, those of `sliding` and `full` a few batches at a time.
    Raises what `translate_documents` raises.
    """
    watch, finder = Watch(), Finder(tokenizer)
    marked = marked_sentences(documents, finder, given or [{} for _ in documents])
    watched = copy.copy(model)  # the same modules, with a translator of its own
    watched.translator_class = watched_class(model.translator_class, watch)
    outcome: dict = {}
    repairs: list = []  # of the documents, and of sentences that are translated again

    def translate(texts):
        lines, own = watched.translate_documents(texts, tokenizer, return_report=True, **search)
        repairs.append(own)
        return lines

    def run():
        try:
            outcome["result"] = carry(translate, documents, finder, given, context_reach(model.config))
        except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
            outcome["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(interval)
            if thread.is_alive():
                yield without_marks(watch.progress(documents, tokenizer), marked)
        if "error" in outcome:
            raise outcome["error"]
        translations, carried = outcome["result"]
        total = sum(map(len, documents))
        yield LiveProgress(total, total, translations, repairs[0], carried)
    finally:
        watch.is_stopped = True


def marked_sentences(
    documents: list[list[str]], finder: Finder, given: Sequence[dict[int, list[Span]]]
) -> list[dict[int, CarriedSentence]]:
    """The sentences with opaque runs as the model reads them at first."""
    found = [carried_sentences(document, finder, own) for document, own in zip(documents, given, strict=True)]
    for document, own in zip(documents, found):
        masked_lines(document, own, finder)  # which marks them
    return found


def without_marks(progress: LiveProgress, marked: list[dict[int, CarriedSentence]]) -> LiveProgress:
    """The progress with opaque runs instead of their marks."""
    texts = [
        [text and own[n].restore(text) if n in own else text for n, text in enumerate(document)]
        for document, own in zip(progress.translations, marked, strict=True)
    ]
    return replace(progress, translations=texts)


class Watch:
    """Progress of a translation: the states of its documents."""

    def __init__(self):
        self.states: list = []
        self.is_stopped = False

    def check(self) -> None:
        if self.is_stopped:
            raise StoppedError

    def progress(self, documents: list[list[str]], tokenizer: PreTrainedTokenizerBase) -> LiveProgress:
        total = sum(map(len, documents))
        if not self.states:
            return LiveProgress(0, total, [[None] * len(document) for document in documents])
        translations = [written_so_far(state, tokenizer) for state in self.states]
        written = sum(text is not None for texts in translations for text in texts)
        return LiveProgress(written, total, translations)


def watched_class(translator_class: type, watch: Watch) -> type:
    """The strategies of a class, which tell `watch` what they do."""

    class Watched(translator_class):
        def translate(self, documents, *arguments, **options):
            watch.states = watch.states or list(documents)  # not of sentences that are translated again
            return super().translate(documents, *arguments, **options)

        def slide(self, sentences):
            for portion in portions(sentences, BATCHES * self.batch_size):
                super().slide(portion)

        def decode(self, jobs, stop_at_sep=False):
            if stop_at_sep:
                return super().decode(jobs, stop_at_sep)
            outputs = []
            for portion in portions(jobs, BATCHES * self.batch_size):
                done = super().decode(portion)
                for job, output in zip(portion, done):
                    show_segment(job, output, self.sep)
                outputs += done
            return outputs

        def batches(self, rows, length):
            for batch in super().batches(rows, length):
                watch.check()
                yield batch

        def before_search(self):
            watch.check()

    return Watched


def portions(rows: Sequence, size: int) -> Iterator[Sequence]:
    """Rows in order, in batches."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def show_segment(job, output, sep: int) -> None:
    """Give the sentences of a segment that came out whole their targets before all others are done."""
    targets = split_at(output.ids, sep)
    if job.past == job.future == 0 and 1 < job.sentences == len(targets):
        document, first = job.current
        for part, target in zip(document.parts[first:], targets):
            part.target = target


def written_so_far(state, tokenizer: PreTrainedTokenizerBase) -> list[str | None]:
    """The finished translations of a document, None for the others; blank sentences are blank."""
    waiting = {part.sentence for part in state.parts if not part.target and part.lines is None}
    texts = translated_sentences(state, tokenizer)
    return [None if number in waiting else text for number, text in enumerate(texts)]
