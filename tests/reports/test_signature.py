"""Signatures: read, written, joined, with and without keys."""

import pytest

from hf_docmt.reports.signature import Signature

TEXTS = ["", "a", "a:", "a:b", "nrefs:1|case:mixed|eff:no|tok:13a", "model:x/y:z|context:0", "a:1|b|a:2|", "x|:y"]


@pytest.mark.parametrize("text", TEXTS)
def test_round_trip(text):
    assert str(Signature.parse(text)) == text


def test_values():
    signature = Signature.of({"past": 3, "target-context": "none", "model": "a:b"})
    assert str(signature) == "past:3|target-context:none|model:a:b"
    assert (signature["past"], signature["model"]) == ("3", "a:b")
    assert (signature.get("seed"), signature.get("seed", "1")) == (None, "1")
    assert "past" in signature and "3" not in signature and list(signature) == ["past", "target-context", "model"]
    with pytest.raises(KeyError):
        signature["seed"]


def test_equal_keys_of_joined_signatures():
    joined = Signature.parse("case:ignored|version:1") + Signature.parse("case:mixed|plain")
    assert str(joined) == "case:ignored|version:1|case:mixed|plain"
    assert (joined["case"], joined["plain"]) == ("mixed", "")
    assert Signature() + joined == joined and hash(joined) == hash(Signature.parse(str(joined)))
