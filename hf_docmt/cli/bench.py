"""`docmt bench`: the commands of `hf_docmt.bench`, each with the options of its benchmarks, and reports of all."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from hf_docmt.cli.options import AsJson, refuse, whole_numbers

if TYPE_CHECKING:
    from hf_docmt.bench.results import Row


class BenchmarkGroup(TyperGroup):
    """The commands of all benchmarks beside those declared here."""

    def list_commands(self, ctx: typer.Context) -> list[str]:
        """The names of all commands."""
        from hf_docmt.bench import COMMANDS

        return [*COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: typer.Context, name: str) -> TyperCommand | None:
        """The command of this name; that of a benchmark knows its help, and its options when it is called."""
        from hf_docmt.bench import COMMANDS

        if name not in COMMANDS:
            return super().get_command(ctx, name)
        return BenchmarkCommand(name, help=COMMANDS[name].help)


class BenchmarkCommand(TyperCommand):
    """The command of a benchmark before it is called: the file of a benchmark, and torch, is imported only then."""

    def make_context(self, *arguments: Any, **extra: Any) -> typer.Context:
        """The context of the command with its options."""
        return build_command(self.name).make_context(*arguments, **extra)


bench_app = typer.Typer(cls=BenchmarkGroup, help="Speed and memory, measured side by side.", no_args_is_help=True)


@bench_app.command("all")
def run_all(
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Report file; it is written anew after every row.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The benchmarks in one report, with the ceilings of the machine: about two hours on one core."""
    from hf_docmt.bench.report import run_all_benchmarks
    from hf_docmt.bench.speed_tables import report_text
    from hf_docmt.files import check_writable_file

    if output is not None:
        check_writable_file(output)
    report = run_all_benchmarks(output, on_progress=lambda line: print(line, file=sys.stderr, flush=True))
    print(json.dumps(report.to_json()) if as_json else report_text(report))
    if report.failed():
        raise typer.Exit(1)


@bench_app.command("table")
def print_tables(report: Annotated[str, typer.Argument(help="A file that `docmt bench all` has written.")]) -> None:
    """Tables in Markdown of what a report of all benchmarks measured."""
    from hf_docmt.bench.report import BenchReport
    from hf_docmt.bench.speed_tables import speed_tables

    print(speed_tables(BenchReport.read(report), "markdown"))


def build_command(name: str) -> TyperCommand:
    """The command of one benchmark, or of several among which an option chooses, the first one by default."""
    from hf_docmt.bench import COMMANDS, load_benchmark

    command = COMMANDS[name]
    classes = {choice: load_benchmark(benchmark) for choice, benchmark in command.benchmarks.items()}
    options = {
        choice: {one.name: one for one in fields(kind) if "help" in one.metadata} for choice, kind in classes.items()
    }

    def run(call: typer.Context, as_json: bool, **values: Any) -> None:
        choice = values[command.option] if command.option else ""
        if choice not in classes:
            raise ValueError(f"--{command.option} is {choice!r}, expected {' or '.join(classes)}")
        for other, named in options.items():
            refuse(call, tuple(named.keys() - options[choice].keys()), f"is for --{command.option} {other}")
        chosen = {
            option: whole_numbers(option, values[option]) if isinstance(one.default, tuple) else values[option]
            for option, one in options[choice].items()
        }
        result = classes[choice](**chosen).run(on_row=print_row)
        print(json.dumps(result.to_json()) if as_json else result.to_text())

    parameters = {"call": Parameter("call", Parameter.KEYWORD_ONLY, annotation=typer.Context)}
    if command.option:
        parameters[command.option] = option_parameter(
            command.option, str, next(iter(classes)), f"{' or '.join(classes)}."
        )
    for choice, kind in classes.items():
        types = get_type_hints(kind)
        for option, one in options[choice].items():
            parameters.setdefault(option, option_parameter(option, types[option], one.default, one.metadata["help"]))
    parameters["as_json"] = Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=AsJson)
    run.__signature__ = Signature(list(parameters.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {option: one.annotation for option, one in parameters.items()}
    app = typer.Typer(add_completion=False)
    app.command(name, help=command.help)(run)
    return typer.main.get_command(app)


def option_parameter(name: str, kind: type, default: Any, text: str) -> Parameter:
    """A parameter from which typer makes an option; whole numbers come as text with commas."""
    if kind not in (int, float, str):
        kind, default = str, ",".join(map(str, default))
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, typer.Option(help=text)])


def print_row(row: Row) -> None:
    """Print a row of a long benchmark on standard error at once, so that an interrupted one keeps it."""
    from hf_docmt.bench.results import ScalingRow

    if isinstance(row, ScalingRow):
        print(row.to_line(), file=sys.stderr, flush=True)
