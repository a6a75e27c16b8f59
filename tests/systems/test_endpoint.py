"""Endpoints: a server that answers as it should, and in many ways as it should not; no line is lost or invented."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.errors import refused

from hf_docmt.systems import endpoint
from hf_docmt.systems.endpoint import EndpointSystem

GERMAN = {
    "The lamp is old.": "Die Lampe ist alt.",
    "It hums at night, doesn't it?": "Sie brummt nachts, oder?",
    "": "",
    "Nobody has bought it so far.": "Niemand hat sie bisher gekauft.",
    "Pity.": "Schade.",
}
DOCUMENT = list(GERMAN)
LANGUAGES = {"source_lang": "en", "target_lang": "de"}
FRENCH = "Je ne sais pas pourquoi cette lampe est si vieille, mais elle chante toute la nuit, n'est-ce pas ?"


def right(lines):
    return {key: GERMAN[line] for key, line in lines.items()}


def dumped(lines):
    return json.dumps(lines, ensure_ascii=False)


def answer(content, finish="stop"):
    return 200, json.dumps({"choices": [{"index": 0, "finish_reason": finish, "message": {"content": content}}]})


HARMLESS = {  # answers that hold the translations
    "prose around": lambda lines: answer(f"Sure! Here it is:\n{dumped(right(lines))}\nAnything else?"),
    "a code block": lambda lines: answer(f"```json\n{dumped(right(lines))}\n```"),
    "thoughts": lambda lines: answer(f"<think>{{hm}}</think>{dumped(right(lines))}"),
    "line breaks": lambda lines: answer(dumped({key: f"{text}\n" for key, text in right(lines).items()})),
}
MISBEHAVIOURS = {
    "too few lines": lambda lines: answer(dumped(dict(list(right(lines).items())[1:]))),
    "too many lines": lambda lines: answer(dumped(right(lines) | {"99": "Mehr."})),
    "lines in one": lambda lines: answer(dumped({"1": " ".join(right(lines).values()), "2": ""})),
    "other keys": lambda lines: answer(dumped({f"line {key}": text for key, text in right(lines).items()})),
    "a list": lambda lines: answer(dumped(list(right(lines).values()))),
    "numbers": lambda lines: answer(dumped({key: int(key) for key in lines})),
    "half an object": lambda lines: answer(dumped(right(lines))[:-4]),
    "plain text": lambda lines: answer("\n".join(right(lines).values())),
    "blank lines": lambda lines: answer(dumped(dict.fromkeys(lines, " "))),
    "the source": lambda lines: answer(dumped(lines)),
    "another language": lambda lines: answer(dumped(dict.fromkeys(lines, FRENCH))),
    "cut off": lambda lines: answer(dumped(right(lines)), "length"),
    "empty": lambda lines: answer(""),
    "no content": lambda lines: answer(None),
    "no choice": lambda lines: (200, '{"choices": []}'),
    "no object": lambda lines: (200, "[]"),
    "no JSON": lambda lines: (200, "<html>Welcome</html>"),
    "busy": lambda lines: (429, "slow down"),
    "an error": lambda lines: (500, "out of memory"),
    "unavailable": lambda lines: (503, ""),
    "a closed connection": lambda lines: (None, ""),
    "slow": lambda lines: (0, ""),
}


@pytest.fixture
def server(monkeypatch):
    """A server whose `misbehave(lines)` gives a bad answer or None; it keeps the requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append((self.path, self.headers, request))
            lines = json.loads(request["messages"][-1]["content"])
            status, body = server.misbehave(request, lines) or answer(dumped(right(lines)))
            if status == 0:
                time.sleep(1.2)
            if not status:
                return self.connection.close()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.misbehave = [], lambda request, lines: None
    server.handle_error = lambda *arguments: None
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    server.url = f"http://127.0.0.1:{server.server_port}/v1"
    monkeypatch.setattr(endpoint, "WAIT", 0.0)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    yield server
    server.shutdown()
    server.server_close()


def system(server, **options):
    return EndpointSystem(server.url, model_name="tiny", **LANGUAGES | {"timeout": 1} | options)


def expected(document):
    return [GERMAN[sentence] for sentence in document]


def test_requests(server, monkeypatch):
    """Two chunks: instruction, earlier lines with their translations, the lines; a schema, the key from outside."""
    monkeypatch.setenv("DOCMT_API_KEY", "secret")
    options = {"chunk_sentences": 2, "glossary": [("lamp", "Leuchte"), ("moon", "Mond")], "formality": "formal"}
    assert system(server, **options).translate([DOCUMENT]) == [expected(DOCUMENT)]
    (path, headers, first), (_, _, second) = server.requests
    assert path == "/v1/chat/completions" and headers["Authorization"] == "Bearer secret"
    assert first["model"] == "tiny" and first["temperature"] == 0
    assert first["response_format"]["json_schema"]["schema"]["required"] == ["1", "2"]
    text = first["messages"][0]["content"]
    assert text.startswith("You translate from English into German.") and "formal form" in text
    assert text.endswith("lamp = Leuchte") and "Mond" not in text
    earlier, translated, now = (json.loads(message["content"]) for message in second["messages"][1:])
    assert earlier == {"1": DOCUMENT[0], "2": DOCUMENT[1]} and translated == right(earlier)
    assert now == {"1": DOCUMENT[3], "2": DOCUMENT[4]}


@pytest.mark.parametrize("way", HARMLESS)
def test_answers_that_can_be_used(server, way):
    server.misbehave = lambda request, lines: HARMLESS[way](lines)
    assert system(server).translate([DOCUMENT]) == [expected(DOCUMENT)] and len(server.requests) == 1


@pytest.mark.parametrize("way", MISBEHAVIOURS)
def test_misbehaviour(server, way):
    """Once: all is translated. For several lines: halves are. Always: an error, and no translation."""
    if way == "another language":
        pytest.importorskip("py3langid", reason="py3langid is not installed")
    documents, bad = [DOCUMENT, DOCUMENT[:1]], MISBEHAVIOURS[way]
    server.misbehave = lambda request, lines: bad(lines) if len(server.requests) == 1 else None
    assert system(server).translate([DOCUMENT]) == [expected(DOCUMENT)] and len(server.requests) > 1
    of_transport = server.requests[0][2]["messages"] == server.requests[1][2]["messages"]
    if not of_transport:
        server.misbehave = lambda request, lines: bad(lines) if len(lines) > 1 else None
        lines, repairs = system(server).translate_with_repairs(documents)
        assert lines == list(map(expected, documents)) and {repair["kind"] for repair in repairs[0]} == {"retry"}
    server.misbehave = lambda request, lines: bad(lines)
    with pytest.raises(OSError if of_transport else ValueError, match="127.0.0.1|document 0, sentence 0: "):
        system(server, timeout=0.1).translate(documents[1:] if way == "slow" else documents)


def test_no_schema_and_no_key(server):
    """A server without schemas is asked without one; one that wants a key is not asked again."""
    server.misbehave = lambda request, lines: (400, "unknown field") if "response_format" in request else None
    assert system(server).translate([DOCUMENT]) == [expected(DOCUMENT)] and len(server.requests) == 2
    server.misbehave = lambda request, lines: (401, "no key")
    refused("put the key into the variable DOCMT_API_KEY", system(server).translate, [DOCUMENT], error=OSError)
    assert len(server.requests) == 3 and server.requests[-1][1]["Authorization"] is None
    server.misbehave = lambda request, lines: (404, "no model 'default'")
    refused("'default'.*mostly ends in /v1, and --model", system(server).translate, [DOCUMENT], error=OSError)


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("give --source-lang and --target-lang", {"source_lang": None}),
        ("expected formal or informal", {"formality": "x"}),
    ],
)
def test_bad_options(message, options):
    refused(message, EndpointSystem, "http://localhost/v1", **LANGUAGES | options)
