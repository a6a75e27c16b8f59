"""The URLs of the server. LibreTranslate's answer as LibreTranslate does: https://docs.libretranslate.com"""

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote
from weakref import WeakValueDictionary

from anyio import to_process
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from hf_docmt.data import language_detection as detection
from hf_docmt.files import DataError
from hf_docmt.messages import closest_hint
from hf_docmt.modeling.row_processors import NonFiniteScoresError
from hf_docmt.serving.batches import CLIENT, SMALL_CHARACTERS, Query
from hf_docmt.serving.document_endpoints import DocumentEndpoints
from hf_docmt.serving.metrics import MEDIA_TYPE, Metrics
from hf_docmt.serving.requests import (
    BodyLimit,
    api_keys,
    check_key,
    checked_text,
    number_of,
    read_fields,
    terms_of,
    text_of,
    texts_of,
    uploaded,
)
from hf_docmt.serving.served_model import AUTO, ServedModel
from hf_docmt.serving.sessions import Kept, Session, session_of
from hf_docmt.serving.texts import (
    AnyText,
    PlainText,
    check_size,
    divide,
    file_endings,
    file_text,
    in_background,
    read_texts,
    size_of,
    written_texts,
)
from hf_docmt.systems.prompts import language_name
from hf_docmt.translation.corpus import rounded_scores
from hf_docmt.translation.progress import missing_terms

FIELDS = ("sentences", "text", "source", "target", "strategy", "options", "glossary", "session", "api_key")
MOST_ALTERNATIVES = 15
PAGE = ("page.html", "page.css", "page.js", "parts.js", "rows.js", "review.js")
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
LEFT = 499  # status on /metrics of requests whose client left
FILE_SECONDS, FILE_BYTES = 1800.0, 1000  # that a file waits for its download; overhead of a file


class Application(Starlette):
    """Answers requests with a model."""

    def __init__(self, model: ServedModel):
        self.model, self.limits = model, model.limits
        self.reading = asyncio.Semaphore(1)
        self.readers: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by client
        self.files, self.metrics = Kept(self.limits.kept_megabytes * 2**20, FILE_SECONDS), Metrics()
        paths: dict[tuple[str, str], Callable[[Request], Awaitable[Response]]] = {
            ("GET", "/"): self.page,
            ("GET", "/page/{name}"): self.page,
            ("POST", "/translate"): self.translate,
            ("POST", "/translate_file"): self.translate_file,
            ("GET", "/download_file/{name}"): self.download_file,
            ("POST", "/v1/translations"): self.translations,
            ("POST", "/detect"): self.detect,
            ("POST", "/suggest"): self.suggest,
            ("GET", "/languages"): self.languages,
            ("GET", "/health"): self.health,
            ("GET", "/frontend/settings"): self.settings,
            ("GET", "/metrics"): self.prometheus,
        }
        self.documents = DocumentEndpoints(self.model, self)
        paths |= self.documents.paths
        super().__init__(
            routes=[Route(path, self._measured(path, answer), methods=[way]) for (way, path), answer in paths.items()],
            middleware=[
                Middleware(TrustedHostMiddleware, allowed_hosts=self.limits.hosts),
                Middleware(
                    CORSMiddleware,
                    allow_origins=self.limits.origins,
                    allow_methods=["GET", "POST"],
                    allow_headers=["Authorization", "Content-Type"],
                ),
                Middleware(BodyLimit, self.limits),
            ],
            exception_handlers={HTTPException: _refused, NonFiniteScoresError: _without_scores, Exception: _failed},
        )

    async def translate(self, request: Request) -> Response:
        """Translate a text, or a list of texts, which are one document."""
        fields = await read_fields(request)
        texts = texts_of(fields, "q", self.limits)
        source, target = text_of(fields, "source"), text_of(fields, "target")
        form = "text" if fields.get("format") in (None, "") else fields["format"]
        if form not in ("text", "html"):
            raise HTTPException(400, f"{str(form)[:40]} format is not supported, expected text or html")
        count = number_of(fields, "alternatives", MOST_ALTERNATIVES)
        detected = None
        if source == AUTO:
            source, probability = await run_in_threadpool(self.model.detected, "\n".join(texts), target)
            detected = detection.answer(source, probability)
        of_texts: dict[str, list] = {"translatedText": texts}
        problems, session = [], None
        others: list[list[str]] = [[] for _ in texts]
        scores: list[list] = [[] for _ in texts]
        if not self.model.are_same(source, target):
            search = self.model.search(source, target, glossary=terms_of(fields, self.limits, source, target))
            languages = search.source_lang, search.target_lang
            parts = await self.read(sum(map(len, texts)), read_texts, texts, form, *languages)
            session = self._session(fields, search)
            asked = self.model.with_alternatives(search, count if form == "text" else 0)
            versions, problems, scores = await self._translated(parts, asked, session)
            written, *more = [[data.decode("utf-8") for data in version] for version in versions]
            of_texts["translatedText"] = written
            others = [list(dict.fromkeys(text for text in own[1:] if text != own[0])) for own in zip(written, *more)]
        if count:
            of_texts["alternatives"] = others
        if fields.get("scores") in (True, "true"):
            of_texts["scores"] = scores
        if detected:
            of_texts["detectedLanguage"] = [detected] * len(texts)
        is_list = isinstance(fields["q"], list)
        answer = {name: values if is_list else values[0] for name, values in of_texts.items()}
        return JSONResponse(answer | _told(problems) | ({"session": session.id} if session else {}))

    async def translate_file(self, request: Request) -> Response:
        """Translate a file; it waits under an address to be fetched once."""
        fields = await read_fields(request)
        data, name = await uploaded(fields)
        self.files.check_room(len(data) + FILE_BYTES)
        source, target = text_of(fields, "source"), text_of(fields, "target")
        source, problems = await self.source_of(data, name, source, target), list[str]()
        if not self.model.are_same(source, target):
            search = self.model.search(source, target, glossary=terms_of(fields, self.limits, source, target))
            target = search.target_lang
            ((data,),), problems, _ = await self._translated([await self.part_of(data, name, search)], search)
        return self.put_file(request, name, target, data, problems)

    async def source_of(self, data: bytes, name: str, source: str, target: str) -> str:
        """The source language of a file, detected if it is `auto`."""
        if source != AUTO:
            return source
        part = await self.part_of(data, name, Query(self.model.languages[0][0], target))
        return (await run_in_threadpool(self.model.detected, "\n".join(part.sentences), target))[0]

    async def part_of(self, data: bytes, name: str, search: Query) -> AnyText:
        languages = search.source_lang, search.target_lang
        return await self.read(size_of(data), file_text, data, name, *languages, self.limits)

    def put_file(self, request: Request, name: str, target: str, data: bytes, problems: Sequence[str]) -> Response:
        """Keep a translated file for its download."""
        path = PurePath(name.replace("\\", "/"))
        named = re.sub(r"[^\w.-]", "_", f"{path.stem}_{target}{path.suffix}")[-100:]
        self.files.check_room(size := len(data) + FILE_BYTES)
        self.files.put(key := f"{secrets.token_urlsafe(16)}.{named}", data, size)
        root = self.limits.public_url.rstrip("/") or request.scope.get("root_path", "")
        return JSONResponse({"translatedFileUrl": f"{root}/download_file/{quote(key)}"} | _told(problems))

    async def download_file(self, request: Request) -> Response:
        """Fetch a translated file."""
        key = request.path_params["name"]
        data = self.files.take(key) if request.method == "GET" else None
        if data is None:
            raise HTTPException(404, "file not found: it was fetched, or dropped after a while")
        name = quote(key.partition(".")[2])
        header = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}", "X-Content-Type-Options": "nosniff"}
        return Response(data, media_type="application/octet-stream", headers=header)

    async def translations(self, request: Request) -> Response:
        """Translate a document: sentences or text in, sentences and what was repaired out."""
        fields = await read_fields(request)
        for name in fields:
            if name not in FIELDS:
                expected = f"expected {', '.join(FIELDS)}{closest_hint(name[:40], FIELDS)}"
                raise HTTPException(400, f"Invalid request: unknown field {name[:40]!r}, {expected}")
        sides = zip(("source", "target"), self.model.languages)
        source, target = [checked_text(fields.get(side) or codes[0], side) for side, codes in sides]
        options, strategy = fields.get("options") or {}, fields.get("strategy")
        if not isinstance(options, dict):
            raise HTTPException(400, "Invalid request: options must be an object")
        strategy = strategy and checked_text(strategy, "strategy")
        search = self.model.search(source, target, strategy, options, terms_of(fields, self.limits, source, target))
        if ("sentences" in fields) == ("text" in fields):
            raise HTTPException(400, "Invalid request: give one of sentences and text")
        if "text" in fields:
            (text,) = texts_of({"text": text_of(fields, "text")}, "text", self.limits)
            (part,) = await self.read(len(text), read_texts, [text], "text")
            sentences = part.sentences
        elif isinstance(fields["sentences"], list):
            sentences = [checked_text(sentence, "sentences") for sentence in fields["sentences"]]
            check_size(sentences, self.limits)
        else:
            raise HTTPException(400, "Invalid request: sentences must be a list")
        check_size(sentences, self.limits, "sentences")
        session = self._session(fields, search)
        translations, repairs, carried, _ = await self.model.translated(sentences, search, session)
        answer: dict[str, Any] = {"sentences": sentences, "translations": translations, "repairs": repairs}
        answer |= {"score": scores} if (scores := rounded_scores(translations)) else {}
        own = {"beams" if name == "num_beams" else name: value for name, value in options.items()}
        answer |= {"search": self.model.system_for(search).search | own}
        if "text" in fields:
            answer["text"] = (await run_in_threadpool(part.written, translations))[0].decode("utf-8")
        return JSONResponse(answer | ({"session": session.id} if session else {}))

    async def detect(self, request: Request) -> Response:
        """The most probable language of a text, of all that there are."""
        (text,) = texts_of({"q": text_of(await read_fields(request), "q")}, "q", self.limits)
        ranked = await run_in_threadpool(detection.ranked_languages, text)
        return JSONResponse([detection.answer(*ranked[0])])

    async def languages(self, request: Request) -> Response:
        """All languages and the targets of each."""
        languages = self.model.all_languages().items()
        return JSONResponse([_language(code) | {"targets": targets} for code, targets in languages])

    async def health(self, request: Request) -> Response:
        """Whether requests are answered."""
        stopping = self.model.batches.is_stopping
        return JSONResponse({"status": "stopping" if stopping else "ok"}, 503 if stopping else 200)

    async def settings(self, request: Request) -> Response:
        """The settings for clients with a window."""
        sources, targets = self.model.languages
        target = next((code for code in targets if code != sources[0]), sources[0])
        return JSONResponse(
            {
                "charLimit": self.limits.characters,
                "frontendTimeout": 500,
                "apiKeys": bool(api_keys()),
                "keyRequired": bool(api_keys()),
                "suggestions": False,
                "filesTranslation": True,
                "supportedFilesFormat": file_endings(),
                "language": {"source": _language(sources[0]), "target": _language(target)},
            }
        )

    async def page(self, request: Request) -> Response:
        """A file of the page for people."""
        name = request.path_params.get("name", "page.html")
        if name not in PAGE:
            raise HTTPException(404, "Not Found")
        return FileResponse(Path(__file__).parent / "page" / name, headers=PAGE_HEADERS)

    async def suggest(self, request: Request) -> Response:
        """The endpoint that clients with a window use if `suggestions` is true."""
        raise HTTPException(403, "Suggestions are disabled on this server.")

    async def prometheus(self, request: Request) -> Response:
        """Counters."""
        check_key(request, request.query_params)
        batches = self.model.batches
        text = self.metrics.text(
            batches_total=batches.batches,
            sentences_total=batches.sentences,
            waiting_sentences=batches.size,
            sessions=len(self.model.sessions.items),
            files=len(self.files.items),
        )
        return PlainTextResponse(text, media_type=MEDIA_TYPE)

    def _session(self, fields: dict[str, Any], search: Query) -> Session | None:
        name = fields.get("session")
        if name and not self.model.kept_context(search):
            raise HTTPException(400, "no context is read, so that a session changes nothing; omit it")
        if name and self.model.strategy(search) == "stream" and self.model.system_for(search).glossary:
            raise HTTPException(400, "a session of a model with a memory has no glossary; omit one of them")
        return session_of(self.model.sessions, checked_text(name, "session"), search) if name else None

    async def read(self, size: float, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a function; clients whose texts are large take turns at a process of its own.

        HTTPException: 400 for what it cannot read.
        """
        try:
            if size <= SMALL_CHARACTERS:
                return await run_in_threadpool(function, *arguments)
            async with self.readers.setdefault(CLIENT.get(), asyncio.Lock()), self.reading:
                return await to_process.run_sync(in_background, function, *arguments, cancellable=True)
        except DataError as error:
            raise HTTPException(400, str(error)) from error

    async def _translated(
        self, parts: Sequence[AnyText], search: Query, session: Session | None = None
    ) -> tuple[list[list[bytes]], list[str], list[list[float | None]]]:
        """The parts as one document, translated and put together again, for each rank of n-best lists.

        Also the problems, and of each part the scores of its sentences, none by systems that give no scores.
        """
        sentences = [sentence for part in parts for sentence in part.sentences]
        check_size(sentences, self.limits, "sentences")
        sizes = [len(part.sentences) for part in parts]
        starts = accumulate(sizes, initial=0)
        runs = {start + n: spans for start, part in zip(starts, parts) for n, spans in part.runs.items()}
        best, repairs, carried, candidates = await self.model.translated(sentences, search, session, runs)
        ranks = range(1, max(map(len, candidates), default=1))
        versions = [best, *([texts[min(rank, len(texts) - 1)] for texts in candidates] for rank in ranks)]

        def results() -> list[list]:
            divided = (divide(sizes, translations, carried) for translations in versions)
            return [[part.results(*own, self.model.system) for part, own in zip(parts, each)] for each in divided]

        is_plain = all(isinstance(part, PlainText) for part in parts)
        of_parts = results() if is_plain else await self.model.computed(results, len(sentences))
        written = await self.read(sum(part.size for part in parts), written_texts, parts, of_parts)
        problems = [problem for version in written for _, own in version for problem in own]
        problems += missing_terms({"doc_id": "glossary", "repairs": repairs})
        scores = [rounded_scores(own) for own, _ in divide(sizes, best, {})]
        return [[data for data, _ in version] for version in written], problems, scores

    def _measured(self, path: str, answer: Callable[[Request], Awaitable[Response]]) -> Callable:
        async def endpoint(request: Request) -> Response:
            start, status = time.perf_counter(), 500
            CLIENT.set(request.client.host if request.client else "")
            try:
                async with asyncio.timeout(self.limits.timeout):
                    response = await answer(request)
                status = response.status_code
                return response
            except HTTPException as error:
                status = error.status_code
                raise
            except TimeoutError as error:
                reason = f"not translated within {self.limits.timeout} seconds; send less at once"
                raise HTTPException(status := 504, reason) from error
            except asyncio.CancelledError:
                status = LEFT
                raise
            finally:
                self.metrics.add(path, status, time.perf_counter() - start)

        return endpoint


def _language(code: str) -> dict[str, Any]:
    return {"code": code, "name": language_name(code)}


def _told(problems: Sequence[str]) -> dict[str, Any]:
    """The problems of a written text, if any."""
    return {"problems": list(problems)} if problems else {}


async def _refused(request: Request, error: Any) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _without_scores(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 500)


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "the request failed; the server's log says why"}, 500)
