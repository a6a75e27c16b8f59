"""Parts of error messages."""

from hf_docmt.messages import closest_hint, counted


def test_closest_hint():
    assert closest_hint("concta", ["lst", "concat"]) == "; did you mean 'concat'?"
    assert closest_hint("sbleu", {"s-BLEU": 1, "TER": 2}) == "; did you mean 's-BLEU'?"
    assert closest_hint("concta", ["concat"], " (is {!r} meant?)") == " (is 'concat' meant?)"
    assert closest_hint("x", ["concat"]) == closest_hint("x", []) == ""


def test_counted():
    assert [counted(number, "test") for number in (0, 1, 2)] == ["0 tests", "1 test", "2 tests"]
