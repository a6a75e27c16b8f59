"""`docmt study`: many systems from one file to tables and figures."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
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
    unpack: Annotated[
        str | None, typer.Option(help="Write the reports of the study into this folder, for docmt compare.")
    ] = None,
) -> None:
    """Train, translate and score what is missing of a study, and make its tables and figures; call again to go on."""
    from hf_docmt.remote_code import is_trusted
    from hf_docmt.studies.packed_reports import unpack_reports
    from hf_docmt.studies.plan import StudyPlan
    from hf_docmt.studies.run import collect_reports, run_study
    from hf_docmt.studies.run import render as render_study
    from hf_docmt.studies.study import load_study

    runs = not (render or unpack) or dry_run
    if not runs:
        refuse(call, ("only", "processes"), f"is for runs, but --{'render' if render else 'unpack'} is given")
    docmt = f"{shlex.quote(sys.executable)} -m hf_docmt{' --trust-remote-code' if is_trusted() else ''}"
    plan = StudyPlan(load_study(file, budget), results, docmt)
    status = run_study(plan, only or (), processes, dry_run) if runs else 0
    if not dry_run:
        collect_reports(plan)
    if unpack:
        for path in unpack_reports(plan.results, Path(unpack)):
            print(path)
    if render or (runs and not dry_run):
        for path in render_study(plan):
            print(path)
    if runs and not dry_run and (missing := plan.pending()):
        print(f"missing: {counted(len(missing), 'report')} of the study; call again", file=sys.stderr)
    if status:
        raise typer.Exit(1)
