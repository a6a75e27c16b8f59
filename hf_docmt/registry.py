"""The architectures, by name: configuration, model, and how their batches are made. The only list of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_docmt.messages import closest_hint

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    from hf_docmt.modeling.modeling_docmt import DocMTForConditionalGeneration

MODEL_TYPE_PREFIX = "docmt-"
LAYER, NOTHING = r"\.(layers?|block|h)\.\d+\.", "(?!)"  # names of weights


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
        """What `config.json` calls the architecture."""
        return MODEL_TYPE_PREFIX + self.name

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
        from hf_docmt.model_card import write_card

        model_class = self._imported("modeling", "ForConditionalGeneration")
        model_class.write_card = write_card  # texts and templates of cards do not travel with the code of a model
        return model_class

    def _imported(self, module_prefix: str, class_suffix: str) -> Any:
        module = import_module(f"{self.package}.{module_prefix}_{self.name}".lstrip("."))
        return getattr(module, f"{self.class_prefix or self.name.capitalize()}{class_suffix}")

    def register(self) -> None:
        """Make the transformers Auto classes know it, so that its folders need no code of their own."""
        from transformers import AutoConfig, AutoModelForSeq2SeqLM

        AutoConfig.register(self.model_type, self.config_class, exist_ok=True)
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
        view: str | None = None,
        resolutions: Sequence[int | str] | None = None,
        num_proc: int | None = 1,
    ):
        """Documents as training examples, an `hf_docmt.data.examples.Examples`.

        `documents` is a `datasets.Dataset`; one in a cache is tokenized by `num_proc` processes.

        `view` replaces the configuration's own: `sentence`, `window` or `chunk`. With `resolutions`, which models of
        segments take, they are segments of these numbers of sentences and `document` (`MultiResolutionExamples`).
        """
        from hf_docmt.data.examples import ContextExamples, Examples, MultiResolutionExamples

        view = view or self.view(config)
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
        options |= {"view": view}
        if view == "window":
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
        """What turns examples into a batch, with the names and shapes of the data contract.

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
            f"architecture {architecture.name!r} is there already, in {registered.package}; give the new one another "
            "name"
        )


def get(name: str) -> Architecture:
    """The architecture of that name; `ValueError` with the nearest name for an unknown one.

    >>> get("concat").config_class(past_context=3).window_size
    4
    """
    if name not in ARCHITECTURES:
        hint = closest_hint(name, ARCHITECTURES, " Did you mean {!r}?")
        raise ValueError(f"unknown architecture {name!r}: expected one of {', '.join(ARCHITECTURES)}.{hint}")
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


def load_model(path: str | Path, revision: str | None = None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Model and tokenizer from a folder or the Hub, as `(model, tokenizer)`, the model in evaluation mode on the CPU.

    `revision` is a branch, tag or commit on the Hub, of which configuration, weights and tokenizer are taken. An
    adapter of peft is put into the weights of the model that it adapts. Raises
    `ValueError` for a checkpoint of another kind, one that cannot be read, and one whose weights are not those of its
    `config.json`.

    >>> model, tokenizer = load_model("runs/concat")
    >>> len(model.translate_documents([["Here is a lamp.", "It is old."]], tokenizer)[0])
    2
    """
    from hf_docmt.adapters import adapted_model, merge_adapter
    from hf_docmt.model_files import check_model_files, reading_model
    from hf_docmt.remote_code import load_tokenizer

    config = load_config(path, revision)
    if (Path(path) / "ctranslate2" / "model.bin").exists():
        raise ValueError(f"{path} holds weights of CTranslate2 alone; translate with --engine ctranslate2")
    base, model_class = adapted_model(path, revision), for_config(config).model_class
    check_model_files(path, revision)
    if base is not None:
        check_model_files(base)
    with reading_model(path):
        model = load_weights(model_class, base or path, None if base else revision, config=config)
        tokenizer = load_tokenizer(path, revision)
        if base is not None:
            model = merge_adapter(model, base, path, revision)
            check_weights(model, path)
    check_token_ids(model, tokenizer, path)
    return model.eval(), tokenizer


def load_config(path: str | Path, revision: str | None = None) -> PreTrainedConfig:
    """The configuration of a model's folder or Hub name; `ValueError` where it cannot be read or is of another package.

    That of an adapter which has none is that of the model which it adapts.
    """
    from hf_docmt.model_files import reading_model

    values = read_config(path, revision)
    with reading_model(path):
        try:
            architecture = for_model_type(values.get("model_type"))
            architecture.register()
            return architecture.config_class.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path}, config.json: {error}") from error


def read_config(path: str | Path, revision: str | None = None) -> dict[str, Any]:
    """What `config.json` says of a model of any package; ValueError as `load_config`."""
    from transformers import PreTrainedConfig
    from transformers.utils import cached_file

    from hf_docmt.adapters import adapted_model
    from hf_docmt.model_files import CONFIG, check_model_files, reading_model
    from hf_docmt.reachability import check_within_reach

    check_within_reach(path, revision)
    if revision is not None and Path(path).exists():
        raise ValueError(
            f"{path} is a folder, and only models on the Hub have revisions, got {revision!r}; leave it out"
        )
    base = adapted_model(path, revision)
    missing_ok = {"_raise_exceptions_for_missing_entries": False, **_version(revision)}
    if base is not None and cached_file(path, CONFIG, **missing_ok) is None:
        return read_config(base)
    if Path(path).exists() and not (Path(path) / CONFIG).exists():
        raise ValueError(f"{path} holds no model: config.json is missing; give a model folder or a name on the Hub")
    check_model_files(path, revision, (CONFIG,))
    with reading_model(path):
        try:
            return PreTrainedConfig.get_config_dict(path, **_version(revision))[0]
        except ValueError as error:
            raise ValueError(f"{path}, config.json: {error}") from error


def load_weights(model_class: Any, path: str | Path, revision: str | None = None, **options) -> PreTrainedModel:
    """What `from_pretrained` of a class gives, in evaluation mode; ValueError for weights that are missing or broken.

    Of models of other packages weights of heads that the class does not have may be left over.
    """
    options |= {"trust_remote_code": False, **_version(revision)}
    model, loading = model_class.from_pretrained(path, output_loading_info=True, **options)
    leftovers = LAYER if model.config.is_encoder_decoder else NOTHING
    check_loading(model, loading, path, "" if is_ours(model.config.model_type) else leftovers)
    check_weights(model, path)
    return model.eval()


def _version(revision: str | None) -> dict[str, str]:
    return {} if revision is None else {"revision": revision}


def check_loading(model: PreTrainedModel, loading: Mapping[str, Any], path: str | Path, leftovers: str = "") -> None:
    """ValueError for weights that are missing, or left over with such a name; `loading` as transformers tells it.

    Tables of sines, which some models compute and never save, may be missing.
    """
    modules = {f"{name}.weight": type(module).__name__ for name, module in model.named_modules()}
    missing = [name for name in loading["missing_keys"] if "Sinusoidal" not in modules.get(name, "")]
    wrong = sorted([*missing, *(name for name in loading["unexpected_keys"] if re.search(leftovers, name))])
    if wrong:
        raise ValueError(
            f"cannot load a model from {path}: {len(wrong)} weights are missing or do not belong to a model of its "
            f"config.json ({', '.join(wrong[:3])}{', ...' * (len(wrong) > 3)}). Copy or train the checkpoint again."
        )


def check_weights(model: PreTrainedModel, path: str | Path) -> None:
    """ValueError for weights that are nan or infinite, and for those that are all zero, with the name of the first one.

    Search would not tell of all of them: kernels of attention take scores that are nan for hidden ones. A download that
    was cut off in a preallocated file leaves zeros. Only what an architecture adds to the backbone may be zero: so it
    begins where it is to change nothing. Of models of other packages linear layers are looked at, but for adapters.
    """
    zeros = []
    for name, weight in model.named_parameters():
        extremes = [value.item() for value in weight.detach().aminmax()]
        if not all(map(math.isfinite, extremes)):
            raise ValueError(
                f"{path}: the weights {name} are not all finite numbers: the file is damaged, or training diverged. "
                "Copy the checkpoint again, or take an earlier one."
            )
        if not any(extremes) and not name.endswith("bias"):
            zeros.append(name)
    if zeros:
        linear = {f"{name}.weight" for name, module in model.named_modules() if type(module).__name__ == "Linear"}
        never_zero = {name for name in linear if "lora_" not in name}  # LoRA begins with zeros
        if is_ours(model.config.model_type):
            never_zero = {name for name, _ in backbone(model.config).named_parameters()}
        for name in sorted(never_zero.intersection(zeros)):
            raise ValueError(f"{path}: the weights {name} are all zero: the file was not copied whole. Copy it again.")


def backbone(config: PreTrainedConfig) -> DocMTForConditionalGeneration:
    """The plain Transformer of a configuration, without memory for its weights."""
    import torch

    from hf_docmt.modeling.modeling_docmt import DocMTForConditionalGeneration

    with torch.device("meta"):
        return DocMTForConditionalGeneration(config)


def check_token_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, path: str | Path) -> None:
    """ValueError for ids above the vocabulary, and for a generation config with which no translation ends."""
    size = model.config.vocab_size
    if tokenizer is not None and len(tokenizer) > size:
        raise ValueError(
            f"{path}: the tokenizer has {len(tokenizer)} tokens, the model's vocab_size is {size}; put the tokenizer "
            "that the model was trained with into the folder"
        )
    for name, config in (("config.json", model.config), ("generation_config.json", model.generation_config)):
        for field in [field for field in vars(config) if field.endswith("_token_id")]:
            ids = getattr(config, field)
            for token in ids if isinstance(ids, list) else [ids]:
                if token is not None and (not isinstance(token, int) or not 0 <= token < size):
                    raise ValueError(f"{path}: {field} of {name} is {ids!r}, expected ids from 0 to {size - 1}")
    if model.generation_config.eos_token_id is None:
        raise ValueError(f"{path}: generation_config.json has no eos_token_id, at which a translation ends; add it")


def register_all() -> None:
    """Make the transformers Auto classes know all architectures."""
    for architecture in ARCHITECTURES.values():
        architecture.register()
