"""Systems from model folders and the Hub, of the kind that the configuration tells."""

import inspect
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import get_args

import torch
from safetensors import SafetensorError
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from hf_docmt import registry
from hf_docmt.evaluation.systems.causal import CausalSystem
from hf_docmt.evaluation.systems.docmt import DocMTSystem
from hf_docmt.evaluation.systems.interface import System
from hf_docmt.evaluation.systems.seq2seq import Seq2SeqSystem

KINDS = {"docmt": DocMTSystem, "seq2seq": Seq2SeqSystem, "causal": CausalSystem}
HEADS = {
    "seq2seq": (AutoModelForSeq2SeqLM, MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES),
    "causal": (AutoModelForCausalLM, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def load_system(
    name: str | Path,
    kind: str = "auto",
    *,
    dtype: str = "float32",
    device: str = "cpu",
    attn_implementation: str | None = None,
    **options,
) -> System:
    """A system from a folder or a name on the Hub; `options` are those of its class.

    `docmt` is a model of this package (`DocMTSystem`), `seq2seq` any encoder-decoder model of transformers
    (`Seq2SeqSystem`), `causal` a causal language model (`CausalSystem`); `auto` tells them by the configuration.
    Attention weights need `attn_implementation="eager"`. ValueError: no model there or one that cannot be read,
    another kind than asked for, no language modelling head, unknown options.
    """
    for field, value, known in (("kind of system", kind, ("auto", *KINDS)), ("dtype", dtype, DTYPES)):
        if value not in known:
            raise ValueError(f"unknown {field} {value!r}: expected one of {', '.join(known)}")
    found = kind_of(name)
    if kind not in ("auto", found):
        raise ValueError(f"{name}: a model of kind {found}, not {kind}; leave the kind at 'auto' or give another model")
    _check_options(options, found)
    model, tokenizer = _load(name, found, DTYPES[dtype])
    if attn_implementation is not None:
        model.set_attn_implementation(attn_implementation)
    return KINDS[found](model.to(device), tokenizer, str(name), **options)


def kind_of(name: str | Path) -> str:
    """Which of `KINDS` a model folder or a model on the Hub is; its weights are not read."""
    if Path(name).exists() and not (Path(name) / "config.json").is_file():
        raise ValueError(f"{name} holds no model: config.json is missing; give a model folder or a name on the Hub")
    try:
        config = PreTrainedConfig.get_config_dict(name)[0]
    except OSError as error:
        raise ValueError(f"{name}: no model there ({_first_line(error)}); check the folder or the name") from error
    model_type = config.get("model_type")
    if str(model_type).startswith("docmt-"):
        return "docmt"
    fitting = [kind for kind, (_, names) in HEADS.items() if model_type in names]
    heads = config.get("architectures")
    if heads:
        fitting = [kind for kind in fitting if set(heads) & set(_classes(HEADS[kind][1][model_type]))]
    if not fitting:
        raise ValueError(
            f"{name}: a model of type {model_type!r} with {', '.join(heads or ['no class named'])}, expected an "
            "encoder-decoder or a causal language model of transformers, or a model of this package"
        )
    return fitting[0]


def read_options(pairs: Sequence[str], kind: str, without: Collection[str] = ()) -> dict[str, str | int]:
    """Options of a kind of system from texts `KEY=VALUE`; those that are texts or numbers, but for `without`.

    ValueError: no `=`, an unknown key or one that is given twice, a value that is no number where one is needed.
    """
    types = {name: {annotation, *get_args(annotation)} & {int, str} for name, annotation in _options(kind).items()}
    known = {name: found.pop() for name, found in types.items() if found and name not in without}
    options = {}
    for pair in pairs:
        key, given, value = pair.partition("=")
        if not given or key in options:
            raise ValueError(f"option {pair!r}, expected KEY=VALUE, every key once")
        if key not in known:
            hint = "".join(f"; did you mean {close!r}?" for close in get_close_matches(key, known, n=1))
            raise ValueError(f"unknown option {key!r} of a {kind} system, expected {', '.join(known) or 'none'}{hint}")
        if known[key] is int and not value.isdecimal():
            raise ValueError(f"option {pair!r}, expected a number, such as {key}=2")
        options[key] = known[key](value)
    return options


def _classes(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _check_options(options: dict, kind: str) -> None:
    known = _options(kind)
    for option in options:
        if close := [] if option in known else get_close_matches(option, known, n=1):
            raise ValueError(f"unknown option {option!r} of a {kind} system; did you mean {close[0]!r}?")


def _options(kind: str) -> dict[str, type]:
    """The options of a kind of system, with their types."""
    parameters = inspect.signature(KINDS[kind]).parameters.values()
    return {one.name: one.annotation for one in parameters if one.kind is one.KEYWORD_ONLY}


def _load(name: str | Path, kind: str, dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    if kind == "docmt":
        model, tokenizer = registry.load_model(name)
        return model.to(dtype), tokenizer
    try:
        model = HEADS[kind][0].from_pretrained(name, dtype=dtype)
        return model.eval(), AutoTokenizer.from_pretrained(name)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"cannot load a model from {name}: {_first_line(error)}; fetch it again") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
