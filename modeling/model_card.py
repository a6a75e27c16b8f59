"""The model card that a configuration alone can fill: what the model is, how it is called, what it reads, its limits.

Every architecture has a text of its own, `card_<name>.py`, a subclass of one of the three in `card_usage.py`.
"""

import json
import re
import textwrap

from .sequence_format import LANGUAGES, uses_language
from .tested_versions import version_ranges

MARK = "<!-- Written from config.json by the model's own code. Remove this line, and your text stays as it is. -->"
DRAFTS = (MARK, "This model card has been automatically generated", "This model card has been generated automatically")
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
LANGUAGE_CODE = re.compile(r"([A-Za-z]{2,3})([_-]\w+)*")
PLACEHOLDER = "ORGANISATION/MODEL"
EXAMPLES = {  # two sentences, of which the second needs the first
    "en": ["The cat is hungry.", "It wants its dinner."],
    "de": ["Die Katze hat Hunger.", "Sie will ihr Futter."],
    "fr": ["La clé est sur la table.", "Elle est à Marie."],
    "ru": ["Кошка голодна.", "Она хочет есть."],
    "zh": ["猫饿了。", "它想吃饭。"],
}
THREE_LETTERS = {"eng": "en", "deu": "de", "fra": "fr", "rus": "ru", "zho": "zh"}


class ModelCardText:
    """The card of a model of one configuration; `str` of it is the whole README.md.

    Args:
        config: the model's configuration.
        name: the model's name on the Hub, for the title and the examples; without it there is a placeholder.
        needs: what has to be installed besides torch and transformers, for the tokenizer; None = not known.
        example: two sentences of the source language that the model was made for; None = those of `EXAMPLES`.
    """

    citations: tuple[str, ...] = ()  # BibTeX

    def __init__(
        self, config, name: str | None = None, needs: list[str] | None = None, example: list[str] | None = None
    ):
        self.config, self.name, self.needs, self.given_example = config, name, needs, example

    # What an architecture says

    def description(self) -> str:
        """What the model is, in one paragraph."""
        return f"An encoder-decoder Transformer of the architecture {self.config.model_type}."

    def reads_context(self) -> bool:
        """Whether a sentence is translated with others."""
        return bool(getattr(self.config, "past_context", 0) or getattr(self.config, "future_context", 0))

    def context_code(self) -> str:
        """Python lines that give plain `generate` a sentence with its context; `document` has two sentences."""
        return 'inputs = tokenizer(document, padding=True, return_tensors="pt")\nprint(model.generate(**inputs))'

    def context_note(self) -> str:
        """What these lines do."""
        return "Plain `generate` translates sentences, each of them alone:"

    def limits(self) -> list[str]:
        """What the model cannot do."""
        limits = [
            "What a sentence needs may stand further away than the model reads: see Context.",
            "Texts are translated sentence by sentence: the number and order of sentences stay, none are merged.",
        ]
        if self.config.position_type == "learned":
            tokens = self.config.max_position_embeddings
            limits.append(
                f"Positions are learned: a sequence has at most {tokens} tokens, longer ones are cut in parts."
            )
        return limits

    # The card

    def __str__(self) -> str:
        return f"{yaml_header(self.metadata())}\n\n{MARK}\n\n{self.body()}\n"

    def body(self) -> str:
        """The card below its header."""
        title = f"# {self.name or self.config.model_type}"
        parts = (title, self.introduction(), "## Use", self.usage(), self.facts(), self.citation())
        return "\n\n".join(filter(None, parts))

    def metadata(self) -> dict:
        """The fields of the header: library, task, tags, and what is known of languages, base model and widget."""
        languages = [self.language(side) for side in ("source", "target")]
        known = {
            "language": [code for code in dict.fromkeys(languages) if code],
            "base_model": self.base_model(),
            "widget": [{"text": " ".join(self.example())}] if self.source_example() else None,
        }
        return {
            "library_name": "transformers",
            "pipeline_tag": "translation",
            "tags": ["translation", "document-level", "hf-docmt", self.config.model_type],
        } | {name: value for name, value in known.items() if value}

    def introduction(self) -> str:
        """What it is."""
        source, target = (self.language_name(side) for side in ("source", "target"))
        first = (
            f"A document-level translation model (source language: {source}, target language: {target}). Documents go "
            "in as lists of sentences and come out as lists of the same length."
        )
        return f"{paragraph(first)}\n\n{paragraph(self.description())}"

    def usage(self) -> str:
        """How it is called: documents, text, and plain `generate` with context by hand."""
        card = self if self.reads_context() else ModelCardText(self.config)
        return "\n\n".join(
            (
                self.needs_note(),
                fenced(self.document_code()),
                paragraph(f"Text goes through a pipeline, which finds the sentences.{self.languages_note()}"),
                fenced(self.pipeline_code()),
                paragraph(card.context_note()),
                fenced(card.context_code()),
            )
        )

    def document_code(self) -> str:
        """Python lines that load the model and translate a document."""
        return (
            "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer\n\n"
            f"name = {json.dumps(self.name or PLACEHOLDER)}  # this repository, or a folder with its files\n"
            "tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=True)\n"
            "model = AutoModelForSeq2SeqLM.from_pretrained(name, trust_remote_code=True)\n"
            f"document = {json.dumps(self.example(), ensure_ascii=False)}\n"
            f"print(model.translate_documents([document], tokenizer{self.language_arguments()}))"
        )

    def pipeline_code(self) -> str:
        """Python lines that translate text."""
        text = json.dumps("\n".join(self.example()), ensure_ascii=False)
        return (
            "from transformers import pipeline\n\n"
            'translate = pipeline("document-translation", model=name, trust_remote_code=True)\n'
            f"print(translate({text}{self.language_arguments()}))"
        )

    def language_arguments(self) -> str:
        """Of a call of a model with language codes those that its configuration does not say."""
        own = {name: getattr(self.config, name) for name in self.chosen_languages()}
        codes = sorted(set(self.config.language_ids or ()) - set(own.values()))
        missing = [name for name, code in own.items() if code is None]
        return "".join(f", {name}={json.dumps(code)}" for name, code in zip(missing, codes))

    def languages_note(self) -> str:
        """That languages can be chosen, where they can."""
        names = " and ".join(f"`{name}`" for name in self.chosen_languages())
        return f" Languages are chosen by {names}, of {len(self.config.language_ids)} codes." if names else ""

    def chosen_languages(self) -> list[str]:
        """The arguments of a call by which languages are chosen: those whose codes stand in a sequence."""
        return [name for name in LANGUAGES if self.config.language_ids and uses_language(self.config, name)]

    def facts(self) -> str:
        """Context and limits."""
        limits = "\n".join(f"- {limit}" for limit in self.limits())
        return "\n\n".join(("## Context", f"Reach: {self.config.context_reach()}.", "## Limits", limits))

    def citation(self) -> str:
        """What to cite; empty where there is nothing."""
        return "## Citation\n\n" + fenced("\n\n".join(self.citations), "bibtex") if self.citations else ""

    # Facts

    def needs_note(self) -> str:
        """What has to be installed, and the versions that are known to work."""
        needs = f"{', '.join(['torch', *(self.needs or ())])} and transformers"
        more = "nothing else" if self.needs is not None else "what its tokenizer needs (those of Marian: sentencepiece)"
        return paragraph(f"It needs {needs}, and {more}. It was tested with {version_ranges()}.")

    def language(self, side: str) -> str | None:
        """The code of a side's language as the Hub lists it, of two or three letters; None where there is none."""
        found = LANGUAGE_CODE.fullmatch(getattr(self.config, f"{side}_lang") or "")
        return found and found[1].lower()

    def language_name(self, side: str) -> str:
        """A side's language in the model's own code."""
        return getattr(self.config, f"{side}_lang") if self.language(side) else "not recorded"

    def base_model(self) -> str | None:
        """The model on the Hub that this one was made from, where that is known and another one."""
        loaded = self.config.name_or_path if getattr(self.config, "_commit_hash", None) else None
        names = (loaded, self.config.base_model)
        return next((name for name in names if name and name != self.name and HUB_NAME.fullmatch(name)), None)

    def source_example(self) -> list[str] | None:
        """Two sentences of the source language; None where none are at hand."""
        if self.given_example is not None:
            return list(self.given_example)
        code = self.language("source")
        return EXAMPLES.get(THREE_LETTERS.get(code, code))

    def example(self) -> list[str]:
        """The document of the examples."""
        return self.source_example() or ["First sentence.", "Second sentence."]


def paragraph(text: str) -> str:
    """Text in lines of a card's width."""
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False)


def fenced(code: str, language: str = "python") -> str:
    """A block of code."""
    return f"```{language}\n{code}\n```"


def sentences(count: int) -> str:
    """So many sentences, in words."""
    return {0: "no sentence", 1: "1 sentence"}.get(count, f"{count} sentences")


def yaml_header(fields: dict) -> str:
    """The header of a card; values are written as JSON, which is YAML."""
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    return "\n".join(["---", *lines, "---"])


def is_draft(card: str) -> bool:
    """Whether nobody wrote this card: it is this module's, or a template of transformers."""
    return any(sign in card for sign in DRAFTS)
