"""The addresses of the page: documents that are opened, translated, corrected and written."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hf_docmt.formats.sentence_pairs import ENDINGS, pairs_file
from hf_docmt.modeling.text_splitting import has_text
from hf_docmt.serving.context_of_sentences import abilities, explanation, strategies
from hf_docmt.serving.documents import PORTION, OpenDocument
from hf_docmt.serving.requests import checked_text, number_of, read_fields, terms_of, text_of, texts_of, uploaded
from hf_docmt.serving.served_model import ServedModel
from hf_docmt.serving.sessions import Kept
from hf_docmt.serving.texts import PLAIN, PlainText, written_texts

TYPED = f"text{PLAIN}"  # the name of a text that was written on the page
MOST_CHARACTERS = 10_000  # of a translation that a person writes


class DocumentEndpoints:
    """Answers requests of the page. `app` is the `Application`, which reads and keeps files."""

    def __init__(self, model: ServedModel, app: Any):
        self.model, self.limits, self.app = model, model.limits, app
        self.documents = Kept(self.limits.kept_megabytes * 2**20, self.limits.session_minutes * 60)
        self.paths: dict[tuple[str, str], Callable[[Request], Awaitable[Response]]] = {
            ("GET", "/documents"): self.abilities,
            ("POST", "/documents"): self.open,
            ("GET", "/documents/{id}"): self.show,
            ("POST", "/documents/{id}/translate"): self.translate,
            ("POST", "/documents/{id}/alone"): self.translate_alone,
            ("POST", "/documents/{id}/sentence"): self.edit,
            ("GET", "/documents/{id}/why"): self.explain,
            ("POST", "/documents/{id}/file"): self.write,
        }

    async def abilities(self, request: Request) -> Response:
        """The actions that the page can offer with this model."""
        return JSONResponse(await run_in_threadpool(abilities, self.model))

    async def open(self, request: Request) -> Response:
        """Open a file or a text; `replaces` is the document that is given up for it."""
        fields = await read_fields(request)
        if fields.get("file"):
            data, name = await uploaded(fields)
            name = PurePath(name.replace("\\", "/")).name
        else:
            (text,), name = texts_of(fields, "text", self.limits), TYPED
            data = text.encode("utf-8")
        self.documents.take(str(fields.get("replaces")))
        source, target = text_of(fields, "source"), text_of(fields, "target")
        source = await self.app.source_of(data, name, source, target)
        if self.model.are_same(source, target):
            raise HTTPException(400, f"the text is in {source} already; choose another language to translate into")
        strategy = fields.get("strategy") or None
        if strategy and strategy not in (names := await run_in_threadpool(strategies, self.model)):
            raise HTTPException(400, f"strategy {str(strategy)[:40]!r}, expected one of {', '.join(names) or 'none'}")
        terms = terms_of(fields, self.limits, source, target)
        search = self.model.search(source, target, strategy, glossary=terms)
        part = await self.app.part_of(data, name, search)
        if not any(map(has_text, part.sentences)):
            what = "the text" if name == TYPED else name
            raise HTTPException(400, f"{what} has no words to translate")
        if not self.limits.cut_sentences:
            await run_in_threadpool(self.model.check_tokens, part.sentences)
        document = OpenDocument(name, part, search)
        self.documents.check_room(size := len(data) + document.size)
        self.documents.put(document.id, document, size)
        return JSONResponse(document.answer())

    async def show(self, request: Request) -> Response:
        """The current state of a document."""
        document, _ = await self._asked(request)
        return JSONResponse(document.answer())

    async def translate(self, request: Request) -> Response:
        """Translate the next sentences."""
        document, _ = await self._asked(request)
        async with document.lock:
            if portion := document.portion():
                goes_on = document.memory_end == portion.start and self.model.strategy(document.search) == "stream"
                if goes_on and not self.model.system_for(document.search).glossary:
                    first, runs = portion.start, document.part.runs
                    texts = [document.sentences[n].source for n in portion]
                    own = {n - first: spans for n, spans in runs.items() if n in portion}
                    made = await self.model.translated(texts, document.search, document.session, own)
                    document.memory_end = portion.stop
                else:
                    is_written = self.model.strategy(document.search) != "sliding"
                    reach = self.model.kept_context(document.search), self.model.system.context.future
                    texts, runs, first = document.around(portion, *reach, is_written)
                    made = await self.model.translated(texts, document.search, None, runs)
                document.take(portion, first, made)
            return self._answer(document, portion, sum(each.is_waiting for each in document.sentences))

    async def translate_alone(self, request: Request) -> Response:
        """Translate the next sentences without context, to compare."""
        document, _ = await self._asked(request)
        async with document.lock:
            rest = [n for n, each in enumerate(document.sentences) if each.translation and each.alone is None]
            portion, texts = rest[:PORTION], [document.sentences[n].source for n in rest[:PORTION]]
            if portion:
                runs = {i: document.part.runs[n] for i, n in enumerate(portion) if n in document.part.runs}
                search = replace(document.search, strategy="sentence")
                made = await self.model.translated(texts, search, None, runs)
                for n, text in zip(portion, made.sentences, strict=True):
                    document.sentences[n].alone = text
            return self._answer(document, portion, len(rest) - len(portion))

    async def edit(self, request: Request) -> Response:
        """Accept a translation, edited or not, or take that back; `again`: let the sentences after it wait."""
        document, fields = await self._asked(request)
        number = self._number(document, fields)
        async with document.lock:
            sentence = document.sentences[number]
            if "translation" in fields:
                text = " ".join(checked_text(fields["translation"], "translation").split())
                if not has_text(text) or len(text) > MOST_CHARACTERS:
                    got = f"{len(text)} characters"
                    raise HTTPException(400, f"the translation has {got}, expected 1 to {MOST_CHARACTERS}")
                sentence.accept(text)
            elif fields.get("restore"):
                sentence.restore()
            if fields.get("again"):
                document.translate_again(number)
            behind = range(number, len(document.sentences)) if fields.get("again") else [number]
            return self._answer(document, behind, sum(each.is_waiting for each in document.sentences))

    async def explain(self, request: Request) -> Response:
        """The context that decided a sentence."""
        document, fields = await self._asked(request)
        number = self._number(document, fields)
        known = [each if each.translation else None for each in document.sentences]
        source, target = ([getattr(each, side, "") for each in known] for side in ("source", "translation"))
        try:
            found = await self.model.computed(
                lambda: explanation(self.model, document.search, source, target, number), PORTION
            )
        except ValueError as error:
            raise HTTPException(400, str(error)) from error
        return JSONResponse(found)

    async def write(self, request: Request) -> Response:
        """The translated file, or a TMX or XLIFF file of the sentences, under an address to be fetched once."""
        document, fields = await self._asked(request)
        kind, search, problems = fields.get("as") or "file", document.search, []
        if kind in ENDINGS:
            name = f"{PurePath(document.name).stem}{ENDINGS[kind]}"
            data = pairs_file(kind, document.pairs(), document.name, search.source_lang, search.target_lang)
        elif kind == "file":
            async with document.lock:
                part, name, system = document.part, document.name, self.model.system
                is_plain, count = isinstance(part, PlainText), len(document.sentences)
                computed = document.results(system) if is_plain else await self.model.computed(
                    lambda: document.results(system), count
                )  # fmt: skip
            (((data, problems),),) = await self.app.read(part.size, written_texts, [part], [[computed]])
        else:
            raise HTTPException(400, f"as is {str(kind)[:40]!r}, expected one of {', '.join(('file', *ENDINGS))}")
        return self.app.put_file(request, name, search.target_lang, data, problems)

    async def _asked(self, request: Request) -> tuple[OpenDocument, dict[str, Any]]:
        """The document of an address and the fields. HTTPException: 404 for an unknown one."""
        fields = await read_fields(request)
        document = self.documents.get(request.path_params["id"])
        if document is None:
            raise HTTPException(404, "the document is no longer on the server; open it again")
        return document, fields

    def _number(self, document: OpenDocument, fields: dict[str, Any]) -> int:
        return number_of(fields, "sentence", len(document.sentences) - 1)

    def _answer(self, document: OpenDocument, numbers: Iterable[int], rest: int) -> Response:
        """Sentences by number, how many are still to come, and the numbers of uncertain ones."""
        sentences = {n: document.sentences[n].answer() for n in numbers}
        return JSONResponse({"sentences": sentences, "rest": rest, "uncertain": document.uncertain()})
