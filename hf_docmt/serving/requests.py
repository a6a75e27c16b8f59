"""Checked fields, keys and sizes of requests."""

import asyncio
import hmac
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from hf_docmt.data.glossary_files import Entry, entries_of_text, with_status
from hf_docmt.files import DataError
from hf_docmt.options import ServerLimits
from hf_docmt.serving.batches import CLIENT, Terms
from hf_docmt.serving.texts import check_size

KEYS = "HF_DOCMT_API_KEYS"
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class BodyLimit:
    """Ends requests with bodies that are too long (HTTPException 413) or slow (408), and those whose client left."""

    def __init__(self, app: ASGIApp, limits: ServerLimits):
        self.app, self.most, self.seconds = app, limits.megabytes * 2**20, limits.receive_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        size, has_left = 0, False
        end = asyncio.get_running_loop().time() + self.seconds
        task, watch = asyncio.current_task(), None

        async def counted():
            nonlocal size, watch
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, f"the request did not arrive within {self.seconds} seconds") from error
            size += len(message.get("body", b""))
            if size > self.most:
                raise HTTPException(413, f"the request has more than {self.most} bytes; send less at once")
            if message["type"] == "http.request" and not message.get("more_body"):
                watch = asyncio.create_task(end_when_left())
            return message

        async def end_when_left():
            nonlocal has_left
            while (await receive())["type"] != "http.disconnect":
                pass
            has_left = task.cancel()

        try:
            await self.app(scope, counted, send)
        except asyncio.CancelledError:
            if not has_left:
                raise
        finally:
            if watch:
                watch.cancel()


async def read_fields(request: Request) -> dict[str, Any]:
    """The fields of a request, in JSON, a form or its address. HTTPException: 400 for what cannot be read, 403 keys."""
    fields: dict[str, Any] = dict(request.query_params)
    try:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json":
            body = json.loads(await request.body())
            if not isinstance(body, dict):
                raise HTTPException(400, f"Invalid JSON format: expected an object, got a {type(body).__name__}")
            fields |= body
        elif kind in FORMS:
            form = await request.form(max_files=1, max_fields=1000, max_part_size=sys.maxsize)  # see BodyLimit
            read = {name: [_with_line_feeds(value) for value in form.getlist(name)] for name in form}
            fields |= {name: values[0] if len(values) == 1 else values for name, values in read.items()}
        elif await request.body():
            expected = " or ".join(("application/json", *FORMS))
            raise HTTPException(400, f"Invalid request: its type is {kind[:60]!r}, expected {expected}")
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"Invalid JSON format: {str(error)[:200]}") from error
    except ClientDisconnect as error:
        raise HTTPException(400, "the client left before the request was read") from error
    check_key(request, fields)
    return fields


def _with_line_feeds(value: Any) -> Any:
    """The text of a form with its original line ends."""
    return value.replace("\r\n", "\n") if isinstance(value, str) else value


def check_key(request: Request, fields: Mapping[str, Any]) -> None:
    """HTTPException: 400 if a required key is missing, 403 for a wrong one."""
    keys = api_keys()
    kind, _, bearer = request.headers.get("authorization", "").partition(" ")
    given = bearer.strip() if kind.lower() == "bearer" else fields.get("api_key")
    if not keys:
        return
    if not given:
        raise HTTPException(400, "an API key is needed; send it as api_key, or as Authorization: Bearer KEY")
    CLIENT.set(str(given))
    if not any(hmac.compare_digest(str(given).encode("utf-8", "replace"), key.encode()) for key in keys):
        raise HTTPException(403, "Invalid API key")


def api_keys() -> list[str]:
    """The API keys of the environment variable, where commas separate them."""
    return [key.strip() for key in os.environ.get(KEYS, "").split(",") if key.strip()]


def text_of(fields: Mapping[str, Any], name: str) -> str:
    """A field that has to be there. HTTPException: 400."""
    if not fields.get(name):
        raise HTTPException(400, f"Invalid request: missing {name} parameter")
    return checked_text(fields[name], name)


def texts_of(fields: Mapping[str, Any], name: str, limits: ServerLimits) -> list[str]:
    """The texts of a field that is a text or a list of texts. HTTPException: 400."""
    value = fields.get(name)
    if not isinstance(value, list):
        value = [text_of(fields, name)]
    if not 0 < len(value) <= limits.texts:
        raise HTTPException(400, f"Invalid request: {name} has {len(value)} texts, expected 1 to {limits.texts}")
    texts = [checked_text(text, name) for text in value]
    check_size(texts, limits)
    return texts


def checked_text(value: Any, name: str) -> str:
    """HTTPException: 400 for anything but text."""
    if not isinstance(value, str):
        kind = "file" if isinstance(value, UploadFile) else type(value).__name__
        raise HTTPException(400, f"Invalid request: {name} must be text, got a {kind}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise HTTPException(400, f"Invalid request: {name} holds half of a surrogate pair") from error
    return value


def terms_of(fields: Mapping[str, Any], limits: ServerLimits, *languages: str) -> Terms:
    """The glossary: `{source: target}`, pairs, or text with a line `source = target` for each. HTTPException: 400.

    `NOT ` before a target forbids it. The header of a text may name the `languages`.
    """
    given = fields.get("glossary") or []
    try:
        pairs = entries_of_text(checked_text(given, "glossary"), *languages) if isinstance(given, str) else given
    except DataError as error:
        raise HTTPException(400, f"Invalid request: {error}") from error
    pairs = [list(pair) for pair in pairs.items()] if isinstance(pairs, dict) else pairs
    if not isinstance(pairs, list) or not all(isinstance(p, Entry) or isinstance(p, list) and p[1:] for p in pairs):
        expected = 'expected {"source": "target"}, a list of pairs, or text'
        raise HTTPException(400, f"Invalid request: the glossary is {str(given)[:60]!r}, {expected}")
    texts = [checked_text(text, "glossary") for pair in pairs for text in pair[:2]]
    if len(pairs) > limits.terms:
        raise HTTPException(400, f"Invalid request: the glossary has {len(pairs)} terms, expected up to {limits.terms}")
    check_size(texts, limits)
    return tuple(pair if isinstance(pair, Entry) else with_status(*pair[:2]) for pair in pairs)


def number_of(fields: Mapping[str, Any], name: str, most: int) -> int:
    """An optional number from 0 on. HTTPException: 400."""
    value = str(fields.get(name) or 0)
    if not value.isdecimal() or int(value) > most:
        raise HTTPException(400, f"Invalid request: {name} parameter must be a number <= {most}, got {value[:40]!r}")
    return int(value)


async def uploaded(fields: Mapping[str, Any]) -> tuple[bytes, str]:
    """Bytes and name of the file. HTTPException: 400 if it is missing."""
    file = fields.get("file")
    if not isinstance(file, UploadFile):
        raise HTTPException(400, "Invalid request: missing file parameter")
    if not file.filename:
        raise HTTPException(400, "Invalid request: empty file")
    return await file.read(), file.filename
