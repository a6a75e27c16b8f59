"""Length, blank, copied and untranslated sentences by hand."""

import pytest

from hf_docmt.evaluation.metrics import TranslatedDocuments, metric_class
from hf_docmt.evaluation.translation_scores import Evaluation

SOURCES = [["The house is old .", "OK", "He sees the house .", "Yes ."], ["It is 5 ."]]
HYPOTHESES = [["the  house is old .", "OK", "Er sees the house .", ""], ["Es ist 5 ."]]
REFERENCES = [["Das Haus ist alt .", "OK", "Er sieht das Haus .", "Ja ."], ["Es ist 5 ."]]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("length ratio", [[[5, 5], [1, 1], [5, 5], [0, 2]], [[4, 4]]]),
        ("blank sentences", [[[0, 1], [0, 1], [0, 1], [1, 1]], [[0, 1]]]),
        ("copied sentences", [[[1, 1], [0, 1], [0, 1], [0, 1]], [[0, 1]]]),  # OK is the reference's, too
        ("untranslated sentences", [[[1, 1], [0, 1], [1, 1], [0, 1]], [[0, 1]]]),
    ],
)
def test_by_hand(name, counts):
    documents = TranslatedDocuments(HYPOTHESES, REFERENCES, SOURCES)
    metric = metric_class(name)()
    assert metric.segment_statistics(documents) == counts
    (result,) = metric.score(documents)
    numerator, denominator = (sum(row[k] for document in counts for row in document) for k in (0, 1))
    assert result.value == pytest.approx(100 * numerator / denominator)
    assert result.n == 5 and result.details["statistics"]["rows"][1] == counts[1][0]


def test_blank_references_do_not_count():
    documents = TranslatedDocuments([["", "a"]], [["", "b"]])
    (result,) = metric_class("blank sentences")().score(documents)
    assert (result.value, result.n) == (0, 1)


def test_length_of_languages_without_blanks_is_in_characters():
    documents = TranslatedDocuments([["你好 世界"]], [["你好"]], target_lang="zh")
    assert metric_class("length ratio")().segment_statistics(documents) == [[[4, 2]]]


def test_bad_options():
    with pytest.raises(ValueError, match="copied sentences needs the source sentences of the documents"):
        metric_class("copied sentences")().score(TranslatedDocuments([["a"]], [["b"]]))
    with pytest.raises(ValueError, match="joiner is an option of d-bleu and d-chrf and d-ter, which is not scored"):
        Evaluation(metrics=["bleu"], joiner="none")
    with pytest.raises(ValueError, match="unknown joiner 'tab': expected one of"):
        metric_class("d-BLEU")(joiner="tab")
