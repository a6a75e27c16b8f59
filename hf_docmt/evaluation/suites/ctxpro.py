"""ctxpro (Wicks and Post 2023): translations that need context, where the last sentence must have a certain word."""

import re
import string
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

from hf_docmt.evaluation.suites.generative_suite import GenerativeItem, GenerativeSuite
from hf_docmt.evaluation.suites.json_fields import field_of
from hf_docmt.evaluation.suites.suite import read_json
from hf_docmt.files import DataError, read_lines
from hf_docmt.messages import install_command

LAST = ("line", "sentence")
EXPECTED = ("normalised", "lowercased")
LANGUAGES = re.compile(r"\.([a-z]{2,3})-([a-z]{2,3})(?:\.|$)")  # `NAME.opensubtitles.en-de.dev.json`
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Ctxpro(GenerativeSuite):
    """Evaluation sets of JSON `evalsets/NAME.json` and text `inputs/NAME`.

    A line of `inputs` is an item's source, sentences joined by `<eos> `; by default the file stands in the folder
    `inputs` beside that of the JSON, as published. Sentences stay as they are.

    The rule `line` looks at the translation of the current sentence and normalises the word that it must have;
    `published` is that of the released script (`ctxpro score`), see `right`.
    """

    format = "ctxpro"
    rules = {"line": {}, "published": {"last": "sentence", "expected": "lowercased"}}

    def read(self) -> list[GenerativeItem]:
        path, entries = self.path, read_json(self.path)
        if not isinstance(entries, list) or not entries:
            raise DataError(f"{path}: expected a JSON list of at least one item, got {type(entries).__name__}")
        inputs = self.inputs or path.parent.parent / "inputs" / path.name.removesuffix(".json")
        if not inputs.is_file():
            raise DataError(f"{path}: its source texts are needed, but {inputs} is not there; give the file of inputs")
        lines = [line for _, line in read_lines(inputs)]
        if len(lines) != len(entries):
            raise DataError(
                f"{inputs}: {len(lines)} lines for {len(entries)} items in {path}; one of the files is cut or altered"
            )
        return [_item(entry, line, number, path, inputs) for number, (entry, line) in enumerate(zip(entries, lines), 1)]

    @classmethod
    def right(
        cls,
        items: Sequence[GenerativeItem],
        outputs: Sequence[Sequence[str]],
        *,
        last: str = "line",
        expected: str = "normalised",
        target_lang: str | None = None,
    ) -> list[bool]:
        """For every item whether the last sentence of its translated document has the expected word.

        It has if, in lower case, without ASCII punctuation and with a blank at both ends, it contains the word between
        blanks. `last`: `line` is the translation of the current sentence, the last entry, or what follows its last
        `<eos>`; `sentence` is what the package sentence_splitter cuts off last, by the rules of `target_lang`, from all
        entries joined by blanks. `expected`: the word is `normalised` as the sentence is (if that leaves anything), or
        just `lowercased`, so that a word with ASCII punctuation is never found. The released script takes `sentence`
        and `lowercased`. ValueError: unknown choices, another number of outputs than items, no target language for
        `sentence`, or one that sentence_splitter does not know.
        """
        for value, known, name in ((last, LAST, "last"), (expected, EXPECTED, "expected")):
            if value not in known:
                raise ValueError(f"{name} is {value!r}, expected {' or '.join(map(repr, known))}")
        if len(outputs) != len(items) or not items:
            raise ValueError(f"{len(outputs)} translated documents for {len(items)} items; one for each item is needed")
        right = []
        for item, output in zip(items, outputs):
            if isinstance(output, str) or not output:
                raise ValueError(f"item {item.item_id}: got {output!r}, expected a list of translated sentences")
            line = output[-1].rpartition("<eos>")[2]
            text = line if last == "line" else _last_sentence(" ".join(output), target_lang)
            word = _normalised(item.expected) if expected == "normalised" else ""
            right.append(f" {word if word.strip() else item.expected.lower()} " in f" {_normalised(text)} ")
        return right

    @classmethod
    def rule_signature(cls, *, last: str = "line", expected: str = "normalised", target_lang: str | None = None) -> str:
        splitter = last if last == "line" else f"sentence_splitter-{version('sentence_splitter')}-{target_lang}"
        return (
            f"right:expected-word-in-last-sentence|last:{splitter}|case:lc|punctuation:ascii-deleted|"
            f"expected:{expected.replace(' ', '-')}"
        )

    @classmethod
    def read_translations(cls, path: str | Path, items: Sequence[GenerativeItem]) -> list[list[str]]:
        """One line for each item, as the released script reads them: the translation of its whole source, or its end.

        DataError: another number of lines than items.
        """
        lines = [line for _, line in read_lines(path)]
        if len(lines) != len(items):
            raise DataError(
                f"{path}: {len(lines)} lines for the {len(items)} items of {items[0].suite}; give one for each item"
            )
        return [[line] for line in lines]


def _item(entry: dict, line: str, number: int, path: Path, inputs: Path) -> GenerativeItem:
    where, source = f"{path}, item {number}", tuple(line.split("<eos> "))
    current, expected = field_of(entry, "src segment", str, where), field_of(entry, "expected", str, where)
    if source[-1].split() != current.split():
        raise DataError(
            f"{inputs}, line {number}: the last sentence is {source[-1]!r}, but the item has {current!r} in {path}; "
            "give the inputs of this set"
        )
    return GenerativeItem(
        item_id=f"{path.name.removesuffix('.json')}:{number}",
        source=source,
        expected=expected,
        rule=field_of(entry, "rule", str, where),
        reference=field_of(entry, "ref segment", str, where),
        distance=field_of(entry, "ante distance", int, where, optional=True),
        group=field_of(entry, "document id", str, where),
        languages=_languages(path),
        location=where,
    )


def _languages(path: Path) -> tuple[str | None, str | None]:
    found = LANGUAGES.search(path.name)
    return found.groups() if found else (None, None)


def _normalised(text: str) -> str:
    return text.lower().translate(NO_PUNCTUATION)


def _last_sentence(text: str, lang: str | None) -> str:
    text = text.strip()
    return (_splitter(lang).split(text) or [text])[-1]


@cache
def _splitter(lang: str | None):
    if not lang:
        raise ValueError("the target language is needed to cut texts into sentences: give target_lang, such as 'de'")
    try:
        from sentence_splitter import SentenceSplitter, SentenceSplitterException
    except ImportError as error:
        raise ValueError(
            "the published rule cuts texts into sentences with sentence_splitter: "
            f"{install_command('ctxpro')}, or take the rule 'line'"
        ) from error
    try:
        return SentenceSplitter(language=lang)
    except SentenceSplitterException as error:
        raise ValueError(f"sentence_splitter has no rules for {lang!r}; take the rule 'line'") from error
