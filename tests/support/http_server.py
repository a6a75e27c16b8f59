"""A server in a thread of the tests, and calls of it."""

import json
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlencode

from hf_docmt.options import ServerLimits

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Client:
    """Calls of one server: status and answer."""

    def __init__(self, port):
        self.port, self.url = port, f"http://127.0.0.1:{port}"

    def call(self, way, path, body=None, headers=None):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(way, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def get(self, path):
        status, data, headers = self.call("GET", path)
        return status, json.loads(data) if headers["content-type"] == "application/json" else data

    def post(self, path, fields, headers=None):
        """Fields as JSON, or bytes as they are."""
        body = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
        status, data, _ = self.call("POST", path, body, JSON | (headers or {}))
        return status, json.loads(data)

    def form(self, path, fields):
        status, data, _ = self.call("POST", path, urlencode(fields, doseq=True), FORM)
        return status, json.loads(data)

    def upload(self, name, data, path="/translate_file", **fields):
        fields = {"source": "en", "target": "de"} | fields
        lines = [f'--x\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
                 for key, value in fields.items()]  # fmt: skip
        file = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
        body = b"".join(lines) + file + data + b"\r\n--x--\r\n"
        status, answer, _ = self.call("POST", path, body, {"Content-Type": "multipart/form-data; boundary=x"})
        return status, json.loads(answer)


@contextmanager
def running(system, languages=(None, None), **limits):
    """The client of a server that runs meanwhile; its `model` is that of the server."""
    from hf_docmt.serving.server import make_server

    server = make_server(system, languages, ServerLimits(**limits), "127.0.0.1", 0)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    client = Client(server.servers[0].sockets[0].getsockname()[1])
    client.model = server.model
    try:
        yield client
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
