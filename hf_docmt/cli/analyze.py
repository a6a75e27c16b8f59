"""`docmt analyze`: the group of the analyses, in panels by what they read."""

from __future__ import annotations

import typer

from hf_docmt.cli.analyze_files import by_index, connectives, losses
from hf_docmt.cli.analyze_memory import attribution, information_gain, memory_maps
from hf_docmt.cli.analyze_model import attention_share, gates, groups, rationales, segment_losses

PANELS = {  # panel of the help -> its commands
    "Attention and context of one model": (rationales, attention_share, groups, gates, segment_losses),
    "Models with a recurrent memory": (information_gain, attribution, memory_maps),
    "Files of training runs and translations": (losses, by_index, connectives),
}

analyze_app = typer.Typer(help="Analyse how a model uses context: tables, reports, pictures.", no_args_is_help=True)
for panel, commands in PANELS.items():
    for command in commands:
        analyze_app.command(rich_help_panel=panel)(command)
