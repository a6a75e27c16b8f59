"""The model card that a configuration alone can fill; it is written next to saved and pushed models.

The texts are templates in `hub_cards/`: that of an architecture is `architectures/NAME.md.j2`, or `card_NAME.md.j2`
next to its configuration in another package. All of them extend `model_card.md.j2`.
"""

import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import jinja2
import yaml
from markupsafe import Markup
from transformers import PreTrainedConfig, PreTrainedModel

from hf_docmt.loading.carried_code import PACKAGE, carry_code
from hf_docmt.modeling.generation_mixin import TORCH, TRANSFORMERS
from hf_docmt.modeling.sequence_format import LANGUAGES, example_codes, language_of, uses_language
from hf_docmt.reports.signature import extra_digits
from hf_docmt.reports.tables import code_span, escape_markdown

MARK = "<!-- Written from config.json by hf-docmt. Remove this line, and your text stays as it is. -->"
DRAFTS = (  # marks of generated cards: this module's, those of 0.2.0, templates of transformers
    MARK,
    "<!-- Written from config.json by the model's own code.",
    "This model card has been automatically generated",
    "This model card has been generated automatically",
)
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
LANGUAGE_CODE = re.compile(r"([A-Za-z]{2,3})([_-]\w+)*")
PLACEHOLDER = "ORGANISATION/MODEL"
DECIMALS = 2  # of scores in percent
EXAMPLES = {  # two sentences, of which the second needs the first
    "eng": ["The cat is hungry.", "It wants its dinner."],
    "deu": ["Die Katze hat Hunger.", "Sie will ihr Futter."],
    "fra": ["La clé est sur la table.", "Elle est à Marie."],
    "rus": ["Кошка голодна.", "Она хочет есть."],
    "zho": ["猫饿了。", "它想吃饭。"],
}


def version_ranges() -> str:
    """The tested versions in words: `torch 2.13 and transformers 5.23 to 5.24`."""
    tested = {"torch": TORCH, "transformers": TRANSFORMERS}
    return " and ".join(f"{name} {' to '.join(dict.fromkeys(versions))}" for name, versions in tested.items())


def write_card(model: PreTrainedModel, folder: str | os.PathLike, name: str | None = None) -> None:
    """Write README.md next to a saved model, or one that is pushed as `name`, unless a person has written one.

    One of this module, or a template of transformers, is written again (see `is_draft`). The card of an adapter is not
    this model's, and is left to peft.
    """
    path = Path(folder) / "README.md"
    needs = None
    if not type(model.config).__module__.startswith(f"{PACKAGE}."):
        needs = carry_code(folder) or None
    if os.path.lexists(path):
        if not path.is_file() or not is_draft(path.read_text(encoding="utf-8", errors="replace")):
            return
    if not getattr(model, "_hf_peft_config_loaded", False):
        path.write_text(str(ModelCardText(model.config, name, needs)), encoding="utf-8")


def is_draft(card: str) -> bool:
    """Whether this card was generated, by this module or from a template of transformers."""
    return any(sign in card for sign in DRAFTS)


def render(template: str, **values) -> str:
    """A template of `hub_cards/` with its values, none of which can be Markdown."""
    return _environment().get_template(template).render(**values)


class ModelCardText:
    """The card of a model of one configuration; `str` of it is the whole README.md.

    Args:
        config: the model's configuration.
        name: the model's name on the Hub, for the title and the examples; without it there is a placeholder.
        needs: packages that the tokenizer needs in addition to torch and transformers; None = unknown.
        example: two sentences of the source language that the model was made for; None = those of `EXAMPLES`.
    """

    def __init__(
        self,
        config: PreTrainedConfig,
        name: str | None = None,
        needs: Sequence[str] | None = None,
        example: Sequence[str] | None = None,
    ):
        self.config, self.name, self.needs, self.own_example = config, name, needs, example

    def __str__(self) -> str:
        header = yaml.safe_dump(self.metadata(), sort_keys=False, allow_unicode=True)
        return f"---\n{header}---\n\n{MARK}\n\n{self.body()}\n"

    def body(self, **facts) -> str:
        """The card below its header; `facts` are further variables of `model_card.md.j2`."""
        values = {"form": "document", "name": self.name or self.config.model_type, "versions": version_ranges()}
        text = self._template().render(card=self, config=self.config, PLACEHOLDER=PLACEHOLDER, **values | facts)
        return text.strip()

    def _template(self) -> jinja2.Template:
        """The template of the architecture, or a general one."""
        name = self.config.model_type.removeprefix("docmt-")
        beside = Path(sys.modules[type(self.config).__module__].__file__ or "").with_name(f"card_{name}.md.j2")
        return _environment().select_template([f"architectures/{name}.md.j2", str(beside), "model_card.md.j2"])

    def metadata(self) -> dict:
        """The fields of the header: library, task, tags, and what is known of languages, base model and widget."""
        languages = [self.language(side) for side in ("source", "target")]
        optional = {
            "language": [code for code in dict.fromkeys(languages) if code],
            "base_model": self.base_model(),
            "widget": [{"text": " ".join(self.example())}] if self.source_example() else None,
        }
        return {
            "library_name": "transformers",
            "pipeline_tag": "translation",
            "tags": ["translation", "document-level", "hf-docmt", self.config.model_type],
        } | {field: value for field, value in optional.items() if value}

    # Functions for the templates

    def language(self, side: str) -> str | None:
        """The code of a side's language as the Hub lists it, of two or three letters; None without one."""
        match = LANGUAGE_CODE.fullmatch(getattr(self.config, f"{side}_lang") or "")
        return match[1].lower() if match else None

    def named_languages(self) -> str:
        """The languages that are known, in the model's own codes."""
        known = [side for side in ("source", "target") if self.language(side)]
        return ", ".join(f"{side} language: {getattr(self.config, f'{side}_lang')}" for side in known)

    def language_arguments(self) -> str:
        """The language arguments of a call that the model's configuration does not set."""
        own = {name: getattr(self.config, name) for name in self.chosen_languages()}
        codes = example_codes(set(self.config.language_ids or ()) - set(own.values()))
        missing = [name for name, code in own.items() if code is None]
        return "".join(f", {name}={json.dumps(code)}" for name, code in zip(missing, codes))

    def chosen_languages(self) -> list[str]:
        """The arguments of a call that select languages: those whose codes are in a sequence."""
        return [name for name in LANGUAGES if self.config.language_ids and uses_language(self.config, name)]

    def base_model(self) -> str | None:
        """The model on the Hub that this one was made from, where that is known and another one."""
        loaded = self.config.name_or_path if getattr(self.config, "_commit_hash", None) else None
        names = (loaded, self.config.base_model)
        return next((name for name in names if name and name != self.name and HUB_NAME.fullmatch(name)), None)

    def source_example(self) -> list[str] | None:
        """Two sentences of the source language; None if unavailable."""
        if self.own_example is not None:
            return list(self.own_example)
        code = self.language("source")
        return None if code is None else EXAMPLES.get(language_of(code))

    def example(self) -> list[str]:
        """The document of the examples."""
        return self.source_example() or ["First sentence.", "Second sentence."]


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read_template),
        undefined=jinja2.ChainableUndefined,  # a missing fact, at any depth: it is nothing
        finalize=_text,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "cell": _cell,
        "code": lambda value: Markup(code_span(str(value))),
        "facts": _facts,
        "json": lambda value: Markup(json.dumps(value, ensure_ascii=False)),
        "made": Markup,
        "paragraph": _paragraph,
        "score": _score,
        "sentences": lambda count: {0: "no sentence", 1: "1 sentence"}.get(count, f"{count} sentences"),
    }
    environment.globals["bibtex"] = _bibtex
    return environment


def _read_template(name: str) -> str | None:
    path = files("hf_docmt.hub_cards").joinpath(name)  # `name` may be an absolute path
    return path.read_text("utf-8") if path.is_file() else None


def _bibtex(*keys: str) -> Markup:
    """Entries of `hub_cards/papers.bib`, of those keys that are not empty."""
    entries = files("hf_docmt.hub_cards").joinpath("papers.bib").read_text("utf-8").strip().split("\n\n")
    by_key = {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}
    return Markup("\n\n".join(by_key[key] for key in keys if key))


def _paragraph(text: str) -> str:
    """Text in lines of a card's width."""
    return textwrap.fill(" ".join(text.split()), 110, break_long_words=False, break_on_hyphens=False) + "\n"


def _text(value: object) -> object:
    """A value of a template as text of the card: on one line, without Markdown, HTML or links.

    Unchanged: `Markup`, which the filters `made` (the package's own text), `code` and `json` return.
    """
    if isinstance(value, Markup | jinja2.Undefined | int | float):
        return value
    return "" if value is None else escape_markdown(value)


def _cell(value: object) -> str:
    """A value as the text of a table cell: numbers with at most four decimals, lists with commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) >= 1e-3 or not value else f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    return str(value)


def _score(value: object, result) -> str:
    """A score with the decimals of its unit; a dash for none."""
    return "–" if not isinstance(value, int | float) else f"{value:.{DECIMALS + extra_digits(str(result.signature))}f}"


def _facts(section: dict) -> Iterator[tuple[str, object]]:
    """Nested facts as pairs of (name in words, value): {"train": {"documents": 3}} -> "train documents", 3.

    Curves, which are lists of points, are skipped, even empty ones, as are unknown facts.
    """
    for name, value in dict(section or {}).items():
        words = str(name).replace("_", " ")
        if value is None:
            continue
        if isinstance(value, dict):
            yield from ((f"{words} {inner}", fact) for inner, fact in _facts(value))
        elif not isinstance(value, list | tuple):
            yield words, value
        elif value and not any(isinstance(item, list | tuple | dict) for item in value):
            yield words, value
