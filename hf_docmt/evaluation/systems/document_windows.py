"""How documents are walked by systems that translate one sentence at a time: windows around each sentence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """A sentence to be translated, with the context that there is."""

    place: str  # for messages
    source: tuple[str, ...]  # context, oldest first, then the current sentence
    target_context: tuple[str, ...]  # translations of the context; empty where the system takes none
    source_after: tuple[str, ...]  # nearest first


def walk_documents(
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
    check_documents(documents)
    found = [[""] * len(document) for document in documents]
    places = [[i for i, sentence in enumerate(document) if sentence.strip()] for document in documents]
    steps = [
        [(d, step) for d in range(len(documents)) if step < len(places[d])]
        for step in range(max(map(len, places), default=0))
    ]
    at_once = [[job for step in steps for job in step]]
    for jobs in steps if target_context else at_once:
        windows = []
        for d, i in jobs:
            before, after = places[d][max(0, i - past_context) : i], places[d][i + 1 :][:future_context]
            current = places[d][i]
            windows.append(
                Window(
                    place=f"document {d}, sentence {current}",
                    source=tuple(documents[d][place] for place in [*before, current]),
                    target_context=tuple(found[d][place] for place in before) if target_context else (),
                    source_after=tuple(documents[d][place] for place in after),
                )
            )
        for (d, i), text in zip(jobs, translate(windows) if windows else []):
            found[d][places[d][i]] = " ".join(text.splitlines()).strip()
    return found


def check_documents(documents: Sequence[Sequence[str]]) -> None:
    for d, document in enumerate(documents):
        if isinstance(document, str) or not all(isinstance(sentence, str) for sentence in document):
            raise ValueError(f"document {d} is {type(document).__name__}, expected a list of sentences, each a string")
