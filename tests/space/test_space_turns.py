"""Whose turn it is at the model of the page."""

import threading

import pytest


def test_one_at_a_time_and_a_share_each():
    """Someone who asks for many waits behind someone who asks for one."""
    from turns import Turns

    turns = Turns()
    first, second = turns.ask("a"), turns.ask("a")
    with pytest.raises(ValueError, match="2 of your translations are under way"):
        turns.ask("a")
    assert turns.wait(first, 0) and not turns.wait(second, 0)
    other = turns.ask("b")
    assert (turns.before(first), turns.before(other), turns.before(second)) == (0, 1, 2)
    turns.end(first)
    assert not turns.wait(second, 0) and turns.wait(other, 0) and not turns.wait(second, 0)
    turns.end(other)
    assert turns.wait(second, 0)


def test_the_next_wakes_up():
    from turns import Turns

    turns = Turns()
    first, second = turns.ask("a"), turns.ask("b")
    assert turns.wait(first, 0)
    came = []
    thread = threading.Thread(target=lambda: came.append(turns.wait(second, 30)))
    thread.start()
    turns.end(first)
    thread.join(10)
    assert came == [True]


def test_abandoned_turns(monkeypatch):
    """A turn has a time limit; who does not wait any more is passed over, and may come back."""
    import turns as module

    turns, now = module.Turns(longest=600), [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    lost, gone, here = turns.ask("a"), turns.ask("b"), turns.ask("c")
    assert turns.wait(lost, 0) and not turns.wait(here, 0)
    now[0] = 599
    assert not turns.wait(here, 0)
    now[0] = 601
    assert turns.wait(here, 0) and turns.is_over(lost) and gone not in turns.waiting
    assert not turns.wait(gone, 0)
    turns.end(here)
    assert turns.wait(gone, 0)
