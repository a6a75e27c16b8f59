"""Translation of documents sentence by sentence, each in the window of its context."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """A sentence to be translated, with its context in the document."""

    where: str  # document and sentence, for messages
    source: tuple[str, ...]  # context, oldest first, then the current sentence
    target_context: tuple[str, ...]  # translations of the context; empty where the system takes none
    source_after: tuple[str, ...]  # nearest first


def translate_windows(
    documents: Sequence[Sequence[str]],
    translate: Callable[[list[Window]], list[str]],
    *,
    past_context: int,
    future_context: int,
    target_context: bool,
) -> list[list[str]]:
    """Translations of documents, N sentences in, N out; blank sentences stay empty and are no context.

    With `target_context` sentence by sentence, the documents side by side, as each window holds the translations made
    before; otherwise all at once. Line breaks in a translation become blanks.
    ValueError: documents that are not lists of strings.
    """
    _check_documents(documents)
    found = [[""] * len(document) for document in documents]
    kept = [[i for i, sentence in enumerate(document) if sentence.strip()] for document in documents]
    steps = [
        [(d, step) for d in range(len(documents)) if step < len(kept[d])]
        for step in range(max(map(len, kept), default=0))
    ]
    at_once = [[job for step in steps for job in step]]
    for jobs in steps if target_context else at_once:
        windows = []
        for d, i in jobs:
            before, after = kept[d][max(0, i - past_context) : i], kept[d][i + 1 :][:future_context]
            current = kept[d][i]
            windows.append(
                Window(
                    where=f"document {d}, sentence {current}",
                    source=tuple(documents[d][index] for index in [*before, current]),
                    target_context=tuple(found[d][index] for index in before) if target_context else (),
                    source_after=tuple(documents[d][index] for index in after),
                )
            )
        for (d, i), text in zip(jobs, translate(windows) if windows else []):
            found[d][kept[d][i]] = " ".join(text.splitlines()).strip()
    return found


def _check_documents(documents: Sequence[Sequence[str]]) -> None:
    for d, document in enumerate(documents):
        if isinstance(document, str) or not all(isinstance(sentence, str) for sentence in document):
            raise ValueError(f"document {d} is {type(document).__name__}, expected a list of sentences, each a string")
