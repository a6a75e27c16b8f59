"""Chats in a tokenizer's template: context as earlier turns, and what ends an answer."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from hf_docmt.messages import first_line
from hf_docmt.systems.model_system import one_line
from hf_docmt.systems.prompts import Lines, Prompt


def chat_text(tokenizer: PreTrainedTokenizerBase, messages: Sequence[dict], *, add_generation_prompt: bool) -> str:
    """The messages in the chat template, with thinking switched off. ValueError: it refuses them, or is broken."""
    options = {"tokenize": False, "add_generation_prompt": add_generation_prompt, "enable_thinking": False}
    try:
        return tokenizer.apply_chat_template(messages, **options)
    except TemplateError as error:
        raise ValueError(
            f"the chat template of {type(tokenizer).__name__} fails ({first_line(error)}); correct it, or use "
            "format='chat' or 'plain' (docmt: --option format=plain)"
        ) from error


def earlier_turns(
    prompt: Prompt,
    context: Sequence[str],
    translations: Sequence[str],
    languages: Mapping[str, str | None],
    joined: Lines | None = None,
) -> list[dict]:
    """Context sentences and their translations as messages of user and assistant; others are skipped.

    With `joined` all of them are two messages, each made by `joined` from their lines.
    """
    pairs = [(one_line(source), one_line(target)) for source, target in zip(context, translations, strict=True)]
    pairs = [(source, target) for source, target in pairs if source and target]
    if joined is not None and pairs:
        pairs = [(joined([source for source, _ in pairs]), joined([target for _, target in pairs]))]
    messages = []
    for source, target in pairs:
        question = prompt.fill([""], [], **languages, lines=source)
        messages += [{"role": "user", "content": question}, {"role": "assistant", "content": target}]
    return messages


@dataclass(frozen=True)
class AnswerFrame:
    """The frame of an answer in a chat template: blanks before it, the tokens that end it.

    `end_text` is the text of these tokens unless one of them is special, otherwise empty.
    """

    before: str
    end: list[int]
    end_text: str


def answer_frame(tokenizer: PreTrainedTokenizerBase, ends: Collection[int]) -> AnswerFrame:
    """The frame of an answer in the tokenizer's template, which ends at the first special token or one of `ends`.

    If the template puts nothing after an answer, it is the end token.
    """
    answer, messages = "Answer", [{"role": "user", "content": "?"}]
    prompt = chat_text(tokenizer, messages, add_generation_prompt=True)
    whole = chat_text(tokenizer, [*messages, {"role": "assistant", "content": answer}], add_generation_prompt=False)
    opening, shown, behind = whole.rpartition(answer)
    before = opening.removeprefix(prompt) if opening.removeprefix(prompt).isspace() else ""
    behind = behind if shown else ""
    ids = tokenizer(behind, add_special_tokens=False)["input_ids"]
    special = {index for index, token in tokenizer.added_tokens_decoder.items() if token.special}
    for number, token in enumerate(ids, 1):
        if token in {*special, *tokenizer.all_special_ids, *ends}:
            return AnswerFrame(before, ids[:number], "")
    if behind.strip():
        return AnswerFrame(before, ids, behind.rstrip())
    return AnswerFrame(before, [tokenizer.eos_token_id], "")
