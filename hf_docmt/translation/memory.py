"""Translation memories of a job: a sentence that they have keeps its earlier translation."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from hf_docmt.data.readers import iterate_documents
from hf_docmt.data.readers.running_text import sentence_splitter
from hf_docmt.modeling.text_splitting import Sentence, known_target

TAG = re.compile(r"</?[A-Za-z][^<>]*>")


class Entry(NamedTuple):
    """A translation of a sentence and the sentences around it."""

    before: str
    behind: str
    source: str
    target: str

    def for_text(self, text: str) -> str:
        """The translation, without tags for a sentence whose tags the format has taken out."""
        return self.target if _spaced(text) == _spaced(self.source) else TAG.sub("", self.target)


class Memory:
    """Sentences and their translations, compared by their text without tags and more white space than one blank.

    A sentence gets its translation if the memory has only one, or only one between the same two sentences. Similar
    sentences are ignored: as context before the current one they made translations worse.
    """

    def __init__(self, documents: Iterable[Sequence[tuple[str, str]]]):
        self.entries: dict[str, list[Entry]] = {}
        for document in documents:
            sources = ["", *(_key(source) for source, _ in document), ""]
            for number, (source, target) in enumerate(document):
                before, own, behind = sources[number : number + 3]
                if own and target.strip():
                    self.entries.setdefault(own, []).append(Entry(before, behind, source, target))

    @classmethod
    def read(cls, paths: Sequence[str | Path], source_lang: str, target_lang: str | None) -> "Memory":
        """The memory of files of parallel documents; segments with equally many sentences on both sides are split.

        ValueError: no target language, and what the readers refuse.
        """
        if target_lang is None:
            raise ValueError("a memory has texts in two languages: name that of the translations (--target-lang)")
        splitters = sentence_splitter(source_lang), sentence_splitter(target_lang)
        rows = (
            row
            for path in paths
            for row in iterate_documents(path=path, source_lang=source_lang, target_lang=target_lang)
        )
        return cls([pair for both in row["translation"] for pair in _sentences(both, splitters)] for row in rows)

    def applied(self, document: Sequence[str]) -> list[Sentence]:
        """A document with the translations that the memory has of its sentences."""
        keys = ["", *map(_key, document), ""]
        made = []
        for number, text in enumerate(document):
            known = known_target(text)
            target = self._translation(text, *keys[number : number + 3]) if known is None else known
            made.append(Sentence(text, target, getattr(text, "context", ())))
        return made

    def _translation(self, text: str, before: str, own: str, behind: str) -> str | None:
        entries = self.entries.get(own, [])
        for chosen in (entries, [entry for entry in entries if entry[:2] == (before, behind)]):
            if len(targets := {entry.for_text(text) for entry in chosen}) == 1:
                return targets.pop()
        return None


def _key(text: str) -> str:
    return _spaced(TAG.sub("", text))


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _sentences(texts: dict[str, str], splitters: Sequence[Callable]) -> list[tuple[str, str]]:
    """A segment as pairs of sentences, or whole where its sides have other numbers of them."""
    source, target = texts.values()
    sources, targets = ([part.strip() for part in split(text)] for text, split in zip((source, target), splitters))
    return list(zip(sources, targets)) if len(sources) == len(targets) > 1 else [(source, target)]
