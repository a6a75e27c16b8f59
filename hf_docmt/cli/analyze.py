"""`docmt analyze`: what a model does with context, as tables, reports and pictures."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hf_docmt.cli.analyze_files import outputs
from hf_docmt.cli.analyze_memory import memory
from hf_docmt.cli.options import AsJson, Lang, Model, Options, Output, Picture, Referenced
from hf_docmt.cli.subject import Subject, check_files, report_of, show_table

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
    from hf_docmt.analysis.rationales import rationales_files
    from hf_docmt.cli import ATTENDED, item_range, languages_of, load_scored, show_report
    from hf_docmt.files import check_output

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
    from hf_docmt.analysis.pictures.heat_maps import draw_attention_share
    from hf_docmt.cli import show_report

    check_files(picture, output)
    subject = Subject(model, documents)
    found = attention_share(*subject.loaded)
    show_report(subject.report(found.result(subject.dataset)), as_json, output)
    if picture:
        draw_attention_share(found, picture, title=subject.title)


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
    from hf_docmt.analysis.pictures.heat_maps import draw_group_maps
    from hf_docmt.cli import device, load
    from hf_docmt.reports.report import write_report

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
    from hf_docmt.reports.report import align_columns

    weights = [["sentence", "token", *(f"{one.group:>4}" for one in found.groups)]]
    for one in found.sentences:
        for token, row in zip(one.tokens, one.weights):
            weights.append([str(one.sentence), token, *(f"{weight:.2f}" if weight else "   ." for weight in row)])
    use = [["group", "share (%)", "tokens", "largest"]]
    use += [[str(one.group), f"{one.share:.1f}", str(one.tokens), str(one.largest)] for one in found.groups]
    tokens, groups = found.weights.shape
    summary = f"{found.used} of {groups} groups used, {found.ungrouped} of {tokens} tokens in none"
    return "\n\n".join([align_columns(weights), align_columns(use), summary])


@analyze.command("gates")
def gates_analysis(
    model: Model,
    texts: Annotated[list[str], typer.Argument(help="Sentences of a document from its first one, each in quotes.")],
    sentence: Annotated[int | None, typer.Option(help="The current sentence, from 1; default: the middle one.")] = None,
    picture: Picture = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """What each word takes from the sentences before and after, with routing (Fei et al. 2022, section 4.3).

    Shares of the context sentences by offset, the mean of the encoder's layers and each of them; what is left goes to
    nothing. Of doct these are the encoder's alone: its decoder chooses by the words of a translation.
    """
    from pathlib import Path

    from hf_docmt.analysis.gate_maps import gate_map
    from hf_docmt.analysis.pictures.bars import draw_gates
    from hf_docmt.cli import device, load
    from hf_docmt.reports.report import write_report

    check_files(picture, output)
    name, (loaded, tokenizer) = Path(model).name, load(model)
    found = gate_map(loaded.to(device()), texts, tokenizer, sentence)
    report = report_of(loaded, tokenizer, name, {"sentences": texts}, found.result("sentences"))
    if output:
        write_report(report, output)
    cells = [["layer", "token", *found.columns]]
    for layer, shares in found.panels:
        cells += [[layer, token, *(f"{share:.3f}" for share in row)] for token, row in zip(found.tokens, shares)]
    show_table(cells, report, as_json)
    if picture:
        draw_gates(found, picture, title=name)


analyze.add_typer(memory)
analyze.add_typer(outputs)
