"""`docmt analyze`: the context that decided a translation, and attention to the words that people marked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hf_docmt.cli.loading import NOT_FOR_ATTENTION, check_model, languages_of, model_of_command, system_of_command
from hf_docmt.cli.options import command
from hf_docmt.cli.output import check_report, print_report
from hf_docmt.messages import closest_hint
from hf_docmt.options import (
    AS_JSON,
    BEAMS,
    MODEL,
    OPTION_PAIRS,
    OUTPUT,
    REQUIRED,
    STRATEGY,
    SUITE,
    ModelLanguages,
    argument,
    item_range,
    option,
)

if TYPE_CHECKING:
    from hf_docmt.analysis.decisive_context import DecisiveContext


@command
def why(
    *,
    model: str = MODEL,
    documents: str = argument("Text, JSON lines, TSV or subtitles; references are not needed."),
    sentence: int = option(REQUIRED, "Number of the sentence in its document, from 1."),
    document: str | None = option(None, "Id of the document. Default: the first one.", metavar="ID"),
    strategy: str | None = STRATEGY,
    beams: int | None = BEAMS,
    languages: ModelLanguages,
    as_json: bool = AS_JSON,
) -> None:
    """Show which context sentence decided a translation: the sentence without each of them, and alone.

    Examples:
      docmt analyze why MODEL letter.txt --sentence 2

    The document is translated first. {+ +} marks words that the other translation does not have.
    """
    check_model(model, documents)
    from hf_docmt.analysis.decisive_context import decisive_context
    from hf_docmt.analysis.model_runs import set_languages
    from hf_docmt.systems.generation_settings import make_repeatable

    loaded, tokenizer = model_of_command(model)
    set_languages(loaded, *languages)
    make_repeatable(loaded.generation_config, model)
    doc_id, source = source_document(documents, loaded.config.source_lang, document)
    search = {} if beams is None else {"num_beams": beams}
    (translation,) = loaded.translate_documents([source], tokenizer, strategy, **search)
    found = decisive_context(loaded, source, translation, tokenizer, sentence, strategy, **search)
    if as_json:
        print(json.dumps({"document": doc_id} | found.to_dict(), ensure_ascii=False))
    else:
        print("\n".join(lines_of(found, doc_id)))


def source_document(path: str, lang: str | None, doc_id: str | None) -> tuple[str, list[str]]:
    """Id and sentences of a document. ValueError: no language, no document, or an unknown id."""
    from hf_docmt.data.documents import sentences
    from hf_docmt.data.readers import read_documents

    if not lang:
        raise ValueError("the language of the documents is missing: add --source-lang")
    rows = read_documents(path=path, source_lang=lang)
    names = list(rows["doc_id"])
    if not names:
        raise ValueError(f"{path} has no document; add one")
    if doc_id is not None and doc_id not in names:
        raise ValueError(f"{path} has no document {doc_id!r}{closest_hint(doc_id, names)}")
    row = rows[0 if doc_id is None else names.index(doc_id)]
    return row["doc_id"], sentences(row, lang)


def lines_of(found: DecisiveContext, doc_id: str) -> list[str]:
    """The findings in words."""
    from hf_docmt.reports.side_by_side import marked, visible

    rows = [("source", visible(found.source)), ("translation", visible(found.translation))]
    others = [("alone", found.alone), *((f"without {one.number}", one.translation) for one in found.left_out)]
    for name, text in others:
        rows.append((name, "the same" if text == found.translation else marked(found.translation, text)))
    width = max(len(name) for name, _ in rows)
    decisive = found.decisive or (found.strongest if found.is_changed else None)
    return [
        f"{visible(doc_id)}, sentence {found.number}, strategy {found.strategy}",
        *(f"  {name:{width}}  {text}" for name, text in rows),
        found.verdict,
        *([f"  {decisive.number}  {visible(decisive.source)}"] if decisive else []),
    ]


@command
def rationales(
    *,
    model: str = MODEL,
    folder: str = argument("Folder with the files highlighted.SPLIT.LANG of SCAT."),
    split: str = option("train", "Split of SCAT.", metavar="NAME", panel=SUITE),
    items: tuple[int, int] | None = option(
        None, "Only the examples on these lines, from 1.", read=item_range, panel=SUITE
    ),
    attention: str = option("decoder", "encoder, cross or decoder attention.", metavar="NAME", panel=SUITE),
    step: str = option("writes", "Decoder step that writes or reads the pronoun.", metavar="NAME", panel=SUITE),
    languages: ModelLanguages,
    option_pairs: list[str] | None = OPTION_PAIRS,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Attention of pronouns to words that annotators marked as their context (SCAT, Yin et al. 2021)."""
    check_report(output, [folder])
    check_model(model, folder)
    from hf_docmt.analysis.rationales import rationales_files

    system = system_of_command(
        model,
        option_pairs=option_pairs,
        excluded=NOT_FOR_ATTENTION,
        prompt_languages=languages,
        attn_implementation="eager",
    )
    choice = {"split": split, "only": items, "attention": attention, "step": step}
    report = rationales_files(system, folder, **choice, **languages_of(system, languages))
    print_report(report, as_json, output)
