"""A translation on the page: what it is made of, as the browser keeps it, and a run that is asked to stop."""

from functools import cached_property

from live_translation import LiveProgress
from turns import Turn, Turns
from uploads import Upload, read_upload, source_of
from workbench import Langs


class Run:
    """One translation that waits for its turn, or is under way."""

    def __init__(self, turns: Turns):
        self.turns, self.turn, self.is_stopped = turns, None, False
        self.turn: Turn | None

    def stop(self) -> None:
        self.is_stopped = True

    @property
    def is_over(self) -> bool:
        """Whether it is to end: its user has stopped it, or its time is up."""
        return self.is_stopped or (self.turn is not None and self.turns.is_over(self.turn))

    def check_time(self) -> None:
        """ValueError where its time is up."""
        if not self.is_stopped and self.is_over:
            raise ValueError(f"the translation took more than {self.turns.longest} s: split the document")


class Translation:
    """An upload and how far it is translated; `alone` are its sentences translated alone, None where not asked for."""

    def __init__(self, upload: Upload, strategy: str, langs: Langs):
        self.upload, self.strategy, self.langs = upload, strategy, langs
        self.progress = LiveProgress(0, 0, [])
        self.alone: list[list[str | None]] | None = None
        self.file: Upload | None = None
        self.is_stopped = False

    @cached_property
    def rows(self) -> list[dict]:
        """The documents, see `read_upload`."""
        return read_upload(self.upload, self.langs[0])

    @cached_property
    def sources(self) -> list[list[str]]:
        return [source_of(row, self.langs[0]) for row in self.rows]

    def known(self, document: int) -> tuple[list[str], list[str], list[dict]]:
        """Source, translation and repairs of a document, blank where there is no translation yet."""
        made = self.progress.translations[document]
        source = [text if own is not None else "" for text, own in zip(self.sources[document], made, strict=True)]
        repairs = self.progress.repairs[document] if self.progress.repairs else []
        return source, [text or "" for text in made], repairs

    def as_json(self, most: int) -> dict:
        """The data to keep in the browser; with files up to `most` bytes in all."""
        is_kept = len(self.upload.data) + len(self.file.data if self.file else b"") <= most
        return {
            "upload": self.upload.as_json() if is_kept else None,
            "strategy": self.strategy,
            "langs": self.langs,
            "translations": self.progress.translations,
            "repairs": self.progress.repairs,
            "alone": self.alone,
            "file": self.file.as_json() if self.file and is_kept else None,
        }

    @classmethod
    def from_json(cls, value: dict | None) -> "Translation":
        """ValueError for nothing, and for what is not of one document; KeyError, TypeError: not of this page."""
        if not value or not value.get("upload"):
            raise ValueError("there is no translation to look at: translate the document again")
        made = cls(Upload.from_json(value["upload"]), value["strategy"], tuple(value["langs"]))
        for texts in (value["translations"], value.get("alone") or value["translations"]):
            is_same = [len(one) for one in texts] == [len(source) for source in made.sources]
            if not is_same or not all(text is None or isinstance(text, str) for one in texts for text in one):
                raise ValueError("the translation that was kept is of another document: translate again")
        done = sum(text is not None for one in value["translations"] for text in one)
        total = sum(map(len, made.sources))
        made.progress = LiveProgress(done, total, value["translations"], value["repairs"])
        made.alone = value.get("alone")
        made.file = Upload.from_json(value["file"]) if value.get("file") else None
        return made
