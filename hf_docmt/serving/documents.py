"""Documents on the page: translated a portion at a time, corrected by people, and written as files."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hf_docmt.modeling.opaque_runs import CarriedSentence, score_of
from hf_docmt.modeling.text_splitting import Sentence, has_text
from hf_docmt.reports.file_report import REPAIRS, uncertain_sentences
from hf_docmt.reports.side_by_side import changed_words
from hf_docmt.serving.batches import Query, Runs, Translated
from hf_docmt.serving.sessions import Session
from hf_docmt.serving.texts import AnyText
from hf_docmt.systems import System

PORTION = 16  # sentences that are translated at once
BYTES = 8  # of memory for each character of a document, about


@dataclass
class PageSentence:
    """A sentence and its translation; `machine` is that of the model, `alone` that without context."""

    source: str
    translation: str | None = None
    machine: str | None = None
    alone: str | None = None
    score: float | None = None  # of the model's translation
    is_waiting: bool = True
    is_accepted: bool = False  # by a person, edited or not
    repairs: list[dict] = field(default_factory=list)

    def accept(self, text: str) -> None:
        self.translation, self.is_waiting, self.is_accepted = text, False, True

    def restore(self) -> None:
        """Take back what a person did."""
        self.translation, self.is_waiting, self.is_accepted = self.machine, self.machine is None, False

    def target(self, is_written: bool) -> str | None:
        """The known translation; `is_written`: also that of the model."""
        return self.translation if self.is_accepted or (is_written and not self.is_waiting) else None

    def answer(self) -> dict[str, Any]:
        """As the page reads it."""
        kinds = dict.fromkeys(one["kind"] for one in self.repairs)
        is_edited = self.is_accepted and self.translation != self.machine
        differs = None not in (self.alone, self.translation) and self.alone != self.translation and not is_edited
        return {
            "source": self.source,
            "translation": self.translation,
            "waiting": self.is_waiting,
            "accepted": self.is_accepted,
            "edited": is_edited,
            "alone": self.alone,
            "pieces": changed_words(self.alone or "", self.translation or "") if differs else [],
            "repairs": [REPAIRS[kind] for kind in kinds if kind in REPAIRS],
        }


@dataclass
class OpenDocument:
    """A document of one person. `memory_end`: the sentence that follows those in the memory of the session."""

    name: str
    part: AnyText
    search: Query
    sentences: list[PageSentence] = field(init=False)
    carried: dict[int, CarriedSentence] = field(default_factory=dict)
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    session: Session = field(init=False)
    memory_end: int = 0

    def __post_init__(self):
        self.sentences = [PageSentence(text) for text in self.part.sentences]
        for each in self.sentences:
            if not has_text(each.source):
                each.translation, each.is_waiting = "", False
        self.session = Session(self.search)

    @property
    def size(self) -> int:
        """Bytes that it takes, about, without its file."""
        return BYTES * sum(map(len, self.part.sentences))

    def portion(self) -> range:
        """The next sentences to translate; empty where all are."""
        start = next((n for n, each in enumerate(self.sentences) if each.is_waiting), len(self.sentences))
        return range(start, min(start + PORTION, len(self.sentences)))

    def around(self, portion: range, past: int, future: int, is_written: bool) -> tuple[list[str], Runs, int]:
        """A portion in its context, the opaque runs of its sentences, and the number of its first sentence.

        `is_written`: the model's own translations before it are context, too.
        """
        first, last = max(0, portion.start - past), min(len(self.sentences), portion.stop + future)
        texts = [
            Sentence(each.source, each.target(is_written if n < portion.start else n < portion.stop))
            for n, each in enumerate(self.sentences[first:last], first)
        ]
        return texts, {n - first: spans for n, spans in self.part.runs.items() if first <= n < last}, first

    def take(self, portion: range, first: int, made: Translated) -> None:
        """Keep the translations of a portion, of sentences from number `first` on."""
        for n in portion:
            each = self.sentences[n]
            if each.is_waiting:
                each.translation = each.machine = made.sentences[n - first]
                each.is_waiting, each.alone, each.score = False, None, score_of(each.machine)
                each.repairs = [repair for repair in made.repairs if repair["sentence"] == n - first]
                self.carried.pop(n, None)
                self.carried |= {n: made.carried[n - first]} if n - first in made.carried else {}

    def uncertain(self) -> list[int]:
        """The sentences of which the model is less sure than of the others, but those that a person accepted."""
        found = uncertain_sentences([each.score for each in self.sentences], [each.source for each in self.sentences])
        return [n for n in found if not self.sentences[n].is_accepted]

    def translate_again(self, number: int) -> None:
        """Let the sentences after this one wait again, except those that a person accepted."""
        for each in self.sentences[number + 1 :]:
            each.is_waiting = has_text(each.source) and not each.is_accepted
        self.memory_end = -1

    def results(self, system: System) -> Sequence | dict:
        """The input of `written` of the part; sentences without a translation keep their source."""
        carried = dict(self.carried)
        for n, each in enumerate(self.sentences):
            if each.is_accepted and each.translation != each.machine:
                carried.pop(n, None)
                spans = system.finder(each.source, self.part.runs.get(n, ()))
                if spans:
                    carried[n] = CarriedSentence.read(each.source, spans, each.translation or "")
        missing = {n for n, each in enumerate(self.sentences) if each.translation is None}
        texts = [each.source if each.translation is None else each.translation for each in self.sentences]
        return self.part.results(texts, carried, system, missing)

    def pairs(self) -> list[tuple[str, str, bool]]:
        """Source, translation and whether a person accepted it, of each translated sentence with text."""
        return [
            (each.source, each.translation, each.is_accepted)
            for each in self.sentences
            if each.translation and has_text(each.source)
        ]

    def answer(self) -> dict[str, Any]:
        """As the page reads it."""
        search = {"source": self.search.source_lang, "target": self.search.target_lang}
        search["strategy"] = self.search.strategy or ""
        sentences = [each.answer() for each in self.sentences]
        return {"id": self.id, "name": self.name, **search, "sentences": sentences, "uncertain": self.uncertain()}
