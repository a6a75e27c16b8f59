"""Causal language models as systems: prompted with context, scored by the log-probability of the answer."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.glossary import GivenTerms, Glossary
from hf_docmt.data.samplers import TokenBudgetBatchSampler
from hf_docmt.data.special_tokens import special_tokens_of
from hf_docmt.messages import counted
from hf_docmt.modeling.row_processors import pad_rows
from hf_docmt.systems.answer_scores import answer_scores
from hf_docmt.systems.chats import AnswerFrame, answer_frame, chat_text, earlier_turns
from hf_docmt.systems.document_spans import Span, TranslatedDocument, window_of
from hf_docmt.systems.items import SuiteItem
from hf_docmt.systems.model_system import (
    Answer,
    EncodedInput,
    ModelSystem,
    check_positions,
    end_tokens,
    evaluation_mode,
    one_line,
    piece_texts,
)
from hf_docmt.systems.prompts import Lines, Prompt, glossary_text, numbered, numbered_lines

FORMATS = ("plain", "chat", "turns", "auto")
REPAIRS = ("all", "none")
DEFAULT = Prompt(
    "Translate from {source_lang} to {target_lang}.\n\n{context}{source_lang}: {source}\n{target_lang}:",
    pair="{source_lang}: {source}\n{target_lang}: {target}\n",
)
PLAIN = (
    "Translate from {source_language} to {target_language}.\n\n"
    "{glossary}{context}{source_language}: {source}\n{target_language}:"
)
TURN = (
    "{glossary}Translate the following text from {source_language} into {target_language}. Answer with the translation "
    "alone; keep its lines and their numbers, if it has any.\n\n{source}"
)


class CausalSystem(ModelSystem):
    """A language model that continues a text; `prompt` (a `Prompt` or its template) holds the source and its context.

    `format` is `plain`, the tokenizer's first tokens and the text, answered by a blank, the translation and
    `prompt.stop`; `chat`, the text as a user's message in the tokenizer's chat template, answered by the translation
    and what the template puts after an answer; `turns`, a chat in which each sentence of the context is a user's
    message and its translation the answer to it; or `auto`, `plain` without a chat template, otherwise `chat` where the
    prompt has a place for context and `turns` where it has not. Templates get `enable_thinking=False`.
    `source_lang` and `target_lang` are the languages, codes or names. Batches are padded on the right for scores and on
    the left for translation, whatever the tokenizer's setting.

    Translation takes `chunk_sentences` sentences at once (0: the whole document) as numbered lines; after an answer
    with other numbers the chunk is translated in halves. With `repairs="none"` they are lines without numbers, and the
    answer's lines are kept, more or fewer. `glossary` are entries of a glossary; the prompt lists those that occur in
    the source. `max_new_tokens` is for a sentence; further arguments go to `generate`, which is greedy unless they say
    otherwise.

    ValueError: languages that the prompt names and that are not given, a chat without a template, context or a glossary
    without a place for it, no end token, a `stop` that the tokenizer does not keep.
    """

    kind = "causal"
    auto_class = AutoModelForCausalLM

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str | None = None,
        *,
        past_context: int = 0,
        source_lang: str | None = None,
        target_lang: str | None = None,
        prompt: Prompt | str | None = None,
        format: str = "plain",
        chunk_sentences: int = 1,
        repairs: str = "all",
        glossary: GivenTerms = (),
        batch_size: int = 16,
        batch_tokens: int = 4096,
        max_new_tokens: int = 256,
        **generate_kwargs,
    ):
        super().__init__(
            model,
            tokenizer,
            name or model.config.name_or_path or model.config.model_type,
            past_context=past_context,
            generate_kwargs={"max_new_tokens": max_new_tokens, "do_sample": False, **generate_kwargs},
        )
        self.format, self.prompt = self._format_and_prompt(format, prompt)
        self.language_names = {"source_lang": source_lang, "target_lang": target_lang}
        self.chunk_sentences, self.repairs, self.carries = chunk_sentences, repairs, repairs != "none"
        self.glossary = Glossary.of(glossary, source_lang, target_lang)
        self._check_prompt()
        self._check_chunks()
        self.before = list(special_tokens_of(tokenizer, is_target=False).before) if self.format == "plain" else []
        self.pad = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        self.frame = AnswerFrame(" ", [], self.prompt.stop)
        if self.format != "plain":
            has_ends = model.generation_config.eos_token_id is not None
            self.frame = answer_frame(tokenizer, end_tokens(model) if has_ends else ())
        self.limit = getattr(model.config, "max_position_embeddings", None)
        self.batch_size, self.batch_tokens = batch_size, batch_tokens

    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        """[item][candidate][token of the answer, its end last], natural logarithm, in fp32.

        The context's translations in the prompt are the references. Every prompt is read once, and then all candidates.
        ValueError names an item that is too long, or whose candidate changes how the prompt is cut into tokens.
        """
        rows = [self._answers(item) for item in items]
        candidates: dict[tuple, dict[tuple, None]] = {}  # of every different prompt
        for prompt, answers in rows:
            candidates.setdefault(tuple(prompt), {}).update(dict.fromkeys(map(tuple, answers)))
        groups = [(prompt, list(answers)) for prompt, answers in candidates.items()]
        lengths = [len(answers) * (len(prompt) + max(map(len, answers))) for prompt, answers in groups]
        scores: dict[tuple, list[float]] = {}
        with evaluation_mode(self.model):
            for numbers in TokenBudgetBatchSampler(lengths, self.batch_tokens, shuffle=False):
                scores |= answer_scores(self.model, [groups[number] for number in numbers], self.pad)
        return [[scores[tuple(prompt), tuple(answer)] for answer in answers] for prompt, answers in rows]

    def token_texts(self, items: Sequence[SuiteItem]) -> list[list[list[str]]]:
        return [[piece_texts(self.tokenizer, answer) for answer in self._answers(item)[1]] for item in items]

    @property
    def target_context(self) -> str:
        reads_targets = self.format == "turns" or self.prompt.target_context
        return "none" if self.past_context and not reads_targets else "reference"

    def describe(self) -> dict:
        facts = {"format": self.format, "prompt": asdict(self.prompt), **self.language_names, **self._chunks()}
        return self.model_facts(self.model.config.model_type, **facts)

    @property
    def search(self) -> dict:
        languages = {side: lang for side, lang in self.language_names.items() if lang}
        return super().search | languages | self._chunks() | {"format": self.format, "prompt": self.prompt.template}

    def _chunks(self) -> dict:
        """The settings of chunks and glossary that are not the default."""
        chunks = {"chunk_sentences": self.chunk_sentences} if self.chunk_sentences != 1 else {}
        repairs = {"repairs": self.repairs} if self.repairs != "all" else {}
        return chunks | repairs | ({"glossary": self.glossary.digest} if self.glossary else {})

    def prepare(self, windows: Sequence[SuiteItem]) -> list[EncodedInput]:
        return self._jobs([self._prompt_text(window) for window in windows], windows)

    def translate_spans(self, documents: Sequence[TranslatedDocument], spans: Sequence[Span]) -> None:
        """Translate chunks as numbered lines; in halves where the answer has others."""
        if self.repairs == "none":
            return self._translate_as_written(documents, spans)
        chunks, failed = [span for span in spans if span.size > 1], []
        super().translate_spans(documents, [span for span in spans if span.size == 1])
        for span, (text, ended) in self._answered(documents, chunks, numbered):
            lines, document = numbered_lines(text, span.size), documents[span.document]
            if lines is None:
                failed.append(span.halves)
                count = counted(len([line for line in text.splitlines() if line.strip()]), "line")
                detail = f"an answer of {count} for {span.size} numbered ones: translated in halves"
                document.report(span, "retry", detail)
            else:
                document.write(span, lines, ended)
        for halves in zip(*failed):
            self.translate_spans(documents, halves)

    def _translate_as_written(self, documents: Sequence[TranslatedDocument], spans: Sequence[Span]) -> None:
        """Translate spans as lines without numbers, whose translations are the lines of the answers."""
        for span, (text, ended) in self._answered(documents, spans, "\n".join):
            lines, document = [line.strip() for line in text.splitlines() if line.strip()], documents[span.document]
            document.lines = [*(document.lines or []), *lines]
            if len(lines) != span.size:
                document.report(span, "misaligned", f"{len(lines)} sentences for {span.size}: left as written")
            document.report_end(span, ended)

    def _answered(
        self, documents: Sequence[TranslatedDocument], spans: Sequence[Span], joined: Lines
    ) -> Iterator[tuple[Span, Answer]]:
        """Every span, whose lines `joined` makes one text of, with its answer and whether that came to an end."""
        windows = [window_of(documents, span, self.past_context, 0) for span in spans]
        texts = [self._prompt_text(window, joined) for window in windows]
        return zip(spans, self.answers(self._jobs(texts, windows), [span.size for span in spans]), strict=True)

    def _jobs(self, texts: Sequence[str], windows: Sequence[SuiteItem]) -> list[EncodedInput]:
        prompts = [self._ids(text) for text in texts]
        for prompt, window in zip(prompts, windows, strict=True):
            check_positions(window.where, len(prompt) + 1, "tokens with the prompt", self.limit)
        return [(prompt, []) for prompt in prompts]

    def generate(self, jobs: Sequence[EncodedInput], sentences: int) -> list[Answer]:
        """An answer ends at the first end token or stop; one of several lines also at a blank one."""
        prompts, ends = [prompt for prompt, _ in jobs], end_tokens(self.model)
        ends += [] if self.frame.end_text else self.frame.end[-1:]
        ids, mask = pad_rows(prompts, self.pad, self.model.device, side="left")
        settings = {"max_length": None, "pad_token_id": self.pad, "eos_token_id": ends, **self.generate_kwargs}
        settings["max_new_tokens"] *= sentences
        if self.limit is not None:
            settings["max_new_tokens"] = min(settings["max_new_tokens"], self.limit - ids.shape[1])
        stop = self._stop(sentences)
        if stop:
            settings |= {"stop_strings": stop, "tokenizer": self.tokenizer}
        answers = []
        for row in self.model.generate(input_ids=ids, attention_mask=mask, **settings)[:, ids.shape[1] :].tolist():
            length = next((number for number, token in enumerate(row) if token in ends), None)
            text, ended = self.tokenizer.decode(row[:length], skip_special_tokens=True), length is not None
            if stop:
                text, separator, _ = text.partition(stop)
                ended |= bool(separator)
            answers.append((text, ended))
        return answers

    def _stop(self, sentences: int) -> str:
        """The text at which an answer stops, empty where tokens end it; a blank line where it has several lines."""
        return "\n\n" if sentences > 1 and self.frame.end_text == "\n" else self.frame.end_text

    def _answers(self, item: SuiteItem) -> tuple[list[int], list[list[int]]]:
        """Token ids of the prompt, and for every candidate those that prompt and answer together have beyond it.

        ValueError names an item that is too long, or whose candidate changes the tokens of the prompt.
        """
        text = self._prompt_text(item)
        prompt, answers = self._ids(text), []
        for candidate in item.candidates:
            stop = "" if self.frame.end else self.frame.end_text
            whole = [*self._ids(text + self.frame.before + one_line(candidate) + stop), *self.frame.end]
            if not prompt or whole[: len(prompt)] != prompt:
                raise ValueError(
                    f"{item.where}: the tokens of the prompt change when {candidate!r} follows it; let the prompt end "
                    "in a character after which a new token begins, such as a colon"
                )
            answers.append(whole[len(prompt) :])
        check_positions(item.where, len(prompt) + max(map(len, answers)), "tokens with the prompt", self.limit)
        return prompt, answers

    def _prompt_text(self, item: SuiteItem, joined: Lines | None = None) -> str:
        """The prompt for the current sentence, with the context that the system reads.

        `joined` makes one text of the lines of a chunk.
        """
        before = len(item.source) - 1 - min(self.past_context, len(item.source) - 1)
        context, targets, current = item.source[before:-1], item.target_context[before:], item.source[-1]
        turns: list[dict] = []
        if self.format == "turns":
            turns = earlier_turns(self.prompt, context, targets, self.language_names, joined)
            context, targets = (), ()
        options = {"glossary": glossary_text(self.glossary, current)}
        options |= {} if joined is None else {"lines": joined(current.split("\n"))}
        text = self.prompt.fill([*context, current], targets, **self.language_names, **options)
        if self.format == "plain":
            return text
        return chat_text(self.tokenizer, [*turns, {"role": "user", "content": text}], add_generation_prompt=True)

    def _ids(self, text: str) -> list[int]:
        return [*self.before, *self.tokenizer(text, add_special_tokens=False)["input_ids"]]

    def _format_and_prompt(self, format: str, prompt: Prompt | str | None) -> tuple[str, Prompt]:
        """The format, `auto` by the tokenizer, and the prompt, by default that of the format."""
        if format not in FORMATS:
            raise ValueError(f"format is {format!r}, expected {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
        has_template, default = bool(self.tokenizer.chat_template), Prompt(TURN) if format == "turns" else DEFAULT
        prompt = Prompt(prompt) if isinstance(prompt, str) else prompt
        if format == "auto":
            format = ("chat" if prompt and prompt.has_context else "turns") if has_template else "plain"
            default = Prompt(PLAIN if format == "plain" else TURN)
        if format != "plain" and not has_template:
            raise ValueError(
                f"format is {format!r}, but {type(self.tokenizer).__name__} has no chat template; use format='plain'"
            )
        return format, prompt or default

    def _check_prompt(self) -> None:
        tokenizer = type(self.tokenizer).__name__
        for field in sorted(self.prompt.languages):
            if not self.language_names[field]:
                raise ValueError(
                    f"the prompt names {{{field}}}, but it is not given; give a code such as 'en' or a name such as "
                    f"'English' (docmt: --{field.replace('_', '-')} en, or --option {field}=English)"
                )
        if self.past_context and not self.prompt.has_context and self.format != "turns":
            raise ValueError(
                f"past_context is {self.past_context}, but the prompt has no {{context}}, and the format is "
                f"{self.format!r}, without earlier turns; write {{context}} into the prompt"
            )
        self.check_glossary()
        if self.tokenizer.eos_token_id is None:
            raise ValueError(f"{tokenizer} has no eos_token, at which an answer ends; set it")
        letter, with_stop = (
            len(self.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in ("a", "a" + self.prompt.stop)
        )
        if self.format == "plain" and letter == with_stop:
            raise ValueError(
                f"prompt: stop is {self.prompt.stop!r}, which {tokenizer} does not keep; give a text that has tokens"
            )

    def check_glossary(self) -> None:
        if self.glossary and not self.prompt.takes_glossary:
            raise ValueError("a glossary is given, but the prompt has no {glossary}; write it where the terms belong")

    def _check_chunks(self) -> None:
        """ValueError for invalid sizes and repairs, and for context where no sentence has its own translation."""
        size = self.chunk_sentences
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ValueError(f"chunk_sentences is {size!r}, expected a number of sentences, or 0 for whole documents")
        if self.repairs not in REPAIRS:
            raise ValueError(f"repairs must be one of {', '.join(REPAIRS)}, got {self.repairs!r}")
        if self.repairs == "none" and (size == 1 or self.past_context):
            raise ValueError(
                "repairs='none' is for chunks without context, whose lines are not repaired; give "
                f"chunk_sentences=0 or more than 1, and no past_context (got {size} and {self.past_context})"
            )
