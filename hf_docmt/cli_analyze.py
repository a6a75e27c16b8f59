"""`docmt analyze`: what a model does with context, as tables, reports and pictures."""

from __future__ import annotations

from typing import Annotated

import typer

from hf_docmt.cli_options import AsJson, Lang, Model, Options, Output, Picture, Referenced

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
        from hf_docmt.evaluation.report import build_report, make_result
        from hf_docmt.evaluation.systems import DocMTSystem

        return build_report(
            model=DocMTSystem(self.model, self.tokenizer, self.name).describe(),
            data={"documents": len(self.documents), **self.languages},
            results=[make_result(**result) for result in results],
        )


def check_files(picture: str | None, output: str | None) -> None:
    """ValueError, before anything is computed, where a file cannot be written."""
    from pathlib import Path

    from hf_docmt.analysis.plots import checked_path
    from hf_docmt.inference.corpus import check_output

    check_output(output or "-")
    if picture:
        checked_path(Path(picture))
