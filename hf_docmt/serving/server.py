"""The server as a process: it listens, and stops in good order."""

import uvicorn

from hf_docmt.options import ServerLimits
from hf_docmt.serving.application import Application
from hf_docmt.serving.served_model import ServedModel
from hf_docmt.systems import System


class Server(uvicorn.Server):
    """On SIGTERM and SIGINT what runs is finished, and what waits is answered with 503."""

    model: ServedModel

    def handle_exit(self, sig, frame):
        self.model.batches.is_stopping = True
        super().handle_exit(sig, frame)


def make_server(
    system: System, languages: tuple[str | None, str | None], limits: ServerLimits, host: str, port: int
) -> Server:
    """A server that has not begun; `run` of uvicorn's class begins. ValueError: settings that do not fit the system."""
    system.translate_with_repairs([])  # checks the settings
    model = ServedModel(system, languages, limits)
    seconds = int(limits.timeout) + 5
    config = uvicorn.Config(Application(model), host, port, timeout_graceful_shutdown=seconds, access_log=False)
    server = Server(config)
    server.model = model
    return server
