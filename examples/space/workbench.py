"""The model of the page: its strategies, translations as they grow, and why a sentence came out as it did."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import langcodes
from context_use import context_use
from live_translation import LiveProgress, live_translation
from read_sentences import ContextUse

import hf_docmt
from hf_docmt.analysis.decisive_context import DecisiveContext, decisive_context
from hf_docmt.analysis.model_runs import set_languages
from hf_docmt.data.language_codes import primary_language
from hf_docmt.formats.document_file import MARKUP, given_runs, with_markup
from hf_docmt.loading import registry
from hf_docmt.modeling.decoding import STRATEGIES
from hf_docmt.systems import DocMTSystem

BATCH_SIZE = 8
Langs = tuple[str, str]  # of source and target
EXAMPLE = """\
Good evening, Mr Weber, the camera was expensive.
Now it is switched off.
Can you help me?
I see the computer.
It is switched off again.
"""  # in English; what "it" and "you" are, other sentences show
STRATEGY_NAMES = {  # of each strategy its name on the page, and what it does
    "sentence": ("Every sentence alone", "Without context."),
    "sliding": ("Sliding window", "Every sentence with the sentences around it."),
    "sequential": ("One by one", "Every sentence with the translations before it."),
    "chunk_sequential": ("One by one in parts", "Every sentence with the translations before it in its part."),
    "full": ("Whole parts at once", "All sentences of a part of the text together."),
    "stream": ("One by one with a memory", "Every sentence with a memory of all before it."),
}


@dataclass(frozen=True)
class Explanation:
    """The context that decided one sentence, and its repairs (see `DocumentState`)."""

    context: DecisiveContext
    repairs: tuple[dict, ...]


class Workbench:
    """A model of this package and its tokenizer."""

    def __init__(self, name: str):
        self.name = name
        self.model, self.tokenizer = hf_docmt.load_model(name)
        config = self.model.config
        if not config.source_lang or not config.target_lang:
            raise ValueError(
                f"{name}: the configuration names source_lang={config.source_lang!r} and target_lang="
                f"{config.target_lang!r}, and the page needs both: set them in config.json"
            )
        self.langs: Langs = (config.source_lang, config.target_lang)

    @property
    def architecture(self) -> str:
        return self.model.config.model_type.removeprefix(registry.MODEL_TYPE_PREFIX)

    @property
    def reach(self) -> str:
        return self.model.config.context_reach()

    def language_name(self, code: str) -> str:
        """The language of a code in English, with the code."""
        try:
            name = langcodes.Language.get(code).display_name()
        except langcodes.LanguageTagError:
            return code
        return f"{name.split(' (Unknown')[0]}, {code}"

    @property
    def language_choices(self) -> tuple[list[str], list[str]]:
        """Codes that may be chosen for source and target; where the model has none, its language alone."""
        config = self.model.config
        used = config.language_codes()
        codes = sorted(config.language_ids or ())
        sides = zip(("source_lang", "target_lang"), self.langs, strict=True)
        return tuple(codes if name in used else [own] for name, own in sides)

    @property
    def example(self) -> str | None:
        """A document to begin with, in the model's own source language."""
        return EXAMPLE if primary_language(self.langs[0]) == "en" else None

    @cached_property
    def strategies(self) -> tuple[str, ...]:
        """Strategies of this model, its own first, without those that do the same as another one."""
        own, others = self.model.default_strategy(), self._different_strategies()
        return (own, *(name for name in STRATEGIES if name in others and name != own and self._has(name)))

    def _different_strategies(self) -> tuple[str, ...]:
        """The strategies that would translate differently from the model's own."""
        config, architecture = self.model.config, registry.for_config(self.model.config)
        if architecture.carries_state or architecture.separate_context or config.context_sides == "source":
            return ("sentence",)
        if config.view == "chunk":
            return ("sentence", "sequential", "chunk_sequential", "full")
        return STRATEGIES if config.past_context or config.future_context else ("sentence",)

    def _has(self, strategy: str) -> bool:
        try:
            self.model.check_strategy(strategy)
        except ValueError:
            return False
        return True

    def translate(
        self, documents: list[list[str]], strategy: str, langs: Langs, rows: Sequence[dict] | None = None
    ) -> Iterator[LiveProgress]:
        """See `live_translation`; greedy search. `rows` are those of the documents, which may know opaque runs."""
        options = {
            "strategy": strategy,
            "batch_size": BATCH_SIZE,
            "num_beams": 1,
            "do_sample": False,
            "given": rows and list(map(given_runs, rows)),
        } | self._languages(langs)
        return live_translation(self.model, self.tokenizer, documents, **options)

    def results(self, rows: list[dict], sources: list[list[str]], progress: LiveProgress, langs: Langs) -> list[dict]:
        """For each document source, translation, and what places its markup; what is not translated stays."""
        system = DocMTSystem(self.model, self.tokenizer, self.name, **self._languages(langs))
        carried = progress.carried or [{} for _ in rows]
        results = []
        for row, source, own, runs in zip(rows, sources, progress.translations, carried, strict=True):
            texts = [old if new is None else new for old, new in zip(source, own, strict=True)]
            if MARKUP in row:
                tagged = [number for number in row[MARKUP]["tagged"] if own[number] is not None]
                row = row | {MARKUP: row[MARKUP] | {"tagged": tagged}}
            result = {"doc_id": row["doc_id"], "source": source, "translation": texts}
            results.append(with_markup(system, row, result, runs))
        return results

    def explain(
        self,
        source: list[str],
        translation: list[str],
        repairs: list[dict],
        strategy: str,
        langs: Langs,
        number: int,
    ) -> Explanation:
        """The context that decided sentence `number` (from 1) of a document translated by this strategy.

        ValueError: a number outside the document, a blank sentence.
        """
        search = {"num_beams": 1, "do_sample": False} | self._languages(langs)
        found = decisive_context(self.model, source, translation, self.tokenizer, number, strategy, **search)
        return Explanation(found, tuple(one for one in repairs if one["sentence"] == number - 1))

    def context_use(self, source: list[str], translation: list[str], langs: Langs, number: int) -> ContextUse:
        """Context of the sentence, see `context_use`; no other thread may use the model meanwhile."""
        with chosen_languages(self.model, *langs):
            return context_use(self.model, source, translation, self.tokenizer, number)

    def _languages(self, langs: Langs) -> dict[str, str]:
        return dict(zip(("source_lang", "target_lang"), langs, strict=True))


@contextmanager
def chosen_languages(model, source_lang: str | None, target_lang: str | None) -> Iterator[None]:
    """The model with these languages; afterwards it has its own again. ValueError: see `set_languages`."""
    own = {name: getattr(model.config, name) for name in ("source_lang", "target_lang")}
    try:
        set_languages(model, source_lang, target_lang)
        yield
    finally:
        for name, language in own.items():
            setattr(model.config, name, language)
