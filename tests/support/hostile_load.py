#!/usr/bin/env python
"""Load a server with hostile requests beside honest clients: latency, memory, wrong answers.

docmt serve MODEL --port 5055 &
python tests/support/hostile_load.py 5055 --pid $! --seconds 180

The hostile clients, the honest ones and the one that asks for /health are processes of their own.
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

HOSTILE = "127.0.0.{}"  # the addresses of those clients; the honest ones have 127.0.1.1 to 127.0.1.50
FIRST = HOSTILE.format(66)
THINGS, KINDS = (
    ("house", "dog", "car", "tree", "book", "river", "city", "door", "song", "garden"),
    ("old", "red", "small"),
)
SENTENCES = [f"The {thing} is {kind}." for kind in (*KINDS, "new", "beautiful") for thing in THINGS]  # one of a client
BATCH = SENTENCES[:12]


def post(arguments, fields, path="/translate", address=FIRST, headers=None, leave_after=None):
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
        with socket.create_connection(("127.0.0.1", arguments.port), 5, (FIRST, 0)) as connection:
            connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\n" + end)
            time.sleep(0.2)
    return 0, {}


def calls_of_a_session(arguments, basis):
    """A long call in a session, and ten that wait for it."""
    session = post(arguments, basis | {"q": SENTENCES[0], "session": "new"})[1].get("session", "new")
    fields = basis | {"q": SENTENCES * 20, "session": session}
    threads = [threading.Thread(target=post, args=(arguments, fields)) for _ in range(10)]
    for thread in threads:
        thread.start()
    answer = post(arguments, fields)
    for thread in threads:
        thread.join()
    return answer


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
    "quotation marks": "\"'“”«»" * 16_000,
    "long document": "\n".join(f"{text} Number {n}." for n, text in enumerate(BATCH * 80)),
    "lines": "The house is old.\n" * 1_990,
}
FILES = {"a.docx": bomb("<w:p>" * 20_000_000), "a.html": b"<b>x" * 90_000, "a.txt": b"\n" * 4_000_000}
FILES["never fetched.txt"] = b"The house is old.\n" * 20
FORM = {"Content-Type": "multipart/form-data; boundary=x"}


def attacks(arguments):
    """Calls by name, each of which is made again and again."""
    basis = {"source": "en", "target": arguments.target}
    asked = {name: basis | {"q": text} for name, text in TEXTS.items()}
    asked |= {"html": basis | {"q": "<b>" * 30_000, "format": "html"}, "beams": asked["lines"] | {"alternatives": 15}}
    calls = {name: partial(post, arguments, fields) for name, fields in asked.items()}
    for number in (67, 68, 69):
        calls[f"lines of client {number}"] = partial(post, arguments, asked["lines"], address=HOSTILE.format(number))
    calls["left"] = partial(post, arguments, asked["lines"], leave_after=0.5)
    calls["nested"] = partial(post, arguments, b"[" * 90_000)
    calls["host"] = partial(post, arguments, {}, headers={"Content-Type": "application/json", "Host": "evil" * 5_000})
    calls["session"] = partial(calls_of_a_session, arguments, basis)
    calls["half sent"] = partial(half_sent, arguments)
    for name, data in FILES.items():
        body = upload(data, name).replace(b"TARGET", arguments.target.encode())
        calls[name] = partial(post, arguments, body, "/translate_file", headers=FORM)
    return calls


def repeat(calls, seconds, pause, rest=0.05):
    """Statuses and seconds of calls, each made every `pause` seconds in a thread, or `rest` after its end."""
    end, statuses, times = time.monotonic() + seconds, Counter(), []

    def again(name, call):
        while (start := time.monotonic()) < end:
            statuses[name, call()[0]] += 1
            times.append(time.monotonic() - start)
            time.sleep(max(rest, pause - times[-1]))

    threads = [threading.Thread(target=again, args=each) for each in calls]
    for thread in threads:
        thread.start()
        time.sleep(pause / len(threads))  # so that they do not ask together
    for thread in threads:
        thread.join()
    return statuses, times


def hostile(arguments):
    calls = [] if arguments.no_attacks else attacks(arguments).items()
    return repeat(calls, arguments.seconds, 0.0, arguments.rest)[0]


def honest(arguments, expected):
    """Statuses, seconds of each sentence, wrong answers."""
    wrong, basis = [], {"source": "en", "target": arguments.target}

    def ask(number):
        text = SENTENCES[number % len(SENTENCES)]
        status, answer = post(arguments, basis | {"q": text}, address=f"127.0.1.{number + 1}")
        if status == 200 and answer["translatedText"] != expected[text]:
            wrong.append(
                (text, answer["translatedText"], "of another" * (answer["translatedText"] in expected.values()))
            )
        return status, answer

    calls = [("honest", partial(ask, number)) for number in range(arguments.clients)]
    return *repeat(calls, arguments.seconds, arguments.pause), wrong


def health(arguments):
    """Statuses, seconds of each call, megabytes of the server's processes at each."""
    memory = []

    def look():
        try:
            connection = HTTPConnection("127.0.0.1", arguments.port, timeout=60)
            connection.request("GET", "/health")
            status = connection.getresponse().status
        except OSError:
            status = 0
        finally:
            connection.close()
        memory.append(megabytes(arguments.pid) if arguments.pid else 0)
        return status, {}

    return *repeat([("health", look)], arguments.seconds, 0.2), memory


def megabytes(pid):
    processes = [pid, *open(f"/proc/{pid}/task/{pid}/children").read().split()]
    return sum(int(open(f"/proc/{process}/statm").read().split()[1]) for process in processes) * 4096 // 2**20


def percentile(values, share=0.99):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--pid", type=int, help="process of the server; its memory is that of its children, too")
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--pause", type=float, default=5.0, help="seconds between the sentences of a client")
    parser.add_argument("--rest", type=float, default=0.25, help="seconds after a call of a hostile client")
    parser.add_argument("--target", default="pt")
    parser.add_argument("--no-attacks", action="store_true")
    arguments = parser.parse_args()
    basis = {"source": "en", "target": arguments.target}
    expected = {text: post(arguments, basis | {"q": text})[1]["translatedText"] for text in SENTENCES}
    with ProcessPoolExecutor(3) as pool:
        of_hostile = pool.submit(hostile, arguments)
        of_honest = pool.submit(honest, arguments, expected)
        statuses, health_times, memory = pool.submit(health, arguments).result()
        honest_statuses, honest_times, wrong = of_honest.result()
        statuses += honest_statuses + of_hostile.result()
    rows = [
        {"case": f"{name}, {unit}", "ours": round(value, 3), "peer": None, "ratio": None}
        for name, values, unit in (
            ("health", health_times, "s"),
            ("honest sentence", honest_times, "s"),
            ("memory", memory, "MB"),
        )
        for name, value in ((f"{name} p50", percentile(values, 0.5)), (f"{name} p99", percentile(values)))
    ]
    tenths = [
        max(memory[start : start + max(1, len(memory) // 6)])
        for start in range(0, len(memory), max(1, len(memory) // 6))
    ]
    found = {"rows": rows, "wrong": wrong[:5], "count of wrong": len(wrong), "honest": len(honest_times)}
    print(
        json.dumps(found | {"different translations": len(set(expected.values())), "most memory of each sixth": tenths})
    )
    print("\n".join(f"{name}: {status or 'no answer'} x {count}" for (name, status), count in sorted(statuses.items())))


if __name__ == "__main__":
    main()
