"""What was said before: context that goes from call to call."""

import asyncio
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException

from hf_docmt.serving.batches import Search

NEW = "new"  # opens a session


@dataclass
class Session:
    """The sentences that the next ones read, or the memory of a model that carries one; calls take turns by `lock`."""

    search: Search
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    sentences: list[str] = field(default_factory=list)
    memory: dict[str, Any] = field(default_factory=dict)
    used: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sessions:
    """At most `most` sessions: the one that was not used for longest goes first, and all after `seconds`."""

    def __init__(self, most: int, seconds: float):
        self.most, self.seconds = most, seconds
        self.sessions: dict[str, Session] = {}  # in the order of their last use

    def session(self, name: str, search: Search) -> Session:
        """A new one, or that of this id. HTTPException: 404 for one that is not there, 400 for another search."""
        now = time.monotonic()
        for old in [session.id for session in self.sessions.values() if session.used < now - self.seconds]:
            del self.sessions[old]
        if name == NEW:
            session = Session(search)
        elif name not in self.sessions:
            raise HTTPException(404, f"no session {name[:40]!r}, or it was dropped; open one with session={NEW!r}")
        elif (session := self.sessions.pop(name)).search != search:
            self.sessions[name] = session
            raise HTTPException(400, "the session has other languages, strategy or options; keep to them, or open one")
        session.used = now
        self.sessions[session.id] = session
        while len(self.sessions) > self.most:
            del self.sessions[next(iter(self.sessions))]
        return session
