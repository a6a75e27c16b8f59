"""Documents by their own interface, and sessions that carry context."""

import pytest
from support.http_server import running
from support.language_models import multilingual
from support.pretrained_models import saved
from support.tiny_models import build, word_tokenizer

from hf_docmt.systems import DocMTSystem, load_system

SENTENCES = ["w7 w8 w9", "w10 w11", "", "w12 w13 w14", "w15"]


def translated(client, **fields):
    status, answer = client.post("/v1/translations", fields)
    assert status == 200, answer
    return answer


@pytest.mark.parametrize("strategy", ["sliding", "sequential", "sentence"])
def test_document(client, system, strategy):
    """What `translate_documents` gives by this strategy and these options, and what it repaired."""
    options = {"num_beams": 2, "max_new_tokens": 6}
    answer = translated(client, sentences=SENTENCES, strategy=strategy, options=options)
    expected, repairs = system.model.translate_documents(
        [SENTENCES], system.tokenizer, strategy=strategy, return_report=True, return_scores=True, **options
    )
    assert (answer["translations"], answer["repairs"]) == (expected[0], repairs[0])
    assert [score is None for score in answer["score"]] == [not text for text in expected[0]]
    for score, text in zip(answer["score"], expected[0]):
        assert score is None or abs(score - text.score) < 1e-3
    assert answer["search"] == {"beams": 2, "max_new_tokens": 6, "strategy": strategy}


def test_text(client, system):
    answer = translated(client, text="w7 w8.  w9\n\n w10", source="en", target="de")
    assert answer["sentences"] == ["w7 w8. w9", "w10"] or len(answer["sentences"]) == len(answer["translations"])
    assert answer["text"].count("\n") == 2 and "session" not in answer


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        ({}, 400, "give one of sentences and text"),
        ({"text": "w7", "sentences": ["w7"]}, 400, "give one of sentences and text"),
        ({"sentences": "w7"}, 400, "sentences must be a list"),
        ({"sentences": [["w7"]]}, 400, "sentences must be text, got a list"),
        ({"text": "w7", "strategey": "sentence"}, 400, "unknown field 'strategey', expected sentences, text"),
        ({"text": "w7", "strategey": "sentence"}, 400, "did you mean 'strategy'?"),
        ({"text": "w7", "strategy": "sentence", "session": "new"}, 400, "no context is read"),
        ({"text": "w7", "strategy": "slidin"}, 400, "'slidin'"),
        ({"text": "w7", "strategy": "stream"}, 400, "strategy 'stream'"),
        ({"text": "w7", "strategy": 3}, 400, "strategy must be text"),
        ({"text": "w7", "options": [1]}, 400, "options must be an object"),
        ({"text": "w7", "options": {"num_beam": 2}}, 400, "unknown 'num_beam'"),
        ({"text": "w7", "options": {"num_beams": 17}}, 400, "num_beams must be a number from 1 to 16"),
        ({"text": "w7", "options": {"num_beams": True}}, 400, "num_beams must be a number from 1 to 16"),
        ({"text": "w7", "options": {"past_context": 9}}, 400, "past_context"),
        ({"text": "w7", "source": "fr"}, 400, "fr is not supported"),
        ({"sentences": [""] * 2001}, 400, "exceeds text limit (2000)"),
        ({"text": "w7", "session": "gone"}, 404, "no session 'gone'"),
    ],
)
def test_refusals(client, fields, status, reason):
    got, answer = client.post("/v1/translations", fields)
    assert got == status and reason in answer["error"], answer


@pytest.mark.parametrize(
    ("architecture", "strategy", "seed"), [("concat", "sliding", 1), ("concat", "sequential", 0), ("memory", None, 0)]
)
def test_session_is_a_document(architecture, strategy, seed):
    """Sentence by sentence as all at once, for context that is read again and for a memory that is carried."""
    model = build(architecture, seed, **({"past_context": 1} if strategy else {}))
    model.generation_config.max_new_tokens = 8
    system = DocMTSystem(model, word_tokenizer(), strategy=strategy, num_beams=1 if strategy else 2)
    expected = system.translate([SENTENCES])[0]
    alone = [system.translate([[sentence]])[0][0] for sentence in SENTENCES]
    with running(system) as client:
        first = translated(client, sentences=SENTENCES[:1], session="new")
        said = first["translations"]
        for sentence in SENTENCES[1:]:
            said += translated(client, sentences=[sentence], session=first["session"])["translations"]
        assert said == expected != alone
        shown = {"q": "w7 <x> w8 {y}.", "source": "en", "target": "de", "session": first["session"]}
        assert all(client.post("/translate", shown)[1]["translatedText"].count(run) == 1 for run in ("<x>", "{y}"))
        again = client.post("/translate", {"q": "w7", "source": "en", "target": "de", "session": "new"})[1]
        assert again["session"] != first["session"] and again["translatedText"] == system.translate([["w7"]])[0][0]


def test_sessions_are_few_and_short(system):
    with running(system, sessions=2, session_sentences=1, session_minutes=1) as client:
        ids = [translated(client, sentences=SENTENCES, session="new")["session"] for _ in range(3)]
        statuses = [client.post("/v1/translations", {"text": "w7", "session": name})[0] for name in ids]
        assert statuses == [404, 200, 200]
        kept = [session.sentences for _, session, _ in client.model.sessions.items.values()]
        assert kept == [["w7"], ["w7"]]
        status, answer = client.post("/v1/translations", {"text": "w7", "strategy": "sliding", "session": ids[1]})
        assert status == 400 and "other languages, strategy, options or glossary" in answer["error"]
        client.model.sessions.seconds = 0
        assert client.post("/v1/translations", {"text": "w7", "session": ids[2]})[0] == 404


def test_system_of_another_package(tmp_path):
    """An NLLB between its languages; strategies and options are for document models."""
    model, tokenizer, _ = multilingual("nllb")
    codes = {"src_lang": "eng_Latn", "tgt_lang": "deu_Latn"}
    system = load_system(saved(tmp_path, model, tokenizer), **codes, max_new_tokens=5)
    with running(system) as client:
        english = {"code": "eng_Latn", "name": "English (eng_Latn)", "targets": ["deu_Latn", "eng_Latn"]}
        assert client.get("/languages")[1][0] == english
        fields = {"q": ["Hello.", "It is late."], "source": "en", "target": "de"}
        assert client.post("/translate", fields)[1]["translatedText"] == system.translate([fields["q"]])[0]
        status, answer = client.post("/v1/translations", {"text": "a", "options": {"num_beams": 2}})
        assert status == 400 and "are for document models" in answer["error"]
        status, answer = client.post("/translate", fields | {"glossary": {"late": "spät"}})
        assert status == 400 and "a glossary is for models of this package" in answer["error"]
        assert not client.get("/documents")[1]["takesTerms"]
