"""`docmt bench`: a command for each registered benchmark."""

from __future__ import annotations

import json
import sys
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from hf_docmt.cli.options import AsJson, refuse, whole_numbers

if TYPE_CHECKING:
    from hf_docmt.bench.benchmark import Benchmark
    from hf_docmt.bench.results import BenchResult, Row


class BenchmarkGroup(TyperGroup):
    """The commands of all registered benchmarks beside those declared here."""

    def list_commands(self, ctx: typer.Context) -> list[str]:
        """The names of all commands."""
        from hf_docmt.bench.catalogue import benchmark_helps

        return [*benchmark_helps(), *super().list_commands(ctx)]

    def get_command(self, ctx: typer.Context, name: str) -> TyperCommand | None:
        """The command of this name; that of a benchmark knows its name and help, and its options when it is called."""
        from hf_docmt.bench.catalogue import benchmark_helps

        helps = benchmark_helps()
        return BenchmarkCommand(name, help=helps[name]) if name in helps else super().get_command(ctx, name)


class BenchmarkCommand(TyperCommand):
    """The command of a benchmark before it is called: the file of a benchmark, and torch, is imported only then."""

    def make_context(self, *arguments: Any, **extra: Any) -> typer.Context:
        """The context of the command with its options."""
        from hf_docmt.bench.benchmark import load_benchmarks

        found = [benchmark for benchmark in load_benchmarks().values() if benchmark.command == self.name]
        found.sort(key=lambda benchmark: not benchmark.default_by)
        return build_command(self.name, found).make_context(*arguments, **extra)


bench_app = typer.Typer(cls=BenchmarkGroup, help="Speed and memory, measured side by side.", no_args_is_help=True)


@bench_app.command("all")
def run_all(
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Report file; it is written anew after every row.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The benchmarks in one report, with the ceilings of the machine: about two hours on one core."""
    from hf_docmt.bench.all_benchmarks import run_all_benchmarks
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


def build_command(name: str, benchmarks: list[type[Benchmark]]) -> TyperCommand:
    """The command of one benchmark, or of several among which an option chooses, the first one by default."""

    def run(**arguments: Any) -> None:
        chosen = choose_benchmark(benchmarks, arguments)
        result = chosen(**benchmark_options(chosen, benchmarks, arguments)).run(on_row=print_row)
        print_result(result, arguments["as_json"])

    parameters: dict[str, Parameter] = {"call": Parameter("call", Parameter.KEYWORD_ONLY, annotation=typer.Context)}
    if len(benchmarks) > 1:
        text, choice = f"{' or '.join(str(one.by) for one in benchmarks)}.", benchmarks[0].option_of_choice
        parameters[choice] = option_parameter(choice, str, benchmarks[0].by, text)
    for benchmark in benchmarks:
        for option, one in option_fields(benchmark).items():
            kind = get_type_hints(benchmark)[option]
            parameters.setdefault(option, option_parameter(option, kind, one.default, one.metadata["help"]))
    parameters["as_json"] = Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=AsJson)
    run.__signature__ = Signature(list(parameters.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {option: one.annotation for option, one in parameters.items()}
    app = typer.Typer(add_completion=False)
    app.command(name, help="\n\n".join(one.help for one in benchmarks))(run)
    return typer.main.get_command(app)


def option_fields(benchmark: type[Benchmark]) -> dict:
    """The fields of a benchmark that are options of its command."""
    from dataclasses import fields

    return {one.name: one for one in fields(benchmark) if "help" in one.metadata}


def option_parameter(name: str, kind: type, default: Any, text: str) -> Parameter:
    """A parameter from which typer makes an option; whole numbers come as text with commas."""
    if kind not in (int, float, str):
        kind, default = str, ",".join(map(str, default))
    annotation = Annotated[kind, typer.Option(help=text)]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def choose_benchmark(benchmarks: list[type[Benchmark]], arguments: dict[str, Any]) -> type[Benchmark]:
    """The benchmark that the option of choice names; ValueError for another value."""
    option = benchmarks[0].option_of_choice
    by = arguments.get(option, benchmarks[0].by)
    for benchmark in benchmarks:
        if benchmark.by == by:
            return benchmark
    raise ValueError(f"--{option} is {by!r}, expected {' or '.join(str(one.by) for one in benchmarks)}")


def benchmark_options(chosen: type[Benchmark], benchmarks: list[type[Benchmark]], arguments: dict) -> dict[str, Any]:
    """The options of the chosen benchmark; ValueError where one of another benchmark was given."""
    own = option_fields(chosen)
    for benchmark in benchmarks:
        foreign = tuple(name for name in option_fields(benchmark) if name not in own)
        refuse(arguments["call"], foreign, f"is for --{benchmark.option_of_choice} {benchmark.by}")
    return {
        name: whole_numbers(name, arguments[name]) if isinstance(one.default, tuple) else arguments[name]
        for name, one in own.items()
    }


def print_row(row: Row) -> None:
    """Print a row of a long benchmark on standard error at once, so that an interrupted one keeps it."""
    from hf_docmt.bench.results import ScalingRow

    if isinstance(row, ScalingRow):
        print(row.to_line(), file=sys.stderr, flush=True)


def print_result(result: BenchResult, as_json: bool) -> None:
    """Print the result of a benchmark as text or JSON."""
    print(json.dumps(result.to_json()) if as_json else result.to_text())
