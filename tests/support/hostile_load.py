#!/usr/bin/env python
"""Load a server with hostile requests beside honest clients: latency, memory, wrong answers.

docmt serve MODEL --port 5055 &
python tests/support/hostile_load.py 5055 --pid $! --seconds 180

Hostile clients, honest ones and the one that asks for /health are three processes. Each honest client has an address
and a sentence of its own.
"""

import argparse
import io
import json
import socket
import threading
import time
import zipfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from http.client import HTTPConnection, HTTPException

THINGS = ("house", "dog", "car", "tree", "book", "river", "city", "door", "song", "garden")
SENTENCES = [f"The {thing} is {kind}." for kind in ("old", "red", "small", "new", "beautiful") for thing in THINGS]
JSON, FORM = {"Content-Type": "application/json"}, {"Content-Type": "multipart/form-data; boundary=x"}


def post(arguments, fields, path="/translate", address="127.0.0.66", headers=JSON, leave_after=150):
    """Status and answer; the client is gone after some seconds."""
    connection = HTTPConnection("127.0.0.1", arguments.port, timeout=leave_after, source_address=(address, 0))
    try:
        connection.request("POST", path, fields if isinstance(fields, bytes) else json.dumps(fields), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"{}")
    except (OSError, HTTPException, ValueError):
        return 0, {}
    finally:
        connection.close()


def half_sent(arguments):
    """Headers and bodies that never end."""
    for end in (b"", b"Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{") * 20:
        with socket.create_connection(("127.0.0.1", arguments.port), 5) as connection:
            connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\n" + end)
            time.sleep(0.2)
    return 0, {}


def upload(fields, name, data):
    head = '--x\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n'
    texts = "".join(f"{head.format(key, '')}{value}\r\n" for key, value in fields.items())
    return (texts + head.format("file", f'; filename="{name}"')).encode() + data + b"\r\n--x--\r\n"


def bomb(text):
    with zipfile.ZipFile(file := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", text)
    return file.getvalue()


LINES = "The house is old.\n" * 1_990
REQUESTS = {
    "dots": {"q": "." * 99_000},
    "dots and blanks": {"q": ". " * 49_000},
    "one word": {"q": "a" * 99_000},
    "addresses": {"q": "http://" * 14_000},
    "brackets": {"q": "({[<" * 24_000},
    "signs": {"q": "".join(map(chr, range(0x4E00, 0x4E00 + 20_000)))},
    "placeholders": {"q": "{{%s}} $x$ `a` " * 6_000},
    "quotation marks": {"q": "\"'“”«»" * 16_000},
    "long document": {"q": "\n".join(f"{text} Number {n}." for n, text in enumerate(SENTENCES * 19))},
    "html": {"q": "<b>" * 30_000, "format": "html"},
    "beams": {"q": LINES, "alternatives": 15},
    "session": {"q": LINES, "session": "new"},
}
FILES = {"a.docx": bomb("<w:p>" * 20_000_000), "a.html": b"<b>x" * 90_000, "a.txt": b"\n" * 4_000_000}
FILES["never fetched.txt"] = b"The house is old.\n" * 20


def attacks(arguments, basis):
    """Calls by name, each of which is made again and again."""
    calls = {name: partial(post, arguments, basis | fields) for name, fields in REQUESTS.items()}
    lines = basis | {"q": LINES}
    calls |= {f"lines of client {n}": partial(post, arguments, lines, address=f"127.0.0.{n}") for n in range(67, 71)}
    calls["left"] = partial(post, arguments, lines, leave_after=0.5)
    calls["nested"] = partial(post, arguments, b"[" * 90_000)
    calls["host"] = partial(post, arguments, {}, headers=JSON | {"Host": "evil" * 5_000})
    calls["half sent"] = partial(half_sent, arguments)
    for name, data in FILES.items():
        calls[name] = partial(post, arguments, upload(basis, name, data), "/translate_file", headers=FORM)
    return calls


def repeat(calls, seconds, pause, rest=0.05):
    """Statuses and seconds of calls, each made every `pause` seconds in a thread, or `rest` after its end."""
    end, statuses, times = time.monotonic() + seconds, Counter(), []

    def again(name, call):
        while (start := time.monotonic()) < end:
            statuses[name, call()[0]] += 1
            times.append(taken := time.monotonic() - start)
            time.sleep(max(rest, pause - taken))

    threads = [threading.Thread(target=again, args=each) for each in calls.items()]
    for thread in threads:
        thread.start()
        time.sleep(pause / len(threads))  # so that they do not ask together
    for thread in threads:
        thread.join()
    return statuses, times


def honest(arguments, basis, expected):
    """Statuses, seconds of each sentence, wrong answers and whether they are those of another client."""
    wrong = []

    def ask(number):
        text = SENTENCES[number % len(SENTENCES)]
        status, answer = post(arguments, basis | {"q": text}, address=f"127.0.1.{number + 1}")
        if status == 200 and (found := answer["translatedText"]) != expected[text]:
            wrong.append((text, found, found in expected.values()))
        return status, answer

    return *repeat({number: partial(ask, number) for number in range(50)}, arguments.seconds, arguments.pause), wrong


def health(arguments):
    """Statuses, seconds of each call, megabytes of the server's processes at each."""
    memory = []

    def look():
        connection = HTTPConnection("127.0.0.1", arguments.port, timeout=60)
        connection.request("GET", "/health")
        status = connection.getresponse().status
        connection.close()
        memory.append(megabytes(arguments.pid) if arguments.pid else 0)
        return status, {}

    return *repeat({"health": look}, arguments.seconds, 0.2), memory


def megabytes(pid):
    processes = [pid, *open(f"/proc/{pid}/task/{pid}/children").read().split()]
    return sum(int(open(f"/proc/{process}/statm").read().split()[1]) for process in processes) * 4096 // 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--pid", type=int, help="process of the server; its memory is that of its children, too")
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--pause", type=float, default=5.0, help="seconds between the sentences of a client")
    parser.add_argument("--rest", type=float, default=0.25, help="seconds after a call of a hostile client")
    parser.add_argument("--target", default="pt")
    arguments = parser.parse_args()
    basis = {"source": "en", "target": arguments.target}
    expected = {text: post(arguments, basis | {"q": text})[1]["translatedText"] for text in SENTENCES}
    with ProcessPoolExecutor(3) as pool:
        hostile = pool.submit(repeat, attacks(arguments, basis), arguments.seconds, 0.0, arguments.rest)
        answers = pool.submit(honest, arguments, basis, expected)
        statuses, times, memory = pool.submit(health, arguments).result()
    of_honest, honest_times, wrong = answers.result()
    for name, values in ((f"/health, {len(times)} calls", times), (f"sentences, {len(honest_times)}", honest_times)):
        values.sort()
        print(f"{name}: p50 {values[len(values) // 2]:.3f} s, p99 {values[len(values) * 99 // 100]:.3f} s")
    sixth = max(len(memory) // 6, 1)
    print("most memory of each sixth, MB:", [max(memory[n : n + sixth]) for n in range(0, len(memory), sixth)])
    print(f"wrong answers: {len(wrong)}, of another client: {sum(is_other for *_, is_other in wrong)}", wrong[:5])
    print("sentences by status:", dict(Counter(status for (_, status), n in of_honest.items() for _ in range(n))))
    for (name, status), count in sorted((statuses + hostile.result()[0]).items()):
        print(f"{name}: {status or 'no answer'} x {count}")


if __name__ == "__main__":
    main()
