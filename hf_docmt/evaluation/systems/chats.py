"""Chats in a tokenizer's template: context as earlier turns, and what ends an answer."""

from collections.abc import Collection, Mapping, Sequence

from transformers import PreTrainedTokenizerBase

from hf_docmt.evaluation.systems.model_system import one_line
from hf_docmt.evaluation.systems.prompts import Lines, Prompt


def chat_text(tokenizer: PreTrainedTokenizerBase, messages: Sequence[dict], *, add_generation_prompt: bool) -> str:
    """The messages in the chat template, which is told not to think."""
    options = {"tokenize": False, "add_generation_prompt": add_generation_prompt, "enable_thinking": False}
    return tokenizer.apply_chat_template(messages, **options)


def earlier_turns(
    prompt: Prompt,
    context: Sequence[str],
    translations: Sequence[str],
    languages: Mapping[str, str | None],
    joined: Lines | None = None,
) -> list[dict]:
    """Context sentences and their translations as messages of user and assistant; those without a translation are none.

    With `joined` all of them are two messages, each of which is what `joined` makes of their lines.
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


def end_of_turn(tokenizer: PreTrainedTokenizerBase, ends: Collection[int]) -> tuple[list[int], str]:
    """The tokens that the template puts behind an answer, and their text where they are not ended by a special token.

    They end at the first special one, or one of `ends`. Where the template puts nothing there, it is the end token.
    """
    answer = "Answer"
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": answer}]
    _, shown, behind = chat_text(tokenizer, messages, add_generation_prompt=False).rpartition(answer)
    behind = behind if shown else ""
    ids = tokenizer(behind, add_special_tokens=False)["input_ids"]
    special = {index for index, token in tokenizer.added_tokens_decoder.items() if token.special}
    for number, token in enumerate(ids, 1):
        if token in {*special, *tokenizer.all_special_ids, *ends}:
            return ids[:number], ""
    return (ids, behind.rstrip()) if behind.strip() else ([tokenizer.eos_token_id], "")
