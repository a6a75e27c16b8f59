"""`docmt analyze`: what a model does with context, as tables, reports and pictures."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hf_docmt.cli_options import AsJson, Lang, Model, Options, Output, Picture, Referenced, Rows

analyze = typer.Typer(help="What a model does with context.", no_args_is_help=True)


@analyze.command()
def rationales(
    model: Model,
    folder: Annotated[str, typer.Argument(help="Folder with the files highlighted.SPLIT.LANG of SCAT.")],
    split: Annotated[str, typer.Option(help="Part of SCAT.")] = "train",
    items: Annotated[str | None, typer.Option(help="Only the examples of these lines: FIRST-LAST, from 1.")] = None,
    attention: Annotated[str, typer.Option(help="encoder, cross or decoder.")] = "decoder",
    step: Annotated[str, typer.Option(help="The decoder's step that writes or reads the pronoun.")] = "writes",
    source_lang: Lang = None,
    target_lang: Lang = None,
    option: Options = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Attention from pronouns against the words that people chose their translation by (Yin et al. 2021)."""
    from hf_docmt.cli import ATTENDED, item_range, languages_of, load_scored, show_report
    from hf_docmt.evaluation.suite_files import rationales_files
    from hf_docmt.inference.corpus import check_output

    check_output(output or "-")
    prompted = (source_lang, target_lang)
    system = load_scored(model, None, option, ATTENDED, prompted, attn_implementation="eager")
    languages = languages_of(system, source_lang, target_lang)
    report = rationales_files(
        system, folder, split=split, only=item_range(items), attention=attention, step=step, **languages
    )
    show_report(report, as_json, output)


@analyze.command("attention-share")
def attention_share_analysis(
    model: Model,
    documents: Referenced,
    picture: Picture = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Share of cross-attention that target sentences pay to their source sentence (Herold and Ney 2023)."""
    from hf_docmt.analysis.attention_share import attention_share
    from hf_docmt.analysis.heat_maps import draw_attention_share
    from hf_docmt.cli import show_report

    check_files(picture, output)
    subject = Subject(model, documents)
    found = attention_share(*subject.loaded)
    show_report(subject.report(found.result(subject.dataset)), as_json, output)
    if picture:
        draw_attention_share(found, picture, title=subject.title)


@analyze.command("losses")
def losses_analysis(
    runs: Annotated[list[str], typer.Argument(help="Folders of finished training runs.")],
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Training losses of several runs side by side, such as of several optimisation windows (Feng et al. 2022)."""
    from hf_docmt.analysis.curves import draw_losses
    from hf_docmt.analysis.losses import read_losses
    from hf_docmt.evaluation.report import align_columns

    check_files(picture, None)
    found = read_losses(runs)
    rows = [run.row() for run in found]
    if as_json:
        print(json.dumps([row | {"losses": run.training} for row, run in zip(rows, found)], ensure_ascii=False))
    else:
        print(align_columns([list(rows[0]), *([str(value) for value in row.values()] for row in rows)]))
    if picture:
        draw_losses(found, picture)


@analyze.command("information-gain")
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
    from hf_docmt.analysis.curves import draw_information_gain
    from hf_docmt.analysis.information_gain import ATTENTIONS, information_gain

    names = model_names(models)
    check_files(picture, None)
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


@analyze.command("by-index")
def by_index_analysis(
    system: Annotated[str, typer.Argument(help="Translations of a system, JSON lines of docmt translate.")],
    baseline: Annotated[str, typer.Argument(help="Those of the system it is compared with.")],
    reference: Annotated[str, typer.Argument(help="Reference documents.")],
    format: Annotated[str, typer.Option(help="Format of the reference.")] = "auto",
    source_lang: Lang = None,
    target_lang: Lang = None,
    every: Annotated[int, typer.Option(min=1, help="Sentence indices in a range.")] = 10,
    samples: Annotated[int, typer.Option(min=0, help="Draws of documents for the intervals.")] = 1000,
    picture: Picture = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Difference of s-BLEU by sentence index in the document (Feng et al. 2022, figure 3)."""
    from hf_docmt.analysis.curves import draw_by_index
    from hf_docmt.evaluation.by_index import by_index_files
    from hf_docmt.evaluation.report import write_report

    check_files(picture, output)
    options = {"every": every, "samples": samples}
    ranges, report = by_index_files(system, baseline, reference, format, source_lang, target_lang, **options)
    names = [report["model"]["name"], report["data"]["baseline"]]
    if output:
        write_report(report, output)
    cells = [["index", *names, "difference", "95 % interval", "sentences"]]
    for one in ranges:
        interval = "{:.2f} to {:.2f}".format(*one.interval) if one.interval else "-"
        values = [f"{value:.2f}" for value in (one.system, one.baseline, one.difference)]
        cells.append([one.label, *values, interval, str(one.n)])
    show_table(cells, report, as_json)
    if picture:
        draw_by_index(ranges, picture, title=f"{names[0]} less {names[1]}")


@analyze.command("attribution")
def attribution_analysis(
    model: Model,
    documents: Referenced,
    reach: Annotated[int, typer.Option(help="Largest distance in sentences.")] = 100,
    step: Annotated[int, typer.Option(help="Sentences in a range of distances.")] = 10,
    rows: Rows = 8,
    picture: Picture = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Gradients of a sentence's loss at words of sentences before it, by distance (Feng et al. 2022, figure 4)."""
    from hf_docmt.analysis.curves import draw_attribution
    from hf_docmt.analysis.gradient_attribution import gradient_attribution
    from hf_docmt.evaluation.report import write_report

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


@analyze.command("memory-maps")
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
    from hf_docmt.analysis.heat_maps import draw_memory_maps
    from hf_docmt.analysis.memory_maps import consecutive, memory_maps

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


@analyze.command("groups")
def groups_analysis(
    model: Model,
    texts: Annotated[list[str], typer.Argument(help="Sentences of the language of the context, each in quotes.")],
    picture: Picture = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Which tokens of a sentence go into which groups, of latent grouping or selecting (Maka et al. 2024, figure 4).

    A dot is a weight of exactly zero. The second table tells what each group holds of all sentences: its share of the
    weight, and how many tokens have any weight in it, and how many their largest.
    """
    from pathlib import Path

    from hf_docmt.analysis.group_maps import group_maps
    from hf_docmt.analysis.heat_maps import draw_group_maps
    from hf_docmt.cli import device, load
    from hf_docmt.evaluation.report import write_report

    check_files(picture, output)
    name, (loaded, tokenizer) = Path(model).name, load(model)
    found = group_maps(loaded.to(device()), texts, tokenizer)
    report = report_of(loaded, tokenizer, name, {"sentences": texts}, found.result("sentences"))
    if output:
        write_report(report, output)
    print(json.dumps(report, ensure_ascii=False) if as_json else group_tables(found))
    if picture:
        draw_group_maps(found, picture, title=name)


def group_tables(found) -> str:
    """Group maps as text: the weights of every token, the use of every group, and how many are used."""
    from hf_docmt.evaluation.report import align_columns

    weights = [["sentence", "token", *(f"{one.group:>4}" for one in found.groups)]]
    for one in found.sentences:
        for token, row in zip(one.tokens, one.weights):
            weights.append([str(one.sentence), token, *(f"{weight:.2f}" if weight else "   ." for weight in row)])
    use = [["group", "share (%)", "tokens", "largest"]]
    use += [[str(one.group), f"{one.share:.1f}", str(one.tokens), str(one.largest)] for one in found.groups]
    tokens, groups = found.weights.shape
    summary = f"{found.used} of {groups} groups used, {found.ungrouped} of {tokens} tokens in none"
    return "\n\n".join([align_columns(weights), align_columns(use), summary])


class Subject:
    """A model that is looked into, and the documents it reads, in the languages of the model."""

    def __init__(self, model: str, documents: str):
        from pathlib import Path

        from hf_docmt.cli import device, load
        from hf_docmt.data.readers import read_documents

        self.model, self.tokenizer = load(model)
        self.model.to(device())
        config = self.model.config
        self.languages = {"source_lang": config.source_lang, "target_lang": config.target_lang}
        if not all(self.languages.values()):
            raise ValueError(
                f"{model}: its config.json names no source_lang and target_lang, which documents need; add them"
            )
        self.documents = read_documents(path=documents, **self.languages)
        self.name, self.dataset = Path(model).name, Path(documents).stem
        self.title = f"{self.name}, {self.dataset}"

    @property
    def loaded(self) -> tuple:
        """What every analysis takes first."""
        return self.model, self.documents, self.tokenizer

    def report(self, *results: dict) -> dict:
        data = {"documents": len(self.documents), **self.languages}
        return report_of(self.model, self.tokenizer, self.name, data, *results)


def report_of(model, tokenizer, name: str, data: dict, *results: dict) -> dict:
    """The report of a model that was looked into."""
    from hf_docmt.evaluation.report import build_report, make_result
    from hf_docmt.evaluation.systems import DocMTSystem

    described = DocMTSystem(model, tokenizer, name).describe()
    return build_report(model=described, data=data, results=[make_result(**result) for result in results])


def check_files(picture: str | None, output: str | None) -> None:
    """ValueError, before anything is computed, where a file cannot be written."""
    from pathlib import Path

    from hf_docmt.analysis.plots import checked_path
    from hf_docmt.inference.corpus import check_output

    check_output(output or "-")
    if picture:
        checked_path(Path(picture))


def model_names(models: list[str]) -> list[str]:
    """The names of their folders. ValueError: two of one name."""
    from pathlib import Path

    names = [Path(model).name for model in models]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two models are called {twice[0]!r}; give their folders different names")
    return names


def write_reports(reports: dict[str, dict], folder: str) -> None:
    """NAME.json in a folder, for each of them."""
    from pathlib import Path

    from hf_docmt.evaluation.report import write_report

    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, report in reports.items():
        write_report(report, Path(folder) / f"{name}.json")


def show_table(cells: list[list[str]], facts: dict | list, as_json: bool) -> None:
    """Rows of cells, the first one a header, or all that is known as JSON."""
    from hf_docmt.evaluation.report import align_columns

    print(json.dumps(facts, ensure_ascii=False) if as_json else align_columns(cells))
