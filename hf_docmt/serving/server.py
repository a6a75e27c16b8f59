"""The server as a process: it listens, and stops in good order."""

import asyncio
import gc
import sys
from collections import Counter

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from hf_docmt.options import ServerLimits
from hf_docmt.serving.application import Application
from hf_docmt.serving.served_model import ServedModel
from hf_docmt.systems import System

COLLECTIONS = 2000, 10, 50  # thresholds; a collection of all objects stops every thread for 40 ms
SWITCH_INTERVAL = 0.0005  # seconds after which a thread that reads a file lets the event loop and the search go on


class Server(uvicorn.Server):
    """On SIGTERM and SIGINT what runs is finished, and what waits is answered with 503."""

    model: ServedModel

    def handle_exit(self, sig, frame):
        self.model.batches.is_stopping = True
        super().handle_exit(sig, frame)


class Connection(H11Protocol):
    """A connection of a client, whose number is limited; closed if the headers of a request do not arrive in time."""

    limits: ServerLimits  # of the class that `make_server` makes, as is the next one
    of_clients: Counter[str]
    idle_since: float | None = None  # no request is answered or read

    def connection_made(self, transport):
        super().connection_made(transport)
        self.host = self.client[0] if self.client else ""
        self.of_clients[self.host] += 1
        if self.of_clients[self.host] > self.limits.client_connections:
            transport.abort()
        self._close_if_late()

    def connection_lost(self, exc):
        self.check.cancel()
        self.of_clients[self.host] -= 1
        self.of_clients += Counter()  # drops those that are 0
        super().connection_lost(exc)

    def _close_if_late(self) -> None:
        loop, seconds = asyncio.get_running_loop(), self.limits.receive_timeout
        is_idle = self.cycle is None or self.cycle.response_complete
        self.idle_since = (self.idle_since or loop.time()) if is_idle else None
        if is_idle and loop.time() - self.idle_since >= seconds:
            self.transport.abort()
        self.check = loop.call_later(seconds / 2, self._close_if_late)


def make_server(
    system: System, languages: tuple[str | None, str | None], limits: ServerLimits, host: str, port: int
) -> Server:
    """A server that has not begun; `run` of uvicorn's class begins. ValueError: settings that do not fit the system."""
    system.translate_with_repairs([])  # checks the settings
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.freeze()  # collections of all objects of the model would stop every thread
    gc.set_threshold(*COLLECTIONS)
    model = ServedModel(system, languages, limits)
    seconds = int(limits.timeout) + 5
    connection = type("Connection", (Connection,), {"limits": limits, "of_clients": Counter()})
    config = uvicorn.Config(
        Application(model),
        host,
        port,
        http=connection,
        limit_concurrency=limits.connections,
        timeout_graceful_shutdown=seconds,
        access_log=False,
    )
    server = Server(config)
    server.model = model
    return server
