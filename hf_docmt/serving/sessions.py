"""What is kept for clients for a while: context that goes from call to call, files that wait to be fetched."""

import asyncio
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException

from hf_docmt.serving.batches import Query

NEW = "new"  # opens a session


class Kept:
    """At most so many things by names that cannot be guessed, each for so many seconds; the oldest go first."""

    def __init__(self, most: int, seconds: float):
        self.most, self.seconds = most, seconds
        self.items: dict[str, tuple[float, Any]] = {}  # time and thing, in the order of the times

    def put(self, name: str, item: Any) -> None:
        self.items[name] = (time.monotonic(), item)
        while len(self.items) > self.most:
            del self.items[next(iter(self.items))]

    def take(self, name: str) -> Any:
        """The thing, which is gone then; None where there is none."""
        limit = time.monotonic() - self.seconds
        self.items = {name: item for name, item in self.items.items() if item[0] >= limit}
        return self.items.pop(name, (0, None))[1]


@dataclass
class Session:
    """The sentences that the next ones read, or the memory of a model that carries one; calls take turns by `lock`."""

    search: Query
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    sentences: list[str] = field(default_factory=list)
    memory: dict[str, Any] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


def session_of(kept: Kept, name: str, search: Query) -> Session:
    """A new one, or that of this id. HTTPException: 404 for one that is not there, 400 for another search."""
    session = Session(search) if name == NEW else kept.take(name)
    if session is None:
        raise HTTPException(404, f"no session {name[:40]!r}, or it was dropped; open one with session={NEW!r}")
    kept.put(session.id, session)
    if session.search != search:
        raise HTTPException(400, "the session has other languages, strategy or options; keep to them, or open one")
    return session
