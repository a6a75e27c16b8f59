"""Many clients at once: batches, a bounded queue, limits of time, failures of one, an end in the middle."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.http_server import Client, running
from support.tiny_models import WORDS, word_tokenizer, write_model

from hf_docmt.serving import batches
from hf_docmt.systems import DocMTSystem

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
