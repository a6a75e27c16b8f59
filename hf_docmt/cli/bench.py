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
    """The commands of all registered benchmarks, built when they are asked for: benchmarks import torch."""

    @property
    def commands(self) -> dict[str, TyperCommand]:  # type: ignore[override]
        """Every command by its name."""
        from hf_docmt.bench.benchmark import load_benchmarks

        benchmarks: dict[str, list[type[Benchmark]]] = {}
        for benchmark in load_benchmarks().values():
            benchmarks.setdefault(benchmark.command, []).append(benchmark)
        for found in benchmarks.values():
            found.sort(key=lambda benchmark: not benchmark.default_by)
        return {name: build_command(name, found) for name, found in benchmarks.items()}

    @commands.setter
    def commands(self, commands: dict) -> None:
        """Ignored: click sets the commands that were declared, which are none."""


bench_app = typer.Typer(cls=BenchmarkGroup, help="Speed and memory, measured side by side.", no_args_is_help=True)


def build_command(name: str, benchmarks: list[type[Benchmark]]) -> TyperCommand:
    """The command of one benchmark, or of several among which `--by` chooses, the first one by default."""

    def run(**arguments: Any) -> None:
        chosen = choose_benchmark(benchmarks, arguments)
        result = chosen(**benchmark_options(chosen, benchmarks, arguments)).run(on_row=print_row)
        print_result(result, arguments["as_json"])

    parameters: dict[str, Parameter] = {"call": Parameter("call", Parameter.KEYWORD_ONLY, annotation=typer.Context)}
    if len(benchmarks) > 1:
        text = f"{' or '.join(str(one.by) for one in benchmarks)}."
        parameters["by"] = option_parameter("by", str, benchmarks[0].by, text)
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
    """The benchmark that `--by` names; ValueError for another value."""
    by = arguments.get("by", benchmarks[0].by)
    for benchmark in benchmarks:
        if benchmark.by == by:
            return benchmark
    raise ValueError(f"--by is {by!r}, expected {' or '.join(str(one.by) for one in benchmarks)}")


def benchmark_options(chosen: type[Benchmark], benchmarks: list[type[Benchmark]], arguments: dict) -> dict[str, Any]:
    """The options of the chosen benchmark; ValueError where one of another benchmark was given."""
    own = option_fields(chosen)
    for benchmark in benchmarks:
        foreign = tuple(name for name in option_fields(benchmark) if name not in own)
        refuse(arguments["call"], foreign, f"is for --by {benchmark.by}")
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
