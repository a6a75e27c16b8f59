"""Documents on the page: the same translations in portions, edits as context, files and why a sentence reads so."""

import numpy as np
import pytest
from support.http_server import running
from support.tiny_models import build, random_text, word_tokenizer

from hf_docmt.analysis.decisive_context import decisive_context
from hf_docmt.data.readers import read_documents
from hf_docmt.serving.documents import PORTION
from hf_docmt.systems import DocMTSystem, load_system

TEXT = random_text([3] * 24, seed=1)


def opened(client, text, name=None, **fields):
    fields = {"source": "en", "target": "de"} | fields
    if name is None:
        status, answer = client.post("/documents", fields | {"text": text})
    else:
        status, answer = client.upload(name, text.encode(), path="/documents", **fields)
    assert status == 200, answer
    return answer


def finished(client, document, path="translate", key="translation"):
    """The translations of all sentences after all portions."""
    rest = 1
    while rest:
        status, answer = client.post(f"/documents/{document['id']}/{path}", {})
        assert status == 200, answer
        rest = answer["rest"]
    document |= client.get(f"/documents/{document['id']}")[1]
    return [sentence[key] for sentence in document["sentences"]]


def file_of(client, document, kind="file"):
    """Name and content of what is taken away, and its problems."""
    status, answer = client.post(f"/documents/{document['id']}/file", {"as": kind})
    assert status == 200, answer
    status, data, headers = client.call("GET", answer["translatedFileUrl"])
    return headers["content-disposition"].rpartition("''")[2], data.decode(), answer.get("problems", [])


def edited(client, document, **fields):
    status, answer = client.post(f"/documents/{document['id']}/sentence", fields)
    assert status == 200, answer
    return answer


@pytest.mark.parametrize(
    ("architecture", "fields", "strategy"),
    [
        ("concat", {"past_context": 2}, "sliding"),
        ("concat", {"past_context": 2}, "sequential"),
        ("concat", {"past_context": 2}, "sentence"),
        ("concat", {"past_context": 1, "future_context": 1}, "sliding"),
        ("caching", {"past_context": 2}, "sliding"),
        ("memory", {}, "stream"),
    ],
)
def test_portions_are_a_document(architecture, fields, strategy):
    """As all sentences at once, also those with opaque runs; in portions, the blank ones among them."""
    model = build(architecture, seed=1, **fields)
    model.generation_config.max_new_tokens = 6
    system = DocMTSystem(model, word_tokenizer(), strategy=strategy, num_beams=1)
    text = [*TEXT[:5], "w7 <b> w8.", *TEXT[5:]]
    with running(system) as client:
        document = opened(client, "\n".join(text))
        assert [each["waiting"] for each in document["sentences"]] == [True] * len(text)
        (expected,) = system.translate_carried([text])[0][0]
        assert finished(client, document) == expected
        status, answer = client.post(f"/documents/{document['id']}/translate", {})
        assert answer["sentences"] == {} and answer["rest"] == 0


def test_of_a_model_of_chunks():
    """Every sentence is translated, and shown as it comes."""
    model = build("concat", view="chunk")
    model.generation_config.max_new_tokens = 20
    with running(DocMTSystem(model, word_tokenizer())) as client:
        document = opened(client, "\n".join(TEXT))
        first = client.post(f"/documents/{document['id']}/translate", {})[1]
        assert list(map(int, first["sentences"])) == list(range(PORTION)) and first["rest"] == len(TEXT) - PORTION
        assert None not in finished(client, document)


@pytest.fixture
def varied():
    """A system whose translations depend on the sentence before."""
    model = build("concat", seed=7, past_context=1)
    model.generation_config.max_new_tokens = 8
    return DocMTSystem(model, word_tokenizer(), strategy="sequential", num_beams=1)


def test_edits_are_context(varied):
    """An accepted translation is in the file, is context for those behind it, and can be taken back."""
    with running(varied) as client:
        document = opened(client, "\n".join(TEXT[:6]))
        before = finished(client, document)
        answer = edited(client, document, sentence=1, translation=" w30\n w31 ")["sentences"]["1"]
        assert (answer["translation"], answer["edited"], answer["accepted"]) == ("w30 w31", True, True)
        assert edited(client, document, sentence=3, translation=before[3])["sentences"]["3"]["edited"] is False
        again = edited(client, document, sentence=1, again=True)
        assert again["rest"] == 3 and again["sentences"]["3"]["waiting"] is False
        after = finished(client, document)
        targets = [[before[0], "w30 w31", None, before[3], None, None]]
        expected = varied.model.translate_documents(
            [TEXT[:6]], varied.tokenizer, strategy="sequential", num_beams=1, targets=targets
        )
        assert [after] == expected and after[2] != before[2]
        assert file_of(client, document)[1].split("\n") == after
        restored = edited(client, document, sentence=1, restore=True)["sentences"]["1"]
        assert (restored["translation"], restored["accepted"]) == (before[1], False)


def test_stopped_file(client):
    """What was not translated keeps its source and markup; an edit of a sentence with markup keeps that."""
    text = "\n\n".join(f"{line} **w9** `code`" for line in TEXT[: PORTION + 2])
    document = opened(client, text, "notes.md")
    client.post(f"/documents/{document['id']}/translate", {})
    edited(client, document, sentence=0, translation="w30 w31 w32 code")
    name, written, problems = file_of(client, document)
    lines, sources = written.split("\n\n"), text.split("\n\n")
    assert name == "notes_de.md" and problems == [] and lines[PORTION:] == sources[PORTION:] and lines[1] != sources[1]
    assert written.count("`code`") == len(lines) and lines[0].replace("*", "") == "w30 w31 w32 `code`"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("film.srt", "1\r\n00:00:01,000 --> 00:00:02,000\r\nw6 w7 w8\r\n"),
        ("film.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nw6 w7 w8\n"),
        ("a.jsonl", '{"doc_id": "a", "source": ["w6 w7 w8"]}\n{"doc_id": "b", "source": ["w9"]}\n'),
    ],
)
def test_files_of_readers(client, name, text):
    document = opened(client, text, name)
    first = finished(client, document)[0]
    written = file_of(client, document)[1]
    assert first in written and written.count("\r\n") == ("\r" in text) * written.count("\n")
    assert written.count("00:02.000") == text.count("00:02.000") and written.count("doc_id") == text.count("doc_id")


def test_uncertain_sentences(varied):
    """Those with a score, for their length, well below the mean of the document, until they are accepted."""
    with running(varied) as client:
        document = opened(client, "\n".join(TEXT))
        translations = finished(client, document)
        search = {"strategy": "sequential", "num_beams": 1, "return_scores": True}
        (lines,) = varied.model.translate_documents([TEXT], varied.tokenizer, **search)
        scores = np.array([line.score / len(text) ** 0.5 for line, text in zip(lines, TEXT)])
        expected = np.flatnonzero(scores < scores.mean() - 1.5 * scores.std()).tolist()
        assert document["uncertain"] == expected and 0 < len(expected) < 8
        answer = edited(client, document, sentence=expected[0], translation=translations[expected[0]])
        assert answer["uncertain"] == expected[1:]


@pytest.mark.parametrize(("kind", "ending"), [("tmx", ".tmx"), ("xliff", ".xlf")])
def test_exchange_files(client, tmp_path, kind, ending):
    """Pairs for other programs, which the readers of this package read again; accepted ones are marked."""
    document = opened(client, "w7 <b> & w8.\nw9 w10.\n\nw11.", "letter.txt")
    translations = finished(client, document)
    edited(client, document, sentence=1, translation="w30\u0001 w31")
    name, written, _ = file_of(client, document, kind)
    assert name == f"letter_de{ending}"
    (tmp_path / name).write_text(written, encoding="utf-8")
    pairs = [pair for row in read_documents(path=str(tmp_path / name), source_lang="en", target_lang="de")
             for pair in row["translation"]]  # fmt: skip
    assert [pair["en"] for pair in pairs] == [sentence["source"] for sentence in document["sentences"]]
    assert [pair["de"] for pair in pairs] == [translations[0], "w30 w31", translations[2]]
    assert kind == "tmx" or written.count('approved="yes"') == written.count("signed-off") == 1


def test_why(client, system):
    document = opened(client, "\n".join(TEXT[:5]), strategy="sliding")
    translations = finished(client, document)
    status, found = client.get(f"/documents/{document['id']}/why?sentence=2")
    expected = decisive_context(system.model, TEXT[:5], translations, system.tokenizer, 3, "sliding")
    assert status == 200 and (found["verdict"], found["translation"]) == (expected.verdict, expected.translation)
    assert [one["sentence"] + 1 for one in found["without"]] == [one.number for one in expected.changing]


def test_comparison(client, system):
    document = opened(client, "\n".join(TEXT[:20]))
    translations = finished(client, document)
    alone = [system.translate([[text]])[0][0] for text in TEXT[:20]]
    assert finished(client, document, "alone", "alone") == alone
    differing = [bool(each["pieces"]) for each in document["sentences"]]
    assert differing == [one != other for one, other in zip(translations, alone)] and any(differing)


def test_what_a_model_offers(client, tmp_path):
    """Nothing about context of a model that reads none; strategies only of several."""
    offered = client.get("/documents")[1]
    names = [strategy["name"] for strategy in offered["strategies"]]
    assert names[0] == "sequential" and {"sentence", "sliding"} <= set(names)
    assert offered["readsContext"] and offered["explains"] and offered["compares"]
    assert offered["about"].startswith("It reads the sentence before each one")
    cases = [
        (build("concat", past_context=0), "It translates each sentence alone.", False),
        (build("memory"), "It translates sentence by sentence, and remembers what came before.", True),
        (build("window", view="chunk"), "It translates longer parts of the text at once", True),
    ]
    for model, about, reads in cases:
        with running(DocMTSystem(model, word_tokenizer())) as other:
            offered = other.get("/documents")[1]
            got = [offered[name] for name in ("readsContext", "explains", "compares")]
            assert offered["about"].startswith(about) and got == [reads] * 3
            assert len(offered["strategies"]) > 1 or not reads


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"text": ""}, "missing text parameter"),
        ({"text": " \n"}, "the text has no words to translate"),
        ({"text": "w7", "target": "en"}, "the text is in en already; choose another language"),
        ({"text": "w7", "target": "fr"}, "fr is not supported"),
        ({"text": "w7", "strategy": "stream"}, "strategy 'stream', expected one of sequential"),
        ({"text": "w7", "strategy": ["full"]}, "expected one of sequential"),
        ({"text": "w7 " * 1001}, "has 1001 tokens, expected at most 1000"),
        ({"text": "\n".join(["w7."] * 2001)}, "exceeds text limit (2000)"),
    ],
)
def test_refused_texts(client, fields, reason):
    status, answer = client.post("/documents", {"source": "en", "target": "de"} | fields)
    assert status == 400 and reason in answer["error"], answer


@pytest.mark.parametrize(
    ("path", "fields", "status", "reason"),
    [
        ("sentence", {"sentence": 2, "translation": "w7"}, 400, "sentence parameter must be a number <= 1"),
        ("sentence", {"sentence": 1, "translation": " "}, 400, "the translation has 0 characters"),
        ("sentence", {"sentence": 1, "translation": 5}, 400, "translation must be text, got a int"),
        ("sentence", {"sentence": 1, "translation": "w" * 10_001}, 400, "10001 characters, expected 1 to 10000"),
        ("file", {"as": "doc"}, 400, "as is 'doc', expected one of file, tmx, xliff"),
    ],
)
def test_refused_requests(client, path, fields, status, reason):
    document = opened(client, "w7.\nw8.")
    got, answer = client.post(f"/documents/{document['id']}/{path}", fields)
    assert got == status and reason in answer["error"], answer
    got, answer = client.post(f"/documents/gone/{path}", fields)
    assert got == 404 and "no longer on the server; open it again" in answer["error"]


def test_documents_that_are_kept(system, monkeypatch):
    """One that is replaced is gone; where there is no room a new one waits; a key is asked for."""
    with running(system, kept_megabytes=1, sentences=20_000) as client:
        first = opened(client, "w7.")
        second = opened(client, "w8.", replaces=first["id"])
        assert [client.get(f"/documents/{each['id']}")[0] for each in (first, second)] == [404, 200]
        text = "w9 w9 w9 w7.\n" * 7000
        opened(client, text)
        status, answer = client.post("/documents", {"text": text, "source": "en", "target": "de"})
        assert status == 503 and "are kept, of at most 1048576" in answer["error"]
        monkeypatch.setenv("HF_DOCMT_API_KEYS", "one")
        assert client.get(f"/documents/{second['id']}")[0] == 400
        status, _, _ = client.call("GET", f"/documents/{second['id']}", headers={"Authorization": "Bearer one"})
        assert status == 200


def test_system_of_another_package(tmp_path):
    from support.language_models import multilingual
    from support.pretrained_models import saved

    model, tokenizer, _ = multilingual("nllb")
    codes = {"src_lang": "eng_Latn", "tgt_lang": "deu_Latn"}
    system = load_system(saved(tmp_path, model, tokenizer), **codes, max_new_tokens=5)
    with running(system) as client:
        offered = client.get("/documents")[1]
        assert offered["strategies"] == [] and not offered["readsContext"]
        document = opened(client, "Hello.\nIt is late.")
        assert finished(client, document) == system.translate([["Hello.", "It is late."]])[0]
