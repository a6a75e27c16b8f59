#!/usr/bin/env python
"""Load a server with hostile requests beside honest clients: latency, memory, wrong answers.

docmt serve MODEL --port 5055 &
python tests/support/hostile_load.py 5055 --pid $! --seconds 180
"""

import argparse
import io
import json
import socket
import threading
import time
import zipfile
from collections import Counter
from http.client import HTTPConnection, HTTPException

HOSTILE = "127.0.0.66"  # the address of those clients
SENTENCES = [f"The {thing} is {kind}." for thing in ("house", "dog", "car", "tree") for kind in ("old", "red", "small")]


def post(arguments, fields, path="/translate", address="127.0.0.1", headers=None, leave_after=None):
    """Status and answer; after some seconds of `leave_after` the client is gone."""
    connection = HTTPConnection("127.0.0.1", arguments.port, timeout=leave_after or 150, source_address=(address, 0))
    body = fields if isinstance(fields, bytes) else json.dumps(fields)
    try:
        connection.request("POST", path, body, headers or {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"{}")
    except (OSError, HTTPException, ValueError):
        return 0, {}
    finally:
        connection.close()


def half_sent(arguments):
    """Headers and bodies that never end."""
    for end in (b"", b"Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{") * 20:
        with socket.create_connection(("127.0.0.1", arguments.port), 5, (HOSTILE, 0)) as connection:
            connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\n" + end)
            time.sleep(0.2)
    return 0, {}


def upload(data, name):
    head = '--x\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n'
    fields = [head.format("source", "") + "en\r\n", head.format("target", "") + "TARGET\r\n"]
    return "".join(fields).encode() + head.format("file", f'; filename="{name}"').encode() + data + b"\r\n--x--\r\n"


def bomb(text):
    with zipfile.ZipFile(file := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", text)
    return file.getvalue()


TEXTS = {
    "dots": "." * 99_000,
    "dots and blanks": ". " * 49_000,
    "one word": "a" * 99_000,
    "addresses": "http://" * 14_000,
    "brackets": "({[<" * 24_000,
    "signs": "".join(map(chr, range(0x4E00, 0x4E00 + 20_000))),
    "placeholders": "{{%s}} $x$ `a` " * 6_000,
    "long document": "\n".join(f"{text} Number {n}." for n, text in enumerate(SENTENCES * 80)),
    "lines": "The house is old.\n" * 1_990,
}
FILES = {"a.docx": bomb("<w:p>" * 20_000_000), "a.html": b"<b>x" * 90_000, "a.txt": b"\n" * 4_000_000}
FORM = {"Content-Type": "multipart/form-data; boundary=x"}


def attacks(arguments, target):
    """Calls by name, each of which is made again and again."""
    basis = {"source": "en", "target": target}
    asked = {name: basis | {"q": text} for name, text in TEXTS.items()}
    asked |= {"html": basis | {"q": "<b>" * 30_000, "format": "html"}, "beams": asked["lines"] | {"alternatives": 15}}
    calls = {name: lambda fields=fields: post(arguments, fields, address=HOSTILE) for name, fields in asked.items()}
    calls["left"] = lambda: post(arguments, asked["lines"], address=HOSTILE, leave_after=0.5)
    calls["nested"] = lambda: post(arguments, b"[" * 90_000, address=HOSTILE)
    calls["half sent"] = lambda: half_sent(arguments)
    for name, data in FILES.items():
        body = upload(data, name).replace(b"TARGET", target.encode())
        calls[name] = lambda body=body: post(arguments, body, "/translate_file", HOSTILE, FORM)
    return calls


def percentile(values, share=0.99):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument(
        "--pid", type=int, help="process of the server, whose memory is measured, and that of its children"
    )
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--pause", type=float, default=5.0, help="seconds between the sentences of a client")
    parser.add_argument("--target", default="pt")
    parser.add_argument("--no-attacks", action="store_true")
    arguments = parser.parse_args()
    basis = {"source": "en", "target": arguments.target}
    expected = {text: post(arguments, basis | {"q": text})[1]["translatedText"] for text in SENTENCES}
    end, health, honest, wrong = time.monotonic() + arguments.seconds, [], [], []
    statuses, memory = Counter(), []

    def again(call, name, pause):
        while time.monotonic() < end:
            start = time.monotonic()
            try:
                status = call()[0]
            except OSError:
                status = 0
            statuses[name, status] += 1
            time.sleep(max(0.0, pause - (time.monotonic() - start)) if pause else 0.05)

    def ask(number):
        text = SENTENCES[number % len(SENTENCES)]
        start = time.monotonic()
        status, answer = post(arguments, basis | {"q": text})
        honest.append(time.monotonic() - start)
        if status == 200 and answer["translatedText"] != expected[text]:
            wrong.append((text, answer["translatedText"]))
        return status, answer

    def look():
        start = time.monotonic()
        connection = HTTPConnection("127.0.0.1", arguments.port, timeout=60)
        connection.request("GET", "/health")
        status = connection.getresponse().status
        connection.close()
        health.append(time.monotonic() - start)
        if arguments.pid:
            processes = [arguments.pid, *open(f"/proc/{arguments.pid}/task/{arguments.pid}/children").read().split()]
            pages = (int(open(f"/proc/{process}/statm").read().split()[1]) for process in processes)
            memory.append(sum(pages) * 4096 // 2**20)
        return status, {}

    calls = [] if arguments.no_attacks else attacks(arguments, arguments.target).items()
    todo = [(call, name, 0) for name, call in calls] + [(look, "health", 0.2)]
    todo += [(lambda number=number: ask(number), "honest", arguments.pause) for number in range(arguments.clients)]
    threads = [threading.Thread(target=again, args=each) for each in todo]
    for thread in threads:
        thread.start()
        time.sleep(arguments.pause / arguments.clients)  # so that they do not ask together
    for thread in threads:
        thread.join()
    rows = [
        {"case": f"{name}, {unit}", "ours": round(value, 3), "peer": None, "ratio": None}
        for name, values, unit in (("health", health, "s"), ("honest sentence", honest, "s"), ("memory", memory, "MB"))
        for name, value in ((f"{name} p50", percentile(values, 0.5)), (f"{name} p99", percentile(values)))
    ]
    print(json.dumps({"rows": rows, "wrong": wrong[:5], "count of wrong": len(wrong), "honest": len(honest)}))
    print("\n".join(f"{name}: {status or 'no answer'} x {count}" for (name, status), count in sorted(statuses.items())))


if __name__ == "__main__":
    main()
