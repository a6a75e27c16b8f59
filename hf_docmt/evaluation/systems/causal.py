"""Causal language models as systems: prompted with context, scored by the log-probability of the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from string import Formatter

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.collators import pad_rows
from hf_docmt.data.samplers import TokenBudgetBatchSampler
from hf_docmt.data.special_tokens import special_tokens_of
from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.evaluation.systems.model_system import (
    ModelSystem,
    check_positions,
    end_tokens,
    evaluation_mode,
    one_line,
    piece_texts,
)

FORMATS = ("plain", "chat")
FIELDS = {
    "instruction": {"source_lang", "target_lang"},
    "context": {"source_lang", "target_lang", "source", "target"},
    "current": {"source_lang", "target_lang", "source"},
}


@dataclass(frozen=True)
class Prompt:
    """Instruction, one part for every context sentence, and the current sentence, put together without anything else.

    Fields in braces: `{source_lang}` and `{target_lang}` (names of the languages), `{source}` (a source sentence) and,
    in `context` only, `{target}`, its translation; without it the model reads source context alone. The answer is
    expected behind a blank and ends at `stop`. ValueError: an unknown field, no `{source}`, an empty `stop`.
    """

    instruction: str = "Translate from {source_lang} to {target_lang}.\n\n"
    context: str = "{source_lang}: {source}\n{target_lang}: {target}\n"
    current: str = "{source_lang}: {source}\n{target_lang}:"
    stop: str = "\n"

    def __post_init__(self):
        for part, allowed in FIELDS.items():
            names = _fields(getattr(self, part), part)
            if unknown := names - allowed:
                raise ValueError(
                    f"prompt, {part}: unknown field {sorted(unknown)[0]!r}, expected {', '.join(sorted(allowed))}; "
                    "write {{ and }} for braces"
                )
            if part != "instruction" and "source" not in names:
                raise ValueError(f"prompt, {part}: {{source}} is missing, got {getattr(self, part)!r}")
        if not self.stop:
            raise ValueError("prompt: stop is empty, expected the text that ends an answer, such as a line break")

    @property
    def target_context(self) -> bool:
        """Whether the model reads translations of the context."""
        return "target" in _fields(self.context, "context")

    @property
    def languages(self) -> set[str]:
        """Which of `source_lang` and `target_lang` the parts name."""
        return {"source_lang", "target_lang"} & set().union(*(_fields(getattr(self, part), part) for part in FIELDS))

    def fill(
        self, source: Sequence[str], target_context: Sequence[str], source_lang: str | None, target_lang: str | None
    ) -> str:
        """The text for the last sentence of `source`, the others being its context.

        `target_context` holds the translations of the context, or nothing where the template has no place for them.
        Line breaks inside a sentence become blanks; context that is blank on every side in use is left out.
        """
        languages = {"source_lang": source_lang, "target_lang": target_lang}
        context, current = [one_line(text) for text in source[:-1]], one_line(source[-1])
        targets = [one_line(text) for text in target_context] if self.target_context else [""] * len(context)
        text = self.instruction.format(**languages)
        for sentence, translation in zip(context, targets, strict=True):
            if sentence or translation:
                text += self.context.format(source=sentence, target=translation, **languages)
        return text + self.current.format(source=current, **languages)


class CausalSystem(ModelSystem):
    """A language model that continues a text; `prompt` (by default `Prompt()`) holds the source and its past context.

    `format` is `plain`, the tokenizer's first tokens and the text, answered by a blank, the translation and
    `prompt.stop`, or `chat`, the text as a user's message in the tokenizer's chat template, answered by the translation
    and the end token. `source_lang` and `target_lang` are the languages as the prompt names them. Batches are padded on
    the right for scores and on the left for translation, whatever the tokenizer's setting. Further arguments go to
    `generate`, which is greedy unless they say otherwise. ValueError: languages that the prompt names and that are not
    given, `chat` without a template, no end token, a `stop` that the tokenizer does not keep.
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
        prompt: Prompt | None = None,
        format: str = "plain",
        batch_size: int = 16,
        batch_tokens: int = 4096,
        max_new_tokens: int = 256,
        **generate_kwargs,
    ):
        super().__init__(
            model,
            tokenizer,
            name or model.config._name_or_path or model.config.model_type,
            past_context=past_context,
            generate_kwargs={"max_new_tokens": max_new_tokens, "do_sample": False, **generate_kwargs},
        )
        self.prompt, self.format = prompt or Prompt(), format
        self.language_names = {"source_lang": source_lang, "target_lang": target_lang}
        self._check_prompt()
        self.before = list(special_tokens_of(tokenizer, is_target=False).before) if format == "plain" else []
        self.pad = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        self.limit = getattr(model.config, "max_position_embeddings", None)
        self.batch_size, self.batch_tokens = batch_size, batch_tokens

    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        """[item][candidate][token of the answer, its end last], natural logarithm, in fp32.

        The context's translations in the prompt are the references. ValueError names an item that is too long, or
        whose candidate changes how the prompt is cut into tokens.
        """
        if not items:
            raise ValueError("the suite has no items to score")
        rows = [self._answers(item) for item in items]
        texts = list(dict.fromkeys((tuple(prompt), tuple(answer)) for prompt, row in rows for answer in row))
        scores, lengths = {}, [len(prompt) + len(answer) for prompt, answer in texts]
        with evaluation_mode(self.model):
            for numbers in TokenBudgetBatchSampler(lengths, self.batch_tokens, shuffle=False):
                batch = [texts[number] for number in numbers]
                scores |= zip(batch, self._scores(batch))
        return [[scores[tuple(prompt), tuple(answer)] for answer in row] for prompt, row in rows]

    def token_texts(self, items: Sequence[SuiteItem]) -> list[list[list[str]]]:
        return [[piece_texts(self.tokenizer, answer) for answer in self._answers(item)[1]] for item in items]

    @property
    def target_context(self) -> str:
        return "none" if self.past_context and not self.prompt.target_context else "reference"

    def describe(self) -> dict:
        parts = {part: getattr(self.prompt, part) for part in ("instruction", "context", "current", "stop")}
        return self.model_facts(self.model.config.model_type, format=self.format, prompt=parts, **self.language_names)

    def prepare(self, windows: Sequence[SuiteItem]) -> list[tuple[list[int], list[int]]]:
        prompts = [self._ids(self._prompt_text(window)) for window in windows]
        for prompt, window in zip(prompts, windows):
            check_positions(window.where, len(prompt) + 1, "tokens with the prompt", self.limit)
        return [(prompt, []) for prompt in prompts]

    def generate(self, jobs: Sequence[tuple[list[int], list[int]]]) -> list[tuple[str, bool]]:
        """An answer stands before the first end token or `stop`."""
        prompts, ends = [prompt for prompt, _ in jobs], end_tokens(self.model)
        ids = pad_rows(prompts, self.pad, side="left").to(self.model.device)
        mask = pad_rows([[1] * len(prompt) for prompt in prompts], 0, side="left").to(ids.device)
        settings = {"pad_token_id": self.pad, **self.generate_kwargs}
        if self.limit is not None:
            settings["max_new_tokens"] = min(settings["max_new_tokens"], self.limit - ids.shape[1])
        if self.format == "plain":
            settings |= {"stop_strings": self.prompt.stop, "tokenizer": self.tokenizer}
        answers = []
        for row in self.model.generate(input_ids=ids, attention_mask=mask, **settings)[:, ids.shape[1] :].tolist():
            length = next((number for number, token in enumerate(row) if token in ends), None)
            text, ended = self.tokenizer.decode(row[:length], skip_special_tokens=True), length is not None
            if self.format == "plain":
                text, stop, _ = text.partition(self.prompt.stop)
                ended |= bool(stop)
            answers.append((text, ended))
        return answers

    def _answers(self, item: SuiteItem) -> tuple[list[int], list[list[int]]]:
        """Token ids of the prompt, and for every candidate those that prompt and answer together have beyond it.

        ValueError names an item that is too long, or whose candidate changes the tokens of the prompt.
        """
        text = self._prompt_text(item)
        prompt, answers = self._ids(text), []
        for candidate in item.candidates:
            if self.format == "plain":
                whole = self._ids(f"{text} {one_line(candidate)}{self.prompt.stop}")
            else:
                whole = [*self._ids(text + one_line(candidate)), self.tokenizer.eos_token_id]
            if not prompt or whole[: len(prompt)] != prompt:
                raise ValueError(
                    f"{item.where}: the tokens of the prompt change when {candidate!r} follows it; let the prompt end "
                    "in a character behind which a new token begins, such as a colon"
                )
            answers.append(whole[len(prompt) :])
        check_positions(item.where, len(prompt) + max(map(len, answers)), "tokens with the prompt", self.limit)
        return prompt, answers

    @torch.inference_mode()
    def _scores(self, texts: list[tuple[tuple, tuple]]) -> list[list[float]]:
        """Log-probabilities of the answers' tokens in a batch of (prompt, answer)."""
        rows = [[*prompt, *answer] for prompt, answer in texts]
        ids = pad_rows(rows, self.pad).to(self.model.device)  # (B, T)
        mask = pad_rows([[1] * len(row) for row in rows], 0).to(ids.device)
        logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits  # (B, T, V)
        scores = []
        for row, (prompt, answer) in enumerate(texts):
            start, stop = len(prompt), len(prompt) + len(answer)
            logs = logits[row, start - 1 : stop - 1].float().log_softmax(dim=-1)  # (tokens of the answer, V)
            scores.append(logs.gather(1, ids[row, start:stop, None])[:, 0].tolist())
        return scores

    def _prompt_text(self, item: SuiteItem) -> str:
        """The prompt for the current sentence, with as much of its context as the system reads."""
        before = len(item.source) - 1 - min(self.past_context, len(item.source) - 1)
        text = self.prompt.fill(item.source[before:], item.target_context[before:], **self.language_names)
        if self.format == "plain":
            return text
        message = [{"role": "user", "content": text}]
        return self.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)

    def _ids(self, text: str) -> list[int]:
        return [*self.before, *self.tokenizer(text, add_special_tokens=False)["input_ids"]]

    def _check_prompt(self) -> None:
        tokenizer = type(self.tokenizer).__name__
        if self.format not in FORMATS:
            raise ValueError(f"format is {self.format!r}, expected {' or '.join(FORMATS)}")
        for field in sorted(self.prompt.languages):
            if not self.language_names[field]:
                raise ValueError(
                    f"the prompt names {{{field}}}, but it is not given; give a name such as 'English' "
                    f"(docmt: --option {field}=English)"
                )
        if self.format == "chat" and not self.tokenizer.chat_template:
            raise ValueError(f"format is 'chat', but {tokenizer} has no chat template; use format='plain'")
        if self.tokenizer.eos_token_id is None:
            raise ValueError(f"{tokenizer} has no eos_token, at which an answer ends; set it")
        letter, with_stop = (
            len(self.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in ("a", "a" + self.prompt.stop)
        )
        if self.format == "plain" and letter == with_stop:
            raise ValueError(
                f"prompt: stop is {self.prompt.stop!r}, which {tokenizer} does not keep; give a text that has tokens"
            )


def _fields(template: str, part: str) -> set[str]:
    try:
        return {name for _, name, _, _ in Formatter().parse(template) if name is not None}
    except ValueError as error:
        raise ValueError(f"prompt, {part}: {error} in {template!r}; write {{{{ and }}}} for braces") from error
