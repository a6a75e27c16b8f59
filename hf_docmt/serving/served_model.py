"""The system that a server translates with: its languages, its thread, its sessions."""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import torch
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from hf_docmt.data.glossary import Glossary
from hf_docmt.data.language_codes import are_other_languages, primary_language
from hf_docmt.data.language_detection import ranked_languages
from hf_docmt.modeling.opaque_runs import carry
from hf_docmt.modeling.pipeline_docmt import OF_DOCUMENTS
from hf_docmt.options import ServerLimits
from hf_docmt.serving.batches import Batches, Query, Runs, Terms, Translated
from hf_docmt.serving.sessions import Kept, Session
from hf_docmt.systems import DocMTSystem, System
from hf_docmt.systems.ctranslate2_model import CTranslate2Weights
from hf_docmt.systems.model_system import ModelSystem

AUTO = "auto"  # a source language to detect
NORWEGIAN = {"no", "nb", "nn"}
SURE = 0.8  # probability from which a language that is not the model's is refused
OPTIONS = {"num_beams": (1, 16), "past_context": (0, 100), "max_new_tokens": (1, 1024)}  # least and most


class ServedModel:
    """Translates in one thread. `languages` are those of the system, by default those that it names.

    ValueError: they are not known.
    """

    def __init__(self, system: System, languages: tuple[str | None, str | None], limits: ServerLimits):
        self.batches = Batches(self._translate, limits.waiting_sentences)
        self.system, self.limits = giving_way(system, self.batches.give_way), limits
        self.system.scores = True
        own = zip(("source", "target"), languages, system.languages)
        self.languages = [self._codes(side, given or code) for side, given, code in own]
        self.in_sessions = 0  # sentences of calls in sessions
        self.sessions = Kept(limits.sessions, limits.session_minutes * 60)

    def _codes(self, side: str, own: str | None) -> list[str]:
        """The languages of a side, the model's own first."""
        if isinstance(self.system, DocMTSystem) and f"{side}_lang" in self.system.codes:
            codes = self.system.model.config.language_ids or ()
            return list(dict.fromkeys([*filter(None, [own]), *codes]))
        if own is None:
            raise ValueError(f"{self.system.name} names no {side} language, which clients ask for; give --{side}-lang")
        return [own]

    def search(
        self, source: str, target: str, strategy: str | None = None, options: dict | None = None, glossary: Terms = ()
    ) -> Query:
        """The settings of a request. HTTPException: 400 for unknown languages, strategies, options, or a glossary."""
        sources, targets = self.languages
        options = options or {}
        if (strategy or options) and not isinstance(self.system, DocMTSystem):
            raise HTTPException(400, "strategy and options are for document models; omit them")
        for name, value in options.items():
            if name not in OPTIONS:
                raise HTTPException(400, f"options: unknown {name[:40]!r}, expected {', '.join(OPTIONS)}")
            least, most = OPTIONS[name]
            if type(value) is not int or not least <= value <= most:
                raise HTTPException(400, f"options: {name} must be a number from {least} to {most}")
        codes = _code(source, sources), _code(target, targets)
        search = Query(*codes, strategy, tuple(sorted(options.items())), glossary)
        try:
            if strategy or options or glossary:
                self._translate([], search)  # refuses what is not the model's
        except ValueError as error:
            raise HTTPException(400, str(error)) from error
        return search

    def with_alternatives(self, search: Query, count: int) -> Query:
        """The query with this number of further translations per sentence; unchanged if the system finds none."""
        if not count or not isinstance(self.system, DocMTSystem):
            return search
        beams = max(self.system_for(search).search["beams"], count + 1)
        options = dict(search.options) | {"num_beams": beams, "nbest": count + 1}
        wider = replace(search, options=tuple(sorted(options.items())))
        try:
            self._translate([], wider)
        except ValueError:  # of a system that gives one
            return search
        return wider

    def all_languages(self) -> dict[str, list[str]]:
        """Every language with its targets: itself, too, in which a text is its own translation."""
        sources, targets = self.languages
        codes = dict.fromkeys([*sources, *targets])
        return {code: list(dict.fromkeys([*targets, code])) if code in sources else [code] for code in codes}

    def are_same(self, source: str, target: str) -> bool:
        """Whether two codes mean one language of the model."""
        first, second = (_matching(code, list(self.all_languages())) for code in (source, target))
        return len(first) == 1 and first == second

    def detected(self, text: str, target: str) -> tuple[str, float]:
        """The most probable one of the source languages, with its probability; the target where it is surely that one.

        HTTPException: 400 for a text that is surely in another language, or where none of the languages is known.
        """
        sources = self.languages[0]
        ranked = ranked_languages(text)
        code, probability = ranked[0]
        if probability >= SURE and all(_are_others(code, source) for source in sources):
            if primary_language(target) == code:
                return target, probability
            names = ", ".join(sources[:20])
            raise HTTPException(400, f"the text is in {code}, which is not supported; expected one of {names}")
        for code, probability in ranked:
            for source in sources:
                if primary_language(source) == code or {code, primary_language(source)} <= NORWEGIAN:
                    return source, probability
        raise HTTPException(400, f"none of the source languages can be detected; name one: {', '.join(sources[:20])}")

    async def translated(
        self, sentences: list[str], search: Query, session: Session | None = None, runs: Runs = MappingProxyType({})
    ) -> Translated:
        """Translations, repairs and carried sentences. HTTPException: 400 long sentences, 503 too much that waits."""
        if not self.limits.cut_sentences:
            await run_in_threadpool(self.check_tokens, sentences)
        if session is None:
            return await asyncio.wrap_future(self.batches.submit(sentences, search, runs))
        async with self._turn_of(session, len(sentences)):
            if self.strategy(search) == "stream":
                result, session.memory = await self.computed(
                    lambda: self._stream(sentences, search, session.memory, runs), len(sentences)
                )
                return result
            before = session.sentences
            moved = {len(before) + number: spans for number, spans in runs.items()}
            lines, repairs, carried, candidates = await asyncio.wrap_future(
                self.batches.submit([*before, *sentences], search, moved)
            )
            session.sentences = [*before, *sentences][-self.kept_context(search) :]
            own = [repair | {"sentence": repair["sentence"] - len(before)} for repair in repairs]
            own = [repair for repair in own if repair["sentence"] >= 0]
            carried = {number - len(before): each for number, each in carried.items()}
            return Translated(lines[len(before) :], own, carried, candidates[len(before) :])

    def kept_context(self, search: Query) -> int:
        """How many sentences a session keeps, to be translated again before the next ones.

        Windows that slide need no more than they read; of other strategies each translation depends on all before it.
        """
        strategy, most = self.strategy(search), self.limits.session_sentences
        past = most if self.system.reads_chunks else self.system.context.past
        return 0 if strategy == "sentence" or not past else min(past, most) if strategy == "sliding" else most

    def strategy(self, search: Query) -> str | None:
        return search.strategy or self.system.decoding["strategy"]

    async def computed(self, function: Callable[[], Any], size: int) -> Any:
        """The result of a call that computes with the model."""
        return await asyncio.wrap_future(self.batches.call(function, size))

    @asynccontextmanager
    async def _turn_of(self, session: Session, size: int) -> AsyncIterator[None]:
        """Alone in a session. HTTPException: 503 where too many sentences wait for theirs."""
        if session.lock.locked():
            self.batches.check_room(size, self.in_sessions)
        self.in_sessions += size
        try:
            async with session.lock:
                yield
        finally:
            self.in_sessions -= size

    def check_tokens(self, sentences: Sequence[str]) -> None:
        """HTTPException: 400 for a sentence of too many tokens, of which no byte has more than one."""
        most = self.limits.sentence_tokens
        for number, sentence in enumerate(sentences):
            if len(sentence) * 4 > most and len(sentence.encode()) > most:
                count = len(self.system.tokenizer(sentence, add_special_tokens=False, verbose=False)["input_ids"])
                if count > most:
                    reason = f"sentence {number} has {count} tokens, expected at most {most}; end sentences in it"
                    raise HTTPException(400, f"Invalid request: {reason}")

    def _translate(self, documents: list[tuple[list[str], Runs]], search: Query) -> list[Translated]:
        """The translations of several documents, in the thread."""
        sentences, runs = [document for document, _ in documents], [dict(own) for _, own in documents]
        (lines, repairs, *rest), carried = self.system_for(search).translate_carried(sentences, runs)
        return list(map(Translated, lines, repairs, carried, *rest))

    def system_for(self, search: Query) -> System:
        """A system with these settings on the same weights."""
        system = copy.copy(self.system)
        if isinstance(system, DocMTSystem):
            system = system.by_strategy(search.strategy) if search.strategy else system
            codes = {"source_lang": search.source_lang, "target_lang": search.target_lang}
            if system.codes != (own := {name: codes[name] for name in system.codes}):
                system.codes = own
                vars(system).pop("collate", None)  # which has codes
            system.generate_kwargs = system.generate_kwargs | dict(search.options)
        if search.glossary:
            system.glossary = _glossary(search.glossary, search.source_lang, search.target_lang)
            system.check_glossary()
        return system

    def _stream(self, sentences: list[str], search: Query, memory: dict, runs: Runs) -> tuple[Translated, dict]:
        """A translation and the memory after it, of a model that carries one. A repair starts without."""
        system: Any = self.system_for(search)
        repairs: list[dict] = []
        options = {name: value for name, value in system.generate_kwargs.items() if name not in OF_DOCUMENTS}
        streams: list[Any] = []

        def translate(documents: list[list[str]]) -> list[list[str]]:
            if streams:
                return system.translate(documents)
            stream = system.model.translate_stream(
                documents[0], system.tokenizer, memory=memory or None, **system.codes, **options
            )
            streams.append(stream)
            texts = []
            for number, text in enumerate(stream):
                texts.append(text)
                repairs.extend(repair | {"sentence": number} for repair in stream.repairs)
            return [texts]

        reach = (system.context.past, system.context.future)
        (lines,), (carried,) = carry(translate, [sentences], system.finder, [dict(runs)], reach)
        return Translated(lines, repairs, carried), streams[0].memory


@lru_cache(maxsize=32)
def _glossary(terms: Terms, source_lang: str, target_lang: str) -> Glossary:
    return Glossary(terms, source_lang, target_lang)


def giving_way(given: System, give_way: Callable[[], None]) -> System:
    """The system that calls a function after a few tokens (of CTranslate2: before a batch), for sentences and signs."""
    system: Any = copy.copy(given)

    def after_token(ids: torch.Tensor, scores: Any, **others: Any) -> torch.Tensor:
        give_way()
        return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)  # ends no row

    after_token.of_rows = lambda sources: after_token  # type: ignore[attr-defined]  # so that rows may leave a batch
    after_token.ends_nothing = True  # type: ignore[attr-defined]  # so that the kernels may search

    def before(function: Callable) -> Callable:
        def both(*arguments: Any, **settings: Any) -> Any:
            give_way()
            return function(*arguments, **settings)

        return both

    if isinstance(model := getattr(system, "model", None), CTranslate2Weights):
        system.model = copy.copy(model)
        system.model.translate = before(model.translate)
    elif isinstance(system, ModelSystem):
        system.generate_kwargs = system.generate_kwargs | {"stopping_criteria": [after_token]}
    system.give_way = give_way
    system.finder = copy.copy(system.finder)
    for name in ("plain", "is_lost"):
        setattr(system.finder, name, before(getattr(system.finder, name)))
    return system


def _matching(asked: str, codes: list[str]) -> list[str]:
    """A code itself, or those that mean the same language."""
    return [code for code in codes if asked == code] or [
        code for code in codes if primary_language(code) == primary_language(asked)
    ]


def _are_others(code: str, other: str) -> bool:
    """Whether two codes are known to be of different languages."""
    return are_other_languages(code, other) and not {code, primary_language(other)} <= NORWEGIAN


def _code(asked: str, codes: list[str]) -> str:
    """The model's code of a language: itself, or the only one that means the same."""
    same = _matching(asked, codes)
    if len(same) != 1:
        names = ", ".join((same or codes)[:20])
        auto = "; it is detected for /translate and /translate_file" if asked == AUTO else ""
        raise HTTPException(400, f"{asked[:40]} is not supported{auto}, expected one of {names}")
    return same[0]
