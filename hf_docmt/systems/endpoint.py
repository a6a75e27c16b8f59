"""Endpoints of the OpenAI API (llama.cpp, vLLM, Ollama, hosted ones): documents in chunks, answers are checked."""

import json
import logging
import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter

from huggingface_hub import get_session
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from hf_docmt.data.glossary import GivenTerms, Glossary
from hf_docmt.data.language_codes import primary_language
from hf_docmt.messages import first_line
from hf_docmt.systems.document_spans import Span, TranslatedDocument, read_documents, spans_by_step, window_of
from hf_docmt.systems.items import SuiteItem
from hf_docmt.systems.model_system import one_line
from hf_docmt.systems.prompts import glossary_text, language_name
from hf_docmt.systems.system import ContextReach, System

KEY = "DOCMT_API_KEY"  # environment variable
ATTEMPTS = 5  # for a request, while the endpoint is busy or does not answer
WAIT = 2.0  # seconds before the second one, doubled for each further one
LONGEST_WAIT = 60.0
REQUESTS = 4  # side by side
LETTERS = 60  # minimum for checking the language of an answer
THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)
BUSY = (408, 409, 425, 429)
HINTS = dict.fromkeys((401, 403), f"; put the key into the variable {KEY}")  # by status
HINTS |= dict.fromkeys((400, 404), "; check the URL, which mostly ends in /v1, and --model, which names its model")
HTTP_ERRORS = HfHubHTTPError.__bases__  # of httpx, and OSError
INSTRUCTION = (
    "You translate from {source} into {target}. Each message is a JSON object with consecutive lines of one document. "
    "Answer with a JSON object that has the same keys and, as values, the translations of these lines. Translate every "
    "line for itself: merge, split and skip none. Keep marks such as X1.{register}{glossary}"
)
REGISTERS = {"formal": " Use the formal form of address.", "informal": " Use the informal form of address."}

_logger = logging.getLogger(__name__)


class EndpointSystem(System):
    """A chat model at a URL that ends before `/chat/completions`, such as `http://localhost:8080/v1`.

    A chunk of `chunk_sentences` sentences and its answer are JSON objects of numbered lines. After an answer with other
    lines, blank ones, the source again or (with py3langid) another language the chunk is translated in halves, a single
    sentence once more, then the document has an error. `past_context` sentences before and their translations are an
    earlier turn; of the `glossary` a request has what occurs in it. Requests of up to four documents run side by
    side, again after 429, 5xx and `timeout` seconds. The environment variable `DOCMT_API_KEY` holds the key, which is
    written nowhere; the saved token of the Hub is not sent.

    ValueError: no languages, an unknown formality, an answer that cannot be used; OSError: the endpoint refuses
    requests, or does not answer.
    """

    kind = "endpoint"

    def __init__(
        self,
        name: str,
        *,
        model_name: str | None = None,
        source_lang: str | None = None,
        target_lang: str | None = None,
        past_context: int = 10,
        chunk_sentences: int = 10,
        glossary: GivenTerms = (),
        formality: str | None = None,
        batch_size: int = 4,
        max_new_tokens: int = 256,
        timeout: int = 120,
    ):
        if not source_lang or not target_lang:
            raise ValueError("an endpoint needs both languages: give --source-lang and --target-lang")
        if formality is not None and formality not in REGISTERS:
            raise ValueError(f"formality is {formality!r}, expected {' or '.join(REGISTERS)}")
        self.name, self.model_name, self.formality = name, model_name, formality
        self.source_lang, self.target_lang = source_lang, target_lang
        self.past_context, self.chunk_sentences = past_context, chunk_sentences
        self.glossary = Glossary.of(glossary, source_lang, target_lang)
        self.batch_size, self.max_new_tokens, self.timeout = batch_size, max_new_tokens, timeout
        self.tokenizer = None  # type: ignore[assignment]
        self.address, self.takes_schema = f"{name.rstrip('/')}/chat/completions", True

    @classmethod
    def load(cls, name, *, dtype=None, device="cpu", attn_implementation=None, revision=None, **options):
        """The system of an address; number type and device are the endpoint's own."""
        return cls(str(name), **options)

    @classmethod
    def reads_sentences_alone(cls, name, options, revision=None):
        return False

    @property
    def context(self) -> ContextReach:
        return ContextReach(self.past_context)

    @property
    def document_languages(self):
        return self.source_lang, self.target_lang

    @property
    def search(self) -> dict:
        asked = {"model": self.model_name, "formality": self.formality, "chunk_sentences": self.chunk_sentences}
        return super().search | {name: value for name, value in asked.items() if value is not None}

    def describe(self) -> dict:
        return {"name": self.name, "architecture": "endpoint", "config": self.search}

    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        raise ValueError(f"{self.name}: an endpoint gives no log-probabilities of a text; load the model itself")

    def token_texts(self, items):
        return self.token_log_probabilities(items)

    def translate(self, documents: list[list[str]]) -> list[list[str]]:
        return self.translate_with_repairs(documents)[0]

    def translate_with_repairs(self, documents: list[list[str]]) -> tuple[list[list[str]], list[list[dict]]]:
        states = read_documents(documents)
        with ThreadPoolExecutor(min(self.batch_size, REQUESTS)) as pool:
            for spans in spans_by_step(states, self.chunk_sentences):
                list(pool.map(lambda span: self._translate_span(states, span), spans))
        repairs = [sorted(state.repairs, key=itemgetter("sentence")) for state in states]
        return [state.translations for state in states], repairs

    def _translate_span(self, documents: Sequence[TranslatedDocument], span: Span) -> None:
        """Translate a chunk; in halves where its answer cannot be used, a sentence twice."""
        document, window = documents[span.document], window_of(documents, span, self.past_context, 0)
        for attempt in range(1 if span.size > 1 else 2):
            lines, problem = self._answer(window, attempt)
            if lines is not None:
                return document.write(span, lines, True)
        if span.size == 1:
            raise ValueError(f"{window.location}: {problem}")
        document.report(span, "retry", f"{problem}: translated in halves")
        for half in span.halves:
            self._translate_span(documents, half)

    def _answer(self, window: SuiteItem, attempt: int) -> tuple[list[str] | None, str]:
        """The translations of a window's current sentences; otherwise None, and what is wrong with the answer."""
        *context, current = window.source
        lines, size = current.split("\n"), len(current.split("\n"))
        messages = [{"role": "system", "content": self._instruction(current)}]
        if context:
            for role, side in (("user", context), ("assistant", window.target_context)):
                messages.append({"role": role, "content": as_json(map(one_line, side))})
        messages.append({"role": "user", "content": as_json(lines)})
        content, ended = self._request(messages, size, attempt)
        if not ended:
            return None, f"an answer that did not end within {size * self.max_new_tokens} tokens"
        found = answer_lines(content, size)
        if found is None:
            return None, f"no JSON object with {size} lines: {first_line(content)[:80]!r}"
        if any(source.strip() and not line for source, line in zip(lines, found)):
            return None, "a line without a translation"
        if is_copied(lines, found):
            return None, "the source instead of its translation"
        if language := other_language(" ".join(found), self.target_lang):
            return None, f"text in {language_name(language)}, expected {language_name(self.target_lang)}"
        return found, ""

    def _instruction(self, source: str) -> str:
        return INSTRUCTION.format(
            source=language_name(self.source_lang),
            target=language_name(self.target_lang),
            register=REGISTERS.get(self.formality or "", ""),
            glossary=f"\n\n{terms.strip()}" if (terms := glossary_text(self.glossary, source)) else "",
        )

    def _request(self, messages: list[dict], size: int, attempt: int) -> tuple[str, bool]:
        """The text of an answer, and whether it came to its end.

        OSError: the endpoint refuses the request, or has no time for it.
        """
        wait, key = WAIT, os.environ.get(KEY)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        for number in range(1, ATTEMPTS + 1):
            body = {"model": self.model_name or "default", "messages": messages, "temperature": 0.5 * attempt}
            body |= {"max_tokens": size * self.max_new_tokens}
            body |= {"response_format": schema(size)} if self.takes_schema else {}
            try:
                # not InferenceClient, which rewrites the schema for servers of one kind
                response = get_session().post(self.address, json=body, headers=headers, timeout=self.timeout)
                status, problem = response.status_code, f"status {response.status_code}: {response.text[:200]!r}"
                if status == 200:
                    choice = response.json()["choices"][0]
                    return choice["message"]["content"] or "", choice.get("finish_reason") != "length"
                if status in (400, 422) and self.takes_schema:
                    self.takes_schema = False  # some servers have none
                    continue
                if status not in BUSY and status < 500:
                    raise RefusedError(f"{self.name} refuses the request, {problem}{HINTS.get(status, '')}")
                wait = seconds(response.headers.get("Retry-After"), wait)
            except (RefusedError, OfflineModeIsEnabled):
                raise
            except (*HTTP_ERRORS, TypeError, LookupError, AttributeError, ValueError) as error:
                problem = f"no answer that can be read: {type(error).__name__} {first_line(error)}"[:200]
            if number < ATTEMPTS:
                _logger.warning("%s: %s; asked again in %.0f s", self.name, problem, min(wait, LONGEST_WAIT))
                time.sleep(min(wait, LONGEST_WAIT))
                wait *= 2
        raise OSError(f"{self.name} did not translate after {ATTEMPTS} requests, {problem}; go on with --resume")


class RefusedError(OSError):
    """A request that the endpoint will not take a second time."""


def schema(size: int) -> dict:
    """A JSON schema of an object with the keys 1 to `size`, whose values are texts."""
    keys = [str(number) for number in range(1, size + 1)]
    lines = {"type": "object", "properties": dict.fromkeys(keys, {"type": "string"}), "required": keys}
    lines |= {"additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "translations", "schema": lines, "strict": True}}


def as_json(lines) -> str:
    """Lines as an object with their numbers as keys."""
    return json.dumps({str(number): line for number, line in enumerate(lines, 1)}, ensure_ascii=False)


def answer_lines(content: str, size: int) -> list[str] | None:
    """The lines of the object in an answer, with any text around it; None unless it has `size` lines."""
    content = THOUGHTS.sub("", content)
    try:
        found = json.loads(content[content.index("{") : content.rindex("}") + 1])
        lines = [found.pop(str(number)) for number in range(1, size + 1)]
    except (ValueError, KeyError):
        return None
    return [one_line(line).strip() for line in lines] if not found and all(isinstance(e, str) for e in lines) else None


def is_copied(sources: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether most words of the sources were copied: their lines are the same in the answer."""
    words = [len(re.findall(r"[^\W\d_]{2,}", source)) for source in sources]
    same = sum(count for count, source, line in zip(words, sources, lines) if line == one_line(source).strip())
    return sum(words) > 3 and 2 * same > sum(words)


def other_language(text: str, expected: str) -> str | None:
    """The language of a text of `LETTERS` and more that is surely not in the expected one; None: it may well be."""
    if sum(map(str.isalpha, text)) < LETTERS:
        return None
    try:
        from hf_docmt.data.language_detection import ranked_languages
    except ImportError:
        return None
    ranks = dict(ranked_languages(text))
    own, best = primary_language(expected), max(ranks, key=ranks.__getitem__)
    return best if own in ranks and ranks[own] < 0.01 < 0.9 < ranks[best] else None


def seconds(text: str | None, default: float) -> float:
    """The seconds of a header Retry-After, if it has a number."""
    return float(text) if text and text.strip().isdecimal() else default
