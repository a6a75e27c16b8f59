"""Causal language models as systems: prompted with context, scored by the log-probability of the answer."""

import warnings
from collections.abc import Sequence

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.collators import pad_rows
from hf_docmt.data.samplers import TokenBudgetBatchSampler
from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.evaluation.systems.model_system import (
    ModelSystem,
    auto_class,
    end_tokens,
    evaluation_mode,
    load_pretrained,
)
from hf_docmt.evaluation.systems.prompt import Prompt
from hf_docmt.evaluation.systems.prompt_tokens import PromptTokens
from hf_docmt.evaluation.systems.token_texts import piece_texts
from hf_docmt.evaluation.systems.window_translation import Window, translate_windows


class CausalSystem(ModelSystem):
    """A language model that continues a text; `prompt` (by default `Prompt()`) holds the source and its past context.

    `format` is `plain` (the text as it is) or `chat` (a user's message in the tokenizer's chat template), see
    `PromptTokens`; `source_lang` and `target_lang` are the languages as the prompt names them. Batches are padded on
    the right for scores and on the left for translation, whatever the tokenizer's setting. Further arguments go to
    `generate`, which is greedy unless they say otherwise. ValueError as in `PromptTokens`.
    """

    kind = "causal"

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
        self.tokens = PromptTokens(tokenizer, self.prompt, format, self.language_names)
        self.pad = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        self.limit = getattr(model.config, "max_position_embeddings", None)
        self.batch_size, self.batch_tokens = batch_size, batch_tokens

    @classmethod
    def matches_config(cls, config: dict) -> bool:
        """A causal language model of transformers."""
        return auto_class(config) is AutoModelForCausalLM

    @classmethod
    def load_model(cls, name: str, dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """By `AutoModelForCausalLM`."""
        return load_pretrained(AutoModelForCausalLM, name, dtype)

    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        """[item][candidate][token of the answer, its end last], natural logarithm, in fp32.

        The context's translations in the prompt are the references. ValueError names an item that is too long, or
        whose candidate changes how the prompt is cut into tokens.
        """
        if not items:
            raise ValueError("the suite has no items to score")
        rows = [self._answers(item) for item in items]
        texts = list(dict.fromkeys((tuple(prompt), tuple(answer)) for prompt, row in rows for answer in row))
        found, lengths = {}, [len(prompt) + len(answer) for prompt, answer in texts]
        with evaluation_mode(self.model):
            for numbers in TokenBudgetBatchSampler(lengths, self.batch_tokens, shuffle=False):
                batch = [texts[number] for number in numbers]
                found |= zip(batch, self._scores(batch))
        return [[found[tuple(prompt), tuple(answer)] for answer in row] for prompt, row in rows]

    def token_texts(self, items: Sequence[SuiteItem]) -> list[list[list[str]]]:
        """The tokens that `token_log_probabilities` scores, as text, in the same order."""
        return [[piece_texts(self.tokenizer, answer) for answer in self._answers(item)[1]] for item in items]

    def translate(self, documents: list[list[str]]) -> list[list[str]]:
        """Translations of documents, lists of sentences, each as long as the document; an answer ends at `stop`.

        With translations of the context in the prompt sentence by sentence. Warns of answers that did not end before
        `max_new_tokens`.
        """
        with evaluation_mode(self.model):
            return translate_windows(
                documents,
                self._translate_windows,
                past_context=self.past_context,
                future_context=0,
                target_context=self.prompt.target_context and self.past_context > 0,
            )

    @property
    def target_context(self) -> str:
        """`none` where the prompt holds source context alone, else `reference`, what it holds in scoring."""
        return "none" if self.past_context and not self.prompt.target_context else "reference"

    def describe(self) -> dict:
        """The `model` section of a report."""
        parts = {part: getattr(self.prompt, part) for part in ("instruction", "context", "current", "stop")}
        return self.model_facts(self.model.config.model_type, format=self.format, prompt=parts, **self.language_names)

    def _answers(self, item: SuiteItem) -> tuple[list[int], list[list[int]]]:
        """Token ids of the prompt, and of every candidate as its answer."""
        past = min(self.past_context, len(item.source) - 1)
        source = item.source[len(item.source) - 1 - past :]
        context = item.target_context[len(item.target_context) - past :]
        prompt, answers = self.tokens.answers(source, context, item.candidates, item.where)
        self._check_length(len(prompt) + max(map(len, answers)), item.where)
        return prompt, answers

    @torch.inference_mode()
    def _scores(self, texts: list[tuple[tuple, tuple]]) -> list[list[float]]:
        """Log-probabilities of the answers' tokens in a batch of (prompt, answer)."""
        rows = [[*prompt, *answer] for prompt, answer in texts]
        ids = pad_rows(rows, self.pad).to(self.model.device)  # (B, T)
        mask = pad_rows([[1] * len(row) for row in rows], 0).to(ids.device)
        logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits  # (B, T, V)
        found = []
        for row, (prompt, answer) in enumerate(texts):
            start, stop = len(prompt), len(prompt) + len(answer)
            logs = logits[row, start - 1 : stop - 1].float().log_softmax(dim=-1)  # (tokens of the answer, V)
            found.append(logs.gather(1, ids[row, start:stop, None])[:, 0].tolist())
        return found

    def _translate_windows(self, windows: list[Window]) -> list[str]:
        prompts = [self.tokens.ask(window.source, window.target_context) for window in windows]
        for prompt, window in zip(prompts, windows):
            self._check_length(len(prompt) + 1, window.where)
        order = sorted(range(len(prompts)), key=lambda number: len(prompts[number]))
        found, cut = [""] * len(prompts), 0
        for start in range(0, len(order), self.batch_size):
            numbers = order[start : start + self.batch_size]
            for number, (text, ended) in zip(numbers, self._generate([prompts[number] for number in numbers])):
                found[number] = text
                cut += not ended
        if cut:
            warnings.warn(f"{self.name}: {cut} answers did not end before max_new_tokens", stacklevel=2)
        return found

    @torch.inference_mode()
    def _generate(self, prompts: list[list[int]]) -> list[tuple[str, bool]]:
        """The answers, each up to its end, and whether it had one."""
        ids = pad_rows(prompts, self.pad, side="left").to(self.model.device)
        mask = pad_rows([[1] * len(prompt) for prompt in prompts], 0, side="left").to(ids.device)
        settings = {"pad_token_id": self.pad, **self.generate_kwargs}
        if self.limit is not None:
            settings["max_new_tokens"] = min(settings["max_new_tokens"], self.limit - ids.shape[1])
        if self.format == "plain":
            settings |= {"stop_strings": self.prompt.stop, "tokenizer": self.tokenizer}
        output = self.model.generate(input_ids=ids, attention_mask=mask, **settings)[:, ids.shape[1] :]
        return [self._answer(row) for row in output.tolist()]

    def _answer(self, ids: list[int]) -> tuple[str, bool]:
        ends = end_tokens(self.model)
        length = next((number for number, token in enumerate(ids) if token in ends), None)
        text, ended = self.tokenizer.decode(ids[:length], skip_special_tokens=True), length is not None
        if self.format == "plain":
            ended |= self.prompt.stop in text
            text = text.split(self.prompt.stop)[0]
        return text, ended

    def _check_length(self, length: int, where: str) -> None:
        if self.limit is not None and length > self.limit:
            raise ValueError(
                f"{where}: {length} tokens with the prompt, but the model has positions for {self.limit}; give less "
                "context"
            )
