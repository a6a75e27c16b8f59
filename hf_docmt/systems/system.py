"""Whatever scores and translates: the base class, one subclass in one file for each kind, and how they are loaded."""

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from hf_docmt.data.glossary import Glossary
from hf_docmt.data.language_codes import are_other_languages
from hf_docmt.data.registration import register, registered
from hf_docmt.files import is_address
from hf_docmt.messages import closest_hint
from hf_docmt.modeling.opaque_runs import CarriedSentence, Finder, Span, carry
from hf_docmt.systems.items import SuiteItem, context_name

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SYSTEMS: dict[str, type["System"]] = {}  # every class by its kind, in the order of registration


def kind_of(name: str | Path, revision: str | None = None) -> str:
    """The kind of a model folder or a model on the Hub; its weights are not read. ValueError: none, or no model."""
    if is_address(name):
        return "endpoint"
    from hf_docmt.loading.model_folders import read_config

    config = read_config(name, revision)
    for kind, system in reversed(system_classes().items()):  # those from outside first
        if system.matches_config(config):
            return kind
    heads = ", ".join(config.get("architectures") or ["no class named"])
    raise ValueError(
        f"{name}: a model of type {config.get('model_type')!r} with {heads}, expected an encoder-decoder or a causal "
        "language model of transformers, or a model of this package"
    )


def read_options(pairs: Sequence[str], kind: str, without: Collection[str] = ()) -> dict[str, str | int]:
    """Options of a kind of system from texts `KEY=VALUE`; those that are texts or numbers, except `without`.

    ValueError: no `=`, an unknown key or one that is given twice, a value that should be a number.
    """
    annotations, types, options = system_classes()[kind].options(), {}, {}
    for name, annotation in annotations.items():
        either = {annotation, *get_args(annotation)} & {int, str}
        if either and name not in without:
            types[name] = either.pop()
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key in options:
            raise ValueError(f"option {pair!r}, expected KEY=VALUE, every key once")
        if key not in types:
            hint = closest_hint(key, types)
            raise ValueError(f"unknown option {key!r} of a {kind} system, expected {', '.join(types) or 'none'}{hint}")
        if types[key] is int and not value.isdecimal():
            raise ValueError(f"option {pair!r}, expected a number, such as {key}=2")
        options[key] = types[key](value)
    return options


def system_classes() -> dict[str, type["System"]]:
    """All registered classes by kind: those of this folder, and those from outside that were imported."""
    return registered(SYSTEMS, __package__)


@dataclass(frozen=True)
class ContextReach:
    """How many sentences of context a system reads, and whether it reads translations of them."""

    past: int = 0
    future: int = 0
    target: str = "reference"  # its target context in scoring; "none" if it reads source context only

    def entries(self) -> dict[str, str | int]:
        """As signatures and reports have it."""
        return {"past": context_name(self.past), "future": self.future}


class System(ABC):
    """Gives log-probabilities to translations and translates documents.

    A subclass with a `kind` is registered when it is defined: `System.load` finds it by `matches_config` and calls its
    `load`. The keyword-only parameters of its `__init__` are its options. Everything that evaluation and translation
    need of a system is here; they look at nothing else.
    """

    kind: ClassVar[str]
    name: str
    tokenizer: "PreTrainedTokenizerBase"  # of the source
    default_dtype: ClassVar[str] = "float32"
    batch_size: int = 1  # sentences that are translated at once
    batch_tokens: int | None = None  # of a batch, instead of that
    carries: bool = True  # whether opaque runs are copied, in `translate_carried`
    scores: bool = False  # whether translations are `Sentence`s with a score, of a system that has scores
    reads_chunks: bool = False  # trained on chunks of documents: it reads any amount of context
    glossary: Glossary | None = None
    give_way: Callable[[], None] = staticmethod(lambda: None)  # called between batches that score

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        if "kind" in vars(cls):
            register(SYSTEMS, cls.kind, cls, "system")

    @classmethod
    def matches_config(cls, config: dict) -> bool:
        """Whether a model with this `config.json` is of the kind."""
        return False

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        dtype: str | None = None,
        device: str = "cpu",
        attn_implementation: str | None = None,
        revision: str | None = None,
        **options,
    ) -> "System":
        """A system from a folder or a name on the Hub; `options` are those of its class, whose `load` is called.

        The kind follows from the name or the configuration: `docmt` is a model of this package (`DocMTSystem`),
        `seq2seq` any encoder-decoder model of transformers (`Seq2SeqSystem`), `ctranslate2` one in that library's
        format (`CTranslate2System`), `causal` a causal language model (`CausalSystem`), `endpoint` one at a URL
        (`EndpointSystem`). `dtype` is a name such as `fp32`, `bfloat16`, `int8` or `auto`, that of the saved weights;
        by default float32. `revision` is a branch, tag or commit of a model on the Hub. Attention weights need
        `attn_implementation="eager"`. Options that resemble none of the class are left to `generate`. ValueError: no
        model there, one that cannot be read, unknown options.

        >>> system = System.load("runs/concat", past_context=1)
        >>> system.context.past, system.languages
        (1, ('en', 'de'))
        """
        if cls is not System:
            raise ValueError(f"{name}: a system of kind {cls.kind!r} is made in Python, it cannot be loaded")
        from hf_docmt.systems.devices import INT8, checked_dtype

        if "engine" not in options and dtype != INT8:  # which CTranslate2 has on other devices, too
            checked_dtype(dtype, device)
        system = system_classes()[kind_of(name, revision)]
        system.check_options(options)
        options |= {} if revision is None else {"revision": revision}
        dtype = dtype or ("auto" if "engine" in options else system.default_dtype)
        return system.load(name, dtype=dtype, device=device, attn_implementation=attn_implementation, **options)

    @classmethod
    def check_options(cls, options: Collection[str]) -> None:
        """ValueError for options that resemble those of the class, and for others where it takes none."""
        from transformers import GenerationConfig

        takes_others = any(option.kind is option.VAR_KEYWORD for option in inspect.signature(cls).parameters.values())
        known = vars(GenerationConfig()).keys() if takes_others else ()
        for option in sorted(set(options) - cls.options().keys() - set(known)):
            if (hint := closest_hint(option, cls.options())) or not takes_others:
                raise ValueError(f"unknown option {option!r} of a {cls.kind} system{hint}")

    @classmethod
    def language_options(
        cls, name: str, source_lang: str | None, target_lang: str | None, revision: str | None = None
    ) -> tuple[dict[str, str], tuple[str | None, str | None]]:
        """Options that say to a model, which is not loaded yet, between which languages it translates.

        Also the languages in which documents are read: the requested ones, by default the model's. ValueError: others
        than the model's.
        """
        asked = {"source_lang": source_lang, "target_lang": target_lang}
        return {key: code for key, code in asked.items() if code and key in cls.options()}, (source_lang, target_lang)

    @classmethod
    def reads_sentences_alone(cls, name: str, options: Mapping[str, Any], revision: str | None = None) -> bool:
        """Whether with these options it reads each sentence alone, regardless of its place in a document."""
        return not options.get("past_context") and options.get("chunk_sentences", 1) == 1

    @classmethod
    def options(cls) -> dict[str, type]:
        """The keyword-only parameters of the class with their annotations."""
        parameters = inspect.signature(cls).parameters.values()
        return {option.name: option.annotation for option in parameters if option.kind is option.KEYWORD_ONLY}

    @property
    def context(self) -> ContextReach:
        """The sentences of context that it reads; none by default."""
        return ContextReach()

    @property
    def reads_context(self) -> bool:
        """Whether a translation depends on other sentences."""
        has_reach = self.reads_chunks or self.context.past or self.context.future
        return bool(has_reach) and self.decoding["strategy"] != "sentence"

    @property
    def reads_pairs(self) -> bool:
        """Whether it reads pairs of a sentence and its translation as context, see `Sentence`."""
        return False

    def check_glossary(self) -> None:
        """ValueError if the system does not read a glossary, or not with its other settings."""
        if self.glossary and "glossary" not in self.options():
            raise ValueError("a glossary is for models of this package, language models and endpoints: omit it")

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """Codes of source and target language, as far as known; data of other languages is refused."""
        return self.document_languages

    @property
    def document_languages(self) -> tuple[str | None, str | None]:
        """The languages that the model's configuration names, in which documents are read unless others are given."""
        return None, None

    @property
    def decoding(self) -> dict:
        """The search of `translate` as reported: `strategy` (of document models) and `beams`, None if unknown."""
        return {"strategy": None, "beams": None}

    @property
    def search(self) -> dict:
        """The settings for the rows of a job: `decoding` and context, if set."""
        reach = {key: value for key, value in self.context.entries().items() if value}
        reach = {f"{key}_context": value for key, value in reach.items()}
        glossary = {"glossary": self.glossary.digest} if self.glossary else {}
        return {key: value for key, value in (self.decoding | reach).items() if value is not None} | glossary

    @abstractmethod
    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        """[item][candidate][token of the current sentence, its end token last], natural logarithm."""

    def window_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        """[item][candidate][token of the forced target window: context, separators, current sentence, end token]."""
        raise ValueError(f"{self.name}: a system of kind {self.kind} has no target windows; use the sum or the mean")

    @abstractmethod
    def token_texts(self, items: Sequence[SuiteItem]) -> list[list[list[str]]]:
        """The tokens of `token_log_probabilities` as text."""

    @abstractmethod
    def translate(self, documents: list[list[str]]) -> list[list[str]]:
        """Translations of documents, one sentence for each source sentence."""

    def translate_with_repairs(self, documents: list[list[str]]) -> tuple[list[list[str]], list[list[dict]]]:
        """`translate`, and for each document the repairs that `translate_corpus` describes; none by default."""
        return self.translate(documents), [[] for _ in documents]

    @cached_property
    def finder(self) -> Finder:
        """The finder of opaque runs for its tokenizer."""
        return Finder(self.tokenizer)

    def translate_carried(
        self, documents: Sequence[list[str]], given: Sequence[dict[int, list[Span]]] | None = None
    ) -> tuple[tuple, list[dict[int, CarriedSentence]]]:
        """The result of `translate_with_repairs` with every opaque run once; and the sentences with such runs.

        Those are found by `modeling.opaque_runs`; `given` are spans of further ones, by sentence. A `Sentence` with a
        target keeps it.
        """
        if not self.carries:
            return self.translate_with_repairs(list(documents)), [{} for _ in documents]
        results: list[tuple] = []

        def translate(documents: list[list[str]]) -> list[list[str]]:
            results.append(self.translate_with_repairs(documents))
            return results[-1][0]

        lines, carried = carry(translate, documents, self.finder, given, (self.context.past, self.context.future))
        rest = results[0][1:]
        if len(rest) == 2:  # candidates: documents of sentences of texts
            found = [
                [own[n].restored_candidates(texts) if n in own else texts for n, texts in enumerate(document)]
                for document, own in zip(rest[1], carried)
            ]
            rest = (rest[0], found)
        return (lines, *rest), carried

    def without_context(self) -> "System | None":
        """A copy that translates each sentence alone; None if this system does so, or has no such copy."""
        return None

    def word_fits(self, source: str, translation: str) -> list[list[float]] | None:
        """How well the words of a sentence and its translation fit (see `word_alignment`); None: unknown."""
        return None

    @abstractmethod
    def describe(self) -> dict:
        """The `model` section of a report: name, architecture, parameters, config."""

    def fingerprint(self) -> str:
        """A short hash of the system, by which an interrupted evaluation knows it again."""
        return hashlib.sha256(repr(self.describe()).encode("utf-8")).hexdigest()[:12]


def languages_of_config(
    name: str, config: Any, source_lang: str | None, target_lang: str | None
) -> tuple[dict[str, str], tuple[str | None, str | None]]:
    """`System.language_options` of a model of this package with this configuration."""
    codes = config.language_codes(source_lang, target_lang)
    config.sequence_format(codes.get("source_lang"), target_lang)  # refuses a target that is not written
    if "source_lang" not in codes:
        check_source_language(name, source_lang, config.source_lang)
    return codes, (source_lang or config.source_lang, codes.get("target_lang") or config.target_lang)


def translated_documents(system: Any, documents: list[list[str]], options: Mapping[str, Any]) -> tuple:
    """Translations and repairs by `translate_documents` of the model of a system of this package, by its settings."""
    return system.model.translate_documents(
        documents,
        system.tokenizer,
        strategy=system.strategy,
        batch_size=system.batch_size,
        batch_tokens=system.batch_tokens,
        return_report=True,
        return_scores=system.scores,
        **system.codes,
        **options,
    )


def check_source_language(name: str, asked: str | None, own: str | None) -> None:
    """ValueError for another source language than that of a model without language codes, where both are known."""
    if are_other_languages(asked, own):
        raise ValueError(
            f"--source-lang is {asked!r}, but {name} translates from {own!r}; omit it, or give a model of this language"
        )


load_system = System.load
