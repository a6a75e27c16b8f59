"""Many clients at once: batches, a bounded queue, limits of time, failures of one, an end in the middle."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from support.http_server import Client, running
from support.office_files import zipped
from support.tiny_models import WORDS, word_tokenizer, write_model

from hf_docmt.options import ServerLimits
from hf_docmt.serving import batches
from hf_docmt.serving.application import Application
from hf_docmt.serving.batches import Translated
from hf_docmt.serving.served_model import ServedModel, giving_way
from hf_docmt.serving.texts import size_of
from hf_docmt.systems import DocMTSystem
from hf_docmt.systems.items import SuiteItem

GOOD = {"q": "w7 w8", "source": "en", "target": "de"}


class Gate(DocMTSystem):
    """Waits to be let in, and fails for documents with `w29`."""

    def translate_with_repairs(self, documents):
        if documents:
            self.sizes.append(len(documents))
            self.reached.set()
            assert self.opened.wait(30)
        if any("w29" in sentence for document in documents for sentence in document):
            raise RuntimeError("no such word")
        return super().translate_with_repairs(documents)


@pytest.fixture
def gate(system):
    gate = Gate(system.model, word_tokenizer(), strategy="sequential")
    gate.opened, gate.reached, gate.sizes = threading.Event(), threading.Event(), []
    yield gate
    gate.opened.set()


def waiting(client, size):
    """Wait until so many sentences wait."""
    end = time.monotonic() + 20
    while client.model.batches.size != size:
        assert time.monotonic() < end, client.model.batches.size
        time.sleep(0.01)


def test_two_hundred_clients(client, system):
    """Every one gets the translations of its own document, in order, and they share batches."""
    documents = [[WORDS[number % 24], f"{WORDS[number % 7]} {WORDS[number // 10]}"] for number in range(200)]
    expected = system.translate(documents)
    before = client.model.batches.batches
    with ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(lambda document: client.post("/translate", GOOD | {"q": document}), documents))
    assert answers == [(200, {"translatedText": translation}) for translation in expected]
    assert client.model.batches.batches - before < 150
    status, text = client.get("/metrics")
    assert status == 200 and b'docmt_requests_total{path="/translate",status="200"} ' in text
    lines = [line.rpartition(" ")[::2] for line in text.decode().splitlines() if not line.startswith("#")]
    assert dict(lines)["docmt_waiting_sentences"] == "0" and all(float(value) >= 0 for _, value in lines)


def test_clients_that_had_their_answers_together_share_the_next_batch(monkeypatch):
    """Eight of them, each of which asks again when it has its answer; one alone does not wait for others."""
    monkeypatch.setattr(batches, "PAUSE", 0.5)
    monkeypatch.setattr(batches, "LONGEST_PAUSE", 20.0)
    sizes, search = [], batches.Query("en", "de")

    def translate(documents, search):
        sizes.append(len(documents))
        return documents

    queue = batches.Batches(translate, 100)

    def ask(times):
        for _ in range(times):
            assert queue.submit(["w7"], search, {}).result(30) == (["w7"], {})

    start = time.monotonic()
    ask(5)
    assert sizes == [1] * 5 and time.monotonic() - start < 0.5
    sizes.clear()
    queue.is_shared = True
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, [4] * 8))
    assert sizes == [8] * 4


def test_a_full_queue(gate):
    """What does not fit is sent away at once; what waits is translated together."""
    with running(gate, waiting_sentences=4) as client, ThreadPoolExecutor(8) as pool:
        first = pool.submit(client.post, "/translate", GOOD)
        assert gate.reached.wait(20)
        rest = [pool.submit(client.post, "/translate", GOOD | {"q": [word, "w9"]}) for word in ("w10", "w11")]
        waiting(client, 4)
        status, data, headers = client.call("POST", "/translate?source=en&target=de&q=w7")
        assert status == 503 and headers["retry-after"] == "2" and b"too much waits" in data
        assert client.get("/health")[0] == 200  # answered while the model computes
        gate.opened.set()
        assert [future.result()[0] for future in (first, *rest)] == [200] * 3 and gate.sizes == [1, 2]


def test_too_late(gate):
    """A request is given up after its time; one that waits is not translated any more."""
    with running(gate, timeout=0.5) as client, ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(client.post, "/translate", GOOD)]
        assert gate.reached.wait(20)
        answers.append(pool.submit(client.post, "/translate", GOOD))
        for answer in answers:
            status, fields = answer.result()
            assert status == 504 and "not translated within 0.5 seconds" in fields["error"]
        gate.opened.set()
        assert client.post("/translate", GOOD)[0] == 200 and gate.sizes == [1, 1]


def test_one_failure(gate):
    """Documents that share a batch with one that fails are translated."""
    with running(gate) as client, ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(client.post, "/translate", GOOD)]
        assert gate.reached.wait(20)
        answers += [pool.submit(client.post, "/translate", GOOD | {"q": word}) for word in ("w7", "w29", "w8")]
        waiting(client, 3)
        gate.opened.set()
        assert [answer.result()[0] for answer in answers] == [200, 200, 500, 200]
        assert answers[2].result()[1] == {"error": "the request failed; the server's log says why"}
        assert gate.sizes == [1, 3, 1, 1, 1]
        assert client.post("/translate", GOOD | {"q": "w29"})[0] == 500 and gate.sizes[5:] == [1]


def test_turns_of_clients():
    """Four long documents and ten of one client give way to single sentences, which do not wait for their end."""
    order, search, queue = [], batches.Query("en", "de"), None

    def translate(documents, search):
        for _ in range(len(documents[0][0])):
            order.append(documents[0][0][0])
            time.sleep(0.02)
            queue.give_way()
        return [Translated(document, [], {}) for document, _ in documents]

    queue = batches.Batches(translate, 10_000)

    def ask(client, word, size):
        batches.CLIENT.set(client)
        start = time.monotonic()
        queue.submit([word] * size, search, {}).result(60)
        return time.monotonic() - start

    with ThreadPoolExecutor(60) as pool:
        long = [pool.submit(ask, f"long{n % 4}", f"long{n}", 200) for n in range(8)]
        while len(set(order)) < 4:  # each of the four clients has begun one
            time.sleep(0.01)
        singles = [pool.submit(ask, f"single{n}", "single", 1) for n in range(46)]
        assert max(single.result() for single in singles) < 2 and not any(each.done() for each in long)
        [each.result() for each in long]
    assert {*order[: len(order) // 3]} - {"single"} == {"long0", "long1", "long2", "long3"}


def test_work_of_clients_that_left_is_dropped(gate):
    """It leaves the queue at once."""
    with running(gate) as client, ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.post, "/translate", GOOD)
        assert gate.reached.wait(20)
        body = b'{"q": ["w7", "w8"], "source": "en", "target": "de"}'
        head = f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        with socket.create_connection(("127.0.0.1", client.port)) as other:
            other.sendall(head.encode() + b"\r\n\r\n" + body)
            waiting(client, 2)
        waiting(client, 0)
        gate.opened.set()
        assert first.result()[0] == 200 and gate.sizes == [1]
        assert b'status="499"} 1\n' in client.get("/metrics")[1]


def test_a_search_ends_with_its_request(system):
    """One that would write for minutes leaves the model to the next client."""
    endless = DocMTSystem(system.model, word_tokenizer(), max_new_tokens=10**6, min_new_tokens=10**6)
    with running(endless, timeout=1) as client:
        assert client.post("/translate", GOOD)[0] == 504
        answer = client.post("/translate", GOOD | {"q": " "})
        assert answer[0] == 200 and not client.model.batches.open


def test_long_sentences(system):
    long = GOOD | {"q": "w7 " * 12}
    with running(system, sentence_tokens=10) as client:
        status, answer = client.post("/translate", long)
        assert status == 400 and "sentence 0 has 12 tokens, expected at most 10" in answer["error"]
    with running(system, sentence_tokens=10, cut_sentences=True) as client:
        assert client.post("/translate", long)[0] == 200


def test_calls_in_a_session_wait_as_others_do(gate):
    fields = GOOD | {"session": "new"}
    with running(gate, timeout=2, waiting_sentences=3) as client, ThreadPoolExecutor(8) as pool:
        gate.opened.set()
        fields["session"] = client.post("/translate", fields)[1]["session"]
        gate.opened.clear()
        answers = [pool.submit(client.post, "/translate", fields) for _ in range(8)]
        assert sorted(answer.result()[0] for answer in answers) == [503] * 5 + [504] * 3


def test_large_texts_are_read_by_a_process_in_which_clients_take_turns(system):
    served, order = Application(ServedModel(system, ("en", "de"), ServerLimits())), []

    async def read(client):
        batches.CLIENT.set(client)
        assert await served.read(batches.SMALL_CHARACTERS + 1, os.getpid) != os.getpid()
        order.append(client)

    async def all_read():
        await asyncio.gather(*map(read, "aaab"))

    asyncio.run(all_read())
    assert order in (list("abaa"), list("baaa"))
    assert size_of(zipped({"a": "b"})) > batches.SMALL_CHARACTERS  # it may be large when unpacked


def test_what_gives_way(system):
    """Each sign of a sentence, and each batch that is scored for terms."""
    ways = []
    polite = giving_way(system, lambda: ways.append(1))
    polite.finder("".join(map(chr, range(0x4E00, 0x4E00 + 50))))
    assert len(ways) == 50
    item = SuiteItem("", ("w6 w7",), (), ("w8", "w9"), 0, "", None)
    polite.token_log_probabilities([item])
    polite.next_texts([item], 2)
    polite.word_fits("w6", "w7")
    assert len(ways) == 53


def test_half_sent_requests(system):
    """Headers and bodies that do not arrive, and connections of which a client has enough."""
    half = b"POST /translate HTTP/1.1\r\nHost: x\r\n"
    body = b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    with running(system, receive_timeout=1, client_connections=3) as client, ExitStack() as stack:
        connections = [socket.create_connection(("127.0.0.1", client.port), 10) for _ in range(4)]
        *served, refused = map(stack.enter_context, connections)
        for connection, sent in zip(served, (b"", half, half + body)):
            connection.sendall(sent)
        answers = [received(connection) for connection in (*served, refused)]
        assert answers[:2] == [b"", b""] and answers[2].startswith(b"HTTP/1.1 408") and answers[3] == b""
        assert client.get("/health")[0] == 200


def received(connection):
    try:
        return connection.recv(1000)
    except ConnectionResetError:
        return b""


def started(folder, port, log):
    command = [sys.executable, "-m", "hf_docmt", "serve", folder, "--port", port, "--device", "cpu"]
    process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, env=os.environ)
    client = Client(port)
    for _ in range(600):
        try:
            assert client.get("/health") == (200, {"status": "ok"})
            return process, client
        except OSError:
            assert process.poll() is None
            time.sleep(0.1)
    raise TimeoutError


@pytest.mark.slow
def test_stopped_in_the_middle(tmp_path):
    """SIGTERM: each request is answered or told to come again, none is cut off; then the server starts again."""
    folder = write_model(tmp_path / "model", max_new_tokens=40)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(tmp_path / "log", "w") as log, ThreadPoolExecutor(24) as pool:
        process, client = started(folder, port, log)
        documents = [[f"w{7 + number % 20}"] * 60 for number in range(24)]
        answers = [pool.submit(client.post, "/translate", GOOD | {"q": document}) for document in documents]
        while b"docmt_batches_total 0\n" in client.get("/metrics")[1]:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        statuses = [answer.result()[0] for answer in answers]
        assert set(statuses) == {200, 503}
        assert process.wait(30) in (0, -signal.SIGTERM)
        process, client = started(folder, port, log)
        assert client.post("/translate", GOOD)[0] == 200
        process.send_signal(signal.SIGINT)
        process.wait(30)
    assert "Traceback" not in (tmp_path / "log").read_text().replace("KeyboardInterrupt", "")
