"""Prompts and answers as tokens."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from hf_docmt.data.special_tokens import special_tokens_of
from hf_docmt.evaluation.systems.prompt import Prompt, one_line

FORMATS = ("plain", "chat")


class PromptTokens:
    """What the tokenizer makes of filled prompts and of answers to them.

    `plain`: the tokenizer's first tokens and the text, answered by a blank, the translation and `prompt.stop`. `chat`:
    the text as a user's message in the chat template, answered by the translation and the end token.
    ValueError: languages that the prompt names and that are not given, `chat` without a template, no end token, a
    `stop` that the tokenizer does not keep.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompt: Prompt, format: str, languages: dict):
        self.tokenizer, self.prompt, self.format, self.languages = tokenizer, prompt, format, languages
        self._check()
        self.before = list(special_tokens_of(tokenizer, is_target=False).before) if format == "plain" else []

    def ask(self, source: Sequence[str], target_context: Sequence[str]) -> list[int]:
        """The prompt for the last sentence of `source`."""
        return self._ids(self._text(source, target_context))

    def answers(
        self, source: Sequence[str], target_context: Sequence[str], candidates: Sequence[str], where: str
    ) -> tuple[list[int], list[list[int]]]:
        """The tokens of the prompt, and for every candidate those that prompt and answer together have beyond it.

        ValueError, beginning with `where`, if an answer changes the tokens of the prompt.
        """
        text = self._text(source, target_context)
        prompt, answers = self._ids(text), []
        for candidate in candidates:
            if self.format == "plain":
                whole = self._ids(f"{text} {one_line(candidate)}{self.prompt.stop}")
            else:
                whole = [*self._ids(text + one_line(candidate)), self.tokenizer.eos_token_id]
            if not prompt or whole[: len(prompt)] != prompt:
                raise ValueError(
                    f"{where}: the tokens of the prompt change when {candidate!r} follows it; let the prompt end in a "
                    "character behind which a new token begins, such as a colon"
                )
            answers.append(whole[len(prompt) :])
        return prompt, answers

    def _text(self, source: Sequence[str], target_context: Sequence[str]) -> str:
        text = self.prompt.fill(source, target_context, **self.languages)
        if self.format == "plain":
            return text
        message = [{"role": "user", "content": text}]
        return self.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)

    def _ids(self, text: str) -> list[int]:
        return self.before + self._plain(text)

    def _check(self) -> None:
        tokenizer = type(self.tokenizer).__name__
        if self.format not in FORMATS:
            raise ValueError(f"format is {self.format!r}, expected {' or '.join(FORMATS)}")
        for field in sorted(self.prompt.languages):
            if not self.languages[field]:
                raise ValueError(
                    f"the prompt names {{{field}}}, but it is not given; give a name such as 'English' "
                    f"(docmt: --option {field}=English)"
                )
        if self.format == "chat" and not self.tokenizer.chat_template:
            raise ValueError(f"format is 'chat', but {tokenizer} has no chat template; use format='plain'")
        if self.tokenizer.eos_token_id is None:
            raise ValueError(f"{tokenizer} has no eos_token, at which an answer ends; set it")
        letter, with_stop = (len(self._plain(text)) for text in ("a", "a" + self.prompt.stop))
        if self.format == "plain" and letter == with_stop:
            raise ValueError(
                f"prompt: stop is {self.prompt.stop!r}, which {tokenizer} does not keep; give a text that has tokens"
            )

    def _plain(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]
