"""Commands of functions whose parameters `hf_docmt.options` declares, one by one or in dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

import typer


def command(run: Callable[..., None]) -> Callable[..., None]:
    """The function that typer makes a command of: it reads the options and calls `run`.

    A parameter of `run` is an option or argument, whose declaration is its default; a dataclass, all of whose fields
    are options; or the `typer.Context` of the call.
    """
    types = get_type_hints(run)
    groups = {name: kind for name, kind in types.items() if is_dataclass(kind)}
    declared = list(_declared(run, types))
    readers = {parameter.name: item.metadata["read"] for parameter, item in declared if item.metadata.get("read")}

    @wraps(run)
    def read_and_run(**values: Any) -> None:
        values |= {name: read(values[name]) for name, read in readers.items() if values[name] is not None}
        filled = {
            name: kind(**{item.name: values.pop(item.name) for item in fields(kind)}) for name, kind in groups.items()
        }
        run(**values, **filled)

    parameters = [parameter for parameter, _ in declared]
    if "call" in types:
        parameters.insert(0, Parameter("call", Parameter.KEYWORD_ONLY, annotation=typer.Context))
    read_and_run.__signature__ = Signature(parameters)
    read_and_run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return read_and_run


def _declared(run: Callable[..., None], types: dict[str, Any]) -> Iterator[tuple[Parameter, Field]]:
    """Every option of a function, those of dataclasses included, as a parameter for typer and as it was declared."""
    for name, parameter in signature(run).parameters.items():
        if is_dataclass(types[name]):
            inner = get_type_hints(types[name])
            yield from ((_parameter(item.name, item, inner[item.name]), item) for item in fields(types[name]))
        elif types[name] is not typer.Context:
            yield _parameter(name, parameter.default, types[name]), parameter.default


def _parameter(name: str, item: Field, annotation: Any) -> Parameter:
    settings, default = item.metadata, item.default
    if settings.get("read"):
        annotation = list[str] if settings.get("repeated") else str
        annotation, default = (
            (annotation | None, None) if default is None else (annotation, ",".join(map(str, default)))
        )
    default = ... if default is MISSING else default
    if settings.get("is_argument"):
        shown = typer.Argument(default, help=settings["help"], metavar=settings["metavar"])
    else:
        flags = settings["flags"] or (f"--{name.replace('_', '-')}",)
        least, panel = settings.get("least"), settings.get("panel")
        shown = typer.Option(default, *flags, help=settings["help"], min=least, rich_help_panel=panel)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=shown, annotation=annotation)


def refuse(call: typer.Context, options: Iterable[str], reason: str) -> None:
    """Raise `ValueError` where one of these options was given on the command line."""
    flags = {parameter.name: parameter.opts[-1] for parameter in call.command.params}
    for name in options:
        if call.get_parameter_source(name).name != "DEFAULT":
            raise ValueError(f"{flags[name]} {reason}; leave it out")
