"""`docmt analyze`, for models with a memory: what goes into it, what comes out, how far it reaches."""

from __future__ import annotations

from typing import Annotated

import typer

from hf_docmt.cli.options import AsJson, Model, Output, Picture, Referenced, Rows
from hf_docmt.cli.subject import Subject, check_files, check_folder, model_names, show_table, write_reports

memory = typer.Typer()


@memory.command("information-gain")
def information_gain_analysis(
    models: Annotated[list[str], typer.Argument(help="Model folders or Hub names, of one or more memory sizes.")],
    documents: Referenced,
    seed: Annotated[int, typer.Option(help="Seed of the memory that was not trained.")] = 1,
    rows: Rows = 8,
    picture: Picture = None,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Folder for a report of each model.")] = None,
    as_json: AsJson = False,
) -> None:
    """What training has made of update and output attention: entropy lost, in nats (Feng et al. 2022, figure 2)."""
    from hf_docmt.analysis.information_gain import ATTENTIONS, information_gain
    from hf_docmt.analysis.pictures.curves import draw_information_gain

    names = model_names(models)
    check_files(picture, None)
    check_folder(output)
    gains, reports = {}, {}
    for name, model in zip(names, models):
        subject = Subject(model, documents)
        gains[name] = information_gain(*subject.loaded, seed=seed, rows=rows)
        reports[name] = subject.report(*gains[name].results(subject.dataset))
    if output:
        write_reports(reports, output)
    cells = [["model", "memory size", "attention", "gain (nats)", "random", "trained", "queries"]]
    for name, gain in gains.items():
        for kind, mean in ((kind, gain.mean(kind)) for kind in ATTENTIONS):
            numbers = [f"{value:.4f}" for value in (mean.gain, mean.random, mean.trained)]
            cells.append([name, str(gain.memory_size), kind, *numbers, str(mean.n)])
    show_table(cells, list(reports.values()), as_json)
    if picture:
        draw_information_gain(gains, picture)


@memory.command("attribution")
def attribution_analysis(
    model: Model,
    documents: Referenced,
    reach: Annotated[int, typer.Option(help="Largest distance in sentences; the time grows with it.")] = 100,
    step: Annotated[int, typer.Option(help="Sentences in a range of distances.")] = 10,
    rows: Rows = 8,
    picture: Picture = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Gradients of a sentence's loss at words of sentences before it, by distance (Feng et al. 2022, figure 4)."""
    from hf_docmt.analysis.gradient_attribution import gradient_attribution
    from hf_docmt.analysis.pictures.curves import draw_attribution
    from hf_docmt.reports.report import write_report

    check_files(picture, output)
    subject = Subject(model, documents)
    found = gradient_attribution(*subject.loaded, reach=reach, step=step, rows=rows)
    report = subject.report(found.result(subject.dataset))
    if output:
        write_report(report, output)
    cells = [["distance", "gradient", "source", "target", "sentence pairs"]]
    for label, *scores, pairs in zip(found.labels, found.both, found.source, found.target, found.pairs):
        cells.append([label, *(f"{score:.3g}" for score in scores), str(pairs)])
    show_table(cells, report, as_json)
    if picture:
        draw_attribution(found, picture, title=subject.title)


@memory.command("memory-maps")
def memory_maps_analysis(
    model: Model,
    documents: Referenced,
    document: Annotated[str, typer.Option(help="Id of the document.")],
    sentence: Annotated[int, typer.Option(help="The sentence whose update is shown, and the output to the next.")] = 1,
    layer: Annotated[int | None, typer.Option(help="Layer, from 0; default: the last one with a memory.")] = None,
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Which words of a sentence go into the memory, and which of the next one read it (Feng et al. 2022, section 5.3).

    The table names the slot of the largest weight for each token; --json prints the maps of all sentences.
    """
    from hf_docmt.analysis.memory_maps import consecutive, memory_maps
    from hf_docmt.analysis.pictures.heat_maps import draw_memory_maps

    check_files(picture, None)
    subject = Subject(model, documents)
    maps = memory_maps(*subject.loaded, document, layer=layer)
    shown = consecutive(maps, sentence)
    cells = [["side", "attention", "sentence", "token", "slot", "weight"]]
    for one in shown:
        best = zip(one.tokens, one.weights.argmax(axis=1) + 1, one.weights.max(axis=1))
        told = [one.side, one.attention, str(one.sentence)]
        cells += [[*told, token, str(slot), f"{weight:.3f}"] for token, slot, weight in best]
    show_table(cells, {"document": document, "maps": [one.row() for one in maps]}, as_json)
    if picture:
        draw_memory_maps(shown, picture, title=f"{subject.name}, {document}")
