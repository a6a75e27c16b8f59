"""`docmt analyze`, for models with a recurrent memory: information gain, attribution, attention maps."""

from __future__ import annotations

from typing import Annotated

import typer

from hf_docmt.cli.loading import AnalysisInput, model_names
from hf_docmt.cli.options import AsJson, Lang, Model, Output, OutputFolder, Picture, ReferencedDocuments, Rows
from hf_docmt.cli.output import check_files, check_folder, print_table, write_reports


def information_gain(
    models: Annotated[list[str], typer.Argument(help="Model folders or Hub names, of one or more memory sizes.")],
    documents: ReferencedDocuments,
    seed: Annotated[int, typer.Option(help="Seed of the untrained memory it is compared with.")] = 1,
    rows: Rows = 8,
    source_lang: Lang = None,
    target_lang: Lang = None,
    picture: Picture = None,
    output: OutputFolder = None,
    as_json: AsJson = False,
) -> None:
    """Entropy that update and output attention lost in training, in nats (Feng et al. 2022, figure 2)."""
    from hf_docmt.analysis.information_gain import ATTENTIONS
    from hf_docmt.analysis.information_gain import information_gain as measure
    from hf_docmt.analysis.pictures.curves import draw_information_gain

    names = model_names(models)
    check_files(picture, None, [documents])
    check_folder(output, names, [documents])
    gains, reports = {}, {}
    for name, model in zip(names, models):
        source = AnalysisInput(model, documents, source_lang, target_lang)
        gains[name] = measure(*source.arguments, seed=seed, rows=rows)
        reports[name] = source.report(*gains[name].results(source.dataset))
    if output:
        write_reports(reports, output)
    cells = [["model", "memory size", "attention", "gain (nats)", "random", "trained", "queries"]]
    for name, gain in gains.items():
        for kind, mean in ((kind, gain.mean(kind)) for kind in ATTENTIONS):
            numbers = [f"{value:.4f}" for value in (mean.gain, mean.random, mean.trained)]
            cells.append([name, str(gain.memory_size), kind, *numbers, str(mean.n)])
    print_table(cells, [report.to_dict() for report in reports.values()], as_json)
    if picture:
        draw_information_gain(gains, picture)


def attribution(
    model: Model,
    documents: ReferencedDocuments,
    reach: Annotated[int, typer.Option(help="Largest distance in sentences; run time grows with it.")] = 100,
    step: Annotated[int, typer.Option(help="Sentences per range of distances.")] = 10,
    rows: Rows = 8,
    source_lang: Lang = None,
    target_lang: Lang = None,
    picture: Picture = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Gradient of a sentence's loss at the words of earlier sentences, by distance (Feng et al. 2022, figure 4)."""
    from hf_docmt.analysis.gradient_attribution import gradient_attribution
    from hf_docmt.analysis.pictures.curves import draw_attribution

    check_files(picture, output, [documents])
    source = AnalysisInput(model, documents, source_lang, target_lang)
    found = gradient_attribution(*source.arguments, reach=reach, step=step, rows=rows)
    report = source.report(found.result(source.dataset))
    if output:
        report.write(output)
    cells = [["distance", "gradient", "source", "target", "sentence pairs"]]
    for label, *scores, pairs in zip(found.labels, found.both, found.source, found.target, found.pairs):
        cells.append([label, *(f"{score:.3g}" for score in scores), str(pairs)])
    print_table(cells, report.to_dict(), as_json)
    if picture:
        draw_attribution(found, picture, title=source.title)


def memory_maps(
    model: Model,
    documents: ReferencedDocuments,
    document: Annotated[str, typer.Option(help="Id of the document.")],
    sentence: Annotated[
        int, typer.Option(help="Sentence whose memory update is shown, with the output to the next one; from 1.")
    ] = 1,
    layer: Annotated[int | None, typer.Option(help="Layer, from 0; default: the last one with a memory.")] = None,
    source_lang: Lang = None,
    target_lang: Lang = None,
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Attention from a sentence into the memory and from the memory to the next one (Feng et al. 2022, section 5.3).

    The table shows for each token the slot with the largest weight; --json prints the maps of all sentences.
    """
    from hf_docmt.analysis.memory_maps import memory_maps as compute
    from hf_docmt.analysis.memory_maps import write_and_read_maps
    from hf_docmt.analysis.pictures.maps import draw_memory_maps

    check_files(picture, None, [documents])
    source = AnalysisInput(model, documents, source_lang, target_lang)
    maps = compute(*source.arguments, document, layer=layer)
    shown = write_and_read_maps(maps, sentence)
    cells = [["side", "attention", "sentence", "token", "slot", "weight"]]
    for one in shown:
        best = zip(one.tokens, one.weights.argmax(axis=1) + 1, one.weights.max(axis=1))
        facts = [one.side, one.attention, str(one.sentence)]
        cells += [[*facts, token, str(slot), f"{weight:.3f}"] for token, slot, weight in best]
    print_table(cells, {"document": document, "maps": [one.as_json() for one in maps]}, as_json)
    if picture:
        draw_memory_maps(shown, picture, title=f"{source.name}, {document}")
