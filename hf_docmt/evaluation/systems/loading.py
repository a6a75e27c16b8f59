"""Systems from model folders and the Hub, of the kind that the configuration has."""

from collections.abc import Collection, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import get_args

import torch
from transformers import PreTrainedConfig

from hf_docmt.evaluation.systems.system import SYSTEMS, System
from hf_docmt.files import check_hub_name
from hf_docmt.messages import closest_hint, first_line

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "int8": torch.int8}


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
    (`Seq2SeqSystem`), `causal` a causal language model (`CausalSystem`); `auto` finds the kind by the configuration.
    Attention weights need `attn_implementation="eager"`. ValueError: no model there or one that cannot be read,
    another kind than asked for, no language modelling head, unknown options (those of a model that resemble none of
    its class are left to `generate`).

    >>> system = load_system("runs/concat", past_context=1)
    >>> system.context.past, system.languages
    (1, ('en', 'de'))
    """
    known = system_classes()
    for field, value, allowed in (("kind of system", kind, ("auto", *known)), ("dtype", dtype, DTYPES)):
        if value not in allowed:
            raise ValueError(f"unknown {field} {value!r}: expected one of {', '.join(allowed)}")
    found = kind_of(name)
    if kind not in ("auto", found):
        raise ValueError(f"{name}: a model of kind {found}, not {kind}; leave the kind at 'auto' or give another model")
    system = known[found]
    for option in sorted(options.keys() - system.options()):
        if (hint := closest_hint(option, system.options())) or not system.takes_more_options():
            raise ValueError(f"unknown option {option!r} of a {found} system{hint}")
    return system.load(name, dtype=DTYPES[dtype], device=device, attn_implementation=attn_implementation, **options)


def kind_of(name: str | Path) -> str:
    """The kind of a model folder or a model on the Hub; its weights are not read. ValueError: none, or no model."""
    if Path(name).exists() and not (Path(name) / "config.json").is_file():
        raise ValueError(f"{name} holds no model: config.json is missing; give a model folder or a name on the Hub")
    check_hub_name(name, "model")
    try:
        config = PreTrainedConfig.get_config_dict(name)[0]
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
    annotations = system_classes()[kind].options()
    types = {name: {annotation, *get_args(annotation)} & {int, str} for name, annotation in annotations.items()}
    known = {name: found.pop() for name, found in types.items() if found and name not in without}
    options = {}
    for pair in pairs:
        key, given, value = pair.partition("=")
        if not given or key in options:
            raise ValueError(f"option {pair!r}, expected KEY=VALUE, every key once")
        if key not in known:
            hint = closest_hint(key, known)
            raise ValueError(f"unknown option {key!r} of a {kind} system, expected {', '.join(known) or 'none'}{hint}")
        if known[key] is int and not value.isdecimal():
            raise ValueError(f"option {pair!r}, expected a number, such as {key}=2")
        options[key] = known[key](value)
    return options


def system_classes() -> dict[str, type[System]]:
    """All registered classes by kind: those of this folder, and those from outside that were imported."""
    _import_built_in()
    return SYSTEMS


@cache
def _import_built_in() -> None:
    """Import the modules of this folder; their classes come first."""
    package = "hf_docmt.evaluation.systems"
    for module in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")
    outside = [kind for kind, found in SYSTEMS.items() if not found.__module__.startswith(package)]
    for kind in outside:
        SYSTEMS[kind] = SYSTEMS.pop(kind)
