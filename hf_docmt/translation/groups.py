"""Groups of documents: the unit of work, of what a killed job loses, and of what is decoded together."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, Queue
from threading import Thread

MAX_SENTENCES = 1024
MAX_CHARACTERS = 1 << 20  # of all sides that were read
BATCHES = 4  # of documents, which a group of long ones has at least
PATIENCE = 0.2  # seconds that a document waits for a further one


@dataclass(frozen=True)
class Group:
    """Consecutive documents of the input: rows of the document contract, numbered from 0 as the group itself is."""

    number: int
    first_document: int
    rows: list[dict]

    def sources(self, lang: str) -> list[list[str]]:
        """The sentences of each document in this language."""
        return [[pair[lang] for pair in row["translation"]] for row in self.rows]

    @property
    def sentences(self) -> int:
        return sum(len(row["translation"]) for row in self.rows)


def document_groups(
    rows: Iterable[dict],
    max_sentences: int = MAX_SENTENCES,
    max_characters: int = MAX_CHARACTERS,
    batch_size: int | None = None,
) -> Iterator[Group]:
    """Consecutive documents in groups of at most so many sentences and characters, as full as the next one allows.

    A document that is larger is a group of its own. But with `batch_size` a group goes on beyond `max_sentences` until
    it has BATCHES batches of documents: strategies that translate sentence after sentence have one of each document in
    a batch. The groups follow from rows and bounds alone, so that a job makes the same ones whenever and wherever it
    runs. ValueError: a bound below 1.

    >>> row = {"doc_id": "talk-1", "translation": [{"en": "Hello."}]}
    >>> [len(group.rows) for group in document_groups([row] * 5, max_sentences=2)]
    [2, 2, 1]
    """
    builder = _GroupBuilder(max_sentences, max_characters, batch_size)
    for row in rows:
        yield from builder.add(row)
    yield from builder.finish()


def arriving_groups(
    rows: Iterable[dict],
    max_sentences: int = MAX_SENTENCES,
    max_characters: int = MAX_CHARACTERS,
    batch_size: int | None = None,
) -> Iterator[Group | None]:
    """As `document_groups`, but a group ends, too, where no further document arrives within a moment.

    For documents from a pipe that are to be translated as they come; None says that none came, so that who takes groups
    in advance can give out what is done. They are read in a thread, a few groups ahead at most. Errors of reading are
    raised after the groups of the documents before.
    """
    arrivals = _Arrivals(rows, max_sentences)
    builder = _GroupBuilder(max_sentences, max_characters, batch_size)
    while True:
        try:
            row = arrivals.next(PATIENCE)
        except Empty:
            yield from [None] if builder.is_empty else builder.finish()
            continue
        if row is None:
            break
        yield from builder.add(row)
    yield from builder.finish()
    if arrivals.error is not None:
        raise arrivals.error


class _GroupBuilder:
    """Collects rows into groups."""

    def __init__(self, max_sentences: int, max_characters: int, batch_size: int | None):
        bounds = {"max_sentences": max_sentences, "max_characters": max_characters, "batch_size": batch_size}
        for name, bound in bounds.items():
            if bound is not None and bound < 1:
                raise ValueError(f"{name} of a group must be at least 1, got {bound}")
        self.max_sentences, self.max_characters = max_sentences, max_characters
        self.least_documents = BATCHES * batch_size if batch_size else 0
        self.number, self.documents = 0, 0
        self.rows: list[dict] = []
        self.sentences = self.characters = 0

    @property
    def is_empty(self) -> bool:
        return not self.rows

    def add(self, row: dict) -> Iterator[Group]:
        """Add a row; gives the group before it where it is full."""
        pairs = row["translation"]
        characters = sum(len(text) for pair in pairs for text in pair.values())
        is_full = self.sentences + len(pairs) > self.max_sentences and len(self.rows) >= self.least_documents
        if is_full or self.characters + characters > self.max_characters:
            yield from self.finish()
        self.rows.append(row)
        self.sentences, self.characters = self.sentences + len(pairs), self.characters + characters

    def finish(self) -> Iterator[Group]:
        """The rows collected so far, if any, as a group."""
        if self.rows:
            yield Group(self.number, self.documents, self.rows)
            self.number, self.documents = self.number + 1, self.documents + len(self.rows)
            self.rows, self.sentences, self.characters = [], 0, 0


class _Arrivals:
    """Rows that a thread reads; None after the last one, or after an error, which is kept in `error`."""

    def __init__(self, rows: Iterable[dict], ahead: int):
        self.queue: Queue = Queue(maxsize=ahead)
        self.error: Exception | None = None
        # the thread holds standard input, or Python could not end while it waits for a line
        Thread(target=self._read, args=(rows, sys.stdin), daemon=True).start()

    def _read(self, rows: Iterable[dict], standard_input) -> None:
        try:
            for row in rows:
                self.queue.put(row)
        except Exception as error:  # raised in the thread that takes the rows
            self.error = error
        self.queue.put(None)

    def next(self, timeout: float) -> dict | None:
        """The next row; `Empty` where none arrives within so many seconds."""
        return self.queue.get(timeout=timeout)
