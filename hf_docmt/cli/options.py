"""Commands of functions whose parameters `hf_docmt.options` declares, one by one or in dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, cleandoc, signature
from typing import Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from hf_docmt.options import BASIC, METAVARS, PANELS, broken_bounds

TYPE_METAVARS = {int: "N", float: "X", str: "TEXT", bool: ""}


class Command(TyperCommand):
    """A command with `--help` in the panel of its first option."""

    def get_help_option(self, ctx):
        shown = super().get_help_option(ctx)
        panels = (getattr(parameter, "rich_help_panel", None) for parameter in self.params)
        shown.rich_help_panel, shown.metavar = next(filter(None, panels), None), ""
        for each in self.params:
            if each.param_type_name == "argument":
                vars(each)["display_type_rich"] = lambda ctx: None  # <str>
        return shown


def command(run: Callable[..., None]) -> Callable[..., None]:
    """The function that typer makes a command of: it reads the options and calls `run`.

    A parameter of `run` is an option or argument, whose declaration is its default; a dataclass, all of whose fields
    are options; or the `typer.Context` of the call. Paragraphs of the docstring that have indented lines keep their
    lines in the help; others are filled to the width of the terminal.
    """
    types = get_type_hints(run)
    groups = {name: kind for name, kind in types.items() if is_dataclass(kind)}
    declared = list(_declared(run, types))
    readers = {parameter.name: item.metadata["read"] for parameter, item in declared if item.metadata.get("read")}

    @wraps(run)
    def read_and_run(**values: Any) -> None:
        for parameter, item in declared:
            if bounds := broken_bounds(item.metadata, values[parameter.name]):
                hint = f"'{parameter.default.param_decls[-1]}'"
                raise typer.BadParameter(f"got {values[parameter.name]}, expected {bounds}", param_hint=hint)
        values |= {name: read(values[name]) for name, read in readers.items() if values[name] is not None}
        filled = {
            name: kind(**{item.name: values.pop(item.name) for item in fields(kind)}) for name, kind in groups.items()
        }
        run(**values, **filled)

    parameters = _by_panel([parameter for parameter, _ in declared])
    if "call" in types:
        parameters.insert(0, Parameter("call", Parameter.KEYWORD_ONLY, annotation=typer.Context))
    read_and_run.__signature__ = Signature(parameters)
    read_and_run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    paragraphs = cleandoc(run.__doc__).split("\n\n")
    read_and_run.__doc__ = "\n\n".join(text if "\n  " in text else text.replace("\n", " ") for text in paragraphs)
    return read_and_run


def _declared(run: Callable[..., None], types: dict[str, Any]) -> Iterator[tuple[Parameter, Field]]:
    """Every option of a function, those of dataclasses included, as a parameter for typer and with its declaration."""
    for name, parameter in signature(run).parameters.items():
        kind = types[name]
        if is_dataclass(kind):
            inner, panel = get_type_hints(kind), getattr(kind, "PANEL", None)
            yield from ((_parameter(item.name, item, inner[item.name], panel), item) for item in fields(kind))
        elif kind is not typer.Context:
            yield _parameter(name, parameter.default, kind), parameter.default


def _by_panel(parameters: list[Parameter]) -> list[Parameter]:
    """Parameters in the order of their panels. If any option has one, those without are basic ones."""
    shown = [parameter.default for parameter in parameters]
    for each in shown if any(each.rich_help_panel for each in shown) else ():
        if isinstance(each, OptionInfo):
            each.rich_help_panel = each.rich_help_panel or BASIC
    return sorted(parameters, key=lambda parameter: [None, *PANELS].index(parameter.default.rich_help_panel))


def _parameter(name: str, item: Field, annotation: Any, panel: str | None = None) -> Parameter:
    settings, default = item.metadata, item.default
    if settings.get("read"):
        annotation = list[str] if settings.get("repeated") else str
        annotation, default = (
            (annotation | None, None) if default is None else (annotation, ",".join(map(str, default)))
        )
    default = ... if default is MISSING else default
    kind = next((kind for kind in (annotation, *get_args(annotation)) if kind in TYPE_METAVARS), str)
    metavar = settings.get("metavar") or METAVARS.get(settings.get("read")) or TYPE_METAVARS[kind]
    shown = {"help": settings["help"], "metavar": metavar, "rich_help_panel": settings.get("panel") or panel}
    shown["show_default"] = "efault" not in shown["help"]
    if settings.get("is_argument"):
        declared = typer.Argument(default, **shown | {"metavar": settings["metavar"] or name.upper()})
    else:
        flags = settings["flags"] or (f"--{name.replace('_', '-')}",)
        declared = typer.Option(default, *flags, **shown)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=declared, annotation=annotation)


def refuse(call: typer.Context, options: Iterable[str], reason: str) -> None:
    """Raise `ValueError` if one of these options was given on the command line."""
    flags = {parameter.name: parameter.opts[-1] for parameter in call.command.params}
    for name in options:
        if call.get_parameter_source(name).name != "DEFAULT":
            raise ValueError(f"{flags[name]} {reason}; remove it")
