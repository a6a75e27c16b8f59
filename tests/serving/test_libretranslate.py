"""The interface of LibreTranslate: what its clients send, and what it refuses."""

from urllib.parse import urlsplit

import pytest
from starlette.exceptions import HTTPException
from support.http_server import running

from hf_docmt.formats.html import HtmlFormat
from hf_docmt.options import ServerLimits
from hf_docmt.serving.served_model import ServedModel
from hf_docmt.serving.texts import file_text
from hf_docmt.systems import DocMTSystem

SENTENCES = ["w7 w8 w9", "w10 w11", "w12 w13 w14"]
GOOD = {"q": "w7 w8", "source": "en", "target": "de"}


@pytest.fixture(scope="module")
def expected(system):
    return system.translate([SENTENCES])[0]


def test_its_own_client(client, expected):
    """libretranslatepy: forms, languages, and errors for what is not there."""
    libretranslate = pytest.importorskip("libretranslatepy").LibreTranslateAPI(client.url)
    english = {"code": "en", "name": "English", "targets": ["de", "en"]}
    assert libretranslate.languages() == [english, {"code": "de", "name": "German", "targets": ["de"]}]
    assert libretranslate.translate("\n".join(SENTENCES), "en", "de", timeout=30) == "\n".join(expected)
    with pytest.raises(OSError, match="400"):
        libretranslate.translate("w7", "en", "fr", timeout=30)
    (detected,) = libretranslate.detect("Guten Morgen, wie geht es dir heute?", timeout=30)
    assert detected["language"] == "de" and 50 < detected["confidence"] <= 100


def test_a_list_is_one_document(client, system, expected):
    """Its texts read each other; alone they are translated otherwise."""
    assert client.post("/translate", GOOD | {"q": SENTENCES}) == (200, {"translatedText": expected})
    assert client.form("/translate", GOOD | {"q": SENTENCES}) == (200, {"translatedText": expected})
    assert [client.post("/translate", GOOD | {"q": text})[1]["translatedText"] for text in SENTENCES] != expected
    assert client.post("/translate", GOOD | {"q": ["", *SENTENCES, " "]})[1]["translatedText"] == ["", *expected, " "]


def test_scores_if_asked(client):
    """A list for each text, with a number for each sentence; the schema of LibreTranslate has none."""
    status, answer = client.post("/translate", GOOD | {"q": ["w7 w8", "w9.\nw10"], "scores": True})
    assert status == 200 and [len(scores) for scores in answer["scores"]] == [1, 2]
    assert all(score < 0 for scores in answer["scores"] for score in scores)
    assert "scores" not in client.post("/translate", GOOD)[1]
    assert len(client.form("/translate", GOOD | {"scores": "true"})[1]["scores"]) == 1


def test_text_keeps_its_lines_and_codes_may_be_longer(client, expected):
    text = f"  {SENTENCES[0]}\n\n{SENTENCES[1]}\n\t{SENTENCES[2]}\n"
    status, answer = client.post("/translate", GOOD | {"q": text, "source": "en-US", "target": "deu_Latn"})
    assert (status, answer["translatedText"]) == (200, f"  {expected[0]}\n\n{expected[1]}\n\t{expected[2]}\n")
    assert client.form("/translate", GOOD | {"q": text.replace("\n", "\r\n")}) == (status, answer)  # of browsers


def test_source_is_detected(client, expected):
    """Of one source language it is that one, with what it is probable; a list is one document."""
    status, answer = client.post("/translate", GOOD | {"q": SENTENCES, "source": "auto"})
    (detected,) = {tuple(language.items()) for language in answer["detectedLanguage"]}
    assert (status, answer["translatedText"], len(answer["detectedLanguage"])) == (200, expected, 3)
    status, answer = client.post("/translate", GOOD | {"q": "Where is the station?", "source": "auto"})
    assert answer["detectedLanguage"]["language"] == "en" == dict(detected)["language"]
    assert dict(detected)["confidence"] < answer["detectedLanguage"]["confidence"]


def test_the_best_source_language():
    model = object.__new__(ServedModel)
    model.languages = [["en_XX", "fr", "deu_Latn"], ["en"]]
    assert model.detected("Wo ist der Bahnhof?", "en")[0] == "deu_Latn"
    assert model.detected("<p>Où est la gare ?</p>", "en")[0] == "fr"
    assert model.detected("Dónde está la estación de tren más cercana?", "spa_Latn")[0] == "spa_Latn"  # stays
    with pytest.raises(HTTPException, match="the text is in ru, which is not supported; expected one of en_XX, fr"):
        model.detected("Где находится вокзал?", "en")
    model.languages = [["da", "nb"], ["en"]]
    assert model.detected("Dette er en gammel lampe som står på kjøkkenet i huset.", "en")[0] == "nb"
    model.languages = [["eng_Latn", "pes_Arab"], ["deu_Latn"]]  # Persian may be what the text is in
    assert model.detected("این چراغ قدیمی در آشپزخانه است.", "deu_Latn")[0] == "eng_Latn"
    model.languages = [["xx", "tlh"], ["en"]]
    with pytest.raises(HTTPException, match="none of the source languages can be detected; name one: xx, tlh"):
        model.detected("Bonjour", "en")


def test_alternatives(client, system):
    """Further translations of the beams, none of them twice; a text is translated as by so many beams."""
    fields = GOOD | {"q": [*SENTENCES, "w7 <x> {y} w8"], "alternatives": 3}
    wide = DocMTSystem(system.model, system.tokenizer, strategy="sequential", num_beams=4, nbest=4)
    (lines, _, _), _ = wide.translate_carried([fields["q"]])
    answer = client.post("/translate", fields)[1]
    assert answer["translatedText"] == lines[0] and list(map(len, answer["alternatives"]))[:3] == [3] * 3
    for text, others in zip(answer["translatedText"], answer["alternatives"]):
        assert len({text, *others}) == 1 + len(others)
    assert all(text.count("<x>") == text.count("{y}") == 1 for text in answer["alternatives"][3])
    assert client.form("/translate", fields | {"q": "w7 w8", "format": "html"})[1]["alternatives"] == []


def test_a_language_is_its_own_translation(client):
    """As the pairs of LibreTranslate's front end have it; so is a text that is in the target language already."""
    said = "Guten Morgen, wie geht es dir heute?"
    for source, target in (("de", "de"), ("en", "en"), ("auto", "de")):
        answer = client.post("/translate", {"q": [said], "source": source, "target": target, "alternatives": 1})[1]
        assert (answer["translatedText"], answer["alternatives"]) == ([said], [[]])
    assert answer["detectedLanguage"][0]["language"] == "de"
    status, answer = client.upload("a.txt", said.encode(), source="auto")
    assert status == 200 and client.call("GET", urlsplit(answer["translatedFileUrl"]).path)[1].decode() == said


def test_problems_are_reported_with_the_text(client, monkeypatch):
    page = "<p>w7</p>"
    monkeypatch.setattr(HtmlFormat, "write", lambda *_: b"\xef\xbb\xbf<p>w7</p><p>w8</p>")
    status, answer = client.post("/translate", GOOD | {"q": page, "format": "html"})
    assert status == 200 and answer["translatedText"] == "<p>w7</p><p>w8</p>"
    (problem,) = answer["problems"]
    assert "2 are read in the new file" in problem
    status, answer = client.upload("a.html", page.encode())
    assert status == 200 and answer["problems"] == [problem.replace("q:", "a.html:")]
    assert client.call("GET", urlsplit(answer["translatedFileUrl"]).path)[0] == 200


def test_html(client, expected):
    page = f"<p class='a'>{SENTENCES[0]}</p>"
    status, answer = client.post("/translate", GOOD | {"q": [page, SENTENCES[1]], "format": "html"})
    assert (status, answer["translatedText"]) == (200, [f"<p class='a'>{expected[0]}</p>", expected[1]])
    status, answer = client.post("/translate", GOOD | {"q": "<b>w7</b> w8 <i>w9</i>", "format": "html"})
    assert status == 200 and all(answer["translatedText"].count(tag) == 1 for tag in ("<b>", "</b>", "<i>", "</i>"))


@pytest.mark.parametrize(
    "declaration",
    ['<meta charset="iso-8859-1">', '<?xml version="1.0" encoding="latin-1"?>', '<meta charset="koi8-r">\n', "\ufeff"],
)
def test_declarations_in_html_say_nothing_of_its_encoding(client, declaration):
    """The text of a request is read as Unicode already."""
    page = "<p>w7 € ü 東 “w8”</p>"
    (plain,) = client.post("/translate", GOOD | {"q": [page], "format": "html"})[1]["translatedText"]
    answer = client.post("/translate", GOOD | {"q": [declaration + page], "format": "html"})
    assert answer == (200, {"translatedText": [declaration + plain]})


def test_pages_of_others_may_ask(client):
    """A browser asks first whether it may send JSON."""
    headers = {"Origin": "http://page.example", "Access-Control-Request-Method": "POST"}
    headers["Access-Control-Request-Headers"] = "content-type"
    status, _, answer = client.call("OPTIONS", "/translate", None, headers)
    assert status == 200 and "POST" in answer["access-control-allow-methods"]


def test_types_of_requests(client):
    body = b'{"q": "w7", "source": "en", "target": "de"}'
    assert client.call("POST", "/translate", body, {"Content-Type": "Application/JSON; charset=utf-8"})[0] == 200
    status, data, _ = client.call("POST", "/translate", body, {"Content-Type": "application/vnd.api+json"})
    assert status == 400 and b"expected application/json or application/x-www-form-urlencoded or" in data
    assert client.call("POST", "/translate?q=w7&source=en&target=de")[0] == 200
    assert "exceeds text limit" in client.form("/translate", GOOD | {"q": "w7 " * 400_000})[1]["error"]


def test_files_are_fetched_once(client, expected):
    status, answer = client.upload("a b/ü.txt", "\n".join(SENTENCES).encode())
    path = answer["translatedFileUrl"].removeprefix(client.url)
    assert status == 200 and path.startswith("/download_file/")
    assert client.call("HEAD", path)[0] == 404  # and takes nothing away
    status, data, headers = client.call("GET", path)
    assert (status, data.decode()) == (200, "\n".join(expected))
    assert headers["content-disposition"] == "attachment; filename*=UTF-8''%C3%BC_de.txt"
    assert client.get(path)[0] == 404
    status, answer = client.upload("page.html", f"<html lang=en><p>{SENTENCES[0]}</p>".encode())
    page = client.call("GET", answer["translatedFileUrl"].removeprefix(client.url))[1].decode()
    assert page == f'<html lang="de"><p>{expected[0]}</p>'


def test_files_wait_within_a_budget(system):
    """One that does not fit is refused; those that wait stay."""
    with running(system, kept_megabytes=1) as client:
        answers = [client.upload("a.txt", b"w7\n\n" + b" " * 400_000) for _ in range(3)]
        assert [status for status, _ in answers] == [200, 200, 503] and "at most 1048576" in answers[2][1]["error"]
        for _, answer in answers[:2]:
            assert client.call("GET", answer["translatedFileUrl"])[0] == 200
        assert client.upload("a.txt", b"w7")[0] == 200


def test_addresses_and_keys_of_others(system, monkeypatch):
    """Links name the configured server, never the host of the request; hosts and origins are listed; metrics closed."""
    asked = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    limits = {"public_url": "https://b.example/mt/", "hosts": ("127.0.0.1", "b.example"), "origins": (asked["Origin"],)}
    monkeypatch.setenv("HF_DOCMT_API_KEYS", "k1,k2")
    with running(system, **limits) as client:
        key = {"Authorization": "Bearer k2"}
        assert client.call("GET", "/metrics")[0] == 400 and client.call("GET", "/metrics", None, key)[0] == 200
        assert client.call("GET", "/health", None, {"Host": "evil.example"})[0] == 400
        assert client.call("OPTIONS", "/translate", None, asked)[0] == 200
        assert client.call("OPTIONS", "/translate", None, asked | {"Origin": "https://c.example"})[0] == 400
        monkeypatch.delenv("HF_DOCMT_API_KEYS")
        assert client.upload("a.txt", b"w7")[1]["translatedFileUrl"].startswith("https://b.example/mt/download_file/")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_wrapped_files_are_read_by_paragraphs(end):
    lines = ["He left early. It was raining hard all day, and when", "he came back nobody knew him.", "", "- Milk."]
    text = file_text(end.join(lines).encode(), "a.txt", "en", "de", ServerLimits())
    wrapped = "It was raining hard all day, and when he came back nobody knew him."
    assert text.sentences == ["He left early.", wrapped, "Milk."]
    written, _ = text.written([sentence.upper() for sentence in text.sentences])
    assert written.decode() == end.join(lines).upper()


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        (b"{", 400, "Invalid JSON format"),
        (b"[" * 100_000, 400, "Invalid JSON format"),
        (b"\xff\xfe{}", 400, "Invalid JSON format"),
        ([1], 400, "expected an object, got a list"),
        ({"source": "en", "target": "de"}, 400, "missing q parameter"),
        (GOOD | {"q": ""}, 400, "missing q parameter"),
        (GOOD | {"q": []}, 400, "0 texts, expected 1 to 500"),
        (GOOD | {"q": 7}, 400, "q must be text, got a int"),
        (GOOD | {"q": ["w7", None]}, 400, "q must be text, got a NoneType"),
        (GOOD | {"q": "\ud800"}, 400, "half of a surrogate pair"),
        (GOOD | {"q": ["w7"] * 501}, 400, "501 texts, expected 1 to 500"),
        (GOOD | {"q": "w7 " * 40_000}, 400, "request (120000 characters) exceeds text limit (100000)"),
        (GOOD | {"q": "w7\n" * 2001}, 400, "request (2001 sentences) exceeds text limit (2000)"),
        (GOOD | {"source": None}, 400, "missing source parameter"),
        (GOOD | {"source": "fr"}, 400, "fr is not supported, expected one of en"),
        (GOOD | {"target": "auto"}, 400, "auto is not supported; it is detected for /translate and /translate_file"),
        (GOOD | {"target": "xx"}, 400, "xx is not supported, expected one of de"),
        (GOOD | {"format": "pdf"}, 400, "pdf format is not supported"),
        (GOOD | {"format": {}}, 400, "{} format is not supported"),
        (GOOD | {"format": "html", "q": "<p>w7\0</p>"}, 400, "a NUL character"),
        (GOOD | {"alternatives": 16}, 400, "alternatives parameter must be a number <= 15, got '16'"),
        (GOOD | {"alternatives": "many"}, 400, "alternatives parameter must be a number <= 15, got 'many'"),
        (GOOD | {"source": "auto", "q": "Où est la gare la plus proche ?"}, 400, "the text is in fr, which is not"),
        (GOOD | {"session": "none"}, 404, "no session 'none'"),
        (GOOD | {"session": 7}, 400, "session must be text"),
    ],
)
def test_refusals(client, fields, status, reason):
    got, answer = client.post("/translate", fields)
    assert got == status and reason in answer["error"], answer
    assert client.post("/translate", GOOD)[0] == 200


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.txt", b"\x80\x81\x00", "not text in UTF-8"),
        ("a.html", b"\xff\xfe\x00\x01\x80", ""),
        ("a.exe", b"MZ", "file format not supported"),
        ("", b"w7", ""),
    ],
)
def test_refused_files(client, name, data, reason):
    status, answer = client.upload(name, data)
    assert status == 400 and reason in answer["error"], answer


def test_requests_without_a_file(client):
    status, answer = client.form("/translate_file", {"source": "en", "target": "de", "file": "w7"})
    assert (status, answer) == (400, {"error": "Invalid request: missing file parameter"})
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert client.call("POST", "/translate_file", b"--y\r\nbroken", headers)[0] == 400
    assert client.upload("a.txt", b"w7", target="fr")[0] == 400
    assert client.call("POST", "/translate", b"q=w7", {"Content-Type": "text/plain"})[0] == 400


def test_addresses(client):
    assert client.call("GET", "/")[2]["content-type"] == "text/html; charset=utf-8"
    assert client.form("/suggest", {"q": "w7", "s": "w8"}) == (
        403,
        {"error": "Suggestions are disabled on this server."},
    )
    assert client.get("/health") == (200, {"status": "ok"})
    assert client.get("/frontend/settings")[1]["language"]["target"] == {"code": "de", "name": "German"}
    for way, path, status in (("GET", "/nowhere", 404), ("GET", "/translate", 405), ("GET", "/download_file/x", 404)):
        got, data, headers = client.call(way, path)
        assert got == status and b'{"error":' in data and headers["content-type"] == "application/json"
    refused = {None: "missing q", "w7 " * 40_000: "exceeds text limit", 7: "must be text"}
    for text, reason in refused.items():
        status, answer = client.post("/detect", {"q": text})
        assert status == 400 and reason in answer["error"]


def test_keys(client, monkeypatch):
    monkeypatch.setenv("HF_DOCMT_API_KEYS", "one, zweiß")
    assert client.post("/translate", GOOD)[0] == 400
    assert client.post("/translate", GOOD | {"api_key": "on"}) == (403, {"error": "Invalid API key"})
    assert client.post("/translate", GOOD | {"api_key": 1})[0] == 403
    assert client.post("/translate", GOOD | {"api_key": "zweiß"})[0] == 200
    assert client.post("/translate", GOOD, {"Authorization": "Bearer one"})[0] == 200
    assert client.post("/translate", GOOD, {"Authorization": "Bearer two"})[0] == 403
    assert client.form("/translate", GOOD | {"api_key": "one"})[0] == 200
    assert client.upload("a.txt", b"w7")[0] == 400 and client.post("/v1/translations", {"text": "w7"})[0] == 400
    assert client.get("/frontend/settings")[1]["keyRequired"] is True and client.get("/languages")[0] == 200
    monkeypatch.setenv("HF_DOCMT_API_KEYS", " ,")
    assert client.post("/translate", GOOD)[0] == 200


def test_a_long_body_is_not_read(system):
    with running(system, megabytes=1) as client:
        status, answer = client.post("/translate", GOOD | {"q": "w" * 2**20})
        assert status == 413 and "1048576 bytes" in answer["error"]
        assert client.upload("a.txt", b"w" * 2**20)[0] == 413
        assert client.post("/translate", GOOD)[0] == 200
