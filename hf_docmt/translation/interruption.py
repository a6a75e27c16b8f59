"""Ctrl-C and SIGTERM while a job works."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


class Interrupted(KeyboardInterrupt):
    """A job was asked to end by this signal. `exit_code` is that of a command which it ended: 130 or 143."""

    def __init__(self, number: int, way_on: str = ""):
        super().__init__(f"stopped by {SIGNALS[signal.Signals(number)]}" + f"; {way_on}" * bool(way_on))
        self.number, self.exit_code = number, 128 + number


class Interruption:
    """Whether a job was asked to end, by which signal."""

    number: int | None = None
    is_held = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within the block a signal raises nothing, so that what is kept is counted; `check` raises it then."""
        self.is_held = True
        try:
            yield
        finally:
            self.is_held = False

    def check(self) -> None:
        """Raise `Interrupted` where a signal was held, or one came whose exception some library lost."""
        if self.number is not None:
            raise Interrupted(self.number)

    def receive(self, number: int, frame: object) -> None:
        """Handler of the first signal; the next one ends the process at once."""
        self.number = number
        for name in SIGNALS:
            signal.signal(name, signal.SIG_DFL)
        if not self.is_held:
            raise Interrupted(number)


@contextmanager
def interruption() -> Iterator[Interruption]:
    """Within the block the first Ctrl-C or SIGTERM raises `Interrupted`, in the main thread; the second one kills."""
    state = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield state
        return
    before = {name: signal.signal(name, state.receive) for name in SIGNALS}
    try:
        yield state
    except Exception as error:
        if state.number is None:
            raise
        raise Interrupted(state.number) from error  # whose exception some library made another one of
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
