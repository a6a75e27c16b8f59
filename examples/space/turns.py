"""Turns at the model: one at a time, and a share for everybody who waits."""

import threading
import time
from dataclasses import dataclass

MOST_WAITING = 2  # turns of one address
LONGEST = 600  # seconds of a turn
ABANDONED = 10  # seconds after which a client counts as gone


@dataclass(eq=False)
class Turn:
    """A turn that an address asked for; `began` is set when it comes, `seen` whenever it is waited for."""

    address: str
    began: float | None = None
    seen: float = 0.0


class Turns:
    """Whose turn it is: of those who wait, the one whose address had its last turn longest ago.

    A turn that was not ended is over after `longest` seconds.
    """

    def __init__(self, longest: float = LONGEST):
        self.longest = longest
        self.lock = threading.Condition()
        self.waiting: list[Turn] = []
        self.current: Turn | None = None
        self.last: dict[str, float] = {}  # address -> when its last turn began

    def ask(self, address: str) -> Turn:
        """ValueError: this address waits for too many already."""
        with self.lock:
            self._forget()
            own = sum(turn.address == address for turn in [*self.waiting, self.current] if turn)
            if own >= MOST_WAITING:
                raise ValueError(f"{own} of your translations are under way; wait for one of them, or stop it")
            turn = Turn(address, seen=time.monotonic())
            self.waiting.append(turn)
            return turn

    def wait(self, turn: Turn, seconds: float) -> bool:
        """Wait so long for the turn at most; whether it has come."""
        with self.lock:
            turn.seen = time.monotonic()
            self.lock.wait_for(lambda: self._comes(turn), seconds)
            return turn.began is not None

    def before(self, turn: Turn) -> int:
        """How many turns come before this one, the current one among them."""
        with self.lock:
            order = sorted(self.waiting, key=self._last)  # equal ones in the order in which they were asked for
            return (order.index(turn) if turn in order else 0) + (self.current not in (None, turn))

    def _last(self, turn: Turn) -> float:
        return self.last.get(turn.address, 0.0)

    def is_over(self, turn: Turn) -> bool:
        """Whether its time is up."""
        return turn.began is not None and time.monotonic() - turn.began >= self.longest

    def end(self, turn: Turn) -> None:
        """Make room for the next, whether it came or not."""
        with self.lock:
            if turn in self.waiting:
                self.waiting.remove(turn)
            if self.current is turn:
                self.current = None
            self.lock.notify_all()

    def _comes(self, turn: Turn) -> bool:
        self._forget()
        if turn.began is None and turn not in self.waiting:
            self.waiting.append(turn)
        if turn.began is None and self.current is None:
            first = min(self.waiting, key=self._last)
            if first is turn:
                self.waiting.remove(turn)
                self.current, turn.began = turn, time.monotonic()
                self.last = {other.address: self._last(other) for other in self.waiting}
                self.last[turn.address] = turn.began
                self.lock.notify_all()
        return turn.began is not None

    def _forget(self) -> None:
        """Drop turns that are over, and those of clients that are gone."""
        if self.current and self.is_over(self.current):
            self.current = None
        now = time.monotonic()
        self.waiting = [turn for turn in self.waiting if now - turn.seen < ABANDONED]
