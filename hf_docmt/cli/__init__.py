"""The command `docmt`: results on standard output, logs and progress on standard error."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated

import typer

from hf_docmt.cli.analyze import rationales, why
from hf_docmt.cli.comparison import compare, rerank
from hf_docmt.cli.data import corpus, data_app
from hf_docmt.cli.evaluate import evaluate
from hf_docmt.cli.hub import convert, export, push
from hf_docmt.cli.new import new_app
from hf_docmt.cli.options import Command
from hf_docmt.cli.suites import contrast, ctxpro, cxmi, translate_suite
from hf_docmt.cli.training import demo, info, train
from hf_docmt.cli.translation import merge, serve, translate
from hf_docmt.messages import __version__

PROGRAM = "docmt"
RARELY = 50_000  # new objects between two runs of the garbage collector, until torch is imported
LARGE_PAGES = "THP_MEM_ALLOC_ENABLE"  # torch reads it once, when it makes its first tensor
NO_BARS = "HF_DATASETS_DISABLE_PROGRESS_BARS"  # which are for a terminal
PANELS = {  # panel of the help -> its commands, in the order a user meets them
    "Start": (demo,),
    "Data": (corpus,),
    "Models": (train, info, translate, merge, serve),
    "Evaluation": (evaluate, contrast, translate_suite, ctxpro, cxmi, compare, rerank),
    "Publication": (convert, export, push),
}

app = typer.Typer(
    help="Document-level machine translation: train, translate, evaluate, explain, publish.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command. A `ValueError` or `OSError` ends it with one line on standard error and exit code 1.

    So does the `OSError` of a library written in Rust (tokenizers, safetensors), which has its number in the text only.
    On Linux large tensors are in huge pages, unless the environment forbids it: training on long documents then takes
    less memory.
    """
    from hf_docmt.data.registration import load_plugins

    gc.set_threshold(RARELY)
    os.environ.setdefault(LARGE_PAGES, "1")
    if not sys.stderr.isatty():
        os.environ.setdefault(NO_BARS, "1")
    if isinstance(sys.stdout, TextIOWrapper) and not sys.stdout.isatty():  # UTF-8 as in files, on Windows, too
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        load_plugins()
        app(prog_name=PROGRAM)
    except Exception as error:
        if not isinstance(error, (ValueError, OSError)) and "(os error " not in str(error):
            raise
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        sys.exit(1)


def run() -> None:
    """`main` in a process of its own, which ends at once: to free all of torch and transformers takes 0.2 seconds."""
    status: list[int] = []

    def leave() -> None:
        with suppress(OSError, IndexError):  # Python reports these itself
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status[0])

    atexit.register(leave)  # the first one is called last
    try:
        main()
    except SystemExit as end:
        status += [end.code or 0] if isinstance(end.code, int | None) else []
        raise


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    call: typer.Context,
    trust: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run the Python code in a tokenizer's folder.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the command itself."""
    if trust:
        from hf_docmt.loading.remote_code import trust_remote_code

        call.with_resource(trust_remote_code())


for panel, commands in PANELS.items():
    for command in commands:
        settings = {"ignore_unknown_options": command is train}  # see `as_overrides`
        app.command(cls=Command, rich_help_panel=panel, context_settings=settings)(command)
analyze_app = typer.Typer(help="Analyse how a model uses context.", no_args_is_help=True)
for command in (why, rationales):
    analyze_app.command(cls=Command)(command)
app.add_typer(data_app, name="data", rich_help_panel="Data")
app.add_typer(new_app, name="new", rich_help_panel="Models")
app.add_typer(analyze_app, name="analyze", rich_help_panel="Analysis")
