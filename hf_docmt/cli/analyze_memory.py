"""`docmt analyze`, for models with a recurrent memory: information gain, attribution, attention maps."""

from __future__ import annotations

from hf_docmt.cli.loading import AnalysisInput, model_names
from hf_docmt.cli.options import command
from hf_docmt.cli.output import check_files, check_folder, print_table, write_reports
from hf_docmt.options import (
    AS_JSON,
    DOCUMENTS,
    MODEL,
    OUTPUT,
    OUTPUT_FOLDER,
    PICTURE,
    REQUIRED,
    ModelLanguages,
    argument,
    option,
)

ROWS = option(8, "Documents processed in parallel, one per row of a batch.", least=1)


@command
def information_gain(
    *,
    models: list[str] = argument("Model folders or Hub names, of one or more memory sizes."),
    documents: str = DOCUMENTS,
    seed: int = option(1, "Seed of the untrained memory it is compared with."),
    rows: int = ROWS,
    languages: ModelLanguages,
    picture: str | None = PICTURE,
    output: str | None = OUTPUT_FOLDER,
    as_json: bool = AS_JSON,
) -> None:
    """Entropy that update and output attention lost in training, in nats (Feng et al. 2022, figure 2)."""
    from hf_docmt.analysis.information_gain import ATTENTIONS
    from hf_docmt.analysis.information_gain import information_gain as measure
    from hf_docmt.analysis.pictures.analyses import draw_information_gain

    names = model_names(models)
    check_files(picture, None, [documents])
    check_folder(output, names, [documents])
    gains, reports = {}, {}
    for name, model in zip(names, models):
        source = AnalysisInput(model, documents, languages)
        gains[name] = measure(*source.arguments, seed=seed, rows=rows)
        reports[name] = source.report(*gains[name].results(source.dataset))
    write_reports(reports, output)
    cells = [["model", "memory size", "attention", "gain (nats)", "random", "trained", "queries"]]
    for name, gain in gains.items():
        for kind, mean in ((kind, gain.mean(kind)) for kind in ATTENTIONS):
            numbers = [f"{value:.4f}" for value in (mean.gain, mean.random, mean.trained)]
            cells.append([name, str(gain.memory_size), kind, *numbers, str(mean.n)])
    print_table(cells, list(reports.values()), as_json)
    if picture:
        draw_information_gain(gains, picture)


@command
def attribution(
    *,
    model: str = MODEL,
    documents: str = DOCUMENTS,
    reach: int = option(100, "Largest distance in sentences; run time grows with it."),
    step: int = option(10, "Sentences per range of distances."),
    rows: int = ROWS,
    languages: ModelLanguages,
    picture: str | None = PICTURE,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Gradient of a sentence's loss at the words of earlier sentences, by distance (Feng et al. 2022, figure 4)."""
    from hf_docmt.analysis.gradient_attribution import gradient_attribution
    from hf_docmt.analysis.pictures.analyses import draw_attribution

    check_files(picture, output, [documents])
    source = AnalysisInput(model, documents, languages)
    gradients = gradient_attribution(*source.arguments, reach=reach, step=step, rows=rows)
    cells = [["distance", "gradient", "source", "target", "sentence pairs"]]
    columns = (gradients.both, gradients.source, gradients.target)
    for label, *scores, pairs in zip(gradients.labels, *columns, gradients.pairs):
        cells.append([label, *(f"{score:.3g}" for score in scores), str(pairs)])
    print_table(cells, source.report(gradients.result(source.dataset)), as_json, output)
    if picture:
        draw_attribution(gradients, picture, title=source.title)


@command
def memory_maps(
    *,
    model: str = MODEL,
    documents: str = DOCUMENTS,
    document: str = option(REQUIRED, "Id of the document."),
    sentence: int = option(1, "Sentence whose memory update is shown, with the output to the next one; from 1."),
    layer: int | None = option(None, "Layer, from 0; default: the last one with a memory."),
    languages: ModelLanguages,
    picture: str | None = PICTURE,
    as_json: bool = AS_JSON,
) -> None:
    """Attention from a sentence into the memory and from the memory to the next one (Feng et al. 2022, section 5.3).

    The table shows for each token the slot with the largest weight; --json prints the maps of all sentences.
    """
    from hf_docmt.analysis.memory_maps import memory_maps as compute
    from hf_docmt.analysis.memory_maps import write_and_read_maps
    from hf_docmt.analysis.pictures.analyses import draw_memory_maps

    check_files(picture, None, [documents])
    source = AnalysisInput(model, documents, languages)
    maps = compute(*source.arguments, document, layer=layer)
    shown = write_and_read_maps(maps, sentence)
    cells = [["side", "attention", "sentence", "token", "slot", "weight"]]
    for attention in shown:
        weights = attention.weights
        best = zip(attention.tokens, weights.argmax(axis=1) + 1, weights.max(axis=1))
        facts = [attention.side, attention.attention, str(attention.sentence)]
        cells += [[*facts, token, str(slot), f"{weight:.3f}"] for token, slot, weight in best]
    facts = {"document": document, "maps": [attention.as_json() for attention in maps]}
    print_table(cells, facts, as_json)
    if picture:
        draw_memory_maps(shown, picture, title=f"{source.name}, {document}")
