"""Ctrl-C and SIGTERM: one exception, whatever stands in between."""

import os
import signal
import time

import pytest

from hf_docmt.translation.interruption import Interrupted, interruption


def interrupt(number=signal.SIGINT):
    os.kill(os.getpid(), number)
    time.sleep(1)


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGINT)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with pytest.raises(Interrupted) as stopped, interruption():
            interrupt(number)
        assert stopped.value.exit_code == code and signal.getsignal(signal.SIGINT) is before


def test_a_library_that_makes_another_error_of_it():
    """As some do while they are imported."""
    with pytest.raises(Interrupted, match="stopped by Ctrl-C"), interruption():
        try:
            interrupt()
        except BaseException as error:
            raise ImportError("no module") from error
    with pytest.raises(ImportError), interruption():
        raise ImportError("no module")
