"""The architectures, by name: configuration, model, and how their batches are made. The one place that lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from pathlib import Path

SIDES = {"both": "source and target", "source": "source", "target": "target"}


@dataclass(frozen=True)
class Architecture:
    """One architecture; classes are imported when they are first asked for.

    `carries_state`: it reads documents in order, sentence by sentence, with a state that goes in and comes out.
    `separate_context`: context sentences are inputs of their own, the segment is the current sentence alone.
    """

    name: str
    config_path: str
    model_path: str
    carries_state: bool = False
    separate_context: bool = False

    @cached_property
    def config_class(self) -> type:
        return load(self.config_path)

    @cached_property
    def model_class(self) -> type:
        return load(self.model_path)

    def view(self, config) -> str:
        """How documents are cut for a model of this configuration: `sentence`, `window` or `chunk`."""
        view = "window" if self.separate_context else config.view
        if view == "window" and not config.past_context and not config.future_context:
            return "sentence"
        return view

    def examples(self, documents, tokenizer, config, view: str | None = None):
        """Documents as training examples (see `hf_docmt.data.examples.Examples`)."""
        from hf_docmt.data.context_examples import ContextExamples
        from hf_docmt.data.examples import Examples

        view = view or self.view(config)
        around = view == "window"
        shared = {
            "source_lang": config.source_lang,
            "target_lang": config.target_lang,
            "view": view,
            "past_context": config.past_context if around else 0,
            "future_context": config.future_context if around else 0,
            "context_sides": config.context_sides,
            "use_bod": config.use_bod,
        }
        if self.separate_context:
            return ContextExamples(documents, tokenizer, **shared)
        return Examples(documents, tokenizer, max_target_tokens=config.chunk_tokens, **shared)

    def collator(self, config, tokenizer, context_discount: float = 1.0) -> Callable:
        """What turns examples into a batch for a model of this configuration."""
        from hf_docmt.data.collators import ContextCollator, SegmentCollator

        shared = {"decoder_start_token_id": config.decoder_start_token_id, "use_bod": config.use_bod}
        if self.separate_context:
            return ContextCollator(tokenizer, context_sides=config.context_sides, **shared)
        return SegmentCollator(
            tokenizer, context_sides=config.context_sides, context_discount=context_discount, **shared
        )

    def reach(self, config) -> str:
        """In words, the context a model of this configuration sees."""
        if self.carries_state:
            return f"all sentences before, in a memory of {config.memory_size} vectors: {SIDES[config.memory_sides]}"
        window = getattr(config, "window", None)
        return self.segment_reach(config) + (f"; attention to {window} tokens on either side" if window else "")

    def segment_reach(self, config) -> str:
        if self.view(config) == "chunk":
            return f"chunks of up to {config.chunk_tokens} target tokens, source and target"
        if not config.past_context and not config.future_context:
            return "none: sentence level"
        return f"{config.past_context} past and {config.future_context} future sentences, {SIDES[config.context_sides]}"


ARCHITECTURES = {
    "caching": Architecture(
        "caching",
        "hf_docmt.modeling.configuration_caching:CachingConfig",
        "hf_docmt.modeling.modeling_caching:CachingForConditionalGeneration",
        separate_context=True,
    ),
    "concat": Architecture(
        "concat",
        "hf_docmt.modeling.configuration_concat:ConcatConfig",
        "hf_docmt.modeling.modeling_concat:ConcatForConditionalGeneration",
    ),
    "doct": Architecture(
        "doct",
        "hf_docmt.modeling.configuration_doct:DocTConfig",
        "hf_docmt.modeling.modeling_doct:DocTForConditionalGeneration",
        separate_context=True,
    ),
    "lst": Architecture(
        "lst",
        "hf_docmt.modeling.configuration_lst:LstConfig",
        "hf_docmt.modeling.modeling_lst:LstForConditionalGeneration",
    ),
    "memory": Architecture(
        "memory",
        "hf_docmt.modeling.configuration_memory:MemoryConfig",
        "hf_docmt.modeling.modeling_memory:MemoryForConditionalGeneration",
        carries_state=True,
    ),
    "multiencoder": Architecture(
        "multiencoder",
        "hf_docmt.modeling.configuration_multiencoder:MultiEncoderConfig",
        "hf_docmt.modeling.modeling_multiencoder:MultiEncoderForConditionalGeneration",
        separate_context=True,
    ),
    "routing": Architecture(
        "routing",
        "hf_docmt.modeling.configuration_routing:RoutingConfig",
        "hf_docmt.modeling.modeling_routing:RoutingForConditionalGeneration",
        separate_context=True,
    ),
    "window": Architecture(
        "window",
        "hf_docmt.modeling.configuration_window:WindowConfig",
        "hf_docmt.modeling.modeling_window:WindowForConditionalGeneration",
    ),
}


def get(name: str) -> Architecture:
    """The architecture of that name; `ValueError` with the nearest name for an unknown one."""
    if name not in ARCHITECTURES:
        near = get_close_matches(name, ARCHITECTURES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown architecture {name!r}: expected one of {', '.join(ARCHITECTURES)}.{hint}")
    return ARCHITECTURES[name]


def for_config(config) -> Architecture:
    """The architecture of a configuration, by its `model_type` (classes loaded from the Hub are not the local ones)."""
    return get(config.model_type.removeprefix("docmt-"))


def load_model(path: str | Path):
    """Model and tokenizer from a folder or the Hub, as `(model, tokenizer)`, the model in evaluation mode.

    `ValueError` for a checkpoint of another kind or one that cannot be read.
    """
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoTokenizer

    register_all()
    if Path(path).exists() and not (Path(path) / "config.json").exists():
        raise ValueError(f"{path} holds no model: config.json is missing. Give the folder that training wrote.")
    try:
        config = AutoConfig.from_pretrained(path)
        architecture = for_config(config)
        model, found = architecture.model_class.from_pretrained(path, config=config, output_loading_info=True)
        tokenizer = AutoTokenizer.from_pretrained(path)
    except (SafetensorError, OSError, RuntimeError) as error:
        raise ValueError(f"cannot load a model from {path}: {error}. Copy or train the checkpoint again.") from error
    wrong = sorted([*found["missing_keys"], *found["unexpected_keys"]])
    if wrong:
        raise ValueError(
            f"cannot load a model from {path}: {len(wrong)} weights are missing or have no place in a model of its "
            f"config.json ({', '.join(wrong[:3])}{', ...' * (len(wrong) > 3)}). Copy or train the checkpoint again."
        )
    return model.eval(), tokenizer


def register_all() -> None:
    """Make the transformers Auto classes know all architectures, so that their folders need no code of their own."""
    for architecture in ARCHITECTURES.values():
        register(architecture)


def register(architecture: Architecture) -> None:
    """Make the transformers Auto classes know an architecture."""
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    config_class = architecture.config_class
    AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
    AutoModelForSeq2SeqLM.register(config_class, architecture.model_class, exist_ok=True)


def load(path: str):
    module, name = path.split(":")
    return getattr(import_module(module), name)
