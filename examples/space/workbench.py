"""The model behind the page: its strategies, translations as they grow, and why a sentence came out as it did."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import hf_docmt
from hf_docmt import registry
from hf_docmt.analysis.context_use import context_use
from hf_docmt.analysis.model_runs import chosen_languages
from hf_docmt.analysis.read_sentences import ContextUse
from hf_docmt.evaluation.systems import DocMTSystem
from hf_docmt.evaluation.systems.word_alignment import Fit
from hf_docmt.formats.document_file import MARKUP, sentence_fits
from hf_docmt.modeling.decoding import STRATEGIES
from hf_docmt.reports.side_by_side import changed_words
from hf_docmt.translation.live_translation import Progress, live_translation

BATCH_SIZE = 8
Langs = tuple[str, str]  # of source and target
ABOUT = {
    "sentence": "Every sentence alone, without context.",
    "sliding": "Every sentence in a window of its neighbours.",
    "sequential": "One by one, with the translations before.",
    "chunk_sequential": "One by one inside parts of the document.",
    "full": "Parts of the document at once.",
    "stream": "One by one, with a memory of all before.",
}


@dataclass(frozen=True)
class Explanation:
    """One sentence (number from 1): its translation in the document and alone, in pieces, and the context it used.

    `pieces` are those of `changed_words`, the sentence alone being what is compared with. `use` is None where the
    strategy reads no context. `repairs` are the messages of what was repaired.
    """

    number: int
    source: str
    translation: str
    alone: str
    pieces: list[tuple[str, str]]
    use: ContextUse | None
    repairs: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        return self.translation == self.alone


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

    @property
    def language_choices(self) -> tuple[list[str], list[str]]:
        """Codes that may be chosen for source and target; where the model has none, its language alone."""
        config = self.model.config
        used = config.language_codes()
        codes = sorted(config.language_ids or ())
        sides = zip(("source_lang", "target_lang"), self.langs, strict=True)
        return tuple(codes if name in used else [own] for name, own in sides)

    @cached_property
    def strategies(self) -> dict[str, str]:
        """Strategies of this model, its own first, with a line about each."""
        own = self.model.default_strategy()
        return {name: ABOUT[name] for name in (own, *STRATEGIES) if self._has(name)}

    def _has(self, strategy: str) -> bool:
        try:
            self.model.check_strategy(strategy)
        except ValueError:
            return False
        return True

    def translate(self, documents: list[list[str]], strategy: str, langs: Langs) -> Iterator[Progress]:
        """See `live_translation`; greedy search."""
        options = {
            "strategy": strategy,
            "batch_size": BATCH_SIZE,
            "num_beams": 1,
            "do_sample": False,
        } | self._languages(langs)
        return live_translation(self.model, self.tokenizer, documents, **options)

    def word_fits(
        self, rows: list[dict], sources: list[list[str]], translations: list[list[str]], langs: Langs
    ) -> list[dict[str, Fit]]:
        """For each document, the fits of its sentences with inline markup."""
        system = DocMTSystem(self.model, self.tokenizer, self.name, **self._languages(langs))
        results = [{"source": source, "translation": own} for source, own in zip(sources, translations, strict=True)]
        tagged = [(row.get(MARKUP) or {"tagged": []})["tagged"] for row in rows]
        return [sentence_fits(system, numbers, result) for numbers, result in zip(tagged, results)]

    def explain(
        self,
        source: list[str],
        translation: list[str],
        repairs: list[dict],
        strategy: str,
        langs: Langs,
        number: int,
    ) -> Explanation:
        """Sentence `number` (from 1) of a document that was translated by this strategy.

        ValueError: a number outside the document, a blank sentence.
        """
        use = None
        if strategy != "sentence":
            with chosen_languages(self.model, *langs):
                use = context_use(self.model, source, translation, self.tokenizer, number)
        text, made = source[number - 1], translation[number - 1]
        options = {"strategy": "sentence", "num_beams": 1, "do_sample": False} | self._languages(langs)
        ((alone,),) = self.model.translate_documents([[text]], self.tokenizer, **options)
        own = tuple(f"{one['kind']}: {one['detail']}" for one in repairs if one["sentence"] == number - 1)
        return Explanation(number, text, made, alone, changed_words(alone, made), use, own)

    def _languages(self, langs: Langs) -> dict[str, str]:
        return dict(zip(("source_lang", "target_lang"), langs, strict=True))
