"""Prompts of language models: the text around a sentence, or a chunk of sentences, with its context and glossary."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter

from transformers.models.whisper.tokenization_whisper import LANGUAGES

from hf_docmt.data.glossary import Glossary, Term
from hf_docmt.data.language_codes import primary_language
from hf_docmt.files import read_lines
from hf_docmt.systems.model_system import one_line

NAMED = {"source_lang", "target_lang", "source_language", "target_language"}
FIELDS = {
    "instruction": NAMED | {"source", "glossary"},
    "context": NAMED | {"source", "target"},
    "current": NAMED | {"source", "glossary"},
}
Lines = Callable[[Sequence[str]], str]  # lines -> the text that they are in a prompt
CONTEXT_FIELD = re.compile(r"(?<!\{)\{context\}(?!\})")
NUMBERED = re.compile(r"\s*\**(\d+)\s?[.):]\**\s*(\S.*)")  # 1. or **1.**


@dataclass(frozen=True)
class Prompt:
    """Instruction, one part for every context sentence, and the current sentence, put together without anything else.

    Fields in braces: `{source_lang}` and `{target_lang}` (the languages as given), `{source_language}` and
    `{target_language}` (their names in English where they are codes), `{source}` (the source to translate),
    `{glossary}` (see `glossary_text`) and, in `context` only, `{target}`, the translation of a context sentence.
    Without that the model reads source context alone, and with an empty `context` none but in earlier turns of a chat.
    The answer is expected after a blank and ends at `stop`. ValueError: an unknown field, no `{source}`, an empty
    `stop`.
    """

    instruction: str = "Translate from {source_lang} to {target_lang}.\n\n"
    context: str = "{source_lang}: {source}\n{target_lang}: {target}\n"
    current: str = "{source_lang}: {source}\n{target_lang}:"
    stop: str = "\n"

    def __post_init__(self):
        for part, allowed in FIELDS.items():
            _fields(getattr(self, part), f"prompt, {part}", allowed)
        if "source" not in self.fields("instruction") | self.fields("current"):
            raise ValueError(f"prompt, current: {{source}} is missing, got {self.current!r}")
        if self.context and "source" not in self.fields("context"):
            raise ValueError(f"prompt, context: {{source}} is missing, got {self.context!r}")
        if not self.stop:
            raise ValueError("prompt: stop is empty, expected the text that ends an answer, such as a line break")

    @classmethod
    def of_template(cls, template: str) -> "Prompt":
        """The prompt of one text with `{source}`, and `{context}` as the place of pairs of context sentences.

        ValueError: an empty text, `{context}` twice, and as for the class.
        """
        if not template.strip():
            raise ValueError("the prompt is empty; expected a text with {source}, and maybe {context} and {glossary}")
        _fields(template, "prompt", {"context", *FIELDS["current"]})
        parts = CONTEXT_FIELD.split(template)
        if len(parts) > 2:
            raise ValueError(f"the prompt has {{context}} {len(parts) - 1} times; leave one")
        pair = "{source_language}: {source}\n{target_language}: {target}\n" if len(parts) == 2 else ""
        return cls(instruction=parts[0] if pair else "", context=pair, current=parts[-1])

    def fields(self, part: str) -> set[str]:
        """The names of the fields of a part."""
        return _fields(getattr(self, part), f"prompt, {part}", FIELDS[part])

    @property
    def target_context(self) -> bool:
        """Whether the model reads translations of the context."""
        return "target" in self.fields("context")

    @property
    def takes_glossary(self) -> bool:
        """Whether there is a place for terms."""
        return "glossary" in self.fields("instruction") | self.fields("current")

    @property
    def languages(self) -> set[str]:
        """The names, of `source_lang` and `target_lang`, that the parts contain."""
        names = NAMED & set().union(*map(self.fields, FIELDS))
        return {name.replace("language", "lang") for name in names}

    def fill(
        self,
        source: Sequence[str],
        target_context: Sequence[str],
        source_lang: str | None,
        target_lang: str | None,
        *,
        lines: str | None = None,
        glossary: str = "",
    ) -> str:
        """The text for the last sentence of `source`, the others being its context.

        `target_context` holds the translations of the context, or nothing where the template has no place for them.
        Line breaks inside a sentence become blanks; context that is blank on every side in use is skipped. `lines`
        replace the last sentence, with their line breaks.
        """
        names = {"source_language": language_name(source_lang), "target_language": language_name(target_lang)}
        names |= {"source_lang": source_lang, "target_lang": target_lang}
        current = {"source": one_line(source[-1]) if lines is None else lines, "glossary": glossary}
        context = [one_line(text) for text in source[:-1]]
        targets = [one_line(text) for text in target_context] if self.target_context else [""] * len(context)
        pairs = "".join(
            self.context.format(source=sentence, target=translation, **names)
            for sentence, translation in zip(context, targets, strict=True)
            if sentence or translation
        )
        return self.instruction.format(**names, **current) + pairs + self.current.format(**names, **current)


def _fields(template: str, part: str, allowed: set[str]) -> set[str]:
    """The names of the fields of a template. ValueError: other names, single braces."""
    try:
        names = {name for _, name, _, _ in Formatter().parse(template) if name is not None}
    except ValueError as error:
        raise ValueError(f"{part}: {error} in {template!r}; write {{{{ and }}}} for braces") from error
    if unknown := sorted(names - allowed):
        expected = f"expected {', '.join(sorted(allowed))}"
        raise ValueError(f"{part}: unknown field {unknown[0]!r}, {expected}; write {{{{ and }}}} for braces")
    return names


def language_name(lang: str | None) -> str | None:
    """The English name of a code, with the code where it has a script or region; any other text is a name itself.

    >>> [language_name(lang) for lang in ("de", "zh_TW", "Low German")]
    ['German', 'Chinese (zh_TW)', 'Low German']
    """
    name = LANGUAGES.get(primary_language(lang), "").title()
    if not lang or not name:
        return lang
    return name if lang.isalpha() else f"{name} ({lang})"


def read_prompt(path: str | Path) -> str:
    """The template in a file, without the line breaks at its end. ValueError: it is not a prompt, or cannot be read."""
    template = "\n".join(line for _, line in read_lines(path)).rstrip("\n")
    try:
        Prompt.of_template(template)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return template


def glossary_text(glossary: Glossary | None, source: str) -> str:
    r"""The terms that occur in the source, with their translations; empty without any.

    >>> glossary_text(Glossary([("lamp", "Leuchte"), ("lamp", "Funzel", True), ("art", "Kunst")], "en", "de"), "Lamps!")
    'Use these translations of terms:\nlamp = Leuchte (not Funzel)\n\n'
    """
    found = dict.fromkeys(match.term for match in glossary.in_source(source)) if glossary else {}
    return f"Use these translations of terms:\n{''.join(map(_term_line, found))}\n" if found else ""


def _term_line(term: Term) -> str:
    forbidden = f"not {', '.join(term.forbidden)}" if term.forbidden else ""
    if not term.targets:
        return f"{term.source}: {forbidden}\n"
    return f"{term.source} = {' or '.join(term.targets)}{f' ({forbidden})' if forbidden else ''}\n"


def numbered(lines: Sequence[str]) -> str:
    r"""The sentences as lines that begin with their numbers.

    >>> numbered(["Guten Tag.", "Bitte!"])
    '1. Guten Tag.\n2. Bitte!'
    """
    return "\n".join(f"{number}. {one_line(line)}" for number, line in enumerate(lines, 1))


def numbered_lines(text: str, size: int) -> list[str] | None:
    r"""The lines of an answer that are numbered from 1 to `size`, without their numbers; None where it has others.

    Text before the first of them, such as `Here is the translation:`, is dropped, as is text after the last one and a
    blank line.

    >>> numbered_lines("Sure!\n1. Hello.\n2) Please!", 2), numbered_lines("1. Hello. Please!", 2)
    (['Hello.', 'Please!'], None)
    """
    paragraphs = [
        [NUMBERED.fullmatch(line) for line in lines.splitlines() if line.strip()] for lines in text.split("\n\n")
    ]
    while paragraphs and not any(paragraphs[-1]):
        paragraphs.pop()
    lines = [line for paragraph in paragraphs for line in paragraph]
    while lines and lines[0] is None:
        lines.pop(0)
    matches = [match for match in lines if match]
    if len(matches) != len(lines) or [int(match[1]) for match in matches] != list(range(1, size + 1)):
        return None
    return [match[2].strip() for match in matches]
