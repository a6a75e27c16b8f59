"""The glossary of a request: its terms in texts, files and documents of the page, the missing ones, refused ones."""

import pytest
from support.http_server import running
from support.tiny_models import build, word_tokenizer

from hf_docmt.systems import DocMTSystem

pytest.importorskip("simplemma")
TEXT, LANGUAGES = ["w6 w7.", "w8 w9.", "w6."], {"source": "en", "target": "de"}
PAIRS = {"w6": "w20", "w9": "NOT w7"}
FORMS = [PAIRS, list(map(list, PAIRS.items())), "w6 = w20\nw9 = NOT w7\n", "en\tde\nw6\tw20\nw9\tNOT w7"]


@pytest.fixture(scope="module")
def expected(system):
    return DocMTSystem(system.model, system.tokenizer, strategy="sequential", glossary=PAIRS).translate([TEXT])[0]


@pytest.mark.parametrize("glossary", FORMS, ids=["object", "pairs", "lines", "table"])
def test_texts(client, system, expected, glossary):
    """In each form as by the system with this glossary; other requests have none of it."""
    answer = client.post("/v1/translations", LANGUAGES | {"sentences": TEXT, "glossary": glossary})[1]
    assert answer["translations"] == expected and [text.split().count("w20") for text in expected] == [1, 0, 1]
    assert len(answer["search"]["glossary"]) == 12 and "term" not in [each["kind"] for each in answer["repairs"]]
    fields = LANGUAGES | {"q": TEXT, "glossary": glossary}
    assert client.post("/translate", fields)[1] == {"translatedText": expected}
    del fields["glossary"]
    assert client.post("/translate", fields)[1]["translatedText"] == system.translate([TEXT])[0] != expected


def test_files_and_pages(client, expected):
    """As a field of a form; a page keeps the glossary for the rest of the document and for sentences alone."""
    status, answer = client.upload("a.txt", "\n".join(TEXT).encode(), glossary=FORMS[2])
    assert status == 200 and client.get(answer["translatedFileUrl"])[1].decode().split("\n") == expected
    status, document = client.upload("a.txt", "\n".join(TEXT).encode(), path="/documents", glossary=FORMS[3])
    path = f"/documents/{document['id']}"
    answers = [client.post(f"{path}/{step}", {})[1]["sentences"] for step in ("translate", "alone")]
    assert [each["translation"] for each in answers[0].values()] == expected
    assert [each["alone"].split().count("w20") for each in answers[1].values()] == [1, 0, 1]


def test_missing_terms(client):
    """Those that the model cannot write are named in each answer, and marked on the page."""
    fields = LANGUAGES | {"glossary": {"w9": "zzz"}}
    problem = "sentence 2: 'w9' at characters 4-5: expected 'zzz'"
    assert client.post("/translate", fields | {"q": "\n".join(TEXT)})[1]["problems"] == [f"glossary, {problem}"]
    repairs = client.post("/v1/translations", fields | {"sentences": TEXT})[1]["repairs"]
    missing = [(each["sentence"], each["detail"]) for each in repairs if each["kind"] == "term"]
    assert missing == [(1, problem[len("sentence 2: ") :])]
    document = client.post("/documents", fields | {"text": "\n".join(TEXT)})[1]
    sentences = client.post(f"/documents/{document['id']}/translate", {})[1]["sentences"]
    names = [[name for name, _ in each["repairs"] if name == "term missing"] for each in sentences.values()]
    assert names == [[], ["term missing"], []]


@pytest.mark.parametrize(
    ("glossary", "reason"),
    [
        (["w6"], 'the glossary is "[\'w6\']", expected {"source": "target"}, a list of pairs, or text'),
        (3, "the glossary is '3'"),
        ([["w6"]], "expected"),
        ([["w6", 3]], "glossary must be text, got a int"),
        ({"w6": None}, "glossary must be text, got a NoneType"),
        ([["w6", "\ud800"]], "half of a surrogate pair"),
        ([["w6", " "]], "a glossary entry needs a source term and its translation"),
        ({"": "w7"}, "a glossary entry needs a source term and its translation"),
        ("w6 w7", "glossary, line 1: 'w6 w7', expected a source term and its translation with '=' between them"),
        ("w6\tw7\nw8", "glossary, line 2"),
        ([["w6", "w7"]] * 1001, "the glossary has 1001 terms, expected up to 1000"),
        ({"w6": "w7" * 50_001}, "exceeds text limit (100000)"),
    ],
)
def test_refused_glossaries(client, glossary, reason):
    for path, field in (("/translate", "q"), ("/v1/translations", "text"), ("/documents", "text")):
        status, answer = client.post(path, LANGUAGES | {field: "w6", "glossary": glossary})
        assert status == 400 and reason in answer["error"], (path, answer)


def test_of_a_memory():
    """A document has a glossary, a session has none, since its sentences are translated as they come."""
    model = build("memory", seed=1)
    model.generation_config.max_new_tokens = 6
    expected = DocMTSystem(model, word_tokenizer(), glossary=PAIRS).translate([TEXT])[0]
    with running(DocMTSystem(model, word_tokenizer())) as client:
        assert client.get("/documents")[1]["takesTerms"]
        document = client.post("/documents", LANGUAGES | {"text": "\n".join(TEXT), "glossary": PAIRS})[1]
        sentences = client.post(f"/documents/{document['id']}/translate", {})[1]["sentences"].values()
        assert [each["translation"] for each in sentences] == expected and "w20" in " ".join(expected)
        status, answer = client.post("/translate", LANGUAGES | {"q": "w6", "glossary": PAIRS, "session": "new"})
        assert status == 400 and "a session of a model with a memory has no glossary" in answer["error"]
