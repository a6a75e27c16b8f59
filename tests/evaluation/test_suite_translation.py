"""Suites as documents and back: sentences, context on both sides, BLEU and pronoun F1, details, bad input."""

import json
import sys
from types import SimpleNamespace

import pytest
import sacrebleu
from support.errors import refused
from support.suite_files import CONTRAPRO, changed
from support.tiny_models import build, word_tokenizer

from hf_docmt.evaluation.suite_translation import current_sentences, suite_documents, suite_translation_report
from hf_docmt.evaluation.suites import read_suite
from hf_docmt.systems import ContextReach, DocMTSystem, System

FIRST = changed(CONTRAPRO, **{
    "segment id": 1, "src segment": "Where is the cup?", "ref segment": "Wo ist die Tasse?",
    "errors": [{"contrastive": "Wo ist er?"}],
})  # fmt: skip
ANSWERS = {"It's red.": "Sie ist rot und alt.", "Where is the cup?": "Wo ist die Tasse jetzt?"}


class Phrases(System):
    """Knows the current sentences; one that is not current it numbers."""

    kind, name, context = "phrases", "phrases", ContextReach(1, 2)

    def __init__(self):
        self.seen = []

    @property
    def decoding(self):
        return {"strategy": "full", "beams": 3}

    def translate(self, documents):
        self.seen += documents
        return [[ANSWERS.get(sentence, str(n)) for n, sentence in enumerate(document)] for document in documents]

    def token_log_probabilities(self, items):
        raise NotImplementedError

    token_texts = token_log_probabilities

    def describe(self):
        return {"name": self.name}


@pytest.fixture
def spacy(monkeypatch):
    """Pipelines that tag a few words."""
    tags = {"it": "PRP", "sie": "PPER", "er": "PPER"}

    class Tagged(list):
        def __init__(self, sentence):
            words = sentence.replace("'", " '").replace(".", " .").split()
            super().__init__(SimpleNamespace(text=word, tag_=tags.get(word.lower(), "X")) for word in words)

        def has_annotation(self, name):
            return True

    def load(name, exclude):
        return SimpleNamespace(
            meta={"name": name, "version": "1", "lang": name[:2]},
            pipe=lambda sentences, batch_size: [Tagged(sentence) for sentence in sentences],
        )

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load, Language=type("Language", (), {})))


def test_documents_and_back(write_suite):
    items = read_suite(write_suite(CONTRAPRO, FIRST), context=2, future_context=1)
    documents = suite_documents(items)
    assert documents == [["", "Here .", "It's red.", "Bye."], ["Where is the cup?", ""]]
    outputs = [[f"<{sentence}>" for sentence in document] for document in documents]
    assert current_sentences(items, outputs) == ["<It's red.>", "<Where is the cup?>"]
    with pytest.raises(ValueError, match=r"suite\.json, item 2: got \['a'\], expected a list of 2 translated"):
        current_sentences(items, [outputs[0], ["a"]])
    refused("is shorter", current_sentences, items, outputs[:1])


def test_scores_of_the_current_sentences(write_suite, spacy, tmp_path):
    """s-BLEU is sacrebleu's of the current sentences, and F1 that of their pronouns, valid by their sources."""
    path, details = write_suite(CONTRAPRO, FIRST), tmp_path / "details.jsonl"
    system = Phrases()
    report = suite_translation_report(system, path, discourse=("pronouns",), details=details)
    assert system.seen == [["Here .", "It's red.", "Bye."], ["Where is the cup?", "", "Here ."]]
    bleu, chrf, ter, f1 = report.results
    assert [result.metric for result in report.results] == ["s-BLEU", "chrF", "TER", "pronoun F1"]
    hypotheses, references = list(ANSWERS.values()), [["Sie ist rot.", "Wo ist die Tasse?"]]
    assert bleu.value == sacrebleu.corpus_bleu(hypotheses, references).score
    assert chrf.value == sacrebleu.corpus_chrf(hypotheses, references).score
    assert ter.value == sacrebleu.corpus_ter(hypotheses, references).score
    assert (f1.value, f1.n) == (100, 1)  # one `it`: sie = sie
    assert list(bleu.statistics.ids) == ["1999_1_2.de"]
    assert (bleu.strategy, bleu.beams, bleu.dataset) == ("full", 3, "suite")
    assert str(bleu.signature).startswith("past:1|future:2|") and report.data == {"suites": ["suite.json"]}
    record = json.loads(details.read_text("utf-8").splitlines()[0])
    assert (record["translation"], record["reference"]) == ("Sie ist rot und alt.", "Sie ist rot.")
    assert record["output"] == ["0", "Sie ist rot und alt.", "2"] and record["source_after"] == ["Bye."]
    again = suite_translation_report(other := Phrases(), path, discourse=("pronouns",), details=details)
    assert again.results == report.results and other.seen == []
    (one, *_) = suite_translation_report(system, path, limit=1).results
    assert (one.n, one.split) == (1, "items 1-1")


def test_unscorable_suites_fail_before_translating(write_suite, monkeypatch):
    system, path = Phrases(), write_suite(CONTRAPRO)

    def missing(sentences):
        raise ValueError("no tagger of en")

    monkeypatch.setattr("hf_docmt.evaluation.metrics.pronoun_f1.load_tagger", lambda lang, tagger: missing)
    refused("no tagger of en", suite_translation_report, system, path, discourse=("pronouns",))
    refused("unknown discourse measure 'fluency'", suite_translation_report, system, path, discourse=("fluency",))
    refused("cannot write", suite_translation_report, system, path, details="/no/such/folder/details.jsonl")
    assert system.seen == []


def test_a_model_of_chunks_reads_both_sides(write_suite):
    """At most four sentences around the current one (Herold and Ney 2023, appendix): scored and translated."""
    tokenizer = word_tokenizer()
    model = build("concat", past_context=0, view="chunk", max_position_embeddings=200)
    system = DocMTSystem(model, tokenizer, past_context=2, future_context=2, strategy="full", num_beams=1)
    document = {"doc_id": "d", "translation": [{"en": f"w{n}", "de": f"w{n} w{n + 1}"} for n in range(6, 16)]}
    entry = changed(CONTRAPRO, **{
        "document id": "d", "segment id": 5, "src segment": "w10", "ref segment": "w10 w11",
        "errors": [{"contrastive": "w12 w13"}],
    })  # fmt: skip
    path = write_suite(entry, documents=(document,))
    (item,) = read_suite(path, context=2, future_context=2)
    assert suite_documents([item]) == [["w8", "w9", "w10", "w11", "w12"]]
    (scores,) = system.token_log_probabilities([item])
    less = DocMTSystem(model, tokenizer, past_context=2, future_context=0).token_log_probabilities([item])[0]
    assert len(scores[0]) == 3 and scores[0] != pytest.approx(less[0])
    path = write_suite(entry | {"segment id": 10, "src segment": "w15"}, documents=(document,))
    (last,) = read_suite(path, context=2, future_context=2)
    less = DocMTSystem(model, tokenizer, past_context=2, future_context=0).token_log_probabilities([last])[0]
    assert system.token_log_probabilities([last])[0] == [pytest.approx(row) for row in less]  # no empty sentences
    report = suite_translation_report(system, path)
    assert str(report.results[0].signature).startswith("past:2|future:2|") and report.results[0].strategy == "full"
