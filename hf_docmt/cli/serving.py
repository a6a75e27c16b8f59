"""`docmt serve`: a model behind HTTP."""

from __future__ import annotations

from dataclasses import dataclass

from hf_docmt.cli.loading import hide_progress_bars
from hf_docmt.cli.options import command
from hf_docmt.cli.translation_settings import JobOptions, SystemOptions, translation_settings
from hf_docmt.messages import install_command
from hf_docmt.options import MODEL, Computation, DocumentSearch, ModelLanguages, ServerLimits, option


@dataclass(kw_only=True)
class ServerOptions(Computation):
    """Where the server listens, and how its model computes."""

    host: str = option("127.0.0.1", "Address to listen at; 0.0.0.0: of all networks.")
    port: int = option(5000, "Port to listen at.", least=0)


@command
def serve(
    *,
    model: str = MODEL,
    server: ServerOptions,
    limits: ServerLimits,
    search: DocumentSearch,
    languages: ModelLanguages,
    system: SystemOptions,
) -> None:
    """Answer requests for translations with HTTP, as LibreTranslate does; documents and sessions with context, too.

    curl localhost:5000/translate -d q="She sleeps." -d source=en -d target=de

    HF_DOCMT_API_KEYS holds the keys that are let in, with commas between them; without it all are.
    """
    try:
        from hf_docmt.serving.server import make_server
    except ImportError as error:
        raise ValueError(f"docmt serve needs starlette, uvicorn and more: {install_command('serve')}") from error
    hide_progress_bars()
    options = {name: value for name, value in vars(server).items() if name not in ("host", "port")}
    settings = translation_settings(model, languages, search, JobOptions(**options), system)
    source_lang = None if settings.source_lang == "source" else settings.source_lang
    make_server(settings.load(), (source_lang, settings.target_lang), limits, server.host, server.port).run()
