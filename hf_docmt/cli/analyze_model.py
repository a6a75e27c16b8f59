"""`docmt analyze`, for one model: rationales, attention shares, groups and gates."""

from __future__ import annotations

from pathlib import Path

from hf_docmt.cli.loading import (
    NOT_FOR_ATTENTION,
    AnalysisInput,
    analysis_report,
    languages_of,
    load_model,
    load_system,
)
from hf_docmt.cli.options import command
from hf_docmt.cli.output import check_files, check_report, print_report, print_table
from hf_docmt.options import (
    AS_JSON,
    BEAMS,
    DOCUMENTS,
    MODEL,
    OPTION_PAIRS,
    OUTPUT,
    PICTURE,
    STRATEGY,
    ModelLanguages,
    argument,
    item_range,
    option,
)


@command
def rationales(
    *,
    model: str = MODEL,
    folder: str = argument("Folder with the files highlighted.SPLIT.LANG of SCAT."),
    split: str = option("train", "Part of SCAT."),
    items: tuple[int, int] | None = option(
        None, "Only the examples on these lines: FIRST-LAST, from 1.", read=item_range
    ),
    attention: str = option("decoder", "encoder, cross or decoder."),
    step: str = option("writes", "Decoder step: the one that writes the pronoun or the one that reads it."),
    languages: ModelLanguages,
    option_pairs: list[str] | None = OPTION_PAIRS,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Attention of pronouns to the words that annotators marked as supporting context (Yin et al. 2021)."""
    from hf_docmt.analysis.rationales import rationales_files

    check_report(output, ())
    system = load_system(
        model,
        option_pairs=option_pairs,
        excluded=NOT_FOR_ATTENTION,
        prompt_languages=languages,
        attn_implementation="eager",
    )
    choice = {"split": split, "only": items, "attention": attention, "step": step}
    report = rationales_files(system, folder, **choice, **languages_of(system, languages))
    print_report(report, as_json, output)


@command
def attention_share(
    *,
    model: str = MODEL,
    documents: str = DOCUMENTS,
    target: str = option("reference", "reference, or search for the attention while decoding, as in the paper."),
    strategy: str | None = STRATEGY,
    beams: int | None = BEAMS,
    languages: ModelLanguages,
    picture: str | None = PICTURE,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Share of cross-attention from each target sentence to its source sentence (Herold and Ney 2023)."""
    from hf_docmt.analysis.attention_share import attention_share as measure
    from hf_docmt.analysis.pictures.analyses import draw_attention_share
    from hf_docmt.generation_settings import make_repeatable

    check_files(picture, output, [documents])
    source = AnalysisInput(model, documents, languages)
    if target == "search":
        make_repeatable(source.model.generation_config, model)
    search = {"strategy": strategy, "num_beams": beams}
    search = {name: value for name, value in search.items() if value is not None}
    share = measure(*source.arguments, target=target, **search)
    print_report(source.report(share.result(source.dataset)), as_json, output)
    if picture:
        draw_attention_share(share, picture, title=source.title)


@command
def segment_losses(
    *,
    model: str = MODEL,
    documents: str = DOCUMENTS,
    languages: ModelLanguages,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Loss of each sentence of a window, by its offset from the current one, in nats per target token."""
    from hf_docmt.analysis.segment_losses import segment_losses as measure

    check_report(output, [documents])
    source = AnalysisInput(model, documents, languages)
    losses = measure(*source.arguments)
    print_report(source.report(losses.result(source.dataset)), as_json, output)


@command
def groups(
    *,
    model: str = MODEL,
    texts: list[str] = argument("Sentences in the language of the context, each in quotes."),
    languages: ModelLanguages,
    picture: str | None = PICTURE,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Assignment of tokens to groups in latent grouping and selecting (Maka et al. 2024, figure 4).

    A dot is a weight of exactly zero. The second table shows for each group, over all sentences, its share of the
    weight, the number of tokens with any weight in it, and the number of tokens with their largest weight in it.
    """
    from hf_docmt.analysis.pictures.analyses import draw_group_maps
    from hf_docmt.analysis.token_maps import group_maps

    check_files(picture, output)
    name, loaded, tokenizer = load_in_languages(model, languages)
    maps = group_maps(loaded, texts, tokenizer)
    report = analysis_report(loaded, tokenizer, name, {"sentences": texts}, maps.result("sentences"))
    print_report(report, as_json, output, text=lambda: group_tables(maps))
    if picture:
        draw_group_maps(maps, picture, title=name)


def group_tables(maps) -> str:
    """Group maps as text: weights of every token, use of every group, and a summary line."""
    from hf_docmt.reports.tables import write_table

    weights = [["sentence", "token", *(f"{group:>4}" for group in maps.groups["group"])]]
    for sentence in maps.sentences:
        for token, row in zip(sentence.tokens, sentence.weights):
            weights.append([str(sentence.sentence), token, *(f"{weight:.2f}" if weight else "   ." for weight in row)])
    use = maps.groups.assign(share=maps.groups["share"].map("{:.1f}".format)).rename(columns={"share": "share (%)"})
    tokens, number = maps.weights.shape
    summary = f"{maps.used} of {number} groups used, {maps.ungrouped} of {tokens} tokens in none"
    return "\n\n".join([write_table(weights), write_table([list(use), *use.to_numpy().tolist()]), summary])


@command
def gates(
    *,
    model: str = MODEL,
    texts: list[str] = argument("Sentences of a document from its first one, each in quotes."),
    sentence: int | None = option(None, "The current sentence, from 1; default: the middle one."),
    languages: ModelLanguages,
    picture: str | None = PICTURE,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Share of each context sentence in the context of each word, with routing (Fei et al. 2022, section 4.3).

    Shares are listed by sentence offset, for the mean of the encoder layers and for each layer; the rest is the share
    of no context ("nothing"). For doct only the encoder is shown: its decoder selects by the words of a translation.
    """
    from hf_docmt.analysis.pictures.analyses import draw_gates
    from hf_docmt.analysis.token_maps import gate_map

    check_files(picture, output)
    name, loaded, tokenizer = load_in_languages(model, languages)
    shown = gate_map(loaded, texts, tokenizer, sentence)
    report = analysis_report(loaded, tokenizer, name, {"sentences": texts}, shown.result("sentences"))
    cells = [["layer", "token", *shown.columns]]
    for layer, shares in shown.by_layer:
        cells += [[layer, token, *(f"{share:.3f}" for share in row)] for token, row in zip(shown.tokens, shares)]
    print_table(cells, report, as_json, output)
    if picture:
        draw_gates(shown, picture, title=name)


def load_in_languages(folder: str, languages: ModelLanguages) -> tuple:
    """Name, model, with these languages, and tokenizer."""
    from hf_docmt.analysis.model_runs import set_languages

    model, tokenizer = load_model(folder)
    set_languages(model, *languages)
    return Path(folder).name, model, tokenizer


@command
def positions(
    *,
    model: str | None = argument("Model folder or Hub name; default: sinusoids of --dim dimensions.", default=None),
    count: int = option(1024, "Positions to encode, from the first one.", "--positions", least=2),
    dim: int = option(512, "Dimensions of the sinusoids; a model has its own.", least=2),
    picture: str | None = PICTURE,
    as_json: bool = AS_JSON,
) -> None:
    """Principal components that the encodings of positions need (Lupo et al. 2023, figure 1)."""
    from hf_docmt.analysis.pictures.analyses import draw_position_components
    from hf_docmt.analysis.position_components import (
        SHARES,
        model_positions,
        position_components,
        sinusoidal_positions,
    )

    check_files(picture, None)
    encodings = sinusoidal_positions(count, dim) if model is None else model_positions(load_model(model)[0], count)
    components = position_components(encodings)
    rows = [{"variance": f"{100 * share:g} %", "components": components.needed(share)} for share in SHARES]
    cells = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    facts = {"positions": count, "dim": encodings.shape[1], "needed": rows, "cumulative": components.cumulative}
    print_table(cells, facts, as_json)
    if picture:
        draw_position_components(components, picture)
