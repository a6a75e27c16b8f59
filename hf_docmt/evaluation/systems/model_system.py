"""What systems that hold a model of transformers share: context, languages, search, facts for reports."""

import hashlib
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from hf_docmt.evaluation.suites.items import context_name
from hf_docmt.evaluation.systems.system import ContextReach, System
from hf_docmt.messages import first_line
from hf_docmt.registry import check_weights
from hf_docmt.remote_code import load_tokenizer

NOT_SETTINGS = ("_name_or_path", "transformers_version", "dtype")  # fields of configurations that change no score
HEADS = {
    AutoModelForSeq2SeqLM: MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    AutoModelForCausalLM: MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
}


class ModelSystem(System):
    """A model and its tokenizer. `past_context` and `future_context` are the sentences of context that it reads.

    `generate_kwargs` are arguments of its `generate`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        *,
        past_context: int = 0,
        future_context: int = 0,
        generate_kwargs: dict | None = None,
    ):
        for field, value in (("past_context", past_context), ("future_context", future_context)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ValueError(f"{field} is {value!r}, expected a number of sentences, 0 or more")
        self.model, self.tokenizer, self.name = model, tokenizer, name
        self.past_context, self.future_context = past_context, future_context
        self.generate_kwargs = generate_kwargs or {}

    @classmethod
    def load(
        cls, name: str, *, dtype: torch.dtype, device: str, attn_implementation: str | None = None, **options
    ) -> "ModelSystem":
        """The system of a folder or Hub name, from what `load_model` reads."""
        model, tokenizer = cls.load_model(name, dtype)
        if attn_implementation is not None:
            model.set_attn_implementation(attn_implementation)
        return cls(model.to(device), tokenizer, str(name), **options)

    @classmethod
    @abstractmethod
    def load_model(cls, name: str, dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """Model and tokenizer of a folder or Hub name. ValueError: they cannot be read."""

    @property
    def context(self) -> ContextReach:
        """The sentences of context that it reads, and whether it reads their translations."""
        return ContextReach(self.past_context, self.future_context, self.target_context)

    @property
    def target_context(self) -> str:
        """`reference`, or `none` where it reads source context alone."""
        return "reference"

    @property
    def document_languages(self) -> tuple[str | None, str | None]:
        """`source_lang` and `target_lang` of the model's configuration."""
        config = self.model.config
        return getattr(config, "source_lang", None), getattr(config, "target_lang", None)

    @property
    def decoding(self) -> dict:
        """`beams`: those that were given, else those of the model's generation configuration; None without one."""
        given, own = self.generate_kwargs.get("generation_config"), getattr(self.model, "generation_config", None)
        configured = (given and given.num_beams) or (own and (own.num_beams or 1))
        beams = self.generate_kwargs.get("num_beams") or configured
        return {"strategy": None, "beams": beams}

    def fingerprint(self) -> str:
        """Of the description, all settings of model and generation, and up to 64 values of every weight."""
        settings = [config.to_dict() for config in (self.model.config, self.model.generation_config) if config]
        settings = [{key: one[key] for key in sorted(one) if key not in NOT_SETTINGS} for one in settings]
        found = hashlib.sha256(repr((self.describe(), self.decoding, self.generate_kwargs, settings)).encode("utf-8"))
        for name, weight in self.model.state_dict().items():
            values = weight.detach().reshape(-1)
            some = values[:: max(1, len(values) // 64)][:64].float().cpu()
            found.update(f"{name} {weight.dtype} {some.tolist()}".encode())
        return found.hexdigest()[:12]

    def model_facts(self, architecture: str, **config) -> dict:
        """The `model` section of a report; `config` distinguishes systems further, None for what does not apply."""
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        shown = {key: value for key, value in config.items() if value is not None}
        context = {"past_context": context_name(self.past_context), "future_context": self.future_context}
        return {
            "name": str(self.name),
            "architecture": architecture,
            "parameters": parameters,
            "config": {**shown, **context},
        }


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode, and afterwards as it was."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def end_tokens(model: PreTrainedModel) -> list[int]:
    """Ids at which `generate` ends a text."""
    ends = model.generation_config.eos_token_id
    if ends is None:
        raise ValueError("the model has no eos_token_id, at which a translation ends; set it in generation_config")
    return list(ends) if isinstance(ends, list | tuple) else [ends]


def auto_class(config: dict) -> type | None:
    """The class of transformers that loads a model with this `config.json`, encoder-decoders first; None if neither."""
    model_type, heads = config.get("model_type"), config.get("architectures")
    for found, names in HEADS.items():
        known = names.get(model_type, ())
        known = {known} if isinstance(known, str) else set(known)
        if known and (not heads or known & set(heads)):
            return found
    return None


def load_pretrained(auto_class: type, name: str, dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Model, in evaluation mode, and tokenizer of a folder or Hub name. ValueError: they cannot be read."""
    if dtype is torch.int8:
        raise ValueError(f"{name}: dtype int8 is for models of this package; choose float32, bfloat16 or float16")
    try:
        model = auto_class.from_pretrained(name, dtype=dtype, trust_remote_code=False)
        check_weights(model, name)
        return model.eval(), load_tokenizer(name)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"cannot load a model from {name}: {first_line(error)}; fetch it again") from error
