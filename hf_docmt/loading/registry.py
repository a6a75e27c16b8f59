"""The architectures, by name: configuration, model, and how their batches are made. The only list of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hf_docmt.messages import check_known

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

MODEL_TYPE_PREFIX = "docmt-"


@dataclass(frozen=True)
class Architecture:
    """One architecture: its name says where its classes are, and these are imported when they are first asked for.

    For the name `toy` the configuration is `ToyConfig` in `configuration_toy.py`, with the model type `docmt-toy`, and
    the model is `ToyForConditionalGeneration` in `modeling_toy.py`.

    Args:
        name: what recipes and reports call it.
        class_prefix: the beginning of the class names where it is not the capitalised name.
        package: the package that holds both files; "" where they are modules of their own on `sys.path`.
        carries_state: it reads documents in order, sentence by sentence, with a state that goes in and comes out.
        separate_context: context sentences are inputs of their own; the segment is the current sentence alone.
    """

    name: str
    class_prefix: str | None = None
    package: str = "hf_docmt.modeling"
    carries_state: bool = False
    separate_context: bool = False

    @property
    def model_type(self) -> str:
        """The name of the architecture in `config.json`."""
        return MODEL_TYPE_PREFIX + self.name

    @property
    def reads_segments(self) -> bool:
        """Whether one sequence has several sentences, with separators between them."""
        return not (self.separate_context or self.carries_state)

    @cached_property
    def config_class(self) -> type[PreTrainedConfig]:
        config_class = self._imported("configuration", "Config")
        if config_class.model_type != self.model_type:
            raise ValueError(
                f"{config_class.__module__}:{config_class.__name__}: model_type is {config_class.model_type!r}, "
                f"expected {self.model_type!r} for the architecture {self.name!r}; correct it in the class"
            )
        return config_class

    @cached_property
    def model_class(self) -> type[PreTrainedModel]:
        from hf_docmt.engine.generation import install
        from hf_docmt.loading.model_card import write_card

        install()
        model_class = self._imported("modeling", "ForConditionalGeneration")
        model_class.write_card = write_card  # texts and templates of cards do not travel with the code of a model
        return model_class

    def _imported(self, module_prefix: str, class_suffix: str) -> Any:
        module = import_module(f"{self.package}.{module_prefix}_{self.name}".lstrip("."))
        return getattr(module, f"{self.class_prefix or self.name.capitalize()}{class_suffix}")

    def register(self) -> None:
        """Make the transformers Auto classes know it, so that its folders need no code of their own."""
        from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM

        AutoConfig.register(self.model_type, self.config_class, exist_ok=True)
        if self.model_class.model_class.config_class is self.config_class:  # else that of another architecture
            AutoModel.register(self.config_class, self.model_class.model_class, exist_ok=True)
        AutoModelForSeq2SeqLM.register(self.config_class, self.model_class, exist_ok=True)

    def view(self, config: PreTrainedConfig) -> str:
        """How documents are cut for a model of this configuration: `sentence`, `window` or `chunk`."""
        view = "window" if self.separate_context else config.view
        if view == "window" and not config.past_context and not config.future_context:
            return "sentence"
        return view

    def examples(
        self,
        documents,
        tokenizer: PreTrainedTokenizerBase,
        config: PreTrainedConfig,
        resolutions: Sequence[int | str] | None = None,
        num_proc: int | None = 1,
    ):
        """Documents as training examples, an `hf_docmt.data.examples.Examples`.

        `documents` is a `datasets.Dataset`; one in a cache is tokenized by `num_proc` processes.

        With `resolutions`, which models of segments take, they are segments of these numbers of sentences and
        `document` (`MultiResolutionExamples`).
        """
        from hf_docmt.data.examples import ContextExamples, Examples, MultiResolutionExamples

        options = {
            "source_lang": config.source_lang,
            "target_lang": config.target_lang,
            "context_sides": config.context_sides,
            "use_bod": config.use_bod,
            "num_proc": num_proc,
        }
        if resolutions is not None:
            options |= {"max_target_tokens": config.chunk_tokens, "resolutions": resolutions}
            return MultiResolutionExamples(documents, tokenizer, **options)
        options |= {"view": self.view(config)}
        if options["view"] == "window":
            options |= {"past_context": config.past_context, "future_context": config.future_context}
        if self.separate_context:
            return ContextExamples(documents, tokenizer, **options)
        return Examples(documents, tokenizer, max_target_tokens=config.chunk_tokens, **options)

    def collator(
        self,
        config: PreTrainedConfig,
        tokenizer: PreTrainedTokenizerBase,
        context_discount: float = 1.0,
        languages: tuple[str | None, str | None] = (None, None),
    ) -> Callable[[list], dict]:
        """The collator, which makes batches with the names and shapes of the data contract.

        `context_discount` is the weight of context tokens in the loss; models with separate context write none.
        `languages` are codes of source and target, None = those of the configuration. ValueError: they are missing or
        unknown.
        """
        from hf_docmt.data.collators import ContextCollator, SegmentCollator

        options = {
            "context_sides": config.context_sides,
            "sequence_format": config.sequence_format(*languages),
            "use_bod": config.use_bod,
        }
        if self.separate_context:
            return ContextCollator(tokenizer, **options)
        return SegmentCollator(tokenizer, context_discount=context_discount, **options)


ARCHITECTURES: dict[str, Architecture] = {
    architecture.name: architecture
    for architecture in (
        Architecture("caching", separate_context=True),
        Architecture("concat"),
        Architecture("doct", class_prefix="DocT", separate_context=True),
        Architecture("gtransformer", class_prefix="GTransformer"),
        Architecture("han", separate_context=True),
        Architecture("lst"),
        Architecture("memory", carries_state=True),
        Architecture("multiencoder", class_prefix="MultiEncoder", separate_context=True),
        Architecture("routing", separate_context=True),
        Architecture("window"),
    )
}


def register_architecture(architecture: Architecture) -> None:
    """Add an architecture of another package: recipes, commands and `load_model` know it from now on.

    Raises `ValueError` for a name that another architecture has.

    >>> register_architecture(Architecture("toy", package="my_package"))  # my_package.modeling_toy, configuration_toy
    >>> del ARCHITECTURES["toy"]
    """
    registered = ARCHITECTURES.setdefault(architecture.name, architecture)
    if registered != architecture:
        raise ValueError(
            f"architecture {architecture.name!r} already exists, in {registered.package}; give the new one another name"
        )


def get(name: str) -> Architecture:
    """The architecture of that name; `ValueError` with the nearest name for an unknown one.

    >>> get("concat").config_class(past_context=3).window_size
    4
    """
    check_known(name, ARCHITECTURES, "architecture", "expected one of")
    return ARCHITECTURES[name]


def for_config(config: PreTrainedConfig) -> Architecture:
    """The architecture of a configuration, by its `model_type` (classes loaded from the Hub are not the local ones).

    Raises `ValueError` for a model of another package.
    """
    return for_model_type(config.model_type)


def is_ours(model_type: str | None) -> bool:
    """Whether a `model_type` is one of this package, or of one that has added an architecture to it."""
    return str(model_type).startswith(MODEL_TYPE_PREFIX)


def for_model_type(model_type: str | None) -> Architecture:
    """The architecture with this `model_type` in its `config.json`; `ValueError` for one of another package."""
    if not is_ours(model_type):
        raise ValueError(
            f"unknown architecture {model_type!r}: expected one of {', '.join(ARCHITECTURES)}; `docmt "
            "convert MODEL NEW_FOLDER --architecture NAME` makes one of a Marian, BART, mBART or M2M-100 (NLLB) model"
        )
    return get(str(model_type).removeprefix(MODEL_TYPE_PREFIX))


def register_all() -> None:
    """Make the Auto classes of transformers know all architectures: they ask for no trust then.

    >>> register_all()
    """
    for architecture in ARCHITECTURES.values():
        architecture.register()
