"""Pronoun and formality F1: hand-counted sentences for every rule, a slow second reading, taggers, bad input."""

import importlib.util
import re
import sys
from types import SimpleNamespace

import pytest
from support.errors import refused

from hf_docmt.evaluation.metrics.metric import TranslatedDocuments, UndefinedError
from hf_docmt.evaluation.metrics.pronoun_f1 import PHENOMENA, FormalityF1, PronounF1, count_words
from hf_docmt.evaluation.metrics.tagging import MODELS, SpacyTagger, load_tagger
from hf_docmt.messages import install_command
from hf_docmt.reports.result import PartScore

ENGLISH = dict.fromkeys(
    "he it itself she her hers herself you yours yourself they them theirs themselves".split(), "PRP"
)
ENGLISH |= dict.fromkeys("its your their".split(), "PRP$")
GERMAN = dict.fromkeys("er ihm ihn sie ihr ihnen es du dir dich".split(), "PPER")
GERMAN |= dict.fromkeys(
    "ihrer ihre ihres ihrem ihren deiner deine dein deines deinem deinen sein seine".split(), "PPOSAT"
)


def tagger(lexicon):
    """Tags words from a list; `word_TAG` has the tag that is written there."""

    def tag(sentences):
        parts = [[token.partition("_") for token in sentence.split()] for sentence in sentences]
        return [[(word, tag.upper() or lexicon.get(word.lower(), "X")) for word, _, tag in row] for row in parts]

    return tag


TAGGERS = (tagger(ENGLISH), tagger(GERMAN))
WHERE = {"dataset": "talks", "split": "test", "taggers": TAGGERS}


def pronoun_f1(sources, hypotheses, references, *, phenomenon="pronoun", taggers=None, doc_ids=(), **options):
    metric = {"pronoun": PronounF1, "formality": FormalityF1}[phenomenon]
    documents = TranslatedDocuments(hypotheses, references, sources, doc_ids, **options)
    (result,) = metric(taggers).score(documents)
    return result


def count(phenomenon, source, target):
    words = None if source is None else TAGGERS[0]([source])[0]
    return list(count_words(PHENOMENA[phenomenon, "de"], words, TAGGERS[1]([target])[0]).values())


@pytest.mark.parametrize(
    ("source", "target", "expected"),  # [masculine, feminine, neuter]
    [
        ("It works", "Er geht , Sie geht , Es geht", [1, 1, 1]),
        ("it works", "er sieht ihn , sie und er", [3, 1, 0]),  # all that stand there, not the aligned one
        ("its roof", "ihre Decke", [0, 1, 0]),
        ("it_WP", "es", [0, 0, 1]),
        ("it_WP$", "es", [0, 0, 1]),
        ("it_PRP$", "es", [0, 0, 1]),
        ("it_DT works", "er geht", [0, 0, 0]),
        ("it_NN and it_PRP", "er geht", [1, 0, 0]),
        ("IT works", "er geht", [0, 0, 0]),  # neither lower-case nor capitalised
        ("he works", "er geht", [0, 0, 0]),  # no word that makes it valid
        ("", "er geht", [0, 0, 0]),
        ("it works", "", [0, 0, 0]),
        ("it works", "ER geht", [0, 0, 0]),
        ("it told you", "er sie es", [1, 0, 1]),  # sie may be you
        ("it hit them", "er sie es", [1, 0, 1]),  # sie may be they
        ("it told YOU", "er sie es", [1, 1, 1]),
        ("it told her", "er sie es", [1, 1, 1]),  # she is no conflict here
        ("you and they", "er sie es", [0, 0, 0]),
        (None, "er sie es", [1, 1, 1]),
    ],
)
def test_pronouns_by_hand(source, target, expected):
    assert count("pronoun", source, target) == expected


@pytest.mark.parametrize(
    ("source", "target", "expected"),  # [formal, informal]
    [
        ("you go", "Sie gehen", [1, 0]),
        ("you go", "du gehst", [0, 1]),
        ("Your car", "Ihr Auto , dein Auto", [1, 1]),
        ("yours", "deines , deins_PPOSS", [0, 1]),
        ("yourself", "dich und dich", [0, 2]),
        ("YOU go", "du gehst", [0, 0]),
        ("he goes", "du gehst", [0, 0]),
        ("you go", "ihrem ihren euch_PPER", [0, 0]),  # neither formal nor informal
        ("you see them", "Sie du", [0, 1]),
        (None, "Sie du", [1, 1]),
    ],
)
def test_formality_by_hand(source, target, expected):
    assert count("formality", source, target) == expected


FORMS = {
    "masculine": "er ihm ihn",
    "feminine": "sie ihrer ihr ihre ihres ihrem",
    "neuter": "es",
    "formal": "sie ihr ihrer ihnen ihre ihres",
    "informal": "du deiner dir dich deine dein deines deinem deinen",
}
GERMAN_TAGS = "PDAT PDS PIAT PIS PPER PPOSAT PPOSS PRELAT PRELS PRF PWAT PWAV PWS".split()


@pytest.mark.parametrize(("phenomenon", "source"), [("pronoun", "it"), ("formality", "you")])
def test_every_form_and_tag(phenomenon, source):
    """Each form in lower case and with a capital counts for its class, under each tag, and no other word does."""
    classes = list(PHENOMENA[phenomenon, "de"].classes)
    for word in {form for forms in FORMS.values() for form in forms.split()} | {"seiner", "ihren", "euch", "und"}:
        expected = [int(word in FORMS[name].split()) for name in classes]
        for form in (word, word.capitalize()):
            assert [count(phenomenon, source, f"{form}_{tag}") for tag in GERMAN_TAGS] == [expected] * 13
            assert count(phenomenon, source, f"{form}_ART") == [0] * len(classes)


SOURCES = [["it works", "it told you", "he works"], ["it and it"]]
HYPOTHESES = [["er er es", "sie es", "er"], ["es es sie"]]
REFERENCES = [["er es es", "sie er", "er"], ["es"]]


def test_corpus_by_hand():
    """Of masculine 1 of 2 and 2 matches, of feminine 0 of 1 and 0, of neuter 1 + 0 + 1 of 4 and 3."""
    found = pronoun_f1(SOURCES, HYPOTHESES, REFERENCES, **WHERE, doc_ids=["a", "b"])
    assert found.value == pytest.approx(100 * 2 * 3 / (7 + 5)) and found.n == 5
    assert (found.details["precision"], found.details["recall"]) == pytest.approx((100 * 3 / 7, 100 * 3 / 5))
    half = {"precision": 50.0, "recall": 50.0, "hypothesis": 2, "match": 1}
    assert found.breakdown["class=masculine"] == PartScore(pytest.approx(50.0), 2, half)
    none = {"precision": 0, "recall": None, "hypothesis": 1, "match": 0}
    assert found.breakdown["class=feminine"] == PartScore(0, 0, none)
    assert found.breakdown["class=neuter"].value == pytest.approx(200 * 2 / 7)
    assert found.details["statistics"] == {"unit": "document", "ids": ["a", "b"], "rows": [[2, 4, 4], [1, 3, 1]]}
    assert found.task == "discourse" and found.metric == "pronoun F1"


def test_without_sources():
    found = pronoun_f1(None, [["er sie"]], [["er es"]], **WHERE | {"taggers": (None, TAGGERS[1])})
    assert found.value == pytest.approx(50.0)
    assert "validity:all|source-tagger:none" in str(found.signature)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "precision", "recall"),
    [("nichts", "er", None, 0), ("er", "nichts", 0, None), ("er", "es", 0, 0)],
)
def test_nan_of_the_authors_is_zero(hypothesis, reference, precision, recall):
    found = pronoun_f1([["it"]], [[hypothesis]], [[reference]], **WHERE)
    assert found.value == 0
    assert (found.details["precision"], found.details["recall"]) == (precision, recall)


def test_undefined():
    found = pronoun_f1([["it"]], [["er"]], [["er"]], **WHERE)
    assert list(found.breakdown) == ["class=masculine"] and found.details["undefined"] == ["feminine", "neuter"]
    for source, target in (("it", "nichts"), ("he", "er")):
        with pytest.raises(ValueError, match="^not one word that counts in 1 translations"):
            pronoun_f1([[source]], [[target]], [[target]], **WHERE)


OTHERS = {  # language -> (phenomenon, source, translation, reference): match, translation, reference of each class
    "fr": [
        ("pronoun", "They saw it.", "Elles l'ont vu, lui et il.", "Ils l'ont vue, elle.", [[1, 1, 1], [1, 1, 1]]),
        ("pronoun", "The house.", "Elle.", "Elle.", [[0, 0, 0], [0, 0, 0]]),
        ("pronoun", "Is it big?", "Est-elle grande ?", "Est-il là, celui-ci ?", [[0, 0, 2], [0, 1, 0]]),
        ("formality", "Do you?", "As-tu un rendez-vous ?", "Avez-vous un Rendez-vous ?", [[0, 0, 1], [0, 1, 0]]),
        ("formality", "Your house?", "Ta maison, ta voiture ?", "Votre maison, ta voiture ?", [[0, 0, 1], [1, 2, 1]]),
    ],
    "es": [
        ("pronoun", "It is that.", "Él es ese.", "Ella es esa, ese.", [[1, 2, 1], [0, 0, 2]]),
        ("pronoun", "It is.", "E\u0301l es.", "Él es.", [[1, 1, 1], [0, 0, 0]]),  # decomposed
        ("formality", "You know.", "Usted sabe, tú no.", "Usted sabe.", [[1, 1, 1], [0, 1, 0]]),
    ],
    "ru": [("formality", "Can you?", "Вы можете? Ты?", "Ты можешь? Тебе?", [[0, 1, 0], [1, 1, 2]])],
}


@pytest.mark.parametrize(("lang", "case"), [(lang, case) for lang, cases in OTHERS.items() for case in cases])
def test_other_languages_by_word_lists(lang, case):
    phenomenon, source, hypothesis, reference, counts = case
    metric = {"pronoun": PronounF1, "formality": FormalityF1}[phenomenon]()
    documents = TranslatedDocuments([[hypothesis]], [[reference]], [[source]], source_lang="en", target_lang=lang)
    match, hypothesised, expected = (sum(column) for column in zip(*counts))
    if not hypothesised + expected:
        with pytest.raises(UndefinedError, match="not one word that counts"):
            metric.score(documents)
        return
    (result,) = metric.score(documents)
    assert result.value == pytest.approx(200 * match / (hypothesised + expected)) and result.n == expected
    assert result.details["statistics"]["rows"] == [[match, hypothesised, expected]]
    assert result.signature["langs"] == f"en-{lang}" and result.signature["target-tagger"] == "split_words"


def test_languages_without_a_list():
    for metric, source, target in ((PronounF1, "en", "ru"), (FormalityF1, "en", "zh"), (FormalityF1, "de", "fr")):
        with pytest.raises(ValueError, match=f"{metric.choice} are counted from en to .*, got {source} to {target}"):
            metric.check_languages(source, target)
    assert PronounF1.check_languages("eng_Latn", "fra_Latn") is None


def test_signature():
    found = pronoun_f1([["you"]], [["du"]], [["du"]], **WHERE, phenomenon="formality", strategy="sliding", beams=4)
    assert str(found.signature).startswith(
        "langs:en-de|classes:formal+informal|weights:paper|case:mixed|validity:source|source-tagger:tag|target-tagger:tag|"
        "version:"
    )
    assert (found.strategy, found.beams) == ("sliding", 4)


def test_tagger_of_other_sentences():
    taggers = (TAGGERS[0], lambda sentences: [])
    message = "the tagger <lambda> returned 0 sentences for 4"
    refused(message, pronoun_f1, SOURCES, HYPOTHESES, REFERENCES, **WHERE | {"taggers": taggers})


def test_spacy_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    message = re.escape(f"{install_command('discourse')}, then python -m spacy download en_core_web_sm")
    refused(message, pronoun_f1, SOURCES, HYPOTHESES, REFERENCES, dataset="d", split="s")


def test_pipeline_is_missing_or_gives_no_tags(monkeypatch):
    def load(name, exclude):
        if name != "blank":
            raise OSError(f"[E050] Can't find model {name!r}")
        return SimpleNamespace(pipe=lambda sentences, batch_size: [Untagged() for _ in sentences])

    class Untagged(list):
        def __init__(self):
            super().__init__([SimpleNamespace(text="er", tag_="")])

        def has_annotation(self, name):
            return False

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    refused("pipeline is missing: python -m spacy download de_core_news_sm", load_tagger("de"), ["er"])
    refused("'blank' gives no tags; use one of en_core_web_sm, de_core", SpacyTagger("blank"), ["er"])
    refused("no tagger is set for the language 'fr', only for", load_tagger, "fr")
    refused("unknown tagger 'nltk'", load_tagger, "de", "nltk")


def test_spacy_pipeline(tmp_path):
    """A pipeline that tags by rule stands in for a trained one: tokens, tags, name."""
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
    pipeline = spacy.blank("de", meta={"name": "rules", "version": "1.2.3"})
    pipeline.add_pipe("attribute_ruler").add([[{"LOWER": {"IN": ["sie", "er"]}}]], {"TAG": "PPER"})
    pipeline.to_disk(tmp_path / "rules")
    german = SpacyTagger(tmp_path / "rules")
    assert german(["Hat sie?", "", "Er"]) == [[("Hat", ""), ("sie", "PPER"), ("?", "")], [], [("Er", "PPER")]]
    assert german.name == "de_rules-1.2.3"
    found = pronoun_f1([["it"]], [["Er."]], [["Er, sie."]], **WHERE | {"taggers": (TAGGERS[0], german)})
    assert found.value == pytest.approx(200 / 3) and "target-tagger:de_rules-1.2.3|" in str(found.signature)


def test_hanover_tagger(monkeypatch):
    """Hand-counted sentences, as with the tags above: the English tags become those of the Penn Treebank."""
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "HanTa", None)
        refused("the tagger hanta is not installed: pip install", load_tagger("de", "hanta"), ["er"])
    pytest.importorskip("HanTa", reason="HanTa is not installed")
    english, german = load_tagger("en", "hanta"), load_tagger("de", "hanta")
    assert english(["It’s its roof, don't you see?", ""]) == [
        [("It", "PRP"), ("'s", "VBZ"), ("its", "PRP$"), ("roof", "NN1"), (",", "PUN"), ("do", "VDB"), ("n't", "XX0")]
        + [("you", "PRP"), ("see", "VVI"), ("?", "PUN")],
        [],
    ]
    assert german(["Kennen Sie ihn?"])[0][1:3] == [("Sie", "PPER"), ("ihn", "PPER")]
    documents = TranslatedDocuments([["Kennst du ihn?"]], [["Kennen Sie ihn?"]], [["Do you know him?"]])
    (result,) = FormalityF1(tagger="hanta").score(documents)
    assert (result.value, result.n) == (0, 1) and "target-tagger:de_hanta-" in str(result.signature)


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("spacy", *MODELS.values())),
    reason="spaCy or its English and German pipelines are not installed",
)
def test_trained_pipelines():
    sources = [["I bought a table. It is red.", "Do you know her?"]]
    references = [["Ich habe einen Tisch gekauft. Er ist rot.", "Kennst du sie?"]]
    hypotheses = [["Ich habe einen Tisch gekauft. Es ist rot.", "Kennen Sie sie?"]]
    pronouns = pronoun_f1(sources, hypotheses, references, dataset="d", split="s")
    assert {label: part.n for label, part in pronouns.breakdown.items()} == {"class=masculine": 1, "class=neuter": 0}
    formality = pronoun_f1(sources, hypotheses, references, dataset="d", split="s", phenomenon="formality")
    assert {label: part.n for label, part in formality.breakdown.items()} == {"class=informal": 1}
    assert "source-tagger:en_core_web_sm-" in str(pronouns.signature)
