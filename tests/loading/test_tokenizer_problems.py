"""What is said of a tokenizer that cannot be loaded."""

import pytest

from hf_docmt.loading import remote_code

UNKNOWN = "Unrecognized configuration class <class 'X'> to build an AutoTokenizer. Model type should be one of A, B, C."
NO_PATH = TypeError("expected str, bytes or os.PathLike object, not NoneType")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError(UNKNOWN), "no tokenizer is there: expected tokenizer.json"),
        (NO_PATH, "files of the tokenizer's class are missing: copy the folder again"),
        (ValueError("the merges are broken"), "the tokenizer cannot be loaded: the merges are broken"),
        (KeyError("vocab"), "the tokenizer cannot be loaded: KeyError: 'vocab'"),
    ],
)
def test_problem_of_a_tokenizer(error, expected, monkeypatch, tmp_path):
    def load(*args, **kwargs):
        raise error

    monkeypatch.setattr(remote_code.AutoTokenizer, "from_pretrained", load)
    with pytest.raises(ValueError) as raised:
        remote_code.load_tokenizer(str(tmp_path))
    assert str(raised.value).startswith(f"{tmp_path}: {expected}")


def test_packages_that_a_tokenizer_needs_are_named(monkeypatch):
    monkeypatch.setattr(remote_code, "is_sentencepiece_available", lambda: False)
    problem = remote_code._tokenizer_problem(ValueError(UNKNOWN))
    assert problem.startswith("the tokenizer cannot be loaded without sentencepiece: ") and "protobuf" not in problem
