"""`docmt analyze`, for one model: rationales, attention shares, groups and gates."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hf_docmt.cli.loading import (
    NOT_FOR_ATTENTION,
    AnalysisInput,
    analysis_report,
    languages_of,
    load_model,
    load_system,
)
from hf_docmt.cli.options import (
    AsJson,
    Beams,
    Lang,
    Model,
    Options,
    Output,
    Picture,
    ReferencedDocuments,
    Strategy,
    item_range,
)
from hf_docmt.cli.output import check_files, print_report, print_table


def rationales(
    model: Model,
    folder: Annotated[str, typer.Argument(help="Folder with the files highlighted.SPLIT.LANG of SCAT.")],
    split: Annotated[str, typer.Option(help="Part of SCAT.")] = "train",
    items: Annotated[str | None, typer.Option(help="Only the examples on these lines: FIRST-LAST, from 1.")] = None,
    attention: Annotated[str, typer.Option(help="encoder, cross or decoder.")] = "decoder",
    step: Annotated[
        str, typer.Option(help="Decoder step: the one that writes the pronoun or the one that reads it.")
    ] = "writes",
    source_lang: Lang = None,
    target_lang: Lang = None,
    option: Options = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Attention of pronouns to the words that annotators marked as supporting context (Yin et al. 2021)."""
    from hf_docmt.analysis.rationales import rationales_files
    from hf_docmt.files import check_writable_file

    check_writable_file(output or "-")
    system = load_system(
        model,
        option_pairs=option,
        excluded=NOT_FOR_ATTENTION,
        prompt_languages=(source_lang, target_lang),
        attn_implementation="eager",
    )
    languages = languages_of(system, source_lang, target_lang)
    report = rationales_files(
        system, folder, split=split, only=item_range(items), attention=attention, step=step, **languages
    )
    print_report(report, as_json, output)


def attention_share(
    model: Model,
    documents: ReferencedDocuments,
    target: Annotated[
        str, typer.Option(help="reference, or search for the attention while decoding, as in the paper.")
    ] = "reference",
    strategy: Strategy = None,
    beams: Beams = None,
    source_lang: Lang = None,
    target_lang: Lang = None,
    picture: Picture = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Share of cross-attention from each target sentence to its source sentence (Herold and Ney 2023)."""
    from hf_docmt.analysis.attention_share import attention_share as measure
    from hf_docmt.analysis.pictures.maps import draw_attention_share

    check_files(picture, output, [documents])
    source = AnalysisInput(model, documents, source_lang, target_lang)
    search = {name: value for name, value in {"strategy": strategy, "num_beams": beams}.items() if value is not None}
    found = measure(*source.arguments, target=target, **search)
    print_report(source.report(found.result(source.dataset)), as_json, output)
    if picture:
        draw_attention_share(found, picture, title=source.title)


def segment_losses(
    model: Model,
    documents: ReferencedDocuments,
    source_lang: Lang = None,
    target_lang: Lang = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Loss of each sentence of a window, by its offset from the current one, in nats per target token."""
    from hf_docmt.analysis.segment_losses import segment_losses as measure
    from hf_docmt.files import check_writable_file

    check_writable_file(output or "-", [documents])
    source = AnalysisInput(model, documents, source_lang, target_lang)
    found = measure(*source.arguments)
    print_report(source.report(found.result(source.dataset)), as_json, output)


def groups(
    model: Model,
    texts: Annotated[list[str], typer.Argument(help="Sentences in the language of the context, each in quotes.")],
    source_lang: Lang = None,
    target_lang: Lang = None,
    picture: Picture = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Assignment of tokens to groups in latent grouping and selecting (Maka et al. 2024, figure 4).

    A dot is a weight of exactly zero. The second table shows for each group, over all sentences, its share of the
    weight, the number of tokens with any weight in it, and the number of tokens with their largest weight in it.
    """
    from pathlib import Path

    from hf_docmt.analysis.group_maps import group_maps
    from hf_docmt.analysis.model_runs import set_languages
    from hf_docmt.analysis.pictures.maps import draw_group_maps

    check_files(picture, output)
    name, (loaded, tokenizer) = Path(model).name, load_model(model)
    set_languages(loaded, source_lang, target_lang)
    found = group_maps(loaded, texts, tokenizer)
    report = analysis_report(loaded, tokenizer, name, {"sentences": texts}, found.result("sentences"))
    if output:
        report.write(output)
    print(json.dumps(report.to_dict(), ensure_ascii=False) if as_json else group_tables(found))
    if picture:
        draw_group_maps(found, picture, title=name)


def group_tables(found) -> str:
    """Group maps as text: weights of every token, use of every group, and a summary line."""
    from hf_docmt.reports.tables import cells_frame, write_table

    weights = [["sentence", "token", *(f"{group:>4}" for group in found.groups["group"])]]
    for one in found.sentences:
        for token, row in zip(one.tokens, one.weights):
            weights.append([str(one.sentence), token, *(f"{weight:.2f}" if weight else "   ." for weight in row)])
    use = found.groups.assign(share=found.groups["share"].map("{:.1f}".format)).rename(columns={"share": "share (%)"})
    tokens, groups = found.weights.shape
    summary = f"{found.used} of {groups} groups used, {found.ungrouped} of {tokens} tokens in none"
    return "\n\n".join([write_table(cells_frame(weights)), write_table(use), summary])


def gates(
    model: Model,
    texts: Annotated[list[str], typer.Argument(help="Sentences of a document from its first one, each in quotes.")],
    sentence: Annotated[int | None, typer.Option(help="The current sentence, from 1; default: the middle one.")] = None,
    source_lang: Lang = None,
    target_lang: Lang = None,
    picture: Picture = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Share of each context sentence in the context of each word, with routing (Fei et al. 2022, section 4.3).

    Shares are listed by sentence offset, for the mean of the encoder layers and for each layer; the rest is the share
    of no context ("nothing"). For doct only the encoder is shown: its decoder selects by the words of a translation.
    """
    from pathlib import Path

    from hf_docmt.analysis.gate_maps import gate_map
    from hf_docmt.analysis.model_runs import set_languages
    from hf_docmt.analysis.pictures.maps import draw_gates

    check_files(picture, output)
    name, (loaded, tokenizer) = Path(model).name, load_model(model)
    set_languages(loaded, source_lang, target_lang)
    found = gate_map(loaded, texts, tokenizer, sentence)
    report = analysis_report(loaded, tokenizer, name, {"sentences": texts}, found.result("sentences"))
    if output:
        report.write(output)
    cells = [["layer", "token", *found.columns]]
    for layer, shares in found.by_layer:
        cells += [[layer, token, *(f"{share:.3f}" for share in row)] for token, row in zip(found.tokens, shares)]
    print_table(cells, report.to_dict(), as_json)
    if picture:
        draw_gates(found, picture, title=name)
