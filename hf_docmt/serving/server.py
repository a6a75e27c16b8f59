"""The server as a process: it listens, and stops in good order."""

import uvicorn

from hf_docmt.options import ServerLimits
from hf_docmt.serving.application import Application
from hf_docmt.serving.served_model import ServedModel
from hf_docmt.systems import DocMTSystem, System
from hf_docmt.translation.group_translation import TranslationSettings, load_translating_system


class Server(uvicorn.Server):
    """On SIGTERM and SIGINT what runs is finished, and what waits is answered with 503."""

    model: ServedModel

    def handle_exit(self, sig, frame):
        self.model.batches.is_stopping = True
        super().handle_exit(sig, frame)


def served_system(settings: TranslationSettings) -> System:
    """The system of the settings, which translates as a job with them does. ValueError: it cannot be loaded."""
    if settings.engine == "system":
        return load_translating_system(settings)
    codes = {name: settings.search[name] for name in ("source_lang", "target_lang") if name in settings.search}
    system = load_translating_system(settings.__class__(**vars(settings) | {"search": codes}))
    assert isinstance(system, DocMTSystem)
    system.strategy = settings.strategy
    system.generate_kwargs = {name: value for name, value in settings.search.items() if name not in codes}
    return system


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
