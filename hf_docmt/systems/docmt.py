"""Document translation models of this package as systems."""

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.glossary import GivenTerms, Glossary
from hf_docmt.data.word_fits import Fit
from hf_docmt.loading import model_folders, registry
from hf_docmt.loading.remote_code import load_tokenizer
from hf_docmt.messages import counted
from hf_docmt.systems.consistent_names import ConsistentNames
from hf_docmt.systems.ctranslate2_model import CTranslate2Model
from hf_docmt.systems.forced_decoding import Collate, ForcedDecoding, stream_log_probabilities
from hf_docmt.systems.generation_settings import make_repeatable, reported_settings, with_shortlist
from hf_docmt.systems.items import ALL_CONTEXT, SuiteItem
from hf_docmt.systems.model_system import ModelSystem
from hf_docmt.systems.register import Formality
from hf_docmt.systems.system import languages_of_config, translated_documents
from hf_docmt.systems.terms import TermSearch

SETTINGS = ("past_context", "repairs", "alignment", "source_lang", "target_lang")  # in addition to strategy and beams


class DocMTSystem(ForcedDecoding):
    """A model of any architecture of this package, with the context that it was trained for.

    `past_context` may be less than the model's. One trained on chunks, whose configuration names no number of
    sentences, is scored with the given numbers before and after (`future_context`), 0 by default; one that
    carries a state, with all previous sentences. `source_lang` and `target_lang` are language codes of a model that
    has some, by default those of its configuration; for others they are the languages of the data.

    `strategy`, `batch_size`, `batch_tokens` and further arguments are those of `translate_documents`, of which
    `decoding_past_context` is the `past_context`; `shortlist` may be a path. `glossary`: a file (TSV, CSV, TBX, UTX,
    Markdown), `{source: target}`, or pairs, see `TermSearch`; `consistent`: see `ConsistentNames`. ValueError: more
    context than a window model takes, a language code that is missing or unknown.
    """

    kind = "docmt"

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str | None = None,
        *,
        past_context: int | None = None,
        future_context: int | None = None,
        source_lang: str | None = None,
        target_lang: str | None = None,
        strategy: str | None = None,
        decoding_past_context: int | None = None,
        batch_size: int = 16,
        batch_tokens: int | None = None,
        formality: str | None = None,
        glossary: GivenTerms = (),
        consistent: bool = False,
        **generate_kwargs,
    ):
        config, architecture = model.config, registry.for_config(model.config)
        if past_context is None:
            past_context = ALL_CONTEXT if architecture.carries_state else config.past_context
        chunks = architecture.view(config) == "chunk"
        if future_context is None:
            future_context = config.future_context
        if not chunks and future_context != config.future_context:
            raise ValueError(
                f"future_context is {future_context}, but the model was trained with "
                f"{counted(config.future_context, 'sentence')} of future context; give the same number"
            )
        if not chunks and not architecture.carries_state and past_context > config.past_context:
            raise ValueError(
                f"past_context is {past_context}, but the model was trained with "
                f"{counted(config.past_context, 'sentence')} of past context; give this number or fewer"
            )
        if decoding_past_context is not None:
            generate_kwargs["past_context"] = decoding_past_context
        self.codes = config.language_codes(source_lang, target_lang)
        super().__init__(
            model,
            tokenizer,
            name or getattr(config, "name_or_path", "") or architecture.name,
            past_context=past_context,
            future_context=future_context,
            batch_tokens=batch_tokens,
            missing_future="absent" if chunks else "empty",
            generate_kwargs=with_shortlist(generate_kwargs),
        )
        self.reads_chunks, self.carries = chunks, generate_kwargs.get("repairs") != "none"
        self.architecture, self.carries_state = architecture.name, architecture.carries_state
        self.separate_context = architecture.separate_context
        self.strategy, self.batch_size = strategy, batch_size
        self.formality = formality and Formality(formality, *self.document_languages)
        self.glossary = Glossary.of(glossary, *self.document_languages)
        self.names = ConsistentNames(self) if consistent else None
        self.check_glossary()

    def check_glossary(self) -> None:
        if (self.formality or self.glossary or self.names) and self.generate_kwargs.get("repairs") == "none":
            raise ValueError("formality, glossary and consistent need a translation of each sentence: omit repairs")
        if (self.glossary or self.names) and isinstance(self.model, CTranslate2Model):
            raise ValueError("glossary and consistent are for the search by torch: omit the engine ctranslate2")

    @cached_property
    def collate(self) -> Collate:
        """With weight 0 for context."""
        return self._collator(0.0)

    @cached_property
    def window_collate(self) -> Collate:
        """With weight 1 for context."""
        return self._collator(1.0)

    def _collator(self, context_discount: float) -> Collate:
        codes = (self.codes.get("source_lang"), self.codes.get("target_lang"))
        architecture = registry.get(self.architecture)
        return architecture.collator(self.model.config, self.tokenizer, context_discount, codes)

    @classmethod
    def matches_config(cls, config: dict) -> bool:
        return str(config.get("model_type")).startswith("docmt-")

    @classmethod
    def load(cls, name: str, *, engine: str | None = None, **options) -> "ModelSystem":
        """As other models; by the `engine` ctranslate2 a folder of `docmt export --ctranslate2`, which translates."""
        if engine is None:
            return super().load(name, **options)
        dtype, device, revision = (options.pop(key, None) for key in ("dtype", "device", "revision"))
        options.pop("attn_implementation", None)
        model_folders.load_config(name, revision)  # which checks the name
        folder = Path(name) if Path(name).exists() else Path(snapshot_download(str(name), revision=revision))
        model = CTranslate2Model(folder, device, dtype)
        make_repeatable(model.generation_config, str(name))
        return cls(model, load_tokenizer(name, revision), str(name), **options)

    @classmethod
    def load_model(
        cls, name: str, dtype: torch.dtype | None, revision: str | None = None
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """By the registry of architectures; int8 is the dtype of the weights of linear layers alone."""
        model, tokenizer = model_folders.load_model(name, revision)
        if dtype is torch.int8:
            return model if getattr(model, "is_quantized", False) else model.quantize("int8"), tokenizer
        return model.to(dtype=dtype), tokenizer

    @classmethod
    def language_options(
        cls, name: str, source_lang: str | None, target_lang: str | None, revision: str | None = None
    ) -> tuple[dict[str, str], tuple[str | None, str | None]]:
        """The codes that sequences of the model contain."""
        return languages_of_config(name, model_folders.load_config(name, revision), source_lang, target_lang)

    @classmethod
    def reads_sentences_alone(cls, name: str, options: Mapping[str, Any], revision: str | None = None) -> bool:
        return translates_without_context(model_folders.load_config(name, revision), options.get("strategy"))

    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        if not self.carries_state:
            return super().token_log_probabilities(items)
        return stream_log_probabilities(self, items)

    def window_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        if self.carries_state:
            return super().window_log_probabilities(items)
        return self.forced(items, self.window_collate)

    @property
    def document_languages(self) -> tuple[str | None, str | None]:
        """The codes with which it translates, where it has codes, otherwise the languages of the configuration."""
        source_lang, target_lang = super().document_languages
        return self.codes.get("source_lang", source_lang), self.codes.get("target_lang", target_lang)

    @property
    def target_context(self) -> str:
        if self.carries_state and self.model.config.memory_sides == "source":
            return "none"
        return super().target_context

    @property
    def scored_model(self) -> nn.Module:
        """ValueError for weights of CTranslate2."""
        if isinstance(self.model, CTranslate2Model):
            raise ValueError(
                f"{self.name}: CTranslate2 translates with this model alone; score the model it was made of"
            )
        return self.model

    def word_fits(self, source: str, translation: str) -> Fit | None:
        return None if isinstance(self.model, CTranslate2Model) else super().word_fits(source, translation)

    @property
    def decoding(self) -> dict:
        strategy = self.model.default_strategy() if self.strategy is None else self.strategy
        return super().decoding | {"strategy": strategy}

    @property
    def search(self) -> dict:
        """Strategy, beams and what else is set; `engine` is one other than transformers."""
        model, arguments, decoding = self.model, self.codes | self.generate_kwargs, self.decoding
        settings = {"past_context": None, "engine": getattr(model, "engine_name", None)}
        settings |= {name: arguments.get(name) for name in SETTINGS}
        settings["shortlist"] = str(arguments["shortlist"]) if arguments.get("shortlist") else None
        if settings["past_context"] is None and decoding["strategy"] in ("sliding", "sequential"):
            settings["past_context"] = getattr(model.config, "decoding_past_context", None)
        settings |= {name: value for name, value in reported_settings(model, arguments).items() if name not in settings}
        settings |= {"formality": self.formality and self.formality.name}
        settings |= {"glossary": self.glossary and self.glossary.digest, "consistent": self.names and True}
        return decoding | {"beams": decoding["beams"] or 1} | {k: v for k, v in settings.items() if v is not None}

    def translate(self, documents: list[list[str]]) -> list[list[str]]:
        return self.translate_with_repairs(documents)[0]

    @property
    def reads_pairs(self) -> bool:
        config, strategy = self.model.config, self.decoding["strategy"]
        has_past = self.generate_kwargs.get("past_context") != 0
        return has_past and registry.for_config(config).model_class.translator_class.reads_pairs(config, strategy)

    def translate_with_repairs(self, documents: list[list[str]]) -> tuple:
        """With `nbest` also the candidates of every sentence, see `translate_documents`."""
        results = self._with_terms(documents)
        if not self.formality:
            return results
        banned = None if self.reads_pairs else self.formality.banned(self.tokenizer)
        return self.formality.corrected(documents, results, self._with_terms, banned)

    def _with_terms(self, documents: list[list[str]], **options) -> tuple:
        results = self.translate_once(documents, **options)
        if self.glossary:
            results = TermSearch(self.glossary, self).corrected(documents, results, **options)
        return self.names.corrected(documents, results, **options) if self.names else results

    def translate_once(self, documents: list[list[str]], **options) -> tuple:
        """Translations as in `translate`, without the search for terms, register and names."""
        return translated_documents(self, documents, self.generate_kwargs | options)

    def by_strategy(self, strategy: str) -> "DocMTSystem":
        """A copy that translates by another strategy; `past_context` is not for `sentence`."""
        other = copy.copy(self)
        other.strategy = strategy
        if strategy == "sentence":
            other.generate_kwargs = {k: v for k, v in self.generate_kwargs.items() if k != "past_context"}
        return other

    def has_strategy(self, strategy: str) -> bool:
        """Whether the model and the other settings allow a strategy."""
        try:
            self.by_strategy(strategy).translate_with_repairs([])
        except ValueError:
            return False
        return True

    def without_context(self) -> "DocMTSystem | None":
        """A copy that translates each sentence alone; None if this system does so, or has no other strategy."""
        return self.by_strategy("sentence") if self.reads_context and self.has_strategy("sentence") else None

    def describe(self) -> dict:
        names = registry.get(self.architecture).config_class.reported_fields
        settings = {name: getattr(self.model.config, name, None) for name in names}
        return self.model_facts(self.architecture, **self.codes, **settings)


def translates_without_context(config: PreTrainedConfig, strategy: str | None) -> bool:
    """Whether a model of this configuration reads each sentence alone, regardless of its place in a document.

    That is strategy `sentence` (`strategy` None is the model's own), unless a token marks the first sentence.
    """
    strategies = registry.for_config(config).model_class.translator_class
    strategy = strategy or config.strategy or strategies.default_strategy(config)
    return strategy == "sentence" and not config.use_bod
