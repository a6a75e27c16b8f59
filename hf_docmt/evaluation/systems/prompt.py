"""What a causal language model is given to read: context and source in a template, and how its answer ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from string import Formatter

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


def one_line(text: str) -> str:
    """The text with its line breaks as blanks, without blanks at its ends."""
    return " ".join(text.splitlines()).strip()


def _fields(template: str, part: str) -> set[str]:
    try:
        return {name for _, name, _, _ in Formatter().parse(template) if name is not None}
    except ValueError as error:
        raise ValueError(f"prompt, {part}: {error} in {template!r}; write {{{{ and }}}} for braces") from error
