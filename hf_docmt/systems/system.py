"""Whatever scores and translates: the base class, one subclass in one file for each kind, and how they are loaded."""

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, get_args

import torch
from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from hf_docmt.data.registration import register, registered
from hf_docmt.files import check_hub_name
from hf_docmt.messages import check_known, closest_hint, first_line
from hf_docmt.model_files import CONFIG, check_model_files
from hf_docmt.reachability import check_within_reach
from hf_docmt.systems.items import SuiteItem, context_name

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "int8": torch.int8}
DTYPES |= {"auto": None}  # that of the saved weights
SYSTEMS: dict[str, type["System"]] = {}  # every class by its kind, in the order of registration


def load_system(
    name: str | Path,
    kind: str = "auto",
    *,
    dtype: str | None = None,
    device: str = "cpu",
    attn_implementation: str | None = None,
    revision: str | None = None,
    **options,
) -> "System":
    """A system from a folder or a name on the Hub; `options` are those of its class.

    `docmt` is a model of this package (`DocMTSystem`), `seq2seq` any encoder-decoder model of transformers
    (`Seq2SeqSystem`), `ctranslate2` one in that library's format (`CTranslate2System`), `causal` a causal language
    model (`CausalSystem`); `auto` finds the kind by the configuration. `dtype` is `float32` by default, or that of the
    saved weights (`auto`); `revision` a branch, tag or commit of a model on the Hub. Attention weights need
    `attn_implementation="eager"`. Options that resemble none of the class are left to `generate`. ValueError: no model
    there, one that cannot be read or of another kind, unknown options.

    >>> system = load_system("runs/concat", past_context=1)
    >>> system.context.past, system.languages
    (1, ('en', 'de'))
    """
    check_known(kind, ("auto", *system_classes()), "kind of system", "expected one of")
    check_known(dtype or "auto", DTYPES, "dtype", "expected one of")
    own = kind_of(name, revision)
    if kind not in ("auto", own):
        raise ValueError(f"{name}: a model of kind {own}, not {kind}; leave the kind at 'auto' or give another model")
    system = system_classes()[own]
    takes_others = any(option.kind is option.VAR_KEYWORD for option in inspect.signature(system).parameters.values())
    for option in sorted(options.keys() - system.options()):
        if (hint := closest_hint(option, system.options())) or not takes_others:
            raise ValueError(f"unknown option {option!r} of a {own} system{hint}")
    options |= {} if revision is None else {"revision": revision}
    return system.load(
        name,
        dtype=DTYPES[dtype or system.default_dtype],
        device=device,
        attn_implementation=attn_implementation,
        **options,
    )


def kind_of(name: str | Path, revision: str | None = None) -> str:
    """The kind of a model folder or a model on the Hub; its weights are not read. ValueError: none, or no model."""
    if Path(name).exists() and not (Path(name) / "config.json").is_file():
        raise ValueError(f"{name} holds no model: config.json is missing; give a model folder or a name on the Hub")
    check_hub_name(name, "model")
    check_within_reach(name, revision)
    check_model_files(name, revision, names=(CONFIG,))
    try:
        config = PreTrainedConfig.get_config_dict(name, **({} if revision is None else {"revision": revision}))[0]
    except OSError as error:
        raise ValueError(f"{name}: no model there ({first_line(error)}); check the folder or the name") from error
    for kind, system in reversed(system_classes().items()):  # those from outside first
        if system.matches_config(config):
            return kind
    heads = ", ".join(config.get("architectures") or ["no class named"])
    raise ValueError(
        f"{name}: a model of type {config.get('model_type')!r} with {heads}, expected an encoder-decoder or a causal "
        "language model of transformers, or a model of this package"
    )


def read_options(pairs: Sequence[str], kind: str, without: Collection[str] = ()) -> dict[str, str | int]:
    """Options of a kind of system from texts `KEY=VALUE`; those that are texts or numbers, but for `without`.

    ValueError: no `=`, an unknown key or one that is given twice, a value that is no number where one is needed.
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
    target: str = "reference"  # what it is given in scoring; "none" where it reads source context alone

    def entries(self) -> dict[str, str | int]:
        """As signatures and reports have it."""
        return {"past": context_name(self.past), "future": self.future}


class System(ABC):
    """Gives log-probabilities to translations and translates documents.

    A subclass with a `kind` is registered when it is defined: `load_system` finds it by `matches_config` and calls its
    `load`. The keyword-only parameters of its `__init__` are its options. Everything that evaluation needs of a system
    is here; it looks at nothing else.
    """

    kind: ClassVar[str]
    name: str
    tokenizer: PreTrainedTokenizerBase  # of the source, whose tokens `docmt translate --estimate` counts
    default_dtype: ClassVar[str] = "float32"
    batch_size: int = 1  # sentences that are translated at once
    reads_chunks: bool = False  # trained on chunks of documents: it reads as much context as it is given

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
        cls, name: str, *, dtype: torch.dtype | None, device: str, attn_implementation: str | None = None, **options
    ) -> "System":
        """The system of a folder or Hub name; `options` are those of the class. ValueError: it cannot be read."""
        raise ValueError(f"{name}: a system of kind {cls.kind!r} is made in Python, it cannot be loaded")

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
        """How it translates, for the rows of a job: `decoding` and context, as far as they are set."""
        reach = {key: value for key, value in self.context.entries().items() if value}
        reach = {f"{key}_context": value for key, value in reach.items()}
        return {key: value for key, value in (self.decoding | reach).items() if value is not None}

    @abstractmethod
    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        """[item][candidate][token of the current sentence, its end token last], natural logarithm."""

    def window_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        """The same of all tokens of the forced target window: context, separators, current sentence, end token."""
        raise ValueError(f"{self.name}: a system of kind {self.kind} has no target windows; take the sum or the mean")

    @abstractmethod
    def token_texts(self, items: Sequence[SuiteItem]) -> list[list[list[str]]]:
        """The same tokens as text."""

    @abstractmethod
    def translate(self, documents: list[list[str]]) -> list[list[str]]:
        """Translations of documents, for each as many sentences as it has."""

    def translate_with_repairs(self, documents: list[list[str]]) -> tuple[list[list[str]], list[list[dict]]]:
        """The same, and of each document the repairs that `translate_corpus` describes; none by default."""
        return self.translate(documents), [[] for _ in documents]

    @abstractmethod
    def describe(self) -> dict:
        """The `model` section of a report: name, architecture, parameters, config."""

    def fingerprint(self) -> str:
        """A short hash of the system, by which an interrupted evaluation knows it again."""
        return hashlib.sha256(repr(self.describe()).encode("utf-8")).hexdigest()[:12]
