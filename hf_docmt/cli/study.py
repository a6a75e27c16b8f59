"""`docmt study`: many systems from one file to tables and figures."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from hf_docmt.cli.options import refuse
from hf_docmt.messages import counted


def study(
    call: typer.Context,
    file: Annotated[str, typer.Argument(help="YAML file; see examples/studies.")],
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only systems or runs with this name, * and ? allowed, such as 'concat*-seed1'; repeatable."),
    ] = None,
    budget: Annotated[str | None, typer.Option(help="A budget of the study file.")] = None,
    results: Annotated[
        str | None, typer.Option(help="Folder for reports, tables and figures; default: beside the study file.")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="Jobs at a time, each with its share of cores, or a GPU.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the commands that are missing, run none.")] = False,
    render: Annotated[bool, typer.Option("--render", help="Make tables and figures from what is there.")] = False,
) -> None:
    """Train, translate and score what is missing of a study, and make its tables and figures; call again to go on."""
    from hf_docmt.remote_code import is_trusted
    from hf_docmt.studies.execution import render as render_study
    from hf_docmt.studies.execution import run_study
    from hf_docmt.studies.jobs import StudyPlan
    from hf_docmt.studies.study import load_study

    if render and not dry_run:
        refuse(call, ("only", "processes"), "is for runs, but --render is given")
    if dry_run or render:
        plan = StudyPlan(load_study(file, budget), results)
        for path in render_study(plan) if render else ():
            print(path)
        for job in plan.pending(only or ()) if dry_run else ():
            for command in job.commands:
                print(f"{job.name}: docmt {shlex.join(command)}")
        return
    outcome = run_study(
        file,
        partial(run_command, trusted=is_trusted()),
        only=only or (),
        budget=budget,
        results=results,
        processes=processes,
        on_progress=lambda line: print(line, file=sys.stderr, flush=True),
    )
    for path in outcome.rendered:
        print(path)
    if outcome.missing:
        print(f"missing: {counted(outcome.missing, 'report')} of the study; call again", file=sys.stderr)
    if outcome.failed:
        raise typer.Exit(1)


def run_command(arguments: Sequence[str], trusted: bool = False) -> None:
    """Run a command of this package in this process, `trusted` with `--trust-remote-code`; ends it where it fails."""
    import runpy

    sys.argv = ["docmt", *(["--trust-remote-code"] if trusted else []), *arguments]
    try:
        runpy.run_module("hf_docmt", run_name="__main__")
    except SystemExit as ending:
        if ending.code:
            raise
