"""Prompts of language models: the text around a sentence, or a chunk of sentences, with its context and glossary."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter

from transformers.models.whisper.tokenization_whisper import LANGUAGES

from hf_docmt.data.glossary import Glossary, Term
from hf_docmt.data.language_codes import primary_language
from hf_docmt.files import read_lines
from hf_docmt.systems.model_system import one_line

NAMED = ("source_lang", "target_lang", "source_language", "target_language")
PAIR = "{source_language}: {source}\n{target_language}: {target}\n"
Lines = Callable[[Sequence[str]], str]  # lines -> the text that they are in a prompt
NUMBERED = re.compile(r"\s*\**(\d+)\s?[.):]\**\s*(\S.*)")  # 1. or **1.**


@dataclass(frozen=True)
class Prompt:
    """A text with fields in braces, of which `{source}` is the source to translate.

    `{context}` is the place of the context, a `pair` for every sentence of it: there `{source}` is that sentence and
    `{target}` its translation, without which the model reads source context alone. Without `{context}` it reads none
    but in earlier turns of a chat. `{glossary}`: see `glossary_text`. `{source_lang}` and `{target_lang}` are the
    languages as given, `{source_language}` and `{target_language}` their names in English where they are codes.
    The answer is expected after a blank and ends at `stop`. ValueError: an empty text, an unknown field, no `{source}`,
    `{context}` twice, an empty `stop`.
    """

    template: str
    pair: str = PAIR
    stop: str = "\n"

    def __post_init__(self):
        if not self.template.strip():
            raise ValueError("the prompt is empty; expected a text with {source}, and maybe {context} and {glossary}")
        own = {*NAMED, "source", "glossary", "context"}
        parts = {"prompt": (self.template, own), "prompt, context": (self.pair, {*NAMED, "source", "target"})}
        for part, (text, allowed) in parts.items():
            if "source" not in _fields(text, part, allowed):
                raise ValueError(f"{part}: {{source}} is missing, got {text!r}")
        if (times := _fields(self.template).count("context")) > 1:
            raise ValueError(f"the prompt has {{context}} {times} times; leave one")
        if not self.stop:
            raise ValueError("prompt: stop is empty, expected the text that ends an answer, such as a line break")

    @property
    def has_context(self) -> bool:
        """Whether there is a place for context."""
        return "context" in _fields(self.template)

    @property
    def target_context(self) -> bool:
        """Whether the model reads translations of the context."""
        return self.has_context and "target" in _fields(self.pair)

    @property
    def takes_glossary(self) -> bool:
        """Whether there is a place for terms."""
        return "glossary" in _fields(self.template)

    @property
    def languages(self) -> set[str]:
        """The names, of `source_lang` and `target_lang`, that the text contains."""
        names = _fields(self.template) + (_fields(self.pair) if self.has_context else [])
        return {name.replace("language", "lang") for name in names if name in NAMED}

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
            self.pair.format(source=sentence, target=translation, **names)
            for sentence, translation in zip(context, targets, strict=True)
            if sentence or translation
        )
        return self.template.format(context=pairs, **names, **current)


def _fields(template: str, part: str = "prompt", allowed: Collection[str] = ()) -> list[str]:
    """The names of the fields of a template. ValueError: other names than those `allowed`, single braces."""
    try:
        names = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise ValueError(f"{part}: {error} in {template!r}; write {{{{ and }}}} for braces") from error
    if allowed and (unknown := sorted(set(names).difference(allowed))):
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
        Prompt(template)
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
