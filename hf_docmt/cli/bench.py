"""`docmt bench`: the benchmarks, a command each, and reports of all of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import fields, make_dataclass
from typing import TYPE_CHECKING, Any

import typer

from hf_docmt.bench import options as of
from hf_docmt.cli.options import command, refuse
from hf_docmt.options import AS_JSON, argument, option

if TYPE_CHECKING:
    from hf_docmt.bench.results import Row

bench_app = typer.Typer(help="Speed and memory, measured side by side.", no_args_is_help=True)


def add_command(name: str, help: str, benchmarks: Mapping[str, tuple[str, type]], chooser: str | None = None) -> None:
    """Add the command of a benchmark, or of several among which the option `chooser` decides, the first by default.

    `benchmarks`: name and options of each, by the value of that option. Its file, and torch, is imported when it runs.
    """
    kinds = {choice: kind for choice, (_, kind) in benchmarks.items()}
    names = {choice: {item.name for item in fields(kind)} for choice, kind in kinds.items()}

    def run(*, call: typer.Context, options: Any, as_json: bool = AS_JSON) -> None:
        from hf_docmt.bench import load_benchmark

        choice = getattr(options, chooser) if chooser else next(iter(benchmarks))
        if choice not in benchmarks:
            raise ValueError(f"--{chooser} is {choice!r}, expected {' or '.join(benchmarks)}")
        for other in benchmarks:
            refuse(call, names[other] - names[choice], f"is for --{chooser} {other}")
        benchmark = load_benchmark(benchmarks[choice][0])(**{name: getattr(options, name) for name in names[choice]})
        result = benchmark.run(on_row=print_row)
        print(json.dumps(result.to_json()) if as_json else result.to_text())

    choices = option(next(iter(benchmarks)), f"{' or '.join(benchmarks)}.")
    declared = [(chooser, str, choices)] if chooser else []
    run.__annotations__["options"] = make_dataclass("Options", declared, bases=(*kinds.values(),), kw_only=True)
    bench_app.command(name, help=help)(command(run))


add_command(
    "architectures",
    "Sentences per second of translating documents by every architecture, against concat of the same size.",
    {"": ("architectures", of.ArchitecturesOptions)},
)
add_command(
    "attention",
    "Time and memory of a training step by length: concat, lst and window attention; decoding with lst.\n\n"
    "Every row is printed on standard error as soon as it is measured.",
    {"": ("attention", of.AttentionOptions)},
)
add_command(
    "ceilings",
    "GFLOP/s of products of large matrices and GB/s of a copy from memory, with nothing of ours.",
    {"": ("ceilings", of.CeilingsOptions)},
)
add_command(
    "contrast",
    "Items per second of contrastive scoring, against scoring one candidate at a time.",
    {"": ("contrast", of.ContrastOptions)},
)
add_command(
    "cost",
    "Time and memory of translating, or of training: by length of documents, or by sentences of context.\n\n"
    "By length: sentences alone, with recurrent memory, whole documents. Every row is printed on standard error as "
    "soon as it is measured. On one core (25 ms per token), one repeat over the lengths 500,1000,4000 or the "
    "contexts 0,1,2,10 took eleven minutes; the defaults take longer.\n\n"
    "By context: one encoder, two, caching with sequence shortening, the Document Transformer, routing.",
    {"length": ("cost-by-length", of.CostByLengthOptions), "context": ("cost-by-context", of.CostByContextOptions)},
    chooser="by",
)
add_command(
    "data",
    "Time to the first update, memory and tokens per second of training on so many sentence pairs.",
    {"": ("data", of.DataOptions)},
)
add_command(
    "decode",
    "Sentences per second of generate(), against MarianMT with the same weights.\n\n"
    "With --engine ctranslate2: document windows by CTranslate2, ours and transformers' class.",
    {"transformers": ("decode", of.DecodeOptions), "ctranslate2": ("window-decoding", of.WindowDecodingOptions)},
    chooser="engine",
)
add_command(
    "documents",
    "Sentences per second of document translation by its strategies, and by CTranslate2's where that is installed.",
    {"": ("documents", of.DocumentsOptions)},
)
add_command(
    "train",
    "Target tokens per second in training, against fixed-size random batches in Seq2SeqTrainer.\n\n"
    "--by memory: time and memory of a training step on a long document, with and without all logits.",
    {"speed": ("train", of.TrainOptions), "memory": ("train_memory", of.TrainMemoryOptions)},
    chooser="by",
)


@bench_app.command("all")
@command
def run_all(
    *,
    output: str | None = option(None, "Report file; it is written anew after every row.", "-o", "--output"),
    only: str | None = option(None, "One benchmark alone; of a report that is there, the rest of which stays."),
    as_json: bool = AS_JSON,
) -> None:
    """The benchmarks in one report, with the ceilings of the machine: about two hours on one core."""
    from hf_docmt.bench.report import run_all_benchmarks
    from hf_docmt.bench.speed_tables import report_text
    from hf_docmt.files import check_writable_file

    if output is not None:
        check_writable_file(output)
    report = run_all_benchmarks(output, lambda line: print(line, file=sys.stderr, flush=True), only)
    print(json.dumps(report.to_json()) if as_json else report_text(report))
    if report.failed():
        raise typer.Exit(1)


@bench_app.command("table")
@command
def print_tables(*, report: str = argument("A file that `docmt bench all` has written.")) -> None:
    """Tables in Markdown of what a report of all benchmarks measured."""
    from hf_docmt.bench.report import BenchReport
    from hf_docmt.bench.speed_tables import speed_tables

    print(speed_tables(BenchReport.read(report), "markdown"))


def print_row(row: Row) -> None:
    """Print a row of a long benchmark on standard error at once, so that an interrupted one keeps it."""
    from hf_docmt.bench.results import ScalingRow

    if isinstance(row, ScalingRow):
        print(row.to_line(), file=sys.stderr, flush=True)
