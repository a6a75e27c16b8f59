"""Translated files that wait to be fetched, once, in memory."""

import re
import secrets
import time

SECONDS = 1800.0
MOST_BYTES = 256 * 2**20  # of all; the oldest go first


class Downloads:
    """Files by names that cannot be guessed."""

    def __init__(self, seconds: float = SECONDS, most: int = MOST_BYTES):
        self.seconds, self.most = seconds, most
        self.files: dict[str, tuple[float, bytes]] = {}  # in the order of their ages

    def add(self, name: str, data: bytes) -> str:
        """The name by which it is fetched: a key, a dot and that of the file."""
        self._drop_old()
        key = secrets.token_urlsafe(16) + "." + re.sub(r"[^\w.-]", "_", name)[-100:]
        self.files[key] = (time.monotonic(), data)
        while sum(len(data) for _, data in self.files.values()) > self.most and len(self.files) > 1:
            del self.files[next(iter(self.files))]
        return key

    def take(self, key: str) -> bytes | None:
        """The file, which is gone then; None where there is none."""
        self._drop_old()
        return self.files.pop(key, (0, None))[1]

    def _drop_old(self) -> None:
        for key in [key for key, (added, _) in self.files.items() if added < time.monotonic() - self.seconds]:
            del self.files[key]
