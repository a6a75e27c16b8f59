"""Data kept for clients for a while: context that lasts from call to call, files that wait for their download."""

import asyncio
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException

from hf_docmt.serving.batches import Query

NEW = "new"  # opens a session


class Kept:
    """Objects under names that cannot be guessed, each for a limited time; `most` limits the sum of their sizes."""

    def __init__(self, most: int, seconds: float):
        self.most, self.seconds, self.size = most, seconds, 0
        self.items: dict[str, tuple[float, Any, int]] = {}  # time, thing and size, in the order of the times

    def put(self, name: str, item: Any, size: int = 1) -> None:
        """Keep a thing; for it the oldest go."""
        self.items[name] = (time.monotonic(), item, size)
        self.size += size
        while self.size > self.most:
            self.take(next(iter(self.items)))

    def take(self, name: str) -> Any:
        """Remove and return the object; None if it is missing."""
        self.drop_old()
        _, item, size = self.items.pop(name, (0, None, 0))
        self.size -= size
        return item

    def get(self, name: str) -> Any:
        """The object, which is kept for the whole time again; None if it is missing."""
        _, item, size = self.items.get(name, (0, None, 0))
        if (item := self.take(name)) is not None:
            self.put(name, item, size)
        return item

    def drop_old(self) -> None:
        while self.items and (oldest := next(iter(self.items.values())))[0] < time.monotonic() - self.seconds:
            del self.items[next(iter(self.items))]
            self.size -= oldest[2]

    def check_room(self, size: int) -> None:
        """HTTPException: 503 where an older thing would have to go for one of this size."""
        self.drop_old()
        if self.size + size > self.most:
            reason = f"{self.size} bytes of files and documents are kept, of at most {self.most}; try again later"
            raise HTTPException(503, reason, {"Retry-After": "60"})


@dataclass
class Session:
    """The sentences that the next ones read, or the memory of a model that carries one; calls take turns by `lock`."""

    search: Query
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    sentences: list[str] = field(default_factory=list)
    memory: dict[str, Any] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


def session_of(kept: Kept, name: str, search: Query) -> Session:
    """A new session, or that of this id. HTTPException: 404 for an unknown one, 400 for another search."""
    if name == NEW:
        kept.put((session := Session(search)).id, session)
    elif (session := kept.get(name)) is None:
        raise HTTPException(404, f"no session {name[:40]!r}, or it was dropped; open one with session={NEW!r}")
    if session.search != search:
        raise HTTPException(400, "the session has other languages, strategy, options or glossary; keep to them")
    return session
